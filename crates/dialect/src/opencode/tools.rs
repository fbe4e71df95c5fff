//! A merged tool call as a `ToolPart`: which name, which of the four states, and what goes in it.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tolka_facts::{Blobs, Block, Rope, Tool, ToolContent, ToolKind, ToolStatus, derived_id};

use super::wire::Span;

/// Fields of the tools that read and write files: Claude's names, and OpenCode's.
pub(crate) const RENAMED: [(&str, &str); 4] = [
    ("file_path", "filePath"),
    ("old_string", "oldString"),
    ("new_string", "newString"),
    ("replace_all", "replaceAll"),
];

#[derive(Serialize)]
pub(super) struct ToolPart<'a> {
    id: &'a str,
    #[serde(rename = "sessionID")]
    session_id: &'a str,
    #[serde(rename = "messageID")]
    message_id: &'a str,
    r#type: &'a str,
    #[serde(rename = "callID")]
    call_id: &'a str,
    tool: &'a str,
    state: State<'a>,
}

#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum State<'a> {
    Pending {
        input: &'a RawValue,
        raw: &'a Rope,
    },
    Running {
        input: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Live<'a>>,
        time: Span,
    },
    Completed {
        input: &'a RawValue,
        output: String,
        title: &'a str,
        metadata: Value,
        time: Span,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Value>,
    },
    Error {
        input: &'a RawValue,
        error: String,
        metadata: Value,
        time: Span,
    },
}

#[derive(Serialize)]
struct Live<'a> {
    output: &'a Rope,
}

pub(super) fn part_id(tool: &Tool) -> String {
    derived_id("prt", tool.first_time, tool.first_seq, 0)
}

/// The part before anything is known of the call but its name: every call is told so once.
pub(super) fn write_announced(tool: &Tool, session: &str, out: &mut Vec<u8>) {
    let state = State::Pending { input: empty_object(), raw: &Rope::default() };
    write(tool, session, state, out);
}

pub(super) fn write_part(tool: &Tool, session: &str, blobs: &dyn Blobs, out: &mut Vec<u8>) {
    let input = input(tool, blobs);
    let input = input.as_deref().unwrap_or_else(|| empty_object());
    let start = tool.started.unwrap_or(tool.first_time).millis();
    let ended = Span { start, end: Some(tool.ended.unwrap_or(tool.first_time).millis()) };
    let state = match tool.status {
        ToolStatus::Pending => State::Pending { input, raw: &tool.live_input },
        ToolStatus::Running => State::Running {
            input,
            title: (!tool.title.is_empty()).then_some(tool.title.as_str()),
            metadata: (!tool.live_output.is_empty()).then_some(Live { output: &tool.live_output }),
            time: Span { start, end: None },
        },
        ToolStatus::Completed => {
            let output = output_text(tool, blobs);
            State::Completed {
                input,
                title: &tool.title,
                metadata: metadata(tool, &output, blobs),
                output,
                time: ended,
                attachments: attachments(tool, session, blobs),
            }
        }
        ToolStatus::Failed | ToolStatus::Cancelled => State::Error {
            input,
            error: error_text(tool, blobs),
            metadata: metadata(tool, &tool.live_output.to_string(), blobs),
            time: ended,
        },
    };
    write(tool, session, state, out);
}

fn write(tool: &Tool, session: &str, state: State<'_>, out: &mut Vec<u8>) {
    let id = part_id(tool);
    let part = ToolPart {
        id: &id,
        session_id: session,
        message_id: tool.message.as_str(),
        r#type: "tool",
        call_id: tool.call.as_str(),
        tool: tool_name(tool),
        state,
    };
    // String keys only, and writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, &part);
}

/// The input as OpenCode's clients read it: Claude's names of the same fields become OpenCode's, the rest passes
/// through. What is no object cannot be told on this wire.
fn input(tool: &Tool, blobs: &dyn Blobs) -> Option<Box<RawValue>> {
    let whole = tool.input.as_ref()?.whole(blobs);
    let is_renamed = RENAMED.iter().any(|(theirs, _)| whole.get().contains(theirs));
    if !is_renamed || !matches!(tool_name(tool), "read" | "edit" | "write") {
        return whole.get().starts_with('{').then(|| whole.into_owned().into_raw());
    }
    let fields: Map<String, Value> = whole.read()?;
    let rename =
        |name: String| RENAMED.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| (*ours).to_owned());
    let fields: Map<String, Value> = fields.into_iter().map(|(name, value)| (rename(name), value)).collect();
    serde_json::value::to_raw_value(&fields).ok()
}

/// What a change of a file looks like before it is made, for the person who is asked.
pub(super) fn proposed_change(tool: &Tool, blobs: &dyn Blobs) -> Option<(String, String)> {
    let told = tool.content.iter().flatten().find_map(|content| match content {
        ToolContent::Diff { path, old, new } => {
            let old = old.as_ref().map(|old| old.text(blobs).into_owned()).unwrap_or_default();
            Some((path.clone(), old, new.text(blobs).into_owned()))
        }
        ToolContent::Content { .. } | ToolContent::Terminal { .. } => None,
    });
    let (path, old, new) = told.or_else(|| {
        let fields: Map<String, Value> = serde_json::from_str(input(tool, blobs)?.get()).ok()?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        Some((text("filePath")?, text("oldString").unwrap_or_default(), text("newString").or_else(|| text("content"))?))
    })?;
    let diff = similar::TextDiff::from_lines(&old, &new).unified_diff().header(&path, &path).to_string();
    Some((path, diff))
}

fn empty_object() -> &'static RawValue {
    // Valid JSON by eye; should it ever not be, `null` is what a client can still read.
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}

/// OpenCode's names are ours. What other agents call the same tool gets OpenCode's name, so that its clients know how
/// to draw it; a name that is nobody's passes through, and a call without one is named by its kind.
pub(crate) fn tool_name(tool: &Tool) -> &str {
    match (tool.name.as_deref(), tool.kind) {
        (Some("exec_command" | "shell" | "local_shell" | "run_shell_command"), _) => "bash",
        (Some("read_file"), _) => "read",
        (Some("write_file"), _) => "write",
        (Some("edit_file" | "replace" | "multiedit"), _) => "edit",
        (Some("search_file_content"), _) => "grep",
        (Some("list_directory" | "ls"), _) => "list",
        (Some("web_fetch"), _) => "webfetch",
        (Some("google_web_search" | "web_search"), _) => "websearch",
        (Some("todo_write" | "write_todos"), _) => "todowrite",
        (Some(name), _) => name,
        (None, ToolKind::Execute) => "bash",
        (None, ToolKind::Read) => "read",
        (None, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => "edit",
        (None, ToolKind::Search) => "grep",
        (None, ToolKind::Fetch) => "webfetch",
        (None, ToolKind::Think | ToolKind::SwitchMode | ToolKind::Other) => "tool",
    }
}

fn output_value(tool: &Tool, blobs: &dyn Blobs) -> Option<Value> {
    tool.output.as_ref().map(|output| output.whole(blobs).value())
}

/// What the call gave, as text: the output's own text, else what it showed, else what it printed live.
pub(crate) fn output_text(tool: &Tool, blobs: &dyn Blobs) -> String {
    match output_value(tool, blobs) {
        Some(Value::String(text)) => text,
        Some(Value::Object(fields)) if fields.get("output").is_some_and(Value::is_string) => {
            fields["output"].as_str().unwrap_or_default().to_owned()
        }
        Some(other) if !other.is_null() => other.to_string(),
        _ => {
            let shown = content_text(tool, blobs);
            if shown.is_empty() { tool.live_output.to_string() } else { shown }
        }
    }
}

pub(crate) fn error_text(tool: &Tool, blobs: &dyn Blobs) -> String {
    if let Some(error) = &tool.error {
        return error.text(blobs).into_owned();
    }
    let output = output_value(tool, blobs);
    if let Some(error) = output.as_ref().and_then(|output| output.get("error")).and_then(Value::as_str) {
        return error.to_owned();
    }
    let text = output_text(tool, blobs);
    if text.is_empty() { "The tool failed and did not say why.".to_owned() } else { text }
}

fn content_text(tool: &Tool, blobs: &dyn Blobs) -> String {
    let mut shown = String::new();
    for content in tool.content.iter().flatten() {
        if let ToolContent::Content { block: Block::Text { text, .. } } = content {
            if !shown.is_empty() {
                shown.push('\n');
            }
            shown.push_str(&text.text(blobs));
        }
    }
    shown
}

fn metadata(tool: &Tool, printed: &str, blobs: &dyn Blobs) -> Value {
    let mut known = match output_value(tool, blobs) {
        Some(Value::Object(mut fields)) => match fields.remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        },
        _ => Map::new(),
    };
    // What a command printed is drawn from here: OpenCode's own page of a command never looks at `output`.
    if tool_name(tool) == "bash" && !printed.is_empty() && !known.contains_key("output") {
        known.insert("output".to_owned(), json!(printed));
    }
    if !known.contains_key("filediff") {
        let diff = tool.content.iter().flatten().find_map(|content| match content {
            ToolContent::Diff { path, old, new } => Some((path, old, new)),
            ToolContent::Content { .. } | ToolContent::Terminal { .. } => None,
        });
        if let Some((path, old, new)) = diff {
            let before = old.as_ref().map(|old| old.text(blobs)).unwrap_or_default();
            known.insert("filediff".to_owned(), json!({ "file": path, "before": before, "after": new.text(blobs) }));
        }
    }
    Value::Object(known)
}

fn attachments(tool: &Tool, session: &str, blobs: &dyn Blobs) -> Vec<Value> {
    let mut files = Vec::new();
    for content in tool.content.iter().flatten() {
        if let ToolContent::Content { block: Block::Image { data, mime, .. } } = content {
            let at = u32::try_from(files.len()).unwrap_or(u32::MAX).saturating_add(1);
            files.push(json!({
                "id": derived_id("prt", tool.first_time, tool.first_seq, at),
                "sessionID": session,
                "messageID": tool.message,
                "type": "file",
                "mime": mime,
                "url": format!("data:{mime};base64,{}", data.text(blobs)),
            }));
        }
    }
    files
}
