//! What the real server sent, read and told again.

use std::fs;

use serde_json::Value;
use tolka_facts::event::{Finish, Stop, Usage};
use tolka_facts::{Block, Draft, Event, Role, ToolStatus, View};

use crate::support::{PROFILES, Run, data, decode, sse};
use crate::transcript::{Piece, Transcript, plain};

const RECORDINGS: [&str; 9] = [
    "abort",
    "error-401",
    "error-500-retry",
    "full",
    "full.global",
    "longbash",
    "perm-once",
    "question",
    "session-ops",
];

fn recording(name: &str) -> Vec<u8> {
    fs::read(data("recordings/opencode").join(format!("{name}.sse"))).unwrap()
}

/// The stream without the events of other sessions.
fn of_session(stream: &[u8], session: &str) -> Vec<u8> {
    let text = std::str::from_utf8(stream).unwrap();
    let mine = |line: &&str| !line.contains("\"sessionID\"") || line.contains(session);
    let frames: Vec<Vec<u8>> =
        text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(mine).map(Vec::from).collect();
    sse(&frames)
}

fn read(name: &str) -> Run {
    Run::stamped(decode(&recording(name)))
}

fn count(run: &Run, name: &str) -> usize {
    run.facts.iter().filter(|fact| fact.event.name() == name).count()
}

#[test]
fn every_recording_decodes_and_is_the_same_when_told_again() {
    for name in RECORDINGS {
        let stream = match name {
            "session-ops" => of_session(&recording(name), "ses_e23664658ffegvyZW6Qar3Za16"),
            _ => recording(name),
        };
        let run = Run::stamped(decode(&stream));
        let transcript = Transcript::of(&run);
        assert!(!transcript.messages.is_empty(), "{name}");
        for profile in PROFILES {
            let again = Run::stamped(decode(&run.stream(profile)));
            assert_eq!(Transcript::of(&again), transcript, "{name} in {profile:?}");
        }
    }
}

#[test]
fn a_recording_decodes_the_same_byte_by_byte() {
    use tolka_dialect::Decoder as _;
    let stream = recording("perm-once");
    let (mut decoder, mut drafts) = (tolka_dialect::opencode::Decoder::default(), Vec::new());
    stream.iter().for_each(|byte| decoder.feed(&[*byte], &mut drafts).unwrap());
    decoder.finish(&mut drafts).unwrap();
    assert_eq!(crate::support::drafts(drafts), decode(&stream));
}

/// The server's own list of messages, brought to the form of a transcript.
fn listed() -> Vec<(String, Role, Vec<Piece>)> {
    let file = fs::read(data("recordings/opencode/full.messages.json")).unwrap();
    let messages: Vec<Value> = serde_json::from_slice(&file).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let piece = |role: Role, part: &Value| match part["type"].as_str()? {
        "text" if role == Role::User => Some(Piece::Content(Block::text(text(&part["text"])))),
        "text" => Some(Piece::Text(text(&part["text"]))),
        "reasoning" => Some(Piece::Thought(text(&part["text"]))),
        "tool" => {
            let state = &part["state"];
            let is_error = state["status"] == "error";
            Some(Piece::Tool {
                call: text(&part["callID"]),
                name: text(&part["tool"]),
                status: if is_error { ToolStatus::Failed } else { ToolStatus::Completed },
                title: text(&state["title"]),
                input: state["input"].to_string(),
                result: text(if is_error { &state["error"] } else { &state["output"] }),
            })
        }
        _ => None,
    };
    let message = |message: &Value| {
        let role = if message["info"]["role"] == "user" { Role::User } else { Role::Agent };
        let parts = message["parts"].as_array().unwrap().iter().filter_map(|part| piece(role, part)).collect();
        (text(&message["info"]["id"]), role, parts)
    };
    messages.iter().map(message).collect()
}

#[test]
fn the_transcript_is_what_the_server_lists() {
    let run = read("full");
    let transcript = Transcript::of(&run);
    let told: Vec<_> =
        transcript.messages.iter().map(|said| (said.id.clone(), said.role, said.parts.clone())).collect();
    assert_eq!(told, listed());
    assert_eq!(transcript.stops, [Stop::EndTurn]);
    assert_eq!(transcript.title, "Mock session title");
    assert_eq!(count(&run, "step_started"), count(&run, "step_ended"));
    let mut view = View::default();
    run.facts.iter().for_each(|fact| view.apply(fact));
    assert_eq!(view.tip.plan.len(), 2);
    // A hundred in and ten out for each step.
    assert_eq!(view.tip.head.tokens.output, 10 * count(&run, "step_ended") as u64);
    assert!(view.tip.is_idle());
}

#[test]
fn the_global_feed_tells_what_the_event_feed_does() {
    let without_raw = |mut draft: Draft| {
        draft.raw = None;
        draft
    };
    let global: Vec<_> = decode(&recording("full.global")).into_iter().map(without_raw).collect();
    let event: Vec<_> = decode(&recording("full")).into_iter().map(without_raw).collect();
    assert!(global.len() > 5);
    assert_eq!(global[..], event[..global.len()]);
}

#[test]
fn an_abort_is_a_cancelled_turn() {
    let run = read("abort");
    let transcript = Transcript::of(&run);
    assert_eq!(transcript.stops, [Stop::Cancelled]);
    assert_eq!(transcript.texts(), ["word0 word1 word2 word3 word4 "]);
    assert_eq!(count(&run, "failed"), 0);
    assert!(run.facts.iter().any(|fact| matches!(&fact.event, Event::StepEnded(e) if e.finish == Finish::Cancelled)));
}

#[test]
fn a_refused_key_is_a_failed_turn_and_a_retried_one_is_not() {
    let run = read("error-401");
    assert_eq!(Transcript::of(&run).stops, [Stop::Failed]);
    assert_eq!(count(&run, "failed"), 1);
    let failed = run.facts.iter().find_map(|fact| match &fact.event {
        Event::Failed(e) => Some(e.clone()),
        _ => None,
    });
    let failed = failed.unwrap();
    assert_eq!((failed.message.as_str(), failed.code, failed.retryable), ("mock error 401", Some(401), false));
    assert!(failed.details.unwrap().value()["responseBody"].is_string());

    let run = read("error-500-retry");
    assert_eq!(Transcript::of(&run).stops, [Stop::EndTurn]);
    assert_eq!(count(&run, "failed"), 0);
    let retries: Vec<_> = Transcript::of(&run).beside.into_iter().filter(|line| line.starts_with("attempt")).collect();
    assert_eq!(retries, ["attempt 1 in 2013 ms: mock error 500", "attempt 2 in 4800 ms: mock error 500"]);
}

#[test]
fn live_output_is_told_in_pieces() {
    let run = read("longbash");
    let pieces: Vec<_> = run
        .facts
        .iter()
        .filter_map(|fact| match &fact.event {
            Event::OutputAppended(e) => Some(e.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(pieces, ["tick 1\n", "tick 2\n", "tick 3\n", "tick 4\n", "tick 5\n"]);
    assert_eq!(Transcript::of(&run).tools(), [("bash", ToolStatus::Completed)]);
    // Pending, running, completed: what did not change is not told again.
    assert_eq!(count(&run, "tool_changed"), 3);
}

#[test]
fn permissions_and_questions_are_asked_and_answered() {
    let run = read("perm-once");
    assert_eq!((count(&run, "permission_asked"), count(&run, "permission_answered")), (1, 1));
    let run = read("question");
    assert_eq!((count(&run, "question_asked"), count(&run, "question_answered")), (1, 1));
    assert!(Transcript::of(&run).beside.iter().any(|line| line.contains("[[\"Red\"]]")));
}

/// A feed of two sessions: a rename, a shell command, a compaction, a removed message and a deletion in
/// the one; the other is a fork, whose history is copied without ever being busy.
#[test]
fn what_is_done_to_sessions_is_told() {
    let stream = recording("session-ops");
    let fork = Run::stamped(decode(&of_session(&stream, "ses_e23664051ffeTgixjNY5AFz0JQ")));
    let copied = Transcript::of(&fork);
    assert_eq!(copied.title, "Mock session title (fork #1)");
    assert_eq!(copied.tools(), [("write", ToolStatus::Completed)]);
    assert_eq!(count(&fork, "step_ended"), 1);
    let prompt = copied.messages.iter().find(|said| said.role == Role::User).unwrap();
    assert!(matches!(&prompt.parts[..], [Piece::Content(block)] if plain(block) == "SCRIPT:write go"));

    let first = Run::stamped(decode(&of_session(&stream, "ses_e23664658ffegvyZW6Qar3Za16")));
    let transcript = Transcript::of(&first);
    assert_eq!(transcript.title, "Renamed");
    assert_eq!(transcript.stops, [Stop::EndTurn; 3]);
    assert_eq!(transcript.texts(), ["written"]);
    assert_eq!(transcript.tools(), [("write", ToolStatus::Completed), ("bash", ToolStatus::Completed)]);
    assert_eq!((count(&first, "compaction_started"), count(&first, "compaction_ended")), (1, 1));
    let summary = first.facts.iter().find_map(|fact| match &fact.event {
        Event::CompactionEnded(ended) => ended.summary.clone().zip(ended.usage),
        _ => None,
    });
    let usage = Usage { input: 100, output: 10, ..Usage::default() };
    assert_eq!(
        summary,
        Some(("Mock session title".into(), usage)),
        "what the server's mock says to all that it is asked"
    );
    assert_eq!(transcript.messages.iter().filter(|said| said.hidden).count(), 1);
    assert!(matches!(first.facts.last().unwrap().event, Event::SessionDeleted(_)));

    // Interleaved, each session's drafts are the same as alone.
    let interleaved = decode(&stream);
    let count = |name: &str| interleaved.iter().filter(|draft| draft.event.name() == name).count();
    assert_eq!(count("turn_started"), 4);
    assert_eq!(count("session_created"), 2);
}
