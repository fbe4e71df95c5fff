//! Old snapshots go, but for those that a session still needs.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tolka_facts::{Head, Time};
use tolka_journal::{MarkKind, Scope, SessionQuery, tip_at};
use tolka_workspace::CheckpointError;
use tolka_workspace::checkpoint::{Policy, Pruned, Snapshot};

use crate::{Desk, SessionError};

/// How many of a session's last snapshots stay: those of its last few turns, before and after each.
const LAST: usize = 8;

impl Desk {
    /// Removes what the policy lets go. What a session needs stays, whatever the policy says: the snapshot that its open
    /// turn began with, the one that its changes are counted from, those that rewinds can be taken back to, and its last
    /// one; of one that changed lately its last few. A session whose folder is gone needs nothing after a while.
    pub async fn prune(&self, policy: &Policy) -> Result<Pruned, SessionError> {
        let checkpoints = self.checkpoints()?;
        if !checkpoints.is_overfull(policy).await.map_err(failed)? {
            return Ok(Pruned::default());
        }
        let is_needed = self.needed(policy).await?;
        checkpoints.prune(policy, &is_needed).await.map_err(failed)
    }

    /// What [`Desk::prune`] would remove, about.
    pub async fn prunable(&self, policy: &Policy) -> Result<Pruned, SessionError> {
        let checkpoints = self.checkpoints()?;
        let is_needed = self.needed(policy).await?;
        checkpoints.prunable(policy, &is_needed).await.map_err(failed)
    }

    async fn needed(&self, policy: &Policy) -> Result<impl Fn(&Snapshot) -> bool + Send + Sync + use<>, SessionError> {
        // What one who works has saved may be in nobody's facts yet; and neither is what is saved from now on.
        let (began, at_work) = (Time::now(), self.grounds().sessions());
        let before = |age: Duration| {
            let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
            Time::from_micros(began.micros().saturating_sub(age))
        };
        let (lately, usual) = (before(policy.keep_for), before(Policy::default().keep_for.max(policy.keep_for)));
        let mut commits = HashSet::new();
        let mut folders: HashMap<String, bool> = HashMap::new();
        for row in self.journal().sessions(SessionQuery::default()).await? {
            let (updated, workspace) = (row.head.updated, row.head.workspace.clone());
            let is_open = row.head.busy || row.head.queued > 0;
            if !is_open && updated < usual {
                let is_there = match folders.get(&workspace) {
                    Some(is_there) => *is_there,
                    None => tokio::fs::try_exists(&workspace).await.unwrap_or(true),
                };
                folders.insert(workspace, is_there);
                // Nobody can go back there.
                if !is_there {
                    continue;
                }
            }
            self.needed_by(&row.head, row.seq, if updated >= lately { LAST } else { 1 }, &mut commits).await?;
        }
        Ok(move |snapshot: &Snapshot| {
            snapshot.taken >= began || at_work.contains(&snapshot.session) || commits.contains(&snapshot.commit)
        })
    }

    /// What the session would miss, and so many of its last points.
    async fn needed_by(
        &self,
        head: &Head,
        seq: u64,
        last: usize,
        commits: &mut HashSet<String>,
    ) -> Result<(), SessionError> {
        let (journal, scope) = (self.journal(), Scope::Session(head.id.clone()));
        let tip = tip_at(journal.as_ref(), &head.id, seq).await?;
        commits.extend(tip.base.map(|base| base.checkpoint));
        commits.extend(tip.rewinds.into_iter().flat_map(|rewind| [rewind.before, rewind.checkpoint]).flatten());
        commits.extend(tip.rewinding.into_iter().flat_map(|started| [started.before, started.checkpoint]).flatten());
        let points = journal.marks(&head.id, MarkKind::Point, u64::MAX, last).await?;
        for at in points.into_iter().chain(tip.turn.map(|turn| turn.first_seq)) {
            let page = journal.read(&scope, at.saturating_sub(1), 1).await?;
            let facts = page.iter().filter(|entry| entry.fact.seq == at);
            commits.extend(facts.flat_map(|entry| entry.fact.event.checkpoints().all()).map(str::to_owned));
        }
        Ok(())
    }
}

fn failed(error: CheckpointError) -> SessionError {
    SessionError::Checkpoint(std::sync::Arc::new(error))
}
