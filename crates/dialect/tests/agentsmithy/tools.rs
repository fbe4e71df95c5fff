//! Their tools and ours, in both directions.

use serde_json::{Value, json};
use tolka_dialect::agentsmithy::Call;
use tolka_facts::{Event, Json, NoBlobs, Tool, ToolKind};

fn theirs(name: &str, input: &Value) -> (String, Value) {
    let tool = Tool { name: Some(name.into()), input: Some(Json::from_value(input)), ..Tool::default() };
    let call = Call::of(&tool, &NoBlobs);
    (call.name, call.args.value())
}

fn ours(name: &str, args: &Value) -> (String, ToolKind, Value) {
    let frame = json!({"type": "tool_call", "name": name, "args": args, "dialog_id": "d"});
    let drafts = crate::decode(format!("data: {frame}\n\n").as_bytes());
    let call = drafts.into_iter().find_map(|draft| match draft.event {
        Event::ToolChanged(e) => Some((e.name.unwrap(), e.kind.unwrap(), e.input.unwrap().value())),
        _ => None,
    });
    call.unwrap()
}

/// Our name, our input, their name, their arguments: each gives the other.
#[test]
fn the_table_holds_both_ways() {
    use ToolKind::{Delete, Edit, Execute, Fetch, Read, Search};
    let blocks = "------- SEARCH\na\n=======\nb\n+++++++ REPLACE";
    let rows = [
        (
            ("bash", Execute, json!({"command": "ls", "workdir": "/srv", "timeout": 60500})),
            ("run_command", json!({"command": "ls", "cwd": "/srv", "timeout": 60.5})),
        ),
        (("bash", Execute, json!({"timeout": 120_000})), ("run_command", json!({"timeout": 120}))),
        (("read", Read, json!({"filePath": "a", "offset": 3})), ("read_file", json!({"path": "a", "offset": 3}))),
        (
            ("write", Edit, json!({"filePath": "a", "content": "x"})),
            ("write_to_file", json!({"path": "a", "content": "x"})),
        ),
        (
            ("edit", Edit, json!({"filePath": "a", "oldString": "a", "newString": "b"})),
            ("replace_in_file", json!({"path": "a", "diff": blocks})),
        ),
        (
            (
                "edit",
                Edit,
                json!({"filePath": "a", "edits": [{"oldString": "a", "newString": "b"}, {"oldString": "a", "newString": "b"}]}),
            ),
            ("replace_in_file", json!({"path": "a", "diff": format!("{blocks}\n{blocks}")})),
        ),
        (
            ("edit", Edit, json!({"filePath": "a", "diff": "*** Begin Patch"})),
            ("replace_in_file", json!({"path": "a", "diff": "*** Begin Patch"})),
        ),
        (("delete", Delete, json!({"filePath": "a"})), ("delete_file", json!({"path": "a"}))),
        (
            ("list", Search, json!({"path": ".", "recursive": true})),
            ("list_files", json!({"path": ".", "recursive": true})),
        ),
        (
            ("grep", Search, json!({"path": ".", "pattern": "x+", "include": "*.rs"})),
            ("search_files", json!({"path": ".", "regex": "x+", "file_pattern": "*.rs"})),
        ),
        (
            ("webfetch", Fetch, json!({"url": "https://example.com"})),
            ("web_fetch", json!({"url": "https://example.com"})),
        ),
        (
            ("websearch", Fetch, json!({"query": "fastapi sse", "numResults": 5})),
            ("web_search", json!({"query": "fastapi sse", "num_results": 5})),
        ),
        (("no_such_tool", ToolKind::Other, json!({"x": 1})), ("no_such_tool", json!({"x": 1}))),
    ];
    for ((name, kind, input), (their_name, args)) in rows {
        assert_eq!(theirs(name, &input), (their_name.to_owned(), args.clone()), "{name}");
        assert_eq!(ours(their_name, &args), (name.to_owned(), kind, input), "{their_name}");
    }
}

#[test]
fn every_agents_spelling_is_known() {
    let read = ("read_file".to_owned(), json!({"path": "a"}));
    for spelling in ["filePath", "file_path", "path", "absolute_path"] {
        assert_eq!(theirs("read", &json!({spelling: "a"})), read, "{spelling}");
    }
    assert_eq!(theirs("read_file", &json!({"path": "a"})), read);
    let edit = theirs("edit", &json!({"filePath": "a", "oldString": "", "newString": "b"}));
    assert_eq!(edit.1["diff"], "------- SEARCH\n=======\nb\n+++++++ REPLACE");
    assert_eq!(theirs("edit", &json!({"file_path": "a", "old_string": "", "new_string": "b"})), edit);
    assert_eq!(theirs("edit", &json!({"path": "a", "oldText": "", "newText": "b"})), edit);
    assert_eq!(
        theirs("shell", &json!({"command": ["bash", "-lc", "ls -l"]})),
        theirs("bash", &json!({"command": "ls -l"}))
    );
    assert_eq!(theirs("shell", &json!({"cmd": ["ls", "-l"]})), theirs("bash", &json!({"command": "ls -l"})));
}

#[test]
fn a_tool_is_known_by_any_capitals_and_without_a_name_by_its_kind() {
    let written = ("write_to_file".to_owned(), json!({"path": "a", "content": "x"}));
    assert_eq!(theirs("Write", &json!({"file_path": "a", "contents": "x"})), written);
    let nameless =
        Tool { kind: ToolKind::Delete, input: Some(Json::from_value(&json!({"path": "a"}))), ..Tool::default() };
    let call = Call::of(&nameless, &NoBlobs);
    assert_eq!((call.name.as_str(), call.args.value()), ("delete_file", json!({"path": "a"})));
}

/// There is no way to quote a marker, so such texts stay as they are.
#[test]
fn a_text_that_looks_like_a_marker_is_not_written_as_a_block() {
    let input = json!({"filePath": "a", "oldString": "=======", "newString": "b"});
    let args = json!({"path": "a", "oldString": "=======", "newString": "b"});
    assert_eq!(theirs("edit", &input), ("replace_in_file".to_owned(), args));
}

#[test]
fn arguments_are_an_object() {
    assert_eq!(theirs("glob", &json!([1])).1, json!({"input": [1]}));
    assert_eq!(theirs("bash", &json!("ls")).1, json!({"input": "ls"}));
    assert_eq!(theirs("bash", &Value::Null).1, json!({}));
}
