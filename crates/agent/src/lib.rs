//! The minds: whatever does the work of a turn and tells of it.
//!
//! A [`Mind`] is opened once per live session and run once per prompt. All it can do to the outside is
//! in its [`Teller`]: tell drafts of facts, ask a person, wait until what it told is durable. It does
//! not know the journal, the clients, or what becomes of its words.

mod family;
pub mod native;
mod past;
mod replay;
mod teller;
mod waits;

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use tolka_facts::event::{Failed, Model, Stop, Usage};
use tolka_facts::{Block, Json, MessageId, SessionId, TurnId};
use tolka_workspace::slash::{Shelf, Slash};

pub use family::{Birth, Child, Family, FamilyError, Raising};
pub use past::{NoPast, Past, PastError, Remembered, Remembering};
pub use replay::{Pace, Recording, RecordingError, Replay};
pub use teller::{
    Cancel, CancelSwitch, Chosen, Contents, Effect, Effects, Gone, Patience, Room, Said, Steered, Teller, cancel,
    teller,
};

/// A kind of agent, by the name that `--agent` gives it.
pub trait Agent: Send + Sync + fmt::Debug {
    fn name(&self) -> &str;

    /// The model that it works with unless a prompt names another.
    fn model(&self) -> Model;

    /// All that it can work with, the usual one first.
    fn models(&self) -> Vec<ModelAbout> {
        vec![ModelAbout::named(self.model())]
    }

    /// The model that is meant by a name: one without a provider, as some clients have it, means the first of that id.
    /// `None` if there is none. Every place that takes a model's name asks this.
    fn find_model(&self, wanted: &Model) -> Option<Model> {
        let mut known = self.models().into_iter().map(|about| about.model);
        known.find(|known| is_meant(known, wanted))
    }

    /// Its ways of working, the usual one first; clients choose one by its name.
    fn modes(&self) -> Vec<ModeAbout> {
        vec![ModeAbout { name: BUILD.to_owned(), description: "The agent that the session is with.".to_owned() }]
    }

    /// The kinds of subagents that it can have in a folder. It reads files there, so it blocks.
    fn subagents(&self, workspace: &Path) -> Vec<ModeAbout> {
        let _ = workspace;
        Vec::new()
    }

    /// Where prompts are kept that can be called by a name; `None`: its own are its own matter.
    fn shelf(&self) -> Option<&Shelf> {
        None
    }

    /// What can be called by a name in a folder: what is kept in files there, and its own. It reads files, so it blocks.
    fn commands(&self, workspace: &Path) -> Vec<Slash> {
        self.shelf().map(|shelf| commands(shelf, self.compacts(), workspace)).unwrap_or_default()
    }

    /// Whether every file that it changes is told of. What changed in a turn and was not told is somebody else's then.
    fn tells_changes(&self) -> bool {
        false
    }

    /// Whether it summarises a session when it is asked to, with [`COMPACT`].
    fn compacts(&self) -> bool {
        false
    }

    /// Whether a process that it started in a session goes on. What does not is told as ended.
    fn is_running(&self, _session: &SessionId, _process: &str) -> bool {
        false
    }

    /// A session is deleted: whatever it has of it goes. Cheap.
    fn forget(&self, _session: &SessionId) {}

    /// Cheap: anything slow belongs to the first turn, where it can be cancelled and told about.
    fn open(&self, place: Place) -> Box<dyn Mind>;
}

fn is_meant(known: &Model, wanted: &Model) -> bool {
    known.id == wanted.id && (known.provider == wanted.provider || wanted.provider.is_empty())
}

/// Where a mind works.
#[derive(Debug, Clone)]
pub struct Place {
    pub session: SessionId,
    pub workspace: String,
    /// Turns that the session has had before this mind was opened.
    pub turns: u64,
    /// What was said and done in it so far.
    pub past: Arc<dyn Past>,
    /// How it has subagents. `None`: it can have none.
    pub family: Option<Arc<dyn Family>>,
    /// 0 for a session that people began, 1 for a subagent of it, and so on.
    pub depth: u32,
}

pub type Running<'a> = Pin<Box<dyn Future<Output = Ended> + Send + 'a>>;

pub trait Mind: Send + Sync {
    /// Does one turn. When `teller.cancel()` fires it should end soon by itself; it is dropped if it does not.
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a>;
}

#[derive(Debug, Clone, Default)]
pub struct Prompt {
    pub turn: TurnId,
    /// The user's message.
    pub message: MessageId,
    pub content: Vec<Block>,
    pub context: Option<Json>,
    pub model: Option<Model>,
    /// The way of working that the prompt or the session names; `None` leaves it to the agent.
    pub mode: Option<String>,
    /// The workspace as it was before this turn.
    pub checkpoint: Option<String>,
    /// What the session is called now.
    pub title: String,
}

/// How a turn ended, in the agent's own account.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub stop: Stop,
    pub usage: Option<Usage>,
    pub cost: Option<f64>,
    pub meta: Option<Json>,
    /// With [`Stop::Failed`]: why.
    pub failure: Option<Failed>,
}

impl Ended {
    pub fn stopped(stop: Stop) -> Self {
        Ended { stop, usage: None, cost: None, meta: None, failure: None }
    }

    pub fn failed(failure: Failed) -> Self {
        Ended { failure: Some(failure), ..Ended::stopped(Stop::Failed) }
    }
}

/// The usual way of working, in every family that has ways of working.
pub const BUILD: &str = "build";

/// The one in which nothing may be changed.
pub const PLAN: &str = "plan";

/// The kind of subagent that has every tool.
pub const GENERAL: &str = "general";

/// A prompt that begins with this asks for a summary of the session; what follows says what to heed in it.
pub const COMPACT: &str = "/compact";

/// No file takes the place of what the agent does itself.
pub(crate) fn commands(shelf: &Shelf, compacts: bool, workspace: &Path) -> Vec<Slash> {
    let mut all = shelf.all(workspace);
    if compacts {
        let name = COMPACT.trim_start_matches('/');
        all.retain(|slash| slash.name != name);
        all.push(Slash {
            name: name.to_owned(),
            description: "Summarises the conversation so far, to go on with less".to_owned(),
            hint: Some("[what to heed]".to_owned()),
            agent: None,
            model: None,
            subtask: None,
            template: format!("{COMPACT} $ARGUMENTS"),
        });
        all.sort_by(|one, other| one.name.cmp(&other.name));
    }
    all
}

/// What a session is called that nobody has named.
pub const UNNAMED: &str = "New session";

/// A way of working, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeAbout {
    pub name: String,
    pub description: String,
}

/// A model, as lists show it. `None`: not known.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAbout {
    pub model: Model,
    /// For people.
    pub name: String,
    /// Tokens that fit in all.
    pub context: Option<u64>,
    /// Tokens that one answer may have.
    pub output: Option<u64>,
    pub price: Option<Price>,
    pub sees_images: bool,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl ModelAbout {
    pub fn named(model: Model) -> Self {
        let name = model.id.clone();
        ModelAbout { model, name, context: None, output: None, price: None, sees_images: false }
    }
}

/// The agents that a server has, by name.
pub type Agents = Arc<[Arc<dyn Agent>]>;
