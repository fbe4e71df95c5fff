//! Messages to drafts, case by case.

use serde_json::{Value, json};
use tolka_dialect::{Decoder as _, acp::Decoder};
use tolka_facts::event::*;
use tolka_facts::{Block, Cause, Draft, Event, MessageId, RequestId, TurnId};

use crate::{drafts, heard};

fn update(update: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

fn chunk(kind: &str, text: &str) -> Value {
    update(json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
}

fn marked(text: &str) -> Value {
    let mut chunk = chunk("user_message_chunk", text);
    chunk["params"]["update"]["messageId"] = "msg_1".into();
    chunk["params"]["update"]["_meta"] = json!({ "tolka": { "turn": "trn_1" } });
    chunk
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn prompt(id: u64) -> Value {
    request(id, "session/prompt", json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": format!("p{id}") }] }))
}

fn result(id: impl Into<Value>, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": result })
}

fn stop(id: impl Into<Value>) -> Value {
    result(id, json!({ "stopReason": "end_turn" }))
}

/// A line per draft; steps are made up and left out.
fn story(drafts: &[Draft]) -> Vec<String> {
    let words = |content: &[Block]| format!("{} blocks", content.len());
    let line = |draft: &Draft| match &draft.event {
        Event::PromptQueued(e) => format!("queued {}", words(&e.content)),
        Event::TextAppended(e) => format!("say {}", e.text),
        Event::TurnEnded(e) => format!("end {:?}", e.stop),
        Event::Foreign(e) => format!("foreign {}", e.what),
        Event::SessionCreated(e) => format!("session in {}", e.workspace),
        event => event.name().to_owned(),
    };
    drafts.iter().filter(|draft| !draft.event.name().starts_with("step_")).map(line).collect()
}

#[test]
fn our_own_turns_are_read_with_their_names() {
    let all = drafts(&[marked("a"), marked("b"), chunk("agent_message_chunk", "Hi"), stop("trn_1")]);
    assert_eq!(story(&all), ["queued 2 blocks", "turn_started", "say Hi", "end EndTurn"]);
    let queued = PromptQueued {
        turn: TurnId::from("trn_1"),
        message: MessageId::from("msg_1"),
        content: vec![Block::text("a"), Block::text("b")],
        key: None,
        agent: None,
        model: None,
        context: None,
        steers: None,
    };
    assert_eq!((all[0].cause, &all[0].event), (Cause::Client, &Event::from(queued)));
    assert_eq!(all[1].event, TurnStarted { turn: TurnId::from("trn_1"), checkpoint: None }.into());
    assert!(matches!(&all.last().unwrap().event, Event::TurnEnded(e) if e.turn.as_str() == "trn_1"));
}

#[test]
fn an_agents_side_alone_is_read_in_turns() {
    // It began in the middle of one.
    let lines = [
        chunk("agent_message_chunk", "a"),
        stop(4),
        chunk("user_message_chunk", "x"),
        chunk("user_message_chunk", "y"),
        chunk("agent_message_chunk", "b"),
        stop(5),
        chunk("user_message_chunk", "z"),
    ];
    let expected = [
        "turn_started",
        "say a",
        "end EndTurn",
        "queued 2 blocks",
        "turn_started",
        "say b",
        "end EndTurn",
        "queued 1 blocks",
        "turn_started",
    ];
    assert_eq!(story(&drafts(&lines)), expected);
}

#[test]
fn a_prompt_that_waits_is_worked_on_when_the_one_before_has_ended() {
    let lines = [
        prompt(1),
        prompt(2),
        prompt(3),
        stop(3),
        chunk("agent_message_chunk", "a"),
        stop(1),
        chunk("agent_message_chunk", "b"),
        stop(2),
    ];
    let expected = [
        "queued 1 blocks",
        "turn_started",
        "queued 1 blocks",
        "queued 1 blocks",
        "prompt_dropped",
        "say a",
        "end EndTurn",
        "turn_started",
        "say b",
        "end EndTurn",
    ];
    assert_eq!(story(&drafts(&lines)), expected);
}

#[test]
fn history_is_read_once() {
    let load = |id| request(id, "session/load", json!({ "sessionId": "s", "cwd": "/w", "mcpServers": [] }));
    let history =
        [chunk("user_message_chunk", "x"), chunk("agent_message_chunk", "a"), chunk("user_message_chunk", "y")];
    let lines =
        [&[load(1)], &history[..], &[result(1, json!({})), load(2)], &history[..], &[result(2, json!({}))]].concat();
    let first = [
        "session in /w",
        "foreign session/load",
        "queued 1 blocks",
        "turn_started",
        "say a",
        "end EndTurn",
        "queued 1 blocks",
        "turn_started",
        "end EndTurn",
        "foreign session/load",
    ];
    let again = [
        "foreign session/load",
        "foreign user_message_chunk",
        "foreign agent_message_chunk",
        "foreign user_message_chunk",
        "foreign session/load",
    ];
    assert_eq!(story(&drafts(&lines)), [&first[..], &again[..]].concat());
}

#[test]
fn echoes_and_words_between_turns_begin_none() {
    let lines = [prompt(1), chunk("user_message_chunk", "p1"), stop(1), chunk("agent_message_chunk", "late")];
    assert_eq!(
        story(&drafts(&lines)),
        [
            "queued 1 blocks",
            "turn_started",
            "foreign user_message_chunk",
            "foreign session/prompt",
            "end EndTurn",
            "foreign agent_message_chunk"
        ]
    );
}

#[test]
fn what_comes_before_a_session_is_of_the_first() {
    let lines = [
        request(0, "initialize", json!({ "protocolVersion": 1 })),
        request(1, "session/new", json!({ "cwd": "/w", "mcpServers": [] })),
        result(1, json!({ "sessionId": "s" })),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let heard = heard(text.as_bytes());
    assert!(heard.iter().all(|heard| heard.session.as_ref().is_some_and(|session| session.as_str() == "s")));
    let drafts: Vec<_> = heard.into_iter().map(|heard| heard.draft).collect();
    assert_eq!(story(&drafts), ["session in /w", "foreign initialize", "foreign session/new"]);
}

#[test]
fn ids_of_the_two_sides_may_be_the_same() {
    let ask = json!({ "sessionId": "s", "toolCall": { "toolCallId": "c" }, "options": [{ "optionId": "y", "name": "Yes", "kind": "allow_once" }] });
    let answer = result(1, json!({ "outcome": { "outcome": "selected", "optionId": "y" } }));
    let lines = [prompt(1), request(1, "session/request_permission", ask), answer, stop(1)];
    let expected =
        ["queued 1 blocks", "turn_started", "tool_changed", "permission_asked", "permission_answered", "end EndTurn"];
    assert_eq!(story(&drafts(&lines)), expected);
}

#[test]
fn requests_that_are_withdrawn_are_answered_by_nobody_or_as_it_says() {
    let options = json!([{ "optionId": "y", "name": "Yes", "kind": "allow_once" }]);
    let ask = |meta: Value| {
        let params = json!({ "sessionId": "s", "toolCall": { "toolCallId": "c", "title": "Run?" }, "options": options, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": "per_1", "method": "session/request_permission", "params": params })
    };
    let withdraw = |meta: Value| json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "per_1", "_meta": meta } });
    let answer = |lines: &[Value]| drafts(lines).pop().unwrap().event;
    let nobody =
        PermissionAnswered { request: RequestId::from("per_1"), option: None, by: "agent".into(), reason: None };
    assert_eq!(answer(&[prompt(1), ask(Value::Null), withdraw(Value::Null)]), nobody.into());
    let ours = json!({ "tolka": { "permission": "bash", "patterns": ["ls *"] } });
    let chosen =
        json!({ "tolka": { "outcome": { "outcome": "selected", "optionId": "y" }, "by": "web", "reason": "fine" } });
    let chosen_by = PermissionAnswered {
        request: RequestId::from("per_1"),
        option: Some("y".into()),
        by: "web".into(),
        reason: Some("fine".into()),
    };
    assert_eq!(answer(&[prompt(1), ask(ours.clone()), withdraw(chosen)]), chosen_by.into());
    let asked = PermissionAsked {
        request: RequestId::from("per_1"),
        call: None,
        permission: "bash".into(),
        title: "Run?".into(),
        patterns: vec!["ls *".into()],
        metadata: None,
        options: vec![PermissionOption { id: "y".into(), name: "Yes".into(), kind: OptionKind::AllowOnce }],
    };
    assert_eq!(answer(&[prompt(1), ask(ours)]), asked.into());
}

#[test]
fn forms_are_questions_where_words_answer_them() {
    let form = |properties: Value| {
        let params = json!({ "mode": "form", "sessionId": "s", "toolCallId": "c", "message": "Which?", "requestedSchema": { "properties": properties } });
        request(9, "elicitation/create", params)
    };
    let plain = json!({
        "colour": { "type": "string", "enum": ["red", "blue"] },
        "sizes": { "type": "array", "title": "Sizes", "description": "Which sizes?", "items": { "type": "string", "enum": ["S"] } },
    });
    let answer = result(9, json!({ "action": "accept", "content": { "sizes": ["S"], "colour": "red" } }));
    let mut read = drafts(&[prompt(1), form(plain.clone()), answer]);
    let answers = Some(vec![vec!["red".to_owned()], vec!["S".to_owned()]]);
    let (answered, asked) = (read.pop().unwrap().event, read.pop().unwrap().event);
    let Event::QuestionAsked(asked) = asked else { panic!("{asked:?}") };
    assert_eq!(answered, QuestionAnswered { request: asked.request, answers, by: "client".into() }.into());
    let option = |label: &str| QuestionOption { label: label.into(), description: String::new() };
    assert_eq!(
        asked.questions,
        [
            Question {
                question: "Which?".into(),
                header: "colour".into(),
                options: vec![option("red"), option("blue")],
                multiple: false
            },
            Question {
                question: "Which sizes?".into(),
                header: "Sizes".into(),
                options: vec![option("S")],
                multiple: true
            },
        ]
    );
    let declined = drafts(&[prompt(1), form(plain), result(9, json!({ "action": "decline" }))]).pop().unwrap().event;
    assert!(matches!(declined, Event::QuestionAnswered(e) if e.answers.is_none()));
    let number = form(json!({ "n": { "type": "integer" } }));
    assert_eq!(story(&drafts(&[prompt(1), number]))[2..], ["foreign elicitation/create"]);
}

#[test]
fn a_turn_that_was_cut_is_read_as_cut() {
    let error = json!({ "code": -32603, "message": "m", "data": { "_meta": { "tolka": { "stop": "interrupted" } } } });
    let lines = [marked("a"), json!({ "jsonrpc": "2.0", "id": "trn_1", "error": error })];
    assert_eq!(story(&drafts(&lines)), ["queued 1 blocks", "turn_started", "end Interrupted"]);
}

#[test]
fn an_unreadable_line_is_told_and_the_next_is_read() {
    let (mut decoder, mut heard) = (Decoder::default(), Vec::new());
    let text = format!("{}\n{{\"jsonrpc\":\"2.0\"}}\n{}\n", prompt(1), chunk("agent_message_chunk", "a"));
    let error = decoder.feed(text.as_bytes(), &mut heard).unwrap_err();
    assert_eq!(error.to_string(), "line 2: a JSON-RPC message needs a method, a result or an error");
    decoder.finish(&mut heard).unwrap();
    let drafts: Vec<_> = heard.into_iter().map(|heard| heard.draft).collect();
    assert_eq!(story(&drafts), ["queued 1 blocks", "turn_started", "say a"]);
}

#[test]
fn a_stream_of_events_is_read_as_lines_are() {
    let lines = [marked("a"), chunk("agent_message_chunk", "Hi"), stop("trn_1")];
    let sse: String = lines.iter().map(|line| format!("id: 3.0\ndata: {line}\n\n")).collect();
    let events: Vec<_> = heard(sse.as_bytes()).into_iter().map(|heard| heard.draft).collect();
    assert_eq!(events, drafts(&lines));
}
