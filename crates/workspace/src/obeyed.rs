//! What git obeys in a workspace: its configuration, its hooks, and which folder it takes for the repository.
//!
//! To change one of these is to run something as the person, later, when they use git there themselves. A sandbox
//! guards those that are there. What is missing cannot be guarded without being made, and not every machine has a
//! sandbox: so a look before a command and one after it find what has changed all the same, for the person to know, and
//! what was there before can be put back. Both go from folders that are held open since the first look, and what is kept
//! and put back was found there without a link: whatever is swapped meanwhile leads nowhere else.

mod back;
mod see;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Dir, Mode, OFlags, Stat, openat};
use rustix::io::Errno;

use crate::folder::{Folder, Place, READ};
use see::{Says, content, see};

/// In each folder of a repository. The last says where the others really are.
const OBEYED: &[&str] = &["config", "config.worktree", "hooks", "commondir"];

/// Of all files together, to be put back: a configuration and a few hooks, many times over.
const KEPT: usize = 4 << 20;

/// Hooks that are looked at; git has two dozen of them.
const HOOKS: usize = 200;

/// The repository of a workspace, or the place where one would be.
#[derive(Debug)]
pub(crate) struct Repository {
    /// `.git` in the workspace: a folder, a file, or nothing.
    own: PathBuf,
    /// Of a worktree: its folder in the main repository.
    elsewhere: Option<PathBuf>,
    /// Of a worktree: the folder of the main repository, which it shares.
    pub(crate) common: Option<PathBuf>,
}

impl Repository {
    /// A worktree has its git folder in another repository, and shares most of that. One that its `.git` file merely
    /// claims is none: git's own note there must lead back here, or a file in the workspace could open any folder.
    pub(crate) fn of(workspace: &Path) -> Self {
        let own = workspace.join(".git");
        let find = || {
            let elsewhere = named(&own, workspace, "gitdir: ")?;
            let back = named(&elsewhere.join("gitdir"), &elsewhere, "")?;
            let common = named(&elsewhere.join("commondir"), &elsewhere, "")?;
            let is_so = back == own.canonicalize().ok()? && elsewhere.starts_with(common.join("worktrees"));
            is_so.then_some((elsewhere, common))
        };
        let (elsewhere, common) = find().unzip();
        Repository { own, elsewhere, common }
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = PathBuf> {
        [Some(&self.own), self.elsewhere.as_ref(), self.common.as_ref()].into_iter().flatten().cloned()
    }

    /// All that git obeys, there or not.
    pub(crate) fn obeyed(&self) -> impl Iterator<Item = PathBuf> {
        let inside = self.folders().flat_map(|folder| OBEYED.iter().map(move |name| folder.join(name)));
        // A folder as such is not obeyed; a file says which folder is.
        inside.chain(self.own.is_file().then(|| self.own.clone()))
    }
}

/// What git obeys at one moment.
#[derive(Debug, Clone)]
pub struct Obeyed {
    roots: Arc<Roots>,
    /// Where it was looked for; a later look is at the same places, whatever git takes for the repository by then.
    places: Vec<PathBuf>,
    found: Found,
    kept: Kept,
}

/// Folders that the places are beneath, held open: the workspace, and what a worktree shares.
type Roots = Vec<(PathBuf, Folder)>;

/// What is in the files, as far as it is kept, and whose they are.
type Kept = BTreeMap<PathBuf, (Vec<u8>, Stat)>;

/// What is there, by its path, with what it says.
type Found = BTreeMap<PathBuf, Says>;

impl Obeyed {
    /// Blocks, for some twenty small files.
    pub fn at(workspace: &Path) -> Self {
        let repository = Repository::of(workspace);
        let mut places: Vec<PathBuf> = repository.obeyed().chain([repository.own.clone()]).collect();
        places.sort();
        places.dedup();
        let roots = [Some(workspace.to_owned()), repository.common].into_iter().flatten();
        let roots = roots.filter_map(|root| Folder::open(&root).ok().map(|folder| (root, folder)));
        Obeyed::looking(Arc::new(roots.collect()), places)
    }

    /// The same places, as they are now. Blocks, like the first look.
    pub fn again(&self) -> Self {
        Obeyed::looking(self.roots.clone(), self.places.clone())
    }

    fn looking(roots: Arc<Roots>, places: Vec<PathBuf>) -> Self {
        let mut look = Obeyed { roots, places: Vec::new(), found: Found::new(), kept: Kept::new() };
        for path in &places {
            look.take(path);
        }
        look.places = places;
        look
    }

    /// A place, and of hooks whatever is there.
    fn take(&mut self, path: &Path) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        let (folder, is_sure) = match self.place(path) {
            Ok(place) => (place.folder, true),
            // The person may have a link there. What is found behind it is told, and neither kept nor put back.
            Err(_) => match openat(CWD, parent, READ | OFlags::DIRECTORY, Mode::empty()) {
                Ok(folder) => (folder, false),
                Err(_) => return,
            },
        };
        self.take_at(path.to_owned(), &folder, name, is_sure);
        let into = READ | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        if name == "hooks"
            && let Ok(hooks) = openat(&folder, name, into, Mode::empty())
        {
            for hook in names(&hooks).into_iter().take(HOOKS) {
                self.take_at(path.join(&hook), &hooks, &hook, is_sure);
            }
        }
    }

    fn take_at(&mut self, path: PathBuf, folder: &OwnedFd, name: &OsStr, is_sure: bool) {
        let Some(seen) = see(folder, name) else { return };
        if let Some(content) = seen.content.filter(|_| is_sure) {
            let together: usize = self.kept.values().map(|(content, _)| content.len()).sum();
            if together + content.len() <= KEPT {
                self.kept.insert(path.clone(), (content, seen.about));
            }
        }
        self.found.insert(path, seen.says);
    }

    /// A path in the folder that is held open above it, with no link between.
    fn place(&self, path: &Path) -> rustix::io::Result<Place> {
        let above = self.roots.iter().find_map(|(root, folder)| Some((folder, path.strip_prefix(root).ok()?)));
        let (folder, path) = above.ok_or(Errno::XDEV)?;
        folder.place_itself(path)
    }

    /// What is different now: made, changed or gone. Blocks, like the first look.
    pub fn changes(&self) -> Vec<PathBuf> {
        self.differences(&self.again())
    }

    /// What is different in another look at the same places.
    pub fn differences(&self, other: &Obeyed) -> Vec<PathBuf> {
        let now = &other.found;
        let all: BTreeSet<&PathBuf> = self.found.keys().chain(now.keys()).collect();
        let mut changed: Vec<PathBuf> = Vec::new();
        for path in all.into_iter().filter(|path| self.found.get(*path) != now.get(*path)) {
            // Who knows that a folder is new need not be told what is in it.
            if !changed.iter().any(|known| path.starts_with(known)) {
                changed.push(path.clone());
            }
        }
        changed
    }
}

fn names(folder: &OwnedFd) -> Vec<OsString> {
    let entries = Dir::read_from(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    names.filter(|name| name != "." && name != "..").collect()
}

/// The path that a small file holds.
fn named(file: &Path, from: &Path, before: &str) -> Option<PathBuf> {
    let about = file.symlink_metadata().ok()?;
    if !about.is_file() || about.len() > 8192 {
        return None;
    }
    let file = openat(CWD, file, READ | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    let text = String::from_utf8(content(file.into())?).ok()?;
    from.join(text.strip_prefix(before)?.trim_end_matches('\n')).canonicalize().ok()
}
