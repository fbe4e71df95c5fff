//! A folder for what commands write and nobody needs for long; it goes with the server.
//!
//! A server that was killed cannot remove its own. The next one does: the lock on it says whether anybody is there.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

const PREFIX: &str = "tolka-scratch-";

#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Locked while it is in use.
    _lock: OwnedFd,
}

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        let parent = std::env::temp_dir().canonicalize()?;
        sweep(&parent);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let path = parent.join(format!("{PREFIX}{}-{}", std::process::id(), now.as_nanos()));
        // Never one that is there already, which somebody else may have made.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = lock(&path)?;
        Ok(Scratch { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed, the next server tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn lock(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = open(path, flags, Mode::empty())?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder)
}

/// Removes what servers that are gone left.
fn sweep(parent: &Path) {
    let me = rustix::process::getuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_one = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // One that was made this moment may not be locked yet.
        let is_old = |found: &fs::Metadata| {
            found.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age.as_secs() > 60)
        };
        let is_left = || entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == me && is_old(&found));
        if is_one
            && is_left()
            && let Ok(_lock) = lock(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_server_left_goes_and_what_is_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            let old = SystemTime::now() - std::time::Duration::from_secs(120);
            fs::File::open(&path).unwrap().set_modified(old).unwrap();
            path
        };
        let (left, used) = (make("tolka-scratch-1-1"), make("tolka-scratch-2-2"));
        let (other, new) = (make("mine"), parent.path().join("tolka-scratch-3-3"));
        fs::create_dir(&new).unwrap();
        let _in_use = lock(&used).unwrap();
        sweep(parent.path());
        assert_eq!([left, used, other, new].map(|path| path.exists()), [false, true, true, true]);
    }
}
