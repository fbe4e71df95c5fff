//! The document's tool result types: each can be made of a call, and each is read back.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tolka_dialect::agentsmithy::{ToolResult, read_result, result};
use tolka_facts::{Block, Json, NoBlobs, Time, Tool, ToolContent, ToolStatus};

use crate::WORKSPACE;

/// Every name in the document's list.
const NAMES: [&str; 17] = [
    "web_browse_result",
    "web_browse_error",
    "web_search_result",
    "web_search_error",
    "read_file_result",
    "read_file_error",
    "write_file_result",
    "replace_file_result",
    "delete_file_result",
    "search_files_result",
    "search_files_error",
    "list_files_result",
    "list_files_error",
    "run_command_result",
    "run_command_error",
    "run_command_timeout",
    "tool_error",
];

fn ended(name: &str, input: &Value, status: ToolStatus, output: &Value) -> Tool {
    Tool {
        name: Some(name.into()),
        input: Some(Json::from_value(input)),
        output: Some(Json::from_value(output)).filter(|output| !output.is_null()),
        status,
        started: Some(Time::from_millis(1000)),
        ended: Some(Time::from_millis(1250)),
        ..Tool::default()
    }
}

fn told(tool: &Tool) -> Value {
    let result = result(tool, WORKSPACE, &NoBlobs).unwrap();
    let value = serde_json::to_value(&result).unwrap();
    assert_eq!(read_result(&value), Some(result), "read back");
    value
}

fn well(name: &str, input: &Value, output: &Value) -> Value {
    told(&ended(name, input, ToolStatus::Completed, output))
}

fn badly(name: &str, input: &Value, error: &str) -> Value {
    let tool = ended(name, input, ToolStatus::Failed, &Value::Null);
    told(&Tool { error: Some(error.into()), ..tool })
}

#[test]
fn files() {
    let path = json!({"filePath": "a.py", "content": "x", "oldString": "a", "newString": "b"});
    let absolute = format!("{WORKSPACE}/a.py");
    assert_eq!(
        well("read", &path, &json!({"output": "hi\n"})),
        json!({"type": "read_file_result", "path": absolute, "content": "hi\n"})
    );
    let mut shown = ended("read", &path, ToolStatus::Completed, &Value::Null);
    shown.content = Some(vec![ToolContent::Content { block: Block::text("shown") }]);
    assert_eq!(told(&shown)["content"], "shown");
    assert_eq!(well("write", &path, &Value::Null), json!({"type": "write_file_result", "path": absolute}));
    let diff = "------- SEARCH\na\n=======\nb\n+++++++ REPLACE";
    assert_eq!(
        well("edit", &path, &Value::Null),
        json!({"type": "replace_file_result", "path": absolute, "diff": diff})
    );
    assert_eq!(well("delete", &path, &Value::Null), json!({"type": "delete_file_result", "path": absolute}));
    assert_eq!(
        badly("read", &path, "There is no such file."),
        json!({"type": "read_file_error", "name": "read_file", "code": "execution_failed",
            "error": "There is no such file."})
    );
    assert_eq!(badly("write", &path, "The disk is full.")["type"], "tool_error");
}

#[test]
fn listings_and_searches() {
    let input = json!({"path": "src"});
    let tree = format!("{WORKSPACE}/src/\n  lib/\n    a.rs\n  b.rs\n");
    let items = |items: &[&str]| items.iter().map(|item| format!("{WORKSPACE}/src/{item}")).collect::<Vec<_>>();
    assert_eq!(
        well("list", &input, &json!(tree)),
        json!({"type": "list_files_result", "path": format!("{WORKSPACE}/src"),
            "items": items(&["b.rs", "lib", "lib/a.rs"])})
    );
    assert_eq!(well("list", &input, &json!("c.rs\nd/\n"))["items"], json!(items(&["c.rs", "d"])));
    assert_eq!(badly("list", &input, "no")["type"], "list_files_error");
    let input = json!({"pattern": "x"});
    let hits = json!({"type": "search_files_result", "results": [
        {"file": format!("{WORKSPACE}/a.rs"), "line": 3, "context": "let x: u8 = 1;"}]});
    assert_eq!(well("grep", &input, &json!("a.rs:3:let x: u8 = 1;\n")), hits);
    let opencode = format!("Found 1 matches\n{WORKSPACE}/a.rs:\n  Line 3: let x: u8 = 1;\n");
    assert_eq!(well("grep", &input, &json!({"output": opencode})), hits);
    assert_eq!(
        well("grep", &input, &json!("Nothing.")),
        json!({"type": "search_files_result", "results": [], "output": "Nothing."})
    );
    assert_eq!(badly("grep", &input, "a bad pattern")["type"], "search_files_error");
}

#[test]
fn commands() {
    let input = json!({"command": "make", "workdir": "src"});
    let ran = json!({"type": "run_command_result", "command": "make", "cwd": format!("{WORKSPACE}/src"),
        "exit_code": 2, "stdout": "no rule\n", "stderr": "", "stdout_truncated": false, "stderr_truncated": false,
        "stdout_truncated_bytes": 0, "stderr_truncated_bytes": 0, "timed_out": false, "duration_ms": 250, "os": {}});
    assert_eq!(well("bash", &input, &json!({"output": "no rule\n", "metadata": {"exit": 2}})), ran);
    let apart = json!({"stdout": "out", "stderr": "err", "exit_code": 0});
    let ran = well("bash", &input, &apart);
    assert_eq!((&ran["stdout"], &ran["stderr"], &ran["exit_code"]), (&json!("out"), &json!("err"), &json!(0)));
    let failed = told(&ended("bash", &input, ToolStatus::Failed, &json!({"exit_code": 1, "stdout": "no"})));
    assert_eq!(
        (&failed["type"], &failed["exit_code"]),
        (&json!("run_command_result"), &json!(1)),
        "it ran all the same"
    );
    assert_eq!(badly("bash", &input, "The command was refused.")["type"], "run_command_error");
    let late = badly("bash", &input, "The command timed out after 60 s.");
    assert_eq!((&late["type"], &late["timed_out"]), (&json!("run_command_timeout"), &json!(true)));
    let cancelled = told(&ended("bash", &input, ToolStatus::Cancelled, &Value::Null));
    assert_eq!((&cancelled["type"], &cancelled["code"]), (&json!("run_command_error"), &json!("cancelled")));
}

#[test]
fn the_web() {
    let input = json!({"url": "https://example.com", "query": "q"});
    assert_eq!(
        well("webfetch", &input, &json!({"output": "<p>", "metadata": {"status": 200, "contentType": "text/html"}})),
        json!({"type": "web_browse_result", "mode": "http", "url": "https://example.com",
            "final_url": "https://example.com", "status": 200, "content_type": "text/html", "encoding": null,
            "text": "<p>"})
    );
    assert_eq!(badly("webfetch", &input, "no")["type"], "web_browse_error");
    let hits = json!({"results": [{"title": "A", "url": "https://a", "snippet": "s"}, {"link": "https://b"}]});
    assert_eq!(
        well("websearch", &input, &hits),
        json!({"type": "web_search_result", "query": "q", "count": 2, "results": [
            {"title": "A", "url": "https://a", "snippet": "s"},
            {"title": "https://b", "url": "https://b", "snippet": ""}]})
    );
    assert_eq!(well("websearch", &input, &json!("Some words"))["output"], "Some words");
    assert_eq!(badly("websearch", &input, "no")["type"], "web_search_error");
}

#[test]
fn every_name_of_the_document_can_be_made_and_read() {
    let input = json!({"path": "a", "command": "x", "url": "u", "query": "q", "pattern": "p"});
    let names = ["read", "write", "edit", "delete", "grep", "list", "bash", "webfetch", "websearch", "other"];
    let mut made = BTreeSet::new();
    for name in names {
        made.insert(well(name, &input, &json!("x"))["type"].as_str().unwrap().to_owned());
        made.insert(badly(name, &input, "no")["type"].as_str().unwrap().to_owned());
        made.insert(badly(name, &input, "It timed out.")["type"].as_str().unwrap().to_owned());
    }
    assert!(made.remove("tool_result"), "what the document has no name for");
    assert_eq!(made, NAMES.map(str::to_owned).into());
}

/// As today's server gives them.
#[test]
fn results_of_a_real_server_are_read() {
    let error = json!({"type": "tool_error", "name": "read_file", "code": "not_found", "error": "File not found: a",
        "error_type": "FileNotFoundError"});
    assert!(read_result(&error).unwrap().is_error());
    let written = read_result(&json!({"type": "write_file_result", "path": "/a"})).unwrap();
    assert_eq!(written, ToolResult::WriteFileResult { path: "/a".into() });
    assert!(!written.is_error());
    assert_eq!(read_result(&json!({"type": "previous_result"})), None);
    assert_eq!(read_result(&json!([1])), None);
}

#[test]
fn a_call_that_runs_has_no_result() {
    let tool = Tool { name: Some("bash".into()), status: ToolStatus::Running, ..Tool::default() };
    assert_eq!(result(&tool, WORKSPACE, &NoBlobs), None);
}
