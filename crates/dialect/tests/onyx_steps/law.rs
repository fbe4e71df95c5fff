//! The judge finds planted faults, each once and at its line.

use serde_json::{Value, json};
use tolka_dialect::Dialect;

use crate::{judge, stream};

/// A whole turn in which every packet of the document stands, a packet per item; a packet takes three lines.
fn whole() -> Vec<String> {
    let packets = [
        json!({"type": "step_start", "step_id": "s", "step_name": "Step 1"}),
        json!({"type": "step_delta", "step_id": "s", "content": "Hm"}),
        json!({"type": "output_start"}),
        json!({"type": "output_delta", "content": "Hello"}),
        json!({"type": "output_end"}),
        json!({"type": "plan", "plan": "1. Look", "entries": [
            {"id": "1", "description": "Look", "status": "pending", "priority": 1}]}),
        json!({"type": "mode_update", "mode": "implement", "description": "Starting"}),
        json!({"type": "tool_start", "tool_call_id": "c", "tool_name": "Bash", "tool_input": {}, "title": "Run"}),
        json!({"type": "permission_request", "request_id": "p", "operation": "bash", "description": "Run?",
            "auto_approve": false}),
        json!({"type": "permission_response", "request_id": "p", "approved": true, "reason": "User approved"}),
        json!({"type": "tool_progress", "tool_call_id": "c", "tool_name": "Bash", "status": "in_progress",
            "progress": 0.5, "message": "Running"}),
        json!({"type": "file_write", "path": "a", "size_bytes": 1, "operation": "create"}),
        json!({"type": "tool_end", "tool_call_id": "c", "tool_name": "Bash", "status": "success", "result": "ok",
            "content": [{"type": "text", "text": "ok"}]}),
        json!({"type": "artifact_created", "artifact": {"id": "a", "type": "web_app", "name": "A", "path": "a/",
            "preview_url": null, "download_url": "/a", "mime_type": "text/html", "size_bytes": 1}}),
        json!({"type": "step_end", "step_id": "s", "status": "completed"}),
        json!({"type": "done", "summary": "Done", "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 2}}),
    ];
    packets
        .into_iter()
        .map(|mut packet| {
            packet["timestamp"] = json!("2025-01-20T12:00:00.000Z");
            packet.to_string()
        })
        .collect()
}

const STEP_START: usize = 0;
const STEP_DELTA: usize = 1;
const OUTPUT_START: usize = 2;
const OUTPUT_DELTA: usize = 3;
const OUTPUT_END: usize = 4;
const PLAN: usize = 5;
const TOOL_START: usize = 7;
const ASK: usize = 8;
const ANSWER: usize = 9;
const TOOL_PROGRESS: usize = 10;
const FILE_WRITE: usize = 11;
const TOOL_END: usize = 12;
const ARTIFACT: usize = 13;
const STEP_END: usize = 14;
const DONE: usize = 15;

fn error() -> String {
    json!({"type": "error", "message": "down", "code": -1, "timestamp": "2025-01-20T12:00:00.000Z"}).to_string()
}

/// What is wrong with the stream: each finding's line and rule.
fn faults(bytes: &[u8]) -> Vec<(u64, &'static str)> {
    judge(bytes).iter().map(|finding| (finding.line, finding.rule.name)).collect()
}

fn line(packet: usize) -> u64 {
    packet as u64 * 3 + 1
}

#[test]
fn a_whole_turn_is_clean_and_so_are_two_and_a_failed_one() {
    assert_eq!(faults(&stream(&whole())), []);
    assert_eq!(faults(&stream(&[whole(), whole()].concat())), []);
    let mut failed = whole();
    failed[DONE] = error();
    assert_eq!(faults(&stream(&failed)), []);
    let later = error().replace("12:00:00.000", "12:00:00.001");
    assert_eq!(faults(&stream(&[failed, vec![later], whole()].concat())), [], "a turn may say nothing and fail");
    let mut resumed = whole();
    resumed.splice(DONE..DONE, [resumed[STEP_START].clone(), resumed[STEP_DELTA].clone(), resumed[STEP_END].clone()]);
    assert_eq!(faults(&stream(&resumed)), [], "a step may be taken up again");
    assert_eq!(faults(b""), []);
    let bare: String = whole().iter().map(|packet| format!("data: {packet}\r\n\r\n")).collect();
    assert_eq!(faults(bare.as_bytes()), [], "neither a name nor LF is demanded");
    let mut numbered = Vec::new();
    for (at, packet) in whole().iter().enumerate() {
        numbered.extend(format!("id: {at}.0\nevent: message\ndata: {packet}\n\n").into_bytes());
    }
    assert_eq!(faults(&numbered), [], "our own door numbers its events");
}

#[test]
fn every_packet_is_counted() {
    let mut judge = Dialect::OnyxSteps.judge();
    judge.feed(&stream(&[whole(), vec![error()]].concat()), &mut Vec::new());
    assert_eq!(judge.tally().len(), 17);
}

/// A field of a packet set to another value, or taken out where that is null.
fn spoil(packets: &mut [String], at: usize, field: &str, value: Value) {
    let mut packet: Value = serde_json::from_str(&packets[at]).unwrap();
    match value {
        Value::Null => drop(packet.as_object_mut().unwrap().remove(field)),
        value => packet[field] = value,
    }
    packets[at] = packet.to_string();
}

#[test]
fn packets_of_a_wrong_shape_are_found() {
    let table: &[(usize, &str, Value, &str)] = &[
        (STEP_START, "step_name", Value::Null, "step-start"),
        (STEP_DELTA, "content", json!({"type": "text", "text": "x"}), "step-delta"),
        (STEP_END, "status", json!(1), "step-end"),
        (TOOL_START, "tool_input", json!("ls"), "tool-start"),
        (TOOL_PROGRESS, "progress", json!("50%"), "tool-progress"),
        (TOOL_PROGRESS, "progress", json!(1.5), "tool-progress"),
        (TOOL_PROGRESS, "progress", json!(-0.1), "tool-progress"),
        (TOOL_END, "status", json!(true), "tool-end"),
        (TOOL_END, "content", json!([{"type": "image", "data": "x"}]), "content-block"),
        (TOOL_END, "content", json!([{"type": "resource", "resource": {}}]), "content-block"),
        (OUTPUT_START, "timestamp", Value::Null, "timestamp"),
        (OUTPUT_DELTA, "content", json!(7), "output-delta"),
        (OUTPUT_END, "timestamp", json!("yesterday"), "timestamp"),
        (PLAN, "entries", json!([{"id": "1", "description": "x", "status": "pending", "priority": "high"}]), "plan"),
        (6, "mode", Value::Null, "mode-update"),
        (ASK, "auto_approve", json!("no"), "permission-request"),
        (ANSWER, "approved", Value::Null, "permission-response"),
        (FILE_WRITE, "operation", json!(["append"]), "file-write"),
        (FILE_WRITE, "size_bytes", json!(-1), "file-write"),
        (
            ARTIFACT,
            "artifact",
            json!({"id": "a", "type": "file", "name": "A", "path": "a", "preview_url": null,
            "download_url": "/a", "mime_type": "text/plain", "size_bytes": 1}),
            "artifact-created",
        ),
        (DONE, "stop_reason", json!("stop_sequence"), "done"),
        (DONE, "usage", json!({"input_tokens": 1}), "done"),
        (DONE, "usage", json!({"input_tokens": -1, "output_tokens": 1}), "done"),
        (DONE, "usage", json!({"input_tokens": 1, "output_tokens": 1.5}), "done"),
    ];
    for (at, field, value, rule) in table {
        let mut packets = whole();
        spoil(&mut packets, *at, field, value.clone());
        assert_eq!(faults(&stream(&packets)), [(line(*at), *rule)], "{field} of packet {at}");
    }
    let mut packets = whole();
    packets.insert(
        1,
        json!({"type": "error", "message": "x", "code": "E1", "timestamp": "2025-01-20T12:00:00Z"}).to_string(),
    );
    packets.truncate(2);
    assert_eq!(faults(&stream(&packets)), [(4, "error"), (4, "unended")]);
}

/// The document lists the words of stop reasons and artifact types alone, and shows nowhere what is never null.
#[test]
fn what_the_document_leaves_open_is_not_judged() {
    let table: &[(usize, &str, Value)] = &[
        (STEP_END, "status", json!("finished")),
        (TOOL_START, "title", Value::Null),
        (TOOL_PROGRESS, "status", json!("running")),
        (TOOL_PROGRESS, "progress", Value::Null),
        (TOOL_PROGRESS, "progress", json!(1)),
        (TOOL_END, "status", json!("failed")),
        (TOOL_END, "result", Value::Null),
        (PLAN, "entries", json!([{"id": "1", "description": "x", "status": "blocked", "priority": null}])),
        (FILE_WRITE, "operation", json!("append")),
        (FILE_WRITE, "size_bytes", Value::Null),
        (ASK, "description", Value::Null),
        (DONE, "summary", Value::Null),
        (DONE, "usage", Value::Null),
    ];
    for (at, field, value) in table {
        let mut packets = whole();
        let mut packet: Value = serde_json::from_str(&packets[*at]).unwrap();
        packet[field] = value.clone();
        packets[*at] = packet.to_string();
        assert_eq!(faults(&stream(&packets)), [], "{field} of packet {at}");
    }
}

#[test]
fn packets_in_a_wrong_order_are_found() {
    type Spoil = fn(&mut Vec<String>);
    let last = line(DONE);
    let table: &[(&str, Spoil, u64, &str)] = &[
        ("a delta before its step", |p| p.swap(STEP_START, STEP_DELTA), line(0), "step-order"),
        ("a step started twice", |p| p.insert(1, p[STEP_START].clone()), line(1), "step-order"),
        ("a step ended twice", |p| p.insert(DONE, p[STEP_END].clone()), line(DONE), "step-order"),
        ("a step left open", |p| drop(p.remove(STEP_END)), line(DONE - 1), "unended"),
        ("a delta before its output", |p| p.swap(OUTPUT_START, OUTPUT_DELTA), line(2), "output-order"),
        ("a delta after its output", |p| p.insert(5, p[OUTPUT_DELTA].clone()), line(5), "output-order"),
        ("output in output", |p| p.insert(3, p[OUTPUT_START].clone()), line(3), "output-order"),
        ("output ended twice", |p| p.insert(5, p[OUTPUT_END].clone()), line(5), "output-order"),
        ("output left open", |p| drop(p.remove(OUTPUT_END)), line(DONE - 1), "unended"),
        ("a tool started twice", |p| p.insert(8, p[TOOL_START].clone()), line(8), "tool-order"),
        ("progress before its tool", |p| drop(p.remove(TOOL_START)), line(TOOL_PROGRESS - 1), "tool-order"),
        ("progress after its end", |p| p.swap(TOOL_PROGRESS, TOOL_END), line(TOOL_END), "tool-order"),
        ("a tool ended twice", |p| p.insert(13, p[TOOL_END].clone()), line(13), "tool-order"),
        ("a tool started after its end", |p| p.insert(13, p[TOOL_START].clone()), line(13), "tool-order"),
        (
            "progress of another tool",
            |p| spoil(p, TOOL_PROGRESS, "tool_name", json!("Read")),
            line(TOOL_PROGRESS),
            "tool-name",
        ),
        ("the end of another tool", |p| spoil(p, TOOL_END, "tool_name", json!("Read")), line(TOOL_END), "tool-name"),
        ("a tool left open", |p| drop(p.remove(TOOL_END)), line(DONE - 1), "unended"),
        ("an answer to nothing", |p| drop(p.remove(ASK)), line(ANSWER - 1), "permission-order"),
        ("a second answer", |p| p.insert(10, p[ANSWER].clone()), line(10), "permission-order"),
        ("no answer", |p| drop(p.remove(ANSWER)), line(DONE - 1), "unended"),
        ("words after the end", |p| p.push(p[OUTPUT_DELTA].clone()), line(16), "after-end"),
        ("a tool that ends after the end", |p| p.push(p[TOOL_END].clone()), line(16), "after-end"),
        ("done twice", |p| p.push(p[DONE].clone()), line(16), "one-end"),
        ("done after an error", |p| p.insert(DONE, error()), line(16), "one-end"),
        ("an error after done", |p| p.push(error()), line(16), "one-end"),
        ("a turn without an end", |p| drop(p.pop()), last - 3, "truncated"),
        ("a stream that stops in a tool", |p| p.truncate(TOOL_PROGRESS), line(ANSWER), "truncated"),
        ("a type that nobody knows", |p| p.insert(1, r#"{"type":"chat"}"#.into()), line(1), "type"),
        ("a packet without a type", |p| spoil(p, PLAN, "type", Value::Null), line(PLAN), "type"),
    ];
    for (what, spoil, line, rule) in table {
        let mut packets = whole();
        spoil(&mut packets);
        assert_eq!(faults(&stream(&packets)), [(*line, *rule)], "{what}");
    }
}

#[test]
fn lines_that_a_reader_stumbles_over_are_found() {
    let clean = String::from_utf8(stream(&whole())).unwrap();
    let spoilt = |from: &str, to: &str| faults(clean.replacen(from, to, 1).as_bytes());
    assert_eq!(spoilt("event: message\n", "event: step_start\n"), [(1, "event")]);
    assert_eq!(spoilt("\n\nevent: message\n", "\n\n"), [(4, "event")], "some have a name and one has none");
    assert_eq!(spoilt("{\"type\":\"step_delta\"", "{\"type\":step_delta\""), [(4, "json")]);
    assert_eq!(spoilt("data: {\"type\":\"plan\",", "data: {\"type\":\"plan\",\ndata: "), [(18, "data")]);
    let naked: String = whole().iter().map(|packet| format!("{packet}\n")).collect();
    assert_eq!(faults(naked.as_bytes()), (1..=16).map(|line| (line, "data")).collect::<Vec<_>>());
    let list = clean.replacen("event: message\n", "event: message\ndata: []\n\nevent: message\n", 1);
    assert_eq!(faults(list.as_bytes()), [(1, "json")]);
    let cut = clean.trim_end();
    let found = faults(cut.as_bytes());
    assert_eq!(found, [(43, "truncated"), (47, "cut")]);
}

#[test]
fn a_finding_says_where_the_rule_stands() {
    let mut packets = whole();
    spoil(&mut packets, DONE, "stop_reason", json!("stop"));
    let found = judge(&stream(&packets));
    assert_eq!(
        found[0].to_string(),
        "line 46: `stop_reason` is \"stop\", not one of end_turn, max_tokens, max_turn_requests, refusal, cancelled \
         [done, 001, 6. Completion Packets, `done`]"
    );
}

/// What real agents did, as this dialect tells it.
#[test]
fn the_golden_streams_are_clean() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");
    let is_ours = |path: &std::path::PathBuf| path.to_string_lossy().ends_with(".onyx-steps.jsonl");
    let paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_ours).collect();
    assert!(paths.len() > 10, "{} streams", paths.len());
    for path in paths {
        let lines = std::fs::read_to_string(&path).unwrap();
        let frames: Vec<_> = lines.lines().map(str::to_owned).collect();
        assert_eq!(faults(&stream(&frames)), [], "{}", path.display());
    }
}
