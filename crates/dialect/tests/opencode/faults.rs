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
        Draft::agent(StepEnded { message: step, finish: Finish::Stop, usage: None, cost: None }),
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

fn again(events: &mut Vec<Value>, from: usize, to: usize) -> usize {
    let event = events[from].clone();
    put(events, to, event)
}

/// Spoils the event and gives its place.
fn spoil(events: &mut [Value], at: usize, how: impl FnOnce(&mut Value)) -> usize {
    how(&mut events[at]);
    at
}

fn event(kind: &str, properties: Value) -> Value {
    json!({ "type": kind, "properties": properties })
}

const SESSION: &str = "ses_e23678758ffenHI9SvU6UHo4PN";

/// What is spoilt, in which profiles, how (which gives the place), and the rule that is broken there.
type Fault = (&'static str, &'static [Profile], fn(&mut Vec<Value>) -> usize, &'static str);

const FAULTS: &[Fault] = &[
    ("no type", &PROFILES, |e| spoil(e, 1, |e| without(e, "type")), "envelope"),
    (
        "no properties",
        &PROFILES,
        |e| {
            let at = at(e, "session.updated", 0);
            spoil(e, at, |e| without(e, "properties"))
        },
        "envelope",
    ),
    ("no id today", &[Current], |e| spoil(e, 1, |e| without(e, "id")), "envelope"),
    ("an id that is no event's", &[Current], |e| spoil(e, 1, |e| e["id"] = json!("msg_9")), "envelope"),
    (
        "the same id twice",
        &PROFILES,
        |e| {
            let id = e[0]["id"].clone();
            spoil(e, 1, |e| e["id"] = id)
        },
        "event-id",
    ),
    (
        "an event of nobody's",
        &PROFILES,
        |e| put(e, 1, event("session.paused", json!({ "sessionID": SESSION }))),
        "unknown-event",
    ),
    ("the old permission today", &[Current], |e| put(e, 1, event("permission.updated", json!({}))), "unknown-event"),
    ("connected too late", &PROFILES, |e| put(e, 1, event("server.connected", json!({}))), "connected-first"),
    (
        "no session in session.updated",
        &[Documented, Superset],
        |e| {
            let at = at(e, "session.updated", 0);
            spoil(e, at, |e| without(&mut e["properties"], "session"))
        },
        "session",
    ),
    (
        "no info in session.updated",
        &[Current, Superset],
        |e| {
            let at = at(e, "session.updated", 0);
            spoil(e, at, |e| without(&mut e["properties"], "info"))
        },
        "session",
    ),
    (
        "a status of nobody's",
        &PROFILES,
        |e| put(e, 1, event("session.status", json!({ "sessionID": SESSION, "status": { "type": "waiting" } }))),
        "session",
    ),
    (
        "a retry without its time",
        &PROFILES,
        |e| {
            let at = at(e, "step-start", 0);
            put(
                e,
                at,
                event(
                    "session.status",
                    json!({ "sessionID": SESSION, "status": { "type": "retry", "attempt": 1, "message": "no" } }),
                ),
            )
        },
        "session",
    ),
    (
        "a user without a model",
        &PROFILES,
        |e| spoil(e, 1, |e| without(&mut e["properties"]["info"], "model")),
        "message",
    ),
    (
        "tokens without their cache",
        &PROFILES,
        |e| {
            let at = at(e, "message.updated", 1);
            spoil(e, at, |e| without(&mut e["properties"]["info"]["tokens"], "cache"))
        },
        "message",
    ),
    (
        "no agent today",
        &[Current, Superset],
        |e| {
            let at = at(e, "message.updated", 1);
            spoil(e, at, |e| without(&mut e["properties"]["info"], "agent"))
        },
        "message",
    ),
    (
        "a role of nobody's",
        &PROFILES,
        |e| {
            put(
                e,
                1,
                event(
                    "message.updated",
                    json!({ "sessionID": SESSION, "info": { "id": "msg_9", "sessionID": SESSION, "role": "system" } }),
                ),
            )
        },
        "message",
    ),
    (
        "a message that is another's",
        &PROFILES,
        |e| {
            let at = at(e, "message.updated", 2);
            spoil(e, at, |e| e["properties"]["info"]["id"] = json!("msg_1"))
        },
        "same",
    ),
    (
        "an error of nobody's",
        &PROFILES,
        |e| {
            let at = at(e, "message.updated", 2);
            spoil(e, at, |e| e["properties"]["info"]["error"] = json!({ "name": "Oops", "data": {} }))
        },
        "error",
    ),
    (
        "an error without its words",
        &PROFILES,
        |e| {
            put(
                e,
                1,
                event(
                    "session.error",
                    json!({ "sessionID": SESSION, "error": { "name": "UnknownError", "data": {} } }),
                ),
            )
        },
        "error",
    ),
    (
        "a part of nobody's type",
        &PROFILES,
        |e| {
            let at = at(e, "step-start", 0);
            spoil(e, at, |e| e["properties"]["part"]["type"] = json!("step"));
            e.remove(self::at(e, "step-finish", 0));
            at
        },
        "part",
    ),
    (
        "a thought without its time",
        &PROFILES,
        |e| {
            let at = at(e, "reasoning", 1);
            spoil(e, at, |e| without(&mut e["properties"]["part"], "time"))
        },
        "part",
    ),
    (
        "a part's id that is none",
        &[Current, Superset],
        |e| {
            let at = at(e, "message.part.delta", 0);
            spoil(e, at, |e| e["properties"]["delta"] = json!(7));
            let last = self::at(e, "text", 1);
            let _ = last;
            at
        },
        "part",
    ),
    (
        "a state without its input",
        &PROFILES,
        |e| {
            let at = at(e, "running", 0);
            spoil(e, at, |e| without(&mut e["properties"]["part"]["state"], "input"))
        },
        "tool-state",
    ),
    (
        "a state of nobody's",
        &PROFILES,
        |e| {
            let at = at(e, "completed", 0);
            spoil(e, at, |e| e["properties"]["part"]["state"]["status"] = json!("done"))
        },
        "tool-state",
    ),
    (
        "an end without its time",
        &PROFILES,
        |e| {
            let at = at(e, "completed", 0);
            spoil(e, at, |e| without(&mut e["properties"]["part"]["state"]["time"], "end"))
        },
        "tool-state",
    ),
    (
        "a part before its message",
        &PROFILES,
        |e| {
            let at = at(e, "message.updated", 1);
            e.remove(at);
            at
        },
        "message-first",
    ),
    (
        "a piece before its part",
        &[Current],
        |e| {
            let at = at(e, "reasoning", 0);
            e.remove(at);
            at
        },
        "part-first",
    ),
    (
        "a part that moves",
        &PROFILES,
        |e| {
            let at = at(e, "completed", 0);
            spoil(e, at, |e| e["properties"]["part"]["callID"] = json!("call_9"))
        },
        "same",
    ),
    (
        "text that shrinks",
        &[Documented, Superset],
        |e| {
            let at = at(e, "text", 4);
            spoil(e, at, |e| {
                without(&mut e["properties"], "delta");
                e["properties"]["part"]["text"] = json!("Let me")
            });
            e.truncate(at + 1);
            e.extend(rest());
            at
        },
        "text",
    ),
    (
        "text that was doubled",
        &[Current],
        |e| {
            let at = at(e, "reasoning", 1);
            spoil(e, at, |e| e["properties"]["part"]["text"] = json!("Done.Done."))
        },
        "text",
    ),
    (
        "a piece told twice",
        &[Current],
        |e| {
            let from = at(e, "message.part.delta", 3);
            again(e, from, from + 1);
            at(e, "reasoning", 1)
        },
        "text",
    ),
    (
        "a delta that is not what was added",
        &[Documented, Superset],
        |e| {
            let at = at(e, "text", 2);
            spoil(e, at, |e| e["properties"]["delta"] = json!("look"))
        },
        "delta",
    ),
    (
        "growth without a delta",
        &[Documented, Superset],
        |e| {
            let at = at(e, "text", 2);
            spoil(e, at, |e| without(&mut e["properties"], "delta"))
        },
        "delta",
    ),
    (
        "a delta today",
        &[Current],
        |e| {
            let at = at(e, "reasoning", 1);
            spoil(e, at, |e| e["properties"]["delta"] = json!("Done."))
        },
        "no-delta",
    ),
    (
        "a call that waits again",
        &PROFILES,
        |e| {
            let (from, to) = (at(e, "pending", 0), at(e, "completed", 0));
            again(e, from, to)
        },
        "tool-order",
    ),
    (
        "a call that runs after its end",
        &PROFILES,
        |e| {
            let (from, to) = (at(e, "running", 0), at(e, "completed", 0) + 1);
            again(e, from, to)
        },
        "tool-order",
    ),
    (
        "two steps at once",
        &PROFILES,
        |e| {
            let from = at(e, "step-start", 0);
            let to = again(e, from, from + 1);
            e[to]["properties"]["part"]["id"] = json!("prt_9");
            to
        },
        "steps",
    ),
    (
        "a step's end without its start",
        &PROFILES,
        |e| {
            let start = at(e, "step-start", 0);
            e.remove(start);
            at(e, "step-finish", 0)
        },
        "steps",
    ),
    (
        "a message completed twice",
        &PROFILES,
        |e| {
            let from = at(e, "message.updated", 2);
            let to = again(e, from, from + 1);
            e[to]["properties"]["info"]["time"]["completed"] = json!(9);
            to
        },
        "completed-once",
    ),
    (
        "asked twice",
        &PROFILES,
        |e| {
            let from = at(e, "permission.asked", 0);
            again(e, from, from + 1)
        },
        "asked-once",
    ),
    (
        "answered twice",
        &PROFILES,
        |e| {
            let from = at(e, "permission.replied", 0);
            again(e, from, from + 1)
        },
        "asked-first",
    ),
    (
        "an answer to nothing",
        &PROFILES,
        |e| {
            let asked = at(e, "permission.asked", 0);
            e.remove(asked);
            at(e, "permission.replied", 0)
        },
        "asked-first",
    ),
    (
        "a reply of nobody's",
        &PROFILES,
        |e| {
            let at = at(e, "permission.replied", 0);
            spoil(e, at, |e| e["properties"]["reply"] = json!("yes"))
        },
        "event",
    ),
    (
        "idle twice",
        &PROFILES,
        |e| {
            let from = at(e, "session.idle", 0);
            again(e, from, from + 1)
        },
        "idle-after-busy",
    ),
    (
        "idle, and the status says busy",
        &[Current, Superset],
        |e| {
            let status = at(e, "session.status", 1);
            e.remove(status);
            at(e, "session.idle", 0)
        },
        "idle-status",
    ),
    (
        "a status, and no idle",
        &PROFILES,
        |e| {
            e.pop();
            e.len() - 1
        },
        "idle-told",
    ),
    (
        "news of a complete answer",
        &PROFILES,
        |e| {
            let (from, to) = (at(e, "message.updated", 2), e.len());
            again(e, from, to)
        },
        "after-idle",
    ),
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
    for (name, profiles, spoil, rule) in FAULTS {
        for profile in *profiles {
            let mut events = good(*profile);
            let place = spoil(&mut events);
            assert_eq!(judged(*profile, &events), [(place, *rule)], "{name}, {profile:?}");
        }
    }
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

#[test]
fn framing_is_judged_too() {
    let frames: Vec<_> = good(Current).iter().map(|event| event.to_string().into_bytes()).collect();
    let good = String::from_utf8(sse(&frames)).unwrap();
    let last = 2 * frames.len() as u64 - 1;
    let cases: &[(&str, String, &[(u64, &str)])] = &[
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
