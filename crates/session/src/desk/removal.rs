//! Sessions that go: for clients first, and then whole.

use std::path::{Path, PathBuf};

use tolka_facts::SessionId;
use tolka_journal::Purged;

use super::Desk;
use crate::SessionError;
use crate::actor::Command;

/// What a purge did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    pub freed: Purged,
    /// The folder of a fork that stays, since something is in it that no snapshot holds.
    pub kept: Option<PathBuf>,
}

impl Desk {
    /// The session is gone for clients, and its subagents are; their facts stay until they are purged.
    pub async fn delete(&self, session: &SessionId) -> Result<(), SessionError> {
        // First those that it called, so that one which is cut off here is done again by deleting it again. It would only
        // call for more; should the disk be too full to say so, its turn goes with it below.
        if !self.children(session, false).await?.is_empty() {
            let _ = self.cancel(session, true).await;
            self.delete_children(session).await?;
        }
        self.call(session, Command::Delete).await?;
        // Its turn may have called another meanwhile.
        self.delete_children(session).await
    }

    async fn delete_children(&self, session: &SessionId) -> Result<(), SessionError> {
        for child in self.descendants(session, false).await?.into_iter().rev() {
            match self.call(&child, Command::Delete).await {
                Ok(()) | Err(SessionError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes a deleted session whole: its checkpoints, facts and blobs, and those of its subagents.
    pub async fn purge(&self, session: &SessionId) -> Result<Purge, SessionError> {
        let is_deleted = self.journal().session(session).await?.is_some_and(|row| row.head.deleted);
        let children = if is_deleted { self.descendants(session, true).await? } else { Vec::new() };
        let mut freed = Purged::default();
        for child in children.into_iter().rev() {
            let more = self.purge_one(&child).await?.freed;
            freed.facts += more.facts;
            freed.blobs += more.blobs;
            freed.bytes += more.bytes;
        }
        let last = self.purge_one(session).await?;
        freed.facts += last.freed.facts;
        freed.blobs += last.freed.blobs;
        freed.bytes += last.freed.bytes;
        Ok(Purge { freed, ..last })
    }

    async fn purge_one(&self, session: &SessionId) -> Result<Purge, SessionError> {
        let found = self.journal().session(session).await?.filter(|row| row.head.deleted);
        let workspace = found.as_ref().map(|row| PathBuf::from(&row.head.workspace));
        let is_untouched = match &found {
            Some(row) => self.is_fork_untouched(row).await,
            None => false,
        };
        // First, since nobody knows whose they are when the facts are gone. What cannot be removed does not keep the
        // facts: a purge is also the way out of a full disk, and of a data folder where something is broken.
        if let (Some(row), Some(checkpoints)) = (found, &self.0.options.checkpoints)
            && let Err(error) = checkpoints.forget(Path::new(&row.head.workspace), session).await
        {
            tracing::warn!(%session, workspace = row.head.workspace, %error, "checkpoints of a purged session are left");
        }
        let freed = self.journal().purge(session).await?;
        let kept = match workspace {
            Some(workspace) => self.clear_fork(&workspace, is_untouched).await,
            None => None,
        };
        Ok(Purge { freed, kept })
    }
}
