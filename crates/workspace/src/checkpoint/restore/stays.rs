//! Folders that stay though nothing is left in them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::checkpoint::CheckpointError;
use crate::checkpoint::git::{Git, Halt};

/// The kernel's clock for files is behind by at most this.
const TICK: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(super) struct Stays {
    /// Those in which the target has files.
    folders: HashSet<PathBuf>,
    /// When the target was taken, since 1970.
    taken: Option<Duration>,
}

impl Stays {
    pub(super) async fn of(git: &Git, target: &str, halt: &Halt) -> Result<Self, CheckpointError> {
        let listed = ["ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", target];
        let listed = git.run(&listed, b"", halt).await?;
        let folders = listed.items().map(|item| PathBuf::from(OsStr::from_bytes(item))).collect();
        let told = git.run(&["cat-file", "commit", target], b"", halt).await?;
        let told = String::from_utf8_lossy(&told.out).into_owned();
        let taken = told.lines().rev().find_map(|line| line.strip_prefix("Taken-At: ")?.parse().ok());
        Ok(Stays { folders, taken: taken.map(Duration::from_micros) })
    }

    /// Whether the target has files in it.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.folders.contains(path)
    }

    /// One that was there when the target was taken may have been empty then: a snapshot does not say.
    pub(super) fn has(&self, path: &Path, above: &OwnedFd, name: &OsStr) -> bool {
        let is_older = || born(above, name).zip(self.taken).is_some_and(|(born, taken)| born + TICK < taken);
        self.folders.contains(path) || is_older()
    }
}

/// When a folder was made, where the file system knows.
#[cfg(target_os = "linux")]
fn born(above: &OwnedFd, name: &OsStr) -> Option<Duration> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let about = statx(above, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    let is_known = StatxFlags::from_bits_retain(about.stx_mask).contains(StatxFlags::BTIME);
    let seconds = u64::try_from(about.stx_btime.tv_sec).ok()?;
    is_known.then(|| Duration::new(seconds, about.stx_btime.tv_nsec))
}

#[cfg(not(target_os = "linux"))]
fn born(_above: &OwnedFd, _name: &OsStr) -> Option<Duration> {
    None
}
