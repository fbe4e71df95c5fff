use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::task::JoinError;

/// The system's words, as git repeats them.
const FULL: &[&str] = &["No space left on device", "Disk quota exceeded", "File too large"];

/// Why there is no checkpoint, and what a person can do about it.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("git was not found; install it, or put it on the PATH of the server")]
    NoGit,
    #[error("the workspace {} cannot be used: {error}", path.display())]
    NoWorkspace { path: PathBuf, error: io::Error },
    #[error("{} holds far more than a project; open a folder inside it instead", path.display())]
    TooWide { path: PathBuf },
    #[error("{} is where Tolka keeps its own data; open another folder, or move the data with --data", path.display())]
    OwnData { path: PathBuf },
    #[error(
        "saving took longer than {} s; the next checkpoint goes on where this one stopped, and folders that need no \
         saving can be left out by a .gitignore file",
        budget.as_secs_f32()
    )]
    Slow { budget: Duration },
    #[error("the save was stopped before it was done")]
    Stopped,
    #[error("something could not be read: {words}; give the server leave to read it, or name it in a .gitignore file")]
    Unreadable { words: String },
    #[error("{path} became a git repository while it was being saved; the next checkpoint takes its files in")]
    Nested { path: String },
    #[error(
        "the workspace has {files} files, and a checkpoint takes in {most} at most; folders that need no saving can be \
         left out by a .gitignore file"
    )]
    TooMany { files: u64, most: u64 },
    #[error(
        "{count} files are too large or cannot be read, {} among them; leave them out by a .gitignore file",
        first.display()
    )]
    TooManyLeftOut { first: PathBuf, count: u64 },
    #[error("{commit} is no checkpoint of this workspace")]
    Unknown { commit: String },
    #[error("the disk that has {} is full; nothing was changed", path.display())]
    NoRoom { path: PathBuf },
    #[error("git {command} failed: {words}")]
    Git { command: String, words: String },
    #[error("{} cannot be written: {error}; see that the disk has room and that the folder is the server's", path.display())]
    Storage { path: PathBuf, error: io::Error },
}

impl CheckpointError {
    pub(super) fn storage(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |error| CheckpointError::Storage { path, error }
    }

    /// A disk is full, or somebody has used up what they may have of it.
    pub fn is_full(&self) -> bool {
        match self {
            CheckpointError::NoRoom { .. } => true,
            CheckpointError::Storage { error, .. } => is_full(error),
            CheckpointError::Git { words, .. } => FULL.iter().any(|full| words.contains(full)),
            _ => false,
        }
    }

    pub(super) fn ended_badly(error: &JoinError) -> Self {
        tracing::error!(%error, "the task of a checkpoint ended badly");
        CheckpointError::Stopped
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
