//! Streams of other servers: sloppy ones are read as far as they say anything.

use serde_json::{Value, json};
use tolka_dialect::onyx_steps::Decoder;
use tolka_dialect::{DecodeError, Decoder as _, Heard};
use tolka_facts::event::{Finish, Stop};
use tolka_facts::{Cause, Event, Time};

use crate::{decode, stream};

fn events(packets: &[Value]) -> Vec<Event> {
    let frames: Vec<_> = packets.iter().map(Value::to_string).collect();
    decode(&stream(&frames)).into_iter().map(|draft| draft.event).collect()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::name).collect()
}

#[test]
fn times_are_the_packets_and_the_packet_stands_beside_its_fact() {
    let packet = json!({"type": "mode_update", "mode": "x", "new": [1.0], "timestamp": "2025-01-20T13:00:00.5+01:00"});
    let mut heard = Vec::new();
    Decoder::default().feed(format!("{packet}\n").as_bytes(), &mut heard).unwrap();
    let [Heard { session: None, time: Some(time), draft }] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!(*time, Time::from_micros(crate::START + 500_000));
    assert_eq!((draft.cause, draft.raw.as_ref().unwrap().value()), (Cause::Agent, packet));
}

#[test]
fn what_nobody_knows_is_kept() {
    let events = events(&[json!({"type": "thread_forked", "a": 1}), json!({"type": "artifact_created"}), json!([1])]);
    let what: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Foreign(e) => (e.origin.as_str(), e.what.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(what, [("onyx-steps", "thread_forked"), ("onyx-steps", "artifact_created"), ("onyx-steps", "")]);
}

#[test]
fn an_event_that_cannot_be_read_is_told_and_those_after_it_are_read() {
    let bytes =
        b"event: message\ndata: {\"type\":\n\nevent: message\ndata: {\"type\":\"mode_update\",\"mode\":\"x\"}\n\n";
    let mut heard = Vec::new();
    let Err(DecodeError { line, .. }) = Decoder::default().feed(bytes, &mut heard) else { panic!() };
    assert_eq!((line, heard.len()), (1, 1));
}

#[test]
fn segments_without_starts_and_ends_are_runs() {
    let delta = |text: &str| json!({"type": "output_delta", "content": text});
    let thought = |step: &str| json!({"type": "step_delta", "step_id": step, "content": "hm"});
    let parts: Vec<_> = events(&[delta("a"), delta("b"), thought("t"), delta("c"), thought("t")])
        .into_iter()
        .filter_map(|event| match event {
            Event::TextAppended(e) => Some(e.part),
            Event::ThoughtAppended(e) => Some(e.part),
            _ => None,
        })
        .collect();
    assert_eq!(parts[0], parts[1]);
    assert_ne!(parts[1], parts[3]);
    assert_eq!((parts[2].as_str(), parts[4].as_str()), ("t", "t"));
}

#[test]
fn a_plan_in_lines_alone_is_a_plan() {
    let events = events(&[json!({"type": "plan", "plan": "1. Read the file\n\n2. Make changes\nRun tests"})]);
    let [Event::PlanSet(plan)] = events.as_slice() else { panic!() };
    let lines: Vec<_> = plan.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(lines, ["Read the file", "Make changes", "Run tests"]);
}

#[test]
fn an_error_ends_the_turn_that_is_open() {
    let error = json!({"type": "error", "message": "down", "code": 7});
    let delta = json!({"type": "output_delta", "content": "a"});
    let told = events(&[error.clone(), delta, error]);
    assert_eq!(names(&told), ["failed", "turn_started", "text_appended", "failed", "turn_ended"]);
    let Event::TurnEnded(end) = &told[4] else { panic!() };
    assert_eq!(end.stop, Stop::Failed);
}

#[test]
fn a_step_in_which_a_tool_was_called_ended_for_it() {
    let step = |kind: &str| json!({"type": kind, "step_id": "s", "step_name": "Planning", "status": "completed"});
    let tool = json!({"type": "tool_start", "tool_call_id": "c", "tool_name": "Bash", "tool_input": {}, "title": "x"});
    let finishes: Vec<_> = events(&[step("step_start"), tool, step("step_end"), step("step_start"), step("step_end")])
        .into_iter()
        .filter_map(|event| match event {
            Event::StepEnded(e) => Some(e.finish),
            _ => None,
        })
        .collect();
    assert_eq!(finishes, [Finish::ToolCalls, Finish::Stop]);
}

#[test]
fn an_answer_chooses_among_what_was_asked() {
    let ask = json!({"type": "permission_request", "request_id": "r", "operation": "bash", "description": "Run?",
        "options": [{"optionId": "never", "name": "Never", "kind": "reject_always"},
            {"optionId": "always", "name": "Always", "kind": "allow_always"}]});
    let answer = |fields: Value| {
        let mut packet = json!({"type": "permission_response", "request_id": "r"});
        fields.as_object().unwrap().iter().for_each(|(key, value)| packet[key] = value.clone());
        let told = events(&[ask.clone(), packet]);
        let Some(Event::PermissionAnswered(answer)) = told.last() else { panic!("{told:?}") };
        answer.option.clone()
    };
    assert_eq!(answer(json!({"approved": true})).as_deref(), Some("always"));
    assert_eq!(answer(json!({"approved": false})).as_deref(), Some("never"));
    assert_eq!(answer(json!({"approved": true, "option_id": "other"})).as_deref(), Some("other"));
    assert_eq!(answer(json!({"approved": false, "option_id": null})), None);
}
