//! What a tool gave, as `rawOutput`: an object with `output`, whatever shape the agent used.
//!
//! The documents show `{"output", "metadata"}`, and `{"error"}` for a failed call. Agents send objects of
//! their own, plain strings, or nothing but content and a live stream; clients read `output`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};
use tolka_facts::{Blobs, Block, Json, Rope, Tool, ToolContent, ToolStatus};

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Output<'a> {
    None,
    Told(Cow<'a, Json>),
    Text { output: String },
    Live { output: &'a Rope },
    Made(Map<String, Value>),
}

impl<'a> Output<'a> {
    /// Null until the call has ended, as the document says; what it puts out before that is content.
    pub(super) fn of(tool: &'a Tool, blobs: &dyn Blobs) -> Self {
        match tool.status {
            ToolStatus::Pending | ToolStatus::Running => Output::None,
            ToolStatus::Completed => Output::completed(tool, blobs),
            ToolStatus::Failed | ToolStatus::Cancelled => Output::Made(failed(tool, blobs)),
        }
    }

    fn completed(tool: &'a Tool, blobs: &dyn Blobs) -> Self {
        if told(tool).is_none() && !tool.live_output.is_empty() {
            return Output::Live { output: &tool.live_output };
        }
        let spare = spare_text(tool, blobs);
        match (told(tool), spare) {
            (Some(output), Some(text)) => {
                let output = output.whole(blobs);
                match output.read::<Map<String, Value>>() {
                    Some(mut fields) if !fields.contains_key("output") => {
                        fields.insert("output".to_owned(), Value::String(text));
                        Output::Made(fields)
                    }
                    _ => Output::told(output),
                }
            }
            (Some(output), None) => Output::told(output.whole(blobs)),
            (None, Some(output)) => Output::Text { output },
            (None, None) => Output::Text { output: String::new() },
        }
    }

    fn told(output: Cow<'a, Json>) -> Self {
        match output.get().trim_start().starts_with('{') {
            true => Output::Told(output),
            false => Output::Text { output: plain(&output.value()) },
        }
    }
}

/// The output that the agent itself gave; a null is none.
pub(super) fn told(tool: &Tool) -> Option<&Json> {
    tool.output.as_ref().filter(|output| !output.is_null())
}

/// `error` as the document shows it, and the same words in `output`, which is what today's client shows.
/// What the tool put out before it failed is kept before them.
fn failed(tool: &Tool, blobs: &dyn Blobs) -> Map<String, Value> {
    let mut fields = match told(tool).map(|output| output.whole(blobs).value()) {
        Some(Value::Object(fields)) => fields,
        Some(other) => Map::from_iter([("output".to_owned(), Value::String(plain(&other)))]),
        None => Map::new(),
    };
    let mut own = fields.get("output").filter(|output| !output.is_null()).map(plain).unwrap_or_default();
    if own.is_empty() {
        own = tool.live_output.to_string();
    }
    let words = tool
        .error
        .as_ref()
        .map(|error| error.text(blobs).into_owned())
        .or_else(|| fields.get("error").filter(|error| !error.is_null()).map(plain))
        .or_else(|| Some(own.clone()))
        .filter(|words| !words.is_empty())
        .or_else(|| content_text(tool, blobs))
        .unwrap_or_else(|| match tool.status {
            ToolStatus::Cancelled => "The tool call was cancelled".to_owned(),
            _ => "The tool call failed".to_owned(),
        });
    if own.is_empty() {
        own.clone_from(&words);
    } else if !own.contains(&words) {
        let gap = if own.ends_with('\n') { "" } else { "\n" };
        own = format!("{own}{gap}{words}");
    }
    fields.insert("error".to_owned(), Value::String(words));
    fields.insert("output".to_owned(), Value::String(own));
    fields
}

/// Text for an output that the agent did not give. The live one comes first: it is bare, where content is
/// often dressed up for a reader.
fn spare_text(tool: &Tool, blobs: &dyn Blobs) -> Option<String> {
    if !tool.live_output.is_empty() {
        return Some(tool.live_output.to_string());
    }
    content_text(tool, blobs)
}

fn content_text(tool: &Tool, blobs: &dyn Blobs) -> Option<String> {
    let mut texts = Vec::new();
    for content in tool.content.iter().flatten() {
        if let ToolContent::Content { block: Block::Text { text, .. } } = content {
            texts.push(text.text(blobs));
        }
    }
    Some(texts.join("\n")).filter(|text| !text.is_empty())
}

/// A value as words: a string is itself, content blocks are their texts, the rest is JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if !items.is_empty() && items.iter().all(|item| item["text"].is_string()) => {
            let texts: Vec<_> = items.iter().filter_map(|item| item["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Object(fields) if fields.get("message").is_some_and(Value::is_string) => plain(&fields["message"]),
        other => other.to_string(),
    }
}
