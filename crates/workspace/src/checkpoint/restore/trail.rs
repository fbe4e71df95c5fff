//! Folders beneath the workspace, each opened by its name in the one above: no link is followed, and nothing leads out.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, chmodat, mkdirat, openat};
use rustix::io::Errno;

use crate::checkpoint::modes::{Modes, raw};
use crate::folder::{Folder, Missing, THROUGH, is_git};

/// The way to the folder that was last asked for. Paths come in their order, so the next is near.
pub(super) struct Trail<'a> {
    /// For folders that are made.
    modes: &'a Modes,
    root: Rc<OwnedFd>,
    open: Vec<(OsString, Rc<OwnedFd>)>,
    /// Folders that were not there, outermost first.
    pub(super) made: Vec<PathBuf>,
}

impl<'m> Trail<'m> {
    pub(super) fn new(root: &Folder, modes: &'m Modes) -> rustix::io::Result<Self> {
        let root = openat(root, ".", THROUGH | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Trail { modes, root: Rc::new(root), open: Vec::new(), made: Vec::new() })
    }

    /// Where a path is to be found, and its name there.
    pub(super) fn to<'a>(&mut self, path: &'a Path, missing: Missing) -> rustix::io::Result<(Rc<OwnedFd>, &'a OsStr)> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        if path.components().any(|part| !matches!(part, Component::Normal(name) if !is_git(name))) {
            return Err(Errno::PERM);
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let names: Vec<&OsStr> = folder.iter().collect();
        let same = self.open.iter().zip(&names).take_while(|((open, _), name)| open == *name).count();
        self.open.truncate(same);
        for depth in same..names.len() {
            let at = self.open.last().map_or(&self.root, |(_, folder)| folder).clone();
            let opened = match openat(&*at, names[depth], THROUGH, Mode::empty()) {
                Err(Errno::NOENT) if missing == Missing::Made => {
                    self.make(&at, &names[..=depth])?;
                    openat(&*at, names[depth], THROUGH, Mode::empty())?
                }
                // What some systems say of a link.
                Err(Errno::LOOP) => return Err(Errno::NOTDIR),
                opened => opened?,
            };
            self.open.push((names[depth].to_owned(), Rc::new(opened)));
        }
        Ok((self.open.last().map_or(&self.root, |(_, folder)| folder).clone(), name))
    }

    fn make(&mut self, at: &OwnedFd, names: &[&OsStr]) -> rustix::io::Result<()> {
        let Some(name) = names.last() else { return Ok(()) };
        let path: PathBuf = names.iter().collect();
        // Something is to be written into it.
        let odd = self.modes.folder(&path).map(|mode| raw(mode | 0o700));
        match mkdirat(at, *name, odd.unwrap_or(Mode::from_raw_mode(0o777))) {
            // Somebody else made it meanwhile.
            Err(Errno::EXIST) => return Ok(()),
            made => made?,
        }
        self.made.push(path);
        odd.map_or(Ok(()), |mode| chmodat(at, *name, mode, AtFlags::empty()))
    }
}
