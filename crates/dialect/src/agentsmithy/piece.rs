//! What an agent shows of an edit is often no more than the lines that it was asked to replace. Where they stand in the
//! file is not known then, so a diff made of them would apply nowhere; the tool's own diff is told instead, if there is one.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::{Map, Value};
use tolka_facts::{Blobs, Json, Tool};

use super::tools::replacements;
use crate::edit::{Change, Edit, Text};

/// The edits of a call that ended, without those that show a piece of a file.
pub(super) fn whole<'a>(tool: &Tool, edits: Vec<Edit<'a>>, blobs: &dyn Blobs) -> Vec<Edit<'a>> {
    if edits.is_empty() {
        return edits;
    }
    let call = Call::new(tool, &edits, blobs);
    let is_piece: Vec<bool> = edits.iter().map(|edit| call.shows_a_piece(edit, blobs)).collect();
    let is_one_file = call.shown.len() == 1;
    let (mut whole, mut told) = (Vec::new(), HashSet::new());
    for (edit, is_piece) in edits.into_iter().zip(is_piece) {
        let is_first = told.insert(edit.path.clone());
        match (is_piece, is_first) {
            (false, _) => whole.push(edit),
            (true, true) => {
                let diff = is_one_file.then(|| own_diff(tool, blobs)).flatten();
                let change = diff.map_or(Change::Unknown, |diff| Change::Diff(Text::Read(diff)));
                whole.push(Edit { change, ..edit });
            }
            (true, false) => {}
        }
    }
    whole
}

/// What a call says of all its edits together. It may have thousands, so it is read once.
struct Call {
    /// The texts that it was asked to replace.
    asked: HashSet<String>,
    /// The files that it names a line of.
    pointed: HashSet<String>,
    /// How many edits it shows of each file.
    shown: HashMap<String, usize>,
}

impl Call {
    fn new(tool: &Tool, edits: &[Edit<'_>], blobs: &dyn Blobs) -> Self {
        let input = tool.input.as_ref().and_then(|input| input.whole(blobs).read::<Map<String, Value>>());
        let asked = input.as_ref().and_then(replacements).into_iter().flatten();
        let pointed = tool.locations.iter().flatten().filter(|place| place.line.is_some());
        let mut shown = HashMap::new();
        edits.iter().for_each(|edit| *shown.entry(edit.path.to_string()).or_default() += 1);
        Call {
            asked: asked.map(|replacement| replacement.old).collect(),
            pointed: pointed.map(|place| place.path.clone()).collect(),
            shown,
        }
    }

    /// Agents do so in three ways: they show what they were asked to replace, a hunk with its line, or several hunks.
    fn shows_a_piece(&self, edit: &Edit<'_>, blobs: &dyn Blobs) -> bool {
        let Change::Texts { before, .. } = &edit.change else { return false };
        if before.is_empty() {
            return false;
        }
        if self.shown.get(&*edit.path).is_some_and(|edits| *edits > 1) {
            return true;
        }
        let has_line = self.pointed.contains(&*edit.path);
        if self.asked.is_empty() && !has_line {
            return false;
        }
        let before = before.load(blobs);
        before.is_some_and(|before| self.asked.contains(&*before) || (has_line && !before.ends_with('\n')))
    }
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
