//! What a call gave, or why it did not, as text.

use serde_json::Value;
use tolka_facts::{Blobs, Block, Tool, ToolContent};

pub(crate) const UNEXPLAINED: &str = "The tool failed and did not say why.";

pub(crate) fn output(tool: &Tool, blobs: &dyn Blobs) -> Option<Value> {
    tool.output.as_ref().map(|output| output.whole(blobs).value())
}

/// The output's own text, else what the call showed, else what it printed live.
pub(crate) fn output_text(tool: &Tool, blobs: &dyn Blobs) -> String {
    match output(tool, blobs) {
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
    let output = output(tool, blobs);
    if let Some(error) = output.as_ref().and_then(|output| output.get("error")).and_then(Value::as_str) {
        return error.to_owned();
    }
    let text = output_text(tool, blobs);
    if text.is_empty() { UNEXPLAINED.to_owned() } else { text }
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
