//! Old snapshots go, but for those that a session which is in use may still need.

use std::collections::HashSet;

use tolka_facts::{Event, Head, Time};
use tolka_journal::{MarkKind, Scope, SessionQuery, tip_at};
use tolka_workspace::CheckpointError;
use tolka_workspace::checkpoint::{Policy, Pruned, Snapshot};

use crate::{Desk, SessionError};

/// How many of a session's last snapshots stay: those of its last few turns, before and after each.
const LAST: usize = 8;

impl Desk {
    /// Removes what the policy lets go. What a session needs stays, if it has changed for as long as snapshots are kept:
    /// the snapshot that its changes are counted from, those that rewinds can be taken back to, and its last ones.
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
        let age = u64::try_from(policy.keep_for.as_micros()).unwrap_or(u64::MAX);
        let since = Time::from_micros(began.micros().saturating_sub(age));
        let mut commits = HashSet::new();
        for row in self.journal().sessions(SessionQuery { since, ..SessionQuery::default() }).await? {
            self.needed_by(&row.head, row.seq, &mut commits).await?;
        }
        // A restore that a crash cut off is taken up from its fact, however long ago that was.
        for row in self.journal().sessions(SessionQuery { open: true, ..SessionQuery::default() }).await? {
            self.needed_by(&row.head, row.seq, &mut commits).await?;
        }
        Ok(move |snapshot: &Snapshot| {
            snapshot.taken >= began || at_work.contains(&snapshot.session) || commits.contains(&snapshot.commit)
        })
    }

    async fn needed_by(&self, head: &Head, seq: u64, commits: &mut HashSet<String>) -> Result<(), SessionError> {
        let (journal, scope) = (self.journal(), Scope::Session(head.id.clone()));
        let tip = tip_at(journal.as_ref(), &head.id, seq).await?;
        commits.extend(tip.base.map(|base| base.checkpoint));
        commits.extend(tip.rewinds.into_iter().flat_map(|rewind| [rewind.before, rewind.checkpoint]).flatten());
        commits.extend(tip.rewinding.into_iter().flat_map(|started| [started.before, started.checkpoint]).flatten());
        for at in journal.marks(&head.id, MarkKind::Point, u64::MAX, LAST).await? {
            let page = journal.read(&scope, at.saturating_sub(1), 1).await?;
            commits.extend(page.iter().flat_map(|entry| named(&entry.fact.event)));
        }
        Ok(())
    }
}

/// The snapshots that a fact names.
fn named(event: &Event) -> Vec<String> {
    let named = match event {
        Event::TurnStarted(e) => [e.checkpoint.clone(), None, None],
        Event::CheckpointSaved(e) => [Some(e.checkpoint.clone()), None, None],
        Event::Approved(e) => [Some(e.checkpoint.clone()), None, None],
        Event::SessionForked(e) => [e.checkpoint.clone(), None, None],
        Event::Rewound(e) => [e.checkpoint.clone(), e.before.clone(), e.after.clone()],
        Event::Unrewound(e) => [e.checkpoint.clone(), e.before.clone(), e.after.clone()],
        _ => [None, None, None],
    };
    named.into_iter().flatten().collect()
}

fn failed(error: CheckpointError) -> SessionError {
    SessionError::Checkpoint(std::sync::Arc::new(error))
}
