//! Changes of files, as facts: what was there, what is there now, and the difference.

use std::sync::Arc;

use serde_json::{Value, json};
use tolka_facts::event::{FileChanged, FileOperation};
use tolka_facts::{BlobRef, Draft, Hash, ToolContent};
use tolka_workspace::diff::{self, Diff};

use super::act::{Act, Stop};

/// Contents of more bytes are not kept, and nobody reads a diff of them.
pub(super) const MOST: u64 = 8 << 20;

/// Texts of together more bytes are not repeated in the output of a call: its content has them.
const REPEATED: usize = 64 << 10;

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
        (before.len() + after.len() <= REPEATED).then(|| {
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

impl Act<'_> {
    /// Tells a change that is made, and remembers what is there now.
    pub(super) async fn changed(&self, change: &Change) -> Result<(), Stop> {
        let memory = &self.tools.memory;
        if let Some(after) = &change.after {
            memory.keep(&change.path, after, &self.tools.workspace.join(&change.path));
        }
        let fact = FileChanged {
            path: self.absolute(&change.path),
            operation: change.operation(),
            before: change.before.as_ref().map(|content| content.blob.clone()),
            after: change.after.as_ref().map(|content| content.blob.clone()),
            added: change.diff.added,
            removed: change.diff.removed,
            call: Some(self.call.id.clone()),
            diff: (!change.diff.text.is_empty()).then(|| change.diff.text.clone().into()),
        };
        let contents =
            [&change.before, &change.after].into_iter().flatten().map(|content| content.bytes.to_vec()).collect();
        Ok(self.scene.teller.tell_with(Draft::agent(fact), contents).await?)
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
            call: Some(self.call.id.clone()),
            diff: None,
        };
        Ok(self.scene.teller.tell(Draft::agent(fact)).await?)
    }
}
