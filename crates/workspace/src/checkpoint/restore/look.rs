//! What a restore would come to, by what is there now: the same looks as its own, and no touch.
//!
//! A plan is made of snapshots, and not all that is there is in one: what is ignored, pipes and sockets, folders that
//! nobody may write to. Whoever asks before should hear what is heard afterwards.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, accessat};
use rustix::io::Errno;

use super::blobs::Content;
use super::carry::{Carry, Fate, Seen, Task, is_absent, may_write, refused};
use super::stays::Stays;
use super::there::There;
use crate::checkpoint::CheckpointError;
use crate::folder::Missing;

/// What would be gone by the time that others are looked at.
struct Gone<'a> {
    /// The workspace, by its path.
    folder: &'a Path,
    files: HashSet<PathBuf>,
    /// Folders above them, which go if nothing is left in them.
    folders: BTreeSet<PathBuf>,
    stays: &'a Stays,
}

impl Carry<'_> {
    /// What would become of each. `folder` is the workspace.
    pub(super) fn look(
        mut self,
        folder: &Path,
        tasks: &[Task],
        stays: &Stays,
    ) -> Result<Vec<(PathBuf, Fate)>, CheckpointError> {
        let (removals, writings): (Vec<&Task>, Vec<&Task>) = tasks.iter().partition(|task| task.removes());
        let mut gone = Gone { folder, files: HashSet::new(), folders: BTreeSet::new(), stays };
        let mut fates = Vec::with_capacity(tasks.len());
        let mut blobs = self.ask(&removals)?;
        for task in removals {
            let now = task.now.as_ref().map(|entry| blobs.next(entry)).transpose()?;
            self.go_on()?;
            let looked = self.would_remove(&task.path, now.as_ref());
            let (fate, removes) = looked.unwrap_or_else(|error| (refused(&task.path, &error), false));
            if removes {
                gone.take(&task.path);
            }
            fates.push((task.path.clone(), fate));
        }
        let mut blobs = self.ask(&writings)?;
        for task in writings {
            let Some((now, target)) = task.contents(&mut blobs)? else { continue };
            self.go_on()?;
            let fate = self.would_write(&task.path, now.as_ref(), &target, &gone);
            fates.push((task.path.clone(), fate.unwrap_or_else(|error| refused(&task.path, &error))));
        }
        Ok(fates)
    }

    /// And whether anything would go for it: a folder that somebody put in its place stays, with what is in it.
    fn would_remove(&mut self, path: &Path, now: Option<&Content>) -> io::Result<(Fate, bool)> {
        let seen = match self.see(path, Missing::Refused) {
            Err(error) if is_absent(&error) => return Ok((Fate::Done, false)),
            seen => seen?,
        };
        if matches!(seen.there, There::Nothing | There::Folder) {
            return Ok((Fate::Done, false));
        }
        if !seen.there.is(now)? {
            return Ok((Fate::Moved, false));
        }
        may_write(&seen)?;
        may_change(&seen)?;
        Ok((Fate::Done, true))
    }

    fn would_write(
        &mut self,
        path: &Path,
        now: Option<&Content>,
        target: &Content,
        gone: &Gone<'_>,
    ) -> io::Result<Fate> {
        if now.is_none() && path.ancestors().skip(1).any(|folder| gone.files.contains(folder)) {
            return Ok(Fate::Done);
        }
        let mut seen = match self.see(path, Missing::Refused) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) && now.is_none() => {
                return self.would_make(path);
            }
            Err(error) if is_absent(&error) => return Ok(Fate::Moved),
            seen => seen?,
        };
        if seen.there.is(Some(target))? {
            return Ok(Fate::Done);
        }
        if now.is_none() && matches!(seen.there, There::Folder) && gone.is_clear(path)? {
            seen.there = There::Nothing;
        }
        if let Some(fate) = seen.hinders(now, target)? {
            return Ok(fate);
        }
        if !now.is_some_and(|now| now.is_same_but_mode(target)) {
            may_change(&seen)?;
        }
        Ok(Fate::Done)
    }

    /// In a folder that is not there yet.
    fn would_make(&mut self, path: &Path) -> io::Result<Fate> {
        for folder in path.ancestors().skip(1) {
            if folder.as_os_str().is_empty() {
                accessat(self.root, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
                break;
            }
            match self.see(folder, Missing::Refused) {
                Ok(Seen { there: There::Nothing, .. }) => {}
                Ok(Seen { there: There::Folder, folder: above, name }) => {
                    accessat(&*above, name, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?;
                    break;
                }
                Ok(_) => return Ok(Fate::Moved),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Fate::Done)
    }
}

impl Gone<'_> {
    fn take(&mut self, path: &Path) {
        self.files.insert(path.to_owned());
        let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        self.folders.extend(above.map(Path::to_owned));
    }

    /// Whether a folder would be empty.
    fn is_clear(&self, path: &Path) -> io::Result<bool> {
        for entry in fs::read_dir(self.folder.join(path))? {
            let entry = entry?;
            let inside = path.join(entry.file_name());
            let goes = match entry.file_type()?.is_dir() {
                true => self.folders.contains(&inside) && !self.stays.holds(&inside) && self.is_clear(&inside)?,
                false => self.files.contains(&inside),
            };
            if !goes {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A file comes and goes in its folder.
fn may_change(seen: &Seen<'_>) -> io::Result<()> {
    Ok(accessat(&*seen.folder, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}
