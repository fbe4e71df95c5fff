//! What is at a path, and whether it is what a snapshot says.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::blobs::Content;
use crate::checkpoint::changes::Kind;
use crate::checkpoint::modes::mode_of;
use crate::files::holds;
use crate::folder::READ;

pub(super) enum There {
    Nothing,
    File(File, Stat),
    Link(Vec<u8>, Stat),
    Folder,
    /// A pipe, a socket or a device.
    Other,
}

/// It, and not another that took its place, nor the same one with something else in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    inode: (i128, i128),
    size: i128,
    modified: (i128, i128),
    changed: (i128, i128),
    /// How many names it has.
    links: u64,
}

impl From<&Stat> for Identity {
    // Wide enough for what any system has there.
    fn from(about: &Stat) -> Self {
        Identity {
            inode: (about.st_dev.into(), about.st_ino.into()),
            size: about.st_size.into(),
            modified: (about.st_mtime.into(), about.st_mtime_nsec.into()),
            changed: (about.st_ctime.into(), about.st_ctime_nsec.into()),
            #[allow(clippy::useless_conversion, reason = "it is narrower on some systems")]
            links: about.st_nlink.into(),
        }
    }
}

impl There {
    pub(super) fn at(folder: &OwnedFd, name: &OsStr) -> io::Result<Self> {
        let about = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(There::Nothing),
            about => about?,
        };
        match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => {
                let file = openat(folder, name, READ | OFlags::NOFOLLOW, Mode::empty())?;
                let about = fstat(&file)?;
                match FileType::from_raw_mode(about.st_mode) {
                    FileType::RegularFile => Ok(There::File(file.into(), about)),
                    _ => Ok(There::Other),
                }
            }
            FileType::Symlink => Ok(There::Link(readlinkat(folder, name, Vec::new())?.into_bytes(), about)),
            FileType::Directory => Ok(There::Folder),
            _ => Ok(There::Other),
        }
    }

    /// Whether it is what a snapshot has; `None`: nothing, where a folder without files is nothing, too.
    pub(super) fn is(&self, content: Option<&Content>) -> io::Result<bool> {
        match (self, content) {
            (There::Nothing, None) => Ok(true),
            (There::File(file, about), Some(content)) => {
                let kind = if about.st_mode & 0o100 == 0 { Kind::File } else { Kind::Program };
                let is_long = u64::try_from(about.st_size).is_ok_and(|size| size == content.bytes.len() as u64);
                if kind != content.kind || !content.mode.is(mode_of(about)) || !is_long {
                    return Ok(false);
                }
                let mut file: &File = file;
                file.rewind()?;
                holds(file, &content.bytes)
            }
            (There::Link(target, _), Some(content)) => Ok(content.kind == Kind::Link && *target == *content.bytes),
            _ => Ok(false),
        }
    }

    pub(super) fn identity(&self) -> Option<Identity> {
        match self {
            There::File(_, about) | There::Link(_, about) => Some(about.into()),
            There::Nothing | There::Folder | There::Other => None,
        }
    }
}

impl Identity {
    /// Whether what is at a place is what was there. Of a file with several names another may have gone meanwhile, by
    /// this very restore, which is a change of the file as well.
    pub(super) fn is_still(was: Option<Self>, folder: &OwnedFd, name: &OsStr) -> bool {
        let is = Identity::at(folder, name);
        match (was, is) {
            (Some(was), Some(is)) if was.links > 1 => Identity { changed: is.changed, links: is.links, ..was } == is,
            (was, is) => was == is,
        }
    }

    /// `None`: nothing is there, or it cannot be looked at.
    fn at(folder: &OwnedFd, name: &OsStr) -> Option<Self> {
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(Identity::from)
    }
}
