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

use named::{Named, READ_ONLY, everything, stands_in};

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
    let told: HashMap<_, _> = Dialect::ALL.map(|dialect| (dialect, parsed(&showcase(dialect)))).into();
    for named in everything().filter(|named| READ_ONLY.iter().all(|(name, ..)| *name != named.name)) {
        let is_told = told[&named.dialect].iter().any(|frame| stands_in(frame, named.path, named.name));
        if !is_told {
            missing.push(format!("document {}: {} = {}", named.document, named.path, named.name));
        }
    }
    assert!(missing.is_empty(), "no frame has\n  {}", missing.join("\n  "));
}

/// What is named must make a difference: where another word stands in its place, something else is heard. A decoder that
/// reads a frame and not the word in it does not pass.
#[test]
fn everything_that_a_document_names_is_read() {
    let mut unread = Vec::new();
    let told: HashMap<_, _> = Dialect::ALL.map(|dialect| (dialect, parsed(&showcase(dialect)))).into();
    for named in everything() {
        let mut frames = told[&named.dialect].clone();
        if let Some((_, instead_of, _)) = READ_ONLY.iter().find(|(name, ..)| *name == named.name) {
            // Spoken by others: put it where ours stands.
            frames.iter_mut().for_each(|frame| replace(frame, key(named.path), instead_of, named.name));
        }
        if named.path == "sessionUpdate" {
            // The document knows a packet by it where there is no `type`.
            frames.iter_mut().for_each(|frame| drop(frame.as_object_mut().unwrap().remove("type")));
        }
        let mut spoilt = frames.clone();
        spoilt.iter_mut().for_each(|frame| replace(frame, key(named.path), named.name, other_word(named)));
        let is_there = spoilt != frames;
        if !is_there || heard(named.dialect, &spoilt) == heard(named.dialect, &frames) {
            unread.push(format!("document {}: {} = {}", named.document, named.path, named.name));
        }
    }
    assert!(unread.is_empty(), "nothing is read from\n  {}", unread.join("\n  "));
}

/// Another word that can stand there. One that nobody knows would be taken for the usual one, which may be the one named.
fn other_word(named: Named) -> &'static str {
    let mut others = everything().filter(|other| (other.dialect, other.path) == (named.dialect, named.path));
    match named.name {
        "success" => "error",
        // It is read as an end like any other.
        "stop_sequence" => "max_tokens",
        name => others.find(|other| other.name != name).map_or("another-word", |other| other.name),
    }
}

fn key(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path).trim_end_matches("[]")
}

/// Puts a word in the place of another wherever it stands under this key: some wires say a thing twice.
fn replace(value: &mut Value, key: &str, old: &str, new: &str) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == key && text == old => *text = new.to_owned(),
                    value => replace(value, key, old, new),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, key, old, new)),
        _ => {}
    }
}

/// What is heard, without the frames as they came.
fn heard(dialect: Dialect, frames: &[Value]) -> Vec<Event> {
    let frames: Vec<String> = frames.iter().map(Value::to_string).collect();
    let (mut decoder, mut heard) = (dialect.decoder(), Vec::new());
    // A word that its document does not know may be refused; that is a difference too.
    let read = decoder.feed(&stream(dialect, &frames), &mut heard).and_then(|()| decoder.finish(&mut heard));
    if read.is_err() {
        return Vec::new();
    }
    heard.into_iter().map(|heard| heard.draft.event).collect()
}

#[test]
fn a_dialect_understands_its_own_telling() {
    for dialect in Dialect::ALL {
        let heard = heard(dialect, &parsed(&showcase(dialect)));
        assert!(!heard.is_empty(), "{dialect}");
        assert_eq!(heard.iter().find(|event| matches!(event, Event::Foreign(_))), None, "{dialect}");
    }
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
