//! The judge and the table of carriage against what our own encoder tells.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use tolka_dialect::onyx::{Encoder, Profile};
use tolka_dialect::{Carriage, Dialect, Finding};
use tolka_facts::event::{Stop, ToolChanged, TurnEnded};
use tolka_facts::{Draft, Event, Fact, SessionId, Tip};

use crate::generate::journal;
use crate::{Session, change, encode, frames};

const PROFILES: [Profile; 2] = [Profile::Documented, Profile::Current];

fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(path)
}

pub(crate) fn findings(profile: Profile, stream: &[u8]) -> Vec<Finding> {
    let (mut judge, mut found) = (Dialect::Onyx(profile).judge(), Vec::new());
    judge.feed(stream, &mut found);
    judge.finish(&mut found);
    found
}

/// As they stand in a file.
pub(crate) fn written<'a>(profile: Profile, frames: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut stream = Vec::new();
    frames.into_iter().for_each(|frame| Dialect::Onyx(profile).write_frame(frame.as_bytes(), &mut stream));
    stream
}

/// The journal with its open turn, if it has one, brought to an end.
fn ended(mut facts: Vec<Fact>) -> Vec<Fact> {
    let mut tip = Tip::default();
    facts.iter().for_each(|fact| tip.apply(fact));
    if let Some(turn) = &tip.turn {
        let end = TurnEnded { turn: turn.id.clone(), stop: Stop::EndTurn, usage: None, cost: None, meta: None };
        facts.push(Draft::tolka(end).stamp(SessionId::from("ses_1"), tip.seq + 1, tip.time));
    }
    facts
}

proptest! {
    #[test]
    fn what_we_tell_breaks_no_rule(facts in journal()) {
        let facts = ended(facts);
        for profile in PROFILES {
            let told = frames(profile, &facts);
            prop_assert_eq!(findings(profile, &written(profile, told.iter().map(String::as_str))), vec![]);
        }
    }

    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        findings(Profile::Documented, &bytes);
    }
}

#[test]
fn the_golden_streams_break_no_rule() {
    let mut judged = 0;
    for profile in PROFILES {
        let ending = format!(".{}.jsonl", Dialect::Onyx(profile));
        for entry in fs::read_dir(data("golden")).unwrap() {
            let path = entry.unwrap().path();
            if path.to_str().unwrap().ends_with(&ending) {
                let text = fs::read_to_string(&path).unwrap();
                assert_eq!(findings(profile, &written(profile, text.lines())), vec![], "{}", path.display());
                judged += 1;
            }
        }
    }
    assert!(judged >= 28, "{judged} golden streams");
}

/// What the documents show is right as far as it goes: their examples leave out fields, and stand alone where a stream
/// would go before and after them.
#[test]
fn the_examples_of_the_documents_lack_fields_and_company_alone() {
    for document in ["000", "002"] {
        for entry in fs::read_dir(data("data/documents").join(document)).unwrap() {
            let path = entry.unwrap().path();
            let packet: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            if packet.get("type").is_none() && packet.get("sessionUpdate").is_none() {
                continue;
            }
            for finding in findings(Profile::Documented, &written(Profile::Documented, [packet.to_string().as_str()])) {
                let is_alone = ["start-first", "turn-end"].contains(&finding.rule.name);
                assert!(is_alone || finding.problem.contains("is missing"), "{}: {finding}", path.display());
            }
        }
    }
}

#[test]
fn rules_have_names_places_and_demands() {
    let stream = written(Profile::Documented, ["{}", r#"{"type":"x"}"#]);
    for finding in findings(Profile::Documented, &stream) {
        assert!(finding.rule.demand.ends_with('.') && !finding.rule.section.is_empty(), "{finding:?}");
    }
}

#[test]
fn every_event_has_its_row() {
    let rows: Vec<_> = Dialect::Onyx(Profile::Documented).carriage().iter().map(|(name, _)| *name).collect();
    assert_eq!(rows, Event::NAMES);
}

/// Over many journals and one line of each event that was ever stored: what is told of an event is named in its row,
/// and what its row names is told. Frames that end what was left open count for the event that ended it.
#[test]
fn the_table_of_carriage_is_true() {
    let mut seen = BTreeMap::<&str, BTreeSet<String>>::new();
    let mut hear = |facts: &[Fact]| {
        for profile in PROFILES {
            let (mut encoder, mut tip) = (Encoder::new(profile), Tip::default());
            for fact in facts {
                let told = encode(&mut encoder, &mut tip, std::slice::from_ref(fact));
                let names = told.iter().map(|frame| serde_json::from_str::<Value>(frame).unwrap()["type"].clone());
                let names = names.map(|name| name.as_str().unwrap().to_owned());
                seen.entry(fact.event.name()).or_default().extend(names);
            }
        }
    };
    let mut runner = TestRunner::deterministic();
    for _ in 0..400 {
        hear(&journal().new_tree(&mut runner).unwrap().current());
    }
    let stored = fs::read_to_string(data("data/facts/v4.jsonl")).unwrap();
    let stored: Vec<_> = stored.lines().map(|line| Fact::from_json(line.as_bytes()).unwrap()).collect();
    hear(&stored);
    let mut session = Session::in_turn();
    let subagent = Some(SessionId::from("ses_2"));
    session.tell(ToolChanged { name: Some("task".into()), subagent, ..change("c1") });
    hear(&session.facts);
    for (event, carriage) in Dialect::Onyx(Profile::Documented).carriage() {
        let told = seen.get(event).unwrap_or_else(|| panic!("no {event} was told"));
        let told: Vec<_> = told.iter().map(String::as_str).collect();
        let mut named = carriage.frames().to_vec();
        named.sort_unstable();
        assert_eq!(told, named, "{event}");
        assert_eq!(named.is_empty(), matches!(carriage, Carriage::Never(_)), "{event}");
    }
}
