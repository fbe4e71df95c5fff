//! Turns as the document shows them.

use serde_json::json;
use tolka_facts::event::{
    CompactionEnded, CompactionStarted, Failed, FailureKind, FileChanged, FileOperation, OptionKind, PermissionAsked,
    PermissionOption, Question, QuestionAsked, QuestionOption, Stop, ThoughtAppended, ToolChanged, TurnStarted,
};
use tolka_facts::{Block, Body, CallId, PartId, RequestId, ToolStatus, TurnId};

use crate::{CHECKPOINT, Session, change, json, queued};

fn compaction_ended(id: &str) -> CompactionEnded {
    CompactionEnded { id: id.into(), summary: None, error: None, keeps: None, usage: None, cost: None }
}

/// The document's example of a stream with file edits, made from facts.
#[test]
fn a_turn_with_edits_is_the_documents_example() {
    let mut session = Session::new();
    session.prompt("trn_1", "Create a TODO app with 3 files");
    session.tell(ThoughtAppended { part: PartId::from("p1"), text: "Planning TODO app structure...".into() });
    session.say("p2", "I'll create the TODO app with 3 files:");
    for file in ["main.py", "models.py"] {
        session.call(file, "write", &format!(r#"{{"filePath":"{file}","content":"..."}}"#));
        session.file(file, None, Some("..."));
        if let Some(tolka_facts::Event::FileChanged(e)) = session.facts.last_mut().map(|fact| &mut fact.event) {
            e.call = Some(CallId::from(file));
        }
        session.ended(file, ToolStatus::Completed);
    }
    session.end(Stop::EndTurn);
    let told = session.frames().join("\n");
    let diff =
        |file: &str| format!(r"--- /dev/null\n+++ b/{file}\n@@ -0,0 +1 @@\n+...\n\\ No newline at end of file\n");
    let expected = [
        format!(r#"{{"type":"user","content":"Create a TODO app with 3 files","checkpoint":"{CHECKPOINT}","dialog_id":"ses_1"}}"#),
        r#"{"type":"reasoning_start","dialog_id":"ses_1"}"#.into(),
        r#"{"type":"reasoning","content":"Planning TODO app structure...","dialog_id":"ses_1"}"#.into(),
        r#"{"type":"reasoning_end","dialog_id":"ses_1"}"#.into(),
        r#"{"type":"chat_start","dialog_id":"ses_1"}"#.into(),
        r#"{"type":"chat","content":"I'll create the TODO app with 3 files:","dialog_id":"ses_1"}"#.into(),
        r#"{"type":"chat_end","dialog_id":"ses_1"}"#.into(),
        r#"{"type":"tool_call","name":"write_to_file","args":{"path":"main.py","content":"..."},"dialog_id":"ses_1"}"#.into(),
        format!(r#"{{"type":"file_edit","file":"/home/me/project/main.py","diff":"{}","dialog_id":"ses_1"}}"#, diff("main.py")),
        r#"{"type":"tool_call","name":"write_to_file","args":{"path":"models.py","content":"..."},"dialog_id":"ses_1"}"#.into(),
        format!(r#"{{"type":"file_edit","file":"/home/me/project/models.py","diff":"{}","dialog_id":"ses_1"}}"#, diff("models.py")),
        r#"{"type":"done","done":true,"dialog_id":"ses_1"}"#.into(),
    ];
    assert_eq!(told, expected.join("\n"));
}

#[test]
fn a_prompt_is_its_texts() {
    let mut session = Session::new();
    let link =
        Block::Link { uri: "u".into(), name: "n".into(), title: None, description: None, mime: None, size: None };
    session.tell(queued("trn_1", vec![Block::text("one"), link, Block::text("two")]));
    session.tell(TurnStarted { turn: TurnId::from("trn_1"), checkpoint: None });
    assert_eq!(session.packets(), [json!({"type": "user", "content": "one\ntwo", "dialog_id": "ses_1"})]);
    let mut unknown = Session::new();
    unknown.tell(TurnStarted { turn: TurnId::from("trn_1"), checkpoint: None });
    assert_eq!(unknown.packets(), [json!({"type": "user", "content": "", "dialog_id": "ses_1"})]);
}

#[test]
fn a_run_of_text_is_a_segment() {
    let mut session = Session::in_turn();
    session.say("p1", "a").say("p1", "").say("p1", "b").say("p2", "c").end(Stop::EndTurn);
    let expected = ["chat_start", "chat", "chat", "chat_end", "chat_start", "chat", "chat_end", "done"];
    assert_eq!(session.types(), expected);
}

/// The client's cursor must not blink on while a tool gathers its input.
#[test]
fn a_segment_is_closed_when_a_call_appears_and_the_call_is_told_when_there_is_something_to_invoke() {
    let mut session = Session::in_turn();
    session.say("p1", "a").tell(ToolChanged { name: Some("bash".into()), ..change("c") });
    assert_eq!(session.types(), ["chat_start", "chat", "chat_end"]);
    session.tell(ToolChanged { input: json("{}"), ..change("c") });
    session.tell(ToolChanged { input: json(r#"{"cwd":"/srv"}"#), ..change("c") });
    assert_eq!(session.types().len(), 3, "where to run is known, and not what");
    session.tell(ToolChanged { input: json(r#"{"command":"ls"}"#), ..change("c") });
    session.ended("c", ToolStatus::Running).ended("c", ToolStatus::Failed).ended("c", ToolStatus::Completed);
    assert_eq!(session.types(), ["chat_start", "chat", "chat_end", "tool_call"]);
}

#[test]
fn every_attempt_to_summarise_has_a_start_and_an_end() {
    let start = |id: &str| CompactionStarted { id: id.into(), automatic: true };
    let mut session = Session::in_turn();
    session.say("p1", "a").tell(start("1")).tell(start("1")).tell(compaction_ended("1"));
    assert_eq!(session.types(), ["chat_start", "chat", "chat_end", "summary_start", "summary_end"]);
    let mut untold = Session::in_turn();
    untold.tell(compaction_ended("1")).end(Stop::EndTurn);
    assert_eq!(untold.types(), ["summary_start", "summary_end", "done"]);
    let mut cut = Session::in_turn();
    cut.tell(start("1")).end(Stop::Cancelled);
    assert_eq!(cut.types(), ["summary_start", "summary_end", "done"]);
    let mut mixed = Session::in_turn();
    mixed.tell(start("1")).say("p1", "a").tell(compaction_ended("1")).end(Stop::EndTurn);
    assert_eq!(mixed.types(), ["summary_start", "summary_end", "chat_start", "chat", "chat_end", "done"]);
}

#[test]
fn a_turn_that_fails_says_so_and_is_done() {
    let failed = |message: &str| Failed {
        kind: FailureKind::Provider,
        message: message.into(),
        code: None,
        retryable: true,
        details: None,
    };
    let mut session = Session::in_turn();
    session.say("p1", "a").tell(failed("No credit left.")).end(Stop::Failed);
    let packets = session.packets();
    let expected = [
        json!({"type": "chat_end", "dialog_id": "ses_1"}),
        json!({"type": "error", "error": "No credit left.", "dialog_id": "ses_1"}),
        json!({"type": "done", "done": true, "dialog_id": "ses_1"}),
    ];
    assert_eq!(packets[packets.len() - 3..], expected);
    for (stop, types) in [
        (Stop::Interrupted, vec!["error", "done"]),
        (Stop::Failed, vec!["error", "done"]),
        (Stop::Cancelled, vec!["done"]),
        (Stop::Refusal, vec!["done"]),
        (Stop::MaxTokens, vec!["done"]),
        (Stop::MaxTurnRequests, vec!["done"]),
    ] {
        let mut session = Session::in_turn();
        session.end(stop);
        assert_eq!(session.types(), types, "{stop:?}");
    }
}

#[test]
fn between_turns_there_is_nobody_to_tell() {
    let mut session = Session::in_turn();
    session.end(Stop::EndTurn);
    let told = session.frames();
    session.say("p", "late").call("c", "bash", r#"{"command":"ls"}"#).file("a", None, Some("b"));
    session.tell(compaction_ended("1")).end(Stop::Failed);
    assert_eq!(session.frames(), told);
}

#[test]
fn a_person_is_asked_by_a_call() {
    let option = |id: &str, kind| PermissionOption { id: id.into(), name: "Allow".into(), kind };
    let mut session = Session::in_turn();
    session.tell(PermissionAsked {
        request: RequestId::from("per_1"),
        call: None,
        permission: "bash".into(),
        title: "Run ls".into(),
        patterns: vec!["ls *".into()],
        metadata: None,
        options: vec![option("once", OptionKind::AllowOnce)],
    });
    let options = vec![QuestionOption { label: "Red".into(), description: "Warm".into() }];
    let question = Question { question: "Which?".into(), header: "Colour".into(), options, multiple: false };
    session.tell(QuestionAsked { request: RequestId::from("que_1"), call: None, questions: vec![question] });
    let asked = json!({"type": "tool_call", "name": "request_permission", "args": {"request_id": "per_1",
        "permission": "bash", "title": "Run ls", "patterns": ["ls *"],
        "options": [{"id": "once", "name": "Allow", "kind": "allow_once"}],
        "answer": "POST /v1/sessions/ses_1/answers/per_1 with {\"option\": \"<id>\"}"}, "dialog_id": "ses_1"});
    let how = "POST /v1/sessions/ses_1/answers/que_1 with {\"answers\": [[\"<label>\"]]}, a list for each question";
    let question = json!({"type": "tool_call", "name": "ask_question", "args": {"request_id": "que_1", "questions":
        [{"question": "Which?", "header": "Colour", "options": [{"label": "Red", "description": "Warm"}]}],
        "answer": how}, "dialog_id": "ses_1"});
    assert_eq!(session.packets()[1..], [asked, question]);
}

/// The document tells of every file that a tool changes, also where the agent shows nothing of it.
#[test]
fn an_edit_that_nobody_shows_is_told_without_a_diff() {
    for (name, input) in [
        ("edit", r#"{"filePath":"a.py","oldString":"a","newString":"b"}"#),
        ("delete", r#"{"path":"a.py"}"#),
        ("write", r#"{"filePath":"a.py","content":"b"}"#),
    ] {
        let mut session = Session::in_turn();
        session.call("c", name, input).ended("c", ToolStatus::Completed);
        let edit = json!({"type": "file_edit", "file": "/home/me/project/a.py", "dialog_id": "ses_1"});
        assert_eq!(session.packets().pop().unwrap(), edit, "{name}");
        let mut failed = Session::in_turn();
        failed.call("c", name, input).ended("c", ToolStatus::Failed);
        assert_eq!(failed.types(), ["tool_call"], "{name}");
    }
}

#[test]
fn a_diff_that_was_told_is_passed_on_if_it_can_be_applied() {
    let told = |diff: &str| {
        let mut session = Session::in_turn();
        session.tell(FileChanged {
            path: "a.py".into(),
            operation: FileOperation::Update,
            before: None,
            after: None,
            added: 1,
            removed: 1,
            call: None,
            diff: Some(Body::from(diff)),
        });
        session.packets().pop().unwrap()["diff"].as_str().map(str::to_owned)
    };
    let good = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(told(good).as_deref(), Some(good));
    assert_eq!(told("--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a\n+b").as_deref(), Some(good));
    assert_eq!(told("@@ -1 +1 @@\n-a\n+b"), None);
    assert_eq!(told("[40000 bytes are no longer kept]"), None);
}
