//! A file or link that is whole and waits beside its place.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{AtFlags, OFlags, fchmod, fstat, linkat, openat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::blobs::Content;
use super::there::{Identity, There};
use crate::checkpoint::changes::Kind;
use crate::checkpoint::modes::{mode_of, raw};
use crate::files::take_after;

/// Dropped before it is in its place, it is taken away.
pub(super) struct Part {
    folder: Rc<OwnedFd>,
    name: OsString,
    place: OsString,
    /// What it takes the place of; `None`: nothing.
    over: Option<Identity>,
    /// Held open for a while, to be waited for until it is on the disk. A link has none.
    pub(super) file: Option<File>,
    pub(super) size: usize,
    is_placed: bool,
}

impl Part {
    /// `name` is the same for every try, so that one which was killed leaves nothing that the next does not remove.
    pub(super) fn write(
        (folder, place): (Rc<OwnedFd>, &OsStr),
        name: &OsStr,
        content: &Content,
        there: &There,
    ) -> io::Result<Self> {
        let part = |folder, file| Part {
            folder,
            name: name.to_owned(),
            place: place.to_owned(),
            over: there.identity(),
            file,
            size: content.bytes.len(),
            is_placed: false,
        };
        if content.kind == Kind::Link {
            symlinkat(&*content.bytes, &*folder, name)?;
            return Ok(part(folder, None));
        }
        let mode = match there {
            // Nobody else may read what takes the place of a file that is private, not even for a moment.
            There::File(..) => 0o600,
            _ => content.mode.first(content.kind),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file: File = openat(&*folder, name, flags, raw(mode))?.into();
        let mut part = part(folder, None);
        file.write_all(&content.bytes)?;
        if let There::File(_, about) = there {
            take_after(&file, about)?;
        }
        set_mode(&file, content)?;
        part.file = Some(file);
        Ok(part)
    }

    /// Whether it could be put there: not if what is there is no longer what was looked at.
    pub(super) fn put(mut self) -> io::Result<bool> {
        if !Identity::is_still(self.over, &self.folder, &self.place) {
            return Ok(false);
        }
        match self.over {
            Some(_) => renameat(&*self.folder, &self.name, &*self.folder, &self.place)?,
            None => match self.put_new() {
                Err(Errno::EXIST) => return Ok(false),
                put => put?,
            },
        }
        self.is_placed = true;
        Ok(true)
    }

    /// The kernel looks and puts in one.
    fn put_new(&self) -> rustix::io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{RenameFlags, renameat_with};
            match renameat_with(&*self.folder, &self.name, &*self.folder, &self.place, RenameFlags::NOREPLACE) {
                // Not every file system knows how.
                Err(Errno::INVAL | Errno::NOSYS) => {}
                renamed => return renamed,
            }
        }
        linkat(&*self.folder, &self.name, &*self.folder, &self.place, AtFlags::empty())?;
        unlinkat(&*self.folder, &self.name, AtFlags::empty())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = unlinkat(&*self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// As it was saved, as far as that is known.
pub(super) fn set_mode(file: &File, content: &Content) -> io::Result<()> {
    let mode = mode_of(&fstat(file)?);
    let wanted = content.mode.wanted(content.kind, mode);
    if wanted != mode {
        fchmod(file, raw(wanted))?;
    }
    Ok(())
}
