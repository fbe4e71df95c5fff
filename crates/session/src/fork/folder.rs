//! The folder of a fork that works on files of its own. It goes with the last session that works there: a fork of a fork
//! may share it.

use std::path::Path;
use std::sync::Arc;

use tolka_journal::tip_at;

use crate::{Desk, SessionError};

impl Desk {
    /// Whether a folder, by its real name, is one that a fork works in, or inside of one.
    pub fn is_of_fork(&self, folder: &Path) -> bool {
        self.options().checkpoints.as_ref().is_some_and(|checkpoints| checkpoints.fork_of(folder).is_some())
    }

    /// Removes folders whose sessions are gone, and what a crash left of forks that were going.
    pub(crate) async fn sweep_forks(&self) -> Result<(), SessionError> {
        let Some(checkpoints) = &self.options().checkpoints else { return Ok(()) };
        for id in checkpoints.forks().await.map_err(Arc::new)? {
            match self.journal().session(&id).await? {
                None => {
                    let inside = checkpoints.fork_folder(&id, "any").await.map_err(Arc::new)?;
                    self.clear_fork(&inside).await;
                }
                Some(row) if row.head.deleted && tip_at(self.journal().as_ref(), &id, row.seq).await?.is_copying => {
                    self.purge(&id).await?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// After a session that worked there was purged.
    pub(crate) async fn clear_fork(&self, workspace: &Path) {
        if let Err(error) = self.try_clear_fork(workspace).await {
            tracing::warn!(workspace = %workspace.display(), %error, "the folder of a purged fork is left");
        }
    }

    async fn try_clear_fork(&self, workspace: &Path) -> Result<(), SessionError> {
        let Some(checkpoints) = &self.options().checkpoints else { return Ok(()) };
        let Some(folder) = checkpoints.fork_of(workspace) else { return Ok(()) };
        let used = self.journal().workspaces().await?;
        if used.iter().any(|used| Path::new(&used.path).starts_with(&folder)) {
            return Ok(());
        }
        Ok(checkpoints.remove_fork(&folder).await.map_err(Arc::new)?)
    }
}
