//! One process per data folder, and a note for the others that says who it is.
//!
//! The lock is the kernel's (`flock`), so it ends with its process however that ends; the text in the file
//! is only a note and never blocks anybody. Whoever looks takes a shared lock for a moment: shared means
//! "somebody looks", exclusive "somebody is at home".

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::fault::Fault;
use crate::JournalError;

const FILE: &str = "lock";

/// Looking takes microseconds, and so does making a child process; after this many milliseconds something else is wrong.
const PATIENCE: u32 = 2000;

/// The process that has a data folder open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub pid: u32,
    /// What it said about itself: for a server, where it listens.
    pub text: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner { pid: 0, .. } => f.write_str("another process"),
            Owner { pid, text } if text.is_empty() => write!(f, "process {pid}"),
            Owner { pid, text } => write!(f, "process {pid} ({text})"),
        }
    }
}

impl Owner {
    /// Who has the folder open, if anybody has. A note left by a dead process counts for nothing.
    pub(super) fn of(dir: &Path) -> io::Result<Option<Owner>> {
        let mut file = match File::open(dir.join(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if try_lock(&file, FlockOperation::NonBlockingLockShared)? {
            return Ok(None);
        }
        Ok(Some(Owner::read(&mut file)?))
    }

    /// A note whose process is gone is a stranger's who has not written his own yet.
    fn read(file: &mut File) -> io::Result<Owner> {
        let mut note = String::new();
        file.rewind()?;
        file.take(4096).read_to_string(&mut note)?;
        let mut lines = note.lines();
        let pid = lines.next().and_then(|line| line.parse::<i32>().ok()).and_then(Pid::from_raw);
        let text = lines.next().unwrap_or_default().to_owned();
        match pid {
            Some(pid) if test_kill_process(pid) != Err(Errno::SRCH) => {
                Ok(Owner { pid: pid.as_raw_nonzero().get().unsigned_abs(), text })
            }
            _ => Ok(Owner { pid: 0, text: String::new() }),
        }
    }
}

#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    pub(super) fn take(dir: &Path, text: &str) -> Result<Self, Fault> {
        let path = dir.join(FILE);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        for _ in 0..PATIENCE {
            if try_lock(&file, FlockOperation::NonBlockingLockExclusive)? {
                let lock = Lock { file };
                lock.announce(text)?;
                return Ok(lock);
            }
            if try_lock(&file, FlockOperation::NonBlockingLockShared)? {
                flock(&file, FlockOperation::Unlock).map_err(io::Error::from)?;
            } else if Owner::read(&mut file)?.pid != 0 {
                break;
            }
            // Somebody looks; or an owner has yet to write his note; or he was killed, and a child that he was just making
            // has a copy of the file for a moment.
            std::thread::sleep(Duration::from_millis(1));
        }
        let owner = Owner::read(&mut file)?.to_string();
        Err(JournalError::InUse { path: dir.display().to_string(), owner }.into())
    }

    /// One write and then the cut, so that a reader finds two whole lines at any moment.
    pub(super) fn announce(&self, text: &str) -> io::Result<()> {
        let note = format!("{}\n{}\n", std::process::id(), text.lines().next().unwrap_or_default());
        self.file.write_all_at(note.as_bytes(), 0)?;
        self.file.set_len(note.len() as u64)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The note means nothing once the lock is gone, so failing to clear it harms nobody.
        let _ = self.file.set_len(0);
        // By word, not by closing: a child process that is just being made holds a copy of the file for a moment.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Whether the lock was free.
fn try_lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_of_a_dead_process_blocks_nobody_and_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "2147483646\nhttp://gone\n").unwrap();
        assert_eq!(Owner::of(dir.path()).unwrap(), None);
        let lock = Lock::take(dir.path(), "http://here").unwrap();
        let owner = Owner { pid: std::process::id(), text: "http://here".into() };
        assert_eq!(Owner::of(dir.path()).unwrap(), Some(owner));
        lock.announce("x").unwrap();
        assert_eq!(Owner::of(dir.path()).unwrap().unwrap().text, "x");
        std::fs::write(dir.path().join(FILE), "2147483646\nhttp://gone\n").unwrap();
        assert_eq!(Owner::of(dir.path()).unwrap().unwrap().to_string(), "another process");
        drop(lock);
        assert_eq!(Owner::of(dir.path()).unwrap(), None);
    }

    #[test]
    fn what_a_dead_owner_left_behind_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        std::fs::write(&path, "2147483646\nhttp://gone\n").unwrap();
        let left = File::open(&path).unwrap();
        assert!(try_lock(&left, FlockOperation::NonBlockingLockExclusive).unwrap());
        let opened = || {
            let files = std::fs::read_dir("/proc/self/fd").unwrap();
            files.filter(|file| std::fs::read_link(file.as_ref().unwrap().path()).is_ok_and(|to| to == path)).count()
        };
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| Lock::take(dir.path(), ""));
            while opened() < 2 && !taken.is_finished() {
                std::thread::yield_now();
            }
            drop(left);
            assert!(taken.join().unwrap().is_ok());
        });
    }

    #[test]
    fn a_look_does_not_keep_an_owner_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "").unwrap();
        let looker = File::open(dir.path().join(FILE)).unwrap();
        assert!(try_lock(&looker, FlockOperation::NonBlockingLockShared).unwrap());
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| Lock::take(dir.path(), ""));
            drop(looker);
            assert!(taken.join().unwrap().is_ok());
        });
    }
}
