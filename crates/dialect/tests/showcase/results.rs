//! Document 003's results of tools. They are not streamed; `/tool-results` has them.

use serde_json::{Value, json};
use tolka_dialect::agentsmithy::{read_result, result};
use tolka_facts::{CallId, Json, NoBlobs, Tool, ToolStatus};

fn ended(name: &str, input: Value, output: Value) -> Tool {
    Tool {
        call: CallId::from("call_1"),
        name: Some(name.into()),
        status: ToolStatus::Completed,
        input: Some(Json::from(input)),
        output: Some(Json::from(output)),
        ..Tool::default()
    }
}

fn failed(name: &str, input: Value, error: &str) -> Tool {
    Tool { status: ToolStatus::Failed, output: None, error: Some(error.into()), ..ended(name, input, Value::Null) }
}

/// A call that gives each type of result that the document lists.
fn calls() -> Vec<(&'static str, Tool)> {
    let file = || json!({ "filePath": "src/a.rs" });
    let (search, sleep) = (|| json!({ "pattern": "fn", "path": "src" }), || json!({ "command": "sleep 100" }));
    vec![
        ("web_browse_result", ended("webfetch", json!({ "url": "https://example.com" }), json!({ "output": "hi" }))),
        ("web_browse_error", failed("webfetch", json!({ "url": "https://example.com" }), "no route")),
        ("web_search_result", ended("websearch", json!({ "query": "sse" }), json!({ "output": "none" }))),
        ("web_search_error", failed("websearch", json!({ "query": "sse" }), "no endpoint")),
        ("read_file_result", ended("read", file(), json!({ "output": "one" }))),
        ("read_file_error", failed("read", file(), "File not found")),
        ("write_file_result", ended("write", json!({ "filePath": "a", "content": "x" }), json!({ "output": "ok" }))),
        (
            "replace_file_result",
            ended("edit", json!({ "filePath": "a", "oldString": "x", "newString": "y" }), json!({ "output": "ok" })),
        ),
        ("delete_file_result", ended("delete", file(), json!({ "output": "ok" }))),
        ("search_files_result", ended("grep", search(), json!({ "output": "src/a.rs:1: fn main" }))),
        ("search_files_error", failed("grep", search(), "not a pattern")),
        ("list_files_result", ended("list", json!({ "path": "src" }), json!({ "output": "a.rs\nb.rs" }))),
        ("list_files_error", failed("list", json!({ "path": "src" }), "no such folder")),
        ("run_command_result", ended("bash", json!({ "command": "ls" }), json!({ "output": "a", "exit": 1 }))),
        ("run_command_error", failed("bash", json!({ "command": "ls" }), "cannot be started")),
        ("run_command_timeout", failed("bash", sleep(), "The command timed out after 60 s")),
        ("tool_error", failed("no_such_tool", json!({ "x": 1 }), "there is no such tool")),
    ]
}

#[test]
fn every_result_that_document_003_names_is_told_and_read() {
    for (name, tool) in calls() {
        let told = result(&tool, "/home/ada/project", &NoBlobs).unwrap();
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!(json["type"], name, "{json}");
        assert_eq!(read_result(&json), Some(told), "{name}");
    }
}
