//! Why nothing will be saved, where that can be known before the first save.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::place::narrow;
use super::{CheckpointError, Checkpoints};

impl Checkpoints {
    /// What keeps `workspace` from being saved, as far as a look tells. Blocks; nothing is made or run.
    pub fn obstacle(workspace: &Path) -> Option<CheckpointError> {
        if !is_git_there() {
            return Some(CheckpointError::NoGit);
        }
        narrow(workspace).err()
    }
}

fn is_git_there() -> bool {
    let is_program = |path: &Path| path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(&folder.join("git")))
}
