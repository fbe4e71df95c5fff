//! The judge, the table of carriage and the way back, over runs as agents make them.

use std::collections::HashSet;
use std::fs;

use proptest::prelude::*;
use tolka_dialect::{Carriage, Dialect, Finding, Frames, Retelling};
use tolka_facts::event::{Stop, TurnEnded};
use tolka_facts::{CallId, Draft, Event, Time, Tip, ToolStatus};

use crate::runs;
use crate::support::{Run, cases, data};

pub(crate) fn findings(stream: &[u8]) -> Vec<Finding> {
    let (mut judge, mut found) = (Dialect::Tolka.judge(), Vec::new());
    judge.feed(stream, &mut found);
    judge.finish(&mut found);
    found
}

pub(crate) fn written(run: &Run) -> Vec<u8> {
    let mut stream = Vec::new();
    for frame in run.told(Dialect::Tolka).iter().flatten() {
        Dialect::Tolka.write_frame(frame, &mut stream);
    }
    stream
}

/// As the session's actor keeps it: without the news of ended calls that the runs hold for the other dialects' sake,
/// and with every turn brought to an end.
fn lawful(run: Run) -> Run {
    let (mut ended, mut kept) = (HashSet::<CallId>::new(), Run { facts: Vec::new(), blobs: run.blobs });
    let (mut tip, mut seq) = (Tip::default(), 0);
    for mut fact in run.facts {
        if let Event::ToolChanged(e) = &fact.event {
            if ended.contains(&e.call) {
                continue;
            }
            if e.status.is_some_and(ToolStatus::is_terminal) {
                ended.insert(e.call.clone());
            }
        }
        seq += 1;
        fact.seq = seq;
        tip.apply(&fact);
        kept.facts.push(fact);
    }
    if let Some(turn) = &tip.turn {
        let end = TurnEnded { turn: turn.id.clone(), stop: Stop::EndTurn, usage: None, cost: None, meta: None };
        kept.facts.push(Draft::tolka(end).stamp(tip.head.id.clone(), seq + 1, tip.time));
    }
    kept
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_we_tell_breaks_no_rule(run in runs::run()) {
        prop_assert_eq!(findings(&written(&lawful(run))), vec![]);
    }

    #[test]
    fn a_stream_may_start_anywhere(run in runs::run(), at in any::<prop::sample::Index>()) {
        let mut run = lawful(run);
        run.facts.drain(..at.index(run.facts.len()));
        prop_assert_eq!(findings(&written(&run)), vec![]);
    }

    #[test]
    fn told_again_it_is_the_same(run in runs::run()) {
        let stream = written(&lawful(run));
        let mut retelling = Retelling::new(Dialect::Tolka, Dialect::Tolka, Time::default());
        let mut frames = Frames::default();
        retelling.feed(&stream, &mut frames).unwrap();
        retelling.finish(&mut frames).unwrap();
        let mut again = Vec::new();
        frames.iter().for_each(|frame| Dialect::Tolka.write_frame(frame, &mut again));
        prop_assert!(again == stream);
        prop_assert!(retelling.lost().is_empty());
    }

    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        findings(&bytes);
    }
}

#[test]
fn the_golden_streams_break_no_rule() {
    let mut judged = 0;
    for entry in fs::read_dir(data("../golden")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with(".tolka.jsonl") {
            assert_eq!(findings(&fs::read(&path).unwrap()), vec![], "{}", path.display());
            judged += 1;
        }
    }
    assert!(judged >= 14, "{judged} golden streams");
}

#[test]
fn every_event_is_carried_whole_under_its_own_name() {
    let rows: Vec<_> = Dialect::Tolka.carriage().to_vec();
    assert_eq!(rows.iter().map(|(name, _)| *name).collect::<Vec<_>>(), Event::NAMES);
    for (name, carriage) in rows {
        assert!(matches!(carriage, Carriage::Whole(_)));
        assert_eq!(carriage.frames(), [name]);
    }
}
