//! What git obeys in a workspace: its configuration, its hooks, and which folder it takes for the repository.
//!
//! To change one of these is to run something as the person, later, when they use git there themselves. A sandbox
//! guards those that are there. What is missing cannot be guarded without being made, and not every machine has a
//! sandbox: so a look before a command and one after it find what has changed all the same, for the person to know, and
//! what was there before can be put back.

mod back;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tolka_facts::Hash;

/// In each folder of a repository. The last says where the others really are.
const OBEYED: &[&str] = &["config", "config.worktree", "hooks", "commondir"];

/// Of one file. Those who write longer ones are told by its size and times.
const MOST: u64 = 1 << 20;

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
    /// Where it was looked for; a later look is at the same places, whatever git takes for the repository by then.
    places: Vec<PathBuf>,
    found: Found,
    kept: Kept,
}

/// What is in the files, as far as it is kept.
type Kept = BTreeMap<PathBuf, Vec<u8>>;

/// What is there, by its path, with what it says.
type Found = BTreeMap<PathBuf, Says>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Says {
    Folder,
    Link(PathBuf),
    /// Whether it can be run, and what is in it.
    File(bool, Hash),
    /// Something that cannot be read, or not whole.
    Other(u64, (i64, i64)),
}

impl Obeyed {
    /// Blocks, for some twenty small files.
    pub fn at(workspace: &Path) -> Self {
        let repository = Repository::of(workspace);
        let mut places: Vec<PathBuf> = repository.obeyed().chain([repository.own.clone()]).collect();
        places.sort();
        places.dedup();
        Obeyed::looking(places)
    }

    /// The same places, as they are now. Blocks, like the first look.
    pub fn again(&self) -> Self {
        Obeyed::looking(self.places.clone())
    }

    fn looking(places: Vec<PathBuf>) -> Self {
        let mut kept = Kept::new();
        let found = look(&places, &mut kept);
        Obeyed { places, found, kept }
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

fn look(places: &[PathBuf], kept: &mut Kept) -> Found {
    let mut found = Found::new();
    for path in places {
        let is_folder = take(&mut found, kept, path.clone());
        if is_folder && path.file_name().is_some_and(|name| name == "hooks") {
            for hook in path.read_dir().into_iter().flatten().flatten().take(HOOKS) {
                take(&mut found, kept, hook.path());
            }
        }
    }
    found
}

/// Whether it is a folder.
fn take(found: &mut Found, kept: &mut Kept, path: PathBuf) -> bool {
    let Ok(about) = path.symlink_metadata() else { return false };
    let other = || Says::Other(about.size(), (about.ctime(), about.ctime_nsec()));
    let says = if about.is_dir() {
        Says::Folder
    } else if about.is_symlink() {
        path.read_link().map_or_else(|_| other(), Says::Link)
    } else if about.is_file() {
        content(&path).map_or_else(other, |content| {
            let says = Says::File(about.mode() & 0o111 != 0, Hash::of(&content));
            if kept.values().map(Vec::len).sum::<usize>() + content.len() <= KEPT {
                kept.insert(path.clone(), content);
            }
            says
        })
    } else {
        other()
    };
    let is_folder = says == Says::Folder;
    found.insert(path, says);
    is_folder
}

/// `None` if it cannot be read, or is too long. Never waits, should a pipe have taken its place.
fn content(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let mut content = Vec::new();
    file.take(MOST + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= MOST).then_some(content)
}

/// The path that a small file holds.
fn named(file: &Path, from: &Path, before: &str) -> Option<PathBuf> {
    let about = file.symlink_metadata().ok()?;
    if !about.is_file() || about.len() > 8192 {
        return None;
    }
    let text = String::from_utf8(content(file)?).ok()?;
    from.join(text.strip_prefix(before)?.trim_end_matches('\n')).canonicalize().ok()
}
