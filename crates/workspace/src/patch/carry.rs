//! Doing a patch to files: all of it is thought through first, then written; what fails midway is put back.

use super::{FilePatch, Patch, PatchError, apply};
use crate::files::{FileError, Files};
use crate::folder::FolderError;
use crate::limits;

/// What a patch makes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// From the workspace on.
    pub path: String,
    /// `None`: there is no file.
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
    /// It was moved from there; that is a change of its own.
    pub from: Option<String>,
}

impl Patch {
    /// What the patch would change, without changing it.
    pub fn plan(&self, files: &Files) -> Result<Vec<Change>, PatchError> {
        let mut plan = Plan { files, changes: Vec::new() };
        for file in &self.files {
            plan.add(file)?;
        }
        plan.changes.retain(|change| change.before != change.after);
        match plan.changes.is_empty() {
            true => Err(PatchError("it changes nothing".to_owned())),
            false => Ok(plan.changes),
        }
    }
}

/// Writes what was planned. Where one file fails, those before it are put back.
pub fn carry_out(files: &Files, changes: &[Change]) -> Result<(), PatchError> {
    let mut done: Vec<(&Change, Option<u32>)> = Vec::new();
    // New ones first: what is moved takes its mode from the file that goes.
    let (gone, there): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.after.is_none());
    for change in there.into_iter().chain(gone) {
        let mode = files.mode(change.from.as_ref().unwrap_or(&change.path));
        let written = put(files, &change.path, change.before.as_deref(), change.after.as_deref(), mode);
        if let Err(error) = written {
            return Err(PatchError(format!("{error}; {}", put_back(files, &done))));
        }
        done.push((change, mode));
    }
    Ok(())
}

fn put(
    files: &Files,
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    mode: Option<u32>,
) -> Result<(), FileError> {
    match (before, after) {
        (None, Some(after)) => files.write_new(path, after, mode),
        (Some(before), Some(after)) => files.write(path, after, Some(before)),
        (Some(before), None) => files.remove(path, before),
        (None, None) => Ok(()),
    }
}

fn put_back(files: &Files, done: &[(&Change, Option<u32>)]) -> String {
    let back = |(change, mode): &(&Change, Option<u32>)| {
        put(files, &change.path, change.after.as_deref(), change.before.as_deref(), *mode).err()
    };
    let failed: Vec<String> = done.iter().rev().filter_map(back).map(|error| error.to_string()).collect();
    match failed.is_empty() {
        true => "nothing was changed".to_owned(),
        false => format!("what was written before could not be put back: {}", failed.join("; ")),
    }
}

struct Plan<'a> {
    files: &'a Files,
    changes: Vec<Change>,
}

impl Plan<'_> {
    fn add(&mut self, file: &FilePatch) -> Result<(), PatchError> {
        match file {
            FilePatch::Add { path, content } => {
                let at = self.load(path)?;
                if self.changes[at].after.is_some() {
                    return Err(PatchError::of(path, "it is there already; update it instead"));
                }
                self.changes[at].after = Some(content.clone().into_bytes());
            }
            FilePatch::Delete { path } => {
                let at = self.load(path)?;
                self.there(at, path)?;
                self.changes[at].after = None;
            }
            FilePatch::Update { path, to, hunks } => {
                let at = self.load(path)?;
                let text = std::str::from_utf8(self.there(at, path)?)
                    .map_err(|_| PatchError::of(path, "it is no text; write the file instead"))?;
                let new = apply(text, hunks).map_err(|PatchError(problem)| PatchError::of(path, problem))?;
                match to {
                    None => self.changes[at].after = Some(new.into_bytes()),
                    Some(to) => self.moved(at, to, new)?,
                }
            }
        }
        Ok(())
    }

    fn moved(&mut self, at: usize, to: &str, new: String) -> Result<(), PatchError> {
        let target = self.load(to)?;
        if target != at && self.changes[target].after.is_some() {
            return Err(PatchError::of(to, "it is there already, so nothing can be moved there"));
        }
        self.changes[at].after = None;
        self.changes[target].from = (target != at).then(|| self.changes[at].path.clone());
        self.changes[target].after = Some(new.into_bytes());
        Ok(())
    }

    /// Where a file's change is; one that is met first is read.
    fn load(&mut self, path: &str) -> Result<usize, PatchError> {
        let refused = |error: FileError| PatchError(error.to_string());
        let path = self.files.relative(path).map_err(refused)?;
        if let Some(at) = self.changes.iter().position(|change| change.path == path) {
            return Ok(at);
        }
        let before = match self.files.read(&path, limits::WHOLE) {
            Ok(content) => Some(content),
            Err(FileError::Folder(FolderError::NotFound { .. })) => None,
            Err(error) => return Err(refused(error)),
        };
        self.changes.push(Change { path, after: before.clone(), before, from: None });
        Ok(self.changes.len() - 1)
    }

    fn there(&self, at: usize, path: &str) -> Result<&[u8], PatchError> {
        self.changes[at].after.as_deref().ok_or_else(|| PatchError::of(path, "it is not there"))
    }
}
