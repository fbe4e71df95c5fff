//! Subagents, as a mind knows them: sessions that it has made for a piece of its work, each with a journal of its own. A
//! mind does not know the desk; it is handed this.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tolka_facts::event::Model;
use tolka_facts::{CallId, Fact, SessionId};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FamilyError(pub String);

pub type Raising<'a, T> = Pin<Box<dyn Future<Output = Result<T, FamilyError>> + Send + 'a>>;

/// The session that is to work for a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Birth {
    pub call: CallId,
    pub title: String,
    /// The kind of subagent, which is the child's way of working.
    pub kind: String,
    pub model: Model,
}

/// The subagents of one session.
pub trait Family: Send + Sync + fmt::Debug {
    /// Makes a session in the same folder, with the same agent. It does nothing until it is given a task.
    fn bear(&self, birth: Birth) -> Raising<'_, SessionId>;

    /// The kind of a child that was made before and has nothing to do now. An error says why it is none.
    fn find(&self, child: SessionId) -> Raising<'_, String>;

    /// Gives a child its task.
    fn give(&self, child: SessionId, task: String) -> Raising<'_, Box<dyn Child>>;
}

/// A child at work.
pub trait Child: Send {
    /// What happened in it next, from the start of its turn on, once it is durable. `None`: it is gone, and nothing more
    /// will. Nothing is lost if this is dropped and called again.
    fn next(&mut self) -> Raising<'_, Option<Arc<Fact>>>;

    /// Ends what it does. That is told like everything else.
    fn cancel(&self) -> Raising<'_, ()>;
}
