//! A good stream, spoilt in one place at a time: the judge says where and which rule, and nothing else.

use serde_json::{Value, json};
use tolka_dialect::onyx::Profile;
use tolka_facts::event::{PlanEntry, PlanSet, PlanStatus, Priority, Stop, TextAppended, ToolChanged};
use tolka_facts::{CallId, PartId, ToolKind, ToolStatus};

use crate::law::{findings, written};
use crate::{Session, json as raw};

/// Text, a call's start, two changes of it, a plan, the turn's end. Packet `n` stands in three lines from `3 * n + 1`.
fn good(profile: Profile) -> Vec<Value> {
    let change = || ToolChanged::of(CallId::from("call_1"));
    let mut session = Session::in_turn();
    session.tell(TextAppended { part: PartId::from("prt_1"), text: "Let me look.".into() });
    session.tell(ToolChanged { name: Some("bash".into()), kind: Some(ToolKind::Execute), ..change() });
    session.tell(ToolChanged {
        status: Some(ToolStatus::Running),
        input: raw(r#"{"command":"ls","description":"List"}"#),
        ..change()
    });
    session.tell(ToolChanged {
        status: Some(ToolStatus::Completed),
        output: raw(r#"{"output":"a\n","metadata":{"exit":0}}"#),
        ..change()
    });
    let entry = PlanEntry { content: "Look".into(), status: PlanStatus::Completed, priority: Priority::High };
    session.tell(PlanSet { entries: vec![entry] });
    session.end(Stop::EndTurn);
    session.packets(profile)
}

const LINES: fn(usize) -> u64 = |packet| 3 * packet as u64 + 1;

fn judged(profile: Profile, packets: &[Value]) -> Vec<(u64, &'static str)> {
    let packets: Vec<_> = packets.iter().map(Value::to_string).collect();
    let found = findings(profile, &written(profile, packets.iter().map(String::as_str)));
    found.iter().map(|finding| (finding.line, finding.rule.name)).collect()
}

fn without(packet: &mut Value, field: &str) {
    packet.as_object_mut().unwrap().remove(field).unwrap();
}

fn with(packet: &Value, field: &str, value: &str) -> Value {
    let mut packet = packet.clone();
    packet[field] = json!(value);
    packet
}

fn artifact(kind: &str) -> Value {
    json!({ "id": "art_1", "type": kind, "name": "a", "path": "a" })
}

/// Puts a packet before the end, at its time.
fn put(packets: &mut Vec<Value>, kind: &str, mut packet: Value) {
    packet["type"] = json!(kind);
    packet["timestamp"] = packets[5]["timestamp"].clone();
    packets.insert(5, packet);
}

fn swap(packets: &mut Vec<Value>, kind: &str, packet: Value) {
    put(packets, kind, packet);
    packets.pop();
}

type Fault = (&'static str, fn(&mut Vec<Value>), &'static [(usize, &'static str)]);

/// What is spoilt, how, and the packets at which which rules are broken then.
const FAULTS: &[Fault] = &[
    ("no type", |p| without(&mut p[0], "type"), &[(0, "type")]),
    ("nothing that says what it is", |p| p[4] = json!({}), &[(4, "type")]),
    ("an unknown type", |p| p[4]["type"] = json!("thinking"), &[(4, "unknown-packet")]),
    ("another update than the type's", |p| p[2]["sessionUpdate"] = json!("tool_call"), &[(2, "session-update")]),
    ("no update", |p| without(&mut p[4], "sessionUpdate"), &[(4, "session-update")]),
    ("no time", |p| without(&mut p[0], "timestamp"), &[(0, "timestamp")]),
    ("a time without its offset", |p| p[0]["timestamp"] = json!("2026-01-22T00:11:51"), &[(0, "timestamp")]),
    ("no null for _meta", |p| without(&mut p[0], "_meta"), &[(0, "meta")]),
    ("no null for annotations", |p| without(&mut p[0]["content"], "annotations"), &[(0, "chunk")]),
    ("content that is no text", |p| p[0]["content"]["type"] = json!("image"), &[(0, "chunk")]),
    ("no null for content", |p| without(&mut p[1], "content"), &[(1, "tool-start")]),
    ("no null for rawOutput", |p| without(&mut p[2], "rawOutput"), &[(2, "tool-progress")]),
    ("a start with input", |p| p[1]["rawInput"] = json!({ "command": "ls" }), &[(1, "tool-start")]),
    ("a start that runs", |p| p[1]["status"] = json!("in_progress"), &[(1, "tool-start")]),
    ("a status of nobody's", |p| p[2]["status"] = json!("running"), &[(2, "tool-progress")]),
    ("a kind of nobody's", |p| p[2]["kind"] = json!("task"), &[(2, "tool-progress")]),
    ("input that is a list", |p| p[2]["rawInput"] = json!([]), &[(2, "tool-progress")]),
    ("output before the end", |p| p[2]["rawOutput"] = json!({ "output": "a" }), &[(2, "raw-output")]),
    ("no output at the end", |p| p[3]["rawOutput"] = json!(null), &[(3, "raw-output")]),
    ("a failure without its error", |p| p[3]["status"] = json!("failed"), &[(3, "raw-output")]),
    (
        "a diff without what was before",
        |p| p[3]["content"] = json!([{ "_meta": null, "type": "diff", "path": "a", "oldText": null, "newText": "" }]),
        &[(3, "tool-progress")],
    ),
    (
        "a place without its line",
        |p| p[3]["locations"] = json!([{ "_meta": null, "path": "a" }]),
        &[(3, "tool-progress")],
    ),
    ("no start", |p| drop(p.remove(1)), &[(1, "start-first")]),
    ("two starts", |p| p.insert(2, p[1].clone()), &[(2, "one-start")]),
    ("a call that waits again", |p| p.insert(3, with(&p[2], "status", "pending")), &[(3, "call-order")]),
    ("news of an ended call", |p| p.insert(4, p[2].clone()), &[(4, "call-ended")]),
    ("a call without an end", |p| drop(p.remove(3)), &[(4, "calls-end")]),
    ("a plan's odd status", |p| p[4]["entries"][0]["status"] = json!("cancelled"), &[(4, "plan")]),
    ("a plan's odd priority", |p| p[4]["entries"][0]["priority"] = json!(1), &[(4, "plan")]),
    ("a reason of nobody's", |p| p[5]["stopReason"] = json!("stop"), &[(5, "stop-reason")]),
    ("no reason", |p| without(&mut p[5], "stopReason"), &[(5, "stop-reason")]),
    ("a null where an object is", |p| p[5]["_meta"] = json!(null), &[(5, "prompt-response")]),
    ("two ends", |p| p.push(p[5].clone()), &[(6, "one-end")]),
    (
        "two ends of two kinds",
        |p| put(p, "error", json!({ "message": "", "code": 1, "details": null })),
        &[(6, "one-end")],
    ),
    ("an error without words", |p| swap(p, "error", json!({ "code": null, "details": null })), &[(5, "error")]),
    (
        "an error's code in a list",
        |p| swap(p, "error", json!({ "message": "", "code": ["E1"], "details": {} })),
        &[(5, "error")],
    ),
    (
        "an error's details in words",
        |p| swap(p, "error", json!({ "message": "", "code": 1, "details": "many" })),
        &[(5, "error")],
    ),
    ("text after the end", |p| p.push(p[0].clone()), &[(6, "turn-end")]),
    ("news of a call after the end", |p| p.extend([p[3].clone(), p[5].clone()]), &[(6, "start-first")]),
    ("no end", |p| drop(p.pop()), &[(4, "turn-end")]),
    (
        "an artifact of no type",
        |p| put(p, "artifact_created", json!({ "artifact": artifact("pptx") })),
        &[(5, "artifact")],
    ),
    ("an approval without its id", |p| put(p, "approval_requested", json!({ "session_id": "s" })), &[(5, "today")]),
    ("usage in words", |p| put(p, "context_usage", json!({ "used_tokens": "7", "cost": null })), &[(5, "today")]),
    ("a subagent of nobody", |p| put(p, "subagent_started", json!({ "subagent_session_id": "s" })), &[(5, "today")]),
    ("a compaction without its null", |p| put(p, "compaction", json!({})), &[(5, "today")]),
];

#[test]
fn each_fault_is_found_where_it_is() {
    assert_eq!(judged(Profile::Documented, &good(Profile::Documented)), []);
    assert_eq!(judged(Profile::Current, &good(Profile::Current)), []);
    for profile in [Profile::Documented, Profile::Current] {
        for (name, spoil, expected) in FAULTS {
            let mut packets = good(profile);
            spoil(&mut packets);
            let expected: Vec<_> = expected.iter().map(|(packet, rule)| (LINES(*packet), *rule)).collect();
            assert_eq!(judged(profile, &packets), expected, "{name}, {profile:?}");
        }
    }
}

#[test]
fn routing_is_for_the_client_that_asks_for_it() {
    assert_eq!(judged(Profile::Documented, &good(Profile::Current)), [(4, "meta"), (7, "meta"), (10, "meta")]);
    assert_eq!(judged(Profile::Current, &good(Profile::Documented)), []);
    let mut packets = good(Profile::Current);
    packets[2]["_meta"]["toolName"] = json!(1);
    assert_eq!(judged(Profile::Current, &packets), [(7, "meta")]);
}

/// Where document 002 differs from 000 and from ACP, either is right in the documented profile; today's client has one.
#[test]
fn documents_that_contradict_each_other_are_both_right() {
    const TODAY: &[Fault] = &[
        ("002's stop reason", |p| p[5]["stopReason"] = json!("stop_sequence"), &[(5, "stop-reason")]),
        (
            "002's error with a code",
            |p| {
                swap(p, "error", json!({ "message": "", "code": "E1" }));
                without(&mut p[5], "timestamp");
            },
            &[(5, "timestamp"), (5, "error"), (5, "error")],
        ),
        ("002's error without a code", |p| swap(p, "error", json!({ "message": "" })), &[(5, "error"), (5, "error")]),
    ];
    for (name, spoil, expected) in TODAY {
        let mut packets = good(Profile::Documented);
        spoil(&mut packets);
        let expected: Vec<_> = expected.iter().map(|(packet, rule)| (LINES(*packet), *rule)).collect();
        assert_eq!(judged(Profile::Documented, &packets), [], "{name}");
        assert_eq!(judged(Profile::Current, &packets), expected, "{name}");
    }
    let mut packets = good(Profile::Documented);
    packets[5]["stopReason"] = json!("stop_sequence");
    let packets: Vec<_> = packets.iter().map(Value::to_string).collect();
    let found = findings(Profile::Current, &written(Profile::Current, packets.iter().map(String::as_str)));
    assert!(found[0].to_string().ends_with("[stop-reason, ACP, Stop Reasons; today's client]"), "{}", found[0]);
}

/// An error of document 002 has no time by which a turn that said nothing would be known.
#[test]
fn an_end_after_an_error_without_a_time_is_a_second_one() {
    let mut packets = good(Profile::Documented);
    packets.insert(5, json!({ "type": "error", "message": "down" }));
    assert_eq!(judged(Profile::Documented, &packets), [(LINES(6), "one-end")]);
}

/// Later turns, with a time of their own, that said nothing.
#[test]
fn a_turn_may_say_nothing() {
    let mut packets = good(Profile::Documented);
    let mut end = packets[5].clone();
    end["timestamp"] = json!("2026-02-22T00:00:00.000000+00:00");
    packets.push(end);
    assert_eq!(judged(Profile::Documented, &packets), []);
}

/// What is spoilt, the stream, and which rules are broken in which lines.
type Case<'a> = (&'a str, String, &'a [(u64, &'a str)]);

#[test]
fn framing_is_judged_too() {
    let packets: Vec<_> = good(Profile::Documented).iter().map(Value::to_string).collect();
    let good = String::from_utf8(written(Profile::Documented, packets.iter().map(String::as_str))).unwrap();
    let cases: &[Case<'_>] = &[
        ("CR LF", good.replace('\n', "\r\n"), &[(1, "line-ends")]),
        ("CR", good.replace('\n', "\r"), &[(1, "line-ends")]),
        ("no space", good.replacen("data: ", "data:", 1), &[(2, "framing")]),
        ("two lines", good.replacen("data: {", "data: {\ndata: ", 1), &[(3, "framing")]),
        ("another name", good.replacen("event: message", "event: update", 1), &[(1, "event-name")]),
        ("no JSON", good.replacen("data: {", "data: ", 1), &[(1, "json")]),
        ("cut in its last packet", good[..good.len() - 9].to_owned(), &[(13, "turn-end"), (17, "cut")]),
        ("a comment and an id", format!(": keepalive\n\nid: 4.0\n{good}"), &[]),
        ("no names", good.replace("event: message\n", ""), &[]),
    ];
    for (name, stream, expected) in cases {
        let found = findings(Profile::Documented, stream.as_bytes());
        let found: Vec<_> = found.iter().map(|finding| (finding.line, finding.rule.name)).collect();
        assert_eq!(found, *expected, "{name}");
    }
}
