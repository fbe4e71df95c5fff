//! One call on its way: told as running, done, and ended.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use tokio::task::JoinError;
use tolka_facts::event::ToolChanged;
use tolka_facts::{Block, Draft, Location, ToolContent, ToolStatus};
use tolka_workspace::files::{FileError, Files};

use super::field::Fields;
use super::name::Name;
use super::{Call, Scene, Tools};
use super::{
    artifact, bash, delete, edit, glob, grep, list, mcp, outcome, patch, processes, question, read, task, todo, write,
};
use super::{webfetch, websearch};
use crate::Gone;
use crate::native::kind::kind_of;

/// What a call is done with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Act<'a> {
    pub(super) tools: &'a Tools,
    pub(super) scene: &'a Scene<'a>,
    pub(super) call: &'a Call,
}

/// What a call gave.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) title: String,
    pub(super) output: String,
    pub(super) metadata: Map<String, Value>,
    /// Shown instead of the output, where people are better shown something else.
    pub(super) shown: Option<String>,
    /// Shown beside it.
    pub(super) content: Vec<ToolContent>,
}

/// Why a call gave nothing, or not all.
#[derive(Debug)]
pub(super) enum Stop {
    Gone(Gone),
    /// With what it gave until then.
    Cancelled(Option<Box<Done>>),
    Failed(String),
    /// The person said no, and nothing more.
    Rejected,
}

impl From<Gone> for Stop {
    fn from(gone: Gone) -> Self {
        Stop::Gone(gone)
    }
}

impl From<FileError> for Stop {
    fn from(error: FileError) -> Self {
        Stop::failed(error)
    }
}

impl Stop {
    pub(super) fn failed(why: impl fmt::Display) -> Self {
        Stop::Failed(format!("{why}"))
    }
}

/// How a call ended.
#[derive(Debug)]
pub(super) enum End {
    Done(Done),
    Failed(String),
    Cancelled(Option<Box<Done>>),
    /// It was not run: the person said no, and nothing more.
    Rejected,
    /// It was not run: the person said no to another.
    Skipped,
}

/// The document's words.
const REJECTED: &str = "Error: The user rejected permission to use this specific tool call.";

const SKIPPED: &str = "This call was not run: the user rejected an earlier one of the same step.";
const CANCELLED: &str = "The user cancelled the turn before the tool ended.";
const TIME_UP: &str = "The turn had all its time before the tool ended.";

impl End {
    pub(super) fn told(self, call: &Call, scene: &Scene<'_>) -> ToolChanged {
        let stopped = if scene.teller.cancel().is_fired() { CANCELLED } else { TIME_UP };
        let ends_turn = matches!(self, End::Rejected);
        let (status, error, done) = match self {
            End::Done(done) => (ToolStatus::Completed, None, Some(done)),
            End::Failed(why) => (ToolStatus::Failed, Some(why), None),
            End::Rejected => (ToolStatus::Failed, Some(REJECTED.to_owned()), None),
            End::Skipped => (ToolStatus::Cancelled, Some(SKIPPED.to_owned()), None),
            End::Cancelled(done) => (ToolStatus::Cancelled, Some(stopped.to_owned()), done.map(|done| *done)),
        };
        let mut change = ToolChanged { status: Some(status), ..ToolChanged::of(call.id.clone()) };
        // What went wrong may have done so before the call was told as running: its input is told here at the latest.
        change.input = error.is_some().then(|| call.input.clone());
        change.error = error.map(Into::into);
        change.meta = ends_turn.then(outcome::ending);
        if let Some(done) = done {
            let text = done.shown.unwrap_or_else(|| done.output.clone());
            let shown = ToolContent::Content { block: Block::text(text) };
            change.content = Some([shown].into_iter().chain(done.content).collect());
            change.title = Some(done.title);
            change.output = Some(json!({ "output": done.output, "metadata": done.metadata }).into());
        }
        change
    }
}

impl Act<'_> {
    /// `Err` only when nobody listens any more.
    pub(super) async fn run(&self) -> Result<End, Gone> {
        match self.attempt().await {
            Ok(done) => Ok(End::Done(done)),
            Err(Stop::Gone(gone)) => Err(gone),
            Err(Stop::Cancelled(done)) => Ok(End::Cancelled(done)),
            Err(Stop::Failed(why)) => Ok(End::Failed(why)),
            Err(Stop::Rejected) => Ok(End::Rejected),
        }
    }

    async fn attempt(&self) -> Result<Done, Stop> {
        if self.scene.cancel.is_fired() {
            return Err(Stop::Cancelled(None));
        }
        let Some(name) = Name::of(&self.call.name) else {
            return mcp::run(self).await;
        };
        let fields = Fields::of(&self.call.input)?;
        match name {
            Name::Bash => bash::run(self, &fields).await,
            Name::Read => read::run(self, &fields).await,
            Name::Write => write::run(self, &fields).await,
            Name::Edit => edit::run(self, &fields).await,
            Name::ApplyPatch => patch::run(self, &fields).await,
            Name::Delete => delete::run(self, &fields).await,
            Name::Glob => glob::run(self, &fields).await,
            Name::Grep => grep::run(self, &fields).await,
            Name::List => list::run(self, &fields).await,
            Name::TodoWrite => todo::run(self, &fields).await,
            Name::Question => question::run(self, &fields).await,
            Name::Artifact => artifact::run(self, &fields).await,
            Name::WebFetch => webfetch::run(self, &fields).await,
            Name::WebSearch => websearch::run(self, &fields).await,
            Name::Task => task::run(self, &fields).await,
            Name::Processes => processes::run(self, &fields).await,
        }
    }

    /// Tells what is wanted, for those who are about to be asked for leave.
    pub(super) async fn announced(&self, title: &str, paths: &[&str]) -> Result<(), Stop> {
        Ok(self.scene.teller.tell(Draft::agent(self.change(title, paths))).await?)
    }

    /// Tells that it runs.
    pub(super) async fn running(&self, title: &str, paths: &[&str]) -> Result<(), Stop> {
        let change = ToolChanged { status: Some(ToolStatus::Running), ..self.change(title, paths) };
        Ok(self.scene.teller.tell(Draft::agent(change)).await?)
    }

    /// Tells that it runs, and waits until that would survive a crash: an effect follows.
    pub(super) async fn running_for_good(&self, title: &str, paths: &[&str]) -> Result<(), Stop> {
        self.running(title, paths).await?;
        self.scene.teller.settled().await?;
        match self.scene.cancel.is_fired() {
            true => Err(Stop::Cancelled(None)),
            false => Ok(()),
        }
    }

    fn change(&self, title: &str, paths: &[&str]) -> ToolChanged {
        let place = |path: &&str| Location { path: self.absolute(path), line: None };
        ToolChanged {
            kind: Some(kind_of(&self.call.name)),
            title: Some(title.to_owned()),
            input: Some(self.call.input.clone()),
            locations: (!paths.is_empty()).then(|| paths.iter().map(place).collect()),
            ..ToolChanged::of(self.call.id.clone())
        }
    }

    /// Does something that blocks and changes nothing. On cancel nobody waits for it any more, and its flag says so.
    pub(super) async fn looking<T: Send + 'static>(
        &self,
        look: impl FnOnce(Arc<AtomicBool>) -> T + Send + 'static,
    ) -> Result<T, Stop> {
        let unwanted = Unwanted(Arc::default());
        let flag = unwanted.0.clone();
        let task = tokio::task::spawn_blocking(move || look(flag));
        tokio::select! {
            looked = task => looked.map_err(|error| broken(&error)),
            () = self.scene.cancel.fired() => Err(Stop::Cancelled(None)),
        }
    }

    /// Does something that blocks, is short, and is waited for whatever happens.
    pub(super) async fn doing<T: Send + 'static>(&self, act: impl FnOnce() -> T + Send + 'static) -> Result<T, Stop> {
        blocking(act).await
    }

    /// Does something that has an effect, and tells of it. It is done and told to its end even if the turn is dropped
    /// meanwhile: a turn is not over before its effects are.
    pub(super) async fn effect<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Stop>> + Send + 'static,
    ) -> Result<T, Stop> {
        let effect = self.scene.teller.effects().begin();
        let task = tokio::spawn(async move {
            let done = work.await;
            drop(effect);
            done
        });
        task.await.unwrap_or_else(|error| Err(broken(&error)))
    }

    /// For a blocking task to open; the workspace may have gone or be another one since the last call.
    pub(super) fn workspace(&self) -> PathBuf {
        self.tools.workspace.clone()
    }

    /// Where a path from the workspace on is.
    pub(super) fn absolute(&self, path: &str) -> String {
        self.tools.workspace.join(path).to_string_lossy().into_owned()
    }

    /// The path from the workspace on.
    pub(super) fn relative(&self, path: &str) -> Result<String, FileError> {
        Files::open(&self.tools.workspace)?.relative(path)
    }
}

pub(super) async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T, Stop> {
    tokio::task::spawn_blocking(act).await.map_err(|error| broken(&error))
}

fn broken(error: &JoinError) -> Stop {
    Stop::Failed(format!("the tool broke: {error}"))
}

/// Raises its flag when it is dropped.
struct Unwanted(Arc<AtomicBool>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
