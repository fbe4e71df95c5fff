//! Everything that the documents name can be told and can be read. One session in which all of it happens is told in
//! every dialect and held against a stream that a person has read (`tests/golden/showcase.*`); each name of each
//! document must stand in it, and must be understood when it is read back.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

mod named;
mod results;
mod story;

use std::collections::HashMap;

use serde_json::Value;
use tolka_dialect::{Dialect, Frames};
use tolka_facts::{Event, Fact, NoBlobs, Tip};

use named::{READ_ONLY, everything, stands_in};

fn told(dialect: Dialect, facts: &[Fact]) -> Vec<String> {
    let (mut encoder, mut tip, mut frames) = (dialect.encoder(), Tip::default(), Frames::default());
    for fact in facts {
        tip.apply(fact);
        encoder.encode(fact, &tip, &NoBlobs, &mut frames);
    }
    frames.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
}

/// The session's stream, then the server's.
fn showcase(dialect: Dialect) -> Vec<String> {
    let (session, server) = story::story();
    [told(dialect, &session), told(dialect, &server)].concat()
}

fn stream(dialect: Dialect, frames: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| dialect.write_frame(frame.as_bytes(), &mut bytes));
    bytes
}

fn parsed(frames: &[String]) -> Vec<Value> {
    frames.iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
}

#[test]
fn the_showcase_is_told_as_its_golden_streams_say() {
    let mut wrong = Vec::new();
    for dialect in Dialect::ALL {
        let path = format!("{}/../../tests/golden/showcase.{dialect}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let told: String = showcase(dialect).iter().map(|frame| format!("{frame}\n")).collect();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &told).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != told {
            wrong.push(dialect.name());
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ from their golden streams; UPDATE_GOLDEN=1 writes them anew",
        wrong.join(", ")
    );
}

#[test]
fn everything_that_a_document_names_is_told() {
    let mut missing = Vec::new();
    let told = Dialect::ALL.map(|dialect| (dialect, showcase(dialect)));
    let told: HashMap<_, _> = told.into_iter().map(|(dialect, frames)| (dialect, parsed(&frames))).collect();
    for named in everything().filter(|named| READ_ONLY.iter().all(|(name, _)| *name != named.name)) {
        let is_told = told[&named.dialect].iter().any(|frame| stands_in(frame, named.path, named.name));
        if !is_told {
            missing.push(format!("document {}: {} = {}", named.document, named.path, named.name));
        }
    }
    assert!(missing.is_empty(), "no frame has\n  {}", missing.join("\n  "));
}

/// What is named must make a difference: without the frames that have it, less is heard; or else, where others say the
/// same, it is understood when nobody else says it.
#[test]
fn everything_that_a_document_names_is_read() {
    let mut unread = Vec::new();
    for named in everything() {
        let mut frames = showcase(named.dialect);
        if READ_ONLY.iter().any(|(name, _)| *name == named.name) {
            // Spoken by others: put it where ours stands.
            frames.iter_mut().for_each(|frame| *frame = frame.replace("\"end_turn\"", &format!("\"{}\"", named.name)));
        }
        let has_it = |frame: &String| stands_in(&serde_json::from_str(frame).unwrap(), named.path, named.name);
        let (with, without): (Vec<_>, Vec<_>) = frames.iter().cloned().partition(has_it);
        let (all, alone) = (heard(named.dialect, &frames), heard(named.dialect, &with));
        let is_foreign = |event: &Event| matches!(event, Event::Foreign(_));
        let foreign = all.iter().find(|event| is_foreign(event));
        assert_eq!(foreign, None, "{} does not understand its own telling", named.dialect);
        let makes_a_difference = heard(named.dialect, &without) != all;
        let is_understood = makes_a_difference || !alone.iter().all(is_foreign) || is_edge(named.name);
        if with.is_empty() || !is_understood {
            unread.push(format!("document {}: {} = {}", named.document, named.path, named.name));
        }
    }
    assert!(unread.is_empty(), "nothing is read from\n  {}", unread.join("\n  "));
}

fn heard(dialect: Dialect, frames: &[String]) -> Vec<Event> {
    let (mut decoder, mut heard) = (dialect.decoder(), Vec::new());
    decoder.feed(&stream(dialect, frames), &mut heard).unwrap();
    decoder.finish(&mut heard).unwrap();
    heard.into_iter().map(|heard| heard.draft.event).collect()
}

/// Frames that say where a segment begins or ends tell no fact of their own.
fn is_edge(name: &str) -> bool {
    ["chat", "reasoning", "output"]
        .iter()
        .any(|segment| name.strip_prefix(segment).is_some_and(|edge| matches!(edge, "_start" | "_end")))
}

#[test]
fn the_judge_has_nothing_against_the_showcase() {
    for dialect in Dialect::ALL {
        let (mut judge, mut found) = (dialect.judge(), Vec::new());
        let (session, server) = story::story();
        judge.feed(&stream(dialect, &told(dialect, &session)), &mut found);
        judge.feed(&stream(dialect, &told(dialect, &server)), &mut found);
        judge.finish(&mut found);
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(shown.is_empty(), "{dialect}:\n  {}", shown.join("\n  "));
    }
}

#[test]
fn every_table_of_carriage_has_a_row_for_every_event() {
    for dialect in Dialect::ALL {
        let rows: Vec<&str> = dialect.carriage().iter().map(|(name, _)| *name).collect();
        assert_eq!(rows, Event::NAMES, "{dialect}");
    }
}

/// The table is what docs/dialects.md is made of; it must be what the encoder does.
#[test]
fn what_a_table_says_is_told_is_told_and_nothing_else_is() {
    for dialect in Dialect::ALL {
        let (session, server) = story::story();
        for facts in [session, server] {
            let (mut encoder, mut tip) = (dialect.encoder(), Tip::default());
            for fact in &facts {
                let mut frames = Frames::default();
                tip.apply(fact);
                encoder.encode(fact, &tip, &NoBlobs, &mut frames);
                let (_, carriage) =
                    dialect.carriage().iter().find(|(name, _)| *name == fact.event.name()).expect("a row for each");
                let never = carriage.frames().is_empty();
                assert!(!never || frames.is_empty(), "{dialect} tells {} and its table says never", fact.event.name());
            }
        }
    }
}
