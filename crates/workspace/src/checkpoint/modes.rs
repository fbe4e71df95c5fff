//! Who may read and write a file, as far as git does not know: it has two kinds of files, and one that is for its owner
//! alone must not come back open to everybody.
//!
//! A commit names the files and folders whose modes are not what most have. There is an end to what it names: if they
//! are too many, those that everybody may read are not named; if even the others are, whatever is not named comes back
//! for its owner alone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::CheckpointError;
use super::changes::Kind;
use super::contents::objects;
use super::git::{Git, Halt};
use super::index;
use super::left_out::{About, encoded, path_of};

/// Every commit names them anew.
const MOST: usize = 1000;

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

fn is_usual(mode: u32) -> bool {
    matches!(mode & 0o777, 0o644 | 0o664 | 0o755 | 0o775)
}

fn is_private(mode: u32) -> bool {
    mode & 0o004 == 0
}

impl Modes {
    /// Of all files that an index knows, as they are now. Blocks.
    pub(super) fn look(workspace: &Path, index: &Path) -> Self {
        let bytes = match fs::read(index) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Modes { reach: Reach::All, ..Modes::default() };
            }
            bytes => bytes.unwrap_or_default(),
        };
        let Some(known) = index::parse(&bytes) else { return Modes::default() };
        let paths: Vec<(&Path, bool)> =
            known.iter().map(|known| (Path::new(OsStr::from_bytes(&known.path)), known.mode == LINK)).collect();
        let mut folders: BTreeMap<&Path, u32> = BTreeMap::new();
        for (path, _) in &paths {
            for folder in path.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty()) {
                let Place::Vacant(new) = folders.entry(folder) else { break };
                new.insert(mode_at(&workspace.join(folder)).unwrap_or(0o755));
            }
        }
        folders.retain(|_, mode| !matches!(mode, 0o755 | 0o775));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = paths.len().div_ceil(threads).max(1);
        let odd = |(path, is_link): &(&Path, bool)| {
            let mode = if *is_link { None } else { mode_at(&workspace.join(path)) };
            mode.filter(|mode| !is_usual(*mode)).map(|mode| (path.to_path_buf(), mode))
        };
        let files = std::thread::scope(|scope| {
            let looks: Vec<_> =
                paths.chunks(share).map(|part| scope.spawn(move || part.iter().filter_map(odd).collect())).collect();
            let looked: Result<Vec<Vec<_>>, _> = looks.into_iter().map(|look| look.join()).collect();
            looked.map(|looked| looked.into_iter().flatten().collect())
        });
        let folders = folders.into_iter().map(|(folder, mode)| (folder.to_owned(), mode)).collect();
        files.map_or_else(|_| Modes::default(), |files| Modes::bounded(files, folders))
    }

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
fn mode_at(path: &Path) -> Option<u32> {
    fs::symlink_metadata(path).ok().map(|found| found.permissions().mode() & 0o777)
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
