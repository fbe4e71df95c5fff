//! What holds for every journal.

use proptest::prelude::*;
use serde_json::Value;
use tolka_dialect::agentsmithy::{Decoder, Encoder};
use tolka_dialect::{Decoder as _, Dialect, Encoder as _, Frames, Retelling};
use tolka_facts::{Event, Time, Tip};

use crate::generate::{journal, whole_turns};
use crate::{Session, encode, judged, kind, skeleton, stream};

proptest! {
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
            let next = facts.get(cut..=cut).unwrap_or_default();
            told.extend(encode(&mut encoder, &mut tip, next, &session.blobs));
        }
    }

    /// `user` first, segments closed and never nested, `error` then `done`, `done` once and last, nothing between turns.
    #[test]
    fn a_turn_is_told_in_the_documents_order(session in journal()) {
        let (mut encoder, mut tip) = (Encoder::default(), Tip::default());
        let (mut open, mut turn) = (None::<String>, Vec::<String>::new());
        for fact in &session.facts {
            if matches!(fact.event, Event::TurnStarted(_)) {
                turn.clear();
            }
            let was_idle = tip.is_idle();
            let frames = encode(&mut encoder, &mut tip, std::slice::from_ref(fact), &session.blobs);
            prop_assert!(frames.is_empty() || !was_idle || !tip.is_idle(), "told between turns");
            for frame in frames {
                let packet: Value = serde_json::from_str(&frame).unwrap();
                let keys: Vec<&String> = packet.as_object().unwrap().keys().collect();
                prop_assert_eq!((keys[0].as_str(), keys[keys.len() - 1].as_str()), ("type", "dialog_id"));
                prop_assert_eq!(&packet["dialog_id"], "ses_1");
                let name = kind(&packet);
                prop_assert_eq!(name == "user", turn.is_empty());
                match name.rsplit_once('_') {
                    Some((segment, "start")) => prop_assert_eq!(open.replace(segment.to_owned()), None, "nested"),
                    Some((segment, "end")) => prop_assert_eq!(open.take(), Some(segment.to_owned())),
                    _ => prop_assert_eq!(open.as_deref(), ["chat", "reasoning"].into_iter().find(|s| *s == name)),
                }
                let before = turn.last().map(String::as_str);
                prop_assert!(before != Some("done"));
                prop_assert!(before != Some("error") || name == "done");
                turn.push(name);
            }
            if matches!(fact.event, Event::TurnEnded(_)) {
                prop_assert_eq!(turn.last().map(String::as_str), Some("done"));
            }
        }
    }

    #[test]
    fn the_documents_client_reads_every_event(session in journal()) {
        prop_assert_eq!(skeleton(&stream(&session.frames())), session.packets());
    }

    #[test]
    fn nothing_that_we_tell_breaks_the_law(session in whole_turns()) {
        prop_assert_eq!(judged(&stream(&session.frames())), []);
    }

    /// Turns that have no end differ in one thing: the end of a run is no fact of its own, so a segment that was closed
    /// last is only closed again by what comes next.
    #[test]
    fn telling_again_is_the_same(session in whole_turns()) {
        let frames = session.frames();
        let mut retelling = Retelling::new(Dialect::AgentSmithy, Dialect::AgentSmithy, Time::from_millis(1));
        let mut out = Frames::default();
        for piece in stream(&frames).chunks(61) {
            retelling.feed(piece, &mut out).unwrap();
        }
        retelling.finish(&mut out).unwrap();
        let again: Vec<String> = out.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
        prop_assert_eq!(again, frames);
    }

    #[test]
    fn reading_back_keeps_what_is_carried(session in whole_turns()) {
        let mut read = Session::new();
        for draft in crate::decode(&stream(&session.frames())) {
            read.draft(draft);
        }
        prop_assert_eq!(gist(&read), gist(&session));
    }

    #[test]
    fn damaged_streams_are_survived(session in journal(), damage in prop::collection::vec((any::<u16>(), any::<u8>()), 1..20)) {
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
        judged(&bytes);
    }
}

/// What the rows of the table promise, apart from the calls, whose own words are compared by telling them again: prompts
/// and checkpoints, the words of each voice, requests, attempts to summarise, and how each turn ended.
fn gist(session: &Session) -> Vec<String> {
    let (mut out, mut tip) = (Vec::new(), Tip::default());
    let (mut said, mut thought) = (String::new(), String::new());
    for fact in &session.facts {
        let was_idle = tip.is_idle();
        tip.apply(fact);
        match &fact.event {
            Event::TurnStarted(e) => {
                let texts: Vec<&str> = tip.taken.iter().flat_map(|q| &q.prompt.content).map(text).collect();
                out.push(format!("{} {:?}", texts.join("\n"), e.checkpoint));
            }
            Event::TextAppended(e) if !was_idle => said.push_str(&e.text),
            Event::ThoughtAppended(e) if !was_idle => thought.push_str(&e.text),
            Event::PermissionAsked(e) if !was_idle => {
                out.push(format!("{} {} {} {:?} {:?}", e.request, e.permission, e.title, e.patterns, e.options));
            }
            Event::QuestionAsked(e) if !was_idle => out.push(format!("{} {:?}", e.request, e.questions)),
            Event::TurnEnded(e) => {
                use tolka_facts::event::Stop::{Failed, Interrupted};
                let failure = tip.ended_turn.as_ref().and_then(|turn| turn.failure.as_ref());
                let stop = match e.stop {
                    Failed => failure.map_or("failed", |_| "failed and said why"),
                    Interrupted => "interrupted",
                    _ => "done",
                };
                // A failure without words is told in ours, and read back as words.
                let stop = if stop == "failed" { "failed and said why" } else { stop };
                out.push(format!("{} | {} | {stop}", std::mem::take(&mut said), std::mem::take(&mut thought)));
            }
            _ => {}
        }
    }
    out
}

fn text(block: &tolka_facts::Block) -> &str {
    match block {
        tolka_facts::Block::Text { text, .. } => text.head(),
        _ => "",
    }
}
