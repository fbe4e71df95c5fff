//! What git obeys in a workspace: its configuration, its hooks, and which folder it takes for the repository.
//!
//! To change one of these is to run something as the person, later, when they use git there themselves. A sandbox
//! guards those that are there. What is missing cannot be guarded without being made, and not every machine has a
//! sandbox: so a look before a command and one after it find what has changed all the same, for the person to know, and
//! what was there before can be put back. Both go from folders that are held open since the first look, and what is kept
//! and put back was found there without a link: whatever is swapped meanwhile leads nowhere else.

mod back;
mod config;
mod find;
mod home;
mod quiet;
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
pub(crate) use find::Repository;
pub use find::is_named;
use find::{Kind, Role, Spot};
use home::Home;
pub use home::Moved;
pub use quiet::{is_quiet, quietly};
use see::{Says, see};

/// Of all files together, to be put back: a configuration and a few hooks, many times over.
const KEPT: usize = 4 << 20;

/// Repositories that are held open, to be brought home: that of the workspace, and some of its modules.
const HOMES: usize = 16;

/// Hooks that are looked at; git has two dozen of them.
const HOOKS: usize = 200;

/// What git obeys at one moment.
#[derive(Debug, Clone)]
pub struct Obeyed {
    roots: Arc<Roots>,
    /// Where it was looked for; a later look is at the same places, whatever git takes for the repository by then.
    spots: Arc<[Spot]>,
    /// Repositories that nobody may move.
    homes: Arc<[Home]>,
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
    /// Blocks, for some thousand folders and twenty small files.
    pub fn at(workspace: &Path) -> Self {
        let roots = [Some(workspace.to_owned()), Repository::of_workspace(workspace).common].into_iter().flatten();
        let roots = roots.filter_map(|root| Folder::open(&root).ok().map(|folder| (root, folder)));
        let mut look = Obeyed::looking(Arc::new(roots.collect()), &find::spots(workspace).into());
        let own = look.spots.iter().filter(|spot| spot.kind == Kind::Own && spot.role == Role::Root);
        look.homes = own.take(HOMES).filter_map(|spot| Home::new(&spot.path, &look.place(&spot.path).ok()?)).collect();
        look
    }

    /// The same places, as they are now. Blocks, like the first look.
    pub fn again(&self) -> Self {
        Obeyed { homes: self.homes.clone(), ..Obeyed::looking(self.roots.clone(), &self.spots) }
    }

    fn looking(roots: Arc<Roots>, spots: &Arc<[Spot]>) -> Self {
        let (found, kept) = (Found::new(), Kept::new());
        let mut look = Obeyed { roots, spots: spots.clone(), homes: Arc::default(), found, kept };
        for spot in spots.iter() {
            look.take(&spot.path, spot.role);
        }
        look
    }

    /// A place, and of hooks whatever is there.
    fn take(&mut self, path: &Path, role: Role) {
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
        if role == Role::Hooks
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
        // Of a repository that is gone git obeys nothing.
        changed.retain(|path| now.contains_key(path) || !self.is_root(path, Kind::Beside));
        changed
    }

    fn is_root(&self, path: &Path, kind: Kind) -> bool {
        self.spots.iter().any(|spot| spot.path == path && spot.role == Role::Root && spot.kind == kind)
    }
}

fn names(folder: &OwnedFd) -> Vec<OsString> {
    let entries = Dir::read_from(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    names.filter(|name| name != "." && name != "..").collect()
}
