//! What holds for every run, plausible or wild, ours or an ACP agent's.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;
use tolka_dialect::acp::Encoder;
use tolka_dialect::{Dialect, Encoder as _, Frames};
use tolka_facts::event::{PermissionAsked, Stop};
use tolka_facts::{Cause, Event, Fact, Tip, Tool, ToolStatus};

use crate::runs::{run, wild};
use crate::support::{Run, Store, cases};
use crate::talks::talk;
use crate::{heard, judged, retold, stream, told, valid, values};

/// Runs of our own agents, and what is read of ACP agents.
pub(crate) fn tame() -> impl Strategy<Value = Run> {
    prop_oneof![run(), talk().prop_map(|lines| read(&lines))]
}

/// Those, and runs with facts left out and moved.
fn any_run() -> impl Strategy<Value = Run> {
    prop_oneof![3 => tame(), 1 => wild()]
}

pub(crate) fn read(lines: &[u8]) -> Run {
    Run::stamped(heard(lines).into_iter().map(|heard| heard.draft))
}

fn text(frames: &[Vec<u8>]) -> Vec<&str> {
    frames.iter().map(|frame| std::str::from_utf8(frame).unwrap()).collect()
}

fn encode(encoder: &mut Encoder, tip: &mut Tip, facts: &[Fact], run: &Run) -> Vec<Vec<u8>> {
    let mut out = Frames::default();
    for fact in facts {
        tip.apply(fact);
        encoder.encode(fact, tip, &run.blobs, &mut out);
    }
    out.iter().map(<[u8]>::to_vec).collect()
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_stream_may_be_cut_anywhere_and_idle_encoders_hold_nothing(run in any_run()) {
        let whole = told(&run);
        let (mut encoder, mut tip, mut before) = (Encoder::default(), Tip::default(), Vec::new());
        for cut in 0..=run.facts.len() {
            let mut resumed = Encoder::resume(&encoder.state()).unwrap();
            let rest = encode(&mut resumed, &mut tip.clone(), &run.facts[cut..], &run);
            prop_assert_eq!([before.clone(), rest].concat(), whole.clone(), "cut at {}", cut);
            if tip.is_idle() {
                prop_assert_eq!(encoder.state(), Encoder::default().state());
            }
            before.extend(encode(&mut encoder, &mut tip, run.facts.get(cut..=cut).unwrap_or_default(), &run));
        }
    }

    #[test]
    fn a_turn_ends_once_and_with_its_last_frame(run in tame()) {
        let mut open = None;
        for (fact, frames) in run.facts.iter().zip(run.told(Dialect::Acp)) {
            if let Event::TurnStarted(e) = &fact.event {
                open = Some(e.turn.clone());
            }
            let ends = |frame: &&Vec<u8>| frame.windows(11).any(|bytes| bytes == br#","id":"trn_"#);
            prop_assert!(frames.iter().all(|frame| !frame.contains(&b'\n')));
            match &fact.event {
                Event::TurnEnded(e) if open.take().as_ref() == Some(&e.turn) => {
                    prop_assert_eq!(frames.iter().filter(ends).count(), 1);
                    let start = format!(r#"{{"jsonrpc":"2.0","id":"{}","#, e.turn);
                    prop_assert!(frames.last().unwrap().starts_with(start.as_bytes()));
                }
                _ => prop_assert_eq!(frames.iter().filter(ends).count(), 0),
            }
        }
    }

    #[test]
    fn every_frame_is_valid_by_the_schema(run in any_run()) {
        values(&told(&run)).iter().for_each(valid::check);
    }

    #[test]
    fn what_is_told_is_told_again_as_it_is(run in tame()) {
        let first = told(&run);
        let again = retold(&stream(&first));
        prop_assert_eq!(text(&again), text(&first));
    }

    #[test]
    fn the_law_has_nothing_against_what_we_tell(run in tame()) {
        // A turn that is open at the end is cut, and that is found.
        let found: Vec<_> = judged(&stream(&told(&run))).into_iter().filter(|f| f.rule.name != "truncated").collect();
        prop_assert_eq!(found, []);
    }

    #[test]
    fn what_an_agent_said_is_said_again_in_its_own_words(lines in talk()) {
        let updates = |values: Vec<Value>| -> Vec<_> {
            values.into_iter().map(|line| line["params"]["update"].clone()).filter(|update| !update.is_null()).collect()
        };
        let said = lines.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap());
        let said = updates(said.collect());
        let mut ours = updates(values(&told(&read(&lines)))).into_iter();
        for update in said {
            prop_assert!(ours.any(|ours| ours == update), "{update} is gone or out of order");
        }
    }

    #[test]
    fn reading_back_keeps_what_is_carried(run in run()) {
        let drafts = heard(&stream(&told(&run))).into_iter().map(|heard| heard.draft);
        prop_assert_eq!(gist(&Run::stamped(drafts)), gist(&run));
    }

    #[test]
    fn odd_messages_are_survived_and_none_is_lost(lines in prop::collection::vec(odd(), 0..12)) {
        let stream: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
        judged(&stream);
        let (mut decoder, mut heard) = (Dialect::Acp.decoder(), Vec::new());
        let mut refused = 0;
        let mut rest = stream.as_slice();
        while decoder.feed(std::mem::take(&mut rest), &mut heard).is_err() {
            refused += 1;
        }
        decoder.finish(&mut heard).unwrap();
        prop_assert!(heard.len() + refused >= lines.len(), "{heard:?}");
    }

    #[test]
    fn bytes_may_be_cut_anywhere(lines in talk(), size in 1..200usize) {
        let (mut decoder, mut pieces) = (Dialect::Acp.decoder(), Vec::new());
        for piece in lines.chunks(size) {
            decoder.feed(piece, &mut pieces).unwrap();
        }
        decoder.finish(&mut pieces).unwrap();
        prop_assert_eq!(pieces, heard(&lines));
    }
}

/// The right keys with values of any shape.
fn odd() -> impl Strategy<Value = Value> {
    let words = vec![
        "2.0",
        "s",
        "c2a",
        "a2c",
        "text",
        "session/update",
        "session/prompt",
        "session/load",
        "session/new",
        "tool_call",
        "session/request_permission",
        "elicitation/create",
        "$/cancel_request",
        "agent_message_chunk",
        "form",
        "string",
        "user_message_chunk",
        "tool_call_update",
        "compaction_update",
        "completed",
        "accept",
        "trn_1",
        "_x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..3i64).prop_map(Value::from),
        prop::sample::select(words.clone()).prop_map(Value::from),
    ];
    let keys = vec![
        "jsonrpc",
        "id",
        "method",
        "params",
        "result",
        "error",
        "sessionId",
        "update",
        "sessionUpdate",
        "content",
        "type",
        "toolCall",
        "toolCallId",
        "options",
        "prompt",
        "stopReason",
        "_meta",
        "tolka",
        "turn",
        "outcome",
        "requestId",
        "t",
        "dir",
        "msg",
        "requestedSchema",
        "properties",
        "mode",
        "message",
        "status",
        "entries",
        "rawInput",
        "data",
        "code",
    ];
    let nested = move |inner: BoxedStrategy<Value>| {
        let object = prop::collection::vec((prop::sample::select(keys.clone()), inner.clone()), 0..7);
        prop_oneof![
            1 => prop::collection::vec(inner, 0..3).prop_map(Value::from),
            3 => object.prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()),
        ]
    };
    let value = leaf.prop_recursive(4, 32, 6, nested);
    let method = prop::option::of(prop::sample::select(words));
    (value.clone(), value, method, prop::option::of(0..3u8)).prop_map(|(params, result, method, id)| {
        let mut line = serde_json::json!({ "jsonrpc": "2.0" });
        if let Some(id) = id {
            line["id"] = id.into();
        }
        match method {
            Some(method) => (line["method"], line["params"]) = (method.into(), params),
            None => line["result"] = result,
        }
        line
    })
}

/// What the carriage table says is carried, fact by fact.
fn gist(run: &Run) -> Vec<String> {
    let (mut tip, mut out, mut compacting) = (Tip::default(), Vec::new(), BTreeSet::new());
    for fact in &run.facts {
        tip.apply(fact);
        let (in_turn, blobs) = (!tip.is_idle(), &run.blobs);
        match &fact.event {
            Event::TurnStarted(e) => {
                let prompt =
                    tip.taken.as_ref().map(|queued| &queued.prompt).filter(|prompt| !prompt.content.is_empty());
                let content = prompt.map(|prompt| {
                    let mut content = prompt.content.clone();
                    content.iter_mut().flat_map(|block| block.bodies_mut()).for_each(|body| body.fill(blobs));
                    (prompt.message.clone(), content)
                });
                out.push(format!("start {} {content:?}", e.turn));
            }
            Event::TurnEnded(e) => {
                let ended = tip.ended_turn.as_ref();
                let failure = ended.and_then(|turn| turn.failure.as_ref()).map(|failure| failure.message.clone());
                let failure = failure.filter(|_| e.stop == Stop::Failed);
                // What is open is closed, and reads as if it had been.
                let open = ended.into_iter().flat_map(|turn| turn.open_tools());
                out.extend(open.map(|tool| end(tool, blobs)));
                out.extend(
                    ended.into_iter().flat_map(|turn| &turn.asks).map(|ask| format!("answered {}", ask.request())),
                );
                out.push(format!("end {} {:?} {failure:?}", e.turn, e.stop));
            }
            Event::TextAppended(e) if in_turn && !e.text.is_empty() => out.push(format!("say {} {}", e.part, e.text)),
            Event::ThoughtAppended(e) if in_turn && !e.text.is_empty() => {
                out.push(format!("think {} {}", e.part, e.text));
            }
            Event::ToolChanged(e) => {
                let Some(tool) = tip.tool(&e.call).filter(|tool| !tool.is_open()) else { continue };
                out.push(end(tool, blobs));
            }
            Event::PlanSet(e) if fact.cause != Cause::Tolka => out.push(format!("plan {e:?}")),
            Event::ModeSet(e) => out.push(format!("{e:?}")),
            Event::CommandsSet(e) => out.push(format!("{e:?}")),
            Event::UsageSet(e) => out.push(format!("{e:?}")),
            Event::Noticed(e) if !e.title.is_empty() => {
                out.push(format!("{:?} {} {:?}", e.severity, e.title, e.description));
            }
            Event::Noticed(e) => out.push(format!("{:?} Notice {:?}", e.severity, e.description)),
            Event::RetryScheduled(e) if in_turn => out.push(format!("{e:?}")),
            Event::Failed(e) if !in_turn => out.push(format!("Error {} None", e.message)),
            Event::SessionChanged(e) => out.push(format!("title {:?}", e.title)),
            Event::PermissionAsked(e) if in_turn => {
                let metadata = e.metadata.as_ref().map(|metadata| metadata.whole(blobs).into_owned());
                out.push(format!("{:?}", PermissionAsked { metadata, ..e.clone() }));
            }
            Event::QuestionAsked(e) if in_turn => out.push(format!("{e:?}")),
            Event::PermissionAnswered(e) if tip.answered.is_some() => {
                let end = format!("answered {}", e.request);
                out.push(if e.by == "tolka" { end } else { format!("{e:?}") });
            }
            Event::QuestionAnswered(e) if tip.answered.is_some() => {
                let end = format!("answered {}", e.request);
                out.push(if e.by == "tolka" { end } else { format!("{e:?}") });
            }
            // A second beginning of the same is none.
            Event::CompactionStarted(e) => {
                out.extend(compacting.insert(e.id.clone()).then(|| format!("compact {}", e.id)));
            }
            Event::CompactionEnded(e) => {
                compacting.remove(&e.id);
                let summary = e.summary.as_ref().filter(|summary| !summary.is_empty());
                let summary = summary.map(|summary| summary.text(blobs).into_owned());
                out.push(format!("compacted {} {summary:?} {:?}", e.id, e.error));
            }
            _ => {}
        }
    }
    out
}

fn end(tool: &Tool, blobs: &Store) -> String {
    let status = if tool.status == ToolStatus::Completed { "completed" } else { "failed" };
    let input = tool.input.as_ref().map(|input| input.whole(blobs).into_owned());
    format!("tool {} {status} {input:?} {:?}", tool.call, tool.live_output)
}
