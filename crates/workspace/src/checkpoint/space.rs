//! The room that snapshots take: which stores there are, what is in them, and what may go.
//!
//! Pruning takes refs away first, then what nobody refers to any more. It holds the store as a save does, and gives way to
//! one: a save that comes stops it, at whatever it is, and it begins again when that save is done. Every step leaves a
//! store that is whole, so it can be stopped at any moment.

mod clear;
mod weigh;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, watch};
use tolka_facts::{SessionId, Time};

pub(super) use clear::{Thrift, remove};

use super::files::{self, blocking};
use super::git::{Git, Halt};
use super::place::Place;
use super::store::{Keep, Left, Store};
use super::{CheckpointError, Checkpoints, READING};

/// How long pruning one store may take. What is left then goes the next time.
const PRUNING: Duration = Duration::from_secs(600);

/// How often it begins again when saves come in between.
const TRIES: usize = 8;

/// Of pruning one store by its size: each round takes a good part of what is too much.
const ROUNDS: usize = 24;

/// A store without a snapshot in which nothing was done for so long is nobody's.
const LEFT_AFTER: Duration = Duration::from_secs(24 * 3600);

/// One workspace's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreInfo {
    pub workspace: PathBuf,
    /// The workspace is no more.
    pub is_orphan: bool,
    /// On the disk, with packs that it shares with the workspace's own repository.
    pub bytes: u64,
    /// The oldest first.
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

impl Policy {
    /// What was taken before this may go.
    fn oldest(&self) -> Time {
        let age = u64::try_from(self.keep_for.as_micros()).unwrap_or(u64::MAX);
        Time::from_micros(Time::now().micros().saturating_sub(age))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    pub snapshots: u64,
    pub bytes: u64,
}

/// Whether a snapshot has to stay.
pub type IsNeeded<'a> = &'a (dyn Fn(&Snapshot) -> bool + Send + Sync);

/// Prunings that are under way.
#[derive(Debug, Default)]
pub(super) struct Prunings {
    /// One at a time.
    turn: AsyncMutex<()>,
    /// By workspace; dropping one stops it. A std mutex: held for a look-up, never over an await.
    running: Mutex<HashMap<PathBuf, watch::Sender<bool>>>,
}

impl Prunings {
    /// A save comes: pruning there begins again later.
    pub(super) fn stop(&self, workspace: &Path) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(workspace);
    }

    fn start(&self, workspace: &Path) -> Halt {
        let (wanted, halt) = Halt::within(PRUNING);
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(workspace.to_owned(), wanted);
        halt
    }
}

/// Stops what was started when nobody waits for it any more.
struct Stops<'a>(&'a Prunings, &'a Path);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.stop(self.1);
    }
}

impl Checkpoints {
    /// Every store of this data folder, whatever has become of its workspace. Nothing is changed.
    pub async fn stores(&self) -> Result<Vec<StoreInfo>, CheckpointError> {
        let data = self.data.clone();
        let mut infos = Vec::new();
        for place in blocking(move || places(&data)).await? {
            let (_wanted, halt) = Halt::within(READING);
            let (store, workspace) = (place.store.clone(), place.workspace.clone());
            let (bytes, is_orphan) = blocking(move || Ok((bytes(&store), !workspace.is_dir()))).await?;
            let snapshots = match snapshots(&alone(&place.store), &halt).await {
                // One that is broken does not hide the others.
                Err(CheckpointError::Git { command, words }) => {
                    tracing::warn!(store = %place.store.display(), %command, %words, "a checkpoint store cannot be read");
                    Vec::new()
                }
                snapshots => snapshots?,
            };
            infos.push(StoreInfo { workspace: place.workspace, is_orphan, bytes, snapshots });
        }
        infos.sort_by(|a, b| a.workspace.cmp(&b.workspace));
        Ok(infos)
    }

    /// The names of all snapshots of a workspace that are there.
    pub async fn held(&self, workspace: &Path) -> Result<HashSet<String>, CheckpointError> {
        let (_wanted, halt) = Halt::within(READING);
        let (folder, data) = (workspace.to_owned(), self.data.clone());
        match halt.wait(blocking(move || Place::left(&folder, &data))).await?? {
            Some(place) => held(&alone(&place.store), &halt).await,
            None => Ok(HashSet::new()),
        }
    }

    /// Whether the policy lets anything go, needed or not. It costs little.
    pub async fn is_overfull(&self, policy: &Policy) -> Result<bool, CheckpointError> {
        let oldest = policy.oldest();
        let is_too_much = |store: &StoreInfo| {
            store.bytes > policy.most_bytes || store.snapshots.first().is_none_or(|first| first.taken < oldest)
        };
        Ok(self.stores().await?.iter().any(is_too_much))
    }

    /// What [`Checkpoints::prune`] would remove, about.
    pub async fn prunable(&self, policy: &Policy, is_needed: IsNeeded<'_>) -> Result<Pruned, CheckpointError> {
        let mut all = Pruned::default();
        for StoreInfo { workspace, bytes, snapshots, .. } in self.stores().await? {
            let (_wanted, halt) = Halt::within(PRUNING);
            let data = self.data.clone();
            let Some(place) = blocking(move || Place::left(&workspace, &data)).await? else { continue };
            let git = alone(&place.store);
            let mut chosen = weigh::too_old(&snapshots, policy.oldest(), is_needed);
            chosen.extend(weigh::too_much(&git, &snapshots, &chosen, bytes, policy, is_needed, &halt).await?);
            all.bytes += weigh::only_of(&git, &snapshots, &chosen, bytes, &halt).await?;
            all.snapshots += chosen.len() as u64;
        }
        Ok(all)
    }

    /// Removes what the policy lets go and `is_needed` does not hold: a session's base, what an undo goes back to. A store
    /// where something goes wrong does not keep the others.
    pub async fn prune(&self, policy: &Policy, is_needed: IsNeeded<'_>) -> Result<Pruned, CheckpointError> {
        let _turn = self.prunings.turn.lock().await;
        let data = self.data.clone();
        let own = self.run.clone();
        let places = blocking(move || {
            sweep(&data, &own);
            places(&data)
        })
        .await?;
        let (mut all, mut failed) = (Pruned::default(), None);
        for place in places {
            match self.prune_store(&place, policy, is_needed).await {
                Ok(pruned) => {
                    all.snapshots += pruned.snapshots;
                    all.bytes += pruned.bytes;
                }
                Err(error) => {
                    tracing::warn!(workspace = %place.workspace.display(), %error, "old checkpoints could not be removed");
                    failed = Some(error);
                }
            }
        }
        failed.filter(|_| all == Pruned::default()).map_or(Ok(all), Err)
    }

    async fn prune_store(
        &self,
        place: &Place,
        policy: &Policy,
        is_needed: IsNeeded<'_>,
    ) -> Result<Pruned, CheckpointError> {
        let mut all = Pruned::default();
        for round in 0..ROUNDS {
            let (git, before) = (alone(&place.store), self.size(place).await?);
            let is_over = before > policy.most_bytes;
            let (_wanted, halt) = Halt::within(PRUNING);
            // Outside of the lock: snapshots that come meanwhile are none of these.
            let snapshots = snapshots(&git, &halt).await?;
            let mut chosen = weigh::too_old(&snapshots, policy.oldest(), is_needed);
            if chosen.is_empty() && is_over && round > 0 {
                chosen = weigh::too_much(&git, &snapshots, &chosen, before, policy, is_needed, &halt).await?;
            }
            let is_first = round == 0 && (is_over || (snapshots.is_empty() && self.is_left(place).await?));
            if chosen.is_empty() && !is_first {
                if is_over {
                    let workspace = place.workspace.display();
                    tracing::warn!(%workspace, before, "checkpoints take more than they should, and all are needed");
                }
                break;
            }
            let refs = chosen.iter().map(|at| Keep::new(&snapshots[*at].session).of(&snapshots[*at].commit)).collect();
            let thrift = if is_over { Thrift::Close } else { Thrift::Usual };
            let left = self.remove(place, refs, thrift).await?;
            all.snapshots += chosen.len() as u64;
            let after = if left == Left::Nothing { 0 } else { self.size(place).await? };
            all.bytes += before.saturating_sub(after);
            if left == Left::Nothing {
                break;
            }
        }
        Ok(all)
    }

    async fn size(&self, place: &Place) -> Result<u64, CheckpointError> {
        let store = place.store.clone();
        blocking(move || Ok(bytes(&store))).await
    }

    /// Whether nobody goes on with a store that has no snapshot: a first save may take several tries.
    async fn is_left(&self, place: &Place) -> Result<bool, CheckpointError> {
        let store = place.store.clone();
        let age = move || Ok(store.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok()));
        Ok(blocking(age).await?.is_some_and(|age| age > LEFT_AFTER))
    }

    /// Takes refs away, and what only they held. A save that comes in between is let through.
    async fn remove(&self, place: &Place, refs: Vec<String>, thrift: Thrift) -> Result<Left, CheckpointError> {
        let shared = self.shared(place);
        let mut tries = 0;
        loop {
            let halt = self.prunings.start(&place.workspace);
            let stops = Stops(&self.prunings, &place.workspace);
            let (shared, place, refs) = (shared.clone(), place.clone(), refs.clone());
            let (run, caps) = (self.run.clone(), self.caps);
            // A task of its own, so that nobody meets what is left of its git.
            let removing = tokio::spawn(async move {
                let mut guard = halt.wait(shared.lock_owned()).await?;
                let mut store = match guard.take() {
                    Some(store) => store,
                    None => Store::open(place, caps, &run, &halt).await?,
                };
                let removed = clear::remove(&store.alone(), &refs, thrift, &halt).await;
                if !matches!(removed, Ok(Left::Nothing)) {
                    *guard = Some(store);
                }
                removed
            });
            let removed = removing.await.unwrap_or_else(|error| Err(CheckpointError::ended_badly(&error)));
            drop(stops);
            tries += 1;
            match removed {
                Err(CheckpointError::Stopped) if tries < TRIES => {}
                removed => return removed,
            }
        }
    }
}

/// What a ref holds. Of one that was pruned a part may still lie in a pack.
pub(super) async fn held(git: &Git, halt: &Halt) -> Result<HashSet<String>, CheckpointError> {
    let listed = git.run(&["for-each-ref", "--format=%(objectname)", "refs/tolka"], b"", halt).await?;
    Ok(String::from_utf8_lossy(&listed.out).lines().map(str::to_owned).collect())
}

/// The oldest first.
async fn snapshots(git: &Git, halt: &Halt) -> Result<Vec<Snapshot>, CheckpointError> {
    let format = "--format=%(refname)%00%(objectname)%00%(contents:subject)%00%(trailers:key=Taken-At,valueonly)%00\
                  %(committerdate:unix)%00";
    let listed = git.run(&["for-each-ref", format, "refs/tolka"], b"", halt).await?;
    let fields: Vec<String> = listed.out.split(|byte| *byte == 0).map(|f| String::from_utf8_lossy(f).into()).collect();
    let mut found: Vec<Snapshot> = fields.chunks_exact(5).filter_map(snapshot).collect();
    found.sort_by(|a, b| (a.taken, &a.commit, &a.session).cmp(&(b.taken, &b.commit, &b.session)));
    Ok(found)
}

fn snapshot(fields: &[String]) -> Option<Snapshot> {
    let [name, commit, words, taken, seconds] = fields else { return None };
    let session = name.trim_start().strip_prefix("refs/tolka/")?.split('/').next()?;
    let micros = taken.trim().parse().ok().or_else(|| seconds.parse::<u64>().ok()?.checked_mul(1_000_000))?;
    let taken = Time::from_micros(micros);
    Some(Snapshot { commit: commit.clone(), session: SessionId::from(session), taken, words: words.clone() })
}

/// Git on a store alone, to read. The index is none of its own: there may be no such file.
fn alone(store: &Path) -> Git {
    Git { dir: store.to_owned(), index: store.join("index"), workspace: store.to_owned() }
}

/// Every store that is complete. Blocks.
fn places(data: &Path) -> Result<Vec<Place>, CheckpointError> {
    let root = data.join("checkpoints");
    let entries = match fs::read_dir(&root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CheckpointError::storage(root)(error)),
    };
    let data = data.canonicalize().map_err(CheckpointError::storage(data))?;
    let mut places = Vec::new();
    // Those with a dot in their name are being made, or going.
    for entry in entries.flatten().filter(|entry| !entry.file_name().as_encoded_bytes().contains(&b'.')) {
        let Ok(workspace) = fs::read(entry.path().join("description")) else { continue };
        let workspace = PathBuf::from(OsString::from_vec(workspace));
        let own_data = data.strip_prefix(&workspace).ok().map(Path::to_owned);
        places.push(Place { workspace, store: entry.path(), own_data });
    }
    Ok(places)
}

/// What is left of stores that other runs were making or removing when they were killed. Blocks.
fn sweep(data: &Path, run: &str) {
    let own = format!(".new-{run}");
    let entries = fs::read_dir(data.join("checkpoints")).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_left = name.ends_with(".gone") || (name.contains(".new-") && !name.ends_with(&own));
        if is_left && let Err(error) = files::remove_folder(&entry.path()) {
            tracing::warn!(%error, "what a killed run left stays");
        }
    }
}

/// What all files beneath a folder take of the disk. What goes meanwhile is not counted. Blocks.
fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes(&entry.path()) + found.blocks() * 512,
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}
