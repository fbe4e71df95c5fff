//! Whole files that wait for their places until they are on the disk.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::part::Part;
use crate::folder::Folder;

/// So many files wait for their places at once, with so many bytes: waiting for the disk is what takes long, and all of
/// them take room beside what they replace.
const MOST: usize = 16_384;
const BYTES: usize = 256 << 20;
/// Each folder of theirs is held open.
const FOLDERS: usize = 256;

/// Up to so many files each is waited for by itself, which is cheaper than to wait for all that anybody wrote.
pub(super) const FEW: usize = 64;
/// The disk takes what is asked for at the same time in one go.
const THREADS: usize = 8;

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) all: Vec<(PathBuf, Part)>,
    folders: HashSet<PathBuf>,
    bytes: usize,
}

impl Waiting {
    pub(super) fn push(&mut self, path: &Path, mut part: Part) {
        if let Some(folder) = path.parent().filter(|folder| !self.folders.contains(*folder)) {
            self.folders.insert(folder.to_owned());
        }
        self.bytes += part.size;
        if self.all.len() == FEW && CAN_SYNC_ALL {
            self.all.iter_mut().for_each(|(_, part)| part.file = None);
        }
        if self.all.len() >= FEW && CAN_SYNC_ALL {
            part.file = None;
        }
        self.all.push((path.to_owned(), part));
    }

    pub(super) fn is_full(&self) -> bool {
        let most = if CAN_SYNC_ALL { MOST } else { FEW };
        self.all.len() >= most || self.folders.len() >= FOLDERS || self.bytes >= BYTES
    }

    /// All of them are on the disk.
    pub(super) fn sync(&mut self, root: &Folder) -> io::Result<()> {
        if self.all.len() > FEW {
            return sync_all(root);
        }
        let files: Vec<File> = self.all.iter_mut().filter_map(|(_, part)| part.file.take()).collect();
        let share = files.len().div_ceil(THREADS).max(1);
        std::thread::scope(|scope| {
            let sync = |files: &[File]| files.iter().try_for_each(File::sync_all);
            let threads: Vec<_> = files.chunks(share).map(|files| scope.spawn(move || sync(files))).collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread that waited for the disk ended badly")))
            })
        })
    }
}

#[cfg(target_os = "linux")]
pub(super) const CAN_SYNC_ALL: bool = true;
#[cfg(not(target_os = "linux"))]
pub(super) const CAN_SYNC_ALL: bool = false;

#[cfg(target_os = "linux")]
pub(super) fn sync_all(root: &Folder) -> io::Result<()> {
    Ok(rustix::fs::syncfs(root)?)
}

/// More than a few never wait together there.
#[cfg(not(target_os = "linux"))]
pub(super) fn sync_all(_root: &Folder) -> io::Result<()> {
    Ok(())
}
