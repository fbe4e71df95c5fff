//! A right stream, spoilt in one way at a time: the law finds that, and nothing else.

use crate::judged;

const USER: &str = r#"data: {"type":"user","content":"Hi","checkpoint":"a1b2c3d4e5f6789abc","dialog_id":"d"}"#;
const DONE: &str = r#"data: {"type":"done","done":true,"dialog_id":"d"}"#;

/// Every type, each on an odd line: 1 user, 3 to 7 reasoning, 9 to 13 chat, 15 and 17 summary, 19 a call, 21 a file,
/// 23 error, 25 done.
fn right() -> Vec<String> {
    let lines = [
        USER,
        r#"data: {"type":"reasoning_start","dialog_id":"d"}"#,
        r#"data: {"type":"reasoning","content":"Hm","dialog_id":"d"}"#,
        r#"data: {"type":"reasoning_end","dialog_id":"d"}"#,
        r#"data: {"type":"chat_start","dialog_id":"d"}"#,
        r#"data: {"type":"chat","content":"Yes","dialog_id":"d"}"#,
        r#"data: {"type":"chat_end","dialog_id":"d"}"#,
        r#"data: {"type":"summary_start","dialog_id":"d"}"#,
        r#"data: {"type":"summary_end","dialog_id":"d"}"#,
        r#"data: {"type":"tool_call","name":"read_file","args":{"path":"a"},"dialog_id":"d"}"#,
        r#"data: {"type":"file_edit","file":"/a","diff":"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n","dialog_id":"d"}"#,
        r#"data: {"type":"error","error":"Oh","dialog_id":"d"}"#,
        DONE,
    ];
    lines.map(str::to_owned).to_vec()
}

fn written(lines: &[String]) -> Vec<u8> {
    lines.iter().map(|line| format!("{line}\n\n")).collect::<String>().into_bytes()
}

/// The event that stands on a line.
fn at(line: usize) -> usize {
    (line - 1) / 2
}

#[test]
fn a_right_stream_has_no_findings() {
    assert_eq!(judged(&written(&right())), []);
    assert_eq!(judged(b": ping\n\n"), []);
    let refused = [r#"data: {"type":"error","error":"No","dialog_id":"d"}"#.to_owned(), DONE.to_owned()];
    assert_eq!(judged(&written(&refused)), [], "a request that is refused");
    let two_turns = [right(), right()].concat();
    assert_eq!(judged(&written(&two_turns)), [], "a telling of the whole session");
    let other = written(&right()).iter().map(|b| char::from(*b)).collect::<String>().replace(r#""d""#, r#""e""#);
    assert_eq!(judged(&[written(&right()), other.into_bytes()].concat()), [], "each turn may be of its own dialog");
}

#[test]
fn a_fault_in_an_event_is_found() {
    let faults: [(usize, &str, &str, &str); 27] = [
        (3, "data: ", "data:", "data-line"),
        (3, "data: ", ": hm\ndata: ", "data-line"),
        (3, "data: ", "\ndata: ", "data-line"),
        (3, "data: ", "id: 1\ndata: ", "id-line"),
        (3, "data: ", "event: message\ndata: ", "event-line"),
        (3, "data: ", "", "bare-json"),
        (19, "\"args\"", "\ndata: \"args\"", "data-line"),
        (19, "{\"path\":\"a\"}", "", "json"),
        (19, "\"tool_call\"", "\"search\"", "type"),
        (19, "\"type\":\"tool_call\",", "", "type"),
        (1, "\"content\":\"Hi\",", "", "user"),
        (1, "a1b2c3d4e5f6789abc", "HEAD", "checkpoint"),
        (1, "\"a1b2c3d4e5f6789abc\"", "null", "user"),
        (3, ",\"dialog_id\":\"d\"", "", "reasoning-start"),
        (5, "\"Hm\"", "7", "reasoning"),
        (7, "\"d\"", "1", "reasoning-end"),
        (9, "\"d\"", "\"e\"", "dialog"),
        (11, "\"content\":\"Yes\",", "", "chat"),
        (13, "\"d\"", "null", "chat-end"),
        (15, "\"d\"", "{}", "summary-start"),
        (17, ",\"dialog_id\":\"d\"", "", "summary-end"),
        (19, "{\"path\":\"a\"}", "[\"a\"]", "tool-call"),
        (19, "\"name\":\"read_file\",", "", "tool-call"),
        (21, "\"/a\"", "\"a\"", "file-absolute"),
        (21, "-1 +1", "-1,2 +1", "diff"),
        (23, "\"Oh\"", "{\"message\":\"Oh\"}", "error"),
        (25, "true", "false", "done"),
    ];
    for (line, good, bad, rule) in faults {
        let mut lines = right();
        let event = &mut lines[at(line)];
        assert!(event.contains(good), "{event} has no {good}");
        *event = event.replacen(good, bad, 1);
        let found = judged(&written(&lines));
        let rules: Vec<&str> = found.iter().map(|(_, rule)| *rule).collect();
        assert_eq!(rules, [rule], "line {line}: {bad}");
        let (line, found) = (u64::try_from(line).unwrap(), found[0].0);
        assert!(found == line || found == line + 1, "{rule} was found on line {found}, not {line}");
    }
}

#[test]
fn a_diff_that_git_refuses_is_found() {
    let refused = [
        "",
        "...",
        "@@ -1 +1 @@\n-a\n+b\n",
        "--- a/a\n+++ b/a\n",
        "--- a/a\n+++ b/a\n@@ -1 @@\n-a\n",
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n\n+b\n",
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n",
        "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-a\nb\n+c\n",
    ];
    for diff in refused {
        let edit = serde_json::json!({"type": "file_edit", "file": "/a", "diff": diff, "dialog_id": "d"});
        let lines = [USER.to_owned(), format!("data: {edit}"), DONE.to_owned()];
        assert_eq!(judged(&written(&lines)), [(3, "diff")], "{diff:?}");
    }
}

/// What is done to the events, by their lines.
enum Spoil {
    Without(usize),
    /// An event of this type and content before the one on that line.
    Before(usize, &'static str),
    Swap(usize, usize),
    Cut(usize),
    Twice(usize),
}

#[test]
fn a_fault_in_the_order_is_found() {
    use Spoil::{Before, Cut, Swap, Twice, Without};
    let chat = r#"{"type":"chat","content":"x","dialog_id":"d"}"#;
    let call = r#"{"type":"tool_call","name":"x","args":{},"dialog_id":"d"}"#;
    let summary_end = r#"{"type":"summary_end","dialog_id":"d"}"#;
    let faults = [
        (Without(1), 1, "user-first"),
        (Swap(1, 3), 1, "user-first"),
        (Without(3), 3, "outside-segment"),
        (Without(7), 7, "nested"),
        (Without(9), 9, "outside-segment"),
        (Without(13), 13, "nested"),
        (Without(15), 15, "end-without-start"),
        (Without(17), 17, "unclosed-segment"),
        (Without(25), 23, "error-then-done"),
        (Before(19, chat), 19, "outside-segment"),
        (Before(7, chat), 7, "outside-segment"),
        (Before(15, summary_end), 15, "end-without-start"),
        (Before(25, call), 25, "error-then-done"),
        (Twice(3), 5, "double-start"),
        (Twice(13), 15, "end-without-start"),
        (Twice(25), 27, "done-once"),
        (Twice(23), 25, "error-then-done"),
        (Before(27, chat), 27, "after-done"),
        (Cut(19), 19, "no-done"),
        (Cut(11), 11, "no-done"),
        (Swap(13, 19), 13, "unclosed-segment"),
        (Twice(1), 3, "no-done"),
    ];
    for (n, (spoil, line, rule)) in faults.into_iter().enumerate() {
        let mut lines = right();
        match spoil {
            Without(line) => drop(lines.remove(at(line))),
            Before(line, event) => lines.insert(at(line), format!("data: {event}")),
            Swap(one, other) => lines.swap(at(one), at(other)),
            Cut(line) => lines.truncate(at(line) + 1),
            Twice(line) => lines.insert(at(line), lines[at(line)].clone()),
        }
        let found = judged(&written(&lines));
        assert_eq!(found, [(line, rule)], "fault {n}");
    }
}

#[test]
fn a_fault_in_the_lines_is_found() {
    let stream = written(&right());
    let crlf = String::from_utf8(stream.clone()).unwrap().replace('\n', "\r\n");
    assert_eq!(judged(crlf.as_bytes()), [(1, "crlf")]);
    assert_eq!(judged(&stream[..stream.len() - 1]), [(23, "error-then-done"), (25, "cut")]);
}
