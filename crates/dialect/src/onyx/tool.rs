//! A tool call as this wire tells it: the same nine fields in the start, in every progress and in a
//! request for approval.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Map;
use tolka_facts::{Blobs, Json, Time, Tool, ToolKind, ToolStatus};

use super::content::{Item, Place};
use super::output::Output;
use super::rules;
use super::stamp::Stamp;
use super::write::{self, Meta};
use crate::edit;
use crate::print::print;

/// Whether output that is still being told piece by piece is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Live {
    Shown,
    Hidden,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(rename = "_meta")]
    meta: Option<Meta<'a>>,
    content: Option<Vec<Item<'a>>>,
    kind: &'static str,
    locations: Option<Vec<Place<'a>>>,
    raw_input: Cow<'a, Json>,
    raw_output: Output<'a>,
    status: &'static str,
    title: &'a str,
    tool_call_id: &'a str,
}

impl<'a> Body<'a> {
    /// Always pending and empty, whatever the agent told first.
    pub(super) fn start(tool: &'a Tool, meta: Option<Meta<'a>>) -> Self {
        Body {
            meta,
            content: None,
            kind: kind(tool),
            locations: Some(Vec::new()),
            raw_input: Cow::Owned(empty()),
            raw_output: Output::None,
            status: write::status(ToolStatus::Pending),
            title: start_title(tool),
            tool_call_id: tool.call.as_str(),
        }
    }

    pub(super) fn merged(tool: &'a Tool, meta: Option<Meta<'a>>, live: Live, blobs: &dyn Blobs) -> Self {
        Body {
            meta,
            content: content(tool, live, blobs),
            kind: kind(tool),
            locations: tool.locations.as_ref().map(|places| places.iter().map(Place::from).collect()),
            raw_input: input(tool, blobs),
            raw_output: Output::of(tool, blobs),
            status: write::status(tool.status),
            title: title(tool),
            tool_call_id: tool.call.as_str(),
        }
    }

    /// Writes the fields without the packet's own, and gives their print: it must differ for a progress to be worth
    /// telling. The packet is to be finished behind them.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> u64 {
        let start = out.len();
        // String keys only, and writing to a Vec cannot fail.
        let _ = serde_json::to_writer(&mut *out, self);
        print(&out[start..])
    }

    /// What a start leaves the reader with, so that a first progress that says no more is not sent. A list
    /// that is untold and one that is empty are the same to see.
    pub(super) fn looks_like_start(&self) -> bool {
        self.content.as_ref().is_none_or(Vec::is_empty)
            && self.locations.as_ref().is_none_or(Vec::is_empty)
            && self.raw_input.get() == "{}"
            && matches!(self.raw_output, Output::None)
            && self.status == write::status(ToolStatus::Pending)
    }
}

pub(super) fn finish_start(time: Time, out: &mut Vec<u8>) {
    finish(r#"sessionUpdate":"tool_call","type":"tool_call_start"#, time, out);
}

pub(super) fn finish_progress(time: Time, out: &mut Vec<u8>) {
    finish(r#"sessionUpdate":"tool_call_update","type":"tool_call_progress"#, time, out);
}

/// The closing brace of the fields makes room for the packet's own.
fn finish(names: &str, time: Time, out: &mut Vec<u8>) {
    out.pop();
    out.extend_from_slice(b",\"");
    out.extend_from_slice(names.as_bytes());
    out.extend_from_slice(b"\",\"timestamp\":\"");
    Stamp(time).with(|text| out.extend_from_slice(text.as_bytes()));
    out.extend_from_slice(b"\"}");
}

fn empty() -> Json {
    Json::of(&Map::new())
}

/// An object, always: a client looks fields up in it.
fn input<'a>(tool: &'a Tool, blobs: &dyn Blobs) -> Cow<'a, Json> {
    let Some(input) = tool.input.as_ref().filter(|input| !input.is_null()) else { return Cow::Owned(empty()) };
    let input = input.whole(blobs);
    match input.get().trim_start().starts_with('{') {
        true => input,
        false => Cow::Owned(Json::of(&Map::from_iter([("input".to_owned(), input.value())]))),
    }
}

fn content<'a>(tool: &'a Tool, live: Live, blobs: &dyn Blobs) -> Option<Vec<Item<'a>>> {
    let told = tool.content.as_ref().map(|items| items.iter().filter_map(|item| Item::new(item, blobs)).collect());
    let mut items: Vec<Item<'a>> = told.unwrap_or_default();
    let has_text = items.iter().any(|item| matches!(item, Item::Content { .. }));
    let is_shown = live == Live::Shown || !tool.is_open();
    if is_shown && !has_text && !tool.live_output.is_empty() {
        items.push(Item::live(&tool.live_output));
    }
    let has_diff = items.iter().any(|item| matches!(item, Item::Diff { .. }));
    if let Some((path, text)) = written_file(tool, blobs).filter(|_| !has_diff) {
        items.push(Item::new_file(path, text));
    }
    (tool.content.is_some() || !items.is_empty()).then_some(items)
}

/// A new file that the agent wrote and showed no diff of. The document knows a new file by its diff.
fn written_file(tool: &Tool, blobs: &dyn Blobs) -> Option<(String, String)> {
    edit::written(tool, blobs).filter(|file| file.is_new).map(|file| (file.path, file.content))
}

/// At its start a call has nothing to show but the tool's name, as both documents say.
fn start_title(tool: &Tool) -> &str {
    tool.name.as_deref().unwrap_or_else(|| title(tool))
}

fn title(tool: &Tool) -> &str {
    match tool.title.is_empty() {
        true => tool.name.as_deref().unwrap_or_default(),
        false => &tool.title,
    }
}

/// As the agent told it; where it did not, as the document's table has it for a tool of that name.
fn kind(tool: &Tool) -> &'static str {
    let by_name = tool.name.as_deref().filter(|_| tool.kind == ToolKind::Other).and_then(rules::kind_by_tool_name);
    write::kind(by_name.map_or(tool.kind, rules::Kind::on_the_wire))
}
