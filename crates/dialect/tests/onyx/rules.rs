//! The document's detection rules, on its own examples and on what today's clients and agents do beyond it.

use serde_json::{Value, json};
use tolka_dialect::onyx::rules::{
    Kind, file_path, is_new_file, is_task, is_todo_write, kind_by_tool_name, packet_type, relative_path, tool_name,
};
use tolka_facts::ToolKind;

#[test]
fn type_comes_before_session_update() {
    let cases = [
        (json!({"type": "error", "sessionUpdate": "plan"}), Some("error")),
        (json!({"sessionUpdate": "agent_message_chunk"}), Some("agent_message_chunk")),
        (json!({"sessionUpdate": "tool_call"}), Some("tool_call_start")),
        (json!({"sessionUpdate": "tool_call_update"}), Some("tool_call_progress")),
        (json!({"sessionUpdate": "plan"}), Some("agent_plan_update")),
        (json!({"session_update": "plan"}), Some("agent_plan_update")),
        (json!({"type": null, "sessionUpdate": "current_mode_update"}), Some("current_mode_update")),
        (json!({}), None),
        (json!([]), None),
    ];
    for (packet, expected) in &cases {
        assert_eq!(packet_type(packet), *expected, "{packet}");
    }
}

#[test]
fn the_table_of_tools() {
    let table = [
        ("glob", Kind::Search),
        ("grep", Kind::Search),
        ("read", Kind::Read),
        ("write", Kind::Edit),
        ("edit", Kind::Edit),
        ("bash", Kind::Execute),
        ("task", Kind::Task),
        ("todowrite", Kind::Other),
        ("webfetch", Kind::Other),
        ("websearch", Kind::Other),
        ("apply_patch", Kind::Other),
    ];
    for (name, kind) in table {
        assert_eq!(kind_by_tool_name(name), Some(kind), "{name}");
    }
    assert_eq!(kind_by_tool_name("Bash"), Some(Kind::Execute));
    assert_eq!(kind_by_tool_name("frobnicate"), None);
    assert_eq!(Kind::Task.on_the_wire(), ToolKind::Other);
}

#[test]
fn todo_write_is_known_when_its_title_changes() {
    assert!(is_todo_write(&json!({"title": "TodoWrite"})));
    assert!(is_todo_write(&json!({"title": "todo_write"})));
    assert!(is_todo_write(&json!({"title": "6 todos", "rawInput": {"todos": []}})));
    assert!(is_todo_write(&json!({"title": "6 todos", "raw_input": {"todos": []}})));
    assert!(!is_todo_write(&json!({"title": "6 todos", "rawInput": {"todos": "none"}})));
    assert!(!is_todo_write(&json!({"title": 6})));
}

#[test]
fn a_task_is_known_when_its_title_changes() {
    assert!(is_task(&json!({"title": "Task"})));
    assert!(is_task(&json!({"title": "Find it", "rawInput": {"subagent_type": "Explore"}})));
    assert!(is_task(&json!({"title": "Find it", "raw_input": null, "rawInput": {"subagentType": "Plan"}})));
    assert!(!is_task(&json!({"title": "Find it", "rawInput": {"subagent_type": ""}})));
    assert!(!is_task(&json!({"kind": "task"})));
}

#[test]
fn the_file_is_looked_for_in_input_diff_title_and_patch() {
    let diff = json!([{"type": "content"}, {"type": "diff", "path": "/b/two.ts"}]);
    let cases = [
        (json!({"rawInput": {"file_path": "/a/one.ts", "path": "/z"}, "content": diff, "title": "/c/d"}), "a/one.ts"),
        (json!({"raw_input": {"filePath": "/a/one.ts"}}), "a/one.ts"),
        (json!({"rawInput": {"file_path": "", "path": "one.ts"}}), "one.ts"),
        (json!({"rawInput": {}, "content": diff, "title": "/c/three.ts"}), "b/two.ts"),
        (json!({"title": "path/to/file.tsx"}), "path/to/file.tsx"),
        (json!({"title": "Patch", "rawInput": {"patchText": "*** Begin Patch\n*** Add File: new.ts\n+x"}}), "new.ts"),
    ];
    for (packet, expected) in &cases {
        assert_eq!(file_path(packet).as_deref(), Some(*expected), "{packet}");
    }
    assert_eq!(file_path(&json!({"title": "bash"})), None);
}

#[test]
fn paths_are_shown_from_the_sessions_folder() {
    let cases = [
        ("/home/u/sandboxes/0a-1b/sessions/9f-3c/outputs/web/page.tsx", "outputs/web/page.tsx"),
        ("/workspace/sessions/9f-3c/outputs/web/app/page.tsx", "outputs/web/app/page.tsx"),
        ("/sessions/xyz/a/b/c.ts", "a/b/c.ts"),
        ("/some/unknown/deep/path/to/file.tsx", "path/to/file.tsx"),
        ("/a/b.ts", "a/b.ts"),
        ("b.ts", "b.ts"),
        ("/sessions/9f/", "sessions/9f/"),
        ("", ""),
    ];
    for (path, expected) in cases {
        assert_eq!(relative_path(path), expected);
    }
}

#[test]
fn a_new_file_is_an_edit_without_old_text() {
    let edit = |diff: Value| json!({"kind": "edit", "content": [{"type": "content"}, diff]});
    assert_eq!(is_new_file(&edit(json!({"type": "diff", "oldText": ""}))), Some(true));
    assert_eq!(is_new_file(&edit(json!({"type": "diff", "oldText": "const x = 1;"}))), Some(false));
    assert_eq!(is_new_file(&edit(json!({"type": "diff", "oldText": null}))), Some(true));
    assert_eq!(is_new_file(&edit(json!({"type": "diff"}))), Some(true));
    assert_eq!(is_new_file(&edit(json!({"type": "text"}))), None);
    assert_eq!(is_new_file(&json!({"kind": "edit", "content": null})), None);
    assert_eq!(is_new_file(&json!({"kind": "read", "content": [{"type": "diff", "oldText": ""}]})), None);
}

#[test]
fn a_tools_name_is_told_or_guessed() {
    let cases = [
        (json!({"toolName": "Bash", "title": "read"}), Some("bash")),
        (json!({"_meta": {"toolName": "todo_write"}, "title": "Updating todos"}), Some("todowrite")),
        (json!({"title": "applypatch"}), Some("apply_patch")),
        (json!({"title": "ls"}), Some("list")),
        (json!({"title": "Find it", "rawInput": {"subagent_type": "x"}}), Some("task")),
        (json!({"title": "6 todos", "rawInput": {"todos": []}}), Some("todowrite")),
        (json!({"title": "Success. Updated", "rawInput": {"patchText": "x"}}), Some("edit")),
        (json!({"title": "List files", "rawInput": {"command": "ls"}}), Some("bash")),
        (json!({"title": "a/b.ts", "kind": "move"}), Some("edit")),
        (json!({"title": "x y", "kind": "fetch"}), Some("webfetch")),
        (json!({"title": "frobnicate", "kind": "other"}), None),
    ];
    for (packet, expected) in &cases {
        assert_eq!(tool_name(packet), *expected, "{packet}");
    }
}
