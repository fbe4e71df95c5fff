//! What holds for the bytes of any run, in every dialect; and what holds on OpenCode's wire alone.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::Value;
use tolka_dialect::{Dialect, Frames, Growing, opencode};
use tolka_facts::event::{
    Finish, InputAppended, OutputAppended, RetryScheduled, StepEnded, StepStarted, Stop, TextAppended, ToolChanged,
    TurnEnded, TurnStarted,
};
use tolka_facts::{CallId, Draft, Event, MessageId, PartId, Tip, ToolStatus, TurnId};

use crate::runs;
use crate::support::{PROFILES, Run, cases, decode};

/// Takes every dialect up anew at every fact, from the kept state, and compares with the telling in one
/// go. That the state after each fact is the same too makes it hold for every pair of cuts, and that it is
/// a fresh encoder's whenever no turn is open makes it hold for a fresh one at every idle moment.
fn taken_up_anywhere(run: &Run) -> Result<(), TestCaseError> {
    for dialect in Dialect::ALL {
        let whole = run.told(dialect);
        let mut straight = dialect.encoder();
        let (mut tip, mut kept_tip) = (Tip::default(), Vec::new());
        let fresh = dialect.encoder().state();
        let mut state = fresh.clone();
        for (fact, expected) in run.facts.iter().zip(&whole) {
            if !kept_tip.is_empty() {
                tip = serde_json::from_slice(&kept_tip).unwrap();
            }
            let mut encoder = dialect.resume(&state).expect("a state of this version");
            let mut frames = Frames::default();
            tip.apply(fact);
            encoder.encode(fact, &tip, &run.blobs, &mut frames);
            let told: Vec<_> = frames.iter().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(&told, expected, "{} at {}", dialect, fact.seq);
            straight.encode(fact, &tip, &run.blobs, &mut Frames::default());
            state = encoder.state();
            prop_assert_eq!(&state, &straight.state(), "{} at {}", dialect, fact.seq);
            if tip.is_idle() {
                prop_assert_eq!(&state, &fresh, "{} holds state while idle at {}", dialect, fact.seq);
            }
            kept_tip = serde_json::to_vec(&tip).unwrap();
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn i4_a_stream_is_taken_up_anywhere(run in runs::run()) {
        taken_up_anywhere(&run)?;
    }

    #[test]
    fn i4_holds_for_facts_in_any_order(run in runs::wild()) {
        taken_up_anywhere(&run)?;
    }

    #[test]
    fn event_ids_ascend(run in runs::run()) {
        for profile in PROFILES {
            let events = run.events(profile);
            let ids: Vec<_> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
            prop_assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
            prop_assert!(ids.iter().all(|id| id.starts_with("evt_") && id.len() == 30));
        }
    }

    #[test]
    fn a_call_is_pending_first_and_silent_after_its_end(run in runs::run()) {
        for profile in PROFILES {
            let mut last = HashMap::<String, String>::new();
            for event in run.events(profile) {
                let part = &event["properties"]["part"];
                if part["type"] != "tool" {
                    continue;
                }
                let status = part["state"]["status"].as_str().unwrap().to_owned();
                let before = last.insert(part["callID"].as_str().unwrap().to_owned(), status.clone());
                match before.as_deref() {
                    None => prop_assert_eq!(status, "pending"),
                    Some(before) => prop_assert!(before == "pending" || before == "running", "{} after {}", status, before),
                }
            }
        }
    }

    #[test]
    fn a_turn_ends_with_one_idle(run in runs::run()) {
        for profile in PROFILES {
            for (fact, frames) in run.facts.iter().zip(run.told(Dialect::OpenCode(profile))) {
                let kinds: Vec<String> = frames.iter().map(|frame| kind(frame)).collect();
                let idles = kinds.iter().filter(|kind| *kind == "session.idle").count();
                let ends = matches!(fact.event, Event::TurnEnded(_));
                prop_assert_eq!(idles, usize::from(ends));
                prop_assert!(!ends || kinds.last().is_some_and(|kind| kind == "session.idle"));
            }
        }
    }

    #[test]
    fn parts_stand_in_a_message_that_was_told(run in runs::run()) {
        for profile in PROFILES {
            let mut messages = Vec::new();
            for event in run.events(profile) {
                let properties = &event["properties"];
                match event["type"].as_str() {
                    Some("message.updated") => messages.push(properties["info"]["id"].clone()),
                    Some("message.part.updated") => prop_assert!(messages.contains(&properties["part"]["messageID"])),
                    Some("message.part.delta") => prop_assert!(messages.contains(&properties["messageID"])),
                    _ => {}
                }
            }
        }
    }
}

fn kind(frame: &[u8]) -> String {
    let event: Value = serde_json::from_slice(frame).unwrap();
    event["type"].as_str().unwrap().to_owned()
}

/// A command of which input and output were streamed, up to `end`.
fn streamed(end: ToolChanged) -> Vec<Value> {
    let (turn, call) = (TurnId::from("trn_1"), CallId::from("call_1"));
    let drafts = [
        Draft::agent(TurnStarted { turn, checkpoint: None }),
        Draft::agent(StepStarted { message: MessageId::from("msg_1"), model: None }),
        Draft::agent(ToolChanged { name: Some("bash".into()), ..runs::change(&call) }),
        Draft::agent(InputAppended { call: call.clone(), text: "x".repeat(5000) }),
        Draft::agent(ToolChanged { status: Some(ToolStatus::Running), ..runs::change(&call) }),
        Draft::agent(OutputAppended { call: call.clone(), text: "first\n".into() }),
        Draft::agent(end),
    ];
    let events = Run::stamped(drafts).events(opencode::Profile::Current);
    events.iter().map(|event| event["properties"]["part"]["state"].clone()).filter(Value::is_object).collect()
}

#[test]
fn live_output_is_shown_at_once_however_long_the_input_was() {
    let states = streamed(runs::change(&CallId::from("call_1")));
    assert_eq!(states.last().unwrap()["metadata"]["output"], "first\n");
}

/// OpenCode's own page draws a command's output from the metadata of its state.
#[test]
fn what_a_command_printed_stays_in_its_metadata() {
    for status in [ToolStatus::Completed, ToolStatus::Failed, ToolStatus::Cancelled] {
        let states = streamed(ToolChanged { status: Some(status), ..runs::change(&CallId::from("call_1")) });
        assert_eq!(states.last().unwrap()["metadata"]["output"], "first\n", "{status:?}");
    }
}

/// 200 KB in pieces of 5 bytes, the way models write.
#[test]
fn a_long_answer_costs_a_multiple_of_its_length() {
    let run = crate::clients::long_answer(200_000 / 5);
    let frames = run.told(Dialect::OpenCode(opencode::Profile::Superset));
    let all: usize = frames.iter().flatten().map(Vec::len).sum();
    let whole: usize =
        frames.iter().flatten().filter(|frame| kind(frame) == "message.part.updated").map(Vec::len).sum();
    // A delta of five bytes is an event of 245: that is most of the rest, and every profile with deltas pays it.
    assert!(whole < 70 * 200_000, "{} times", whole / 200_000);
    assert!(all < 120 * 200_000, "{} times", all / 200_000);
}

/// For a list: the command is told when it starts and when it ends, and one that still prints at the end.
#[test]
fn what_is_held_costs_no_more_than_what_it_comes_to() {
    const PIECES: usize = 4000;
    let (turn, call) = (TurnId::from("trn_1"), CallId::from("call_1"));
    let mut drafts = vec![
        Draft::agent(TurnStarted { turn, checkpoint: None }),
        Draft::agent(StepStarted { message: MessageId::from("msg_1"), model: None }),
        Draft::agent(ToolChanged { status: Some(ToolStatus::Running), ..runs::change(&call) }),
    ];
    drafts.extend((0..PIECES).map(|_| Draft::agent(OutputAppended { call: call.clone(), text: "x".repeat(100) })));
    let run = Run::stamped(drafts);
    let (mut encoder, mut tip) = (Dialect::OpenCode(opencode::Profile::Current).encoder(), Tip::default());
    let mut frames = Frames::default();
    let (last, before) = run.facts.split_last().unwrap();
    encoder.set_growing(Growing::Held);
    for fact in before {
        tip.apply(fact);
        encoder.encode(fact, &tip, &run.blobs, &mut frames);
    }
    let bytes: usize = frames.iter().map(<[u8]>::len).sum();
    assert!(bytes < 4096, "{bytes}");
    frames.clear();
    encoder.set_growing(Growing::Told);
    tip.apply(last);
    encoder.encode(last, &tip, &run.blobs, &mut frames);
    let told: Value = serde_json::from_slice(frames.iter().last().unwrap()).unwrap();
    let stream = run.events(opencode::Profile::Current);
    assert_eq!(told["properties"]["part"], stream.last().unwrap()["properties"]["part"]);
}

/// Clients draw the error of a message; how it finished they do not.
#[test]
fn a_message_that_was_cut_off_shows_why_and_the_next_one_does_not() {
    let step = |message: &str| Draft::agent(StepStarted { message: MessageId::from(message), model: None });
    let ended = |message: &str, finish| {
        Draft::agent(StepEnded { message: MessageId::from(message), finish, usage: None, cost: None, kept: None })
    };
    let (turn, part) = (TurnId::from("trn_1"), PartId::from("prt_1"));
    let run = Run::stamped([
        Draft::agent(TurnStarted { turn: turn.clone(), checkpoint: None }),
        step("msg_1"),
        Draft::agent(TextAppended { part, text: "I wi".into() }),
        ended("msg_1", Finish::Error),
        Draft::agent(RetryScheduled { attempt: 1, delay_ms: 1, message: "cut off".into(), code: Some(502) }),
        step("msg_2"),
        ended("msg_2", Finish::Stop),
        Draft::agent(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None }),
    ]);
    for profile in PROFILES {
        let mut last = HashMap::<String, Value>::new();
        for event in run.events(profile) {
            let info = &event["properties"]["info"];
            if event["type"] == "message.updated" {
                last.insert(info["id"].as_str().unwrap().to_owned(), info.clone());
            }
        }
        let error = serde_json::json!({ "name": "APIError",
            "data": { "message": "cut off", "isRetryable": true, "statusCode": 502 } });
        assert_eq!((&last["msg_1"]["finish"], &last["msg_1"]["error"]), (&"error".into(), &error));
        assert_eq!((&last["msg_2"]["finish"], &last["msg_2"]["error"]), (&"stop".into(), &Value::Null));
    }
    let heard = decode(&run.stream(opencode::Profile::Current));
    assert!(!heard.iter().any(|draft| matches!(draft.event, Event::Failed(_))), "the turn did not fail");
}

/// It knew a repetition by another print; told by it, a part would be told again.
#[test]
fn a_state_that_an_older_version_kept_in_a_call_is_refused() {
    let mark = r#"{"at":0,"next":0,"least":1024,"fraction":8}"#;
    let call = |print: &str| format!(r#"{{"id":"call_1","{print}":7,"input":{mark},"output":{mark}}}"#);
    let resumed = |print: &str| {
        let state = format!(r#"{{"step":null,"text":null,"calls":[{}]}}"#, call(print));
        Dialect::OpenCode(PROFILES[0]).resume(state.as_bytes()).is_some()
    };
    assert!(resumed("seen") && !resumed("print"));
}
