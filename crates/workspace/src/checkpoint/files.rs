//! What is done to the files of a store without git. All of it blocks, for as long as a file system hangs,
//! and is meant for [`blocking`].

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::batch::Present;
use super::listing::is_gone;
use super::{Caps, CheckpointError, LeftOut};

/// What the workspace's own attributes say about a file's bytes is not followed.
const ATTRIBUTES: &str = "* -text -eol -filter -ident -working-tree-encoding\n";

/// Waits for work that may block, on a thread that nobody else needs. It is waited for to its end, since it cannot be
/// stopped and the next save must not meet it; whoever asked for the save waits only until his deadline.
pub(super) async fn blocking<T, W>(work: W) -> Result<T, CheckpointError>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, CheckpointError> + Send + 'static,
{
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(CheckpointError::ended_badly(&error)))
}

/// What a new store needs besides what `git init` made.
pub(super) fn furnish(new: &Path, workspace: &Path) -> Result<(), CheckpointError> {
    let write = |name: &str, content: &[u8]| {
        let path = new.join(name);
        fs::write(&path, content).map_err(CheckpointError::storage(path))
    };
    fs::create_dir_all(new.join("info")).map_err(CheckpointError::storage(new))?;
    write("info/attributes", ATTRIBUTES.as_bytes())?;
    // For people who wonder whose store it is; its own name is a hash.
    write("description", workspace.as_os_str().as_encoded_bytes())
}

/// Removes stores that were being made by servers that are no more. Their names are `<store>.new-<process>-<time>`.
pub(super) fn clear_unmade(store: &Path) -> Result<(), CheckpointError> {
    let (Some(folder), Some(name)) = (store.parent(), store.file_name().and_then(OsStr::to_str)) else { return Ok(()) };
    let prefix = format!("{name}.new-");
    for entry in fs::read_dir(folder).map_err(CheckpointError::storage(folder))?.flatten() {
        let name = entry.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let process = run.and_then(|run| run.split('-').next()?.parse().ok()).and_then(Pid::from_raw);
        if process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH)) {
            // A git that it left behind may be writing there yet. Then it goes the next time.
            let _ = remove_folder(&entry.path());
        }
    }
    Ok(())
}

/// A store that is complete gets its name. Whether it is this one: somebody may have been faster, and theirs is as good.
pub(super) fn put_in_place(new: &Path, store: &Path) -> Result<bool, CheckpointError> {
    match fs::rename(new, store) {
        Err(_) if store.exists() => remove_folder(new).map(|()| false),
        renamed => renamed.map(|()| true).map_err(CheckpointError::storage(store)),
    }
}

/// The latest index of earlier runs becomes this run's; what else they left is removed. A git that a killed run left
/// behind may rename or remove its own meanwhile: then there is one less.
pub(super) fn adopt_index(store: &Path, index: &Path) -> io::Result<()> {
    let mut left: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"index.")
            && let Ok(found) = entry.metadata()
        {
            left.push((found.modified()?, entry.path()));
        }
    }
    let (locks, mut indices): (Vec<_>, Vec<_>) =
        left.into_iter().partition(|(_, path)| path.extension().is_some_and(|extension| extension == "lock"));
    indices.sort();
    if let Some((_, latest)) = indices.pop() {
        gone(fs::rename(latest, index))?;
    }
    // What cannot be removed lies there unused.
    locks.iter().chain(&indices).for_each(|(_, path)| drop(fs::remove_file(path)));
    Ok(())
}

/// Removes what killed gits left: this run's are waited for, and one of an earlier run works for nobody.
pub(super) fn sweep(store: &Path, index: &Path) -> Result<(), CheckpointError> {
    remove_file(&index.with_added_extension("lock"))?;
    for folder in [store.join("objects"), store.join("objects/pack")] {
        for entry in fs::read_dir(&folder).map_err(CheckpointError::storage(&folder))?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b"tmp_") {
                let path = entry.path();
                // What cannot be removed takes room and does no other harm.
                let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
        }
    }
    Ok(())
}

/// Removes a store. Under another name, since a store that is there is complete.
pub(super) fn retire(store: &Path) -> Result<(), CheckpointError> {
    let gone = store.with_added_extension("gone");
    remove_folder(&gone)?;
    fs::rename(store, &gone).map_err(CheckpointError::storage(store))?;
    remove_folder(&gone)
}

/// If it is there.
pub(super) fn remove_file(path: &Path) -> Result<(), CheckpointError> {
    gone(fs::remove_file(path)).map_err(CheckpointError::storage(path))
}

/// If it is there.
pub(super) fn remove_folder(path: &Path) -> Result<(), CheckpointError> {
    gone(fs::remove_dir_all(path)).map_err(CheckpointError::storage(path))
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Those of a batch that cannot be read.
pub(super) fn refused(workspace: &Path, batch: &[Present]) -> Vec<LeftOut> {
    let cannot_be_read = |present: &&Present| read_through(&workspace.join(OsStr::from_bytes(&present.path))).is_err();
    batch.iter().filter(cannot_be_read).map(|present| LeftOut::unreadable(&present.path, present.size)).collect()
}

/// To the end that it has now. What is gone, or no file any more, is no failure.
fn read_through(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => found,
        Err(error) if !is_gone(&error) => return Err(error),
        _ => return Ok(()),
    };
    // It may be a pipe by now, which would be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match open(path, flags, Mode::empty()).map_err(io::Error::from) {
        Ok(file) => io::copy(&mut fs::File::from(file).take(found.len()), &mut io::sink()).map(drop),
        Err(error) if is_gone(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether one of them is a folder by now.
pub(super) fn has_folder(workspace: &Path, learnt: &[Present]) -> bool {
    let is_folder = |path: &[u8]| fs::symlink_metadata(workspace.join(OsStr::from_bytes(path)));
    learnt.iter().any(|present| is_folder(&present.path).is_ok_and(|found| found.is_dir()))
}

/// Makes a ref, on the disk when this returns. Whether it was not there.
pub(super) fn keep(store: &Path, name: &str, commit: &str) -> Result<bool, CheckpointError> {
    let path = store.join(name);
    if path.exists() {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(store);
    let write = || {
        fs::create_dir_all(folder)?;
        // As git does it; nobody else makes a ref of this name.
        let lock = path.with_added_extension("lock");
        let mut file = fs::File::create(&lock)?;
        file.write_all(format!("{commit}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&lock, &path)?;
        fs::File::open(folder)?.sync_all()
    };
    write().map(|()| true).map_err(CheckpointError::storage(path.clone()))
}

/// The index holds what was taken in under other caps: it is made anew.
pub(super) fn note_caps(store: &Path, caps: &Caps) -> Result<(), CheckpointError> {
    let (path, words) = (store.join("largest-file"), caps.largest_file.to_string());
    let before = fs::read_to_string(&path).ok();
    if before.as_ref() == Some(&words) {
        return Ok(());
    }
    if before.is_some() {
        for entry in fs::read_dir(store).map_err(CheckpointError::storage(store))?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b"index.") {
                remove_file(&entry.path())?;
            }
        }
    }
    fs::write(&path, words).map_err(CheckpointError::storage(path))
}

/// Git puts a new file in the place of an index that it changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    inode: u64,
    modified: (i64, i64),
    size: u64,
}

impl Identity {
    /// `None` if it is not there.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Identity { inode: found.ino(), modified: (found.mtime(), found.mtime_nsec()), size: found.len() })
    }
}

/// How many entries the index has: a number in its header. A workspace without files has no index.
pub(super) fn entries(index: &Path) -> io::Result<u64> {
    let mut header = [0; 12];
    match fs::File::open(index) {
        Ok(mut file) => file.read_exact(&mut header)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    }
    let [.., a, b, c, d] = header;
    Ok(u32::from_be_bytes([a, b, c, d]).into())
}
