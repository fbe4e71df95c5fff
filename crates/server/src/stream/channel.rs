use tolka_dialect::Dialect;
use tolka_facts::SessionId;
use tolka_journal::Scope;

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
    pub(super) fn scope(&self) -> Scope {
        match &self.whose {
            Whose::Session(session) => Scope::Session(session.clone()),
            Whose::Feed { .. } => Scope::All,
        }
    }
}
