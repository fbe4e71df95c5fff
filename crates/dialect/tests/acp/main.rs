//! The `acp` dialect against the protocol's own schema, real agents' conversations and its invariants.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::needless_pass_by_value, reason = "messages are written where they are used")]

mod carriage;
mod decode;
mod encode;
mod faults;
mod many;
mod properties;
mod recordings;
mod schema;
mod talks;
mod valid;
mod words;

/// The runs that OpenCode's tests are made of: nothing in them is OpenCode's.
#[path = "../opencode/runs.rs"]
mod runs;
#[allow(dead_code, reason = "only what concerns runs is used here")]
#[path = "../opencode/support.rs"]
mod support;

use serde_json::Value;
use tolka_dialect::{Dialect, Finding, Frames, Heard, Retelling};
use tolka_facts::{Draft, Json, NoBlobs, SessionId, Time, Tip};

use support::Run;

/// Frames as they stand on a pipe.
pub(crate) fn stream<'a>(frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        Dialect::Acp.write_frame(frame, &mut out);
    }
    out
}

pub(crate) fn told(run: &Run) -> Vec<Vec<u8>> {
    run.told(Dialect::Acp).into_iter().flatten().collect()
}

pub(crate) fn values(frames: &[Vec<u8>]) -> Vec<Value> {
    frames.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
}

pub(crate) fn heard(stream: &[u8]) -> Vec<Heard> {
    let (mut decoder, mut heard) = (Dialect::Acp.decoder(), Vec::new());
    decoder.feed(stream, &mut heard).unwrap();
    decoder.finish(&mut heard).unwrap();
    heard
}

/// What lines are read as.
pub(crate) fn drafts(lines: &[Value]) -> Vec<Draft> {
    let lines: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    heard(&lines).into_iter().map(|heard| heard.draft).collect()
}

/// A stream told again in its own dialect.
pub(crate) fn retold(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut retelling, mut out) =
        (Retelling::new(Dialect::Acp, Dialect::Acp, Time::from_millis(1)), Frames::default());
    retelling.feed(stream, &mut out).unwrap();
    retelling.finish(&mut out).unwrap();
    out.iter().map(<[u8]>::to_vec).collect()
}

pub(crate) fn judged(stream: &[u8]) -> Vec<Finding> {
    let (mut judge, mut found) = (Dialect::Acp.judge(), Vec::new());
    judge.feed(stream, &mut found);
    judge.finish(&mut found);
    found
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// The name of a frame, as the carriage table has it.
pub(crate) fn name(frame: &Value) -> &str {
    match frame["method"].as_str() {
        Some("session/update") => frame["params"]["update"]["sessionUpdate"].as_str().unwrap(),
        Some(method) => method,
        None if frame.get("error").is_some() => "error",
        None => "result",
    }
}

/// The frames of drafts that an agent tells in a session of its own.
pub(crate) fn frames(drafts: Vec<Draft>) -> Vec<Value> {
    let (mut encoder, mut tip, mut out) = (Dialect::Acp.encoder(), Tip::default(), Frames::default());
    for (seq, draft) in (1..).zip(drafts) {
        let fact = draft.stamp(SessionId::from("ses_1"), seq, Time::from_millis(seq));
        tip.apply(&fact);
        encoder.encode(&fact, &tip, &NoBlobs, &mut out);
    }
    out.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
}
