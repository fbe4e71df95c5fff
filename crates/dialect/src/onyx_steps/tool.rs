//! A tool call in this wire's spelling: Claude's names of tools and of their fields, a result in plain text.

use std::borrow::Cow;

use serde_json::Map;
use tolka_facts::{Blobs, Json, Since, Tool, ToolKind, ToolStatus};

use crate::onyx::rules;
use crate::tool::{self, Field, KnownTool, respelled};

/// A line of output longer than this is cut in a `message`; `output` has it whole.
const MESSAGE_LIMIT: usize = 200;

/// Fields of the tools that read and write files, in Claude's spelling.
const FILE_FIELDS: [(Field, &str); 5] = [
    (Field::File, "file_path"),
    (Field::Content, "content"),
    (Field::OldText, "old_string"),
    (Field::NewText, "new_string"),
    (Field::ReplaceAll, "replace_all"),
];

/// A name that the document's family does not know passes through.
pub(super) fn name(tool: &Tool) -> &str {
    match KnownTool::of(tool) {
        Some(KnownTool::Read) => "Read",
        Some(KnownTool::Bash) => "Bash",
        Some(KnownTool::Write) => "Write",
        Some(KnownTool::Edit) => "Edit",
        Some(KnownTool::Glob) => "Glob",
        Some(KnownTool::Grep) => "Grep",
        Some(KnownTool::List) => "LS",
        Some(KnownTool::Task) => "Task",
        Some(KnownTool::TodoWrite) => "TodoWrite",
        Some(KnownTool::WebFetch) => "WebFetch",
        Some(KnownTool::WebSearch) => "WebSearch",
        Some(KnownTool::Skill) => "Skill",
        Some(KnownTool::Delete | KnownTool::ApplyPatch | KnownTool::Lsp | KnownTool::Question | KnownTool::Invalid)
        | None => tool::name(tool),
    }
}

pub(super) fn read_name(name: &str) -> String {
    KnownTool::named(name).map_or_else(|| name.to_owned(), |known| known.name().to_owned())
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
    let is_of_a_file = KnownTool::of(tool).is_some_and(KnownTool::is_of_a_file);
    is_of_a_file.then(|| respelled(&input, &FILE_FIELDS)).flatten().map_or(input, Cow::Owned)
}

fn empty() -> Cow<'static, Json> {
    Cow::Owned(Json::of(&Map::new()))
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
        (ToolStatus::Completed, _) => return tool::output_text(tool, blobs),
        (_, Some(error)) => error.text(blobs).into_owned(),
        (ToolStatus::Cancelled, None) if is_silent() => String::new(),
        (_, None) => tool::error_text(tool, blobs),
    };
    match (said.is_empty(), tool.status) {
        (false, _) => said,
        (true, ToolStatus::Cancelled) => "The tool call was cancelled.".to_owned(),
        (true, _) => tool::UNEXPLAINED.to_owned(),
    }
}

/// The last line of new output that says anything, short enough to stand in a list.
pub(super) fn last_line(output: Since<'_>) -> Option<String> {
    // From the end, and no further than that line: the output may be long.
    let mut pieces: Vec<&str> = Vec::new();
    for piece in output.pieces().rev() {
        let piece = if pieces.is_empty() { piece.trim_end() } else { piece };
        if !piece.is_empty() {
            pieces.push(piece);
        }
        if piece.contains('\n') {
            break;
        }
    }
    pieces.reverse();
    let text = pieces.concat();
    let line = text.lines().next_back()?.trim();
    let end = line.char_indices().nth(MESSAGE_LIMIT).map_or(line.len(), |(at, _)| at);
    Some(line[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use tolka_facts::Rope;

    use super::*;

    #[test]
    fn the_last_line_is_found_wherever_it_began() {
        let long = "y".repeat(20_000);
        for (pieces, line) in [
            (vec!["one\n", "two\r\n", " \n\n"], Some("two".to_owned())),
            (vec!["one\n  tw", "o  "], Some("two".to_owned())),
            (vec!["one\nx", &long, &long, "\n\t\n"], Some(format!("x{}", &long[..MESSAGE_LIMIT - 1]))),
            (vec!["", " \n"], None),
        ] {
            let mut rope = Rope::default();
            pieces.into_iter().for_each(|piece| rope.push(piece));
            assert_eq!(last_line(rope.since(0)), line);
        }
    }
}
