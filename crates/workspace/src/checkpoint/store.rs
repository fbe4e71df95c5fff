//! One workspace's git folder.
//!
//! A killed Tolka may leave a git behind that still runs. Objects and refs it may go on writing: they
//! are named by their content. The index is another matter, so each run has one by a name of its own,
//! which begins as the last run's: whatever is left of an earlier run can neither hold it locked nor
//! replace it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::time::Instant;
use tolka_facts::{Hash, Time};

use super::git::{Git, Halt};
use super::listing::{Listing, shown};
use super::{CheckpointError, Saved};

/// What the workspace's own attributes say about a file's bytes is not followed.
const ATTRIBUTES: &str = "* -text -eol -filter -ident -working-tree-encoding\n";
/// Paths that go into the index at once. Each batch that is done stays done, so that a workspace which is too large
/// for one budget gets there with the next.
const BATCH: usize = 10_000;

/// A workspace that may be saved, and where.
#[derive(Debug)]
pub(super) struct Place {
    /// Canonical.
    pub(super) workspace: PathBuf,
    store: PathBuf,
    /// The data folder, if it is inside the workspace, as a path from there.
    own_data: Option<PathBuf>,
}

impl Place {
    pub(super) fn find(workspace: &Path, data: &Path) -> Result<Self, CheckpointError> {
        let unusable = |error| CheckpointError::NoWorkspace { path: workspace.to_owned(), error };
        let workspace = workspace.canonicalize().map_err(unusable)?;
        if !workspace.is_dir() {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
        if workspace.parent().is_none() || home.as_ref() == Some(&workspace) {
            return Err(CheckpointError::TooWide { path: workspace });
        }
        let root = data.join("checkpoints");
        // Copies of a person's files are for nobody else on the machine, whatever the files themselves allow.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&root);
        made.map_err(CheckpointError::storage(&root))?;
        let data = data.canonicalize().map_err(CheckpointError::storage(data))?;
        if data == workspace {
            return Err(CheckpointError::OwnData { path: data });
        }
        let own_data = data.strip_prefix(&workspace).ok().map(Path::to_owned);
        let store = data.join("checkpoints").join(Hash::of(workspace.as_os_str().as_encoded_bytes()).as_str());
        Ok(Place { workspace, store, own_data })
    }
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
        if !store.exists() {
            create(&store, run, &workspace, halt).await?;
        }
        let index = store.join(format!("index.{run}"));
        adopt_index(&store, &index).map_err(CheckpointError::storage(&store))?;
        Ok(Store { git: Git { dir: store, index, workspace }, own_data, last: None })
    }

    pub(super) async fn save(&mut self, words: &str, halt: &Halt) -> Result<Saved, CheckpointError> {
        let tree = match self.last.take() {
            Some(tree) if tree.began >= halt.asked => tree,
            _ => self.tree(halt).await?,
        };
        let tree = self.last.insert(tree);
        // The time makes each commit one of its own, also if nothing has changed.
        let message = format!("{}\n\nTaken-At: {}\n", one_line(words), Time::now().micros());
        let commit = self.git.run(&["commit-tree", &tree.name], message.as_bytes(), halt).await?.line();
        self.git.run(&["update-ref", &format!("refs/tolka/{commit}"), &commit], b"", halt).await?;
        Ok(Saved { commit, files: tree.files })
    }

    async fn tree(&self, halt: &Halt) -> Result<Tree, CheckpointError> {
        let began = Instant::now();
        self.sweep()?;
        match self.catch_up(halt).await {
            // A file may go between the listing and the reading of it. Once is chance.
            Err(CheckpointError::Git { .. }) => self.catch_up(halt).await?,
            result => result?,
        }
        let index = &self.git.index;
        let name = match self.git.run(&["write-tree"], b"", halt).await {
            // Only here does git find out that an object in the index was never written, on a full disk for one. The
            // index would go on saying that it has been: it is made anew.
            Err(error @ CheckpointError::Git { .. }) => {
                remove_if_there(index)?;
                return Err(error);
            }
            tree => tree?.line(),
        };
        let files = entries(index).map_err(CheckpointError::storage(index))?;
        Ok(Tree { began, name, files })
    }

    /// Makes the index say what the workspace holds.
    async fn catch_up(&self, halt: &Halt) -> Result<(), CheckpointError> {
        let listing = self.list(halt).await?;
        if listing.is_empty() { Ok(()) } else { self.learn(&listing, halt).await }
    }

    /// Removes what killed gits left: this run's are waited for, and one of an earlier run works for nobody.
    fn sweep(&self) -> Result<(), CheckpointError> {
        remove_if_there(&self.git.index.with_added_extension("lock"))?;
        for folder in [self.git.dir.join("objects"), self.git.dir.join("objects/pack")] {
            for entry in fs::read_dir(&folder).map_err(CheckpointError::storage(&folder))?.flatten() {
                if entry.file_name().as_encoded_bytes().starts_with(b"tmp_") {
                    let path = entry.path();
                    // What cannot be removed takes room and does no other harm.
                    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                }
            }
        }
        Ok(())
    }

    /// The differences, with all nested repositories opened up.
    async fn list(&self, halt: &Halt) -> Result<Listing, CheckpointError> {
        let mut listing = match Listing::take(&self.git, self.own_data.as_deref(), halt).await {
            // Listing reads little but the index. That is only a cache: a damaged one is made anew.
            Err(CheckpointError::Git { command, words }) if self.git.index.exists() => {
                tracing::warn!(%command, %words, "the index of a checkpoint store is made anew");
                remove_if_there(&self.git.index)?;
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
        for batch in listing.present.chunks(BATCH) {
            let paths = batch.join(&0);
            git.run(&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], &paths, halt).await?;
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
}

/// Made under another name first: a store that is there is complete.
async fn create(store: &Path, run: &str, workspace: &Path, halt: &Halt) -> Result<(), CheckpointError> {
    let new = store.with_added_extension(format!("new-{run}"));
    // One that was stopped halfway may have left locks.
    if new.exists() {
        fs::remove_dir_all(&new).map_err(CheckpointError::storage(&new))?;
    }
    let git = Git { dir: new.clone(), index: new.join("index"), workspace: workspace.to_owned() };
    git.run(&["init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=none"], b"", halt).await?;
    let write = |name: &str, content: &[u8]| {
        let path = new.join(name);
        fs::write(&path, content).map_err(CheckpointError::storage(path))
    };
    fs::create_dir_all(new.join("info")).map_err(CheckpointError::storage(&new))?;
    write("info/attributes", ATTRIBUTES.as_bytes())?;
    // For people who wonder whose store it is; its own name is a hash.
    write("description", workspace.as_os_str().as_encoded_bytes())?;
    match fs::rename(&new, store) {
        // Somebody was faster, and theirs is as good.
        Err(_) if store.exists() => fs::remove_dir_all(&new).map_err(CheckpointError::storage(new)),
        renamed => renamed.map_err(CheckpointError::storage(store)),
    }
}

/// The latest index of earlier runs becomes this run's; what else they left is removed.
fn adopt_index(store: &Path, index: &Path) -> io::Result<()> {
    let mut left: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"index.") {
            left.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    let (locks, mut indices): (Vec<_>, Vec<_>) =
        left.into_iter().partition(|(_, path)| path.extension().is_some_and(|extension| extension == "lock"));
    indices.sort();
    if let Some((_, latest)) = indices.pop() {
        fs::rename(latest, index)?;
    }
    // What cannot be removed lies there unused.
    locks.iter().chain(&indices).for_each(|(_, path)| drop(fs::remove_file(path)));
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<(), CheckpointError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(CheckpointError::storage(path)(error)),
        _ => Ok(()),
    }
}

/// How many entries the index has: a number in its header. A workspace without files has no index.
fn entries(index: &Path) -> io::Result<u64> {
    let mut header = [0; 12];
    match fs::File::open(index) {
        Ok(mut file) => file.read_exact(&mut header)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    }
    let [.., a, b, c, d] = header;
    Ok(u32::from_be_bytes([a, b, c, d]).into())
}

fn one_line(words: &str) -> String {
    let visible = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}
