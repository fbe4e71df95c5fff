//! The agent's files: reading and writing beneath one folder and never out of it.
//!
//! Every path is looked up from the folder's own handle, so nothing can be swapped between check and use. What is
//! written is whole or not there: a new file beside the old one takes its place, with its mode and owner. A file with
//! several names (hard links) is replaced under the one that was written, as editors do: what the others show stays, so
//! nothing outside can be written through a link. A symbolic link that stays inside is written through.

mod write;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use crate::changes;
use crate::folder::{Folder, FolderError, Found};
pub use write::is_leftover;
pub(crate) use write::{Like, Part, any_part_name, holds, move_new, part_name, take_after};

/// What Linux takes in one call; nobody works with longer ones.
const LONGEST_PATH: usize = 4096;

/// The files of one workspace.
#[derive(Debug)]
pub struct Files {
    /// As it was given; people know it by this name.
    root: PathBuf,
    /// Without links, since the same file may be told by either name.
    pub(crate) real: PathBuf,
    pub(crate) folder: Folder,
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("`{path}` cannot be used as a path: {problem}")]
    Name { path: String, problem: &'static str },
    #[error(
        "{path} is in `.git`, or in another folder that git takes for a repository, which is the person's own; use git through a command instead"
    )]
    Git { path: String },
    #[error("{path} has {size} bytes; at most {most} can be used")]
    TooLarge { path: String, size: u64, most: u64 },
    #[error("{path} grew beyond {most} bytes while it was read; wait until nobody writes to it")]
    Grew { path: String, most: u64 },
    #[error("{path} is there already; read it, then change it")]
    Exists { path: String },
    #[error("{path} was changed or removed by somebody else meanwhile; read it again")]
    Changed { path: String },
    #[error("{path} cannot be written: {error}")]
    Unwritable { path: String, error: std::io::Error },
}

impl Files {
    pub fn open(workspace: &Path) -> Result<Self, FileError> {
        let closed = |error| FolderError::Closed { path: workspace.to_owned(), error };
        let root = std::path::absolute(workspace).map_err(closed)?;
        let real = root.canonicalize().map_err(closed)?;
        let folder = Folder::open(&real)?;
        Ok(Files { root, real, folder })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path from the workspace on, of one that is relative or absolute and inside. It does not say that anything is
    /// there. `Err` for one that leads out, or holds what no path may.
    pub fn relative(&self, path: &str) -> Result<String, FileError> {
        if path.chars().any(char::is_control) {
            let problem = "it holds a line break or another control character; rename the file by a command first";
            return Err(misnamed(path, problem));
        }
        self.inside(path)
    }

    /// As [`Files::relative`], with all names that a file system takes.
    fn inside(&self, path: &str) -> Result<String, FileError> {
        if path.contains('\0') {
            return Err(misnamed(path, "it holds a NUL, which no path can"));
        }
        if path.len() > LONGEST_PATH {
            return Err(misnamed(path, "it is longer than 4096 bytes"));
        }
        let given = Path::new(path);
        if given.components().any(|part| part == Component::ParentDir) {
            return Err(misnamed(
                path,
                "`..` may lead out of the workspace; name it by a path from the workspace's root",
            ));
        }
        let rest = if given.is_absolute() { self.beneath(given) } else { Some(given) };
        let rest = rest.ok_or_else(|| FolderError::Outside { path: path.to_owned() })?;
        let names = rest.components().filter(|part| *part != Component::CurDir);
        let rest: PathBuf = names.collect();
        match rest.to_str() {
            Some("") => Ok(".".to_owned()),
            Some(rest) => Ok(rest.to_owned()),
            // A piece of a text, cut at its slashes.
            None => Err(misnamed(path, "it is no UTF-8")),
        }
    }

    fn beneath<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let known = [&self.root, &self.real].into_iter().find_map(|root| path.strip_prefix(root).ok());
        // The workspace may have a third name, by a link elsewhere. This finds a name only; opening has its own checks.
        let by_link = || {
            let root = path.ancestors().find(|folder| folder.canonicalize().is_ok_and(|real| real == self.real))?;
            path.strip_prefix(root).ok()
        };
        known.or_else(by_link)
    }

    /// The whole content, at most `most` bytes; a file that grows while it is read is cut off there and refused.
    pub fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, FileError> {
        let path = self.inside(path)?;
        let (mut file, size) = self.folder.read(&path)?;
        if size > most {
            return Err(FileError::TooLarge { path, size, most });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
        match file.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 > most => Err(FileError::Grew { path, most }),
            Ok(_) => Ok(bytes),
            Err(error) => Err(FolderError::Unreadable { path, error }.into()),
        }
    }

    /// The first `most` bytes, and how many there are in all.
    pub fn begin(&self, path: &str, most: u64) -> Result<(Vec<u8>, u64), FileError> {
        let path = self.inside(path)?;
        let (file, size) = self.folder.read(&path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(most)).unwrap_or_default());
        match file.take(most).read_to_end(&mut bytes) {
            Ok(_) => Ok((bytes, size)),
            Err(error) => Err(FolderError::Unreadable { path, error }.into()),
        }
    }

    /// Where something inside is, without links, and whether it is a file. For walks, which open what they meet anew.
    pub(crate) fn real_path(&self, relative: &str) -> Result<(PathBuf, bool), FileError> {
        let is_file = matches!(self.folder.find(relative)?, Found::File(..));
        let unreadable = |error| FolderError::Unreadable { path: relative.to_owned(), error };
        let path = self.real.join(relative).canonicalize().map_err(unreadable)?;
        match path.starts_with(&self.real) {
            true => Ok((path, is_file)),
            false => Err(FolderError::Outside { path: relative.to_owned() }.into()),
        }
    }

    /// Writes a whole file, with the folders it needs. `before` is what the caller believes is there (`None`: nothing);
    /// anything else there is left alone and refused. Keeps the mode of a file that is there.
    pub fn write(&self, path: &str, bytes: &[u8], before: Option<&[u8]>) -> Result<(), FileError> {
        let path = self.relative(path)?;
        self.noting(&path, || write::write(&self.folder, &path, bytes, before, None))
    }

    /// A file that was not there, with a mode if it takes the place of another.
    pub(crate) fn write_new(&self, path: &str, bytes: &[u8], mode: Option<u32>) -> Result<(), FileError> {
        let path = self.relative(path)?;
        self.noting(&path, || write::write(&self.folder, &path, bytes, None, mode))
    }

    /// What may be done with a file, if it is there.
    pub(crate) fn mode(&self, path: &str) -> Option<u32> {
        let (file, _) = self.folder.read(&self.inside(path).ok()?).ok()?;
        Some(file.metadata().ok()?.permissions().mode() & 0o7777)
    }

    /// Removes a file, if it is still what the caller believes; of a link, the link.
    pub fn remove(&self, path: &str, before: &[u8]) -> Result<(), FileError> {
        let path = self.relative(path)?;
        self.noting(&path, || write::remove(&self.folder, &path, before))
    }

    /// Where a link leads, if one is at the path itself; what it leads to is not looked at.
    pub fn link(&self, path: &str) -> Result<Option<PathBuf>, FileError> {
        let path = self.relative(path)?;
        write::link(&self.folder, &path)
    }

    /// Removes a link, if it still leads where the caller believes.
    pub fn remove_link(&self, path: &str, target: &Path) -> Result<(), FileError> {
        let path = self.relative(path)?;
        self.noting(&path, || write::remove_link(&self.folder, &path, target))
    }

    fn noting<T>(&self, path: &str, work: impl FnOnce() -> T) -> T {
        changes::noting(&[self.real.join(path)], work)
    }
}

fn misnamed(path: &str, problem: &'static str) -> FileError {
    /// Of a path that may be megabytes.
    const SHOWN: usize = 200;
    let mut shown: String = path.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if path.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    FileError::Name { path: shown, problem }
}
