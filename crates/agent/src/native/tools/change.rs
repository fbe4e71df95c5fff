//! Changes of files, as facts: what was there, what is there now, and the difference.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tolka_facts::event::{FileChanged, FileOperation};
use tolka_facts::{BlobRef, CallId, Draft, Hash, ToolContent};
use tolka_workspace::diff::{self, Diff};
use tolka_workspace::limits;

use super::act::{Act, Stop};
use super::hidden::real_path;
use super::memory::Memory;
use crate::Teller;

/// All that is in a file. It is hashed once, where that may take its time.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) bytes: Arc<[u8]>,
    pub(super) blob: BlobRef,
}

impl Content {
    pub(super) fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let blob = BlobRef { hash: Hash::of(&bytes), size: bytes.len() as u64 };
        Content { bytes, blob }
    }

    /// `None`: it is no text.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|text| !text.contains('\0'))
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.blob == other.blob
    }
}

/// One file that changed.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// From the workspace on.
    pub(super) path: String,
    pub(super) before: Option<Content>,
    pub(super) after: Option<Content>,
    pub(super) diff: Diff,
}

impl Change {
    /// Compares, which takes its time.
    pub(super) fn new(path: &str, before: Option<Content>, after: Option<Content>) -> Self {
        let (old, new) = (before.as_ref().map(Content::text), after.as_ref().map(Content::text));
        let diff = match (old, new) {
            // What is no text on one side has no lines to compare.
            (Some(None), _) | (_, Some(None)) => Diff::default(),
            (old, new) => diff::unified(path, old.flatten(), new.flatten()),
        };
        Change { path: path.to_owned(), before, after, diff }
    }

    pub(super) fn operation(&self) -> FileOperation {
        match (&self.before, &self.after) {
            (None, _) => FileOperation::Create,
            (Some(_), Some(_)) => FileOperation::Update,
            (Some(_), None) => FileOperation::Delete,
        }
    }

    fn texts(&self) -> (&str, &str) {
        fn text(side: Option<&Content>) -> &str {
            side.and_then(Content::text).unwrap_or_default()
        }
        (text(self.before.as_ref()), text(self.after.as_ref()))
    }

    /// As clients draw it. The texts are the same blobs as the fact's.
    pub(super) fn content(&self, absolute: String) -> ToolContent {
        let (old, new) = self.texts();
        ToolContent::Diff { path: absolute, old: self.before.as_ref().map(|_| old.into()), new: new.into() }
    }

    /// As OpenCode's clients read it in the metadata of an edit; they find what is left out in the content.
    pub(super) fn filediff(&self, absolute: &str) -> Option<Value> {
        let (before, after) = self.texts();
        (before.len() + after.len() <= limits::REPEATED).then(|| {
            json!({
                "file": absolute,
                "before": before,
                "after": after,
                "additions": self.diff.added,
                "deletions": self.diff.removed,
            })
        })
    }

    /// As document 000 shows the files of a patch.
    pub(super) fn patched(&self, absolute: &str) -> Value {
        let kind = match self.operation() {
            FileOperation::Create => "add",
            FileOperation::Update => "update",
            FileOperation::Delete => "delete",
        };
        let (before, after) = self.texts();
        json!({
            "filePath": absolute,
            "relativePath": self.path,
            "type": kind,
            "diff": self.diff.text,
            "before": before,
            "after": after,
            "additions": self.diff.added,
            "deletions": self.diff.removed,
        })
    }
}

/// Tells changes of files, and remembers what is there then. It has all that this takes, so that a change which is being
/// made is told whatever becomes of the turn.
#[derive(Debug, Clone)]
pub(super) struct Hand {
    pub(super) workspace: PathBuf,
    teller: Teller,
    memory: Arc<Memory>,
    call: CallId,
}

impl Act<'_> {
    pub(super) fn hand(&self) -> Hand {
        let Act { tools, scene, call } = self;
        let (workspace, memory) = (tools.workspace.clone(), tools.memory.clone());
        Hand { workspace, teller: scene.teller.clone(), memory, call: call.id.clone() }
    }
}

impl Hand {
    /// Tells a change that a tool has made on the disk, by where the file is, whatever links lead there: a checkpoint knows
    /// it by that.
    pub(super) async fn made(&self, change: &Change) -> Result<(), Stop> {
        let path = self.real(&change.path);
        let change = &Change { path, ..change.clone() };
        let size = |side: &Option<Content>| side.as_ref().map_or(0, |content| content.blob.size);
        match size(&change.before).max(size(&change.after)) > limits::KEPT {
            true => self.changed_somehow(&change.path, change.operation()).await,
            false => self.changed(change).await,
        }
    }

    /// With what was there and is there now.
    pub(super) async fn changed(&self, change: &Change) -> Result<(), Stop> {
        if let Some(after) = &change.after {
            self.memory.keep(&change.path, after, &self.workspace.join(&change.path));
        }
        let fact = FileChanged {
            path: self.absolute(&change.path),
            operation: change.operation(),
            before: change.before.as_ref().map(|content| content.blob.clone()),
            after: change.after.as_ref().map(|content| content.blob.clone()),
            added: change.diff.added,
            removed: change.diff.removed,
            call: Some(self.call.clone()),
            diff: (!change.diff.text.is_empty()).then(|| change.diff.text.clone().into()),
        };
        let contents =
            [&change.before, &change.after].into_iter().flatten().map(|content| content.bytes.to_vec()).collect();
        Ok(self.teller.tell_with(Draft::agent(fact), contents).await?)
    }

    /// Tells of a change of which no more is known than that it happened: the file is too large, or what was there is
    /// gone.
    pub(super) async fn changed_somehow(&self, path: &str, operation: FileOperation) -> Result<(), Stop> {
        let fact = FileChanged {
            path: self.absolute(path),
            operation,
            before: None,
            after: None,
            added: 0,
            removed: 0,
            call: Some(self.call.clone()),
            diff: None,
        };
        Ok(self.teller.tell(Draft::agent(fact)).await?)
    }

    /// Of what has just been written or removed.
    pub(super) fn real(&self, path: &str) -> String {
        real_path(&self.workspace, path).unwrap_or_else(|| path.to_owned())
    }

    fn absolute(&self, path: &str) -> String {
        self.workspace.join(path).to_string_lossy().into_owned()
    }
}
