//! Putting a whole file in its place, or taking it away.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, Stat, accessat, fchmod, fchown, fstat, linkat, openat, readlinkat,
    renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::FileError;
use crate::folder::{Folder, FolderError, LastLink, Missing, Place, READ, WalkError};

const LEFTOVER: (&str, &str) = (".tolka-", ".part");

/// Such a name that nobody can know before: the system seeds it.
pub(crate) fn any_part_name() -> String {
    part_name(&format!("{:016x}", RandomState::new().hash_one(std::process::id())))
}

/// What a file is called until it is whole. Whoever knows `key` may look for it later.
pub(crate) fn part_name(key: &str) -> String {
    format!("{}{key}{}", LEFTOVER.0, LEFTOVER.1)
}

/// Whether a file of this name was left by a write that was killed in its middle. Nobody needs it.
pub fn is_leftover(name: &str) -> bool {
    name.starts_with(LEFTOVER.0) && name.ends_with(LEFTOVER.1)
}

/// `mode` is for a file that is not there.
pub(super) fn write(
    folder: &Folder,
    path: &str,
    bytes: &[u8],
    before: Option<&[u8]>,
    mode: Option<u32>,
) -> Result<(), FileError> {
    let missing = if before.is_some() { Missing::Refused } else { Missing::Made };
    let place = folder.place(path, LastLink::Followed, missing).map_err(|error| walked(path, error))?;
    let there = there(&place, path)?;
    match (&there, before) {
        (Some(_), None) => return Err(FileError::Exists { path: path.to_owned() }),
        (None, Some(_)) => return Err(FileError::Changed { path: path.to_owned() }),
        // A rename would not care that the file itself is not to be written.
        (Some(_), Some(_)) => accessat(&place.folder, &place.name, Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|error| unwritable(path, error))?,
        (None, None) => {}
    }
    let like = match (&there, mode) {
        (Some((_, about)), _) => Like::File(about),
        (None, Some(mode)) => Like::Mode(mode),
        (None, None) => Like::New,
    };
    let part = Part::new(&place, bytes, like).map_err(|error| unwritable(path, error))?;
    match before {
        None => part.put_new(&place).map_err(|error| match error {
            Errno::EXIST => FileError::Exists { path: path.to_owned() },
            error => unwritable(path, error),
        })?,
        Some(before) => {
            is_still(&place, path, before)?;
            part.put_over(&place).map_err(|error| unwritable(path, error))?;
        }
    }
    place.keep();
    Ok(())
}

pub(super) fn remove(folder: &Folder, path: &str, before: &[u8]) -> Result<(), FileError> {
    let place = folder.place(path, LastLink::Refused, Missing::Refused).map_err(|error| walked(path, error))?;
    // Of a link, what it shows is looked at, and it must show something inside.
    let (file, _) = folder.read(path)?;
    if !holds(file, before).map_err(|error| FolderError::Unreadable { path: path.to_owned(), error })? {
        return Err(FileError::Changed { path: path.to_owned() });
    }
    unlinkat(&place.folder, &place.name, AtFlags::empty()).map_err(|error| match error {
        Errno::NOENT => FileError::Changed { path: path.to_owned() },
        error => unwritable(path, error),
    })
}

pub(super) fn link(folder: &Folder, path: &str) -> Result<Option<PathBuf>, FileError> {
    match folder.place(path, LastLink::Refused, Missing::Refused) {
        Ok(place) => target(&place, path),
        Err(WalkError::Failed(Errno::NOENT | Errno::ISDIR)) => Ok(None),
        Err(error) => Err(walked(path, error)),
    }
}

pub(super) fn remove_link(folder: &Folder, path: &str, expected: &Path) -> Result<(), FileError> {
    let place = folder.place(path, LastLink::Refused, Missing::Refused).map_err(|error| walked(path, error))?;
    if target(&place, path)?.as_deref() != Some(expected) {
        return Err(FileError::Changed { path: path.to_owned() });
    }
    unlinkat(&place.folder, &place.name, AtFlags::empty()).map_err(|error| unwritable(path, error))
}

fn target(place: &Place, path: &str) -> Result<Option<PathBuf>, FileError> {
    match readlinkat(&place.folder, &place.name, Vec::new()) {
        Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()).into())),
        // What it says of anything but a link.
        Err(Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(error) => Err(FolderError::Unreadable { path: path.to_owned(), error: error.into() }.into()),
    }
}

/// The file at a place; `None` if nothing is there, an error for what is no file.
fn there(place: &Place, path: &str) -> Result<Option<(File, Stat)>, FileError> {
    let unreadable = |error: Errno| FolderError::Unreadable { path: path.to_owned(), error: error.into() };
    let found = match openat(&place.folder, &place.name, READ | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        // A link took its place since it was looked up.
        Err(Errno::LOOP) => return Err(FileError::Changed { path: path.to_owned() }),
        // What a socket, and a device without a driver, say.
        Err(Errno::NXIO | Errno::NODEV) => return Err(FolderError::NoContent { path: path.to_owned() }.into()),
        found => found.map_err(unreadable)?,
    };
    let about = fstat(&found).map_err(unreadable)?;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::RegularFile => Ok(Some((found.into(), about))),
        FileType::Directory => Err(FolderError::IsFolder { path: path.to_owned() }.into()),
        _ => Err(FolderError::NoContent { path: path.to_owned() }.into()),
    }
}

fn is_still(place: &Place, path: &str, before: &[u8]) -> Result<(), FileError> {
    let changed = || FileError::Changed { path: path.to_owned() };
    let (file, _) = there(place, path)?.ok_or_else(changed)?;
    match holds(file, before) {
        Ok(true) => Ok(()),
        Ok(false) => Err(changed()),
        Err(error) => Err(FolderError::Unreadable { path: path.to_owned(), error }.into()),
    }
}

/// Whether this is all that is in a file; reads no more than it takes to know.
pub(crate) fn holds(mut file: impl Read, mut expected: &[u8]) -> io::Result<bool> {
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(expected.is_empty()),
            Ok(n) => match expected.strip_prefix(&piece[..n]) {
                Some(rest) => expected = rest,
                None => return Ok(false),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// What a file takes after.
#[derive(Clone, Copy)]
pub(crate) enum Like<'a> {
    File(&'a Stat),
    Mode(u32),
    New,
}

/// A file that is whole and has no place yet. Dropped, it is taken away.
pub(crate) struct Part<'a> {
    folder: &'a OwnedFd,
    name: String,
    is_placed: bool,
}

impl<'a> Part<'a> {
    pub(crate) fn new(place: &'a Place, bytes: &[u8], like: Like<'_>) -> io::Result<Self> {
        // Nobody else may read what takes the place of a file that is private, not even for a moment.
        let mode = Mode::from_raw_mode(if matches!(like, Like::New) { 0o666 } else { 0o600 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = any_part_name();
        let mut file: File = openat(&place.folder, &name, flags, mode)?.into();
        let part = Part { folder: &place.folder, name, is_placed: false };
        file.write_all(bytes)?;
        match like {
            Like::File(about) => take_after(&file, about)?,
            Like::Mode(mode) => fchmod(&file, Mode::from_raw_mode(mode))?,
            Like::New => {}
        }
        file.sync_all()?;
        Ok(part)
    }

    /// Its name until it has its place.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn put_over(mut self, place: &Place) -> io::Result<()> {
        renameat(self.folder, &self.name, &place.folder, &place.name)?;
        self.is_placed = true;
        Ok(())
    }

    /// Only where nothing is.
    pub(crate) fn put_new(mut self, place: &Place) -> rustix::io::Result<()> {
        move_new(self.folder, self.name.as_ref(), &place.name)?;
        self.is_placed = true;
        Ok(())
    }
}

/// Gives what is in a folder another name there, if nothing has that; the kernel looks and puts in one.
pub(crate) fn move_new(folder: &OwnedFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::renameat_with(folder, from, folder, to, rustix::fs::RenameFlags::NOREPLACE) {
        // Not every file system knows how.
        Err(Errno::INVAL | Errno::NOSYS) => {}
        moved => return moved,
    }
    linkat(folder, from, folder, to, AtFlags::empty())?;
    unlinkat(folder, from, AtFlags::empty())
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Mode and owner of the file whose place it takes.
pub(crate) fn take_after(file: &File, like: &Stat) -> io::Result<()> {
    let own = fstat(file)?;
    let (uid, gid) = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
    let mut mode = like.st_mode & 0o7777;
    let is_owned = (own.st_uid, own.st_gid) == (like.st_uid, like.st_gid) || fchown(file, Some(uid), Some(gid)).is_ok();
    if !is_owned {
        // Only root gives files away. A program that acted for its owner must not act for us.
        mode &= 0o1777;
        if fchown(file, None, Some(gid)).is_err() {
            // What the group was let do is not for ours.
            mode &= 0o1707;
        }
    }
    Ok(fchmod(file, Mode::from_raw_mode(mode))?)
}

fn unwritable(path: &str, error: impl Into<io::Error>) -> FileError {
    FileError::Unwritable { path: path.to_owned(), error: error.into() }
}

fn walked(path: &str, error: WalkError) -> FileError {
    let path = path.to_owned();
    match error {
        WalkError::Git => FileError::Git { path },
        WalkError::Failed(Errno::XDEV | Errno::LOOP) => FolderError::Outside { path }.into(),
        WalkError::Failed(Errno::NOENT) => FolderError::NotFound { path }.into(),
        WalkError::Failed(Errno::ISDIR) => FolderError::IsFolder { path }.into(),
        WalkError::Failed(error) => FileError::Unwritable { path, error: error.into() },
    }
}
