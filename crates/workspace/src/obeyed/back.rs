//! Puts back what git obeys, as an earlier look found it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{Obeyed, Says};

impl Obeyed {
    /// Makes these places what they were. Gives back those that could not be made so: they are as they are. A whole
    /// repository is never removed. Blocks.
    pub fn put_back(&self, changed: &[PathBuf]) -> Vec<PathBuf> {
        changed.iter().filter(|path| self.put_one_back(path).is_err()).cloned().collect()
    }

    fn put_one_back(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        // A link there could lead anywhere.
        if !parent.symlink_metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let is_repository =
            |found: &fs::Metadata| found.is_dir() && path.file_name().is_some_and(|name| name == ".git");
        if path.symlink_metadata().is_ok_and(|found| is_repository(&found)) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        match self.found.get(path) {
            None => clear(path),
            Some(Says::Link(target)) => {
                clear(path)?;
                symlink(target, path)
            }
            Some(Says::File(can_run, _)) => {
                let content = self.kept.get(path).ok_or(io::ErrorKind::FileTooLarge)?;
                if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                    clear(path)?;
                }
                write(path, content, *can_run)
            }
            Some(Says::Folder) => {
                if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                    clear(path)?;
                    fs::create_dir(path)?;
                }
                // What was in it is gone with it, or is told by itself.
                let mut inside = self.found.keys().filter(|inside| inside.parent() == Some(path));
                inside.try_for_each(|inside| self.put_one_back(inside))
            }
            Some(Says::Other(..)) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

fn clear(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Whole or not at all.
fn write(path: &Path, content: &[u8], can_run: bool) -> io::Result<()> {
    let beside = path.with_extension(format!("tolka-{}", std::process::id()));
    let mode = if can_run { 0o755 } else { 0o644 };
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    let written = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
