//! Tools that look, and how they run beside each other.

use serde_json::json;
use tolka_agent::native::permission::{Leave, Rules};
use tolka_facts::{CallId, Event, ToolKind, ToolStatus};

use crate::hall::{Hall, rule};

#[tokio::test]
async fn files_are_found_by_name() {
    let mut hall = Hall::open();
    hall.put("src/a.rs", "");
    hall.put("src/b.ts", "");
    hall.put("target/c.rs", "");
    hall.put(".gitignore", "target\n");
    for pattern in ["**/*.rs".to_owned(), hall.absolute("**/*.rs")] {
        let ended = hall.call("glob", json!({ "pattern": pattern })).await;
        let output = json!({ "output": hall.absolute("src/a.rs"), "metadata": { "count": 1, "truncated": false } });
        assert_eq!(ended.went_well().output(), output);
        assert_eq!((ended.tool.kind, ended.tool.title.as_str()), (ToolKind::Search, "**/*.rs"));
    }
    let ended = hall.call("glob", json!({ "pattern": "*.py", "path": "src" })).await;
    let output = json!({ "output": "No files found", "metadata": { "count": 0, "truncated": false } });
    assert_eq!(ended.went_well().output(), output);
    hall.call("glob", json!({ "pattern": "{" })).await.failed("is no pattern");
    hall.call("glob", json!({ "pattern": "*", "path": "none" })).await.failed("none");
    hall.call("glob", json!({ "pattern": "*", "path": "/etc" })).await.failed("leads out of the workspace");
    hall.call("glob", json!({})).await.failed("`pattern` is missing");
}

#[tokio::test]
async fn what_is_too_much_is_cut_and_the_model_knows() {
    let mut hall = Hall::open();
    for n in 0..150 {
        hall.put(&format!("f{n:03}"), "needle\n");
    }
    let ended = hall.call("glob", json!({ "pattern": "*" })).await;
    assert_eq!(ended.output()["metadata"]["truncated"], true);
    assert_eq!(ended.output()["output"].as_str().unwrap().lines().count(), 100);
    assert!(ended.said().ends_with("[only 100 are shown; use a narrower pattern or path]"));
    let ended = hall.call("grep", json!({ "pattern": "needle" })).await;
    assert!(ended.said().starts_with("Found 100 matches\n") && ended.said().contains("[only 100 are shown"));
}

#[tokio::test]
async fn lines_are_found_by_what_is_in_them() {
    let mut hall = Hall::open();
    hall.put("README.md", "# Todo\n\nA todo page without a framework.\n");
    hall.put("src/x.txt", "no\n");
    let ended = hall.call("grep", json!({ "pattern": "todo", "path": hall.absolute(".") })).await;
    let text = format!("Found 1 matches\n{}:\n  Line 3: A todo page without a framework.", hall.absolute("README.md"));
    let output = json!({ "output": text, "metadata": { "matches": 1, "count": 1, "truncated": false } });
    assert_eq!(ended.went_well().output(), output);
    hall.put("src/y.txt", "todo: this\nand todo: that\n");
    let ended = hall.call("grep", json!({ "pattern": "^todo|and todo", "include": "*.txt" })).await;
    let text =
        format!("Found 2 matches\n{}:\n  Line 1: todo: this\n  Line 2: and todo: that", hall.absolute("src/y.txt"));
    assert_eq!(ended.went_well().said(), text);
    assert_eq!(hall.call("grep", json!({ "pattern": "zzz" })).await.said(), "No files found");
    hall.call("grep", json!({ "pattern": "(" })).await.failed("is no pattern");
    hall.put("wide", format!("needle{}\n", "x".repeat(5_000)));
    let ended = hall.call("grep", json!({ "pattern": "needle" })).await;
    assert!(ended.said().len() < 1_000 && ended.said().ends_with("..."));
}

#[tokio::test]
async fn a_folder_is_listed() {
    let mut hall = Hall::open();
    hall.put("src/deep/a.rs", "");
    hall.put("src/b.rs", "");
    std::fs::create_dir(hall.workspace.join("none")).unwrap();
    let ended = hall.call("list", json!({ "path": "src" })).await;
    let output = json!({ "output": "b.rs\ndeep/", "metadata": { "count": 2, "truncated": false } });
    assert_eq!(ended.went_well().output(), output);
    let ended = hall.call("list", json!({ "path": "src", "recursive": true })).await;
    assert!(ended.went_well().said().contains("deep/a.rs"), "{}", ended.said());
    assert_eq!(hall.call("list", json!({})).await.went_well().said(), "none/\nsrc/");
    assert_eq!(hall.call("list", json!({ "path": "none" })).await.went_well().said(), "[the folder is empty]");
    hall.call("list", json!({ "path": "src/b.rs" })).await.failed("is a file");
}

/// Looking runs together, ends are told in the order of the calls; what changes something waits for its turn.
#[tokio::test]
async fn neighbours_that_look_run_side_by_side() {
    let mut hall = Hall::open();
    hall.put("a", "one\n");
    hall.put("b", "two\n");
    let calls = [
        ("read", json!({ "filePath": "a" })),
        ("grep", json!({ "pattern": "two" })),
        ("read", json!({ "filePath": "none" })),
        ("write", json!({ "filePath": "a", "content": "three\n" })),
        ("read", json!({ "filePath": "a" })),
    ];
    let ended = hall.calls(&calls).await;
    assert!(ended[0].said().contains("00001| one") && ended[1].said().contains("Line 1: two"));
    assert!(ended[2].outcome.is_error && !ended[3].outcome.is_error);
    assert!(ended[4].said().contains("00001| three"));
    let steps = hall.told().of(|event| match event {
        Event::ToolChanged(change) => Some((change.call.as_str().to_owned(), change.status?)),
        _ => None,
    });
    let (running, completed, failed) = (ToolStatus::Running, ToolStatus::Completed, ToolStatus::Failed);
    let wanted = [
        ("call_1", running),
        ("call_2", running),
        ("call_3", running),
        ("call_1", completed),
        ("call_2", completed),
        ("call_3", failed),
        ("call_4", running),
        ("call_4", completed),
        ("call_5", running),
        ("call_5", completed),
    ];
    assert_eq!(steps, wanted.map(|(call, status)| (call.to_owned(), status)));
}

/// Somebody who is asked twice at once does not know which is which.
#[tokio::test]
async fn what_asks_runs_alone() {
    let mut hall = Hall::with(Rules::with([rule("grep", "secret*", Leave::Ask)]));
    hall.put(".env", "secret\n");
    hall.put("secrets/a", "secret\n");
    let calls = [("read", json!({ "filePath": ".env" })), ("grep", json!({ "pattern": "secret", "path": "secrets" }))];
    for ended in hall.calls(&calls).await {
        ended.went_well();
    }
    let order = hall.told().of(|event| match event {
        Event::PermissionAsked(asked) => Some(format!("{} asks", asked.call.as_ref().unwrap())),
        Event::ToolChanged(change) if change.status.is_some_and(ToolStatus::is_terminal) => {
            Some(format!("{} ends", change.call))
        }
        _ => None,
    });
    assert_eq!(order, ["call_1 asks", "call_1 ends", "call_2 asks", "call_2 ends"]);
}

#[tokio::test]
async fn a_cancelled_turn_ends_every_call() {
    let mut hall = Hall::open();
    hall.put("a", "x");
    hall.cancel_at = Some(|event| matches!(event, Event::FileChanged(_)));
    let calls = [
        ("write", json!({ "filePath": "b", "content": "x" })),
        ("write", json!({ "filePath": "c", "content": "x" })),
        ("read", json!({ "filePath": "a" })),
    ];
    let ended = hall.calls(&calls).await;
    assert_eq!(ended.iter().map(|e| e.tool.status).collect::<Vec<_>>()[1..], [ToolStatus::Cancelled; 2]);
    assert_eq!(ended[0].tool.status, ToolStatus::Completed, "what was done is told as done");
    assert!(!hall.workspace.join("c").exists());
    assert_eq!(hall.told().changes(&CallId::from("call_2")).len(), 1);
}
