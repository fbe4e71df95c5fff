//! What the encoder tells, packet by packet.

use serde_json::{Value, json};
use tolka_facts::event::{
    Failed, FailureKind, FileChanged, FileOperation, Finish, ModeSet, PermissionAnswered, PermissionAsked, StepEnded,
    StepStarted, Stop, TextAppended, ThoughtAppended, ToolChanged, TurnEnded, Usage,
};
use tolka_facts::{CallId, MessageId, PartId, RequestId, ToolContent, ToolStatus, TurnId};

use crate::generate::options;
use crate::{Session, change, json};

fn text(part: &str, text: &str) -> TextAppended {
    TextAppended { part: PartId::from(part), text: text.into() }
}

fn thought(part: &str, text: &str) -> ThoughtAppended {
    ThoughtAppended { part: PartId::from(part), text: text.into() }
}

fn step(message: &str) -> StepStarted {
    StepStarted { message: MessageId::from(message), model: None }
}

fn step_ended(message: &str, finish: Finish, usage: Option<Usage>) -> StepEnded {
    StepEnded { message: MessageId::from(message), finish, usage, cost: None, kept: None }
}

/// A packet on one line: its type, and the values of these fields.
fn told(session: &Session, fields: &[&str]) -> Vec<String> {
    let line = |packet: &Value| {
        let values = fields.iter().filter_map(|field| packet.get(*field)).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        std::iter::once(packet["type"].as_str().unwrap().to_owned()).chain(values).collect::<Vec<_>>().join(" ")
    };
    session.packets().iter().map(line).collect()
}

#[test]
fn a_turn_from_its_first_thought_to_its_end() {
    let mut session = Session::in_turn();
    session.tell(step("msg_1")).tell(thought("p1", "Hm. ")).tell(thought("p1", "I see."));
    session.tell(text("p2", "I'll ")).tell(text("p2", "")).tell(text("p2", "look."));
    session.tell(ToolChanged {
        name: Some("bash".into()),
        title: Some("List files".into()),
        input: json(r#"{"command":"ls"}"#),
        ..change("c1", ToolStatus::Pending)
    });
    session.tell(ToolChanged { output: json(r#""a b""#), ..change("c1", ToolStatus::Completed) });
    session.tell(step_ended("msg_1", Finish::ToolCalls, None)).tell(step("msg_2"));
    session.tell(text("p3", "Two files.")).tell(step_ended("msg_2", Finish::Stop, None)).end(Stop::EndTurn);
    let fields = ["step_id", "step_name", "content", "tool_call_id", "status", "result", "stop_reason"];
    assert_eq!(
        told(&session, &fields),
        [
            "step_start msg_1 Step 1",
            "step_delta msg_1 Hm. ",
            "step_delta msg_1 I see.",
            "output_start",
            "output_delta I'll ",
            "output_delta look.",
            "output_end",
            "tool_start c1",
            "tool_end c1 success a b",
            "step_end msg_1 completed",
            "step_start msg_2 Step 2",
            "output_start",
            "output_delta Two files.",
            "output_end",
            "step_end msg_2 completed",
            "done end_turn",
        ]
    );
}

#[test]
fn a_thought_outside_of_a_step_is_one_of_its_own() {
    let mut session = Session::in_turn();
    session.tell(thought("p1", "One")).tell(ModeSet { mode: "plan".into() }).tell(thought("p1", " more"));
    session.tell(thought("p2", "Another")).tell(text("p3", "Words")).tell(thought("p4", "Last")).end(Stop::Cancelled);
    assert_eq!(
        told(&session, &["step_id", "step_name", "content", "status"]),
        [
            "step_start p1 Thinking",
            "step_delta p1 One",
            "mode_update",
            "step_delta p1  more",
            "step_end p1 completed",
            "step_start p2 Thinking",
            "step_delta p2 Another",
            "step_end p2 completed",
            "output_start",
            "output_delta Words",
            "output_end",
            "step_start p4 Thinking",
            "step_delta p4 Last",
            "step_end p4 cancelled",
            "done",
        ]
    );
}

#[test]
fn steps_do_not_nest_and_a_step_left_open_is_ended() {
    let mut session = Session::in_turn();
    session.tell(step("a")).tell(text("p", "x")).tell(step("b")).tell(step_ended("b", Finish::Error, None));
    session.tell(step_ended("b", Finish::Stop, None)).tell(step("c")).end(Stop::Interrupted);
    assert_eq!(
        told(&session, &["step_id", "status"]),
        [
            "step_start a",
            "output_start",
            "output_delta",
            "output_end",
            "step_end a completed",
            "step_start b",
            "step_end b failed",
            "step_start c",
            "step_end c failed",
            "error",
        ]
    );
}

#[test]
fn what_is_open_when_the_turn_ends_is_ended() {
    let mut session = Session::in_turn();
    session.tell(change("c1", ToolStatus::Running)).tell(change("c2", ToolStatus::Pending));
    session.tell(PermissionAsked {
        request: RequestId::from("per_1"),
        call: Some(CallId::from("c1")),
        permission: "bash".into(),
        title: "Run?".into(),
        patterns: Vec::new(),
        metadata: None,
        options: options(),
    });
    session.tell(text("p", "So")).end(Stop::Cancelled);
    assert_eq!(
        told(&session, &["tool_call_id", "status", "result", "request_id", "approved", "reason", "option_id"]),
        [
            "tool_start c1",
            "permission_request c1 per_1",
            "output_start",
            "output_delta",
            "tool_end c1 cancelled The turn ended before the tool did.",
            "output_end",
            "tool_start c2",
            "tool_end c2 cancelled The turn ended before the tool did.",
            "permission_response per_1 false The turn ended before anybody answered null",
            "done",
        ]
    );
}

#[test]
fn permissions_carry_their_options() {
    let ask = |request: &str| PermissionAsked {
        request: RequestId::from(request),
        call: None,
        permission: "delete_file".into(),
        title: "Delete test.py?".into(),
        patterns: Vec::new(),
        metadata: None,
        options: options(),
    };
    let answer = |request: &str, option: Option<&str>| PermissionAnswered {
        request: RequestId::from(request),
        option: option.map(str::to_owned),
        by: "you".into(),
        reason: None,
    };
    let mut session = Session::in_turn();
    session.tell(ask("a")).tell(answer("a", Some("yes"))).tell(ask("b")).tell(answer("b", Some("no")));
    session.tell(ask("c")).tell(answer("c", None)).tell(answer("unasked", Some("yes")));
    let request = json!({"type": "permission_request", "request_id": "a", "operation": "delete_file",
        "description": "Delete test.py?", "auto_approve": false, "options": [
            {"optionId": "no", "name": "NO", "kind": "reject_once"},
            {"optionId": "yes", "name": "YES", "kind": "allow_once"}],
        "tool_call_id": null, "timestamp": "2025-01-20T12:00:00.000Z"});
    assert_eq!(session.packets()[0], request);
    let answers: Vec<_> =
        told(&session, &["request_id", "approved", "option_id"]).into_iter().skip(1).step_by(2).collect();
    assert_eq!(
        answers,
        ["permission_response a true yes", "permission_response b false no", "permission_response c false null"]
    );
}

#[test]
fn files_are_told_once_and_from_the_workspace_on() {
    let mut session = Session::in_turn();
    let changed = |path: &str, call: Option<&str>| FileChanged {
        path: path.into(),
        operation: FileOperation::Update,
        before: None,
        after: None,
        added: 0,
        removed: 0,
        call: call.map(CallId::from),
        diff: None,
    };
    let diff = |path: &str| Some(vec![ToolContent::Diff { path: path.into(), old: None, new: "12345".into() }]);
    session.tell(ToolChanged { content: diff("/project/a.rs"), ..change("c1", ToolStatus::Running) });
    session.tell(changed("/project/a.rs", Some("c1"))).tell(change("c1", ToolStatus::Completed));
    session.tell(ToolChanged { content: diff("/projects/b.rs"), ..change("c2", ToolStatus::Completed) });
    session.tell(FileChanged { operation: FileOperation::Delete, ..changed("c.rs", None) });
    assert_eq!(
        told(&session, &["path", "size_bytes", "operation", "tool_call_id"]),
        [
            "tool_start c1",
            "file_write a.rs null update c1",
            "tool_end c1",
            "tool_start c2",
            "file_write /projects/b.rs 5 create c2",
            "tool_end c2",
            "file_write c.rs null delete",
        ]
    );
}

#[test]
fn a_turn_ends_with_done_or_with_an_error() {
    let failed = |code| Failed {
        kind: FailureKind::Provider,
        message: "The provider is down".into(),
        code,
        retryable: true,
        details: None,
    };
    let ends = |session: &Session| told(session, &["summary", "stop_reason", "usage", "message", "code"]);
    assert_eq!(ends(Session::in_turn().end(Stop::EndTurn)), ["done Completed end_turn null"]);
    assert_eq!(ends(Session::in_turn().tell(failed(Some(529))).end(Stop::Failed)), ["error The provider is down 529"]);
    assert_eq!(ends(Session::in_turn().tell(failed(None)).end(Stop::EndTurn)), ["done Completed end_turn null"]);
    assert_eq!(ends(Session::in_turn().end(Stop::Failed)), ["error Agent execution error -1"]);
    assert_eq!(ends(Session::in_turn().end(Stop::Interrupted)), ["error The server stopped during the turn -1"]);
    assert_eq!(ends(Session::created().tell(failed(None))), ["error The provider is down -1"]);
}

#[test]
fn tokens_are_the_turns_or_else_those_of_its_steps() {
    let usage = |input, output| Some(Usage { input, output, ..Usage::default() });
    let mut session = Session::in_turn();
    session.tell(step("a")).tell(step_ended("a", Finish::Stop, usage(1, 2)));
    session.tell(step("b")).tell(step_ended("b", Finish::Stop, usage(10, 20)));
    let mut told_by_turn = session.clone();
    session.end(Stop::EndTurn);
    assert_eq!(session.packets().last().unwrap()["usage"], json!({"input_tokens": 11, "output_tokens": 22}));
    let turn = TurnId::from("trn_1");
    told_by_turn.tell(TurnEnded { turn, stop: Stop::EndTurn, usage: usage(5, 6), cost: None, meta: None });
    assert_eq!(told_by_turn.packets().last().unwrap()["usage"], json!({"input_tokens": 5, "output_tokens": 6}));
}

#[test]
fn keys_stand_in_the_documents_order() {
    let mut session = Session::in_turn();
    session.tell(text("p", "Hi")).end(Stop::EndTurn);
    assert_eq!(
        session.frames(),
        [
            r#"{"type":"output_start","timestamp":"2025-01-20T12:00:00.000Z"}"#,
            r#"{"type":"output_delta","content":"Hi","timestamp":"2025-01-20T12:00:00.000Z"}"#,
            r#"{"type":"output_end","timestamp":"2025-01-20T12:00:00.000Z"}"#,
            r#"{"type":"done","summary":"Completed","stop_reason":"end_turn","usage":null,"timestamp":"2025-01-20T12:00:00.000Z"}"#,
        ]
    );
}
