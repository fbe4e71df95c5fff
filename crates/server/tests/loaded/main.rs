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
mod total;
mod whole;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tolka_agent::Pace;
use tolka_facts::event::{
    ArtifactKind, ArtifactSaved, Command, CommandsSet, MessageHidden, Noticed, Rewound, Unrewound,
};
use tolka_facts::{Event, Fact, MessageId, Tip};

use crate::house::House;
use crate::seed::{long, seeded, seeded_after};
use crate::total::{expected, total};
use crate::whole::Whole;

/// One that has begun: it takes up sessions with an open turn when it starts, and these are to stay as they are.
async fn house() -> House {
    let house = House::playing("codex", Pace::AtOnce).await;
    got(&house, "/api/dialogs").await;
    house
}

async fn got(house: &House, path: &str) -> Value {
    let answer = house.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

/// Everything that the two families load, with pages of these sizes, and the artifacts of a view, against folds over all
/// facts.
async fn compare(house: &House, facts: &[Fact], limits: &[usize]) {
    let Some(session) = facts.first().map(|fact| fact.session.to_string()) else { return };
    let whole = Whole::of(facts);
    assert_eq!(got(house, &format!("/api/build/sessions/{session}/messages")).await, whole.messages());
    assert_eq!(got(house, &format!("/api/build/sessions/{session}/artifacts")).await, whole.artifacts());
    let results = got(house, &format!("/api/dialogs/{session}/tool-results")).await;
    let results = results.as_array().unwrap().iter();
    let results: Vec<Value> = results.map(|row| json!([row["tool_call_id"], row["timestamp"]])).collect();
    assert_eq!(results, whole.results());
    for &limit in limits {
        let (mut events, mut before) = (Vec::new(), None);
        loop {
            let cursor = before.map_or(String::new(), |before: u64| format!("&before={before}"));
            let page = got(house, &format!("/api/dialogs/{session}/history?limit={limit}{cursor}")).await;
            let expected = serde_json::to_value(whole.history.page(limit, before)).unwrap();
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
    for before in (0..=facts.len() as u64).rev().take(20) {
        let page = got(house, &format!("/api/dialogs/{session}/history?limit=2&before={before}")).await;
        let expected = serde_json::to_value(whole.history.page(2, Some(before))).unwrap();
        assert_eq!(page, expected, "before {before}");
    }
    // At the end: whoever asks for a view wakes the session, and a turn that was open is told to have ended.
    for at in [1, facts.len() / 2, facts.len() - 1, facts.len()] {
        let view = got(house, &format!("/v1/sessions/{session}/view?at={at}&turns=1")).await;
        assert_eq!(view["artifacts"], whole::artifacts_at(&facts[..at]), "at {at}");
    }
}

/// What is done to a session beside what its run tells.
#[derive(Debug, Clone)]
enum Undo {
    Hide,
    Rewind,
    RewindTwice,
    RewindAndBack,
}

fn undo() -> impl Strategy<Value = (Undo, Index, Index)> {
    let rewind = prop_oneof![Just(Undo::Rewind), Just(Undo::RewindTwice), Just(Undo::RewindAndBack)];
    let how = prop_oneof![Just(Undo::Hide), rewind];
    (how, any::<Index>(), any::<Index>())
}

/// A run with artifacts in the place of notices, and with one of its messages undone at a moment of it.
fn changed(mut facts: Vec<Fact>, undo: Option<(Undo, Index, Index)>) -> Vec<Fact> {
    let mut saves = 0_u64;
    for fact in &mut facts {
        let Event::Noticed(Noticed { title, .. }) = &fact.event else { continue };
        let (id, name) = (format!("art_{}", title.len() % 3), title.clone());
        let (kind, mime, path) = (ArtifactKind::File, "a/b".to_owned(), format!("out/{id}"));
        saves += 1;
        fact.event = ArtifactSaved { id: id.into(), kind, name, path, mime, size: saves, preview: None }.into();
    }
    // No message is hidden twice: a mark keeps one place.
    let is_hidden = |message: &MessageId| {
        facts.iter().any(|fact| matches!(&fact.event, Event::MessageHidden(hidden) if hidden.message == *message))
    };
    let told = facts.iter().filter_map(|fact| fact.event.message().cloned());
    let told: Vec<MessageId> = told.filter(|message| !is_hidden(message)).collect();
    let Some((how, which, moment)) = undo.filter(|_| !told.is_empty()) else { return facts };
    let message = which.get(&told).clone();
    // Only while no turn runs is anything taken back; and a turn that starts later would hide it for good first.
    let last = facts.iter().rposition(|fact| matches!(fact.event, Event::TurnStarted(_))).unwrap_or(0);
    let idle: Vec<usize> = idle(&facts).into_iter().filter(|at| *at > last).collect();
    if idle.is_empty() && !matches!(how, Undo::Hide) {
        return facts;
    }
    let at = if matches!(how, Undo::Hide) { moment.index(facts.len() + 1) } else { *moment.get(&idle) };
    let started: Vec<u64> = seed::starts(&facts[..at]).into_iter().flatten().collect();
    let checkpoint = || "c".to_owned();
    let from = if started.is_empty() { 0 } else { *which.get(&started) };
    let rewound = || Rewound::to(message.clone(), from, checkpoint());
    let events: Vec<Event> = match how {
        Undo::Hide => vec![MessageHidden { message }.into()],
        Undo::Rewind => vec![rewound().into()],
        Undo::RewindTwice => vec![rewound().into(), rewound().into()],
        Undo::RewindAndBack => vec![rewound().into(), Unrewound::to(checkpoint()).into()],
    };
    let stamped = |event: Event| Fact { event, ..facts[0].clone() };
    let undone: Vec<Fact> = events.into_iter().map(stamped).collect();
    facts.splice(at..at, undone);
    facts
}

/// How many facts there are when no turn runs.
fn idle(facts: &[Fact]) -> Vec<usize> {
    let mut tip = Tip::default();
    let after = facts.iter().zip(1..).filter_map(|(fact, at)| {
        tip.apply(fact);
        tip.is_idle().then_some(at)
    });
    std::iter::once(0).chain(after).collect()
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
    let house = runtime.block_on(house());
    let config = ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() };
    let made = std::cell::Cell::new(0);
    TestRunner::new(config)
        .run(&(runs::run(), prop::option::of(undo()), any::<Index>()), |(facts, undo, cut)| {
            made.set(made.get() + 1);
            let name = format!("ses_{}", made.get());
            let short = changed(facts, undo);
            // So that counts are kept at a moment of it, which more is told after.
            let late = seed::renamed(short.clone(), &format!("{name}_late"), 512);
            let short = seed::renamed(short, &name, 0);
            runtime.block_on(async {
                seeded(&house, &short, 7).await;
                compare(&house, &short, &[1, 2, 5, 100_000]).await;
                let there = late.len() - cut.index(late.len() - 512);
                seeded(&house, &late[..there], 7).await;
                assert_eq!(total(&house, &late[..there]).await, expected(&late[..there]));
                seeded_after(&house, &late, there, 7).await;
                assert_eq!(total(&house, &late).await, expected(&late));
            });
            Ok(())
        })
        .unwrap();
}

/// Long enough for answers that come in pieces, for tips that are kept, and for pages of many turns.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_session_is_told_in_pieces() {
    let house = house().await;
    let facts = long("ses_long", 15, 300);
    seeded(&house, &facts, 512).await;
    compare(&house, &facts, &[4, 100_000]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_history_has_a_thousand_messages_at_most() {
    let house = house().await;
    let facts = long("ses_capped", 502, 3);
    seeded(&house, &facts, 512).await;
    let page = got(&house, "/api/dialogs/ses_capped/history?limit=1000000").await;
    let whole = Whole::of(&facts).history;
    assert!(whole.said_before(u64::MAX) > 1000);
    assert_eq!(page["has_more"], true);
    assert_eq!(page, serde_json::to_value(whole.page(1000, None)).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_from_the_past_has_the_commands_of_then() {
    let house = house().await;
    let mut facts = long("ses_commands", 1, 8);
    for (at, name) in [(3, "plan"), (6, "build")] {
        let command = Command { name: name.into(), description: String::new(), hint: None };
        facts[at].event = CommandsSet { commands: vec![command] }.into();
    }
    seeded(&house, &facts, 512).await;
    for (at, name) in [(3, Value::Null), (4, json!("plan")), (6, json!("plan")), (7, json!("build"))] {
        let view = got(&house, &format!("/v1/sessions/ses_commands/view?at={at}")).await;
        assert_eq!(view["commands"][0]["name"], name, "at {at}");
    }
}
