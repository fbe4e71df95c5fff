//! The restore itself, and what is known when it is done.

use std::collections::HashSet;
use std::path::PathBuf;

use tolka_facts::Draft;
use tolka_facts::event::{Changes, FileStat, KeptFile, KeptWhy, RewindStarted, Rewound, Unrewound};
use tolka_workspace::checkpoint::{Kept, Plan, Restored, Step};
use tolka_workspace::names::told;
use tolka_workspace::{CheckpointError, Saved};

use super::Rewinding;
use super::prepare::{Study, checkpoint_error};
use crate::SessionError;
use crate::closing::{LISTED, listed};
use crate::saving::Store;

/// Paths that a fact names.
const NAMED: usize = 1000;

/// What a restore did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) restored: Restored,
    after: Option<String>,
    total: Option<Changes>,
    /// It could not be finished, and nobody can say what was done.
    pub(crate) is_unknown: bool,
}

/// Why a restore is not done.
#[derive(Debug)]
pub(crate) enum Setback {
    /// Nothing of it is on the disk.
    Untouched(SessionError),
    /// Something may be. It is tried again.
    Unfinished(SessionError),
    /// Something may be, and the snapshots that could tell are gone.
    Lost(SessionError),
}

impl Done {
    /// As the fact that ends the rewind tells it.
    pub(crate) fn fact(&self, started: &RewindStarted) -> Draft {
        let Restored { done, kept } = &self.restored;
        let files = done.iter().take(NAMED).map(|step| told(&step.path)).collect();
        let kept = kept.iter().take(NAMED).map(kept_file).collect();
        let changes = started.checkpoint.as_ref().filter(|_| !self.is_unknown).map(|_| changes(done));
        let (checkpoint, before) = (started.checkpoint.clone(), started.before.clone());
        let (after, total) = (self.after.clone(), self.total.clone());
        if started.undoes.is_some() {
            return Draft::client(Unrewound { checkpoint, files, before, after, kept, changes, total });
        }
        let (message, from, resets) = (started.message.clone(), started.from, started.resets);
        Draft::client(Rewound { checkpoint, message, files, before, after, from, kept, changes, total, resets })
    }

    /// As the client hears it that asked.
    pub(crate) fn answer(self, started: RewindStarted, seq: u64) -> Rewinding {
        Rewinding {
            checkpoint: started.checkpoint,
            message: started.message,
            before: started.before,
            after: self.after,
            files: self.restored.done,
            kept: self.restored.kept,
            seq,
        }
    }
}

/// Carries out a plan. `base` is what the session's changes are counted from.
pub(crate) async fn restore(study: &Study, plan: &Plan, base: Option<&str>) -> Result<Done, Setback> {
    let store = study.store().map_err(Setback::Unfinished)?;
    let restored = store.checkpoints.restore(&store.folder.named, plan).await;
    let after = store.save("After going back", Some(&plan.now)).await;
    if let Err(error) = &after {
        tracing::warn!(session = %store.session, %error, "the workspace could not be saved after a restore");
    }
    let after = after.ok();
    let restored = match restored {
        Ok(restored) => restored,
        Err(error) => {
            let done = match &after {
                Some(after) => salvage(store, plan, after).await,
                None => None,
            };
            let error = checkpoint_error(error);
            return Err(match done {
                Some(restored) if restored.done.is_empty() => Setback::Untouched(error),
                _ => Setback::Unfinished(error),
            });
        }
    };
    let total = total(store, base, after.as_ref()).await;
    Ok(Done { restored, after: after.map(|saved| saved.commit), total, is_unknown: false })
}

/// Goes on with a restore that was cut off or has failed, from the fact that began it.
pub(crate) async fn resume(study: &Study, started: &RewindStarted, base: Option<&str>) -> Result<Done, Setback> {
    let (Some(target), Some(now)) = (&started.checkpoint, &started.before) else { return Ok(Done::default()) };
    match study.plan((target, now), started.overwrite.clone(), since(started)).await {
        Ok(plan) => restore(study, &plan, base).await,
        Err(error) if is_final(&error) => give_up(study, started, error).await,
        Err(error) => Err(Setback::Unfinished(error)),
    }
}

/// Where the turns begin that it takes back, if it says so.
fn since(started: &RewindStarted) -> Option<u64> {
    started.undoes.or(started.from)
}

/// What there is to tell of a restore that will not be finished.
pub(crate) async fn give_up(study: &Study, started: &RewindStarted, why: SessionError) -> Result<Done, Setback> {
    let unknown =
        |after: Option<Saved>| Done { after: after.map(|saved| saved.commit), is_unknown: true, ..Done::default() };
    let (Some(target), Some(now)) = (&started.checkpoint, &started.before) else { return Ok(Done::default()) };
    let Ok(store) = study.store() else { return Ok(unknown(None)) };
    let Ok(after) = store.save("A restore was given up", Some(now)).await else { return Ok(unknown(None)) };
    match store.checkpoints.changes(&store.folder.named, now, &after.commit).await {
        Ok(changed) if changed.is_empty() => return Err(Setback::Untouched(why)),
        Err(CheckpointError::Unknown { .. }) => return Err(Setback::Lost(why)),
        Ok(_) | Err(_) => {}
    }
    let plan = study.plan((target, now), started.overwrite.clone(), since(started)).await;
    let Ok(plan) = plan else { return Ok(unknown(Some(after))) };
    match salvage(store, &plan, &after).await {
        Some(restored) if restored.done.is_empty() => Err(Setback::Untouched(why)),
        Some(restored) => Ok(Done { restored, after: Some(after.commit), ..Done::default() }),
        None => Ok(unknown(Some(after))),
    }
}

/// What was done of a restore that was not finished: whatever is as it should be. `None`: nobody knows.
async fn salvage(store: &Store, plan: &Plan, after: &Saved) -> Option<Restored> {
    let missed = store.checkpoints.changes(&store.folder.named, &after.commit, &plan.target).await.ok()?;
    let missed: HashSet<PathBuf> = missed.into_iter().map(|change| change.path).collect();
    let (not_done, done): (Vec<Step>, Vec<Step>) =
        plan.steps.iter().cloned().partition(|step| missed.contains(&step.path));
    let refused = not_done.into_iter().map(|step| Kept { path: step.path, why: KeptWhy::Refused });
    Some(Restored { done, kept: plan.kept.iter().cloned().chain(refused).collect() })
}

/// Trying again does not help: what it needs is gone.
fn is_final(error: &SessionError) -> bool {
    match error {
        SessionError::Checkpoint(error) => matches!(**error, CheckpointError::Unknown { .. }),
        SessionError::NoCheckpoint(_) | SessionError::NoSuchCheckpoint(_) | SessionError::CheckpointsOff => true,
        _ => false,
    }
}

async fn total(store: &Store, base: Option<&str>, after: Option<&Saved>) -> Option<Changes> {
    let (base, after) = (base?, after?);
    let total = store.checkpoints.changes(&store.folder.named, base, &after.commit).await.ok()?;
    Some(listed(&total, |_| false))
}

fn kept_file(kept: &Kept) -> KeptFile {
    KeptFile { path: told(&kept.path), why: kept.why }
}

pub(crate) fn changes(steps: &[Step]) -> Changes {
    let stat = |step: &Step| FileStat {
        path: told(&step.path),
        operation: step.operation,
        added: step.added,
        removed: step.removed,
        told: false,
    };
    Changes {
        files: steps.iter().take(LISTED).map(stat).collect(),
        count: steps.len() as u64,
        added: steps.iter().map(|step| step.added).sum(),
        removed: steps.iter().map(|step| step.removed).sum(),
    }
}
