//! What the model is sent of a call that ended: the output, cut where it is long, and what it could not see from that.

use serde_json::{Value, json};
use tolka_facts::{Blobs, Block, Body, Json, Tool, ToolContent, ToolStatus};

use super::Outcome;
use crate::native::model::Input;

/// More than any tool but a command gives; see [`super::read`].
const LINES: usize = 2_100;
const BYTES: usize = 52 * 1024;
/// Of what is kept, so much is from the beginning; the rest is from the end, where a command says what went wrong.
const HEAD: (usize, usize) = (3, 5);

pub(super) fn of(tool: &Tool, blobs: &dyn Blobs) -> Outcome {
    let output = tool.output.as_ref().map(|output| output.whole(blobs).value()).unwrap_or_default();
    let text = match &output {
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields.get("output").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    let error = tool.error.as_ref().map(|error| error.text(blobs).into_owned());
    let mut said = cut(&text);
    let mut add = |words: &str| {
        if !said.is_empty() && !said.ends_with('\n') {
            said.push('\n');
        }
        said.push_str(words);
    };
    match tool.status {
        ToolStatus::Completed => {
            for note in notes(&output["metadata"], text.is_empty()) {
                add(&note);
            }
        }
        ToolStatus::Failed | ToolStatus::Cancelled => add(error.as_deref().unwrap_or("The tool failed.")),
        ToolStatus::Pending | ToolStatus::Running => add("The tool did not end; what it did is not known."),
    }
    let mut content = vec![Input::Text(said)];
    content.extend(tool.content.iter().flatten().filter_map(|content| picture(content, blobs)));
    Outcome { content, is_error: tool.status != ToolStatus::Completed, ends_turn: ends_turn(tool, blobs) }
}

/// Whether the end of this call was the end of its turn.
pub(super) fn ends_turn(tool: &Tool, blobs: &dyn Blobs) -> bool {
    let meta = tool.meta.as_ref().map(|meta| meta.whole(blobs).value()).unwrap_or_default();
    meta[OURS][ENDS_TURN] == Value::Bool(true)
}

/// Where dialects that show a call's `_meta` keep what is ours; clients skip it.
const OURS: &str = "tolka";
const ENDS_TURN: &str = "ends_turn";

/// The mark on a call whose end is the end of its turn.
pub(super) fn ending() -> Json {
    json!({ OURS: { ENDS_TURN: true } }).into()
}

/// What the output alone does not say.
fn notes(metadata: &Value, is_silent: bool) -> Vec<String> {
    let mut notes = Vec::new();
    match &metadata["exit"] {
        Value::Number(code) if code.as_i64() != Some(0) => notes.push(format!("[exit code {code}]")),
        Value::Number(_) if is_silent => notes.push("[no output, exit code 0]".to_owned()),
        _ => {}
    }
    if let Some(note) = metadata["note"].as_str() {
        notes.push(note.to_owned());
    }
    notes
}

fn picture(content: &ToolContent, blobs: &dyn Blobs) -> Option<Input> {
    let ToolContent::Content { block: Block::Image { data, mime, .. } } = content else { return None };
    match data {
        Body::Blob { blob, .. } if blobs.blob(&blob.hash).is_none() => {
            Some(Input::Text("[the picture is no longer kept; read it again]".to_owned()))
        }
        data => Some(Input::Image { mime: mime.clone(), data: data.text(blobs).into_owned() }),
    }
}

/// The beginning and the end of a text that is too long, and between them how much is left out.
pub(super) fn cut(text: &str) -> String {
    let lines = text.lines().count();
    if text.len() <= BYTES && lines <= LINES {
        return text.to_owned();
    }
    let share = |most: usize| most * HEAD.0 / HEAD.1;
    let head_lines = text.match_indices('\n').nth(share(LINES) - 1).map_or(text.len(), |(at, _)| at + 1);
    let head = text.floor_char_boundary(head_lines.min(share(BYTES)));
    let tail_lines = text.trim_end().rmatch_indices('\n').nth(LINES - share(LINES) - 1).map_or(0, |(at, _)| at + 1);
    let tail = text.ceil_char_boundary(tail_lines.max(text.len().saturating_sub(BYTES - share(BYTES)))).max(head);
    let (start, gone, end) = (&text[..head], &text[head..tail], &text[tail..]);
    let gap = if start.ends_with('\n') { "" } else { "\n" };
    format!(
        "{start}{gap}\n[{} bytes in {} lines are left out here, of {} bytes in {lines} lines. To see them, send the output \
         of the command to a file and read that with offset and limit, or search it with grep.]\n\n{end}",
        gone.len(),
        gone.lines().count(),
        text.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_whole() {
        for text in ["", "a", "a\nb\n", &"x".repeat(BYTES), &"x\n".repeat(LINES)] {
            assert_eq!(cut(text), text);
        }
    }

    #[test]
    fn of_what_is_long_both_ends_are_kept() {
        let text: String = (1..=10_000).map(|n| format!("line {n}\n")).collect();
        let kept = cut(&text);
        assert!(kept.starts_with("line 1\n") && kept.ends_with("line 10000\n"), "{kept}");
        assert!(
            kept.contains("[79000 bytes in 7900 lines are left out here, of 98894 bytes in 10000 lines."),
            "{kept}"
        );
        let wide = "ö".repeat(100_000);
        let kept = cut(&wide);
        assert!(kept.len() < BYTES + 400 && kept.starts_with('ö') && kept.ends_with('ö'));
    }
}
