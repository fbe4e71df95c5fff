//! The restore itself, and what is known when it is done.

use std::collections::HashSet;
use std::path::PathBuf;

use tolka_facts::Draft;
use tolka_facts::event::{Changes, FileStat, KeptFile, KeptWhy, RewindStarted, Rewound, Unrewound};
use tolka_workspace::checkpoint::{Kept, Plan, Restored, Step};
use tolka_workspace::{CheckpointError, Saved};

use super::Rewinding;
use super::prepare::Study;
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
}

impl Done {
    /// As the fact that ends the rewind tells it.
    pub(crate) fn fact(&self, started: &RewindStarted) -> Draft {
        let Restored { done, kept } = &self.restored;
        let files = done.iter().take(NAMED).map(|step| step.path.to_string_lossy().into_owned()).collect();
        let kept = kept.iter().take(NAMED).map(kept_file).collect();
        let changes = started.checkpoint.as_ref().map(|_| changes(done));
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
pub(crate) async fn restore(study: &Study, plan: &Plan, base: Option<&str>) -> Result<Done, SessionError> {
    let store = study.store()?;
    let restored = store.checkpoints.restore(&store.folder.named, plan).await;
    let after = store.save("After going back", Some(&plan.now)).await;
    if let Err(error) = &after {
        tracing::warn!(session = %store.session, %error, "the workspace could not be saved after a restore");
    }
    let after = after.ok();
    let restored = match restored {
        Ok(restored) => restored,
        Err(error) => salvage(store, plan, after.as_ref(), error).await.map_err(super::prepare::checkpoint_error)?,
    };
    let total = match (base, &after) {
        (Some(base), Some(after)) => store.checkpoints.changes(&store.folder.named, base, &after.commit).await.ok(),
        _ => None,
    };
    let total = total.map(|total| listed(&total, |_| false));
    Ok(Done { restored, after: after.map(|saved| saved.commit), total })
}

/// What was done of a restore that failed as a whole; its error if that is nothing.
async fn salvage(
    store: &Store,
    plan: &Plan,
    after: Option<&Saved>,
    error: CheckpointError,
) -> Result<Restored, CheckpointError> {
    tracing::error!(session = %store.session, %error, "a restore failed");
    let Some(after) = after else { return Err(error) };
    let Ok(changed) = store.checkpoints.changes(&store.folder.named, &plan.now, &after.commit).await else {
        return Err(error);
    };
    let changed: HashSet<PathBuf> = changed.into_iter().map(|change| change.path).collect();
    let (done, not_done): (Vec<Step>, Vec<Step>) =
        plan.steps.iter().cloned().partition(|step| changed.contains(&step.path));
    if done.is_empty() {
        return Err(error);
    }
    let refused = not_done.into_iter().map(|step| Kept { path: step.path, why: KeptWhy::Refused });
    Ok(Restored { done, kept: plan.kept.iter().cloned().chain(refused).collect() })
}

fn kept_file(kept: &Kept) -> KeptFile {
    KeptFile { path: kept.path.to_string_lossy().into_owned(), why: kept.why }
}

pub(crate) fn changes(steps: &[Step]) -> Changes {
    let stat = |step: &Step| FileStat {
        path: step.path.to_string_lossy().into_owned(),
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
