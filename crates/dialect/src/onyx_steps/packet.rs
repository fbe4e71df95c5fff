//! The packets as they are written: `type` first, the keys in the document's order, what is ours beside them next,
//! `timestamp` last. Reading is in `decode.rs`; it forgives, this does not.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use tolka_facts::event::{OptionKind, PermissionOption};
use tolka_facts::{Json, Since, Time};

use super::artifact::Artifact;
use super::block::Content;
use super::plan::Entry;
use super::words;
use crate::onyx::{CommonError, stamp};

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Packet<'a> {
    StepStart {
        step_id: &'a str,
        step_name: &'a str,
        timestamp: Stamp,
    },
    StepDelta {
        step_id: &'a str,
        content: &'a str,
        timestamp: Stamp,
    },
    StepEnd {
        step_id: &'a str,
        status: &'static str,
        timestamp: Stamp,
    },
    ToolStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        tool_input: Cow<'a, Json>,
        title: &'a str,
        timestamp: Stamp,
    },
    ToolProgress {
        tool_call_id: &'a str,
        tool_name: &'a str,
        status: &'static str,
        /// Always null: no agent tells a fraction.
        progress: (),
        message: &'a str,
        /// The input, where it became known or another after the start.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_input: Option<Cow<'a, Json>>,
        /// What the tool put out since the last such packet; `message` is its last line.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<Since<'a>>,
        timestamp: Stamp,
    },
    ToolEnd {
        tool_call_id: &'a str,
        tool_name: &'a str,
        status: &'static str,
        result: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Content<'a>>,
        timestamp: Stamp,
    },
    OutputStart {
        timestamp: Stamp,
    },
    OutputDelta {
        content: &'a str,
        timestamp: Stamp,
    },
    OutputEnd {
        timestamp: Stamp,
    },
    Plan {
        plan: String,
        entries: Vec<Entry<'a>>,
        timestamp: Stamp,
    },
    ModeUpdate {
        mode: &'a str,
        /// Always null: no agent says why.
        description: (),
        timestamp: Stamp,
    },
    Done {
        summary: &'static str,
        stop_reason: &'static str,
        usage: Option<Tokens>,
        timestamp: Stamp,
    },
    Error {
        message: &'a str,
        code: i64,
        timestamp: Stamp,
    },
    FileWrite {
        path: &'a str,
        size_bytes: Option<u64>,
        operation: &'static str,
        /// The open call that wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<&'a str>,
        timestamp: Stamp,
    },
    ArtifactCreated {
        artifact: Artifact<'a>,
        timestamp: Stamp,
    },
    PermissionRequest {
        request_id: &'a str,
        operation: &'a str,
        description: &'a str,
        auto_approve: bool,
        options: Vec<Choice<'a>>,
        tool_call_id: Option<&'a str>,
        timestamp: Stamp,
    },
    PermissionResponse {
        request_id: &'a str,
        approved: bool,
        reason: Option<&'a str>,
        option_id: Option<&'a str>,
        timestamp: Stamp,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct Tokens {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

/// As ACP has it.
#[derive(Debug, Serialize)]
pub(super) struct Choice<'a> {
    #[serde(rename = "optionId")]
    id: &'a str,
    name: &'a str,
    kind: OptionKind,
}

impl<'a> From<&'a PermissionOption> for Choice<'a> {
    fn from(option: &'a PermissionOption) -> Self {
        Choice { id: &option.id, name: &option.name, kind: option.kind }
    }
}

/// A time as the document prints it: milliseconds, and `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(pub(super) Time);

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let millis = text.len() - 1;
        text[..millis].copy_from_slice(&stamp::digits(self.0)[..millis]);
        // All of it is ASCII.
        serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// The packet that ends a turn which never began: its prompt was dropped from the queue.
pub fn cancelled_packet(time: Time) -> Vec<u8> {
    let stop = words::Ending::CANCELLED;
    bytes(&Packet::Done { summary: stop.summary, stop_reason: stop.reason, usage: None, timestamp: Stamp(time) })
}

/// One of the family's common errors, for the door: most arise before there is a session to tell of them.
pub fn error_packet(error: CommonError, time: Time) -> Vec<u8> {
    bytes(&Packet::Error { message: error.message(), code: words::UNKNOWN_CODE, timestamp: Stamp(time) })
}

fn bytes(packet: &Packet<'_>) -> Vec<u8> {
    // String keys only, and writing to a Vec cannot fail.
    serde_json::to_vec(packet).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doors_packets_look_like_the_documents() {
        let time = Time::from_micros(1_737_374_400_000_999);
        let told = |bytes| String::from_utf8(bytes).unwrap();
        assert_eq!(
            told(error_packet(CommonError::SessionNotFound, time)),
            r#"{"type":"error","message":"Session not found","code":-1,"timestamp":"2025-01-20T12:00:00.000Z"}"#
        );
        assert_eq!(
            told(cancelled_packet(time)),
            r#"{"type":"done","summary":"Cancelled","stop_reason":"cancelled","usage":null,"timestamp":"2025-01-20T12:00:00.000Z"}"#
        );
    }
}
