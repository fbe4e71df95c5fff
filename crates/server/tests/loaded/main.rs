//! What clients of Onyx and AgentSmithy load of a session is what a fold over all of it gives, however it is read.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../onyx/house.rs"]
#[allow(dead_code, reason = "it serves the tests of two families")]
mod house;
#[path = "../onyx/reader.rs"]
#[allow(dead_code, reason = "the house brings it")]
mod reader;
#[path = "../../../facts/tests/facts/runs.rs"]
mod runs;
mod seed;
mod whole;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tolka_agent::Pace;
use tolka_facts::event::{ArtifactKind, ArtifactSaved, MessageHidden, Noticed};
use tolka_facts::{Event, Fact, MessageId};

use crate::house::House;
use crate::seed::{long, seeded};
use crate::whole::Whole;

async fn got(house: &House, path: &str) -> Value {
    let answer = house.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

/// Everything that the two families load, and the artifacts of a view, against folds over all facts.
async fn compare(house: &House, facts: &[Fact]) {
    let Some(session) = facts.first().map(|fact| fact.session.to_string()) else { return };
    let whole = Whole::of(facts);
    assert_eq!(got(house, &format!("/api/build/sessions/{session}/messages")).await, whole.messages());
    assert_eq!(got(house, &format!("/api/build/sessions/{session}/artifacts")).await, whole.artifacts());
    let results = got(house, &format!("/api/dialogs/{session}/tool-results")).await;
    let results = results.as_array().unwrap().iter();
    let results: Vec<Value> = results.map(|row| json!([row["tool_call_id"], row["timestamp"]])).collect();
    assert_eq!(results, whole.results());
    for limit in [1, 2, 5, 100_000] {
        let (mut events, mut before) = (Vec::new(), None);
        loop {
            let cursor = before.map_or(String::new(), |before: u64| format!("&before={before}"));
            let page = got(house, &format!("/api/dialogs/{session}/history?limit={limit}{cursor}")).await;
            let mut expected = serde_json::to_value(whole.history.page(limit, before)).unwrap();
            // The events of a long dialog need not be counted; a number that is told is right.
            if facts.len() > 4096 && page.get("total_events").is_none() {
                expected.as_object_mut().unwrap().remove("total_events");
            }
            assert_eq!(page, expected, "{limit} before {before:?}");
            before = page["first_idx"].as_u64();
            events.splice(0..0, page["events"].as_array().unwrap().clone());
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(json!(events), serde_json::to_value(&whole.history.page(usize::MAX, None).events).unwrap());
    }
    // A place that is no message's is one as well.
    for before in (0..=facts.len() as u64).rev().take(40) {
        let page = got(house, &format!("/api/dialogs/{session}/history?limit=2&before={before}")).await;
        let expected = serde_json::to_value(whole.history.page(2, Some(before))).unwrap();
        for field in ["events", "has_more", "first_idx", "last_idx"] {
            assert_eq!(page[field], expected[field], "{field} before {before}");
        }
    }
    // At the end: whoever asks for a view wakes the session, and a turn that was open is told to have ended.
    for at in [1, facts.len() / 2, facts.len() - 1, facts.len()] {
        let view = got(house, &format!("/v1/sessions/{session}/view?at={at}&turns=1")).await;
        assert_eq!(view["artifacts"], whole::artifacts_at(&facts[..at]), "at {at}");
    }
}

/// A run with artifacts in the place of notices, and with one of its messages hidden at a moment of it.
fn changed(mut facts: Vec<Fact>, hide: &Option<(prop::sample::Index, prop::sample::Index)>) -> Vec<Fact> {
    let told: Vec<MessageId> = facts.iter().filter_map(|fact| fact.event.message().cloned()).collect();
    let (mut is_hidden, mut saves) = (false, 0_u64);
    let moment = hide.as_ref().filter(|_| !facts.is_empty()).map(|(_, moment)| moment.index(facts.len()));
    for (at, fact) in facts.iter_mut().enumerate() {
        let Event::Noticed(Noticed { title, .. }) = &fact.event else { continue };
        match hide {
            Some((which, _)) if !is_hidden && !told.is_empty() && moment.is_some_and(|moment| at >= moment) => {
                fact.event = MessageHidden { message: which.get(&told).clone() }.into();
                is_hidden = true;
            }
            _ => {
                let (id, name) = (format!("art_{}", title.len() % 3), title.clone());
                let (kind, mime, path) = (ArtifactKind::File, "a/b".to_owned(), format!("out/{id}"));
                saves += 1;
                fact.event = ArtifactSaved { id: id.into(), kind, name, path, mime, size: saves, preview: None }.into();
            }
        }
    }
    facts
}

trait Message {
    fn message(&self) -> Option<&MessageId>;
}

impl Message for Event {
    fn message(&self) -> Option<&MessageId> {
        match self {
            Event::PromptQueued(e) => Some(&e.message),
            Event::StepStarted(e) => Some(&e.message),
            _ => None,
        }
    }
}

#[test]
fn pages_and_lists_are_what_all_facts_make() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let house = runtime.block_on(House::playing("codex", Pace::AtOnce));
    let config = ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() };
    let made = std::cell::Cell::new(0);
    let hide = prop::option::of(any::<(prop::sample::Index, prop::sample::Index)>());
    TestRunner::new(config)
        .run(&(runs::run(), hide), |(facts, hide)| {
            made.set(made.get() + 1);
            let facts = changed(facts, &hide);
            let name = format!("ses_{}", made.get());
            let (short, late) =
                (seed::renamed(facts.clone(), &name, 0), seed::renamed(facts, &format!("{name}_late"), 4096));
            runtime.block_on(async {
                for facts in [short, late] {
                    seeded(&house, &facts, 7).await;
                    compare(&house, &facts).await;
                }
            });
            Ok(())
        })
        .unwrap();
}

/// Long enough for answers that come in pieces, for tips that are kept, and for pages of many turns.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_session_is_told_in_pieces() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let facts = long("ses_long", 15, 300);
    seeded(&house, &facts, 512).await;
    compare(&house, &facts).await;
}
