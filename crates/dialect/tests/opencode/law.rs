//! The judge and the table of carriage against what our own encoder tells, and the judge against the real server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use tolka_dialect::opencode::Profile;
use tolka_dialect::{Carriage, Dialect, Finding};
use tolka_facts::event::{Stop, TurnEnded};
use tolka_facts::{Draft, Event, Fact, Tip};

use crate::runs;
use crate::support::{PROFILES, Run, Store, cases, data};

pub(crate) fn findings(profile: Profile, stream: &[u8]) -> Vec<Finding> {
    let (mut judge, mut found) = (Dialect::OpenCode(profile).judge(), Vec::new());
    judge.feed(stream, &mut found);
    judge.finish(&mut found);
    found
}

/// The run with its open turn, if it has one, brought to an end.
fn ended(mut run: Run) -> Run {
    let mut tip = Tip::default();
    run.facts.iter().for_each(|fact| tip.apply(fact));
    if let Some(turn) = &tip.turn {
        let end = TurnEnded { turn: turn.id.clone(), stop: Stop::EndTurn, usage: None, cost: None, meta: None };
        run.facts.push(Draft::tolka(end).stamp(tip.head.id.clone(), tip.seq + 1, tip.time));
    }
    run
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_we_tell_breaks_no_rule(run in runs::run()) {
        let run = ended(run);
        for profile in PROFILES {
            prop_assert_eq!(findings(profile, &run.stream(profile)), vec![], "{:?}", profile);
        }
    }

    /// A feed that is joined later holds what its reader cannot know, and is not blamed for it.
    #[test]
    fn a_feed_may_be_joined_anywhere(run in runs::run(), at in any::<prop::sample::Index>()) {
        let run = ended(run);
        for profile in PROFILES {
            let frames: Vec<_> = run.told(Dialect::OpenCode(profile)).into_iter().flatten().collect();
            let rest = &frames[at.index(frames.len())..];
            prop_assert_eq!(findings(profile, &crate::support::sse(rest)), vec![], "{:?}", profile);
        }
    }

    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        findings(Profile::Superset, &bytes);
    }
}

#[test]
fn the_golden_streams_break_no_rule() {
    let mut judged = 0;
    for profile in PROFILES {
        let dialect = Dialect::OpenCode(profile);
        for entry in fs::read_dir(data("../golden")).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_str().unwrap().ends_with(&format!(".{dialect}.jsonl")) {
                continue;
            }
            let mut stream = Vec::new();
            for line in fs::read_to_string(&path).unwrap().lines() {
                dialect.write_frame(line.as_bytes(), &mut stream);
            }
            assert_eq!(findings(profile, &stream), vec![], "{}", path.display());
            judged += 1;
        }
    }
    assert!(judged >= 42, "{judged} golden streams");
}

/// What the real server says of itself, judged by its own wire. What is found is so.
#[test]
fn the_recordings_break_the_rules_that_the_real_server_breaks() {
    let broken: &[(&str, &[(u64, &str)])] = &[
        // `session.idle` in line 41, and then the end of the text that was being written.
        ("abort", &[(43, "after-idle")]),
        // `session.idle` in line 27, and then the end of the message with its error.
        ("error-401", &[(29, "after-idle")]),
        ("error-500-retry", &[]),
        ("full", &[]),
        // The recording is the beginning of a stream.
        ("full.global", &[(43, "busy-at-end")]),
        ("longbash", &[]),
        ("perm-once", &[]),
        ("question", &[]),
        ("session-ops", &[]),
    ];
    for (name, expected) in broken {
        let stream = fs::read(data("recordings/opencode").join(format!("{name}.sse"))).unwrap();
        let found = findings(Profile::Current, &stream);
        let found: Vec<_> = found.iter().map(|finding| (finding.line, finding.rule.name)).collect();
        assert_eq!(found, *expected, "{name}");
    }
}

/// The document's client would get neither the session's name nor a word of the answer from the real server.
#[test]
fn the_real_server_is_not_the_documents() {
    let stream = fs::read(data("recordings/opencode/question.sse")).unwrap();
    let found = |profile| -> Vec<_> {
        findings(profile, &stream).iter().map(|finding| (finding.line, finding.rule.name)).collect()
    };
    let missed = [(5, "session"), (15, "session"), (41, "delta"), (63, "delta")];
    assert_eq!(found(Profile::Superset), missed);
    let [name, again, text, more] = missed;
    assert_eq!(found(Profile::Documented), [name, again, (27, "no-pieces"), text, more]);
}

/// Document 004's own shapes, each in an event.
#[test]
fn the_examples_of_the_document_break_no_rule() {
    for entry in fs::read_dir(data("documents/004")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let shown: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let part = |state: &Value| {
            serde_json::json!({ "id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "tool",
                "callID": "call_1", "tool": "bash", "state": state })
        };
        let event = |kind: &str, properties: Value| serde_json::json!({ "type": kind, "properties": properties });
        let updated = |part: &Value| event("message.part.updated", serde_json::json!({ "part": part }));
        let event = match name {
            _ if name.starts_with("event_") => shown,
            _ if name.starts_with("tool_state") => updated(&part(&shown)),
            _ if name.contains("_part") => updated(&shown),
            _ if name.contains("_message") => event("message.updated", serde_json::json!({ "info": shown })),
            _ if name.contains("_error") => {
                event("session.error", serde_json::json!({ "sessionID": "ses_1", "error": shown }))
            }
            _ => continue,
        };
        // Alone it is the beginning of an answer.
        let mut found = findings(Profile::Documented, &crate::support::frame(&event));
        found.retain(|finding| finding.rule.name != "busy-at-end");
        assert_eq!(found, vec![], "{name}");
    }
}

#[test]
fn every_event_has_its_row() {
    let rows: Vec<_> = Dialect::OpenCode(Profile::Current).carriage().iter().map(|(name, _)| *name).collect();
    assert_eq!(rows, Event::NAMES);
}

/// Over many runs and one line of each event that was ever stored: what is told of an event is named in its row, and
/// what its row names is told. Frames that end what was left open count for the event that ended it.
#[test]
fn the_table_of_carriage_is_true() {
    let mut seen = BTreeMap::<&str, BTreeSet<String>>::new();
    let mut hear = |run: &Run| {
        for profile in PROFILES {
            for (fact, frames) in run.facts.iter().zip(run.told(Dialect::OpenCode(profile))) {
                let kind = |frame: &Vec<u8>| serde_json::from_slice::<Value>(frame).unwrap()["type"].clone();
                let names = frames.iter().map(|frame| kind(frame).as_str().unwrap().to_owned());
                seen.entry(fact.event.name()).or_default().extend(names);
            }
        }
    };
    let mut runner = TestRunner::deterministic();
    for _ in 0..60 {
        hear(&runs::run().new_tree(&mut runner).unwrap().current());
    }
    let stored = fs::read_to_string(data("facts/v4.jsonl")).unwrap();
    let facts = stored.lines().map(|line| Fact::from_json(line.as_bytes()).unwrap()).collect();
    hear(&Run { facts, blobs: Store::default() });
    for (event, carriage) in Dialect::OpenCode(Profile::Superset).carriage() {
        let told = seen.get(event).unwrap_or_else(|| panic!("no {event} was told"));
        let told: Vec<_> = told.iter().map(String::as_str).collect();
        let mut named = carriage.frames().to_vec();
        named.sort_unstable();
        assert_eq!(told, named, "{event}");
        assert_eq!(named.is_empty(), matches!(carriage, Carriage::Never(_)), "{event}");
    }
}
