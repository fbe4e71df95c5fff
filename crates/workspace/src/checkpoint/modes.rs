//! Who may read and write a file, as far as git does not know: it has two kinds of files, and one that is for its owner
//! alone must not come back open to everybody.
//!
//! A commit names the files and folders whose modes are not what most have. There is an end to what it names: if they
//! are too many, those that everybody may read are not named; if even the others are, whatever is not named comes back
//! for its owner alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::CheckpointError;
use super::changes::Kind;
use super::contents::objects;
use super::git::{Git, Halt};
use super::index::{self, Entry};
use super::left_out::{About, encoded, path_of};

/// Every commit names them anew.
const MOST: usize = 1000;

/// For fewer files it is not worth a thread.
const FEW: usize = 1000;

const REACH: &str = "Modes: ";
const TRAILER: &str = "Mode: ";
const LINK: u32 = 0o120_000;

/// What may be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    /// Everybody may read it, and its owner write it; whether its group may, is the machine's habit.
    Usual,
    Odd(u32),
    /// Nobody wrote it down; it may have been for few.
    Few,
    /// Nobody wrote it down.
    #[default]
    Unknown,
}

/// How much a commit says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reach {
    /// It is from before modes were saved.
    #[default]
    Nothing,
    /// Some that not everybody may read.
    Some,
    /// All that not everybody may read.
    Private,
    All,
}

/// The modes of one snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Modes {
    reach: Reach,
    files: BTreeMap<PathBuf, u32>,
    /// Of folders, which matter only where they are made anew.
    folders: BTreeMap<PathBuf, u32>,
}

impl Mode {
    /// Whether a file with this mode is as it should be, as far as that is known.
    pub(super) fn is(self, mode: u32) -> bool {
        match self {
            Mode::Usual => is_usual(mode),
            Mode::Odd(odd) => odd == mode & 0o777,
            Mode::Few | Mode::Unknown => true,
        }
    }

    /// Whether two are known, and not the same.
    pub(super) fn differs(self, other: Mode) -> bool {
        let is_known = |mode: Mode| matches!(mode, Mode::Usual | Mode::Odd(_));
        is_known(self) && is_known(other) && self != other
    }

    /// What a file of this kind should have, if it has `mode`.
    pub(super) fn wanted(self, kind: Kind, mode: u32) -> u32 {
        let whole = match self {
            Mode::Odd(odd) => return odd,
            Mode::Usual if !is_usual(mode) => 0o644,
            Mode::Usual | Mode::Few | Mode::Unknown => mode,
        };
        match kind {
            // Whoever may read a program may run it.
            Kind::Program => whole | (whole & 0o444) >> 2 | 0o100,
            Kind::File | Kind::Link => whole & !0o111,
        }
    }

    /// What a new file begins with: it is never open to more than it should be, not even for a moment.
    pub(super) fn first(self, kind: Kind) -> u32 {
        match (self, kind) {
            (Mode::Odd(_) | Mode::Few, _) => 0o600,
            (_, Kind::Program) => 0o777,
            (_, Kind::File | Kind::Link) => 0o666,
        }
    }
}

pub(super) fn is_usual(mode: u32) -> bool {
    matches!(mode & 0o777, 0o644 | 0o664 | 0o755 | 0o775)
}

fn is_private(mode: u32) -> bool {
    mode & 0o004 == 0
}

/// What a look at the modes of a workspace found.
#[derive(Debug, Clone)]
pub(super) struct Looked {
    pub(super) modes: Modes,
    /// The second in which it began.
    at: u32,
}

impl Looked {
    /// Of somebody who has looked at all files of an index anyway, and found these odd.
    pub(super) fn new(odd: BTreeMap<PathBuf, u32>, began: Duration) -> Self {
        Looked { modes: Modes::bounded(odd, BTreeMap::new()), at: seconds(began) }
    }

    /// At all files that an index knows, as they are now. What has not changed since the look `before` is not looked at
    /// again: git has just compared, in seconds, when each file changed last, and be it in its mode. That says nothing
    /// of the paths that it has `learnt` since, and of a file that had changed in the very second of that look. Blocks.
    pub(super) fn take(workspace: &Path, index: &Path, before: Option<&Looked>, learnt: &HashSet<Vec<u8>>) -> Self {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, seconds);
        let before = before.filter(|before| before.modes.reach == Reach::All);
        let modes = Sight::of(index, before, learnt).and_then(|sight| sight.look(workspace));
        Looked { modes: modes.unwrap_or_default(), at }
    }

    /// Whether a file may have changed since though it says that it did in this second.
    fn is_young(&self, changed: Option<u32>) -> bool {
        // The clock that files are stamped by runs a little behind.
        changed.is_none_or(|changed| changed.saturating_add(1) >= self.at)
    }
}

/// What an index knows.
#[derive(Debug, Default)]
struct Sight {
    folders: Vec<PathBuf>,
    /// To be looked at.
    files: Vec<PathBuf>,
    /// Odd before, and not changed since.
    odd: BTreeMap<PathBuf, u32>,
}

impl Sight {
    fn of(index: &Path, before: Option<&Looked>, learnt: &HashSet<Vec<u8>>) -> Option<Self> {
        let bytes = match fs::read(index) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Sight::default()),
            bytes => bytes.ok()?,
        };
        let odd: HashMap<&[u8], u32> = before
            .iter()
            .flat_map(|before| &before.modes.files)
            .map(|(path, mode)| (path.as_os_str().as_bytes(), *mode))
            .collect();
        let is_open = |entry: &Entry<'_>| {
            before.is_none_or(|before| before.is_young(entry.changed)) || learnt.contains(entry.path)
        };
        let mut sight = Sight::default();
        let mut folder = Vec::new();
        index::each(&bytes, |entry| {
            let end = entry.path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            if folder != entry.path[..end] {
                folder.clear();
                folder.extend(&entry.path[..end]);
                sight.enter(Path::new(OsStr::from_bytes(&folder)));
            }
            let path = || PathBuf::from(OsStr::from_bytes(entry.path));
            match odd.get(entry.path) {
                _ if entry.mode == LINK => {}
                _ if is_open(entry) => sight.files.push(path()),
                Some(mode) => drop(sight.odd.insert(path(), *mode)),
                None => {}
            }
            Some(())
        })?;
        Some(sight)
    }

    /// The paths of an index are sorted: all that is in one folder stands together.
    fn enter(&mut self, folder: &Path) {
        let is_in = |folder: &Path| self.folders.last().is_some_and(|last| last.starts_with(folder));
        let new: Vec<&Path> =
            folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !is_in(folder)).collect();
        self.folders.extend(new.into_iter().rev().map(Path::to_owned));
    }

    fn look(self, workspace: &Path) -> Option<Modes> {
        let root = File::open(workspace).ok()?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = self.files.len().div_ceil(threads).max(FEW);
        let look = |part: &[PathBuf]| -> Vec<(PathBuf, u32)> {
            let odd = |path: &PathBuf| {
                let mode = mode_at(&root, path).filter(|mode| !is_usual(*mode))?;
                Some((path.clone(), mode))
            };
            part.iter().filter_map(odd).collect()
        };
        let files = std::thread::scope(|scope| {
            let looks: Vec<_> = self.files.chunks(share).map(|part| scope.spawn(|| look(part))).collect();
            let looked: Result<Vec<_>, _> = looks.into_iter().map(|look| look.join()).collect();
            looked.map(|looked| looked.into_iter().flatten().chain(self.odd).collect())
        });
        let folders = self.folders.into_iter().filter_map(|folder| {
            let mode = mode_at(&root, &folder).filter(|mode| !matches!(mode, 0o755 | 0o775))?;
            Some((folder, mode))
        });
        Some(Modes::bounded(files.ok()?, folders.collect()))
    }
}

impl Modes {
    fn bounded(mut files: BTreeMap<PathBuf, u32>, mut folders: BTreeMap<PathBuf, u32>) -> Self {
        let is_fit = |files: &BTreeMap<_, _>, folders: &BTreeMap<_, _>| files.len() + folders.len() <= MOST;
        if is_fit(&files, &folders) {
            return Modes { reach: Reach::All, files, folders };
        }
        files.retain(|_, mode| is_private(*mode));
        folders.retain(|_, mode| is_private(*mode));
        if is_fit(&files, &folders) {
            return Modes { reach: Reach::Private, files, folders };
        }
        let folders: BTreeMap<_, _> = folders.into_iter().take(MOST / 2).collect();
        let files = files.into_iter().take(MOST - folders.len()).collect();
        Modes { reach: Reach::Some, files, folders }
    }

    /// What each of these commits says, by one git for all of them.
    pub(super) async fn of(git: &Git, commits: &[&str], halt: &Halt) -> Result<Vec<Self>, CheckpointError> {
        let objects = objects(git, commits, halt).await?;
        let modes = |(commit, object): (&&str, Vec<u8>)| match About::of(&String::from_utf8_lossy(&object)) {
            Some(about) => Ok(about.modes),
            None => Err(CheckpointError::Unknown { commit: (*commit).to_owned() }),
        };
        commits.iter().zip(objects).map(modes).collect()
    }

    /// Of a file.
    pub(super) fn mode(&self, path: &Path) -> Mode {
        match (self.files.get(path), self.reach) {
            (Some(mode), _) => Mode::Odd(*mode),
            (None, Reach::All) => Mode::Usual,
            (None, Reach::Some) => Mode::Few,
            (None, Reach::Private | Reach::Nothing) => Mode::Unknown,
        }
    }

    /// Of a folder, if it is not the usual one.
    pub(super) fn folder(&self, path: &Path) -> Option<u32> {
        let few = Some(0o700).filter(|_| self.reach == Reach::Some);
        self.folders.get(path).copied().or(few)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, u32)> {
        self.files.iter().map(|(path, mode)| (path.as_path(), *mode))
    }

    pub(super) fn folders(&self) -> impl DoubleEndedIterator<Item = (&Path, u32)> {
        self.folders.iter().map(|(path, mode)| (path.as_path(), *mode))
    }

    /// The files that are there in both, as far as these know, and whose modes differ.
    pub(super) fn differing<'a>(&'a self, other: &'a Modes) -> impl Iterator<Item = &'a Path> {
        let others = other.files.keys().filter(|path| !self.files.contains_key(*path));
        let all = self.files.keys().chain(others).map(PathBuf::as_path);
        all.filter(|path| self.mode(path).differs(other.mode(path)))
    }

    /// For the end of a commit's message.
    pub(super) fn trailers(&self) -> String {
        let reach = match self.reach {
            Reach::Nothing => return String::new(),
            Reach::Some => "some",
            Reach::Private => "private",
            Reach::All => "all",
        };
        let files = self.files.iter().map(|(path, mode)| format!("{TRAILER}{mode:o} {}\n", encoded(path)));
        let folders = self.folders.iter().map(|(path, mode)| format!("{TRAILER}{mode:o} {}/\n", encoded(path)));
        std::iter::once(format!("{REACH}{reach}\n")).chain(files).chain(folders).collect()
    }

    /// Takes in a line of a message, if it is about modes.
    pub(super) fn take(&mut self, line: &str) {
        if let Some(reach) = line.strip_prefix(REACH) {
            self.reach = match reach {
                "all" => Reach::All,
                "private" => Reach::Private,
                "some" => Reach::Some,
                _ => Reach::Nothing,
            };
        }
        let told = line.strip_prefix(TRAILER).and_then(|told| told.split_once(' '));
        let Some((Ok(mode), path)) = told.map(|(mode, path)| (u32::from_str_radix(mode, 8), path)) else { return };
        match path.strip_suffix('/') {
            Some(folder) => self.folders.insert(path_of(folder), mode & 0o777),
            None => self.files.insert(path_of(path), mode & 0o777),
        };
    }
}

/// As the system has it, which is narrower on some.
#[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions, reason = "it is not on every system")]
pub(super) fn raw(mode: u32) -> rustix::fs::Mode {
    rustix::fs::Mode::from_raw_mode(mode.try_into().unwrap_or(0o600))
}

/// The mode of what was looked at.
#[allow(clippy::useless_conversion, reason = "it is narrower on some systems")]
pub(super) fn mode_of(about: &rustix::fs::Stat) -> u32 {
    u32::from(about.st_mode) & 0o7777
}

/// `None` if it cannot be looked at.
fn mode_at(root: &File, path: &Path) -> Option<u32> {
    let found = rustix::fs::statat(root, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(mode_of(&found) & 0o777)
}

fn seconds(since: Duration) -> u32 {
    u32::try_from(since.as_secs()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(count: usize, mode: u32) -> BTreeMap<PathBuf, u32> {
        (0..count).map(|n| (PathBuf::from(format!("{mode:o} {n}")), mode)).collect()
    }

    #[test]
    fn a_commit_gives_back_the_modes_it_was_told() {
        let folders = BTreeMap::from([(PathBuf::from("a folder"), 0o700)]);
        let modes = Modes::bounded(many(3, 0o600).into_iter().chain(many(3, 0o444)).collect(), folders);
        let mut read = Modes::default();
        modes.trailers().lines().for_each(|line| read.take(line));
        assert_eq!(read, modes);
        assert_eq!(read.mode(Path::new("600 1")), Mode::Odd(0o600));
        assert_eq!((read.mode(Path::new("x")), read.folder(Path::new("a folder"))), (Mode::Usual, Some(0o700)));
    }

    #[test]
    fn of_too_many_those_that_few_may_read_are_named_and_the_rest_is_taken_for_such() {
        let private = Modes::bounded(many(3, 0o640).into_iter().chain(many(MOST, 0o666)).collect(), BTreeMap::new());
        assert_eq!((private.reach, private.files.len()), (Reach::Private, 3));
        assert_eq!(private.mode(Path::new("666 1")), Mode::Unknown);
        let some = Modes::bounded(many(MOST + 1, 0o600), BTreeMap::new());
        assert_eq!((some.reach, some.files.len()), (Reach::Some, MOST));
        assert_eq!(some.mode(Path::new("another")), Mode::Few);
        assert_eq!(private.differing(&some).count(), 0, "what is not known differs from nothing");
    }
}
