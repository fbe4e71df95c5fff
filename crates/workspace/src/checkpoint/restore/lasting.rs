//! What was renamed and removed is on the disk before anybody is told that it is done.
//!
//! A restore waits for the disk twice. First for what is in the new files, before they get their places: a power cut must
//! not leave an empty file under a name, which a second try would take for somebody else's and keep. Then for the names,
//! once for all of them: until then a second try finds each path as it was or as it should be. The store may be on
//! another file system than the workspace, so nothing that is synced there says anything of this one.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fsync, openat};
use rustix::io::Errno;

use super::trail::Trail;
use super::waiting::{CAN_SYNC_ALL, FEW, sync_all};
use crate::folder::{Folder, Missing, READ};

/// The folders of `paths` are on the disk as they are now.
pub(super) fn sync<'a>(root: &Folder, trail: &mut Trail<'_>, paths: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    let folders: BTreeSet<&Path> = paths.filter_map(Path::parent).collect();
    if CAN_SYNC_ALL && folders.len() > FEW {
        return sync_all(root);
    }
    folders.into_iter().try_for_each(|folder| sync_one(root, trail, folder))
}

/// The nearest that is there: of a folder that was removed the one above it says so.
fn sync_one(root: &Folder, trail: &mut Trail<'_>, folder: &Path) -> io::Result<()> {
    let flags = READ | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    for folder in folder.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
        let opened = trail.to(folder, Missing::Refused).and_then(|(at, name)| openat(&*at, name, flags, Mode::empty()));
        match opened {
            Ok(opened) => return Ok(fsync(opened)?),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            // It can be written and not read.
            Err(Errno::ACCESS) if CAN_SYNC_ALL => return sync_all(root),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(fsync(root)?)
}
