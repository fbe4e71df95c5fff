//! Old snapshots are removed while the server runs: some time after the start, when everybody has what they wait for, and
//! then every hour, which costs little when nothing is too old or too much.

use std::time::Duration;

use tokio::time::sleep;
use tolka_session::{Desk, SessionError};
use tolka_workspace::checkpoint::Policy;

const FIRST: Duration = Duration::from_secs(5 * 60);
const EVERY: Duration = Duration::from_secs(3600);

/// Goes on until it is dropped; then what it is at stops, and the store is sound.
pub(crate) async fn prune(desk: Desk, policy: Policy) {
    sleep(FIRST).await;
    loop {
        match desk.prune(&policy).await {
            Ok(pruned) if pruned.snapshots > 0 => {
                tracing::info!(snapshots = pruned.snapshots, bytes = pruned.bytes, "old checkpoints were removed");
            }
            Ok(_) => {}
            // Nothing is added either.
            Err(SessionError::CheckpointsOff) => {}
            Err(error) => tracing::warn!(%error, "old checkpoints could not be removed"),
        }
        sleep(EVERY).await;
    }
}
