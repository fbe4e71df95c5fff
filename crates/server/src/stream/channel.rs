use tolka_dialect::{Dialect, onyx};
use tolka_facts::SessionId;
use tolka_journal::Scope;
use tolka_session::Place;

use super::Dress;

/// What is told, and how: readers of one channel get the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Channel {
    pub(crate) whose: Whose,
    pub(crate) dialect: Dialect,
    pub(crate) dress: Dress,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    Session(SessionId),
    /// All sessions, or those of one folder.
    Feed {
        directory: Option<String>,
    },
}

impl Channel {
    /// What a client of this channel sees, if it can answer there what an agent asks. Clients of documents 000 and 003
    /// know no answers: nobody is there with them.
    pub(crate) fn place_to_answer(&self) -> Option<Place> {
        let can_answer = match self.dialect {
            Dialect::Tolka | Dialect::Acp | Dialect::OnyxSteps | Dialect::OpenCode(_) => true,
            Dialect::Onyx(profile) => profile == onyx::Profile::Current,
            Dialect::AgentSmithy => false,
        };
        let place = match &self.whose {
            Whose::Session(session) => Place::Session(session.clone()),
            Whose::Feed { directory: Some(folder) } => Place::Folder(folder.clone()),
            Whose::Feed { directory: None } => Place::Everywhere,
        };
        Some(place).filter(|_| can_answer)
    }

    pub(super) fn scope(&self) -> Scope {
        match &self.whose {
            Whose::Session(session) => Scope::Session(session.clone()),
            Whose::Feed { .. } => Scope::All,
        }
    }
}
