//! The document's thirteen events. Their keys stand in the order in which it shows them.

use std::borrow::Cow;

use serde::Serialize;
use tolka_facts::Json;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Packet<'a> {
    User {
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        checkpoint: Option<&'a str>,
    },
    ChatStart,
    Chat {
        content: &'a str,
    },
    ChatEnd,
    ReasoningStart,
    Reasoning {
        content: &'a str,
    },
    ReasoningEnd,
    SummaryStart,
    SummaryEnd,
    ToolCall {
        /// Of the call, or of the request. Only the history shows it.
        #[serde(skip)]
        id: &'a str,
        name: &'a str,
        args: &'a Json,
    },
    FileEdit {
        file: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<&'a str>,
    },
    Error {
        error: &'a str,
    },
    Done {
        done: bool,
    },
}

/// An event as it is sent.
#[derive(Debug, Serialize)]
pub(super) struct Addressed<'a> {
    #[serde(flatten)]
    pub(super) packet: &'a Packet<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dialog_id: Option<&'a str>,
}

/// An `error` and the `done` that must follow it, as payloads ready to be framed: for what fails before there is a turn,
/// or a dialog, to tell of it.
pub fn farewell_packets(error: &str, dialog_id: Option<&str>) -> [Vec<u8>; 2] {
    // String keys only, and writing to a Vec cannot fail.
    let told = |packet: Packet<'_>| serde_json::to_vec(&Addressed { packet: &packet, dialog_id }).unwrap_or_default();
    [told(Packet::Error { error }), told(Packet::Done { done: true })]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_farewell_is_an_error_and_the_end() {
        let told = |dialog| farewell_packets("no", dialog).map(|packet| String::from_utf8(packet).unwrap());
        assert_eq!(told(None), [r#"{"type":"error","error":"no"}"#, r#"{"type":"done","done":true}"#]);
        let addressed = [
            r#"{"type":"error","error":"no","dialog_id":"ses_1"}"#,
            r#"{"type":"done","done":true,"dialog_id":"ses_1"}"#,
        ];
        assert_eq!(told(Some("ses_1")), addressed);
    }
}
