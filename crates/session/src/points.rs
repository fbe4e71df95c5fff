//! The points of a session that files can be compared with and brought back to: every fact that names a snapshot.

use tolka_facts::event::Changes;
use tolka_facts::{MessageId, SessionId, Time, TurnId};
use tolka_workspace::checkpoint::FileDiff;

use crate::{Desk, SessionError};

/// A snapshot, and what it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The fact that names it.
    pub seq: u64,
    pub time: Time,
    pub checkpoint: String,
    pub kind: PointKind,
    /// What changed up to it since the one before, where that is known.
    pub changes: Option<Changes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointKind {
    BeforeTurn {
        turn: TurnId,
        message: MessageId,
        words: String,
    },
    AfterTurn {
        turn: TurnId,
    },
    BeforeRewind,
    AfterRewind,
    Approved {
        words: Option<String>,
    },
    /// What a fork began with.
    Forked,
    Asked,
}

/// Between which two points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Between {
    /// From the session's base to the workspace as it is: what would be approved, or reset.
    SinceApproval,
    /// From the session's first snapshot to the workspace as it is.
    Session,
    /// Of the turn of this prompt or answer.
    Message(MessageId),
    /// Two checkpoints of the session; without the second, the workspace as it is.
    Checkpoints(String, Option<String>),
}

impl Desk {
    /// The latest first: up to `limit` of those before `before`.
    pub async fn points(&self, session: &SessionId, _before: u64, _limit: usize) -> Result<Vec<Point>, SessionError> {
        Err(SessionError::NotFound(session.clone()))
    }

    pub async fn differences(&self, session: &SessionId, _between: Between) -> Result<Vec<FileDiff>, SessionError> {
        Err(SessionError::NotFound(session.clone()))
    }
}
