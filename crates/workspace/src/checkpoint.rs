//! Snapshots of a workspace: real git commits, in a git folder of our own for each workspace.
//!
//! A snapshot is a function of the workspace alone: every file that its `.gitignore` files let through,
//! byte for byte, whatever was saved before. Files that are too large or cannot be read are left out, and
//! the commit names them. One thing is remembered: what the workspace's own repository tracked when the
//! store was made is saved though it is ignored. What else is kept from one to the next, git's index, is
//! only a cache that makes an unchanged workspace cheap; the first one begins with what that repository's
//! own index and objects know. A commit is handed out when it and all it refers to
//! are written and a ref keeps them; any step that fails means that there is no checkpoint. The refs are
//! by session, so that a session which is purged takes its snapshots along.

mod batch;
mod changes;
mod contents;
mod error;
mod files;
mod forks;
mod git;
pub(crate) mod index;
mod left_out;
mod links;
mod listing;
mod modes;
mod obstacle;
mod place;
mod plan;
mod restore;
mod seed;
mod space;
mod store;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::time::timeout_at;
use tolka_facts::SessionId;

pub use changes::{FileChange, FileDiff};
pub use error::CheckpointError;
use files::blocking;
use git::Halt;
pub use left_out::{LeftOut, LeftOutWhy};
use place::Place;
pub use plan::{Content, Kept, Plan, PlanRequest, Span, Step, Whose, Wrote};
pub use restore::Restored;
use space::Prunings;
pub use space::{IsNeeded, Policy, Pruned, Snapshot, StoreInfo};
use store::{Keep, Left, Made, Store, Wish};

/// For git to be killed and gone when the budget is spent. A file system that hangs holds it for longer: nobody waits
/// for that.
const GRACE: Duration = Duration::from_millis(500);

/// How long clearing away may take. What is left then goes with the next session that is purged there.
const CLEARING: Duration = Duration::from_secs(60);

/// How long reading from a snapshot may take.
const READING: Duration = Duration::from_secs(20);

/// All snapshots of one data folder.
#[derive(Debug)]
pub struct Checkpoints {
    data: PathBuf,
    /// Differs from every earlier run on this data folder; see [`Store`].
    run: String,
    caps: Caps,
    /// By workspace. A std mutex: held for a look-up, never over an await.
    stores: Mutex<HashMap<PathBuf, Shared>>,
    prunings: Prunings,
}

/// `None` until the first save. An async mutex: one save at a time in a store, and the others wait for it.
type Shared = Arc<AsyncMutex<Option<Store>>>;

/// A snapshot that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The full name of a commit, 40 hexadecimal digits.
    pub commit: String,
    /// How many files and links are in it.
    pub files: u64,
    /// Files of the workspace that are not in it, though nothing ignores them. A restore leaves them alone.
    pub left_out: Vec<LeftOut>,
}

/// What is saved, and what not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Larger files are left out.
    pub largest_file: u64,
    /// A workspace with more files gets no checkpoint.
    pub most_files: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Caps { largest_file: 32 << 20, most_files: 500_000 }
    }
}

/// How a snapshot is taken.
#[derive(Debug, Clone, Copy)]
pub struct Save<'a> {
    pub budget: Duration,
    /// For people who read the commit.
    pub words: &'a str,
    /// A commit that is as good, if nothing has changed since.
    pub same_as: Option<&'a str>,
}

impl<'a> Save<'a> {
    pub fn within(budget: Duration, words: &'a str) -> Self {
        Save { budget, words, same_as: None }
    }
}

impl Checkpoints {
    /// Nothing is touched before the first save.
    pub fn new(data: &Path) -> Self {
        Checkpoints::with_caps(data, Caps::default())
    }

    pub fn with_caps(data: &Path, caps: Caps) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let run = format!("{}-{}", std::process::id(), now.as_nanos());
        Checkpoints { data: data.to_owned(), run, caps, stores: Mutex::default(), prunings: Prunings::default() }
    }

    /// Saves `workspace` as it is now, for a turn of `session`. `words` are for people who read the commit. When
    /// `budget` is spent, or the future is dropped, git is killed and nothing is saved; files that git had taken in by
    /// then are not read again.
    pub async fn save(
        &self,
        workspace: &Path,
        session: &SessionId,
        Save { budget, words, same_as }: Save<'_>,
    ) -> Result<Saved, CheckpointError> {
        let (wanted, halt) = Halt::within(budget);
        let (folder, data) = (workspace.to_owned(), self.data.clone());
        let place = halt.wait(blocking(move || Place::find(&folder, &data))).await??;
        self.prunings.stop(&place.workspace);
        let wish = Wish { words: words.to_owned(), same_as: same_as.filter(|name| is_name(name)).map(str::to_owned) };
        let (run, caps, shared) = (self.run.clone(), self.caps, self.shared(&place));
        let (keep, deadline) = (Keep::new(session), halt.deadline + GRACE);
        let (answer, answered) = oneshot::channel();
        // A task of its own, so that a save which nobody waits for any more still sees the end of its git before
        // the next save begins.
        tokio::spawn(async move {
            let made = save(&shared, place, caps, &run, &keep, &wish, &halt).await;
            let commit = made.as_ref().ok().filter(|made| made.is_new).map(|made| made.saved.commit.clone());
            let is_taken = answer.send(made.map(|made| made.saved)).is_ok() && halt.taken().await;
            if let (Some(commit), false) = (commit, is_taken) {
                discard(&shared, &keep, &commit).await;
            }
        });
        let saved = timeout_at(deadline, answered).await.map_err(|_| CheckpointError::Slow { budget })?;
        // It is in the caller's hands with the end of this future: there is no await after this.
        wanted.send_replace(true);
        // The task never drops it unanswered but by a panic, or when the runtime ends.
        saved.unwrap_or(Err(CheckpointError::Stopped))
    }

    /// Lets go of a snapshot that nobody names; what it alone holds stays on the disk until its store is cleared.
    pub async fn discard(&self, workspace: &Path, session: &SessionId, commit: &str) {
        let (folder, data) = (workspace.to_owned(), self.data.clone());
        if let (true, Ok(Some(place))) = (is_name(commit), blocking(move || Place::left(&folder, &data)).await) {
            discard(&self.shared(&place), &Keep::new(session), commit).await;
        }
    }

    /// Removes all that was saved for `session`, and nothing that another one's snapshots hold. The workspace itself
    /// may be gone.
    pub async fn forget(&self, workspace: &Path, session: &SessionId) -> Result<(), CheckpointError> {
        let (wanted, halt) = Halt::within(CLEARING);
        let (folder, data) = (workspace.to_owned(), self.data.clone());
        let Some(place) = halt.wait(blocking(move || Place::left(&folder, &data))).await?? else { return Ok(()) };
        let (run, caps, shared, keep) = (self.run.clone(), self.caps, self.shared(&place), Keep::new(session));
        let deadline = halt.deadline + GRACE;
        let forgetting = tokio::spawn(async move {
            let mut guard = halt.wait(shared.lock_owned()).await?;
            let mut store = match guard.take() {
                Some(store) => store,
                None => Store::open(place, caps, &run, &halt).await?,
            };
            if store.forget(&keep, &halt).await? == Left::Others {
                *guard = Some(store);
            }
            Ok(())
        });
        let slow = |_| CheckpointError::Slow { budget: CLEARING };
        let forgotten = timeout_at(deadline, forgetting).await.map_err(slow)?;
        drop(wanted);
        forgotten.unwrap_or_else(|error| Err(CheckpointError::ended_badly(&error)))
    }

    /// What files held when a snapshot was taken, in the order of `paths`, which are from the workspace on. `None`: there
    /// was no such file (a link is none), or it is too large to be of use.
    pub async fn contents<P: AsRef<Path> + Sync>(
        &self,
        workspace: &Path,
        commit: &str,
        paths: &[P],
    ) -> Result<Vec<Option<Vec<u8>>>, CheckpointError> {
        // To be dropped with this future, which ends git.
        let (_wanted, halt) = Halt::within(READING);
        let git = self.reader(workspace, &[commit], &halt).await?.git;
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        contents::read(&git, commit, &paths, &halt).await
    }

    /// The paths of a workspace that are saved whatever its rules say: its repository tracks them, or a restore made them.
    /// Some may not be there. Blocks.
    pub fn beyond_rules(&self, workspace: &Path) -> Vec<PathBuf> {
        let held = match Place::left(workspace, &self.data) {
            Ok(Some(place)) => seed::held(&place.store),
            Ok(None) | Err(_) => Vec::new(),
        };
        let tracked = seed::tracked(workspace).unwrap_or_default();
        held.into_iter().chain(tracked).map(|path| OsString::from_vec(path).into()).collect()
    }

    fn shared(&self, place: &Place) -> Shared {
        // Nothing panics while holding it; a poisoned lock would still guard sound data.
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(place.workspace.clone()).or_default().clone()
    }
}

async fn save(
    shared: &Shared,
    place: Place,
    caps: Caps,
    run: &str,
    keep: &Keep,
    wish: &Wish,
    halt: &Halt,
) -> Result<Made, CheckpointError> {
    let mut guard = halt.wait(shared.lock()).await?;
    opened(&mut guard, place, caps, run, halt).await?.save(keep, wish, halt).await
}

async fn opened<'a>(
    store: &'a mut Option<Store>,
    place: Place,
    caps: Caps,
    run: &str,
    halt: &Halt,
) -> Result<&'a mut Store, CheckpointError> {
    let open = match store.take() {
        Some(open) => open,
        None => Store::open(place, caps, run, halt).await?,
    };
    Ok(store.insert(open))
}

/// The full name of a commit.
fn is_name(commit: &str) -> bool {
    commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// For a snapshot that was done when nobody wanted it any more.
async fn discard(shared: &Shared, keep: &Keep, commit: &str) {
    if let Some(store) = shared.lock().await.as_ref() {
        store.discard(keep, commit).await;
    }
}
