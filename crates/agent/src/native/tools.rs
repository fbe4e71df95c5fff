//! The tools: what a model can call for, and how each call is told and done.

use std::path::PathBuf;
use std::sync::Arc;

use tolka_facts::{CallId, Json};

use super::model::{Input, ToolSpec};
use super::settings::Settings;
use crate::{Gone, Teller};

/// A call that the model has finished writing. That it began (`pending`, and its input as it came) is told already.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) name: String,
    pub(crate) input: Json,
}

/// What goes back to the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) content: Vec<Input>,
    pub(crate) is_error: bool,
    /// The person said no, and nothing more: the turn ends here.
    pub(crate) ends_turn: bool,
}

/// The tools of one session.
#[derive(Debug)]
pub(crate) struct Tools {
    _settings: Arc<Settings>,
    _workspace: PathBuf,
}

/// What a turn is to its tools.
#[derive(Debug, Clone)]
pub(crate) struct Scene<'a> {
    pub(crate) teller: &'a Teller,
    /// `plan`: nothing may be changed.
    pub(crate) mode: String,
    /// The workspace as it was before this turn.
    pub(crate) checkpoint: Option<String>,
}

impl Tools {
    pub(crate) fn new(settings: Arc<Settings>, workspace: PathBuf) -> Self {
        Tools { _settings: settings, _workspace: workspace }
    }

    /// What the model is offered in this mode.
    pub(crate) fn specs(&self, _mode: &str) -> Vec<ToolSpec> {
        Vec::new()
    }

    /// Runs the calls of one step: side by side where that is safe, else one after the other. Tells everything from
    /// `running` to the end of each, in the order of the calls. On cancel each call that has not ended is told as cancelled.
    pub(crate) async fn run(&self, _calls: Vec<Call>, _scene: &Scene<'_>) -> Result<Vec<Outcome>, Gone> {
        Ok(Vec::new())
    }

    /// What an ended call gave back, as the model is sent it: the same from the facts as it was when the call ended.
    pub(crate) fn recalled(_tool: &tolka_facts::Tool, _blobs: &dyn tolka_facts::Blobs) -> Outcome {
        Outcome { content: Vec::new(), is_error: false, ends_turn: false }
    }

    /// Asks for leave to read what lies outside of the workspace, for files that a prompt links to.
    pub(crate) async fn may_read(&self, _path: &std::path::Path, _scene: &Scene<'_>) -> Result<bool, Gone> {
        Ok(false)
    }
}
