use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tolka_facts::Hash;

use super::CheckpointError;

/// A workspace that may be saved, and where.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Canonical.
    pub(super) workspace: PathBuf,
    pub(super) store: PathBuf,
    /// The data folder, if it is inside the workspace, as a path from there.
    pub(super) own_data: Option<PathBuf>,
}

impl Place {
    /// Blocks.
    pub(super) fn find(workspace: &Path, data: &Path) -> Result<Self, CheckpointError> {
        let workspace = narrow(workspace)?;
        let root = data.join("checkpoints");
        // Copies of a person's files are for nobody else on the machine, whatever the files themselves allow.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&root);
        made.map_err(CheckpointError::storage(&root))?;
        let data = data.canonicalize().map_err(CheckpointError::storage(data))?;
        if data == workspace {
            return Err(CheckpointError::OwnData { path: data });
        }
        let own_data = data.strip_prefix(&workspace).ok().map(Path::to_owned);
        let store = store(&data, &workspace);
        Ok(Place { workspace, store, own_data })
    }

    /// Where something was saved before, whatever has become of the workspace. Blocks.
    pub(super) fn left(workspace: &Path, data: &Path) -> Result<Option<Self>, CheckpointError> {
        if !data.exists() {
            return Ok(None);
        }
        let data = data.canonicalize().map_err(CheckpointError::storage(data))?;
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let own_data = data.strip_prefix(&workspace).ok().map(Path::to_owned);
        let store = store(&data, &workspace);
        Ok(store.exists().then_some(Place { workspace, store, own_data }))
    }
}

/// A folder that is no more than a project, in its canonical form. Blocks.
pub(super) fn narrow(workspace: &Path) -> Result<PathBuf, CheckpointError> {
    let unusable = |error| CheckpointError::NoWorkspace { path: workspace.to_owned(), error };
    let workspace = workspace.canonicalize().map_err(unusable)?;
    if !workspace.is_dir() {
        return Err(unusable(io::ErrorKind::NotADirectory.into()));
    }
    let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    // The folder in which homes are is no project either.
    if workspace.parent().is_none() || home.is_some_and(|home| home.starts_with(&workspace)) {
        return Err(CheckpointError::TooWide { path: workspace });
    }
    Ok(workspace)
}

fn store(data: &Path, workspace: &Path) -> PathBuf {
    data.join("checkpoints").join(Hash::of(workspace.as_os_str().as_encoded_bytes()).as_str())
}
