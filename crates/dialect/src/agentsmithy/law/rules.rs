//! The rules by name, and what each event must hold.

use serde_json::Value;

use super::super::patch;
use crate::check::{Field, Findings, Kind, Rule, may, must};
use crate::path::is_absolute;

const SKELETON: &str = "003, Client Handling Skeleton";
const FORMAT: &str = "003, Event Format";
const OVERVIEW: &str = "003, Overview";
const STREAMED: &str = "003, What is streamed vs not";

macro_rules! rule {
    ($id:ident, $name:literal, $section:expr, $demand:literal) => {
        pub(super) const $id: Rule = Rule { name: $name, section: $section, demand: $demand };
    };
}

rule!(BARE, "bare-json", FORMAT, "An event stands behind `data: `; the document's client skips every other line.");
rule!(
    CRLF,
    "crlf",
    SKELETON,
    "Lines end in LF: the document's client splits at two LFs and finds none between CR LFs."
);
rule!(
    ID,
    "id-line",
    SKELETON,
    "There are no `id:` lines: the document's client parses or skips the event as a whole. A stream with positions, as /v1 has them to resume from, is for other readers."
);
rule!(
    EVENT,
    "event-line",
    SKELETON,
    "There are no `event:` lines: the document's client skips an event that begins with one."
);
rule!(DATA, "data-line", SKELETON, "An event is one line that begins with `data: `, and nothing stands before it.");
rule!(JSON, "json", OVERVIEW, "Each message is a single JSON object.");
rule!(CUT, "cut", SKELETON, "An event ends with an empty line; without it the document's client never reads it.");
rule!(TYPE, "type", OVERVIEW, "There are thirteen types; the document's client shows any other as chat.");

rule!(
    USER_FIRST,
    "user-first",
    "003, Example Stream",
    "A turn begins with `user`; only a refused request may begin with `error`."
);
rule!(PIECE, "outside-segment", STREAMED, "A piece stands between the start and the end of its segment.");
rule!(DOUBLE_START, "double-start", STREAMED, "A segment that is open is not started again.");
rule!(NESTED, "nested", "003, Example Stream", "A segment is closed before another one starts.");
rule!(END, "end-without-start", STREAMED, "A segment that is ended was started.");
rule!(UNCLOSED, "unclosed-segment", STREAMED, "A segment is closed before anything else is told.");
rule!(ERROR, "error-then-done", "003, Event Types, 11) error", "`error` is immediately followed by `done`.");
rule!(NO_DONE, "no-done", "003, Event Types, 12) done", "`done` is always sent to close the stream.");
rule!(
    AFTER_DONE,
    "after-done",
    "003, Event Types, 12) done",
    "`done` is the final event; only another turn's `user` may follow."
);
rule!(DONE_ONCE, "done-once", "003, Event Types, 12) done", "`done` is told once.");
rule!(DIALOG, "dialog", "003, Connection", "All events of a turn are of one dialog.");
rule!(CHECKPOINT, "checkpoint", "003, Event Types, 1) user", "`checkpoint` is the id of a git commit.");
rule!(ABSOLUTE, "file-absolute", "003, Event Types, 10) file_edit", "`file` is an absolute path.");
rule!(DIFF, "diff", "003, Event Types, 10) file_edit", "`diff` is a unified diff, and `git apply` can read it.");

#[derive(Debug)]
pub(super) struct Shape {
    name: &'static str,
    pub(super) rule: Rule,
    pub(super) fields: &'static [Field],
}

macro_rules! shape {
    ($name:literal, $rule:literal, $heading:literal, $demand:literal, $fields:expr) => {
        Shape {
            name: $name,
            rule: Rule { name: $rule, section: concat!("003, Event Types, ", $heading), demand: $demand },
            fields: $fields,
        }
    };
}

const DIALOG_ID: Field = must("dialog_id", Kind::Text);
const CONTENT: Field = must("content", Kind::Text);
const MARK: &[Field] = &[DIALOG_ID];

static SHAPES: [Shape; 13] = [
    shape!(
        "user",
        "user",
        "1) user",
        "It has a content and a dialog, and a checkpoint if one was made.",
        &[CONTENT, may("checkpoint", Kind::Text), DIALOG_ID]
    ),
    shape!("chat_start", "chat-start", "2) chat_start", "It has a dialog.", MARK),
    shape!("chat", "chat", "2) chat", "It has a content and a dialog.", &[CONTENT, DIALOG_ID]),
    shape!("chat_end", "chat-end", "3) chat_end", "It has a dialog.", MARK),
    shape!("reasoning_start", "reasoning-start", "4) reasoning_start", "It has a dialog.", MARK),
    shape!("reasoning", "reasoning", "5) reasoning", "It has a content and a dialog.", &[CONTENT, DIALOG_ID]),
    shape!("reasoning_end", "reasoning-end", "6) reasoning_end", "It has a dialog.", MARK),
    shape!("summary_start", "summary-start", "7) summary_start", "It has a dialog.", MARK),
    shape!("summary_end", "summary-end", "8) summary_end", "It has a dialog.", MARK),
    shape!(
        "tool_call",
        "tool-call",
        "9) tool_call",
        "It has a name, an object of arguments and a dialog.",
        &[must("name", Kind::Text), must("args", Kind::Open), DIALOG_ID]
    ),
    shape!(
        "file_edit",
        "file-edit",
        "10) file_edit",
        "It has a file and a dialog, and may have a diff.",
        &[must("file", Kind::Text), may("diff", Kind::Text), DIALOG_ID]
    ),
    shape!(
        "error",
        "error",
        "11) error",
        "It has the words of the error and a dialog.",
        &[must("error", Kind::Text), DIALOG_ID]
    ),
    shape!(
        "done",
        "done",
        "12) done",
        "It has `done`, which is true, and a dialog.",
        &[must("done", Kind::True), DIALOG_ID]
    ),
];

/// But for those of the lines.
pub(super) fn all() -> Vec<&'static Rule> {
    let order: [&Rule; 15] = [
        &TYPE,
        &USER_FIRST,
        &PIECE,
        &DOUBLE_START,
        &NESTED,
        &END,
        &UNCLOSED,
        &ERROR,
        &NO_DONE,
        &AFTER_DONE,
        &DONE_ONCE,
        &DIALOG,
        &CHECKPOINT,
        &ABSOLUTE,
        &DIFF,
    ];
    SHAPES.iter().map(|shape| &shape.rule).chain(order).collect()
}

pub(super) fn shape(name: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.name == name)
}

/// What a value of the right type must say. Others are the shape's to judge.
pub(super) fn values(packet: &Value, out: &mut Findings<'_>) {
    match packet["type"].as_str() {
        Some("user") => {
            let checkpoint = packet["checkpoint"].as_str();
            if let Some(checkpoint) = checkpoint.filter(|checkpoint| !is_commit(checkpoint)) {
                let start: String = checkpoint.chars().take(40).collect();
                out.add(&CHECKPOINT, format!("`checkpoint` is \"{start}\""));
            }
        }
        Some("file_edit") => {
            if packet["file"].as_str().is_some_and(|file| !is_absolute(file)) {
                out.add(&ABSOLUTE, format!("`file` is {}", packet["file"]));
            }
            if let Some(Err(problem)) = packet["diff"].as_str().map(patch::read) {
                out.add(&DIFF, problem);
            }
        }
        _ => {}
    }
}

/// Whole or abbreviated, of either of git's hashes.
fn is_commit(id: &str) -> bool {
    (7..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}
