//! All that the native agent is given: made from `tolka.toml` and the environment by the command line.

use std::sync::Arc;
use std::time::Duration;

use tolka_mcp::Hub;
use tolka_workspace::Checkpoints;
use tolka_workspace::command::Shell;
use tolka_workspace::slash::Shelf;

use super::model::Model;
use super::permission::{Grants, Rules};
use super::processes::Processes;
use super::web::Web;
use crate::Patience;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The usual one first; never empty.
    pub models: Vec<Arc<dyn Model>>,
    /// Calls of the model that one turn may make.
    pub steps: u32,
    /// How long one turn may take.
    pub turn: Duration,
    /// Tries of one step, the first included.
    pub tries: u32,
    /// How long a command may take if the model does not say.
    pub command: Duration,
    pub rules: Rules,
    pub grants: Arc<Grants>,
    /// For permissions and questions.
    pub patience: Patience,
    pub shell: Arc<Shell>,
    /// Commands that go on, of all sessions.
    pub processes: Arc<Processes>,
    /// Where the workspace as it was before the turn can be read.
    pub checkpoints: Option<Arc<Checkpoints>>,
    pub titles: Titles,
    /// Servers whose tools it may use besides its own.
    pub mcp: Option<Arc<Hub>>,
    pub compaction: Compaction,
    /// Said to the model before all else, after our own words.
    pub instructions: Option<String>,
    pub web: Web,
    pub subagents: Few,
    /// Prompts that can be called by a name; `None`: there are none.
    pub shelf: Option<Shelf>,
}

/// How many subagents there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Few {
    /// Of one session at once; the others wait.
    pub at_once: u32,
    /// How deep they may call for others of their own: with 1 they may not, with 0 there are none.
    pub depth: u32,
}

impl Default for Few {
    fn default() -> Self {
        Few { at_once: 4, depth: 1 }
    }
}

/// When a conversation that grows long is summarised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compaction {
    /// When this share of what the model takes is used, or less if its answer needs more; and when the provider says that
    /// it does not fit.
    At(f64),
    /// Only if a person asks for it.
    OnRequest,
}

impl Default for Compaction {
    fn default() -> Self {
        Compaction::At(0.9)
    }
}

/// How a session that nobody named gets its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Titles {
    /// From the first words of the first prompt.
    #[default]
    Prompt,
    /// The model is asked, beside the first turn; until it answers the title is the prompt's.
    Model,
}
