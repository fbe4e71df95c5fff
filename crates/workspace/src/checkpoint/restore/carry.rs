//! One restore, on a thread that may block.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Access, AtFlags, accessat, unlinkat};
use rustix::io::Errno;
use tolka_facts::Hash;

use super::blobs::{Blobs, Content};
use super::lasting;
use super::part::{Part, set_mode};
use super::stays::Stays;
use super::there::{Identity, There};
use super::trail::Trail;
use super::waiting::Waiting;
use crate::checkpoint::CheckpointError;
use crate::checkpoint::changes::Entry;
use crate::checkpoint::error::is_full;
use crate::checkpoint::git::Git;
use crate::checkpoint::modes::Modes;
use crate::files::part_name;
use crate::folder::{Folder, Missing};

/// A path that changes.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) path: PathBuf,
    pub(super) now: Option<Entry>,
    pub(super) target: Option<Entry>,
}

impl Task {
    pub(super) fn removes(&self) -> bool {
        self.target.is_none()
    }

    /// What it is now and shall be, out of blobs that were asked for by [`Carry::ask`]; `None` if it shall not be.
    pub(super) fn contents(&self, blobs: &mut Blobs) -> Result<Option<(Option<Content>, Content)>, CheckpointError> {
        let mut contents = self.blobs().map(|entry| blobs.next(entry)).collect::<Result<Vec<_>, _>>()?;
        let (Some(entry), Some(last)) = (&self.target, contents.pop()) else { return Ok(None) };
        let now = self.now.as_ref().map(|now| Content {
            kind: now.kind,
            mode: now.mode,
            bytes: contents.pop().map_or_else(|| last.bytes.clone(), |content| content.bytes),
        });
        Ok(Some((now, Content { kind: entry.kind, mode: entry.mode, bytes: last.bytes })))
    }

    fn blobs(&self) -> impl Iterator<Item = &Entry> {
        let is_same = matches!((&self.now, &self.target), (Some(now), Some(target)) if now.blob == target.blob);
        [self.now.as_ref(), self.target.as_ref().filter(|_| !is_same)].into_iter().flatten()
    }
}

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// It is not what the plan was made for.
    Moved,
    /// Something is there, where the plan knew of nothing.
    Met,
    /// The same, and it is nothing that a snapshot could hold.
    Unsaved,
    Refused,
    /// There is no room for it.
    NoRoom,
}

pub(super) struct Carry<'a> {
    pub(super) root: &'a Folder,
    git: &'a Git,
    /// The same for every try of a plan.
    key: String,
    stop: Arc<AtomicBool>,
    /// Of the target.
    modes: &'a Modes,
    trail: Trail<'a>,
    /// Whole files that wait for their places.
    parts: Waiting,
    fates: Vec<(PathBuf, Fate)>,
}

/// A path as it was found, with what it may be.
pub(super) struct Seen<'a> {
    pub(super) folder: Rc<OwnedFd>,
    pub(super) name: &'a OsStr,
    pub(super) there: There,
}

impl Seen<'_> {
    /// Why it is not to be written over, if so.
    pub(super) fn hinders(&self, now: Option<&Content>, target: &Content) -> io::Result<Option<Fate>> {
        // One that a turn closed is opened again; whatever else is closed, somebody wants to be so.
        if !now.is_some_and(|now| now.mode.differs(target.mode)) {
            may_write(self)?;
        }
        Ok(match (self.there.is(now)?, now, &self.there) {
            (true, ..) => None,
            (false, Some(_), _) => Some(Fate::Moved),
            (false, None, There::Other) => Some(Fate::Unsaved),
            (false, None, _) => Some(Fate::Met),
        })
    }
}

impl<'a> Carry<'a> {
    pub(super) fn new(
        root: &'a Folder,
        git: &'a Git,
        key: String,
        stop: Arc<AtomicBool>,
        modes: &'a Modes,
    ) -> Result<Self, CheckpointError> {
        let trail = trail(root, modes)?;
        Ok(Carry { root, git, key, stop, modes, trail, parts: Waiting::default(), fates: Vec::new() })
    }

    /// What became of each.
    pub(super) fn out(mut self, tasks: &[Task], stays: &Stays) -> Result<Vec<(PathBuf, Fate)>, CheckpointError> {
        let (removals, writings): (Vec<&Task>, Vec<&Task>) = tasks.iter().partition(|task| task.removes());
        // First what may stand in the way of others.
        self.remove(&removals)?;
        self.remove_folders(stays);
        self.trail = trail(self.root, self.modes)?;
        self.write(&writings)?;
        self.take_back_folders();
        let done = self.fates.iter().filter(|(_, fate)| *fate == Fate::Done).map(|(path, _)| path.as_path());
        lasting::sync(self.root, &mut self.trail, done).map_err(CheckpointError::storage("."))?;
        Ok(self.fates)
    }

    fn remove(&mut self, tasks: &[&Task]) -> Result<(), CheckpointError> {
        let mut blobs = self.ask(tasks)?;
        for task in tasks {
            let now = task.now.as_ref().map(|entry| blobs.next(entry)).transpose()?;
            self.go_on()?;
            let fate = self.remove_one(&task.path, now.as_ref()).unwrap_or_else(|error| refused(&task.path, &error));
            self.fates.push((task.path.clone(), fate));
        }
        Ok(())
    }

    fn remove_one(&mut self, path: &Path, now: Option<&Content>) -> io::Result<Fate> {
        let seen = match self.see(path, Missing::Refused) {
            // Where no folder is, no file is.
            Err(error) if is_absent(&error) => return Ok(Fate::Done),
            seen => seen?,
        };
        if matches!(seen.there, There::Nothing | There::Folder) {
            return Ok(Fate::Done);
        }
        if !seen.there.is(now)? {
            return Ok(Fate::Moved);
        }
        may_write(&seen)?;
        if !Identity::is_still(seen.there.identity(), &seen.folder, seen.name) {
            return Ok(Fate::Moved);
        }
        unlinkat(&*seen.folder, seen.name, AtFlags::empty())?;
        Ok(Fate::Done)
    }

    /// Folders in which nothing is left by this restore, from the innermost out.
    fn remove_folders(&mut self, stays: &Stays) {
        let mut folders = BTreeSet::new();
        for (path, _) in self.fates.iter().filter(|(_, fate)| *fate == Fate::Done) {
            folders.extend(path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()));
        }
        let folders: Vec<PathBuf> = folders.into_iter().rev().map(Path::to_owned).collect();
        self.remove_empty(&folders, stays);
    }

    /// Only what is empty can be removed so.
    fn remove_empty(&mut self, folders: &[PathBuf], stays: &Stays) {
        for folder in folders {
            if let Ok((above, name)) = self.trail.to(folder, Missing::Refused)
                && !stays.has(folder, &above, name)
            {
                let _ = unlinkat(&*above, name, AtFlags::REMOVEDIR);
            }
        }
    }

    /// Folders that were made for files which could not be written.
    fn take_back_folders(&mut self) {
        let made: Vec<PathBuf> = std::mem::take(&mut self.trail.made).into_iter().rev().collect();
        self.remove_empty(&made, &Stays::default());
    }

    fn write(&mut self, tasks: &[&Task]) -> Result<(), CheckpointError> {
        let mut blobs = self.ask(tasks)?;
        for task in tasks {
            let Some((now, target)) = task.contents(&mut blobs)? else { continue };
            self.go_on()?;
            match self.write_one(&task.path, now.as_ref(), &target) {
                Ok(Some(fate)) => self.fates.push((task.path.clone(), fate)),
                Ok(None) => {}
                Err(error) => self.fates.push((task.path.clone(), refused(&task.path, &error))),
            }
            if self.parts.is_full() {
                self.put();
            }
        }
        self.put();
        Ok(())
    }

    /// `None`: it waits for its place.
    fn write_one(&mut self, path: &Path, now: Option<&Content>, target: &Content) -> io::Result<Option<Fate>> {
        let missing = if now.is_none() { Missing::Made } else { Missing::Refused };
        let mut seen = match self.see(path, missing) {
            Err(error) if is_absent(&error) => return Ok(Some(Fate::Moved)),
            seen => seen?,
        };
        let part = self.part(seen.name);
        forget(&seen.folder, &part)?;
        if seen.there.is(Some(target))? {
            return Ok(Some(Fate::Done));
        }
        if now.is_none() && matches!(seen.there, There::Folder) && is_removed(&seen)? {
            seen.there = There::Nothing;
        }
        if let Some(fate) = seen.hinders(now, target)? {
            return Ok(Some(fate));
        }
        if let (There::File(file, _), Some(now)) = (&seen.there, now)
            && now.is_same_but_mode(target)
        {
            set_mode(file, target)?;
            return Ok(Some(Fate::Done));
        }
        let Seen { folder, name, there } = seen;
        let part = Part::write((folder, name), &part, target, &there)?;
        self.parts.push(path, part);
        Ok(None)
    }

    /// Gives all that wait their places.
    fn put(&mut self) {
        let synced = self.parts.sync(self.root);
        for (path, part) in std::mem::take(&mut self.parts).all {
            let put = match &synced {
                Ok(()) => part.put(),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            let fate = match put {
                Ok(true) => Fate::Done,
                Ok(false) => Fate::Moved,
                Err(error) => refused(&path, &error),
            };
            self.fates.push((path, fate));
        }
    }

    pub(super) fn see<'p>(&mut self, path: &'p Path, missing: Missing) -> io::Result<Seen<'p>> {
        let (folder, name) = self.trail.to(path, missing)?;
        let there = There::at(&folder, name)?;
        Ok(Seen { folder, name, there })
    }

    fn part(&self, name: &OsStr) -> OsString {
        let hash = Hash::of(&[self.key.as_bytes(), name.as_bytes()].concat());
        part_name(hash.as_str().get(..32).unwrap_or_default()).into()
    }

    pub(super) fn ask(&self, tasks: &[&Task]) -> Result<Blobs, CheckpointError> {
        let names = tasks.iter().flat_map(|task| task.blobs()).map(|entry| format!("{}\n", entry.blob)).collect();
        Blobs::ask(self.git, names)
    }

    pub(super) fn go_on(&self) -> Result<(), CheckpointError> {
        if self.stop.load(Ordering::Relaxed) { Err(CheckpointError::Stopped) } else { Ok(()) }
    }
}

fn trail<'a>(root: &Folder, modes: &'a Modes) -> Result<Trail<'a>, CheckpointError> {
    Trail::new(root, modes).map_err(|error| CheckpointError::Storage { path: ".".into(), error: error.into() })
}

/// What a try that was killed left.
fn forget(folder: &OwnedFd, part: &OsStr) -> io::Result<()> {
    match unlinkat(folder, part, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        forgotten => Ok(forgotten?),
    }
}

/// A folder with nothing in it is in no snapshot, and nothing is lost with it.
fn is_removed(seen: &Seen<'_>) -> io::Result<bool> {
    match unlinkat(&*seen.folder, seen.name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A rename would not care that the file itself is not to be written.
pub(super) fn may_write(seen: &Seen<'_>) -> io::Result<()> {
    match seen.there {
        There::File(..) => Ok(accessat(&*seen.folder, seen.name, Access::WRITE_OK, AtFlags::EACCESS)?),
        There::Nothing | There::Link(..) | There::Folder | There::Other => Ok(()),
    }
}

pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR))
}

pub(super) fn refused(path: &Path, error: &io::Error) -> Fate {
    tracing::warn!(path = %path.display(), %error, "a file could not be restored");
    if is_full(error) { Fate::NoRoom } else { Fate::Refused }
}
