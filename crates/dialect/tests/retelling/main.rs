//! What goes through two dialects comes out as far as both carry it.
//!
//! For any run: telling it in A and reading that back keeps all that A's table says it carries; and converting from A
//! to B tells, of what both carry, the same story as telling it in B at once. From our own dialect, which carries
//! everything, the bytes are the same.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

mod gist;
#[allow(dead_code, reason = "shared with the tests of opencode")]
#[path = "../opencode/runs.rs"]
mod runs;
#[allow(dead_code, reason = "shared with the tests of opencode")]
#[path = "../opencode/support.rs"]
mod support;

use proptest::prelude::*;
use tolka_dialect::{Dialect, Frames, Heard, Retelling};
use tolka_facts::event::{FailureKind, Stop};
use tolka_facts::{Draft, Event, Fact, Time, Tip};

use gist::{Gist, Reach};
use support::{Run, cases};

/// The stream as it stands in a file.
fn stream(dialect: Dialect, run: &Run) -> Vec<u8> {
    let mut bytes = Vec::new();
    run.told(dialect).iter().flatten().for_each(|frame| dialect.write_frame(frame, &mut bytes));
    bytes
}

fn converted(from: Dialect, to: Dialect, bytes: &[u8]) -> Vec<u8> {
    let (mut retelling, mut frames) = (Retelling::new(from, to, Time::from_millis(0)), Frames::default());
    retelling.feed(bytes, &mut frames).unwrap();
    retelling.finish(&mut frames).unwrap();
    let mut out = Vec::new();
    frames.iter().for_each(|frame| to.write_frame(frame, &mut out));
    out
}

/// The facts that a stream tells, as a journal would have them.
fn heard(dialect: Dialect, bytes: &[u8]) -> Gist {
    let (mut decoder, mut heard) = (dialect.decoder(), Vec::new());
    decoder.feed(bytes, &mut heard).unwrap();
    decoder.finish(&mut heard).unwrap();
    let run = Run::stamped(heard.into_iter().map(|heard| heard.draft));
    Gist::of(&run.facts, &run.blobs)
}

/// A run in which nothing stays open behind a turn: the session's actor sees to that.
fn run() -> impl Strategy<Value = Run> {
    runs::run().prop_map(|run| {
        let (mut tip, mut facts) = (Tip::default(), Vec::<Fact>::new());
        for fact in run.facts {
            let (session, time) = (fact.session, fact.time);
            let before = match &fact.event {
                Event::TurnEnded(_) => {
                    tip.turn.as_ref().map(|turn| turn.end_what_is_open(Stop::EndTurn)).unwrap_or_default()
                }
                _ => Vec::new(),
            };
            // Not every family can tell a turn that was stopped from one that broke off; the tests of each say which.
            let mut last = Draft { cause: fact.cause, event: fact.event, raw: fact.raw };
            if let Event::Failed(failed) = &mut last.event
                && failed.kind == FailureKind::Aborted
            {
                failed.kind = FailureKind::Unknown;
            }
            if let Event::TurnEnded(end) = &mut last.event {
                // A failure inside a turn is why the turn fails.
                let has_failed = tip.turn.as_ref().is_some_and(|turn| turn.failure.is_some());
                end.stop = match end.stop {
                    _ if has_failed => Stop::Failed,
                    Stop::Cancelled | Stop::Interrupted => Stop::EndTurn,
                    stop => stop,
                };
            }
            for draft in before.into_iter().chain([last]) {
                let fact = draft.stamp(session.clone(), facts.len() as u64 + 1, time);
                tip.apply(&fact);
                facts.push(fact);
            }
        }
        Run { facts, blobs: run.blobs }
    })
}

/// How often a stream tells that a session is there.
fn openings(bytes: &[u8], session: &str) -> usize {
    let (mut decoder, mut heard) = (Dialect::Tolka.decoder(), Vec::new());
    decoder.feed(bytes, &mut heard).unwrap();
    decoder.finish(&mut heard).unwrap();
    let is_of = |heard: &&Heard| heard.session.as_ref().is_some_and(|id| id.as_str() == session);
    heard.iter().filter(is_of).filter(|heard| matches!(heard.draft.event, Event::SessionCreated(_))).count()
}

#[test]
fn of_many_sessions_the_one_that_was_silent_longest_is_forgotten() {
    let say = |session: usize| {
        let update = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi"}}"#;
        let params = format!(r#"{{"sessionId":"ses_{session}","update":{update}}}"#);
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{params}}}\n")
    };
    let stream: String = (1..10_000).flat_map(|session| [say(0), say(session)]).chain([say(1)]).collect();
    let told = converted(Dialect::Acp, Dialect::Tolka, stream.as_bytes());
    let openings = ["ses_0", "ses_1", "ses_9999"].map(|session| openings(&told, session));
    assert_eq!(openings, [1, 2, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases().cases / 2, ..cases() })]

    #[test]
    fn a_dialect_keeps_what_it_carries(run in run()) {
        let truth = Gist::of(&run.facts, &run.blobs);
        for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Tolka) {
            let (told, reach) = (heard(dialect, &stream(dialect, &run)), Reach::of(dialect));
            prop_assert_eq!(told.within(reach), truth.within(reach), "{}", dialect);
        }
    }

    /// From our own dialect the next test says more.
    #[test]
    fn converting_tells_what_both_carry(run in run(), from in prop::sample::select(&Dialect::ALL[1..])) {
        let (truth, bytes) = (Gist::of(&run.facts, &run.blobs), stream(from, &run));
        for to in Dialect::ALL {
            let reach = Reach::of(from).and(Reach::of(to));
            let told = heard(to, &converted(from, to, &bytes));
            prop_assert_eq!(told.within(reach), truth.within(reach), "{} to {}", from, to);
        }
    }

    /// Blobs do not travel with a stream of facts; both sides do without.
    #[test]
    fn converting_facts_is_telling_them(run in runs::run()) {
        let run = Run { facts: run.facts, blobs: support::Store::default() };
        let facts = stream(Dialect::Tolka, &run);
        for to in Dialect::ALL {
            let converted = converted(Dialect::Tolka, to, &facts);
            prop_assert_eq!(String::from_utf8(converted), String::from_utf8(stream(to, &run)), "{}", to);
        }
    }
}
