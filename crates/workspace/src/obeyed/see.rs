//! What is at one place.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use tolka_facts::Hash;

use crate::folder::READ;

/// Of one file. Those who write longer ones are told by its size and times.
const MOST: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Says {
    Folder,
    Link(PathBuf),
    /// Whether it can be run, and what is in it.
    File(bool, Hash),
    /// Something that cannot be read, or not whole.
    Other(u64, (i128, i128)),
}

pub(super) struct Seen {
    pub(super) says: Says,
    pub(super) about: Stat,
    /// Of a file.
    pub(super) content: Option<Vec<u8>>,
}

/// `None`: nothing is there. Never waits, should a pipe be there.
pub(super) fn see(folder: &OwnedFd, name: &OsStr) -> Option<Seen> {
    let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let seen = match FileType::from_raw_mode(about.st_mode) {
        FileType::Directory => Some(Seen { says: Says::Folder, about, content: None }),
        FileType::Symlink => readlinkat(folder, name, Vec::new()).ok().map(|target| {
            let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
            Seen { says: Says::Link(target), about, content: None }
        }),
        FileType::RegularFile => file(folder, name),
        _ => None,
    };
    Some(seen.unwrap_or_else(|| {
        let size = u64::try_from(about.st_size).unwrap_or_default();
        let changed = (about.st_ctime.into(), about.st_ctime_nsec.into());
        Seen { says: Says::Other(size, changed), about, content: None }
    }))
}

fn file(folder: &OwnedFd, name: &OsStr) -> Option<Seen> {
    let file: File = openat(folder, name, READ | OFlags::NOFOLLOW, Mode::empty()).ok()?.into();
    let about = fstat(&file).ok()?;
    let content = content(file)?;
    let says = Says::File(about.st_mode & 0o111 != 0, Hash::of(&content));
    Some(Seen { says, about, content: Some(content) })
}

/// `None` if it cannot be read, or is too long.
pub(super) fn content(file: File) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    file.take(MOST + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= MOST).then_some(content)
}
