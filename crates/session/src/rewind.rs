//! Going back, and taking that back: the files, the conversation, or both.
//!
//! A rewind is asked for while no turn runs. The workspace is saved first, then what will be done is written down as a
//! [`RewindStarted`](tolka_facts::event::RewindStarted) fact, then the files are restored, then what was done is told. A
//! crash in between leaves the fact; the next start finishes from it. A restore that fails in its middle is tried again
//! until it is done or somebody gives it up; either way what was done is told, and can be taken back.

mod boundary;
mod chain;
mod goal;
mod history;
mod job;
mod notes;
mod prepare;
mod restoring;
mod unsaved;
mod work;

use tolka_facts::event::Overwrite;
use tolka_facts::{MessageId, SessionId};
use tolka_workspace::checkpoint::{Kept, Step};

pub(crate) use chain::Kind;
pub(crate) use goal::nothing_saved;
pub(crate) use history::History;
pub(crate) use job::{Job, Order, progress};
pub(crate) use prepare::{Study, checkpoint_error, pruned};

use crate::actor::Command;
use crate::{Desk, SessionError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindRequest {
    pub to: Target,
    pub what: What,
    /// Of files that would be kept as conflicts.
    pub overwrite: Overwrite,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To before this prompt; an answer means the prompt that it answers.
    Message(MessageId),
    /// A checkpoint of this session, whichever fact named it.
    Checkpoint(String),
    /// What was approved last, or what the session began with.
    Base,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Files,
    Conversation,
    Both,
}

/// Which rewinds are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undo {
    Last,
    /// The one that this fact tells, if it is the last one: another client may have been faster.
    This(u64),
    /// All since the conversation went back.
    All,
}

/// What a rewind would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    /// Where the files would go.
    pub checkpoint: Option<String>,
    /// The first prompt that would be hidden.
    pub message: Option<MessageId>,
    pub files: Vec<Step>,
    pub kept: Vec<Kept>,
    /// Prompts and answers that would be hidden.
    pub messages: u64,
}

/// What a rewind did, or taking one back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewinding {
    pub checkpoint: Option<String>,
    pub message: Option<MessageId>,
    /// The workspace before it: what an undo goes back to.
    pub before: Option<String>,
    /// The workspace after it.
    pub after: Option<String>,
    pub files: Vec<Step>,
    pub kept: Vec<Kept>,
    /// The fact that tells it.
    pub seq: u64,
}

/// Work that was agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub checkpoint: String,
    /// How many points were passed since the last approval.
    pub points: u64,
    /// How often work was approved or reset in this session, this time included.
    pub settled: u64,
}

impl Desk {
    /// Refused while a turn runs: what it would do is not known before.
    pub async fn preview_rewind(&self, session: &SessionId, request: &RewindRequest) -> Result<Preview, SessionError> {
        let tip = self.tip(session).await?;
        if tip.head.busy {
            return Err(SessionError::Busy);
        }
        let study = self.study(&tip).await;
        let goal = study.history.goal(&tip, request).await?;
        let messages = study.history.count(goal.from).await?;
        let (checkpoint, message) = (goal.checkpoint, goal.message);
        let Some(target) = &checkpoint else {
            return Ok(Preview { message, messages, ..Preview::default() });
        };
        let now = study.look("Before a look at what would go back").await?;
        let plan = study.plan((target, &now.commit), request.overwrite.clone(), Some(goal.since)).await?;
        let store = study.store()?;
        let would = store.checkpoints.look(&store.folder.named, &plan).await.map_err(checkpoint_error)?;
        Ok(Preview { checkpoint, message, files: would.done, kept: would.kept, messages })
    }

    /// Prompts and answers that a rewind would hide.
    pub async fn would_hide(&self, session: &SessionId, request: &RewindRequest) -> Result<u64, SessionError> {
        let tip = self.tip(session).await?;
        let history = History::of(self.journal().clone(), &tip.head);
        history.count(history.goal(&tip, request).await?.from).await
    }

    /// Prompts and answers that rewinds have hidden and can show again.
    pub async fn hidden(&self, session: &SessionId) -> Result<u64, SessionError> {
        let tip = self.tip(session).await?;
        History::of(self.journal().clone(), &tip.head).count(tip.hidden_from()).await
    }

    /// Refused while a turn runs.
    pub async fn rewind(&self, session: &SessionId, request: RewindRequest) -> Result<Rewinding, SessionError> {
        self.call(session, |reply| Command::Rewind(Box::new(Order::To(request)), reply)).await
    }

    /// Takes rewinds back, if no turn has started since.
    pub async fn unrewind(
        &self,
        session: &SessionId,
        undo: Undo,
        overwrite: Overwrite,
    ) -> Result<Rewinding, SessionError> {
        self.call(session, |reply| Command::Rewind(Box::new(Order::Back(undo, overwrite)), reply)).await
    }

    /// Makes this prompt, or that of this answer, the first one that is hidden, wherever the conversation was rewound to
    /// before. The files are then those before it, or without them those from before all rewinds.
    pub async fn move_boundary(
        &self,
        session: &SessionId,
        message: MessageId,
        what: What,
    ) -> Result<Rewinding, SessionError> {
        self.call(session, |reply| Command::Rewind(Box::new(Order::Boundary(message, what)), reply)).await
    }

    /// Changes are counted from here on.
    pub async fn approve(&self, session: &SessionId, words: Option<String>) -> Result<Approval, SessionError> {
        self.call(session, |reply| Command::Approve(words, reply)).await
    }

    /// Takes back all that turns changed since the last approval. The conversation stays.
    pub async fn reset(&self, session: &SessionId) -> Result<Rewinding, SessionError> {
        self.call(session, |reply| Command::Rewind(Box::new(Order::Reset), reply)).await
    }
}
