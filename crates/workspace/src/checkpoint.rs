//! Snapshots of a workspace: real git commits, in a git folder of our own for each workspace.
//!
//! A snapshot is a function of the workspace alone: every file that its `.gitignore` files let through,
//! byte for byte, whatever was saved before. What is kept from one to the next, git's index, is only a
//! cache that makes an unchanged workspace cheap. A commit is handed out when it and all it refers to
//! are written and a ref keeps them; any step that fails means that there is no checkpoint.

mod error;
mod files;
mod git;
mod listing;
mod place;
mod store;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{Instant, timeout_at};

pub use error::CheckpointError;
use files::blocking;
use git::Halt;
use place::Place;
use store::Store;

/// For git to be killed and gone when the budget is spent. A file system that hangs holds it for longer: nobody waits
/// for that.
const GRACE: Duration = Duration::from_millis(500);

/// All snapshots of one data folder.
#[derive(Debug)]
pub struct Checkpoints {
    data: PathBuf,
    /// Differs from every earlier run on this data folder; see [`Store`].
    run: String,
    /// By workspace. A std mutex: held for a look-up, never over an await.
    stores: Mutex<HashMap<PathBuf, Shared>>,
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
}

impl Checkpoints {
    /// Nothing is touched before the first save.
    pub fn new(data: &Path) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let run = format!("{}-{}", std::process::id(), now.as_nanos());
        Checkpoints { data: data.to_owned(), run, stores: Mutex::default() }
    }

    /// Saves `workspace` as it is now. `words` are for people who read the commit. When `budget` is spent, or the
    /// future is dropped, git is killed and nothing is saved; files that git had taken in by then are not read again.
    pub async fn save(&self, workspace: &Path, budget: Duration, words: &str) -> Result<Saved, CheckpointError> {
        let asked = Instant::now();
        let deadline = asked + budget;
        let slow = move |_| CheckpointError::Slow { budget };
        let (folder, data) = (workspace.to_owned(), self.data.clone());
        let finding = blocking(move || Place::find(&folder, &data));
        let place = timeout_at(deadline, finding).await.map_err(slow)??;
        let (run, words, shared) = (self.run.clone(), words.to_owned(), self.shared(&place));
        // Dropped with this future.
        let (_wanted, dropped) = watch::channel(());
        let halt = Halt { asked, deadline, budget, dropped };
        // A task of its own, so that a save which nobody waits for any more still sees the end of its git before
        // the next save begins.
        let saving = tokio::spawn(async move {
            let mut guard = timeout_at(deadline, shared.lock_owned()).await.map_err(slow)?;
            let store = match guard.take() {
                Some(store) => store,
                None => Store::open(place, &run, &halt).await?,
            };
            guard.insert(store).save(&words, &halt).await
        });
        let saved = timeout_at(deadline + GRACE, saving).await.map_err(slow)?;
        saved.unwrap_or_else(|error| Err(CheckpointError::ended_badly(&error)))
    }

    fn shared(&self, place: &Place) -> Shared {
        // Nothing panics while holding it; a poisoned lock would still guard sound data.
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(place.workspace.clone()).or_default().clone()
    }
}
