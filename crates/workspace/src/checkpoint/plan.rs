//! What a restore will do, before it does anything.
//!
//! A snapshot says what the files were; it does not say whose changes stand between then and now. That is told by the
//! [`Span`]s: the stretches of time between snapshots, each with who worked in it. A path goes back to what it was only if
//! nobody but the session's own turns (and earlier restores of its own) changed it since. Whatever else differs is kept,
//! and the plan says why.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tolka_facts::event::{FileOperation, KeptWhy, Overwrite};

use super::{CheckpointError, Checkpoints};

/// What happened between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Commits.
    pub from: String,
    pub to: String,
    pub whose: Whose,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// A turn of the session, or a restore in it, with nobody beside it.
    Ours,
    /// Between turns: whoever changes a file then is somebody else.
    Others,
    /// Others worked in the folder at the same time, or a snapshot is missing. A path that only one side told of is that
    /// side's; what both told of, or neither, may be either's.
    Both { ours: HashSet<PathBuf>, theirs: HashSet<PathBuf> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// The commit to go back to.
    pub target: String,
    /// A commit of the workspace as it is. Whatever is not so any more when the restore comes to it is kept.
    pub now: String,
    /// All that happened from the target to now, in the order of time.
    pub spans: Vec<Span>,
    pub overwrite: Overwrite,
}

/// Which paths a restore writes or removes, and which it keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub target: String,
    pub now: String,
    pub steps: Vec<Step>,
    pub kept: Vec<Kept>,
}

/// A path that changes. From the workspace on, as the file system has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub path: PathBuf,
    /// What the restore does: a file that is gone is created.
    pub operation: FileOperation,
    /// Lines; none are counted in a file that is no text.
    pub added: u64,
    pub removed: u64,
}

/// A path that differs from the target and stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub why: KeptWhy,
}

impl Checkpoints {
    /// The same for the same request, as long as the snapshots are there: a restore that was cut off is planned again.
    pub async fn plan(&self, _workspace: &Path, request: &PlanRequest) -> Result<Plan, CheckpointError> {
        Err(CheckpointError::Unknown { commit: request.target.clone() })
    }
}
