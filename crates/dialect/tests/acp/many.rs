//! Streams of more sessions, requests and calls than anybody remembers: they are read to their end, what is forgotten
//! is told first, and nothing is held against it.

use serde_json::{Value, json};
use tolka_dialect::{Decoder as _, acp::Decoder};
use tolka_facts::Event;

use crate::judged;

const MANY: usize = 10_000;

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

fn result(id: impl Into<Value>, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": result })
}

fn update(session: usize, update: Value) -> Value {
    let params = json!({ "sessionId": format!("s{session}"), "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

fn opened(session: usize) -> [Value; 2] {
    let id = format!("new {session}");
    let params = json!({ "cwd": "/w", "mcpServers": [] });
    [request(id.clone(), "session/new", params), result(id, json!({ "sessionId": format!("s{session}") }))]
}

fn prompt(session: usize) -> Value {
    let prompt = json!({ "sessionId": format!("s{session}"), "prompt": [{ "type": "text", "text": "Hi" }] });
    request(session, "session/prompt", prompt)
}

fn call(session: usize, call: &str) -> Value {
    update(session, json!({ "sessionUpdate": "tool_call", "toolCallId": call, "title": "ls", "kind": "execute" }))
}

fn done(session: usize, call: &str) -> Value {
    update(session, json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed" }))
}

fn stop(session: usize) -> Value {
    result(session, json!({ "stopReason": "end_turn" }))
}

fn words(session: usize) -> Value {
    update(session, json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "Hi" } }))
}

fn bytes(lines: impl IntoIterator<Item = Value>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

fn found(lines: impl IntoIterator<Item = Value>) -> Vec<String> {
    judged(&bytes(lines)).iter().map(|finding| format!("{}: {}", finding.rule.name, finding.problem)).collect()
}

#[test]
fn sessions_that_come_and_go_are_in_order() {
    let turn = |session| [prompt(session), call(session, "c"), done(session, "c"), stop(session)];
    let first = (0..MANY).flat_map(|session| opened(session).into_iter().chain(turn(session)));
    let again = (0..MANY).flat_map(turn);
    assert_eq!(found(first.chain(again)), [""; 0]);
}

#[test]
fn sessions_that_are_all_at_work_are_in_order() {
    let begin = (0..MANY).flat_map(|session| opened(session).into_iter().chain([prompt(session), call(session, "c")]));
    let end = (0..MANY).flat_map(|session| [done(session, "c"), stop(session)]);
    assert_eq!(found(begin.chain(end)), [""; 0]);
}

#[test]
fn what_is_new_is_still_judged() {
    let opened = (0..MANY).flat_map(opened);
    let late = [prompt(MANY - 1), call(MANY - 1, "c"), call(MANY - 1, "c"), stop(MANY - 1)];
    assert_eq!(found(opened.chain(late)), ["double-call: the call `c` is created again"]);
}

#[test]
fn requests_without_an_answer_are_in_order() {
    let ask = |n: usize| request(format!("ask {n}"), "fs/read_text_file", json!({ "sessionId": "s1", "path": "/a" }));
    let withdraw = |n: usize| json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": format!("ask {n}") } });
    let answer = |n: usize| result(format!("ask {n}"), json!({ "content": "" }));
    let begin = || opened(1).into_iter().chain([prompt(1)]);
    assert_eq!(found(begin().chain((0..MANY).map(ask)).chain((0..MANY).map(answer)).chain([stop(1)])), [""; 0]);
    let withdrawn = (0..MANY).flat_map(|n| [ask(n), withdraw(n)]);
    assert_eq!(found(begin().chain(withdrawn).chain((0..MANY).map(answer)).chain([stop(1)])), [""; 0]);
}

#[test]
fn a_turn_of_many_calls_is_in_order() {
    let calls: Vec<_> = (0..MANY).map(|n| format!("c{n}")).collect();
    let turn = calls.iter().map(|id| call(1, id)).chain(calls.iter().map(|id| done(1, id)));
    assert_eq!(found(opened(1).into_iter().chain([prompt(1)]).chain(turn).chain([stop(1)])), [""; 0]);
}

/// What a decoder tells while it reads, and what it has kept to the end.
fn told_and_kept(stream: &[u8]) -> (Vec<(Option<String>, Event)>, usize) {
    let (mut decoder, mut heard) = (Decoder::default(), Vec::new());
    decoder.feed(stream, &mut heard).unwrap();
    let told = heard.len();
    decoder.finish(&mut heard).unwrap();
    let kept = heard.len() - told;
    let all = heard.into_iter().map(|heard| (heard.session.map(|session| session.to_string()), heard.draft.event));
    (all.collect(), kept)
}

#[test]
fn the_words_of_a_forgotten_session_are_told_as_it_is_forgotten() {
    let (told, kept) = told_and_kept(&bytes((0..MANY).map(words)));
    let asked = |(session, event): &(Option<String>, Event)| match event {
        Event::PromptQueued(_) => session.clone(),
        _ => None,
    };
    let asked: Vec<_> = told.iter().filter_map(asked).collect();
    assert_eq!(asked, (0..MANY).map(|session| format!("s{session}")).collect::<Vec<_>>());
    // A prompt and the beginning of its turn, of each session that is remembered.
    assert_eq!(kept, 2 * 256);
}

#[test]
fn the_session_that_was_silent_longest_is_forgotten() {
    // The first speaks all the time: its words go on, and are told as one prompt at the end.
    let stream = (1..MANY).flat_map(|session| [words(0), words(session)]);
    let (told, _) = told_and_kept(&bytes(stream));
    let blocks = told.iter().filter_map(|(session, event)| match event {
        Event::PromptQueued(e) if session.as_deref() == Some("s0") => Some(e.content.len()),
        _ => None,
    });
    assert_eq!(blocks.collect::<Vec<_>>(), [MANY - 1]);
}

#[test]
fn a_stream_that_names_no_session_is_told_as_it_comes() {
    let (told, kept) = told_and_kept(&bytes((0..MANY).map(|id| request(id, "initialize", json!({})))));
    assert_eq!((told.len(), kept), (MANY, MANY % 256));
    assert!(told.iter().all(|(session, _)| session.is_none()));
}

#[test]
fn a_late_response_ends_no_turn_of_another_session() {
    let prompts = (0..MANY).map(prompt);
    // The request of the first was forgotten, and the last session is at work.
    let (told, _) = told_and_kept(&bytes(prompts.chain([stop(0)])));
    assert!(!told.iter().any(|(_, event)| matches!(event, Event::TurnEnded(_))));
}
