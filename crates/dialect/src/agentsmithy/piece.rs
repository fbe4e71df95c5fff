//! What an agent shows of an edit is often no more than the lines that it was asked to replace. Where they stand in the
//! file is not known then, so a diff made of them would apply nowhere; the tool's own diff is told instead, if there is one.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};
use tolka_facts::{Blobs, Json, Tool};

use super::tools::replacements;
use crate::edit::{Change, Edit};

/// The edits of a call that ended, without those that show a piece of a file.
pub(super) fn whole<'a>(tool: &Tool, edits: Vec<Edit<'a>>, blobs: &dyn Blobs) -> Vec<Edit<'a>> {
    let is_piece: Vec<bool> = edits.iter().map(|edit| shows_a_piece(tool, edit, &edits, blobs)).collect();
    let is_one_file = edits.iter().all(|edit| edit.path == edits[0].path);
    let mut whole: Vec<Edit<'a>> = Vec::new();
    for (edit, is_piece) in edits.into_iter().zip(is_piece) {
        if !is_piece {
            whole.push(edit);
        } else if !whole.iter().any(|known| known.path == edit.path) {
            let diff = own_diff(tool, blobs).filter(|_| is_one_file);
            let change = diff.map_or(Change::Unknown, |diff| Change::Diff(Cow::Owned(diff)));
            whole.push(Edit { change, ..edit });
        }
    }
    whole
}

/// Agents do so in three ways: they show what they were asked to replace, a hunk with its line, or several hunks.
fn shows_a_piece(tool: &Tool, edit: &Edit<'_>, all: &[Edit<'_>], blobs: &dyn Blobs) -> bool {
    let Change::Texts { before, .. } = &edit.change else { return false };
    if before.is_empty() {
        return false;
    }
    let input = tool.input.as_ref().and_then(|input| input.whole(blobs).read::<Map<String, Value>>());
    let is_asked_for = input.as_ref().and_then(replacements).into_iter().flatten().any(|r| r.old == *before);
    let has_line = tool.locations.iter().flatten().any(|place| place.path == edit.path && place.line.is_some());
    let is_hunk = has_line && !before.ends_with('\n');
    is_asked_for || is_hunk || all.iter().filter(|other| other.path == edit.path).count() > 1
}

/// Where OpenCode has the diff of the whole file.
fn own_diff(tool: &Tool, blobs: &dyn Blobs) -> Option<String> {
    #[derive(Deserialize)]
    struct Output {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        diff: String,
    }
    tool.output
        .as_ref()
        .and_then(|output| Json::read::<Output>(&output.whole(blobs)))
        .map(|output| output.metadata.diff)
}
