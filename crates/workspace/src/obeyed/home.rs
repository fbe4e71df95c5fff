//! Repositories that a command has moved, found by the folders that were held open, and brought back.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, Stat, fstat, openat, statat};

use super::Obeyed;
use crate::folder::{Place, THROUGH};

/// The folder of a repository, where it belongs.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    held: OwnedFd,
}

/// A repository that is not where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub repository: PathBuf,
    /// `None`: it is gone, with all that was in it, or nobody can say where it is.
    pub to: Option<PathBuf>,
}

impl Home {
    /// `None`: no folder is there.
    pub(super) fn new(path: &Path, place: &Place) -> Option<Self> {
        let held = openat(&place.folder, &place.name, THROUGH, Mode::empty()).ok()?;
        Some(Home { path: path.to_owned(), held })
    }

    fn is(&self, other: &rustix::io::Result<Stat>) -> bool {
        let same = |own: &Stat, other: &Stat| (own.st_dev, own.st_ino) == (other.st_dev, other.st_ino);
        matches!((fstat(&self.held), other), (Ok(own), Ok(other)) if same(&own, other))
    }

    /// Where the folder is now, as the kernel knows it.
    fn now(&self) -> Option<PathBuf> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.held.as_raw_fd())).ok()?;
        self.is(&statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW)).then_some(path)
    }
}

impl Obeyed {
    /// The repositories of the workspace that are not where they were. Blocks.
    pub fn moved(&self) -> Vec<Moved> {
        let is_away = |home: &&Home| {
            let there = self.place(&home.path);
            !there.is_ok_and(|place| home.is(&statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW)))
        };
        let mut moved: Vec<Moved> = Vec::new();
        for home in self.homes.iter().filter(is_away) {
            // What is in another one that moved went with it, and comes back with it.
            if !moved.iter().any(|outer| home.path.starts_with(&outer.repository)) {
                moved.push(Moved { repository: home.path.clone(), to: home.now() });
            }
        }
        moved
    }

    /// Moves it back. What took its place is then where it was found. Blocks.
    pub fn bring_home(&self, moved: &Moved) -> io::Result<()> {
        let to = moved.to.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let home = self.homes.iter().find(|home| home.path == moved.repository).ok_or(io::ErrorKind::NotFound)?;
        // The kernel knows no links; the workspace may be called by one.
        let real = |root: &Path| root.canonicalize().ok();
        let beneath = |root: &Path| Some(root.join(to.strip_prefix(real(root)?).ok()?));
        let from = self.roots.iter().find_map(|(root, _)| beneath(root)).ok_or(io::ErrorKind::CrossesDevices)?;
        let (from, place) = (self.place(&from)?, self.place(&home.path)?);
        carry(&from, &place)?;
        match home.is(&statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW)) {
            true => Ok(()),
            false => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }
}

#[cfg(target_os = "linux")]
fn carry(from: &Place, to: &Place) -> rustix::io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    use rustix::io::Errno;
    let carry = |how| renameat_with(&from.folder, &from.name, &to.folder, &to.name, how);
    match carry(RenameFlags::NOREPLACE) {
        Err(Errno::EXIST | Errno::NOTEMPTY) => carry(RenameFlags::EXCHANGE),
        carried => carried,
    }
}

#[cfg(not(target_os = "linux"))]
fn carry(_: &Place, _: &Place) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOSYS)
}
