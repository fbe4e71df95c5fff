//! One workspace's git folder.
//!
//! A killed Tolka may leave a git behind that still runs. Objects and refs it may go on writing: they
//! are named by their content. The index is another matter, so each run has one by a name of its own,
//! which begins as the last run's: whatever is left of an earlier run can neither hold it locked nor
//! replace it.

use std::path::{Path, PathBuf};

use tokio::time::Instant;
use tolka_facts::{Hash, SessionId, Time};

use super::batch::{Present, batches};
use super::files::{self, blocking};
use super::git::{Git, Halt};
use super::listing::{Listing, shown};
use super::place::Place;
use super::{CheckpointError, Saved};

/// Where the refs of a session are.
#[derive(Debug)]
pub(super) struct Keep(String);

impl Keep {
    pub(super) fn new(session: &SessionId) -> Self {
        let name = session.as_str();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        // Every id that Tolka makes is plain; for others there are rules in git about what a ref may be called.
        match !name.is_empty() && name.len() <= 100 && name.bytes().all(is_plain) {
            true => Keep(format!("refs/tolka/{name}")),
            false => Keep(format!("refs/tolka/{}", Hash::of(name.as_bytes()).as_str())),
        }
    }

    fn of(&self, commit: &str) -> String {
        format!("{}/{commit}", self.0)
    }
}

/// What a store holds when a session is forgotten.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Snapshots of other sessions.
    Others,
    /// It is gone: whatever an index kept of the workspace was for nobody.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Store {
    git: Git,
    own_data: Option<PathBuf>,
    /// Good for everybody who had asked before it was begun, and so waited for it: many prompts at once cost little
    /// more than one.
    last: Option<Tree>,
}

#[derive(Debug)]
struct Tree {
    began: Instant,
    name: String,
    files: u64,
}

impl Store {
    pub(super) async fn open(place: Place, run: &str, halt: &Halt) -> Result<Self, CheckpointError> {
        let Place { workspace, store, own_data } = place;
        let index = store.join(format!("index.{run}"));
        let git = Git { dir: store, index, workspace };
        let dir = git.dir.clone();
        if !blocking(move || Ok(dir.exists())).await? {
            create(&git.dir, run, &git.workspace, halt).await?;
        }
        let (dir, index) = (git.dir.clone(), git.index.clone());
        blocking(move || files::adopt_index(&dir, &index).map_err(CheckpointError::storage(dir))).await?;
        Ok(Store { git, own_data, last: None })
    }

    pub(super) async fn save(&mut self, keep: &Keep, words: &str, halt: &Halt) -> Result<Saved, CheckpointError> {
        let tree = match self.last.take() {
            Some(tree) if tree.began >= halt.asked => tree,
            _ => self.tree(halt).await?,
        };
        let tree = self.last.insert(tree);
        // The time makes each commit one of its own, also if nothing has changed.
        let message = format!("{}\n\nTaken-At: {}\n", one_line(words), Time::now().micros());
        let commit = self.git.run(&["commit-tree", &tree.name], message.as_bytes(), halt).await?.line();
        let files = tree.files;
        if let Err(error) = self.git.run(&["update-ref", &keep.of(&commit), &commit], b"", halt).await {
            // It may have been killed when its work was done.
            self.discard(keep, &commit).await;
            return Err(error);
        }
        Ok(Saved { commit, files, left_out: Vec::new() })
    }

    /// Removes a ref that has just been made, or half made: it is a file of its own until somebody packs it.
    pub(super) async fn discard(&self, keep: &Keep, commit: &str) {
        let path = self.git.dir.join(keep.of(commit));
        let removed = blocking(move || {
            files::remove_file(&path)?;
            files::remove_file(&path.with_added_extension("lock"))
        });
        if let Err(error) = removed.await {
            tracing::warn!(%error, "a checkpoint that nobody wants stays until its session is purged");
        }
    }

    pub(super) async fn forget(&mut self, keep: &Keep, halt: &Halt) -> Result<Left, CheckpointError> {
        // Its objects may go.
        self.last = None;
        let (dir, index, folder) = (self.git.dir.clone(), self.git.index.clone(), self.git.dir.join(&keep.0));
        // Before anything that can fail: without its refs the next session that is forgotten takes the rest along.
        blocking(move || {
            files::remove_folder(&folder)?;
            files::remove_file(&dir.join("packed-refs.lock"))?;
            // A cache that somebody's `git gc` made. It would go on naming commits that are gone.
            files::remove_file(&dir.join("objects/info/commit-graph"))?;
            files::remove_folder(&dir.join("objects/info/commit-graphs"))?;
            files::sweep(&dir, &index)
        })
        .await?;
        // The workspace may be gone.
        let git = Git { dir: self.git.dir.clone(), index: self.git.index.clone(), workspace: self.git.dir.clone() };
        // Somebody's `git gc` may have packed refs.
        let packed = git.run(&["for-each-ref", "--format=delete %(refname)", &keep.0], b"", halt).await?;
        git.run(&["update-ref", "--stdin"], &packed.out, halt).await?;
        if git.run(&["for-each-ref", "--count=1", "refs/tolka"], b"", halt).await?.out.is_empty() {
            let dir = git.dir;
            blocking(move || files::retire(&dir)).await?;
            return Ok(Left::Nothing);
        }
        let packs = git.dir.join("objects/pack");
        if blocking(move || files::has_packs(&packs)).await? {
            // Git itself packs files of more than 512 MiB, and prunes only what is loose.
            git.run(&["repack", "-a", "-d", "-q", "--window=0"], b"", halt).await?;
        }
        git.run(&["prune", "--expire=now"], b"", halt).await?;
        Ok(Left::Others)
    }

    async fn tree(&self, halt: &Halt) -> Result<Tree, CheckpointError> {
        let began = Instant::now();
        let (dir, index) = (self.git.dir.clone(), self.git.index.clone());
        blocking(move || files::sweep(&dir, &index)).await?;
        match self.catch_up(halt).await {
            // A file may go between the listing and the reading of it. Once is chance.
            Err(CheckpointError::Git { .. }) => self.catch_up(halt).await?,
            result => result?,
        }
        let name = match self.git.run(&["write-tree"], b"", halt).await {
            // Only here does git find out that an object in the index was never written, on a full disk for one. The
            // index would go on saying that it has been: it is made anew.
            Err(error @ CheckpointError::Git { .. }) => {
                self.drop_index().await?;
                return Err(error);
            }
            tree => tree?.line(),
        };
        let index = self.git.index.clone();
        let files = blocking(move || files::entries(&index).map_err(CheckpointError::storage(index))).await?;
        Ok(Tree { began, name, files })
    }

    /// Makes the index say what the workspace holds.
    async fn catch_up(&self, halt: &Halt) -> Result<(), CheckpointError> {
        let listing = self.list(halt).await?;
        if listing.is_empty() { Ok(()) } else { self.learn(&listing, halt).await }
    }

    /// It is made anew: it is only a cache.
    async fn drop_index(&self) -> Result<(), CheckpointError> {
        let index = self.git.index.clone();
        blocking(move || files::remove_file(&index)).await
    }

    /// The differences, with all nested repositories opened up.
    async fn list(&self, halt: &Halt) -> Result<Listing, CheckpointError> {
        let mut listing = match Listing::take(&self.git, self.own_data.as_deref(), halt).await {
            // Listing reads little but the index, which may be damaged. Without one it fails in the same way again.
            Err(CheckpointError::Git { command, words }) => {
                tracing::warn!(%command, %words, "the index of a checkpoint store is made anew");
                self.drop_index().await?;
                Listing::take(&self.git, self.own_data.as_deref(), halt).await?
            }
            result => result?,
        };
        let mut seeded = Vec::new();
        while let Some(first) = listing.nested.first() {
            if listing.nested == seeded {
                return Err(CheckpointError::Nested { path: shown(first) });
            }
            self.git.run(&["update-index", "--replace", "-z", "--index-info"], &listing.seeds(), halt).await?;
            seeded = listing.nested;
            listing = Listing::take(&self.git, self.own_data.as_deref(), halt).await?;
        }
        Ok(listing)
    }

    async fn learn(&self, listing: &Listing, halt: &Halt) -> Result<(), CheckpointError> {
        let git = &self.git;
        if !listing.absent.is_empty() {
            git.run(&["update-index", "-z", "--index-info"], &listing.removals(), halt).await?;
        }
        for batch in batches(&listing.present) {
            let paths = batch.iter().map(|present| present.path.as_slice()).collect::<Vec<_>>().join(&0);
            let args = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            if let Err(error) = git.run(&args, &paths, halt).await {
                return Err(self.explain(error, batch).await);
            }
        }
        // A folder that has just become a repository would be a mere reference: a snapshot without its files.
        let staged = git.run(&["ls-files", "-z", "--stage"], b"", halt).await?;
        let Some(link) = staged.items().find(|item| item.starts_with(b"160000 ")) else { return Ok(()) };
        let path = link.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default().to_owned();
        let error = CheckpointError::Nested { path: shown(&path) };
        let removal = Listing { absent: vec![path], ..Listing::default() }.removals();
        git.run(&["update-index", "-z", "--index-info"], &removal, halt).await?;
        Err(error)
    }

    /// Why git did not take a batch in. Its own words for a file that it may not read are for people who know git.
    async fn explain(&self, error: CheckpointError, batch: &[Present]) -> CheckpointError {
        if !matches!(error, CheckpointError::Git { .. }) {
            return error;
        }
        let (workspace, batch) = (self.git.workspace.clone(), batch.to_vec());
        let look = move || Ok(batch.iter().find_map(|present| files::refusal(&workspace, &present.path)));
        match blocking(look).await {
            Ok(Some(words)) => CheckpointError::Unreadable { words },
            Ok(None) | Err(_) => error,
        }
    }
}

/// Made under another name first: a store that is there is complete.
async fn create(store: &Path, run: &str, workspace: &Path, halt: &Halt) -> Result<(), CheckpointError> {
    let new = store.with_added_extension(format!("new-{run}"));
    // One that was stopped halfway may have left locks.
    let left = new.clone();
    blocking(move || files::remove_folder(&left)).await?;
    let git = Git { dir: new.clone(), index: new.join("index"), workspace: workspace.to_owned() };
    git.run(&["init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=none"], b"", halt).await?;
    let (store, workspace) = (store.to_owned(), workspace.to_owned());
    blocking(move || {
        files::furnish(&new, &workspace)?;
        files::put_in_place(&new, &store)
    })
    .await
}

fn one_line(words: &str) -> String {
    let visible = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}
