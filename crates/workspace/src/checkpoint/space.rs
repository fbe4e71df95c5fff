//! The room that snapshots take: which stores there are, what is in them, and what may go.

use std::path::PathBuf;
use std::time::Duration;

use tolka_facts::{SessionId, Time};

use super::{CheckpointError, Checkpoints};

/// One workspace's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreInfo {
    pub workspace: PathBuf,
    /// The workspace is no more.
    pub is_orphan: bool,
    pub bytes: u64,
    pub snapshots: Vec<Snapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub commit: String,
    pub session: SessionId,
    pub taken: Time,
    pub words: String,
}

/// What may be kept. What is referenced (see [`Checkpoints::prune`]) stays whatever this says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub keep_for: Duration,
    /// Of one store; the oldest go first.
    pub most_bytes: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { keep_for: Duration::from_secs(30 * 24 * 3600), most_bytes: 10 << 30 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    pub snapshots: u64,
    pub bytes: u64,
}

impl Checkpoints {
    pub async fn stores(&self) -> Result<Vec<StoreInfo>, CheckpointError> {
        Ok(Vec::new())
    }

    /// Removes what the policy lets go and `is_needed` does not hold: a session's base, what an undo goes back to.
    pub async fn prune(
        &self,
        _policy: &Policy,
        _is_needed: &(dyn Fn(&Snapshot) -> bool + Send + Sync),
    ) -> Result<Pruned, CheckpointError> {
        Ok(Pruned::default())
    }
}
