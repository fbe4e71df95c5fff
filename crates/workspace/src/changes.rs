//! Which files of a workspace changed between two looks at it.
//!
//! A look takes the marks that the file system keeps of each file, not its content: 20,000 files cost tens of
//! milliseconds. No change is missed, since any writing changes them, and the clock has gone on when a look is
//! done. A mark that changed does not say that the content did: whoever needs to know compares. It sees the files
//! that the `.gitignore` files of the workspace let through, as checkpoints do, and never `.git`.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, SystemTime};

use ignore::{DirEntry, WalkBuilder, WalkState};
use tolka_facts::event::FileOperation;

/// A workspace with more files than this is not looked at whole.
const MOST: usize = 200_000;

/// The kernel's clock for files goes on in steps of at most this.
const TICK: Duration = Duration::from_millis(10);

/// Waiting on the disk is most of the work, and more threads than this only wait for each other.
const THREADS: usize = 4;

/// So many files are handed over at once.
const BATCH: usize = 512;

/// A look at every file that its `.gitignore` files let through.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// By path.
    files: Vec<(Box<[u8]>, Mark)>,
    is_partial: bool,
}

/// What a file system changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    modified: (i64, i64),
    changed: (i64, i64),
    size: u64,
    inode: u64,
    mode: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// From the workspace on.
    pub path: String,
    pub operation: FileOperation,
}

impl Look {
    /// Blocks. What cannot be read is not seen.
    pub fn at(workspace: &Path) -> Self {
        Look::at_most(workspace, MOST)
    }

    fn at_most(workspace: &Path, most: usize) -> Self {
        let Ok(workspace) = &workspace.canonicalize() else { return Look::default() };
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(THREADS));
        let walk = WalkBuilder::new(workspace)
            .standard_filters(false)
            .git_ignore(true)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .threads(threads)
            .build_parallel();
        let seen = AtomicUsize::new(0);
        let mut files = Vec::new();
        // One batch of each thread on the way, one in the making.
        let (hand_over, batches) = sync_channel::<Vec<(Box<[u8]>, Mark)>>(threads);
        std::thread::scope(|scope| {
            let seen = &seen;
            scope.spawn(move || {
                walk.run(|| {
                    let mut batch = Batch { files: Vec::new(), hand_over: hand_over.clone() };
                    Box::new(move |entry| {
                        let Some(file) = entry.ok().and_then(|entry| file(workspace, &entry)) else {
                            return WalkState::Continue;
                        };
                        if seen.fetch_add(1, Ordering::Relaxed) >= most {
                            return WalkState::Quit;
                        }
                        batch.add(file);
                        WalkState::Continue
                    })
                });
            });
            files = batches.into_iter().flatten().collect();
        });
        files.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        settle(&files);
        Look { is_partial: seen.into_inner() > most, files }
    }

    /// There were too many files: only changes of files that both looks saw are told.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// What is different now, by path. What was renamed is one deleted and one created.
    pub fn changes(&self, now: &Look) -> Vec<Changed> {
        let is_partial = self.is_partial || now.is_partial;
        let mut changes = Vec::new();
        let mut tell = |path: &[u8], operation| {
            if operation == FileOperation::Update || !is_partial {
                changes.push(Changed { path: String::from_utf8_lossy(path).into_owned(), operation });
            }
        };
        let (mut before, mut after) = (self.files.iter().peekable(), now.files.iter().peekable());
        loop {
            match (before.peek(), after.peek()) {
                (Some((old, _)), Some((new, _))) if old < new => {
                    tell(old, FileOperation::Delete);
                    before.next();
                }
                (Some((old, was)), Some((new, is))) if old == new => {
                    if was != is {
                        tell(new, FileOperation::Update);
                    }
                    before.next();
                    after.next();
                }
                (_, Some((new, _))) => {
                    tell(new, FileOperation::Create);
                    after.next();
                }
                (Some((old, _)), None) => {
                    tell(old, FileOperation::Delete);
                    before.next();
                }
                (None, None) => return changes,
            }
        }
    }
}

/// What one thread found. The last ones are handed over when it ends.
struct Batch {
    files: Vec<(Box<[u8]>, Mark)>,
    hand_over: std::sync::mpsc::SyncSender<Vec<(Box<[u8]>, Mark)>>,
}

impl Batch {
    fn add(&mut self, file: (Box<[u8]>, Mark)) {
        self.files.push(file);
        if self.files.len() == BATCH {
            self.send();
        }
    }

    fn send(&mut self) {
        // The one who takes them stays to the end.
        let _ = self.hand_over.send(std::mem::take(&mut self.files));
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.send();
    }
}

/// Files and links; nothing else has content.
fn file(workspace: &Path, entry: &DirEntry) -> Option<(Box<[u8]>, Mark)> {
    let kind = entry.file_type()?;
    if !kind.is_file() && !kind.is_symlink() {
        return None;
    }
    let path = entry.path().strip_prefix(workspace).ok()?;
    let about = entry.metadata().ok()?;
    let mark = Mark {
        modified: (about.mtime(), about.mtime_nsec()),
        changed: (about.ctime(), about.ctime_nsec()),
        size: about.size(),
        inode: about.ino(),
        mode: about.mode(),
    };
    Some((path.as_os_str().as_bytes().into(), mark))
}

/// A file that is written twice within one tick of the clock has the same marks both times. So a look that saw one
/// from this very moment is not done before the moment is over.
fn settle(files: &[(Box<[u8]>, Mark)]) {
    let latest = files.iter().map(|(_, mark)| mark.changed).max();
    let Some((seconds, nanos)) = latest else { return };
    let since = Duration::new(seconds.try_into().unwrap_or_default(), nanos.try_into().unwrap_or_default());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // A time to come is a clock that was set back.
    if let Some(left) = (since + TICK).checked_sub(now) {
        std::thread::sleep(left.min(TICK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_files_are_seen_in_part_and_nothing_wrong_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for name in 0..50 {
            std::fs::write(folder.path().join(name.to_string()), "x").unwrap();
        }
        let before = Look::at_most(folder.path(), 20);
        assert!(before.is_partial() && before.files.len() == 20);
        let now = Look::at_most(folder.path(), 50);
        assert!(!now.is_partial());
        assert_eq!(before.changes(&now), []);
        let (path, _) = &before.files[3];
        let path = String::from_utf8(path.to_vec()).unwrap();
        std::fs::write(folder.path().join(&path), "y").unwrap();
        let changes = before.changes(&Look::at(folder.path()));
        assert_eq!(changes, [Changed { path, operation: FileOperation::Update }]);
    }
}
