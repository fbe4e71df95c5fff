//! What holds for every journal.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;
use tolka_dialect::onyx::{Decoder, Encoder, Profile};
use tolka_dialect::{Decoder as _, Encoder as _};
use tolka_facts::{Event, Fact, Tip, ToolStatus};

use crate::generate::journal;
use crate::{decode, encode, frames, stream};

const PROFILES: [Profile; 2] = [Profile::Documented, Profile::Current];

proptest! {
    #[test]
    fn a_stream_may_be_cut_anywhere(facts in journal()) {
        for profile in PROFILES {
            let whole = frames(profile, &facts);
            let (mut encoder, mut tip, mut told) = (Encoder::new(profile), Tip::default(), Vec::new());
            for cut in 0..=facts.len() {
                let mut resumed = Encoder::resume(profile, &encoder.state()).unwrap();
                let rest = encode(&mut resumed, &mut tip.clone(), &facts[cut..]);
                prop_assert_eq!(&[told.clone(), rest].concat(), &whole, "cut at {}", cut);
                if tip.is_idle() {
                    prop_assert_eq!(encoder.state(), Encoder::new(profile).state());
                }
                told.extend(encode(&mut encoder, &mut tip, facts.get(cut..=cut).unwrap_or_default()));
            }
        }
    }

    #[test]
    fn the_order_of_the_documents_state_machine_holds(facts in journal()) {
        let (mut encoder, mut tip) = (Encoder::new(Profile::Documented), Tip::default());
        let (mut open, mut ended, mut endings) = (BTreeSet::new(), BTreeSet::new(), 0);
        for fact in &facts {
            if matches!(fact.event, Event::TurnStarted(_)) {
                (open, ended, endings) = (BTreeSet::new(), BTreeSet::new(), 0);
            }
            let in_turn = !tip.is_idle();
            for frame in encode(&mut encoder, &mut tip, std::slice::from_ref(fact)) {
                prop_assert!(!frame.contains(['\n', '\r']));
                let packet: Value = serde_json::from_str(&frame).unwrap();
                prop_assert!(packet["timestamp"].is_string());
                let call = packet["toolCallId"].as_str().unwrap_or_default().to_owned();
                match packet["type"].as_str().unwrap() {
                    "tool_call_start" => {
                        prop_assert_eq!(&packet["status"], "pending");
                        prop_assert!(open.insert(call.clone()) && !ended.contains(&call), "a second start");
                    }
                    "tool_call_progress" => {
                        prop_assert!(open.contains(&call), "progress before start or after the end");
                        let status = packet["status"].as_str().unwrap();
                        prop_assert!(packet["rawInput"].is_object());
                        prop_assert!(packet["rawOutput"].is_object() || packet["rawOutput"].is_null());
                        if status == "completed" || status == "failed" {
                            open.remove(&call);
                            ended.insert(call);
                        }
                        if status == "failed" {
                            prop_assert!(packet["rawOutput"]["error"].is_string());
                        }
                    }
                    "prompt_response" | "error" if in_turn => {
                        endings += 1;
                        prop_assert!(open.is_empty(), "a tool has no end");
                    }
                    _ => {}
                }
            }
            if matches!(fact.event, Event::TurnEnded(_)) {
                prop_assert_eq!(endings, 1);
            } else {
                prop_assert_eq!(endings * u8::from(!tip.is_idle()), 0, "the turn goes on after its end");
            }
        }
    }

    #[test]
    fn reading_back_keeps_texts_and_ends_of_tools(facts in journal()) {
        for profile in PROFILES {
            let drafts = decode(&stream(&frames(profile, &facts)));
            let mut session = crate::Session::default();
            for draft in drafts {
                session.draft(draft);
            }
            prop_assert_eq!(gist(&session.facts), gist(&facts));
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Decoder::default().feed(&bytes, &mut Vec::new());
    }

    /// Damage that is still mostly a stream reaches further in than noise does.
    #[test]
    fn damaged_streams_are_survived(facts in journal(), damage in prop::collection::vec((any::<u16>(), any::<u8>()), 1..20)) {
        let mut bytes = stream(&frames(Profile::Current, &facts)).into_bytes();
        prop_assume!(!bytes.is_empty());
        let length = bytes.len();
        for (at, byte) in damage {
            bytes[usize::from(at) % length] = byte;
        }
        let (mut decoder, mut drafts) = (Decoder::default(), Vec::new());
        for piece in bytes.chunks(97) {
            let _ = decoder.feed(piece, &mut drafts);
        }
        let _ = decoder.finish(&mut drafts);
    }

    #[test]
    fn packets_of_odd_shapes_are_survived(packet in odd_packet()) {
        let data = format!("data: {packet}\n\n");
        let mut heard = Vec::new();
        Decoder::default().feed(data.as_bytes(), &mut heard).unwrap();
        prop_assert!(heard.iter().any(|heard| heard.draft.raw.as_ref().is_some_and(|raw| raw.value() == packet)));
    }
}

/// The right keys with values of any shape.
fn odd_packet() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["text", "diff", "content", "edit", "failed", "", "a/b"]).prop_map(Value::from),
    ];
    let keys =
        vec!["type", "content", "text", "path", "toolCallId", "status", "error", "rawOutput", "_meta", "optionId"];
    let nested = move |inner: BoxedStrategy<Value>| {
        let object = prop::collection::vec((prop::sample::select(keys.clone()), inner.clone()), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    };
    let value = leaf.prop_recursive(3, 16, 4, nested);
    let types = vec![
        "agent_message_chunk",
        "tool_call_start",
        "tool_call_progress",
        "agent_plan_update",
        "current_mode_update",
        "prompt_response",
        "error",
        "artifact_created",
        "approval_requested",
        "context_usage",
        "compaction",
        "something_new",
    ];
    let names = vec![
        "content",
        "entries",
        "rawInput",
        "rawOutput",
        "raw_output",
        "locations",
        "status",
        "kind",
        "title",
        "code",
        "details",
        "artifact",
        "options",
        "toolCall",
        "cost",
        "used_tokens",
        "summary",
        "_meta",
        "stopReason",
        "message",
    ];
    let fields = prop::collection::vec((prop::sample::select(names), value), 0..6);
    (prop::sample::select(types), fields).prop_map(|(kind, fields)| {
        let mut packet = serde_json::json!({ "type": kind });
        for (name, value) in fields {
            packet[name] = value;
        }
        packet
    })
}

/// Per journal: the words of each voice, and each tool's end in order.
fn gist(facts: &[Fact]) -> (String, String, Vec<(String, String)>) {
    let (mut said, mut thought, mut ends, mut tip) = (String::new(), String::new(), Vec::new(), Tip::default());
    let name = |status| if status == ToolStatus::Completed { "completed" } else { "failed" }.to_owned();
    for fact in facts {
        tip.apply(fact);
        match &fact.event {
            Event::TextAppended(e) => said.push_str(&e.text),
            Event::ThoughtAppended(e) => thought.push_str(&e.text),
            Event::ToolChanged(e) => {
                let tool = tip.tool(&e.call).filter(|tool| !tool.is_open());
                ends.extend(tool.map(|tool| (e.call.to_string(), name(tool.status))));
            }
            Event::TurnEnded(_) => {
                let open = tip.ended_turn.iter().flat_map(|turn| turn.open_tools());
                ends.extend(open.map(|tool| (tool.call.to_string(), name(ToolStatus::Failed))));
            }
            _ => {}
        }
    }
    (said, thought, ends)
}
