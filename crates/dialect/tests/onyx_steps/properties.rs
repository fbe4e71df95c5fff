//! What holds for every journal.

use proptest::prelude::*;
use serde_json::Value;
use tolka_dialect::onyx_steps::{Decoder, Encoder};
use tolka_dialect::{Decoder as _, Dialect, Encoder as _, Frames, Retelling};
use tolka_facts::event::{
    ArtifactKind, Finish, ModeSet, PlanEntry, PlanStatus, SessionChanged, StepEnded, StepStarted, Stop, Usage,
};
use tolka_facts::{Ask, Event, MessageId, Time, Tip, ToolStatus};

use crate::generate::{ended, journal};
use crate::{Session, decode, encode, judge, stream};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_stream_may_be_cut_anywhere(session in journal()) {
        let (whole, facts) = (session.frames(), &session.facts);
        let (mut encoder, mut tip, mut told) = (Encoder::default(), Tip::default(), Vec::new());
        for cut in 0..=facts.len() {
            let mut resumed = Encoder::resume(&encoder.state()).unwrap();
            let rest = encode(&mut resumed, &mut tip.clone(), &facts[cut..], &session.blobs);
            prop_assert_eq!(&[told.clone(), rest].concat(), &whole, "cut at {}", cut);
            if tip.is_idle() {
                prop_assert_eq!(encoder.state(), Encoder::default().state());
            }
            told.extend(encode(&mut encoder, &mut tip, facts.get(cut..=cut).unwrap_or_default(), &session.blobs));
        }
    }

    #[test]
    fn a_turn_ends_once_and_last(session in journal()) {
        let (mut encoder, mut tip, mut endings) = (Encoder::default(), Tip::default(), 0);
        for fact in &session.facts {
            let was_idle = tip.is_idle();
            let frames = encode(&mut encoder, &mut tip, std::slice::from_ref(fact), &session.blobs);
            let is_end = |frame: &String| frame.starts_with(r#"{"type":"done""#) || frame.starts_with(r#"{"type":"error""#);
            match (&fact.event, was_idle) {
                (Event::TurnStarted(_), _) => endings = 0,
                (Event::TurnEnded(_), false) => {
                    prop_assert_eq!(endings + frames.iter().filter(|frame| is_end(frame)).count(), 1);
                    prop_assert!(is_end(frames.last().unwrap()));
                }
                (_, false) => endings += frames.iter().filter(|frame| is_end(frame)).count(),
                (_, true) => {}
            }
        }
    }

    #[test]
    fn our_own_streams_break_no_rule(session in ended()) {
        let mut found = judge(&stream(&session.frames()));
        // An agent that gives its call another name is told as it is; that the judge finds it is right.
        found.retain(|finding| finding.rule.name != "tool-name");
        prop_assert!(found.is_empty(), "{}", found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    /// But for the size of a file: a fact names it only beside the content, which this wire does not carry, and a
    /// reference to content that nobody has must not stand in a journal.
    #[test]
    fn to_read_and_tell_again_is_the_identity(session in journal()) {
        let told = session.frames();
        let mut retelling = Retelling::new(Dialect::OnyxSteps, Dialect::OnyxSteps, Time::from_micros(crate::START));
        let mut out = Frames::default();
        for piece in stream(&told).chunks(61) {
            retelling.feed(piece, &mut out).unwrap();
        }
        retelling.finish(&mut out).unwrap();
        let again: Vec<_> = out.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
        let expected: Vec<_> = told.iter().map(|frame| without_file_size(frame)).collect();
        prop_assert_eq!(again, expected);
        prop_assert!(retelling.lost().keys().all(|event| *event == "turn_started"), "{:?}", retelling.lost());
    }

    #[test]
    fn reading_back_keeps_what_is_carried(session in journal()) {
        let mut read = Session::created();
        decode(&stream(&session.frames())).into_iter().for_each(|draft| {
            read.draft(draft);
        });
        prop_assert_eq!(gist(&read), gist(&session));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Decoder::default().feed(&bytes, &mut Vec::new());
        judge(&bytes);
    }

    /// Damage that is still mostly a stream reaches further in than noise does.
    #[test]
    fn damaged_streams_are_survived(
        session in journal(),
        damage in prop::collection::vec((any::<u16>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = stream(&session.frames());
        prop_assume!(!bytes.is_empty());
        let length = bytes.len();
        for (at, byte) in damage {
            bytes[usize::from(at) % length] = byte;
        }
        let (mut decoder, mut heard) = (Decoder::default(), Vec::new());
        for piece in bytes.chunks(97) {
            let _ = decoder.feed(piece, &mut heard);
        }
        let _ = decoder.finish(&mut heard);
        let mut read = Session::created();
        heard.into_iter().for_each(|heard| {
            read.draft(heard.draft);
        });
        read.frames();
        judge(&bytes);
    }

    /// Nothing is lost but marks: a packet of any shape stands whole beside what was read of it.
    #[test]
    fn packets_of_odd_shapes_are_kept(packet in odd_packet()) {
        let data = format!("event: message\ndata: {packet}\n\n");
        let mut heard = Vec::new();
        Decoder::default().feed(data.as_bytes(), &mut heard).unwrap();
        judge(data.as_bytes());
        let is_kept = heard.iter().any(|heard| heard.draft.raw.as_ref().is_some_and(|raw| raw.value() == packet));
        let is_mark = matches!(packet["type"].as_str(), Some("output_start" | "output_end" | "step_start" | "step_end"));
        prop_assert!(is_kept || is_mark);
    }
}

fn without_file_size(frame: &str) -> String {
    if !frame.starts_with(r#"{"type":"file_write""#) {
        return frame.to_owned();
    }
    let mut packet: Value = serde_json::from_str(frame).unwrap();
    packet["size_bytes"] = Value::Null;
    packet.to_string()
}

/// The right keys with values of any shape.
fn odd_packet() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["text", "success", "Thinking", "create", "", "a/b"]).prop_map(Value::from),
    ];
    let keys = vec!["type", "id", "text", "uri", "path", "status", "optionId", "input_tokens", "description", "kind"];
    let nested = move |inner: BoxedStrategy<Value>| {
        let object = prop::collection::vec((prop::sample::select(keys.clone()), inner.clone()), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    };
    let value = leaf.prop_recursive(3, 16, 4, nested);
    let types = vec![
        "step_start",
        "step_delta",
        "step_end",
        "tool_start",
        "tool_progress",
        "tool_end",
        "output_start",
        "output_delta",
        "output_end",
        "plan",
        "mode_update",
        "done",
        "error",
        "file_write",
        "artifact_created",
        "permission_request",
        "permission_response",
        "something_new",
    ];
    let names = vec![
        "step_id",
        "step_name",
        "content",
        "status",
        "tool_call_id",
        "tool_name",
        "tool_input",
        "title",
        "message",
        "result",
        "output",
        "plan",
        "entries",
        "mode",
        "stop_reason",
        "usage",
        "code",
        "path",
        "operation",
        "artifact",
        "request_id",
        "approved",
        "options",
        "option_id",
        "timestamp",
    ];
    let fields = prop::collection::vec((prop::sample::select(names), value), 0..8);
    (prop::sample::select(types), fields).prop_map(|(kind, fields)| {
        let mut packet = serde_json::json!({ "type": kind });
        for (name, value) in fields {
            packet[name] = value;
        }
        packet
    })
}

/// What the table of carriage says is carried, fact by fact, in the words of the wire.
fn gist(session: &Session) -> Vec<String> {
    let (mut tip, mut gist) = (Tip::default(), Vec::new());
    let error = |message: &str, code: Option<i64>| format!("failed {message:?} {code:?}");
    let (mut said, mut thought, mut tokens) = (String::new(), String::new(), None::<Usage>);
    for fact in &session.facts {
        let was_idle = tip.is_idle();
        tip.apply(fact);
        match &fact.event {
            Event::TextAppended(e) if !was_idle => said.push_str(&e.text),
            Event::ThoughtAppended(e) if !was_idle => thought.push_str(&e.text),
            Event::ToolChanged(e) => {
                let ended = tip.tool(&e.call).filter(|tool| !tool.is_open());
                gist.extend(ended.map(|tool| format!("tool {} {:?}", tool.call, tool.status)));
            }
            Event::PlanSet(e) => {
                let entry = |entry: &PlanEntry| {
                    let status =
                        if entry.status == PlanStatus::Cancelled { PlanStatus::Completed } else { entry.status };
                    (entry.content.clone(), status, entry.priority)
                };
                gist.push(format!("plan {:?}", e.entries.iter().map(entry).collect::<Vec<_>>()));
            }
            Event::ModeSet(ModeSet { mode }) | Event::SessionChanged(SessionChanged { mode: Some(mode), .. }) => {
                gist.push(format!("mode {mode}"));
            }
            Event::ArtifactSaved(e) => {
                let mut saved = e.clone();
                saved.kind = if e.kind == ArtifactKind::NextjsApp { ArtifactKind::WebApp } else { e.kind };
                gist.push(format!("{saved:?}"));
            }
            Event::PermissionAsked(e) if !was_idle => {
                gist.push(format!("ask {} {:?} {} {} {:?}", e.request, e.call, e.permission, e.title, e.options));
            }
            Event::PermissionAnswered(e) if tip.answered.is_some() => {
                gist.push(format!("answer {} {:?} {:?}", e.request, e.option, e.reason.as_ref()));
            }
            Event::Failed(e) if was_idle => gist.push(error(&e.message, e.code)),
            Event::StepEnded(e) if !was_idle => {
                if let Some(usage) = e.usage {
                    *tokens.get_or_insert_default() += usage;
                }
            }
            Event::TurnStarted(_) => tokens = None,
            Event::TurnEnded(e) => {
                let Some(turn) = &tip.ended_turn else { continue };
                let cut = if e.stop == Stop::Cancelled { ToolStatus::Cancelled } else { ToolStatus::Failed };
                gist.extend(turn.open_tools().map(|tool| format!("tool {} {cut:?}", tool.call)));
                gist.extend(turn.asks.iter().filter_map(|ask| match ask {
                    Ask::Permission(ask) => {
                        Some(format!("answer {} None Some(\"The turn ended before anybody answered\")", ask.request))
                    }
                    Ask::Question(_) => None,
                }));
                if !(said.is_empty() && thought.is_empty()) {
                    gist.push(format!(
                        "said {:?} thought {:?}",
                        std::mem::take(&mut said),
                        std::mem::take(&mut thought)
                    ));
                }
                let tokens = e.usage.or(tokens).map(|usage| (usage.input, usage.output));
                gist.push(match e.stop {
                    // Of a turn in which nothing else was told, only the error is left.
                    Stop::Failed => turn.failure.as_ref().map_or_else(
                        || error("Agent execution error", None),
                        |failed| error(&failed.message, failed.code),
                    ),
                    Stop::Interrupted => error("The server stopped during the turn", None),
                    stop => format!("ended {stop:?} {tokens:?}"),
                });
            }
            _ => {}
        }
    }
    gist
}

/// Steps are read back with the ends that they had; a step that a turn's end cuts has one too.
#[test]
fn steps_are_read_back() {
    let step = |n: u8| MessageId::from(format!("msg_{n}"));
    let mut session = Session::in_turn();
    for (n, finish) in [(1, Finish::Length), (2, Finish::Error), (3, Finish::Cancelled)] {
        session.tell(StepStarted { message: step(n), model: None });
        session.tell(StepEnded { message: step(n), finish, usage: None, cost: None, kept: None });
    }
    session.tell(StepStarted { message: step(4), model: None }).end(Stop::Interrupted);
    let read: Vec<_> = decode(&stream(&session.frames())).into_iter().map(|draft| draft.event).collect();
    let ends: Vec<_> = read
        .iter()
        .filter_map(|event| match event {
            Event::StepEnded(e) => Some((e.message.clone(), e.finish)),
            _ => None,
        })
        .collect();
    let expected = [(1, Finish::Stop), (2, Finish::Error), (3, Finish::Cancelled), (4, Finish::Error)];
    assert_eq!(ends, expected.map(|(n, finish)| (step(n), finish)));
    assert_eq!(read.iter().filter(|event| matches!(event, Event::StepStarted(_))).count(), 4);
}
