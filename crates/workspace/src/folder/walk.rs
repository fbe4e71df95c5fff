//! Looking a path up name by name: where the kernel has no `openat2`, and for writing, which must know the real names.
//!
//! No step follows a link, so nothing that is swapped in leads out. A link that is met is put into the path as text and
//! the look-up begins anew from the root. A `..` in a link takes one name away once all before it are known as folders.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, readlinkat, statat, unlinkat};
use rustix::io::Errno;

use super::{Folder, LastLink, READ, relative};

/// As many as Linux follows.
const MOST_LINKS: usize = 40;

/// A folder that is only gone through need not be readable.
#[cfg(target_os = "linux")]
pub(crate) const THROUGH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(crate) const THROUGH: OFlags = READ.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// What is done about folders on the way that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Made,
    Refused,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum WalkError {
    /// It is, or is in, a repository's own folder.
    Git,
    Failed(Errno),
}

impl From<Errno> for WalkError {
    fn from(error: Errno) -> Self {
        WalkError::Failed(error)
    }
}

/// A name in a folder that is held open, where something may be put or taken away.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: OwnedFd,
    pub(crate) name: OsString,
    made: Made,
}

/// Folders that were made on the way, outermost first. Dropped, they are taken away again if nothing is in them.
#[derive(Debug, Default)]
struct Made(Vec<(OwnedFd, OsString)>);

impl Place {
    /// Keeps the folders that were made for it.
    pub(crate) fn keep(mut self) {
        self.made.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for (folder, name) in self.0.iter().rev() {
            // One that somebody uses by now stays.
            let _ = unlinkat(folder, name, AtFlags::REMOVEDIR);
        }
    }
}

impl Folder {
    /// Where a path leads, for writing: never into a `.git` or another folder of a repository, by whatever name or link. With [`LastLink::Refused`] a link
    /// at its end is the place itself.
    pub(crate) fn place(&self, path: &str, last: LastLink, missing: Missing) -> Result<Place, WalkError> {
        let names = names(&relative(path).ok_or(Errno::XDEV)?);
        let mut walk =
            Walk { root: self.0.as_fd(), missing, is_git: |name| is_git(name), is_whole, made: Made::default() };
        let (folder, mut names) = walk.parent(names, last)?;
        let name = names.pop().ok_or(Errno::ISDIR)?;
        Ok(Place { folder, name, made: walk.made })
    }

    /// Where a path leads that goes through no link, in a repository's own folder too.
    pub(crate) fn place_itself(&self, path: &Path) -> rustix::io::Result<Place> {
        let mut names = names(path);
        let name = names.pop().ok_or(Errno::ISDIR)?;
        let mut folder = self.0.try_clone().map_err(|_| Errno::MFILE)?;
        for name in names {
            folder = openat(&folder, name, THROUGH, Mode::empty())?;
        }
        Ok(Place { folder, name, made: Made::default() })
    }
}

/// A repository's own folder or file, on file systems that do not care for case too.
pub(crate) fn is_git(name: &OsStr) -> bool {
    name.as_bytes().eq_ignore_ascii_case(b".git")
}

/// Whether git takes a folder for a repository, whatever it is called, if it has what this says.
pub(crate) fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

fn is_whole(folder: &OwnedFd) -> bool {
    is_repository(|name| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
}

/// Opens for reading. The path is [`relative`].
pub(super) fn open(root: BorrowedFd<'_>, path: &Path, last: LastLink) -> rustix::io::Result<OwnedFd> {
    let mut walk =
        Walk { root, missing: Missing::Refused, is_git: |_| false, is_whole: |_| false, made: Made::default() };
    let (folder, names) = walk.parent(names(path), last).map_err(|error| match error {
        WalkError::Failed(error) => error,
        WalkError::Git => Errno::ACCESS,
    })?;
    let last = names.last().map_or(OsStr::new("."), OsString::as_os_str);
    openat(&folder, last, READ | OFlags::NOFOLLOW, Mode::empty())
}

fn names(path: &Path) -> Vec<OsString> {
    let normal = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        _ => None,
    };
    path.components().filter_map(normal).collect()
}

struct Walk<'a> {
    root: BorrowedFd<'a>,
    missing: Missing,
    is_git: fn(&OsStr) -> bool,
    is_whole: fn(&OwnedFd) -> bool,
    made: Made,
}

enum Step {
    /// The folder that holds the last name.
    There(OwnedFd),
    /// The name at this place is a link.
    Link(usize, OsString),
    /// The name at this place is `..`, and all before it are folders.
    Up(usize),
}

impl Walk<'_> {
    /// The folder of the last name, and the names without links that lead there.
    fn parent(&mut self, mut names: Vec<OsString>, last: LastLink) -> Result<(OwnedFd, Vec<OsString>), WalkError> {
        let mut links = 0;
        loop {
            match self.once(&names, last)? {
                Step::There(folder) => return Ok((folder, names)),
                Step::Up(0) => return Err(Errno::XDEV.into()),
                Step::Up(at) => drop(names.drain(at - 1..=at)),
                Step::Link(..) if links == MOST_LINKS => return Err(Errno::LOOP.into()),
                Step::Link(at, target) => {
                    names = spliced(&names, at, Path::new(&target))?;
                    links += 1;
                }
            }
        }
    }

    fn once(&mut self, names: &[OsString], last: LastLink) -> Result<Step, WalkError> {
        // Before anything is made: all names count, also those behind one that is not there.
        if names.iter().any(|name| (self.is_git)(name)) {
            return Err(WalkError::Git);
        }
        let mut at = self.root.try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        let Some((end, folders)) = names.split_last() else { return Ok(Step::There(at)) };
        for (n, name) in folders.iter().enumerate() {
            if name == ".." {
                return Ok(Step::Up(n));
            }
            at = match openat(&at, name, THROUGH, Mode::empty()) {
                Err(Errno::NOTDIR | Errno::LOOP) => match link(&at, name)? {
                    Some(target) => return Ok(Step::Link(n, target)),
                    None => return Err(Errno::NOTDIR.into()),
                },
                Err(Errno::NOENT) if self.missing == Missing::Made => self.make(at, name)?,
                opened => opened?,
            };
            if (self.is_whole)(&at) {
                return Err(WalkError::Git);
            }
        }
        match last {
            _ if end == ".." => Ok(Step::Up(folders.len())),
            LastLink::Followed => Ok(match link(&at, end)? {
                Some(target) => Step::Link(folders.len(), target),
                None => Step::There(at),
            }),
            LastLink::Refused => Ok(Step::There(at)),
        }
    }

    fn make(&mut self, at: OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
        let is_ours = match mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
            // Somebody else made it meanwhile.
            Err(Errno::EXIST) => false,
            made => made.map(|()| true)?,
        };
        let made = openat(&at, name, THROUGH, Mode::empty());
        if is_ours {
            self.made.0.push((at, name.to_owned()));
        }
        made
    }
}

/// What a link says; `None` for what is no link, or not there.
fn link(folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<Option<OsString>> {
    match readlinkat(folder, name, Vec::new()) {
        Ok(target) => Ok(Some(OsStr::from_bytes(target.as_bytes()).to_owned())),
        Err(Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names with a link's text in its place; an absolute one leads out, as for the kernel.
fn spliced(names: &[OsString], at: usize, target: &Path) -> rustix::io::Result<Vec<OsString>> {
    let mut out = names[..at].to_vec();
    for part in target.components() {
        match part {
            Component::Normal(name) => out.push(name.to_owned()),
            Component::CurDir => {}
            Component::ParentDir => out.push("..".into()),
            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    out.extend_from_slice(&names[at + 1..]);
    Ok(out)
}
