//! Objects of another git folder become ours too, without a copy. Git never changes a file of objects, it only
//! removes it: what is linked stays what it is, whatever becomes of its other name.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::CheckpointError;

/// The kernel has written a file that was last changed longer ago; git itself does not see to it for single objects.
const SETTLED: Duration = Duration::from_secs(120);

/// Over packs that are replaced while they are linked.
const PASSES: usize = 3;

/// More files than this are sooner on the disk all together.
const SINGLE: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Linked {
    /// That were there.
    All,
    /// Another file system, or files of somebody else, or some are lent by a third folder: they cannot be linked.
    Elsewhere,
}

/// Links those single objects that are wanted, and all packs. They are on the disk when this returns. Blocks.
pub(super) fn link(from: &Path, to: &Path, wanted: &[[u8; 20]]) -> Result<Linked, CheckpointError> {
    if from.join("info/alternates").exists() {
        return Ok(Linked::Elsewhere);
    }
    let mut made = Made::default();
    let linked = all(from, to, wanted, &mut made);
    match linked.and_then(|()| made.settle(to)) {
        Ok(()) => Ok(Linked::All),
        Err(error) if is_elsewhere(&error) => Ok(Linked::Elsewhere),
        Err(error) => Err(CheckpointError::storage(to)(error)),
    }
}

/// The person's git may pack them meanwhile: what it removes is in a pack by then.
fn all(from: &Path, to: &Path, wanted: &[[u8; 20]], made: &mut Made) -> io::Result<()> {
    singles(from, to, wanted, made)?;
    for _ in 0..PASSES {
        if packs(from, to, made)? {
            break;
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Made {
    folders: HashSet<PathBuf>,
    /// Not surely on the disk.
    fresh: Vec<PathBuf>,
}

impl Made {
    /// A file that is gone by now is not there to be linked, and nothing more. Whether it is there.
    fn link(&mut self, from: &Path, to: &Path) -> io::Result<bool> {
        match fs::hard_link(from, to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn settle(&self, objects: &Path) -> io::Result<()> {
        if self.fresh.len() > SINGLE {
            return sync_all(objects);
        }
        self.fresh.iter().chain(&self.folders).try_for_each(|path| fs::File::open(path)?.sync_all())
    }
}

/// Whether all were there that were seen: else there are others in their place.
fn packs(from: &Path, to: &Path, made: &mut Made) -> io::Result<bool> {
    let (from, to) = (from.join("pack"), to.join("pack"));
    fs::create_dir_all(&to)?;
    let entries = match fs::read_dir(&from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    made.folders.insert(to.clone());
    let mut are_all = true;
    for entry in entries {
        let index = PathBuf::from(entry?.file_name());
        if index.extension().is_none_or(|extension| extension != "idx") {
            continue;
        }
        // Git finds a pack by its index, so that comes last. What else may be there says how to keep it, which is our
        // own affair.
        let pack = index.with_extension("pack");
        if made.link(&from.join(&pack), &to.join(&pack))? {
            let reverse = index.with_extension("rev");
            made.link(&from.join(&reverse), &to.join(&reverse))?;
            if !made.link(&from.join(&index), &to.join(&index))? {
                fs::remove_file(to.join(&pack))?;
                are_all = false;
            }
        } else {
            are_all = false;
        }
    }
    Ok(are_all)
}

fn singles(from: &Path, to: &Path, wanted: &[[u8; 20]], made: &mut Made) -> io::Result<()> {
    let settled = SystemTime::now().checked_sub(SETTLED);
    // In their order, so that a folder is looked for once.
    for of_folder in wanted.chunk_by(|a, b| a[0] == b[0]) {
        let folder = hex(&of_folder[0][..1]);
        let (from, to) = (from.join(&folder), to.join(&folder));
        if !from.is_dir() {
            continue;
        }
        fs::create_dir_all(&to)?;
        made.folders.insert(to.clone());
        for name in of_folder {
            let (file, name) = (from.join(hex(&name[1..])), to.join(hex(&name[1..])));
            if made.link(&file, &name)? && Some(fs::metadata(&name)?.modified()?) > settled {
                made.fresh.push(name);
            }
        }
    }
    Ok(())
}

fn is_elsewhere(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TooManyLinks
            | io::ErrorKind::Unsupported
    )
}

#[cfg(target_os = "linux")]
fn sync_all(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(fs::File::open(folder)?)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_all(_folder: &Path) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}
