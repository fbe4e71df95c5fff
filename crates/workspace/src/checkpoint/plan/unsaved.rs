//! Files that were there when a snapshot was taken, and are not in it.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::checkpoint::CheckpointError;
use crate::checkpoint::contents::objects;
use crate::checkpoint::git::{Git, Halt};
use crate::checkpoint::left_out::About;

/// Of one snapshot.
#[derive(Debug, Default)]
pub(super) struct Unsaved(BTreeSet<PathBuf>);

impl Unsaved {
    /// Of each, by one git for all of them.
    pub(super) async fn of(git: &Git, commits: &[&str], halt: &Halt) -> Result<Vec<Self>, CheckpointError> {
        let objects = objects(git, commits, halt).await?;
        let unsaved = |(commit, object): (&&str, Vec<u8>)| match About::of(&String::from_utf8_lossy(&object)) {
            Some(about) => Ok(Unsaved(about.left_out.into_iter().map(|left_out| left_out.path).collect())),
            None => Err(CheckpointError::Unknown { commit: (*commit).to_owned() }),
        };
        commits.iter().zip(objects).map(unsaved).collect()
    }

    /// Whether it is one of them, or in a folder that is, or one of them is beneath it.
    pub(super) fn touches(&self, path: &Path) -> bool {
        // In the order of their parts: what is beneath follows.
        let from = (Bound::Included(path), Bound::Unbounded);
        path.ancestors().any(|folder| self.0.contains(folder))
            || self.0.range::<Path, _>(from).next().is_some_and(|next| next.starts_with(path))
    }
}
