//! Every word of the official schema's closed lists, and every block: read as what it is, and said.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tolka_facts::event::*;
use tolka_facts::{Block, CallId, Event, Location, RequestId, ToolContent, ToolKind, ToolStatus, TurnId};

use crate::schema::{choices, read, request, response, said, set, update, update_of};
use crate::valid::fits;
use crate::{drafts, frames, name};

#[test]
fn every_block_is_read_and_said() {
    let blocks = [
        (
            json!({ "type": "text", "text": "Hi", "annotations": { "audience": ["user"], "priority": 0.5 } }),
            Block::Text { text: "Hi".into(), annotations: Some(json!({ "audience": ["user"], "priority": 0.5 })) },
        ),
        (
            json!({ "type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a" }),
            Block::Image { data: "aGk=".into(), mime: "image/png".into(), uri: Some("file:///a".into()) },
        ),
        (
            json!({ "type": "audio", "data": "aGk=", "mimeType": "audio/wav" }),
            Block::Audio { data: "aGk=".into(), mime: "audio/wav".into() },
        ),
        (
            json!({ "type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "description": "d", "mimeType": "m/t", "size": 3 }),
            Block::Link {
                uri: "file:///a".into(),
                name: "a".into(),
                title: Some("A".into()),
                description: Some("d".into()),
                mime: Some("m/t".into()),
                size: Some(3),
            },
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "file:///a", "mimeType": "m/t", "text": "x" } }),
            Block::Resource { uri: "file:///a".into(), mime: Some("m/t".into()), text: Some("x".into()), blob: None },
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "file:///a", "blob": "aGk=" } }),
            Block::Resource { uri: "file:///a".into(), mime: None, text: None, blob: Some("aGk=".into()) },
        ),
    ];
    assert_eq!(
        set(blocks.iter().map(|(wire, _)| wire["type"].as_str().unwrap())),
        choices("ContentBlock", Some("type"))
    );
    for (wire, block) in blocks {
        assert!(fits("ContentBlock", &wire), "{wire}");
        let read = drafts(&[request(1, "session/prompt", &json!({ "sessionId": "s", "prompt": [wire] }))]);
        let Event::PromptQueued(queued) = &read[0].event else { panic!("{read:?}") };
        assert_eq!(queued.content, [block]);
        assert_eq!(update_of(&frames(read)[0])["content"], wire);
    }
}

fn changed() -> ToolChanged {
    ToolChanged::of(CallId::from("c"))
}

/// What an update of a call is read as.
fn read_change(fields: Value) -> ToolChanged {
    let mut told = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c" });
    told.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    assert!(fits("SessionUpdate", &told), "{told}");
    match read(&[update(&told)]).pop().unwrap().event {
        Event::ToolChanged(changed) => changed,
        other => panic!("{other:?}"),
    }
}

/// What a change of a call that is known is said as.
fn said_change(change: ToolChanged) -> Value {
    update_of(&said(vec![changed().into(), change.into()])[1])
}

#[test]
fn everything_that_a_call_shows_is_read_and_said() {
    let contents = [
        (
            json!({ "type": "content", "content": { "type": "text", "text": "x" } }),
            ToolContent::Content { block: Block::text("x") },
        ),
        (
            json!({ "type": "diff", "path": "/a", "oldText": "x", "newText": "y" }),
            ToolContent::Diff { path: "/a".into(), old: Some("x".into()), new: "y".into() },
        ),
        (
            json!({ "type": "diff", "path": "/a", "newText": "y" }),
            ToolContent::Diff { path: "/a".into(), old: None, new: "y".into() },
        ),
        (json!({ "type": "terminal", "terminalId": "t" }), ToolContent::Terminal { id: "t".into() }),
    ];
    assert_eq!(
        set(contents.iter().map(|(wire, _)| wire["type"].as_str().unwrap())),
        choices("ToolCallContent", Some("type"))
    );
    for (wire, content) in contents {
        let change = ToolChanged { content: Some(vec![content]), ..changed() };
        assert_eq!(read_change(json!({ "content": [wire] })), change);
        assert_eq!(said_change(change)["content"], json!([wire]));
    }
    let change = ToolChanged { locations: Some(vec![Location { path: "/a".into(), line: Some(3) }]), ..changed() };
    assert_eq!(read_change(json!({ "locations": [{ "path": "/a", "line": 3 }] })), change);
    assert_eq!(said_change(change)["locations"], json!([{ "path": "/a", "line": 3 }]));
}

#[test]
fn every_kind_of_tool_is_read_and_said() {
    use ToolKind::*;
    let kinds = [
        ("read", Read),
        ("edit", Edit),
        ("delete", Delete),
        ("move", Move),
        ("search", Search),
        ("execute", Execute),
        ("think", Think),
        ("fetch", Fetch),
        ("switch_mode", SwitchMode),
        ("other", Other),
    ];
    assert_eq!(set(kinds.map(|(word, _)| word)), choices("ToolKind", None));
    for (word, kind) in kinds {
        let change = ToolChanged { kind: Some(kind), ..changed() };
        assert_eq!(read_change(json!({ "kind": word })), change);
        assert_eq!(said_change(change)["kind"], word);
    }
}

#[test]
fn every_status_of_a_call_is_read_and_said() {
    let statuses = [
        ("pending", ToolStatus::Pending),
        ("in_progress", ToolStatus::Running),
        ("completed", ToolStatus::Completed),
        ("failed", ToolStatus::Failed),
    ];
    assert_eq!(set(statuses.map(|(word, _)| word)), choices("ToolCallStatus", None));
    for (word, status) in statuses {
        let change = ToolChanged { status: Some(status), ..changed() };
        assert_eq!(read_change(json!({ "status": word })), change);
        assert_eq!(said_change(change)["status"], word);
    }
    assert_eq!(said_change(ToolChanged { status: Some(ToolStatus::Cancelled), ..changed() })["status"], "failed");
}

#[test]
fn every_reason_to_stop_is_read_and_said() {
    let reasons = [
        ("end_turn", Stop::EndTurn),
        ("max_tokens", Stop::MaxTokens),
        ("max_turn_requests", Stop::MaxTurnRequests),
        ("refusal", Stop::Refusal),
        ("cancelled", Stop::Cancelled),
    ];
    assert_eq!(set(reasons.map(|(word, _)| word)), choices("StopReason", None));
    for (word, stop) in reasons {
        let read = read(&[response(1, &json!({ "stopReason": word }))]);
        let Event::TurnEnded(ended) = &read.last().unwrap().event else { panic!("{read:?}") };
        assert_eq!(ended.stop, stop);
        let ended = TurnEnded { turn: TurnId::from("trn_1"), stop, usage: None, cost: None, meta: None };
        assert_eq!(
            said(vec![ended.into()]),
            [json!({ "jsonrpc": "2.0", "id": "trn_1", "result": { "stopReason": word } })]
        );
    }
}

#[test]
fn every_word_of_a_plan_is_read_and_said() {
    let statuses = [
        ("pending", PlanStatus::Pending),
        ("in_progress", PlanStatus::InProgress),
        ("completed", PlanStatus::Completed),
    ];
    let priorities = [("high", Priority::High), ("medium", Priority::Medium), ("low", Priority::Low)];
    assert_eq!(set(statuses.map(|(word, _)| word)), choices("PlanEntryStatus", None));
    assert_eq!(set(priorities.map(|(word, _)| word)), choices("PlanEntryPriority", None));
    for ((status_word, status), (priority_word, priority)) in statuses.into_iter().zip(priorities) {
        let told = json!({ "sessionUpdate": "plan", "entries": [{ "content": "a", "priority": priority_word, "status": status_word }] });
        let fact = Event::from(PlanSet { entries: vec![PlanEntry { content: "a".into(), status, priority }] });
        assert_eq!(read(&[update(&told)])[0].event, fact);
        assert_eq!(update_of(&said(vec![fact])[0]), told);
    }
}

#[test]
fn every_severity_and_state_of_a_compaction_is_read_and_said() {
    let severities = [("info", Severity::Info), ("warning", Severity::Warning), ("error", Severity::Error)];
    assert_eq!(set(severities.map(|(word, _)| word)), choices("NoticeSeverity", None));
    for (word, severity) in severities.into_iter().chain([("other", Severity::Other)]) {
        let told = json!({ "sessionUpdate": "notice", "severity": word, "title": "t" });
        let fact = Event::from(Noticed { severity, title: "t".into(), description: None });
        assert_eq!(read(&[update(&told)])[0].event, fact);
        assert_eq!(update_of(&said(vec![fact])[0]), told);
    }
    let ended = |error: Option<&str>| {
        Event::from(CompactionEnded {
            id: "c".into(),
            summary: None,
            error: error.map(str::to_owned),
            keeps: None,
            usage: None,
            cost: None,
        })
    };
    let states = [
        ("in_progress", Event::from(CompactionStarted { id: "c".into(), automatic: true })),
        ("completed", ended(None)),
        ("failed", ended(Some("failed"))),
        ("cancelled", ended(Some("cancelled"))),
    ];
    assert_eq!(set(states.iter().map(|(word, _)| *word)), choices("CompactionStatus", None));
    for (word, fact) in states {
        let told = json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": word });
        assert_eq!(read(&[update(&told)])[0].event, fact);
        assert_eq!(update_of(&said(vec![fact])[0]), told);
    }
}

#[test]
fn every_kind_of_option_is_read_and_said() {
    let kinds = [
        ("allow_once", OptionKind::AllowOnce),
        ("allow_always", OptionKind::AllowAlways),
        ("reject_once", OptionKind::RejectOnce),
        ("reject_always", OptionKind::RejectAlways),
    ];
    assert_eq!(set(kinds.map(|(word, _)| word)), choices("PermissionOptionKind", None));
    for (word, kind) in kinds {
        let wire = json!([{ "optionId": "o", "name": "O", "kind": word }]);
        let params = json!({ "sessionId": "s", "toolCall": { "toolCallId": "c" }, "options": wire });
        let read = read(&[request(2, "session/request_permission", &params)]);
        let Event::PermissionAsked(asked) = &read.last().unwrap().event else { panic!("{read:?}") };
        let option = PermissionOption { id: "o".into(), name: "O".into(), kind };
        assert_eq!(asked.options, [option]);
        let asked = PermissionAsked { request: RequestId::from("per_1"), ..asked.clone() };
        let frame = said(vec![asked.into()]).remove(0);
        assert_eq!((name(&frame), &frame["params"]["options"]), ("session/request_permission", &wire));
    }
}

#[test]
fn every_code_of_an_error_is_read_and_said() {
    use FailureKind::*;
    let codes = [
        (-32700, Agent, true),
        (-32600, Agent, false),
        (-32601, Agent, false),
        (-32602, Agent, false),
        (-32603, Agent, true),
        (-32800, Aborted, true),
        (-32000, Auth, false),
        (-32002, Agent, false),
    ];
    assert_eq!(codes.iter().map(|(code, ..)| code.to_string()).collect::<BTreeSet<_>>(), choices("ErrorCode", None));
    for (code, kind, retryable) in codes {
        let error = json!({ "code": code, "message": "m", "data": { "a": 1 } });
        let read = read(&[json!({ "jsonrpc": "2.0", "id": 1, "error": error })]);
        let details = Some(crate::json(r#"{"a":1}"#));
        let failed = Event::from(Failed { kind, message: "m".into(), code: Some(code), retryable, details });
        assert_eq!(read[0].event, failed);
        assert!(matches!(&read[1].event, Event::TurnEnded(ended) if ended.stop == Stop::Failed));
        let ended = TurnEnded { turn: TurnId::from("trn_1"), stop: Stop::Failed, usage: None, cost: None, meta: None };
        assert_eq!(said(vec![failed, ended.into()]), [json!({ "jsonrpc": "2.0", "id": "trn_1", "error": error })]);
    }
}
