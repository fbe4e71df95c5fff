//! A good stream, spoilt in one place at a time: the judge says where and which rule, and nothing else.

use serde_json::{Value, json};
use tolka_dialect::opencode::Profile::{self, Current, Documented, Superset};
use tolka_facts::event::*;
use tolka_facts::{Block, CallId, Draft, Json, MessageId, PartId, RequestId, ToolKind, ToolStatus, TurnId};

use crate::law::findings;
use crate::support::{PROFILES, Run, sse};

/// A prompt, and in its answer a text, a call that was asked for, and a thought.
fn good(profile: Profile) -> Vec<Value> {
    let (turn, step, call) = (TurnId::from("trn_1"), MessageId::from("msg_2"), CallId::from("call_1"));
    let change = |status| ToolChanged { status, ..ToolChanged::of(CallId::from("call_1")) };
    let text = |text: &str| TextAppended { part: PartId::from("prt_1"), text: text.into() };
    let option = PermissionOption { id: "y".into(), name: "Yes".into(), kind: OptionKind::AllowOnce };
    let drafts = [
        Draft::client(SessionCreated {
            workspace: "/workspace".into(),
            agent: "demo".into(),
            title: "New".into(),
            mode: None,
            model: None,
            parent: None,
        }),
        Draft::client(PromptQueued {
            turn: turn.clone(),
            message: MessageId::from("msg_1"),
            content: vec![Block::text("Go on.")],
            key: None,
            agent: None,
            model: None,
            context: None,
            steers: None,
        }),
        Draft::tolka(TurnStarted { turn: turn.clone(), checkpoint: None }),
        Draft::agent(StepStarted { message: step.clone(), model: None }),
        Draft::agent(text("Let me ")),
        Draft::agent(text("look around here, ")),
        Draft::agent(text("at all that there is. ")),
        Draft::agent(ToolChanged { name: Some("bash".into()), kind: Some(ToolKind::Execute), ..change(None) }),
        Draft::agent(PermissionAsked {
            request: RequestId::from("per_1"),
            call: Some(call),
            permission: "bash".into(),
            title: "Run".into(),
            patterns: vec!["ls".into()],
            metadata: None,
            options: vec![option],
        }),
        Draft::client(PermissionAnswered {
            request: RequestId::from("per_1"),
            option: Some("y".into()),
            by: "test".into(),
            reason: None,
        }),
        Draft::agent(ToolChanged {
            input: Some(Json::from_value(&json!({ "command": "ls" }))),
            ..change(Some(ToolStatus::Running))
        }),
        Draft::agent(change(Some(ToolStatus::Completed))),
        Draft::agent(ThoughtAppended { part: PartId::from("prt_2"), text: "Done.".into() }),
        Draft::agent(StepEnded { message: step, finish: Finish::Stop, usage: None, cost: None, kept: None }),
        Draft::agent(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None }),
    ];
    Run::stamped(drafts).events(profile)
}

fn judged(profile: Profile, events: &[Value]) -> Vec<(usize, &'static str)> {
    let frames: Vec<_> = events.iter().map(|event| event.to_string().into_bytes()).collect();
    let found = findings(profile, &sse(&frames));
    // Each event is two lines.
    found.iter().map(|finding| ((finding.line as usize - 1) / 2, finding.rule.name)).collect()
}

/// Where the `n`th event is of which `part` (or `type`) is that.
fn at(events: &[Value], name: &str, n: usize) -> usize {
    let is = |event: &Value| {
        let part = &event["properties"]["part"];
        event["type"] == name || part["type"] == name || (part["type"] == "tool" && part["state"]["status"] == name)
    };
    let mut found = events.iter().enumerate().filter(|(_, event)| is(event)).map(|(at, _)| at);
    found.nth(n).unwrap_or_else(|| panic!("no {name} {n}"))
}

fn without(object: &mut Value, field: &str) {
    object.as_object_mut().unwrap().remove(field).unwrap();
}

/// Puts the event in with an id of its own.
fn put(events: &mut Vec<Value>, at: usize, mut event: Value) -> usize {
    event["id"] = json!(format!("evt_put{at}"));
    events.insert(at, event);
    at
}

/// Tells the one event once more, right after the other.
fn again(events: &mut Vec<Value>, one: (&str, usize), other: (&str, usize)) -> usize {
    let event = events[at(events, one.0, one.1)].clone();
    let place = at(events, other.0, other.1) + 1;
    put(events, place, event)
}

/// Takes the event out; gives the place of the one after it.
fn drop_it(events: &mut Vec<Value>, name: &str, n: usize) -> usize {
    let place = at(events, name, n);
    events.remove(place);
    place
}

fn spoil(events: &mut [Value], name: &str, n: usize, how: impl FnOnce(&mut Value)) -> usize {
    let place = at(events, name, n);
    how(&mut events[place]);
    place
}

/// Takes the field out of the object at `path`.
fn lose(events: &mut [Value], name: &str, n: usize, path: &str, field: &str) -> usize {
    spoil(events, name, n, |event| without(event.pointer_mut(path).unwrap(), field))
}

fn set(events: &mut [Value], name: &str, n: usize, path: &str, value: Value) -> usize {
    let (parent, field) = path.rsplit_once('/').unwrap();
    spoil(events, name, n, |event| event.pointer_mut(parent).unwrap()[field] = value)
}

fn same_id(events: &mut [Value]) -> usize {
    let id = events[0]["id"].clone();
    spoil(events, "step-start", 0, |event| event["id"] = id)
}

/// Cuts the stream in a text that has become shorter.
fn shrink(events: &mut Vec<Value>) -> usize {
    let place = spoil(events, "text", 3, |event| event["properties"]["part"]["text"] = json!("Let me"));
    events.truncate(place + 1);
    events.extend(rest());
    place
}

fn event(kind: &str, properties: Value) -> Value {
    json!({ "type": kind, "properties": properties })
}

fn status(status: Value) -> Value {
    event("session.status", json!({ "sessionID": SESSION, "status": status }))
}

fn failure(error: Value) -> Value {
    event("session.error", json!({ "sessionID": SESSION, "error": error }))
}

const SESSION: &str = "ses_e23678758ffenHI9SvU6UHo4PN";

/// What is spoilt, in which profiles, how (which gives the place), and the rule that is broken there.
type Fault = (&'static str, &'static [Profile], fn(&mut Vec<Value>) -> usize, &'static str);

const TODAY: &[Profile] = &[Current, Superset];
const GROWING: &[Profile] = &[Documented, Superset];

const SHAPES: &[Fault] = &[
    ("no type", &PROFILES, |e| spoil(e, "session.updated", 0, |e| without(e, "type")), "envelope"),
    ("no properties", &PROFILES, |e| spoil(e, "session.updated", 0, |e| without(e, "properties")), "envelope"),
    ("no id today", &[Current], |e| spoil(e, "step-start", 0, |e| without(e, "id")), "envelope"),
    ("an id of no event's", &[Current], |e| spoil(e, "step-start", 0, |e| e["id"] = json!("msg_9")), "envelope"),
    ("the same id twice", &PROFILES, |e| same_id(e), "event-id"),
    ("an event of nobody's", &PROFILES, |e| put(e, 1, event("session.paused", json!({}))), "unknown-event"),
    ("the old permission", &[Current], |e| put(e, 1, event("permission.updated", json!({}))), "unknown-event"),
    ("connected too late", &PROFILES, |e| put(e, 1, event("server.connected", json!({}))), "connected-first"),
    ("no session", GROWING, |e| lose(e, "session.updated", 0, "/properties", "session"), "session"),
    ("no info", TODAY, |e| lose(e, "session.updated", 0, "/properties", "info"), "session"),
    ("a status of nobody's", &PROFILES, |e| put(e, 1, status(json!({ "type": "waiting" }))), "session"),
    (
        "a retry at no time",
        &PROFILES,
        |e| put(e, 7, status(json!({ "type": "retry", "attempt": 1, "message": "" }))),
        "session",
    ),
    ("a user without a model", &PROFILES, |e| lose(e, "message.updated", 0, "/properties/info", "model"), "message"),
    ("no tokens", &PROFILES, |e| lose(e, "message.updated", 1, "/properties/info", "tokens"), "message"),
    ("no agent", TODAY, |e| lose(e, "message.updated", 1, "/properties/info", "agent"), "message"),
    ("a role of nobody's", &PROFILES, |e| set(e, "message.updated", 2, "/properties/info/role", json!("x")), "message"),
    ("no name of an error", &PROFILES, |e| set(e, "message.updated", 2, "/properties/info/error", json!({})), "error"),
    (
        "an error without words",
        &PROFILES,
        |e| put(e, 1, failure(json!({ "name": "UnknownError", "data": {} }))),
        "error",
    ),
    ("a type of nobody's", &PROFILES, |e| set(e, "step-finish", 0, "/properties/part/type", json!("step-end")), "part"),
    ("a thought at no time", &PROFILES, |e| lose(e, "reasoning", 1, "/properties/part", "time"), "part"),
    (
        "a piece that is a number",
        &[Superset],
        |e| set(e, "message.part.delta", 0, "/properties/field", json!(7)),
        "part",
    ),
    ("no reason", &PROFILES, |e| lose(e, "step-finish", 0, "/properties/part", "reason"), "part"),
    ("no input", &PROFILES, |e| lose(e, "running", 0, "/properties/part/state", "input"), "tool-state"),
    ("no output", &PROFILES, |e| lose(e, "completed", 0, "/properties/part/state", "output"), "tool-state"),
    ("no end", &PROFILES, |e| lose(e, "completed", 0, "/properties/part/state/time", "end"), "tool-state"),
    (
        "a state of nobody's",
        &PROFILES,
        |e| set(e, "completed", 0, "/properties/part/state/status", json!("done")),
        "tool-state",
    ),
    ("a reply of nobody's", &PROFILES, |e| set(e, "permission.replied", 0, "/properties/reply", json!("yes")), "event"),
    (
        "a list of plans",
        &PROFILES,
        |e| {
            put(
                e,
                1,
                event(
                    "todo.updated",
                    json!({ "sessionID": SESSION, "todos": [{ "content": "a", "status": "done", "priority": "low" }] }),
                ),
            )
        },
        "event",
    ),
];

const ORDER: &[Fault] = &[
    (
        "a message of another role",
        &PROFILES,
        |e| set(e, "message.updated", 2, "/properties/info/id", json!("msg_1")),
        "same",
    ),
    (
        "a part of another call",
        &PROFILES,
        |e| set(e, "completed", 0, "/properties/part/callID", json!("call_9")),
        "same",
    ),
    ("a part of another tool", &PROFILES, |e| set(e, "completed", 0, "/properties/part/tool", json!("read")), "same"),
    (
        "a part of another session than its message",
        &PROFILES,
        |e| set(e, "step-finish", 0, "/properties/part/sessionID", json!("ses_9")),
        "same",
    ),
    ("a part before its message", &PROFILES, |e| drop_it(e, "message.updated", 1), "message-first"),
    ("a piece before its part", &[Current], |e| drop_it(e, "reasoning", 0), "part-first"),
    ("text that shrinks", GROWING, |e| shrink(e), "text"),
    (
        "text that was doubled",
        &[Current],
        |e| set(e, "reasoning", 1, "/properties/part/text", json!("Done.Done.")),
        "text",
    ),
    (
        "a piece told twice",
        TODAY,
        |e| {
            again(e, ("message.part.delta", 3), ("message.part.delta", 3));
            at(e, "reasoning", 1)
        },
        "text",
    ),
    ("a delta of other words", GROWING, |e| set(e, "text", 2, "/properties/delta", json!("look")), "delta"),
    ("growth without a delta", GROWING, |e| lose(e, "text", 2, "/properties", "delta"), "delta"),
    ("a delta today", &[Current], |e| set(e, "reasoning", 1, "/properties/delta", json!("Done.")), "no-delta"),
    (
        "pieces for the document's client",
        &[Documented],
        |e| {
            let place = at(e, "completed", 0);
            let part = &e[at(e, "text", 2)]["properties"]["part"];
            let piece = json!({ "sessionID": SESSION, "messageID": part["messageID"], "partID": part["id"],
                "field": "text", "delta": "" });
            put(e, place, event("message.part.delta", piece))
        },
        "no-pieces",
    ),
    ("a call that waits again", &PROFILES, |e| again(e, ("pending", 0), ("running", 0)), "tool-order"),
    ("a call after its end", &PROFILES, |e| again(e, ("running", 0), ("completed", 0)), "tool-order"),
    (
        "two steps at once",
        &PROFILES,
        |e| {
            let at = again(e, ("step-start", 0), ("step-start", 0));
            e[at]["properties"]["part"]["id"] = json!("prt_9");
            at
        },
        "steps",
    ),
    (
        "a step that never started",
        &PROFILES,
        |e| {
            drop_it(e, "step-start", 0);
            at(e, "step-finish", 0)
        },
        "steps",
    ),
    (
        "completed twice",
        &PROFILES,
        |e| {
            let at = again(e, ("message.updated", 2), ("message.updated", 2));
            e[at]["properties"]["info"]["time"]["completed"] = json!(9);
            at
        },
        "completed-once",
    ),
    ("asked twice", &PROFILES, |e| again(e, ("permission.asked", 0), ("permission.asked", 0)), "asked-once"),
    ("answered twice", &PROFILES, |e| again(e, ("permission.replied", 0), ("permission.replied", 0)), "asked-first"),
    (
        "an answer to nothing",
        &PROFILES,
        |e| {
            drop_it(e, "permission.asked", 0);
            at(e, "permission.replied", 0)
        },
        "asked-first",
    ),
    (
        "a tool at work when all is done",
        &PROFILES,
        |e| {
            drop_it(e, "completed", 0);
            at(e, "session.idle", 0)
        },
        "tool-at-idle",
    ),
    ("idle twice", &PROFILES, |e| again(e, ("session.idle", 0), ("session.idle", 0)), "idle-after-busy"),
    (
        "idle, and busy",
        TODAY,
        |e| {
            drop_it(e, "session.status", 1);
            at(e, "session.idle", 0)
        },
        "idle-status",
    ),
    ("a status, and no idle", &PROFILES, |e| drop_it(e, "session.idle", 0) - 1, "idle-told"),
    ("news of a complete answer", &PROFILES, |e| again(e, ("message.updated", 2), ("session.idle", 0)), "after-idle"),
    (
        "cut in the middle",
        &PROFILES,
        |e| {
            e.truncate(at(e, "completed", 0) + 1);
            e.len() - 1
        },
        "busy-at-end",
    ),
];

/// How a stream goes on that was cut in an answer.
fn rest() -> Vec<Value> {
    let mut rest = vec![
        event("session.status", json!({ "sessionID": SESSION, "status": { "type": "idle" } })),
        event("session.idle", json!({ "sessionID": SESSION })),
    ];
    rest.iter_mut().zip(["evt_a", "evt_b"]).for_each(|(event, id)| event["id"] = json!(id));
    rest
}

#[test]
fn each_fault_is_found_where_it_is() {
    for profile in PROFILES {
        assert_eq!(judged(profile, &good(profile)), [], "{profile:?}");
    }
    let mut wrong = Vec::new();
    for (name, profiles, spoil, rule) in SHAPES.iter().chain(ORDER) {
        for profile in *profiles {
            let mut events = good(*profile);
            let place = spoil(&mut events);
            let found = judged(*profile, &events);
            if found != [(place, *rule)] {
                wrong.push(format!("{name}, {profile:?}: {found:?}, and not {rule} at {place}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Document 004 has no `session.status`: by what was said alone its client knows that more is to come.
#[test]
fn an_answer_without_its_idle_is_not_complete() {
    let mut events = good(Documented);
    events.retain(|event| event["type"] != "session.status" && event["type"] != "session.created");
    assert_eq!(judged(Documented, &events), []);
    let idle = drop_it(&mut events, "session.idle", 0);
    events.truncate(idle);
    assert_eq!(judged(Documented, &events), [(idle - 1, "busy-at-end")]);
    let error = json!({ "name": "UnknownError", "data": { "message": "down" } });
    put(&mut events, idle, failure(error));
    assert_eq!(judged(Documented, &events), [], "an error ends it as well");
}

/// The real server cuts blanks off at the end of a text.
#[test]
fn a_text_may_lose_its_last_blanks_at_its_end() {
    let mut events = good(Current);
    let end = at(&events, "text", 2);
    assert_eq!(events[end]["properties"]["part"]["text"], "Let me look around here, at all that there is. ");
    events[end]["properties"]["part"]["text"] = json!("Let me look around here, at all that there is.");
    assert_eq!(judged(Current, &events), []);
    without(&mut events[end]["properties"]["part"]["time"], "end");
    assert_eq!(judged(Current, &events), [(end, "text")]);
}

#[test]
fn the_global_feed_names_the_folder() {
    let dress = |event: Value| json!({ "directory": "/workspace", "project": "p", "payload": event });
    let mut events: Vec<_> = good(Current).into_iter().map(dress).collect();
    events.insert(0, json!({ "payload": { "id": "evt_0", "type": "server.connected", "properties": {} } }));
    let sync = json!({ "id": "e", "type": "session.created.1", "seq": 1, "aggregateID": SESSION, "data": {} });
    events.insert(1, dress(json!({ "type": "sync", "id": "evt_0", "syncEvent": sync })));
    assert_eq!(judged(Current, &events), []);
    without(&mut events[2], "directory");
    without(&mut events[1]["payload"]["syncEvent"], "seq");
    assert_eq!(judged(Current, &events), [(1, "envelope"), (2, "envelope")]);
}

/// What is spoilt, the stream, and which rules are broken in which lines.
type Case<'a> = (&'a str, String, &'a [(u64, &'a str)]);

#[test]
fn framing_is_judged_too() {
    let frames: Vec<_> = good(Current).iter().map(|event| event.to_string().into_bytes()).collect();
    let good = String::from_utf8(sse(&frames)).unwrap();
    let last = 2 * frames.len() as u64 - 1;
    let cases: &[Case<'_>] = &[
        ("CR LF", good.replace('\n', "\r\n"), &[(1, "line-ends")]),
        ("a name", format!("event: session.created\n{good}"), &[(1, "event-name")]),
        ("two lines", good.replacen("data: {", "data: {\ndata: ", 1), &[(2, "framing")]),
        ("a packet without data", good.replacen("data: {", "{", 1), &[(1, "framing")]),
        ("cut in its last event", good[..good.len() - 4].to_owned(), &[(last - 2, "idle-told"), (last, "cut")]),
        ("ids, comments, a retry", format!("retry: 100\n\n: hi\n\nid: x.4\n{good}"), &[]),
    ];
    for (name, stream, expected) in cases {
        let found = findings(Current, stream.as_bytes());
        let found: Vec<_> = found.iter().map(|finding| (finding.line, finding.rule.name)).collect();
        assert_eq!(found, *expected, "{name}");
    }
}
