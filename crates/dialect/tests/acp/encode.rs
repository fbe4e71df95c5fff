//! Facts to messages, case by case.

use serde_json::{Value, json};
use tolka_dialect::{Dialect, Frames};
use tolka_facts::event::*;
use tolka_facts::{
    Block, CallId, Cause, Draft, Event, Fact, Json, MessageId, PartId, RequestId, SessionId, Time, Tip, ToolKind,
    ToolStatus, TurnId,
};

use crate::support::Run;
use crate::{frames, name, told, valid, values};

/// Inside a turn: its frames without the one that starts it.
fn inside(drafts: Vec<Draft>) -> Vec<Value> {
    let frames = frames(std::iter::once(start()).chain(drafts).collect()).split_off(1);
    frames.iter().for_each(valid::check);
    frames
}

fn start() -> Draft {
    Draft::client(TurnStarted { turn: TurnId::from("trn_1"), checkpoint: None })
}

fn end(stop: Stop) -> TurnEnded {
    TurnEnded { turn: TurnId::from("trn_1"), stop, usage: None, cost: None, meta: None }
}

fn updates(frames: &[Value]) -> Vec<Value> {
    frames.iter().map(|frame| frame["params"]["update"].clone()).collect()
}

fn call() -> ToolChanged {
    ToolChanged::of(CallId::from("c"))
}

fn json(value: Value) -> Json {
    Json::from(value)
}

fn acp(event: impl Into<Event>, raw: &Value) -> Draft {
    Draft::agent(event).with_raw(Json::from_value(raw))
}

#[test]
fn a_turn_starts_with_the_prompt_block_by_block() {
    let content = vec![Block::text("Look"), Block::Audio { data: "aGk=".into(), mime: "audio/wav".into() }];
    let queued = PromptQueued {
        turn: TurnId::from("trn_1"),
        message: MessageId::from("msg_1"),
        content,
        key: None,
        agent: None,
        model: None,
        context: None,
        steers: None,
    };
    let told = frames(vec![Draft::client(queued), start()]);
    let frame = |content: Value| {
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "ses_1", "update": {
            "sessionUpdate": "user_message_chunk", "content": content, "messageId": "msg_1",
            "_meta": { "tolka": { "turn": "trn_1" } },
        } } })
    };
    let audio = json!({ "type": "audio", "data": "aGk=", "mimeType": "audio/wav" });
    assert_eq!(told, [frame(json!({ "type": "text", "text": "Look" })), frame(audio)]);
    // Without words, clients see nothing, and readers still know.
    let mark = json!({ "sessionUpdate": "session_info_update", "_meta": { "tolka": { "turn": "trn_1" } } });
    assert_eq!(updates(&frames(vec![start()])), [mark]);
}

#[test]
fn words_for_the_turn_that_runs_come_in_it_and_a_retry_is_a_notice() {
    let queued = PromptQueued {
        turn: TurnId::from("trn_2"),
        message: MessageId::from("msg_2"),
        content: vec![Block::text("be brief")],
        key: None,
        agent: None,
        model: None,
        context: None,
        steers: Some(TurnId::from("trn_1")),
    };
    let steered = PromptSteered { turn: TurnId::from("trn_2"), into: TurnId::from("trn_1") };
    let retry = RetryScheduled { attempt: 1, delay_ms: 2500, message: "overloaded".into(), code: Some(529) };
    let facts =
        vec![start(), Draft::agent(retry.clone()), Draft::client(queued.clone()), Draft::agent(steered.clone())];
    let run = Run::stamped(facts.into_iter().chain([Draft::agent(end(Stop::EndTurn))]));
    let lines = told(&run);
    let updates = updates(&crate::values(&lines));
    let mark = json!({ "tolka": { "turn": "trn_2", "into": "trn_1" } });
    let content = json!({ "type": "text", "text": "be brief" });
    let words =
        json!({ "sessionUpdate": "user_message_chunk", "content": content, "messageId": "msg_2", "_meta": mark });
    assert_eq!(updates[2], words);
    assert_eq!((&updates[1]["sessionUpdate"], &updates[1]["title"]), (&json!("notice"), &json!("Trying again in 3 s")));
    // And read back, they are what they were; the law has nothing against them.
    assert_eq!(crate::judged(&crate::stream(&lines)).len(), 0);
    let heard: Vec<Event> = crate::heard(&crate::stream(&lines)).into_iter().map(|heard| heard.draft.event).collect();
    assert!(heard.contains(&queued.into()) && heard.contains(&steered.into()), "{heard:#?}");
    assert!(heard.contains(&retry.into()), "{heard:#?}");
    assert_eq!(heard.iter().filter(|event| matches!(event, Event::TurnStarted(_))).count(), 1);
}

#[test]
fn keys_stand_in_the_order_that_line_readers_count_on() {
    let run = Run::stamped([
        start(),
        Draft::agent(TextAppended { part: PartId::from("prt_1"), text: "Hi".into() }),
        Draft::agent(end(Stop::EndTurn)),
    ]);
    let lines: Vec<_> = told(&run).into_iter().map(|frame| String::from_utf8(frame).unwrap()).collect();
    let session = run.facts[0].session.as_str();
    assert_eq!(
        lines[1..],
        [
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"Hi"}},"messageId":"prt_1"}}}}}}"#
            ),
            r#"{"jsonrpc":"2.0","id":"trn_1","result":{"stopReason":"end_turn"}}"#.to_owned(),
        ]
    );
}

#[test]
fn a_call_is_told_once_and_then_what_changes() {
    let changes = [
        ToolChanged { name: Some("bash".into()), kind: Some(ToolKind::Execute), ..call() },
        ToolChanged { status: Some(ToolStatus::Running), input: Some(json(json!({ "command": "ls" }))), ..call() },
        call(),
        ToolChanged { status: Some(ToolStatus::Completed), output: Some(json(json!({ "output": "a" }))), ..call() },
        ToolChanged { title: Some("late".into()), ..call() },
    ];
    let told = inside(changes.into_iter().map(Draft::agent).collect());
    assert_eq!(
        updates(&told),
        [
            json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "name": "bash", "kind": "execute" }),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress", "rawInput": { "command": "ls" } }),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "rawOutput": { "output": "a" } }),
        ]
    );
}

#[test]
fn live_output_is_told_as_codex_tells_it_and_the_call_before_it() {
    let output = |text: &str| Draft::agent(OutputAppended { call: CallId::from("c"), text: text.into() });
    let told = inside(vec![output("a"), output(""), output("b")]);
    let delta = |data: &str| json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": { "terminal_output_delta": { "data": data, "terminal_id": "c" } } });
    let start = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Tool call" });
    assert_eq!(updates(&told), [start, delta("a"), delta("b")]);
}

#[test]
fn why_a_call_failed_stands_in_its_output_or_is_shown() {
    let failed = |output: Option<Value>| ToolChanged {
        status: Some(ToolStatus::Failed),
        output: output.map(Json::from),
        error: Some("no such file".into()),
        ..call()
    };
    let told = |change: ToolChanged| {
        let mut update = updates(&inside(vec![Draft::agent(change)])).remove(0);
        (update["rawOutput"].take(), update["content"].take())
    };
    assert_eq!(told(failed(None)), (json!({ "error": "no such file" }), Value::Null));
    let shown = json!([{ "type": "content", "content": { "type": "text", "text": "no such file" } }]);
    assert_eq!(told(failed(Some(json!({ "exit": 1 })))), (json!({ "exit": 1 }), shown));
    let said = json!({ "error": "no such file", "exit": 1 });
    assert_eq!(told(failed(Some(said.clone()))), (said, Value::Null));
}

#[test]
fn an_agents_update_is_passed_on_and_its_call_told_before() {
    let raw = json!({ "toolCallId": "c", "sessionUpdate": "tool_call_update", "status": "completed", "odd": null });
    let told = inside(vec![acp(
        ToolChanged { status: Some(ToolStatus::Completed), title: Some("ls -l".into()), ..call() },
        &raw,
    )]);
    assert_eq!(updates(&told), [json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls -l" }), raw]);
}

#[test]
fn an_update_that_is_two_facts_is_told_once() {
    let raw = |status: &str| json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status, "_meta": { "terminal_output_delta": { "data": "x" } } });
    let start = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t" });
    let output = || OutputAppended { call: CallId::from("c"), text: "x".into() };
    let changed = |status| ToolChanged { status: Some(status), ..call() };
    let told = inside(vec![
        acp(ToolChanged { title: Some("t".into()), ..call() }, &start),
        acp(changed(ToolStatus::Running), &raw("in_progress")),
        // A client's fact may stand between.
        Draft::client(SessionChanged { title: None, mode: None, model: None, agent: None, archived: Some(true) }),
        Draft::agent(output()),
        acp(output(), &raw("completed")),
        Draft::agent(changed(ToolStatus::Completed)),
    ]);
    assert_eq!(updates(&told), [start, raw("in_progress"), raw("completed")]);
}

#[test]
fn words_of_others_are_not_taken_for_the_agents() {
    let text = || TextAppended { part: PartId::from("prt_1"), text: "Hi".into() };
    let ours = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Hi" }, "messageId": "prt_1" });
    let onyx = json!({ "type": "agent_message_chunk", "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Hi" } });
    assert_eq!(updates(&inside(vec![acp(text(), &onyx)])), std::slice::from_ref(&ours));
    assert_eq!(updates(&inside(vec![acp(text(), &json!({ "type": "text", "delta": "Hi" }))])), [ours]);
    // A recording that is played again has other names for its calls.
    let raw = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t" });
    let renamed = ToolChanged { title: Some("t".into()), ..ToolChanged::of(CallId::from("c~2")) };
    assert_eq!(updates(&inside(vec![acp(renamed, &raw)]))[0]["toolCallId"], "c~2");
}

#[test]
fn foreign_updates_and_notifications_of_agents_are_passed_on_and_nothing_else() {
    let foreign = |what: &str| Foreign { origin: "acp".into(), what: what.into() };
    let update = json!({ "sessionUpdate": "subagent_update", "x": [1, 2.50] });
    let notification =
        json!({ "jsonrpc": "2.0", "method": "_auth/status", "params": { "sessionId": "theirs", "a": null } });
    let request = json!({ "jsonrpc": "2.0", "id": 4, "method": "fs/read_text_file", "params": { "path": "/a" } });
    let told = frames(vec![
        acp(foreign("subagent_update"), &update),
        acp(foreign("_auth/status"), &notification),
        acp(foreign("fs/read_text_file"), &request),
        acp(foreign("_played/again"), &json!({ "b": 1 })),
        Draft::client(foreign("session/cancel")).with_raw(json(json!({ "jsonrpc": "2.0", "method": "_x" }))),
        acp(Foreign { origin: "opencode".into(), what: "lsp.updated".into() }, &json!({ "type": "lsp.updated" })),
    ]);
    assert_eq!(
        told,
        [
            json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "ses_1", "update": update } }),
            json!({ "jsonrpc": "2.0", "method": "_auth/status", "params": { "sessionId": "ses_1", "a": null } }),
            json!({ "jsonrpc": "2.0", "method": "_played/again", "params": { "b": 1 } }),
        ]
    );
}

fn permission() -> PermissionAsked {
    let option = |id: &str, kind| PermissionOption { id: id.into(), name: id.to_uppercase(), kind };
    PermissionAsked {
        request: RequestId::from("per_1"),
        call: Some(CallId::from("c")),
        permission: "bash".into(),
        title: "Run ls?".into(),
        patterns: vec!["ls *".into()],
        metadata: Some(json(json!({ "why": "to see" }))),
        options: vec![option("y", OptionKind::AllowOnce), option("n", OptionKind::RejectAlways)],
    }
}

#[test]
fn leave_is_asked_for_and_the_answer_ends_the_request() {
    let change = ToolChanged {
        name: Some("bash".into()),
        kind: Some(ToolKind::Execute),
        input: Some(json(json!({ "command": "ls" }))),
        ..call()
    };
    let answered = PermissionAnswered {
        request: RequestId::from("per_1"),
        option: Some("y".into()),
        by: "web".into(),
        reason: None,
    };
    let told = inside(vec![
        Draft::agent(change),
        Draft::agent(permission()),
        Draft::client(answered.clone()),
        Draft::client(answered),
    ]);
    assert_eq!(
        told[1..],
        [
            json!({ "jsonrpc": "2.0", "id": "per_1", "method": "session/request_permission", "params": {
                "sessionId": "ses_1",
                "toolCall": { "toolCallId": "c", "title": "Run ls?", "name": "bash", "kind": "execute", "rawInput": { "command": "ls" } },
                "options": [{ "optionId": "y", "name": "Y", "kind": "allow_once" }, { "optionId": "n", "name": "N", "kind": "reject_always" }],
                "_meta": { "tolka": { "call": "c", "permission": "bash", "patterns": ["ls *"], "metadata": { "why": "to see" } } },
            } }),
            json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "per_1", "_meta": {
                "tolka": { "outcome": { "outcome": "selected", "optionId": "y" }, "by": "web" },
            } } }),
        ]
    );
}

#[test]
fn an_agents_request_for_leave_is_passed_on_as_ours() {
    let raw = json!({ "options": [{ "optionId": "y", "name": "Yes", "kind": "allow_once", "x": 1 }], "sessionId": "theirs", "toolCall": { "toolCallId": "c" } });
    let told = inside(vec![acp(permission(), &raw)]);
    let mut params = raw;
    params["sessionId"] = "ses_1".into();
    assert_eq!(
        told,
        [json!({ "jsonrpc": "2.0", "id": "per_1", "method": "session/request_permission", "params": params })]
    );
}

#[test]
fn questions_are_a_form() {
    let option = |label: &str| QuestionOption { label: label.into(), description: format!("{label}?") };
    let question = |question: &str, options: Vec<QuestionOption>, multiple| Question {
        question: question.into(),
        header: "H".into(),
        options,
        multiple,
    };
    let asked = QuestionAsked {
        request: RequestId::from("que_1"),
        call: Some(CallId::from("c")),
        questions: vec![
            question("One?", vec![option("a")], false),
            question("Many?", vec![option("b")], true),
            question("Any?", Vec::new(), false),
        ],
    };
    let answered = QuestionAnswered {
        request: RequestId::from("que_1"),
        answers: Some(vec![vec!["a".into()], vec![], vec!["x".into()]]),
        by: "web".into(),
    };
    let told = inside(vec![Draft::agent(asked), Draft::client(answered)]);
    assert_eq!(
        told,
        [
            json!({ "jsonrpc": "2.0", "id": "que_1", "method": "elicitation/create", "params": {
                "mode": "form", "sessionId": "ses_1", "toolCallId": "c", "message": "There are 3 questions",
                "requestedSchema": { "type": "object", "properties": {
                    "q1": { "type": "string", "title": "H", "description": "One?", "oneOf": [{ "const": "a", "title": "a", "description": "a?" }] },
                    "q2": { "type": "array", "title": "H", "description": "Many?", "items": { "anyOf": [{ "const": "b", "title": "b", "description": "b?" }] } },
                    "q3": { "type": "string", "title": "H", "description": "Any?" },
                } },
            } }),
            json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "que_1", "_meta": {
                "tolka": { "action": "accept", "answers": [["a"], [], ["x"]], "by": "web" },
            } } }),
        ]
    );
}

#[test]
fn what_is_open_is_closed_before_the_response() {
    let told = inside(vec![Draft::agent(call()), Draft::agent(permission()), Draft::agent(end(Stop::Cancelled))]);
    let names: Vec<_> = told.iter().map(name).collect();
    assert_eq!(names, ["tool_call", "session/request_permission", "tool_call_update", "$/cancel_request", "result"]);
    assert_eq!(told[2]["params"]["update"]["status"], "failed");
    assert_eq!(told[3]["params"]["_meta"]["tolka"], json!({ "outcome": { "outcome": "cancelled" }, "by": "tolka" }));
}

#[test]
fn a_prompts_result_is_the_agents_own() {
    let usage = Usage { input: 3, output: 4, reasoning: 1, ..Usage::default() };
    let meta = Some(json(json!({ "quota": 1 })));
    let own = inside(vec![Draft::agent(TurnEnded { usage: Some(usage), meta, ..end(Stop::EndTurn) })]);
    let tokens = json!({ "totalTokens": 8, "inputTokens": 3, "outputTokens": 4, "thoughtTokens": 1, "cachedReadTokens": 0, "cachedWriteTokens": 0 });
    assert_eq!(own[0]["result"], json!({ "stopReason": "end_turn", "usage": tokens, "_meta": { "quota": 1 } }));

    let raw = json!({ "usage": { "odd": null }, "stopReason": "end_turn", "_meta": {} });
    let step =
        StepEnded { message: MessageId::from("msg_2"), finish: Finish::Stop, usage: None, cost: None, kept: None };
    let silent = Foreign { origin: "acp".into(), what: "session/prompt".into() };
    for told in [acp(step.clone(), &raw), acp(silent, &raw)] {
        assert_eq!(inside(vec![told, Draft::agent(end(Stop::EndTurn))])[0]["result"], raw);
    }
    // Somebody cancelled while it answered.
    let told = inside(vec![acp(step, &raw), Draft::agent(end(Stop::Cancelled))]);
    assert_eq!(told[0]["result"], json!({ "stopReason": "cancelled" }));
}

#[test]
fn a_turn_that_fails_has_an_error() {
    let failed = |kind, code| Failed {
        kind,
        message: "it broke".into(),
        code,
        retryable: false,
        details: Some(json(json!({ "a": 1 }))),
    };
    let error = |failure: Option<Failed>, stop| {
        let drafts = failure.map(Draft::agent).into_iter().chain([Draft::agent(end(stop))]);
        inside(drafts.collect()).remove(0)["error"].take()
    };
    let broke = |code: i64| json!({ "code": code, "message": "it broke", "data": { "a": 1 } });
    assert_eq!(error(Some(failed(FailureKind::Auth, None)), Stop::Failed), broke(-32000));
    assert_eq!(error(Some(failed(FailureKind::Provider, None)), Stop::Failed), broke(-32603));
    assert_eq!(error(Some(failed(FailureKind::Provider, Some(529))), Stop::Failed), broke(529));
    assert_eq!(error(None, Stop::Failed), json!({ "code": -32603, "message": "The agent failed" }));
    let cut = json!({ "code": -32603, "message": "The server stopped in the middle of the turn", "data": { "_meta": { "tolka": { "stop": "interrupted" } } } });
    assert_eq!(error(None, Stop::Interrupted), cut);
    let outside = frames(vec![Draft::agent(failed(FailureKind::Storage, None))]);
    assert_eq!(updates(&outside), [json!({ "sessionUpdate": "notice", "severity": "error", "title": "it broke" })]);
}

#[test]
fn a_plan_that_we_read_out_of_a_call_is_not_told_again() {
    let plan = || PlanSet {
        entries: vec![PlanEntry { content: "a".into(), status: PlanStatus::Cancelled, priority: Priority::Low }],
    };
    assert_eq!(inside(vec![Draft::tolka(plan())]), [] as [Value; 0]);
    let told =
        json!({ "sessionUpdate": "plan", "entries": [{ "content": "a", "priority": "low", "status": "completed" }] });
    assert_eq!(updates(&inside(vec![Draft::agent(plan())])), [told]);
}

#[test]
fn a_message_that_was_moved_out_comes_back_whole() {
    let raw = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "rawInput": "x".repeat(40_000) });
    let run = Run::stamped([start(), acp(ToolChanged { title: Some("t".into()), ..call() }, &raw)]);
    assert!(run.facts[1].raw.as_ref().unwrap().blob().is_some());
    assert_eq!(updates(&values(&told(&run)))[1], raw);
    // Gone with its session, it is told in our words.
    let gone = Run { facts: run.facts, ..Run::default() };
    assert_eq!(
        updates(&values(&told(&gone)))[1],
        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t" })
    );
}

#[test]
fn nothing_of_a_turn_is_told_outside_of_one() {
    let told = frames(vec![
        Draft::agent(TextAppended { part: PartId::from("prt_1"), text: "Hi".into() }),
        Draft::agent(call()),
        Draft::agent(permission()),
        Draft::new(
            Cause::Client,
            PermissionAnswered { request: RequestId::from("per_1"), option: None, by: "x".into(), reason: None },
        ),
        Draft::agent(end(Stop::EndTurn)),
    ]);
    assert_eq!(told, [] as [Value; 0]);
}

#[test]
fn facts_name_their_session() {
    let fact: Fact =
        Draft::agent(ModeSet { mode: "plan".into() }).stamp(SessionId::from("ses_x"), 1, Time::from_millis(1));
    let run = Run { facts: vec![fact], ..Run::default() };
    assert_eq!(values(&told(&run))[0]["params"]["sessionId"], "ses_x");
}

#[test]
fn nothing_is_kept_of_what_is_passed_on_between_turns() {
    let delta = json!({ "terminal_output_delta": { "data": "x" } });
    let raw = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "t", "_meta": delta });
    let run = Run::stamped([acp(ToolChanged { title: Some("t".into()), ..call() }, &raw)]);
    let (mut encoder, mut tip) = (Dialect::Acp.encoder(), Tip::default());
    tip.apply(&run.facts[0]);
    encoder.encode(&run.facts[0], &tip, &run.blobs, &mut Frames::default());
    assert_eq!(encoder.state(), Dialect::Acp.encoder().state());
}
