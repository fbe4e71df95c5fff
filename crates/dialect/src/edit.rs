//! Which files an agent changed, for wires that tell of files and not of tools.
//!
//! Our own agent tells it as `FileChanged`, always before the call that did it ends. Others show diffs in a call or in
//! its output, or show nothing of a file that they write; then the end of the call tells. What nobody told, as the files
//! that a command wrote, the snapshot after the turn has found. Texts stay where they are until somebody needs more of
//! them than their size.

mod text;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tolka_facts::event::{FileChanged, FileOperation, FileStat, Moment};
use tolka_facts::{Blobs, Body, CallId, Event, Fact, Json, Tip, Tool, ToolContent, ToolStatus};

use crate::path::absolute;
use crate::tool::{self, Field, KnownTool};
pub(crate) use text::Text;

/// A file that was changed.
#[derive(Debug, PartialEq)]
pub(crate) struct Edit<'a> {
    /// As the agent told it: absolute, or relative to the workspace.
    pub(crate) path: Cow<'a, str>,
    pub(crate) operation: FileOperation,
    /// Of the file as it is now, where that is known.
    pub(crate) size: Option<u64>,
    pub(crate) change: Change<'a>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Change<'a> {
    /// A unified diff, as it was told.
    Diff(Text<'a>),
    /// What stood there and what stands there now. An agent may show a piece of the file only.
    Texts {
        before: Text<'a>,
        after: Text<'a>,
    },
    Unknown,
}

/// More files that calls showed are not remembered: they are told once more, without what changed in them.
const REMEMBERED: usize = 1024;

/// Tells every edit once. Part of an encoder's state: it holds nothing that is not of the open turn.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Edits {
    /// Open calls whose edits were told as facts of their own.
    told: BTreeSet<CallId>,
    /// Absolute paths of what calls showed.
    #[serde(default)]
    shown: BTreeSet<String>,
}

impl Edits {
    /// The edits that this fact tells.
    pub(crate) fn of<'a>(&mut self, fact: &'a Fact, tip: &'a Tip, blobs: &dyn Blobs) -> Vec<Edit<'a>> {
        match &fact.event {
            Event::FileChanged(e) => {
                self.told.extend(e.call.clone().filter(|call| tip.tool(call).is_some_and(Tool::is_open)));
                vec![changed(e)]
            }
            Event::ToolChanged(e) => {
                let Some(tool) = tip.tool(&e.call).filter(|tool| !tool.is_open()) else { return Vec::new() };
                if self.told.remove(&tool.call) || tool.status != ToolStatus::Completed {
                    return Vec::new();
                }
                let edits = shown(tool, blobs);
                for edit in &edits {
                    if self.shown.len() < REMEMBERED {
                        self.shown.insert(absolute(&edit.path, &tip.head.workspace));
                    }
                }
                edits
            }
            // What a turn that tells all did not tell is not its own.
            Event::CheckpointSaved(e) if e.moment == Some(Moment::AfterTurn) && !e.tells => {
                let stats = e.changes.iter().flat_map(|changes| &changes.files);
                let is_news =
                    |stat: &&FileStat| !stat.told && !self.shown.contains(&absolute(&stat.path, &tip.head.workspace));
                stats.filter(is_news).map(found).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn found(stat: &FileStat) -> Edit<'_> {
    Edit { path: Cow::Borrowed(&stat.path), operation: stat.operation, size: None, change: Change::Unknown }
}

fn changed(e: &FileChanged) -> Edit<'_> {
    let change = match (&e.diff, &e.before, &e.after) {
        (Some(diff), ..) => Change::Diff(Text::Body(diff)),
        // Whoever told it knew no more than that the file changed.
        (None, None, None) => Change::Unknown,
        (None, before, after) => Change::Texts { before: Text::from(before), after: Text::from(after) },
    };
    Edit { path: Cow::Borrowed(&e.path), operation: e.operation, size: e.after.as_ref().map(|blob| blob.size), change }
}

/// What a call that ended well shows of its edits; from some agents it is no more than which file they are of.
fn shown<'a>(tool: &'a Tool, blobs: &dyn Blobs) -> Vec<Edit<'a>> {
    let patched = patched(tool, blobs);
    if !patched.is_empty() {
        return patched;
    }
    let diffs = tool.content.iter().flatten().filter_map(|content| match content {
        ToolContent::Diff { path, old, new } => Some(diffed(path, old.as_ref(), new)),
        ToolContent::Content { .. } | ToolContent::Terminal { .. } => None,
    });
    let diffs: Vec<_> = diffs.collect();
    match diffs.is_empty() {
        true => written(tool, blobs).map(Edit::from).or_else(|| named(tool, blobs)).into_iter().collect(),
        false => diffs,
    }
}

/// A patch is of many files; what became of each stands in the output, whole.
fn patched<'a>(tool: &Tool, blobs: &dyn Blobs) -> Vec<Edit<'a>> {
    #[derive(Deserialize)]
    struct Output {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        files: Vec<File>,
    }
    #[derive(Deserialize)]
    struct File {
        #[serde(rename = "filePath")]
        path: String,
        r#type: String,
        before: String,
        after: String,
    }
    let output = tool.output.as_ref().and_then(|output| Json::read::<Output>(&output.whole(blobs)));
    let edit = |file: File| {
        let operation = match file.r#type.as_str() {
            "add" => FileOperation::Create,
            "delete" => FileOperation::Delete,
            _ => FileOperation::Update,
        };
        let size = (operation != FileOperation::Delete).then_some(file.after.len() as u64);
        let change = Change::Texts { before: Text::Read(file.before), after: Text::Read(file.after) };
        Edit { path: file.path.into(), operation, size, change }
    };
    output.into_iter().flat_map(|output| output.metadata.files).map(edit).collect()
}

/// The file that a call is there to change.
fn named<'a>(call: &Tool, blobs: &dyn Blobs) -> Option<Edit<'a>> {
    let operation = match KnownTool::of(call)? {
        KnownTool::Write | KnownTool::Edit => FileOperation::Update,
        KnownTool::Delete => FileOperation::Delete,
        _ => return None,
    };
    let input: Map<String, Value> = call.input.as_ref()?.whole(blobs).read()?;
    let path = tool::text(&input, Field::File)?.to_owned();
    Some(Edit { path: path.into(), operation, size: None, change: Change::Unknown })
}

fn diffed<'a>(path: &'a str, old: Option<&'a Body>, new: &'a Body) -> Edit<'a> {
    let is_new = old.is_none_or(Body::is_empty);
    Edit {
        path: Cow::Borrowed(path),
        operation: if is_new { FileOperation::Create } else { FileOperation::Update },
        // A diff may show a piece of the file; a new file it shows whole.
        size: is_new.then(|| new.len()),
        change: Change::Texts { before: old.map_or_else(Text::default, Text::Body), after: Text::Body(new) },
    }
}

/// A file that a call wrote whole.
pub(crate) struct Written {
    pub(crate) path: String,
    pub(crate) content: String,
    /// The agent said that there was none before.
    pub(crate) is_new: bool,
}

/// Some agents show nothing of a file that they write; what they wrote is in the input.
pub(crate) fn written(call: &Tool, blobs: &dyn Blobs) -> Option<Written> {
    #[derive(Deserialize)]
    struct Output {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        exists: bool,
    }
    let is_written = call.status == ToolStatus::Completed && KnownTool::of(call) == Some(KnownTool::Write);
    let input: Map<String, Value> = call.input.as_ref().filter(|_| is_written)?.whole(blobs).read()?;
    let output = call.output.as_ref().and_then(|output| Json::read::<Output>(&output.whole(blobs)));
    Some(Written {
        path: tool::text(&input, Field::File)?.to_owned(),
        content: tool::text(&input, Field::Content)?.to_owned(),
        is_new: output.is_some_and(|output| !output.metadata.exists),
    })
}

impl From<Written> for Edit<'_> {
    fn from(Written { path, content, is_new }: Written) -> Self {
        let size = Some(content.len() as u64);
        let (operation, change) = match is_new {
            true => (FileOperation::Create, Change::Texts { before: Text::default(), after: Text::Read(content) }),
            false => (FileOperation::Update, Change::Unknown),
        };
        Edit { path: path.into(), operation, size, change }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tolka_facts::{NoBlobs, ToolKind};

    use super::*;

    fn call(name: Option<&str>, kind: ToolKind, input: &Value) -> Tool {
        let (name, input) = (name.map(str::to_owned), Some(Json::from_value(input)));
        Tool { name, kind, status: ToolStatus::Completed, input, ..Tool::default() }
    }

    #[test]
    fn a_file_is_found_in_every_spelling() {
        for input in [json!({"absolute_path": "/a", "contents": "xy"}), json!({"filePath": "/a", "content": "xy"})] {
            let call = call(Some("Write"), ToolKind::Other, &input);
            let (operation, change) = (FileOperation::Update, Change::Unknown);
            assert_eq!(shown(&call, &NoBlobs), [Edit { path: "/a".into(), operation, size: Some(2), change }]);
        }
    }

    #[test]
    fn a_call_that_removes_a_file_needs_no_name() {
        let call = call(None, ToolKind::Delete, &json!({"path": "/a"}));
        let (operation, change) = (FileOperation::Delete, Change::Unknown);
        assert_eq!(shown(&call, &NoBlobs), [Edit { path: "/a".into(), operation, size: None, change }]);
    }
}
