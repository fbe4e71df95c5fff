//! The minds: whatever does the work of a turn and tells of it.
//!
//! A [`Mind`] is opened once per live session and run once per prompt. All it can do to the outside is
//! in its [`Teller`]: tell drafts of facts, ask a person, wait until what it told is durable. It does
//! not know the journal, the clients, or what becomes of its words.

mod demo;
mod replay;
mod teller;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tolka_facts::event::{Failed, Model, Stop, Usage};
use tolka_facts::{Block, Json, SessionId};

pub use demo::demo;
pub use replay::{Pace, Recording, RecordingError, Replay};
pub use teller::{Cancel, CancelSwitch, Gone, Said, Teller, teller};

/// A kind of agent, by the name that `--agent` gives it.
pub trait Agent: Send + Sync + fmt::Debug {
    fn name(&self) -> &str;

    fn model(&self) -> Model;

    /// Cheap: anything slow belongs to the first turn, where it can be cancelled and told about.
    fn open(&self, place: Place) -> Box<dyn Mind>;
}

/// Where a mind works.
#[derive(Debug, Clone)]
pub struct Place {
    pub session: SessionId,
    pub workspace: String,
    /// Turns that the session has had before this mind was opened.
    pub turns: u64,
}

pub type Running<'a> = Pin<Box<dyn Future<Output = Ended> + Send + 'a>>;

pub trait Mind: Send + Sync {
    /// Does one turn. When `teller.cancel()` fires it should end soon by itself; it is dropped if it does not.
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a>;
}

#[derive(Debug, Clone)]
pub struct Prompt {
    pub content: Vec<Block>,
    pub context: Option<Json>,
    pub model: Option<Model>,
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

/// The agents that a server has, by name.
pub type Agents = Arc<[Arc<dyn Agent>]>;
