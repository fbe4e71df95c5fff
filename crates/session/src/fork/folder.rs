//! The folder of a fork that works on files of its own. It goes with the last session that works there (a fork of a fork
//! may share it), unless there is something in it that no snapshot holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use tolka_journal::{SessionRow, tip_at};

use crate::{Desk, SessionError};

/// Stands beside the workspace of a fork whose folder shall outlive its sessions.
const KEPT: &str = ".kept";
const WORDS: &str =
    "No session works here any more, but not all of it was saved. Remove it when you need it no longer.\n";

impl Desk {
    /// Whether a folder, by its real name, is one that a fork works in, or inside of one.
    pub async fn is_of_fork(&self, folder: &Path) -> bool {
        match &self.options().checkpoints {
            Some(checkpoints) => checkpoints.fork_of(folder).await.is_some(),
            None => false,
        }
    }

    /// Removes folders whose sessions are gone, and what a crash left of forks that were going. Those that were kept stay.
    pub(crate) async fn sweep_forks(&self) -> Result<(), SessionError> {
        let Some(checkpoints) = &self.options().checkpoints else { return Ok(()) };
        for id in checkpoints.forks().await.map_err(Arc::new)? {
            match self.journal().session(&id).await? {
                None => {
                    let inside = checkpoints.fork_folder(&id, "any").await.map_err(Arc::new)?;
                    let kept = inside.with_file_name(KEPT);
                    if !tokio::fs::try_exists(&kept).await.unwrap_or(true) {
                        self.clear_fork(&inside, true).await;
                    }
                }
                Some(row) if row.head.deleted && tip_at(self.journal().as_ref(), &id, row.seq).await?.is_copying => {
                    self.purge(&id).await?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Whether all in the folder of a fork is as the session's last snapshot has it, so that nothing is lost with it. What
    /// no snapshot would hold counts too: a file that is ignored may be somebody's work.
    /// Otherwise the folder is marked, so that it stays even if the server dies before the purge is done.
    pub(crate) async fn is_fork_untouched(&self, row: &SessionRow) -> bool {
        let Some(checkpoints) = &self.options().checkpoints else { return false };
        let Some(folder) = checkpoints.fork_of(Path::new(&row.head.workspace)).await else { return false };
        let is_untouched = self.has_only_what_was_saved(row, folder.clone()).await.unwrap_or_else(|error| {
            tracing::warn!(session = %row.head.id, %error, "it is not known what is in the folder of a fork");
            false
        });
        if !is_untouched
            && let Err(error) = tokio::fs::write(folder.join(KEPT), WORDS).await
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "the folder of a fork could not be marked as kept");
        }
        is_untouched
    }

    async fn has_only_what_was_saved(&self, row: &SessionRow, folder: PathBuf) -> Result<bool, SessionError> {
        let head = &row.head;
        let tip = tip_at(self.journal().as_ref(), &head.id, row.seq).await?;
        if tip.is_copying {
            // Nobody was ever told of it.
            return Ok(true);
        }
        let study = self.study(&tip).await;
        let Some(last) = study.last_commit().await? else { return Ok(false) };
        let now = study.save("Before its session is purged").await?;
        let marks = u64::from(tokio::fs::try_exists(folder.join(KEPT)).await.unwrap_or(false));
        let files = tokio::task::spawn_blocking(move || count(&folder)).await;
        Ok(now.commit == last && files.is_ok_and(|files| files.is_ok_and(|files| files == now.files + marks)))
    }

    /// After a session that worked there was purged. The folder, if it is kept though nobody works there any more.
    pub(crate) async fn clear_fork(&self, workspace: &Path, is_untouched: bool) -> Option<PathBuf> {
        match self.try_clear_fork(workspace, is_untouched).await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(workspace = %workspace.display(), %error, "the folder of a purged fork is left");
                None
            }
        }
    }

    async fn try_clear_fork(&self, workspace: &Path, is_untouched: bool) -> Result<Option<PathBuf>, SessionError> {
        let Some(checkpoints) = &self.options().checkpoints else { return Ok(None) };
        let Some(folder) = checkpoints.fork_of(workspace).await else { return Ok(None) };
        // Before the look at who works there: nobody comes in after it.
        let Some(_leaving) = self.leave(&folder) else { return Ok(None) };
        let used = self.journal().workspaces().await?;
        if used.iter().any(|used| Path::new(&used.path).starts_with(&folder)) {
            return Ok(None);
        }
        if !is_untouched {
            if !tokio::fs::try_exists(workspace).await.unwrap_or(true) {
                return Ok(None);
            }
            tracing::info!(folder = %folder.display(), "the folder of a purged fork stays: not all in it was saved");
            return Ok(Some(folder));
        }
        checkpoints.remove_fork(&folder).await.map_err(Arc::new)?;
        Ok(None)
    }
}

/// All but folders, links not followed.
fn count(folder: &Path) -> io::Result<u64> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { self::count(&entry.path())? } else { 1 };
    }
    Ok(count)
}
