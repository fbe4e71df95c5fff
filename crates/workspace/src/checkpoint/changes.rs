//! What differs between two snapshots.

mod patch;
mod raw;
mod texts;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tolka_facts::event::FileOperation;

use raw::entries;
pub(super) use raw::{Difference, Entry, Kind, between, files, in_spans};

use super::files::blocking;
use super::git::{Git, Halt};
use super::place::Place;
use super::{CheckpointError, Checkpoints, READING, is_name};
use crate::names::told;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// From the workspace on, as the file system has it.
    pub path: PathBuf,
    pub operation: FileOperation,
    /// Lines; none are counted in a file that is no text.
    pub added: u64,
    pub removed: u64,
    pub is_binary: bool,
}

/// A change with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    pub change: FileChange,
    /// A unified diff, with what git says of modes and links. `None` of a file that is no text, or too large for one, unless
    /// only its mode changed.
    pub patch: Option<String>,
    /// What it held before; `None` if it was not there, is no text or too large.
    pub before: Option<String>,
    pub is_too_large: bool,
}

impl Checkpoints {
    /// All paths that differ, in their order. A file that was renamed is one that went and one that came.
    pub async fn changes(&self, workspace: &Path, from: &str, to: &str) -> Result<Vec<FileChange>, CheckpointError> {
        // To be dropped with this future, which ends git.
        let (_wanted, halt) = Halt::within(READING);
        let git = self.reader(workspace, &[from, to], &halt).await?.git;
        Ok(between(&git, from, to, &[], &halt).await?.into_iter().map(FileChange::from).collect())
    }

    /// The same with their texts, for those of `paths` if given. Bounded: beyond [`crate::limits`] texts are left out.
    pub async fn diffs(
        &self,
        workspace: &Path,
        from: &str,
        to: &str,
        paths: Option<&[PathBuf]>,
    ) -> Result<Vec<FileDiff>, CheckpointError> {
        let (_wanted, halt) = Halt::within(READING);
        let git = self.reader(workspace, &[from, to], &halt).await?.git;
        let mut differences = between(&git, from, to, paths.unwrap_or_default(), &halt).await?;
        if let Some(paths) = paths {
            let wanted: HashSet<&Path> = paths.iter().map(PathBuf::as_path).collect();
            differences.retain(|difference| wanted.contains(difference.path.as_path()));
        }
        let texts = texts::of(&git, &differences, &halt).await?;
        blocking(move || Ok(differences.into_iter().zip(texts).map(|(change, texts)| diff(&change, texts)).collect()))
            .await
    }

    /// Those of `paths` that are files or links in none of these snapshots.
    pub async fn in_none(
        &self,
        workspace: &Path,
        commits: &[&str],
        mut paths: Vec<PathBuf>,
    ) -> Result<Vec<PathBuf>, CheckpointError> {
        let (_wanted, halt) = Halt::within(READING);
        let git = self.reader(workspace, commits, &halt).await?.git;
        for commit in commits {
            let found = entries(&git, commit, &paths, &halt).await?;
            paths.retain(|path| !found.contains_key(path));
        }
        Ok(paths)
    }

    /// Git for what only reads objects, which never change: neither the index nor the workspace is needed, nor a lock.
    /// All `commits` are names, though nobody may know them.
    pub(super) async fn reader(
        &self,
        workspace: &Path,
        commits: &[&str],
        halt: &Halt,
    ) -> Result<Reader, CheckpointError> {
        let (folder, data) = (workspace.to_owned(), self.data.clone());
        let place = halt.wait(blocking(move || Place::left(&folder, &data))).await??;
        let unknown = |commit: &str| CheckpointError::Unknown { commit: commit.to_owned() };
        if let Some(commit) = commits.iter().find(|commit| !is_name(commit)) {
            return Err(unknown(commit));
        }
        let place = place.ok_or_else(|| unknown(commits.first().unwrap_or(&"it")))?;
        let store = place.store.clone();
        let git = Git { index: store.join("index"), workspace: store.clone(), dir: store };
        Ok(Reader { git, place })
    }
}

/// Git without a workspace, and the place that it would be for.
pub(super) struct Reader {
    pub(super) git: Git,
    pub(super) place: Place,
}

impl From<Difference> for FileChange {
    fn from(difference: Difference) -> Self {
        let operation = difference.operation();
        let Difference { path, lines, .. } = difference;
        FileChange { path, operation, added: lines.added, removed: lines.removed, is_binary: lines.is_binary }
    }
}

fn diff(difference: &Difference, texts: texts::Texts) -> FileDiff {
    let texts::Texts { before, after, is_too_large } = texts;
    let (is_there, is_still) = (difference.was.is_some(), difference.is.is_some());
    let mut change = FileChange::from(difference.clone());
    let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let (before, after) = (text(before), text(after));
    // Git goes by the first bytes alone.
    change.is_binary |= !is_too_large && (before.is_some() != is_there || after.is_some() != is_still);
    let is_text = !is_too_large && !change.is_binary;
    let patch = patch::patch(&told(&change.path), difference, before.as_deref(), after.as_deref(), is_text);
    let before = before.filter(|_| !change.is_binary);
    FileDiff { change, patch, before, is_too_large }
}
