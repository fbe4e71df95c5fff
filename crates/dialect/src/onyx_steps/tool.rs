//! A tool call in this wire's spelling: Claude's names of tools and of their fields, a result in plain text.

use std::borrow::Cow;

use serde_json::{Map, Value};
use tolka_facts::{Blobs, Json, Tool, ToolKind, ToolStatus};

use crate::onyx::rules;
use crate::opencode;

/// A line of output longer than this is cut in a `message`; `output` has it whole.
const MESSAGE_LIMIT: usize = 200;

/// A name that the document's family does not know passes through.
pub(super) fn name(tool: &Tool) -> &str {
    let told = match opencode::tool_name(tool) {
        "" => "tool",
        name => name,
    };
    match rules::known_tool(told) {
        Some("read") => "Read",
        Some("bash") => "Bash",
        Some("write") => "Write",
        Some("edit") => "Edit",
        Some("glob") => "Glob",
        Some("grep") => "Grep",
        Some("list") => "LS",
        Some("task") => "Task",
        Some("todowrite") => "TodoWrite",
        Some("webfetch") => "WebFetch",
        Some("websearch") => "WebSearch",
        Some("skill") => "Skill",
        Some(known) => known,
        None => told,
    }
}

pub(super) fn read_name(name: &str) -> String {
    rules::known_tool(name).unwrap_or(name).to_owned()
}

/// The wire does not tell a kind; other wires draw by it.
pub(super) fn kind_of(name: &str) -> Option<ToolKind> {
    rules::kind_by_tool_name(name).map(rules::Kind::on_the_wire)
}

pub(super) fn title(tool: &Tool) -> &str {
    match tool.title.is_empty() {
        true => name(tool),
        false => &tool.title,
    }
}

/// An object, always: a client looks fields up in it.
pub(super) fn input<'a>(tool: &'a Tool, blobs: &dyn Blobs) -> Cow<'a, Json> {
    let Some(input) = tool.input.as_ref().filter(|input| !input.is_null()) else { return empty() };
    let input = input.whole(blobs);
    if !input.get().trim_start().starts_with('{') {
        return Cow::Owned(Json::of(&Map::from_iter([("input".to_owned(), input.value())])));
    }
    respelled(&input, name(tool)).map_or(input, Cow::Owned)
}

fn empty() -> Cow<'static, Json> {
    Cow::Owned(Json::of(&Map::new()))
}

/// OpenCode's names of fields become Claude's. `None` if there are none; what needs no change keeps its digits.
fn respelled(input: &Json, tool: &str) -> Option<Json> {
    let is_spelled_otherwise = opencode::RENAMED.iter().any(|(_, ours)| input.get().contains(ours));
    if !is_spelled_otherwise || !matches!(tool, "Read" | "Write" | "Edit") {
        return None;
    }
    let fields: Map<String, Value> = input.read()?;
    let rename = |name: &String| {
        let (theirs, _) = opencode::RENAMED.iter().find(|(_, ours)| ours == name)?;
        (!fields.contains_key(*theirs)).then(|| (*theirs).to_owned())
    };
    let fields = fields.iter().map(|(name, value)| (rename(name).unwrap_or_else(|| name.clone()), value.clone()));
    Some(Json::of(&Map::from_iter(fields)))
}

/// There is something to invoke: until then an agent has only thought of a tool.
pub(super) fn has_begun(tool: &Tool) -> bool {
    let has_input = || tool.input.as_ref().is_some_and(|input| !matches!(input.get(), "null" | "{}"));
    tool.status != ToolStatus::Pending || !tool.live_output.is_empty() || has_input()
}

/// What the call gave, or why it did not.
pub(super) fn result(tool: &Tool, blobs: &dyn Blobs) -> String {
    let is_silent = || tool.output.is_none() && tool.content.is_none() && tool.live_output.is_empty();
    let said = match (tool.status, &tool.error) {
        (ToolStatus::Completed, _) => return opencode::output_text(tool, blobs),
        (_, Some(error)) => error.text(blobs).into_owned(),
        (ToolStatus::Cancelled, None) if is_silent() => String::new(),
        (_, None) => opencode::error_text(tool, blobs),
    };
    match (said.is_empty(), tool.status) {
        (false, _) => said,
        (true, ToolStatus::Cancelled) => "The tool call was cancelled.".to_owned(),
        (true, _) => "The tool failed and did not say why.".to_owned(),
    }
}

/// The last line of new output that says anything, short enough to stand in a list.
pub(super) fn last_line(output: &str) -> Option<&str> {
    let line = output.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let end = line.char_indices().nth(MESSAGE_LIMIT).map_or(line.len(), |(at, _)| at);
    Some(&line[..end])
}
