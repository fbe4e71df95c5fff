//! A merged tool call as a `ToolPart`: which name, which of the four states, and what goes in it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tolka_facts::{Blobs, Block, Json, Rope, SessionId, Tool, ToolContent, ToolStatus, derived_id};

use super::wire::Span;
use crate::tool::{self, Field, KnownTool, error_text, output_text, respelled, text};

/// Fields of the tools that read and write files. Our spelling is OpenCode's.
const FILE_FIELDS: [(Field, &str); 5] = [
    (Field::File, Field::File.ours()),
    (Field::Content, Field::Content.ours()),
    (Field::OldText, Field::OldText.ours()),
    (Field::NewText, Field::NewText.ours()),
    (Field::ReplaceAll, Field::ReplaceAll.ours()),
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
    #[serde(skip_serializing_if = "Rope::is_empty")]
    output: &'a Rope,
    /// Of the subagent that works for the call: clients lead there.
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a SessionId>,
}

impl Live<'_> {
    fn of(tool: &Tool) -> Option<Live<'_>> {
        let live = Live { output: &tool.live_output, session: tool.subagent.as_ref() };
        (!live.output.is_empty() || live.session.is_some()).then_some(live)
    }
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
    let input = input.as_deref().map_or_else(|| empty_object(), Json::raw);
    let start = tool.started.unwrap_or(tool.first_time).millis();
    let ended = Span { start, end: Some(tool.ended.unwrap_or(tool.first_time).millis()) };
    let state = match tool.status {
        ToolStatus::Pending => State::Pending { input, raw: &tool.live_input },
        ToolStatus::Running => State::Running {
            input,
            title: (!tool.title.is_empty()).then_some(tool.title.as_str()),
            metadata: Live::of(tool),
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
        tool: tool::name(tool),
        state,
    };
    // String keys only, and writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, &part);
}

/// The input as OpenCode's clients read it: other agents' spellings of the same fields become OpenCode's, the rest
/// passes through. What is no object cannot be told on this wire.
fn input<'a>(tool: &'a Tool, blobs: &dyn Blobs) -> Option<Cow<'a, Json>> {
    let whole = tool.input.as_ref()?.whole(blobs);
    let is_of_a_file = KnownTool::of(tool).is_some_and(KnownTool::is_of_a_file);
    let respelled = is_of_a_file.then(|| respelled(&whole, &FILE_FIELDS)).flatten();
    let told = respelled.map_or(whole, Cow::Owned);
    told.get().starts_with('{').then_some(told)
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
        let fields: Map<String, Value> = tool.input.as_ref()?.whole(blobs).read()?;
        let text = |field| text(&fields, field).map(str::to_owned);
        let new = text(Field::NewText).or_else(|| text(Field::Content))?;
        Some((text(Field::File)?, text(Field::OldText).unwrap_or_default(), new))
    })?;
    let diff = similar::TextDiff::from_lines(&old, &new).unified_diff().header(&path, &path).to_string();
    Some((path, diff))
}

fn empty_object() -> &'static RawValue {
    // Valid JSON by eye; should it ever not be, `null` is what a client can still read.
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}

fn metadata(tool: &Tool, printed: &str, blobs: &dyn Blobs) -> Value {
    let mut known = match tool::output(tool, blobs) {
        Some(Value::Object(mut fields)) => match fields.remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        },
        _ => Map::new(),
    };
    // What a command printed is drawn from here: OpenCode's own page of a command never looks at `output`.
    if KnownTool::of(tool) == Some(KnownTool::Bash) && !printed.is_empty() && !known.contains_key("output") {
        known.insert("output".to_owned(), json!(printed));
    }
    if let Some(session) = tool.subagent.as_ref().filter(|_| !known.contains_key("sessionId")) {
        known.insert("sessionId".to_owned(), json!(session));
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
