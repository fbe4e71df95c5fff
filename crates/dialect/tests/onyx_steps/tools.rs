//! Tool calls: when they start, what is told while they run, and what their end says.

use serde_json::{Value, json};
use tolka_facts::event::{InputAppended, OutputAppended, ToolChanged};
use tolka_facts::{CallId, Json, ToolContent, ToolKind, ToolStatus};

use crate::generate::blocks;
use crate::{Session, change, json};

fn output(text: &str) -> OutputAppended {
    OutputAppended { call: CallId::from("c"), text: text.into() }
}

fn named(name: &str, status: ToolStatus) -> ToolChanged {
    ToolChanged { name: Some(name.into()), ..change("c", status) }
}

#[test]
fn a_call_starts_when_there_is_something_to_invoke() {
    let call = CallId::from("c");
    let mut session = Session::in_turn();
    session.tell(named("write", ToolStatus::Pending));
    session.tell(ToolChanged { input: json("{}"), ..change("c", ToolStatus::Pending) });
    session.tell(InputAppended { call, text: r#"{"filePath":"#.into() });
    assert_eq!(session.types(), [""; 0]);
    let input = json(r#"{"filePath":"a","content":"b"}"#);
    session.tell(ToolChanged { input, ..change("c", ToolStatus::Pending) });
    let start = json!({"type": "tool_start", "tool_call_id": "c", "tool_name": "Write",
        "tool_input": {"file_path": "a", "content": "b"}, "title": "Write",
        "timestamp": "2025-01-20T12:00:00.000Z"});
    assert_eq!(session.packets(), [start]);
    session.tell(change("c", ToolStatus::Running));
    assert_eq!(session.types(), ["tool_start"], "it was told to be invoked");
}

#[test]
fn a_call_that_is_first_seen_at_its_end_is_started_and_ended() {
    let mut session = Session::in_turn();
    session.tell(named("bash", ToolStatus::Completed)).tell(change("c", ToolStatus::Failed)).tell(output("late"));
    assert_eq!(session.types(), ["tool_start", "tool_end"]);
}

#[test]
fn what_can_be_seen_to_change_is_progress() {
    let titled = |title: &str| ToolChanged { title: Some(title.into()), ..change("c", ToolStatus::Running) };
    let mut session = Session::in_turn();
    session.tell(named("bash", ToolStatus::Running)).tell(titled("Bash")).tell(titled("Tests")).tell(titled("Tests"));
    session.tell(ToolChanged { input: json(r#"{"command":"make"}"#), ..change("c", ToolStatus::Running) });
    session.tell(ToolChanged { title: Some("Tests ran".into()), ..change("c", ToolStatus::Completed) });
    let progress = |message: &str| {
        json!({"type": "tool_progress", "tool_call_id": "c", "tool_name": "Bash", "status": "in_progress",
            "progress": null, "message": message, "timestamp": "2025-01-20T12:00:00.000Z"})
    };
    let mut with_input = progress("Tests");
    with_input["tool_input"] = json!({"command": "make"});
    assert_eq!(session.packets()[1..4], [progress("Tests"), with_input, progress("Tests ran")]);
    assert_eq!(session.types()[4..], ["tool_end"]);
}

#[test]
fn live_output_is_told_at_marks_that_grow() {
    let mut session = Session::in_turn();
    session.tell(named("bash", ToolStatus::Running));
    let line = "a line of output that a compiler might well have written, more or less\n";
    for _ in 0..4000 {
        session.tell(output(line));
    }
    let packets: Vec<_> = session.packets().into_iter().filter(|packet| packet["type"] == "tool_progress").collect();
    let told: String = packets.iter().filter_map(|packet| packet["output"].as_str()).collect();
    let (told, whole) = (told.len(), line.len() * 4000);
    assert!(told <= whole && told > whole * 8 / 9, "{told} of {whole} bytes");
    assert!(packets.len() < 60, "{} packets", packets.len());
    assert!(packets.iter().all(|packet| packet["message"] == line.trim()));
}

#[test]
fn the_message_is_the_last_line_that_says_anything() {
    let message = |text: &str| {
        let mut session = Session::in_turn();
        session.tell(ToolChanged { title: Some("Tests".into()), ..named("bash", ToolStatus::Running) });
        session.tell(output(text));
        session.packets().last().unwrap()["message"].clone()
    };
    assert_eq!(message("one\n  two  \n\n"), "two");
    assert_eq!(message("  \n"), "Tests");
    assert_eq!(message(&"å".repeat(1000)), Value::from("å".repeat(200)));
}

#[test]
fn names_and_fields_are_in_the_documents_spelling() {
    let spelled = |name: Option<&str>, kind: ToolKind, input: &str| {
        let mut session = Session::in_turn();
        session.tell(ToolChanged {
            name: name.map(str::to_owned),
            kind: Some(kind),
            input: json(input),
            ..change("c", ToolStatus::Running)
        });
        let start = session.packets().remove(0);
        (start["tool_name"].as_str().unwrap().to_owned(), start["tool_input"].to_string())
    };
    let edit = r#"{"filePath":"a","oldString":"b","newString":"c","replaceAll":true}"#;
    let spelled_edit = r#"{"file_path":"a","old_string":"b","new_string":"c","replace_all":true}"#;
    for (name, kind, input, told) in [
        (Some("read"), ToolKind::Read, r#"{"filePath":"a"}"#, ("Read", r#"{"file_path":"a"}"#)),
        (Some("edit"), ToolKind::Edit, edit, ("Edit", spelled_edit)),
        (Some("bash"), ToolKind::Execute, r#"{"command":"ls"}"#, ("Bash", r#"{"command":"ls"}"#)),
        (Some("run_shell_command"), ToolKind::Execute, "{}", ("Bash", "{}")),
        (Some("glob"), ToolKind::Search, "{}", ("Glob", "{}")),
        (Some("grep"), ToolKind::Search, "{}", ("Grep", "{}")),
        (Some("list"), ToolKind::Search, "{}", ("LS", "{}")),
        (Some("todowrite"), ToolKind::Other, "{}", ("TodoWrite", "{}")),
        (Some("webfetch"), ToolKind::Fetch, "null", ("WebFetch", "{}")),
        (Some("mcp__house__lamp"), ToolKind::Other, r#"{"filePath":1}"#, ("mcp__house__lamp", r#"{"filePath":1}"#)),
        (None, ToolKind::Execute, "[1]", ("Bash", r#"{"input":[1]}"#)),
        (None, ToolKind::Other, r#""x""#, ("tool", r#"{"input":"x"}"#)),
    ] {
        assert_eq!(spelled(name, kind, input), (told.0.to_owned(), told.1.to_owned()), "{name:?}");
    }
}

#[test]
fn an_end_says_how_it_went() {
    let end = |changed: ToolChanged| {
        let mut session = Session::in_turn();
        session.tell(named("bash", ToolStatus::Running)).tell(output("printed")).tell(changed);
        let end = session.packets().pop().unwrap();
        assert_eq!(end["type"], "tool_end");
        format!("{} {}", end["status"].as_str().unwrap(), end["result"].as_str().unwrap())
    };
    let completed = |output: Option<Json>| ToolChanged { output, ..change("c", ToolStatus::Completed) };
    assert_eq!(end(completed(json(r#""text""#))), "success text");
    assert_eq!(end(completed(json(r#"{"output":"inner","metadata":{}}"#))), "success inner");
    assert_eq!(end(completed(json("[1]"))), "success [1]");
    assert_eq!(end(completed(None)), "success printed");
    let failed = |error: Option<&str>| ToolChanged { error: error.map(Into::into), ..change("c", ToolStatus::Failed) };
    assert_eq!(end(failed(Some("no such file"))), "error no such file");
    assert_eq!(end(failed(Some(""))), "error The tool failed and did not say why.");
    assert_eq!(end(failed(None)), "error printed");
    let mut session = Session::in_turn();
    session.tell(change("c", ToolStatus::Cancelled));
    assert_eq!(session.packets()[1]["result"], "The tool call was cancelled.");
}

/// A value of over 32 KiB stands in a blob.
#[test]
fn long_values_are_told_whole() {
    let long = "long ".repeat(10_000);
    let mut session = Session::in_turn();
    let input = Some(Json::from_value(&json!({ "command": long })));
    session.tell(ToolChanged { input, ..named("bash", ToolStatus::Running) });
    session.tell(ToolChanged { output: Some(Json::of(&long)), ..change("c", ToolStatus::Completed) });
    assert!(session.facts.iter().all(|fact| fact.to_json().len() < 4096));
    let packets = session.packets();
    assert_eq!(packets[0]["tool_input"], json!({ "command": long }));
    assert_eq!(packets[1]["result"], long);
}

#[test]
fn every_kind_of_content_is_told_as_the_documents_blocks() {
    let mut session = Session::in_turn();
    let content = blocks().into_iter().map(|block| ToolContent::Content { block });
    let hidden =
        [ToolContent::Terminal { id: "t".into() }, ToolContent::Diff { path: "a".into(), old: None, new: "b".into() }];
    let content = Some(content.chain(hidden).collect());
    session.tell(ToolChanged { content, ..change("c", ToolStatus::Completed) });
    let blocks = json!([
        {"type": "text", "text": "Hello world"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "embedded_resource", "uri": "file:///a", "text": "contents", "mimeType": "text/plain"},
        {"type": "embedded_resource", "uri": "file:///a", "blob": "aGk=", "mimeType": null},
        {"type": "resource_link", "uri": "file:///b", "name": "b", "mimeType": null, "size": 7},
    ]);
    let packets = session.packets();
    assert_eq!(session.types(), ["tool_start", "file_write", "tool_end"]);
    assert_eq!(packets[2]["content"], blocks);
}
