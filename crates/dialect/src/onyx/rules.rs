//! How a client tells packets and tools apart: the document's detection rules as functions over a packet's
//! JSON. Titles change on completion and fields have two spellings, so no single field can be trusted.
//!
//! Where today's client knows a case that the document does not, the rule covers both and says so.

use serde_json::Value;
use tolka_facts::ToolKind;

use crate::tool::KnownTool;

/// The packet's type: `type` if it is there, else what `sessionUpdate` stands for.
pub fn packet_type(packet: &Value) -> Option<&str> {
    if let Some(kind) = text(packet, &["type"]) {
        return Some(kind);
    }
    text(packet, &["sessionUpdate", "session_update"]).map(type_of_update)
}

/// The packet type that an ACP update goes by; an update that the document does not list keeps its name.
pub fn type_of_update(update: &str) -> &str {
    match update {
        "tool_call" => "tool_call_start",
        "tool_call_update" => "tool_call_progress",
        "plan" => "agent_plan_update",
        other => other,
    }
}

/// The document's kinds of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Search,
    Read,
    Edit,
    Execute,
    /// Known by the tool's name alone; the `kind` field never says it.
    Task,
    Other,
}

impl Kind {
    /// What the `kind` field says of such a tool.
    pub fn on_the_wire(self) -> ToolKind {
        match self {
            Kind::Search => ToolKind::Search,
            Kind::Read => ToolKind::Read,
            Kind::Edit => ToolKind::Edit,
            Kind::Execute => ToolKind::Execute,
            Kind::Task | Kind::Other => ToolKind::Other,
        }
    }
}

/// The document's table of tools, and `apply_patch`, which the other document calls `other`. `None` for a
/// tool that neither has.
pub fn kind_by_tool_name(name: &str) -> Option<Kind> {
    match KnownTool::named(name)? {
        KnownTool::Glob | KnownTool::Grep => Some(Kind::Search),
        KnownTool::Read => Some(Kind::Read),
        KnownTool::Write | KnownTool::Edit => Some(Kind::Edit),
        KnownTool::Bash => Some(Kind::Execute),
        KnownTool::Task => Some(Kind::Task),
        KnownTool::TodoWrite | KnownTool::WebFetch | KnownTool::WebSearch | KnownTool::ApplyPatch => Some(Kind::Other),
        KnownTool::Delete
        | KnownTool::List
        | KnownTool::Skill
        | KnownTool::Lsp
        | KnownTool::Question
        | KnownTool::Invalid => None,
    }
}

/// TodoWrite, also when its title has become "6 todos".
pub fn is_todo_write(packet: &Value) -> bool {
    let title = text(packet, &["title"]).unwrap_or_default().to_lowercase();
    if title == "todowrite" || title == "todo_write" {
        return true;
    }
    input(packet).is_some_and(|input| input["todos"].is_array())
}

/// A task for a subagent, also when its title has become the task's description.
pub fn is_task(packet: &Value) -> bool {
    if text(packet, &["title"]).is_some_and(|title| title.to_lowercase() == "task") {
        return true;
    }
    input(packet).is_some_and(|input| text(input, &["subagent_type", "subagentType"]).is_some())
}

/// The file that a packet is about, from the input, a diff, or the title. Today's client also looks into a
/// patch, where the document stops.
pub fn file_path(packet: &Value) -> Option<String> {
    let of_input = || input(packet).and_then(|input| text(input, &["file_path", "filePath", "path"]));
    let of_diff = || diffs(packet).find_map(|diff| text(diff, &["path"]));
    let of_title = || text(packet, &["title"]).filter(|title| title.contains('/'));
    let of_patch = || input(packet).and_then(|input| text(input, &["patchText"])).and_then(patched_file);
    of_input().or_else(of_diff).or_else(of_title).or_else(of_patch).map(relative_path)
}

/// The path as it is shown: from the session's folder on, else its last three parts. The document uses such
/// a function and does not show it; this is how today's client does it.
pub fn relative_path(path: &str) -> String {
    let in_sandbox = past_id(path, "/sandboxes/").filter(|rest| rest.starts_with("/sessions/"));
    let in_session = in_sandbox.and_then(|rest| past_id(rest, "/sessions/")).or_else(|| past_id(path, "/sessions/"));
    if let Some(rest) = in_session.and_then(|rest| rest.strip_prefix('/')).filter(|rest| !rest.is_empty()) {
        return rest.to_owned();
    }
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.len() > 3 {
        true => parts[parts.len() - 3..].join("/"),
        false => path.strip_prefix('/').unwrap_or(path).to_owned(),
    }
}

/// Whether an edit made a new file; `None` if the packet is no edit or shows no diff.
///
/// The document asks for `oldText === ""`. Agents say null, or leave the field out, for the same thing, so
/// all three count.
pub fn is_new_file(packet: &Value) -> Option<bool> {
    if packet["kind"] != "edit" {
        return None;
    }
    diffs(packet).next().map(|diff| diff["oldText"].as_str().unwrap_or_default().is_empty())
}

/// Which tool a packet is about, by a name that today's client knows: as told, by the title, by fields that
/// only one tool has, at last by kind.
pub fn tool_name(packet: &Value) -> Option<&'static str> {
    if let Some(known) = told_tool_name(packet).and_then(known_tool) {
        return Some(known);
    }
    let by_title = text(packet, &["title"]).filter(|title| !title.contains([' ', '\n'])).and_then(known_tool);
    by_title.or_else(|| input(packet).and_then(by_input)).or_else(|| text(packet, &["kind"]).and_then(by_kind))
}

/// The tool's name where the packet has a field for it.
pub fn told_tool_name(packet: &Value) -> Option<&str> {
    text(packet, &["tool_name", "toolName"]).or_else(|| text(&packet["_meta"], &["toolName", "tool_name"]))
}

/// The one spelling of a name that clients know, `None` for a name that they do not.
pub fn known_tool(name: &str) -> Option<&'static str> {
    // No client of this family has a word for it.
    KnownTool::named(name).filter(|known| *known != KnownTool::Delete).map(KnownTool::name)
}

fn by_input(input: &Value) -> Option<&'static str> {
    if text(input, &["subagent_type", "subagentType"]).is_some() {
        return Some("task");
    }
    if input["todos"].is_array() {
        return Some("todowrite");
    }
    if text(input, &["patchText"]).is_some() {
        return Some("edit");
    }
    text(input, &["command"]).map(|_| "bash")
}

fn by_kind(kind: &str) -> Option<&'static str> {
    match kind {
        "execute" => Some("bash"),
        "read" => Some("read"),
        "edit" | "delete" | "move" => Some("edit"),
        "search" => Some("glob"),
        "task" => Some("task"),
        "fetch" => Some("webfetch"),
        _ => None,
    }
}

fn input(packet: &Value) -> Option<&Value> {
    ["raw_input", "rawInput"].into_iter().map(|name| &packet[name]).find(|input| !input.is_null())
}

/// The first of these fields that holds text; an empty one counts as missing, as it does in the document's
/// own code.
fn text<'a>(object: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| object[*name].as_str().filter(|text| !text.is_empty()))
}

fn diffs(packet: &Value) -> impl Iterator<Item = &Value> {
    packet["content"].as_array().into_iter().flatten().filter(|item| item["type"] == "diff")
}

fn patched_file(patch: &str) -> Option<&str> {
    let marks = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
    patch.lines().find_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark))).map(str::trim)
}

/// What follows `folder` and the id in it.
fn past_id<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.match_indices(folder).find_map(|(at, _)| {
        let rest = &path[at + folder.len()..];
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | 'a'..='f' | '-')).unwrap_or(rest.len());
        (end > 0 && rest[end..].starts_with('/')).then(|| &rest[end..])
    })
}
