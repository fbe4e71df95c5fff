//! Streams with one fault each, and what the law says to them.

use serde_json::{Value, json};

use crate::judged;

fn update(update: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

fn start(turn: &str) -> Value {
    update(json!({
        "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "Hi" }, "messageId": "msg_1",
        "_meta": { "tolka": { "turn": turn } },
    }))
}

fn say() -> Value {
    update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Hello" } }))
}

fn call() -> Value {
    update(
        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls", "kind": "execute", "status": "pending" }),
    )
}

fn done() -> Value {
    update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed" }))
}

fn ask() -> Value {
    let options = json!([{ "optionId": "y", "name": "Yes", "kind": "allow_once" }]);
    let params = json!({ "sessionId": "s", "toolCall": { "toolCallId": "c" }, "options": options });
    json!({ "jsonrpc": "2.0", "id": "per_1", "method": "session/request_permission", "params": params })
}

fn withdraw() -> Value {
    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "per_1" } })
}

fn end(turn: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": turn, "result": { "stopReason": "end_turn" } })
}

/// A turn as we tell it: prompt, words, a call with leave, the response.
fn turn() -> Vec<Value> {
    vec![start("trn_1"), say(), call(), ask(), withdraw(), done(), end("trn_1")]
}

fn recorded() -> Vec<Value> {
    let line = |dir: &str, msg: Value| json!({ "t": 0.5, "dir": dir, "msg": msg });
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "Hi" }] });
    vec![
        line(
            "c2a",
            json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": "/w", "mcpServers": [] } }),
        ),
        line("a2c", json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": "s" } })),
        line("c2a", json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt })),
        line("a2c", say()),
        line("a2c", call()),
        line("a2c", ask()),
        line(
            "c2a",
            json!({ "jsonrpc": "2.0", "id": "per_1", "result": { "outcome": { "outcome": "selected", "optionId": "y" } } }),
        ),
        line("a2c", done()),
        line("a2c", json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "end_turn" } })),
    ]
}

fn found(lines: &[Value]) -> Vec<(u64, &'static str)> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    judged(text.as_bytes()).iter().map(|finding| (finding.line, finding.rule.name)).collect()
}

#[test]
fn what_is_in_order_is_in_order() {
    assert_eq!(found(&turn()), []);
    assert_eq!(found(&recorded()), []);
    // One side alone: its prompts and answers are not there, and nothing is held against it for that.
    let agent: Vec<_> =
        recorded().into_iter().filter(|line| line["dir"] == "a2c").map(|line| line["msg"].clone()).collect();
    assert_eq!(found(&agent), []);
    let sse: String = turn().iter().map(|line| format!("id: 1.0\ndata: {line}\n\n")).collect();
    assert_eq!(judged(sse.as_bytes()), []);
}

/// Its name, how a stream is spoilt, and what is found: line and rule.
type Fault = (&'static str, fn(&mut Vec<Value>), &'static [(u64, &'static str)]);

#[test]
fn each_fault_is_found_once() {
    let faults: &[Fault] = &[
        ("an update before the call", |t| drop(t.remove(2)), &[(5, "no-call")]),
        ("a call twice", |t| t.insert(3, call()), &[(4, "double-call")]),
        ("more after the end of a call", |t| t.insert(6, done()), &[(7, "ended-call")]),
        ("words after the response", |t| t.extend([say(), say()]), &[(8, "outside-turn")]),
        ("words before the turn", |t| t.swap(0, 1), &[]),
        ("a second response", |t| t.push(end("trn_1")), &[(8, "unknown-response")]),
        ("the response of another turn", |t| t[6] = end("trn_2"), &[(7, "unknown-response")]),
        ("a turn in a turn", |t| t.insert(2, start("trn_2")), &[(3, "double-turn"), (8, "unknown-response")]),
        ("no response", |t| drop(t.pop()), &[(6, "truncated")]),
        ("a request without an answer", |t| drop(t.remove(4)), &[(6, "open-request")]),
        ("an answer without a request", |t| drop(t.remove(3)), &[(4, "unknown-response")]),
        ("another session", |t| t[1]["params"]["sessionId"] = "x".into(), &[(2, "session")]),
        (
            "a call without title",
            |t| drop(t[2]["params"]["update"].as_object_mut().unwrap().remove("title")),
            &[(3, "shape")],
        ),
        ("a status that there is not", |t| t[5]["params"]["update"]["status"] = "done".into(), &[(6, "shape")]),
        ("a kind of tool that there is not", |t| t[2]["params"]["update"]["kind"] = "task".into(), &[(3, "shape")]),
        ("a reason that there is not", |t| t[6]["result"]["stopReason"] = "stop_sequence".into(), &[(7, "shape")]),
        (
            "a block that there is not",
            |t| t[1]["params"]["update"]["content"]["type"] = "video".into(),
            &[(2, "shape")],
        ),
        ("text that is none", |t| t[1]["params"]["update"]["content"]["text"] = 1.into(), &[(2, "shape")]),
        ("an option of a wrong kind", |t| t[3]["params"]["options"][0]["kind"] = "allow".into(), &[(4, "shape")]),
        ("no session", |t| drop(t[1]["params"].as_object_mut().unwrap().remove("sessionId")), &[(2, "shape")]),
        (
            "an unknown update",
            |t| t[1]["params"]["update"]["sessionUpdate"] = "agent_joke".into(),
            &[(2, "update-kind")],
        ),
        ("an extension", |t| t[1]["params"]["update"]["sessionUpdate"] = "_joke".into(), &[]),
        ("no update", |t| t[1]["params"]["update"] = json!({}), &[(2, "shape")]),
        ("an unknown method", |t| t[1]["method"] = "session/joke".into(), &[(2, "method")]),
        ("an update with an id", |t| t[1]["id"] = 4.into(), &[(2, "sender")]),
        (
            "a request without id",
            |t| drop(t[3].as_object_mut().unwrap().remove("id")),
            &[(4, "sender"), (5, "unknown-response")],
        ),
        (
            "no version",
            |t| t.iter_mut().for_each(|m| drop(m.as_object_mut().unwrap().remove("jsonrpc"))),
            &[(1, "jsonrpc")],
        ),
        ("no method and no result", |t| t[1] = json!({ "jsonrpc": "2.0", "id": 1 }), &[(2, "message")]),
        (
            "a result and an error",
            |t| t[6]["error"] = json!({ "code": 1, "message": "x" }),
            &[(7, "message"), (7, "truncated")],
        ),
        ("an id that is none", |t| t[3]["id"] = json!([1]), &[(4, "message"), (5, "unknown-response")]),
        (
            "an error without code",
            |t| t[6] = json!({ "jsonrpc": "2.0", "id": "trn_1", "error": { "message": "x" } }),
            &[(7, "shape")],
        ),
    ];
    for (name, spoil, expected) in faults {
        let mut lines = turn();
        spoil(&mut lines);
        assert_eq!(found(&lines), *expected, "{name}");
    }
}

#[test]
fn each_fault_of_a_conversation_is_found_once() {
    let faults: &[Fault] = &[
        ("no time", |t| drop(t[3].as_object_mut().unwrap().remove("t")), &[(4, "envelope")]),
        ("no such direction", |t| t[3]["dir"] = "up".into(), &[(4, "envelope")]),
        ("noise", |t| t[3] = json!({ "t": 1, "dir": "noise", "msg": "Welcome!" }), &[(4, "noise")]),
        ("the client updates", |t| t[3]["dir"] = "c2a".into(), &[(4, "sender")]),
        ("a prompt without a response", |t| drop(t.pop()), &[(8, "truncated")]),
        ("a response to nothing", |t| t[8]["msg"]["id"] = 9.into(), &[(9, "unknown-response")]),
        (
            "an option that was not offered",
            |t| t[6]["msg"]["result"]["outcome"]["optionId"] = "z".into(),
            &[(7, "option")],
        ),
        ("an id twice", |t| t.insert(6, t[5].clone()), &[(7, "double-id")]),
        ("leave that nobody gave", |t| drop(t.remove(6)), &[(8, "open-request")]),
        ("a session that was not opened", |t| t[3]["msg"]["params"]["sessionId"] = "x".into(), &[(4, "session")]),
        ("words before the prompt", |t| t.swap(2, 3), &[(3, "outside-turn")]),
    ];
    for (name, spoil, expected) in faults {
        let mut lines = recorded();
        spoil(&mut lines);
        assert_eq!(found(&lines), *expected, "{name}");
    }
}

#[test]
fn framing_is_judged() {
    let say = say().to_string();
    let found = |text: &str| judged(text.as_bytes()).iter().map(|f| (f.line, f.rule.name)).collect::<Vec<_>>();
    assert_eq!(found(&format!("{say}\n{}\n{say}\n", &say[..40])), [(2, "json")]);
    assert_eq!(found(&format!("{say}\ndata: [1]\n\n{say}\n")), [(2, "json")]);
    assert_eq!(found(&format!("data: {say}\n\ndata: {say}")), [(3, "cut")]);
}
