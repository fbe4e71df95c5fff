//! `tolka convert`: one dialect in, another out.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use tolka_dialect::{Carriage, Dialect, Frames, Retelling};
use tolka_facts::Time;

use crate::cli::{code, stderr, stdout};
use crate::server::tolka;

pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(path)
}

/// A golden stream as it stands in a file or on a wire.
pub(crate) fn golden(name: &str, dialect: Dialect) -> Vec<u8> {
    let frames = std::fs::read_to_string(file(&format!("golden/{name}.{dialect}.jsonl"))).unwrap();
    let mut stream = Vec::new();
    frames.lines().for_each(|frame| dialect.write_frame(frame.as_bytes(), &mut stream));
    stream
}

fn start(args: &[&str]) -> Child {
    let mut command = tolka();
    command.arg("convert").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn convert(args: &[&str], input: &[u8]) -> Output {
    let mut child = start(args);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    // A command that does not want to read on closes the pipe.
    let _ = writing.join().unwrap();
    output
}

#[test]
fn facts_become_the_golden_stream_of_every_dialect() {
    for name in ["demo", "claude-perm", "copilot"] {
        let facts = golden(name, Dialect::Tolka);
        for to in Dialect::ALL {
            let told = convert(&["--from", "tolka", "--to", to.name()], &facts);
            assert_eq!(code(&told), 0, "{}", stderr(&told));
            let golden = golden(name, to);
            assert!(told.stdout == golden, "{name} in {to}: {}", stdout(&told));
        }
    }
}

#[test]
fn a_recording_of_an_agent_is_told_in_every_dialect() {
    let recording = file("data/recordings/acp/claude-rich.jsonl");
    for to in Dialect::ALL {
        let told = tolka().args(["convert", "--from", "acp", "--to", to.name()]).arg(&recording).output().unwrap();
        assert_eq!(code(&told), 0, "{}", stderr(&told));
        let judged = crate::check::check(&["--dialect", to.name(), "-"], &told.stdout);
        assert_eq!(code(&judged), 0, "in {to}: {}", stdout(&judged));
    }
}

#[test]
fn frames_come_while_the_stream_is_still_open() {
    let facts = golden("demo", Dialect::Tolka);
    let half = facts.len() / 2;
    for to in Dialect::ALL {
        let mut retelling = Retelling::new(Dialect::Tolka, to, Time::from_millis(0));
        let mut frames = Frames::default();
        retelling.feed(&facts[..half], &mut frames).unwrap();
        let mut expected = Vec::new();
        frames.iter().for_each(|frame| to.write_frame(frame, &mut expected));
        assert!(!expected.is_empty(), "{to}");

        let mut child = start(&["--from", "tolka", "--to", to.name()]);
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        stdin.write_all(&facts[..half]).unwrap();
        let mut told = vec![0; expected.len()];
        stdout.read_exact(&mut told).unwrap();
        assert_eq!(String::from_utf8_lossy(&told), String::from_utf8_lossy(&expected), "in {to}");
        stdin.write_all(&facts[half..]).unwrap();
        drop(stdin);
        stdout.read_to_end(&mut told).unwrap();
        assert!(told == golden("demo", to), "the rest in {to}");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn what_cannot_be_told_is_counted_with_its_reason() {
    let facts = golden("demo", Dialect::Tolka);
    let onyx: Dialect = "onyx".parse().unwrap();
    let told = convert(&["--from", "tolka", "--to", "onyx"], &facts);
    let row = onyx.carriage().iter().find(|(event, _)| *event == "step_started").unwrap();
    let Carriage::Never(why) = row.1 else { panic!("onyx has no packet for the start of a step: {row:?}") };
    let expected = format!("not told in onyx: 9 step_started ({})", why.trim_end_matches('.'));
    assert!(stderr(&told).lines().any(|line| line == expected), "{expected}\n{}", stderr(&told));
    let quiet = convert(&["--from", "tolka", "--to", "onyx", "--quiet"], &facts);
    assert_eq!((stderr(&quiet).as_str(), quiet.stdout), ("", told.stdout));
    let same = convert(&["--from", "tolka", "--to", "tolka"], &facts);
    assert_eq!((stderr(&same).as_str(), same.stdout), ("", facts));
}

#[test]
fn an_event_that_cannot_be_read_is_left_out_and_told() {
    let facts = golden("demo", Dialect::Tolka);
    let mut lines: Vec<&[u8]> = facts.split_inclusive(|byte| *byte == b'\n').collect();
    lines.insert(2, b"{\"v\":1,\"session\":\n");
    lines.insert(4, b"{\"type\":\"no fact\"}\n");
    let told = convert(&["--from", "tolka", "--to", "opencode"], &lines.concat());
    assert_eq!(code(&told), 1);
    assert!(told.stdout == golden("demo", "opencode".parse().unwrap()), "the rest is told");
    let said = stderr(&told);
    let said: Vec<&str> = said.lines().filter(|line| !line.starts_with("not told")).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].starts_with("left out: line 3: "), "{said:?}");
    assert!(said[1].starts_with("left out: line 5: "), "{said:?}");
    assert_eq!(said[2], "2 events could not be read as tolka and were left out");
}

#[test]
fn the_dialect_is_guessed_and_said() {
    for from in Dialect::ALL {
        let told = convert(&["--to", "tolka"], &golden("demo", from));
        assert_eq!(code(&told), 0, "{}", stderr(&told));
        let family = from.name().trim_end_matches("-current").trim_end_matches("-documented");
        assert_eq!(stderr(&told).lines().next(), Some(format!("read as {family}").as_str()), "{from}");
    }
    let recording = file("data/recordings/acp/codex.jsonl");
    let told = tolka().args(["convert", "--to", "tolka"]).arg(recording).output().unwrap();
    assert_eq!(stderr(&told).lines().next(), Some("read as acp"));
    let unclear = convert(&["--to", "tolka"], b"data: {\"type\":\"error\"}\n\n");
    assert_eq!((code(&unclear), stdout(&unclear).as_str()), (2, ""));
    assert!(stderr(&unclear).contains("say it with --from"), "{}", stderr(&unclear));
}

#[test]
fn what_cannot_be_read_at_all_is_another_exit_code() {
    let missing = tolka().args(["convert", "--from", "acp", "--to", "onyx", "missing.jsonl"]).output().unwrap();
    assert_eq!((code(&missing), stdout(&missing).as_str()), (2, ""));
    assert!(stderr(&missing).contains("missing.jsonl"), "{}", stderr(&missing));
    let empty = convert(&["--from", "onyx", "--to", "tolka"], b"hello\nworld\n");
    assert_eq!((code(&empty), stderr(&empty).as_str()), (2, "tolka: there is no event in -\n"));
    let mut child = start(&["--from", "tolka", "--to", "tolka", "--quiet"]);
    drop(child.stdout.take());
    let _ = child.stdin.take().unwrap().write_all(&golden("demo", Dialect::Tolka));
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "a reader that has gone is no fault");
}
