//! From our own facts every dialect can be told: converting the golden facts gives the golden streams, to the byte.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tolka_dialect::{Dialect, Frames, Guess, Retelling};
use tolka_facts::Time;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// Every name in every dialect that there are golden streams of: one that is missing fails where it is read.
fn streams() -> Vec<(String, Dialect)> {
    let (mut names, mut dialects) = (BTreeSet::new(), BTreeSet::new());
    for entry in std::fs::read_dir(folder()).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let (name, dialect) = file.strip_suffix(".jsonl").unwrap().rsplit_once('.').unwrap();
        names.insert(name.to_owned());
        dialects.insert(dialect.parse::<Dialect>().unwrap());
    }
    assert_eq!(dialects.len(), Dialect::ALL.len(), "streams of only {dialects:?}");
    names.iter().flat_map(|name| dialects.iter().map(|dialect| (name.clone(), *dialect))).collect()
}

/// Enough of them where each is worked with often.
fn some_streams() -> impl Iterator<Item = (String, Dialect)> {
    let names = ["claude-rich", "codex-cancel", "kimi", "opencode-perm-rejected"];
    streams().into_iter().filter(move |(name, _)| names.contains(&name.as_str()))
}

fn stream(name: &str, dialect: Dialect) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.{dialect}.jsonl"))).unwrap()
}

fn retell(from: Dialect, to: Dialect, pieces: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut retelling = Retelling::new(from, to, Time::from_millis(0));
    let mut frames = Frames::default();
    for piece in pieces {
        retelling.feed(&piece, &mut frames).unwrap();
    }
    retelling.finish(&mut frames).unwrap();
    frames.iter().flat_map(|frame| [frame, b"\n"].concat()).collect()
}

fn assert_same(told: &[u8], golden: &[u8], place: &str) {
    let (told, golden) = (String::from_utf8_lossy(told), String::from_utf8_lossy(golden));
    for (at, (told, golden)) in (1..).zip(told.lines().zip(golden.lines())) {
        assert_eq!(told, golden, "{place}, frame {at}");
    }
    assert_eq!(told.lines().count(), golden.lines().count(), "{place}: frames");
}

#[test]
fn facts_are_converted_to_the_golden_streams() {
    for (name, to) in streams() {
        let told = retell(Dialect::Tolka, to, std::iter::once(stream(&name, Dialect::Tolka)));
        assert_same(&told, &stream(&name, to), &format!("{name} in {to}"));
    }
}

#[test]
fn a_conversion_does_not_depend_on_how_the_bytes_are_cut() {
    for (name, from) in some_streams() {
        let golden = stream(&name, from);
        let mut framed = Vec::new();
        golden
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .for_each(|line| from.write_frame(line, &mut framed));
        let whole = retell(from, Dialect::Tolka, std::iter::once(framed.clone()));
        let bare = retell(from, Dialect::Tolka, std::iter::once(golden));
        assert_same(&bare, &whole, &format!("{name} from {from}, bare"));
        let pieces = framed.chunks(97).map(<[u8]>::to_vec);
        assert_same(&retell(from, Dialect::Tolka, pieces), &whole, &format!("{name} from {from}, in pieces"));
    }
}

/// Names of packets tell three families apart, and their tables have them. An error alone could be anybody's.
#[test]
fn the_dialect_of_every_golden_stream_is_guessed() {
    for (name, dialect) in streams() {
        let golden = stream(&name, dialect);
        let family = dialect.name().trim_end_matches("-current").trim_end_matches("-documented");
        let mut frames = golden.split(|byte| *byte == b'\n').filter(|frame| !frame.is_empty());
        let is_error_alone = frames.all(|frame| frame.starts_with(br#"{"type":"error""#));
        let expected = Some(family).filter(|_| !is_error_alone);
        let whole = Guess::default().feed(&golden).map(Dialect::name);
        assert_eq!(whole, expected, "{name} in {dialect}");
        let mut guess = Guess::default();
        let in_pieces = golden.chunks(30).find_map(|piece| guess.feed(piece)).map(Dialect::name);
        assert_eq!(in_pieces, expected, "{name} in {dialect}, in pieces");
    }
}

/// Whatever a stream was, what it becomes is well told.
#[test]
fn what_is_converted_holds_to_the_rules() {
    let mut broken = Vec::new();
    for (name, from) in some_streams() {
        for to in Dialect::ALL {
            let told = retell(from, to, std::iter::once(stream(&name, from)));
            let mut framed = Vec::new();
            told.split(|byte| *byte == b'\n')
                .filter(|frame| !frame.is_empty())
                .for_each(|frame| to.write_frame(frame, &mut framed));
            let (mut judge, mut found) = (to.judge(), Vec::new());
            judge.feed(&framed, &mut found);
            judge.finish(&mut found);
            broken.extend(found.iter().take(3).map(|finding| format!("{name} from {from} to {to}: {finding}")));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
