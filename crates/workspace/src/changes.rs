//! Which files of a workspace changed between two looks at it.
//!
//! A look takes the marks that the file system keeps of each file, not its content: 20,000 files cost tens of
//! milliseconds. No change is missed, since any writing changes them, and the clock has gone on when a look is
//! done. A mark that changed does not say that the content did: whoever needs to know compares. It sees the files
//! that the `.gitignore` files of the workspace let through, as checkpoints do, those that it is told to look for, and
//! never `.git`. One that the rules let through only now, or no more, has not come or gone by that.

mod hands;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, SystemTime};

use ignore::{DirEntry, WalkBuilder, WalkState};
use tolka_facts::event::FileOperation;

pub use hands::Watch;
pub(crate) use hands::noting;

use crate::files::is_leftover;

/// A workspace with more files than this is not looked at whole.
const MOST: usize = 200_000;

/// The kernel's clock for files goes on in steps of at most this.
const TICK: Duration = Duration::from_millis(10);

/// Waiting on the disk is most of the work, and more threads than this only wait for each other.
const THREADS: usize = 4;

/// So many files are handed over at once.
const BATCH: usize = 512;

/// A look at every file that its `.gitignore` files let through.
#[derive(Debug, Clone)]
pub struct Look {
    workspace: PathBuf,
    /// What was changed after it has a time that is not earlier, by the clock of files.
    done: Moment,
    /// By path.
    files: Vec<(Box<[u8]>, Mark)>,
    is_partial: bool,
}

/// What a file system changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    modified: Moment,
    changed: Moment,
    size: u64,
    inode: u64,
    mode: u32,
}

/// Seconds since 1970, and nanoseconds.
type Moment = (i64, i64);

impl Mark {
    /// Of a file or a link itself; `None` if neither is there.
    pub fn at(path: &Path) -> Option<Self> {
        let about = path.symlink_metadata().ok()?;
        (about.is_file() || about.is_symlink()).then(|| Mark::of(&about))
    }

    fn of(about: &Metadata) -> Self {
        Mark {
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
            size: about.size(),
            inode: about.ino(),
            mode: about.mode(),
        }
    }

    pub fn size(&self) -> u64 {
        self.size
    }
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

    /// The same, and at these paths from the workspace on, whatever the rules say of them. Blocks.
    pub fn also_at(workspace: &Path, also: &[PathBuf]) -> Self {
        let mut look = Look::at(workspace);
        if look.is_partial {
            return look;
        }
        let is_unseen = |path: &&PathBuf| look.find(path.as_os_str().as_bytes()).is_err();
        let mark = |path: &PathBuf| Some((path.as_os_str().as_bytes().into(), Mark::at(&look.workspace.join(path))?));
        let more: Vec<(Box<[u8]>, Mark)> = also.iter().filter(is_unseen).filter_map(mark).collect();
        if !more.is_empty() {
            settle(&more);
            look.files.extend(more);
            look.files.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            look.files.dedup_by(|one, other| one.0 == other.0);
            look.done = just_before(SystemTime::now());
        }
        look
    }

    fn at_most(workspace: &Path, most: usize) -> Self {
        let real = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let workspace = &real;
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
        let is_partial = seen.into_inner() > most;
        Look { done: just_before(SystemTime::now()), files, is_partial, workspace: real }
    }

    /// Whether a file that it saw was there as it is before that time already.
    pub fn is_older(&self, path: &str, time: SystemTime) -> bool {
        self.find(path.as_bytes()).is_ok_and(|at| self.files[at].1.changed < just_before(time))
    }

    /// Whether a change up to a later look was made by our own hands alone, which somebody else tells.
    pub fn is_told_elsewhere(&self, now: &Look, changed: &Changed, watch: &Watch) -> bool {
        let mark = |look: &Look| look.find(changed.path.as_bytes()).ok().map(|at| look.files[at].1);
        watch.explains(&self.workspace.join(&changed.path), mark(self), mark(now))
    }

    fn find(&self, path: &[u8]) -> Result<usize, usize> {
        self.files.binary_search_by(|(known, _)| (**known).cmp(path))
    }

    /// There were too many files: only changes of files that both looks saw are told.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// What is different now, by path. What was renamed is one deleted and one created. Blocks: it looks again at what
    /// seems to have gone.
    pub fn changes(&self, now: &Look) -> Vec<Changed> {
        let is_partial = self.is_partial || now.is_partial;
        let rules = self.new_rules(now);
        let mut changes = Vec::new();
        for (path, was, is) in self.side_by_side(now) {
            let operation = match (was, is) {
                (Some(was), Some(is)) if was == is => continue,
                (Some(_), Some(_)) => FileOperation::Update,
                // It may be there and be ignored by now, or be one of those that are too many.
                (Some(was), None) => match Mark::at(&self.workspace.join(OsStr::from_bytes(path))) {
                    Some(is) if is == *was => continue,
                    Some(_) => FileOperation::Update,
                    None => FileOperation::Delete,
                },
                (None, Some(_)) if is_partial => continue,
                (None, Some(is)) => match &rules {
                    Some(rules) if !rules.is_new(path, is) => continue,
                    _ => FileOperation::Create,
                },
                (None, None) => continue,
            };
            changes.push(Changed { path: String::from_utf8_lossy(path).into_owned(), operation });
        }
        changes
    }

    /// Every path with its marks, then and now.
    fn side_by_side<'a>(
        &'a self,
        now: &'a Look,
    ) -> impl Iterator<Item = (&'a [u8], Option<&'a Mark>, Option<&'a Mark>)> {
        let (mut before, mut after) = (self.files.iter().peekable(), now.files.iter().peekable());
        std::iter::from_fn(move || {
            let order = match (before.peek(), after.peek()) {
                (Some((old, _)), Some((new, _))) => old.cmp(new),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => return None,
            };
            let was = if order.is_le() { before.next() } else { None };
            let is = if order.is_ge() { after.next() } else { None };
            let (path, _) = was.or(is)?;
            Some((&**path, was.map(|(_, mark)| mark), is.map(|(_, mark)| mark)))
        })
    }

    /// `None`: no file that says what is ignored has changed, so whatever is seen only now is new.
    fn new_rules(&self, now: &Look) -> Option<NewRules<'_>> {
        let is_rule = |path: &[u8]| path == RULES || path.ends_with(IN_FOLDER);
        let has_changed = self.side_by_side(now).any(|(path, was, is)| was != is && is_rule(path));
        has_changed.then(|| NewRules { look: self, known: self.files.iter().map(|(_, mark)| mark.inode).collect() })
    }
}

const RULES: &[u8] = b".gitignore";
const IN_FOLDER: &[u8] = b"/.gitignore";

/// What is ignored has changed: a file that is seen only now may have been there all the time.
struct NewRules<'a> {
    look: &'a Look,
    /// The files that were seen before, by their inodes.
    known: HashSet<u64>,
}

impl NewRules<'_> {
    /// It was made or changed since, or moved: by itself, which its mark shows, or with a folder, whose entries keep
    /// theirs.
    fn is_new(&self, path: &[u8], mark: &Mark) -> bool {
        mark.changed >= self.look.done || self.known.contains(&mark.inode) || self.is_in_moved_folder(path)
    }

    fn is_in_moved_folder(&self, path: &[u8]) -> bool {
        let folders =
            Path::new(OsStr::from_bytes(path)).ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
        // A move changes a folder, and nothing in it.
        let is_moved = |about: Mark| about.changed >= self.look.done && about.modified < self.look.done;
        folders
            .filter_map(|folder| self.look.workspace.join(folder).symlink_metadata().ok())
            .any(|f| is_moved(Mark::of(&f)))
    }
}

/// The clock of files may be that much behind.
fn just_before(time: SystemTime) -> Moment {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
    (since.as_secs().try_into().unwrap_or(i64::MAX), since.subsec_nanos().into())
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
    // What a write that was killed has left is nobody's file.
    if !kind.is_file() && !kind.is_symlink() || entry.file_name().to_str().is_some_and(is_leftover) {
        return None;
    }
    let path = entry.path().strip_prefix(workspace).ok()?;
    let mark = Mark::of(&entry.metadata().ok()?);
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
