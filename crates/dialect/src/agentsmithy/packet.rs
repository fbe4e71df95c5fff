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
    pub(super) dialog_id: &'a str,
}
