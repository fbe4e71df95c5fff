//! A new session from a point of another one: its facts up to there, copied under ids of their own.

use tolka_facts::{MessageId, SessionId, Tip};

use crate::{Desk, SessionError};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForkRequest {
    /// What came before this prompt, or answer. `None`: all of it. One that a rewind has hidden will do as well.
    pub before: Option<MessageId>,
    pub workspace: ForkWorkspace,
    pub title: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkWorkspace {
    /// The same folder, as it is now.
    #[default]
    InPlace,
    /// A new folder with the files of that point.
    Own,
}

impl Desk {
    pub async fn fork(&self, session: &SessionId, _request: ForkRequest) -> Result<Tip, SessionError> {
        Err(SessionError::NotFound(session.clone()))
    }
}
