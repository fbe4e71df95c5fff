//! What differs between two snapshots.

use std::path::{Path, PathBuf};

use tolka_facts::event::FileOperation;

use super::{CheckpointError, Checkpoints};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// From the workspace on, as the file system has it.
    pub path: PathBuf,
    pub operation: FileOperation,
    /// Lines; none are counted in a file that is no text.
    pub added: u64,
    pub removed: u64,
    pub is_binary: bool,
}

/// A change with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    pub change: FileChange,
    /// A unified diff. `None` of a file that is no text, or too large for one.
    pub patch: Option<String>,
    /// What it held before; `None` if it was not there, is no text or too large.
    pub before: Option<String>,
    pub is_too_large: bool,
}

impl Checkpoints {
    /// All paths that differ, in their order.
    pub async fn changes(&self, _workspace: &Path, from: &str, _to: &str) -> Result<Vec<FileChange>, CheckpointError> {
        Err(CheckpointError::Unknown { commit: from.to_owned() })
    }

    /// The same with their texts, for those of `paths` if given. Bounded: beyond [`crate::limits`] texts are left out.
    pub async fn diffs(
        &self,
        _workspace: &Path,
        from: &str,
        _to: &str,
        _paths: Option<&[PathBuf]>,
    ) -> Result<Vec<FileDiff>, CheckpointError> {
        Err(CheckpointError::Unknown { commit: from.to_owned() })
    }
}
