//! Carries out a [`Plan`]: path by path, each one atomically, and only where the path still is what the plan was made for.
//!
//! Nothing else is touched: not the mtimes of what stays, not folders that were empty, never `.git`. It can be cut off at
//! any moment and carried out again from its start, and is on the disk when it returns.

mod blobs;
mod carry;
mod check_out;
mod lasting;
mod look;
mod part;
mod stays;
mod there;
mod trail;
mod waiting;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carry::{Carry, Fate, Task};
use stays::Stays;
use tolka_facts::SessionId;
use tolka_facts::event::{FileOperation, KeptWhy};

use super::changes::{Difference, Reader, between};
use super::files::blocking;
use super::git::{Git, Halt};
use super::modes::Modes;
use super::plan::Rules;
use super::store::Keep;
use super::{CheckpointError, Checkpoints, Kept, Plan, Step, seed, space};
use crate::changes::noting;
use crate::folder::{Folder, FolderError};

/// How long it may take to look up what is to be done, and to wait for a save that runs.
const LOOKING: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    /// What was written or removed, or had been before this try.
    pub done: Vec<Step>,
    /// The plan's, and what turned out to have moved meanwhile.
    pub kept: Vec<Kept>,
}

impl Checkpoints {
    /// Nothing is saved in this folder meanwhile. Dropped, it ends after the file that it is at.
    pub async fn restore(&self, workspace: &Path, plan: &Plan) -> Result<Restored, CheckpointError> {
        // To be dropped with this future, which ends git.
        let (_wanted, halt) = Halt::within(LOOKING);
        let reader = self.reader(workspace, &[&plan.target, &plan.now], &halt).await?;
        let shared = self.shared(&reader.place);
        let mut alone = halt.wait(shared.lock_owned()).await?;
        let paths: Vec<PathBuf> = plan.steps.iter().map(|step| step.path.clone()).collect();
        let target = [plan.target.as_str()];
        let (differences, stays, modes) = tokio::join!(
            between(&reader.git, &plan.now, &plan.target, &paths, &halt),
            stays(&reader.git, plan, &halt),
            Modes::of(&reader.git, &target, &halt),
        );
        let (tasks, stays) = (tasks(plan, differences?), stays?);
        let modes = modes?.pop().unwrap_or_default();
        let (stop, Reader { git, place }) = (Stop::default(), reader);
        let (stopped, folder, key) = (stop.0.clone(), place.workspace, format!("{}{}", plan.target, plan.now));
        let store = Git { dir: git.dir.clone(), index: git.index.clone(), workspace: git.dir.clone() };
        let written: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
        let made = plan.steps.iter().filter(|step| step.operation == FileOperation::Create);
        let (at, made): (PathBuf, Vec<PathBuf>) = (folder.clone(), made.map(|step| step.path.clone()).collect());
        let fates = blocking(move || {
            if let Some(store) = alone.as_mut() {
                store.moved();
            }
            let root = Folder::open(&folder).map_err(|error| unusable(folder, error))?;
            let carry = Carry::new(&root, &store, key, stopped, &modes)?;
            let fates = noting(&written, || carry.out(&tasks, &stays));
            let hidden = Rules::around(&at, &made).hidden(&made);
            if seed::hold(&store.dir, hidden)?
                && let Some(store) = alone.as_mut()
            {
                store.holds();
            }
            // Whoever waits to save may do so when the last file is written, whatever has become of the one who asked.
            drop(alone);
            fates
        });
        let fates = fates.await?;
        let is = |wanted: Fate| fates.iter().any(|(_, fate)| *fate == wanted);
        if is(Fate::NoRoom) && !is(Fate::Done) {
            return Err(CheckpointError::NoRoom { path: workspace.to_owned() });
        }
        Ok(told(&git, plan, fates).await)
    }

    /// What [`Checkpoints::restore`] would come to, by what is there now. Nothing is touched.
    pub async fn look(&self, workspace: &Path, plan: &Plan) -> Result<Restored, CheckpointError> {
        let (_wanted, halt) = Halt::within(LOOKING);
        let Reader { git, place } = self.reader(workspace, &[&plan.target, &plan.now], &halt).await?;
        let paths: Vec<PathBuf> = plan.steps.iter().map(|step| step.path.clone()).collect();
        let (differences, stays) =
            tokio::join!(between(&git, &plan.now, &plan.target, &paths, &halt), stays(&git, plan, &halt));
        let (tasks, stays) = (tasks(plan, differences?), stays?);
        let (stop, folder) = (Stop::default(), place.workspace);
        let stopped = stop.0.clone();
        let store = Git { dir: git.dir.clone(), index: git.index.clone(), workspace: git.dir.clone() };
        let fates = blocking(move || {
            let root = Folder::open(&folder).map_err(|error| unusable(folder.clone(), error))?;
            let modes = Modes::default();
            Carry::new(&root, &store, String::new(), stopped, &modes)?.look(&folder, &tasks, &stays)
        });
        Ok(told(&git, plan, fates.await?).await)
    }

    /// Lets another session in the same folder hold snapshots as its own.
    pub async fn share(&self, workspace: &Path, with: &SessionId, commits: &[String]) -> Result<(), CheckpointError> {
        let (_wanted, halt) = Halt::within(LOOKING);
        if commits.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = commits.iter().map(String::as_str).collect();
        let reader = self.reader(workspace, &names, &halt).await?;
        let shared = self.shared(&reader.place);
        // A session that is being forgotten may take its snapshots along.
        let _alone = halt.wait(shared.lock()).await?;
        let held = space::held(&reader.git, &halt).await?;
        if let Some(commit) = commits.iter().find(|commit| !held.contains(*commit)) {
            return Err(CheckpointError::Unknown { commit: commit.clone() });
        }
        let keep = Keep::new(with);
        let lines: String = names.iter().map(|name| format!("update {} {name}\n", keep.of(name))).collect();
        reader.git.run(&["update-ref", "--stdin"], lines.as_bytes(), &halt).await.map(drop)
    }
}

/// What became of each step.
async fn told(git: &Git, plan: &Plan, fates: Vec<(PathBuf, Fate)>) -> Restored {
    let mut restored = Restored { done: Vec::new(), kept: plan.kept.clone() };
    let hidden = match fates.iter().any(|(_, fate)| *fate == Fate::Met) {
        true => hidden_at(git, &plan.now).await,
        false => Rules::default(),
    };
    let mut fates: HashMap<PathBuf, Fate> = fates.into_iter().collect();
    for step in &plan.steps {
        let why = match fates.remove(&step.path).unwrap_or(Fate::Done) {
            Fate::Done => {
                restored.done.push(step.clone());
                continue;
            }
            // It has been there, and nobody saw it.
            Fate::Met if hidden.hide(&step.path) => KeptWhy::NotSaved,
            Fate::Unsaved => KeptWhy::NotSaved,
            Fate::Met | Fate::Moved => KeptWhy::Moved,
            Fate::Refused => KeptWhy::Refused,
            Fate::NoRoom => KeptWhy::NoRoom,
        };
        restored.kept.push(Kept { path: step.path.clone(), why });
    }
    restored
}

/// What could not be seen. The time that the restore had for looking may be long over, and what it did is done: without an
/// answer it only knows less of why a path was kept.
async fn hidden_at(git: &Git, commit: &str) -> Rules {
    let (_wanted, halt) = Halt::within(LOOKING);
    Rules::of(git, commit, &halt).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "what a snapshot could not see is not known");
        Rules::default()
    })
}

/// Set when nobody waits any more.
#[derive(Debug, Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asked for only where something is removed.
async fn stays(git: &Git, plan: &Plan, halt: &Halt) -> Result<Stays, CheckpointError> {
    match plan.steps.iter().any(|step| step.operation == FileOperation::Delete) {
        true => Stays::of(git, &plan.target, halt).await,
        false => Ok(Stays::default()),
    }
}

/// What is to be done for each step; nothing for one that is no difference.
fn tasks(plan: &Plan, differences: Vec<Difference>) -> Vec<Task> {
    let steps: HashSet<&Path> = plan.steps.iter().map(|step| step.path.as_path()).collect();
    let tasks = differences.into_iter().filter(|difference| steps.contains(difference.path.as_path()));
    tasks.map(|Difference { path, was, is, .. }| Task { path, now: was, target: is }).collect()
}

fn unusable(path: PathBuf, error: FolderError) -> CheckpointError {
    let error = match error {
        FolderError::Closed { error, .. } => error,
        error => std::io::Error::other(error),
    };
    CheckpointError::NoWorkspace { path, error }
}
