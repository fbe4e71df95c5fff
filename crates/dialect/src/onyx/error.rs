//! The `error` packet. Its keys stand in the order in which the document shows them.

use serde::Serialize;
use serde_json::{Map, Value};
use tolka_facts::event::Failed;
use tolka_facts::{Blobs, Json, Time};

use super::stamp::Stamp;

/// The errors that the document names. Most arise before there is a session to tell of them, so the door
/// makes the packet, not a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommonError {
    SessionNotFound,
    SandboxNotRunning,
    Database,
    Agent,
}

impl CommonError {
    pub const ALL: [CommonError; 4] =
        [CommonError::SessionNotFound, CommonError::SandboxNotRunning, CommonError::Database, CommonError::Agent];

    pub fn message(self) -> &'static str {
        match self {
            CommonError::SessionNotFound => "Session not found",
            CommonError::SandboxNotRunning => "Sandbox not running",
            CommonError::Database => "Database error",
            CommonError::Agent => "Agent execution error",
        }
    }
}

pub(crate) const INTERRUPTED: &str = "The server stopped during the turn";

#[derive(Debug, Serialize)]
pub(super) struct ErrorFrame<'a> {
    r#type: &'static str,
    timestamp: Stamp,
    message: &'a str,
    code: Option<i64>,
    details: Option<Json>,
}

impl<'a> ErrorFrame<'a> {
    pub(super) fn plain(message: &'a str, time: Time) -> Self {
        ErrorFrame { r#type: "error", timestamp: Stamp(time), message, code: None, details: None }
    }

    pub(super) fn failed(failed: &'a Failed, time: Time, blobs: &dyn Blobs) -> Self {
        let details = failed.details.as_ref().and_then(|details| as_object(&details.whole(blobs)));
        ErrorFrame { code: failed.code, details, ..ErrorFrame::plain(&failed.message, time) }
    }
}

/// One of the common errors as a payload, ready to be framed.
pub fn error_packet(error: CommonError, time: Time, details: Option<&Json>) -> Vec<u8> {
    let frame = ErrorFrame { details: details.and_then(as_object), ..ErrorFrame::plain(error.message(), time) };
    // String keys only, and writing to a Vec cannot fail.
    serde_json::to_vec(&frame).unwrap_or_default()
}

/// `details` is an object or null; what is neither stands in it under the name that ACP's errors give it.
fn as_object(details: &Json) -> Option<Json> {
    if details.is_null() {
        return None;
    }
    if details.get().trim_start().starts_with('{') {
        return Some(details.clone());
    }
    Some(Json::of(&Map::from_iter([("data".to_owned(), details.read::<Value>().unwrap_or_default())])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_error_is_the_documents_example() {
        let packet = error_packet(CommonError::SessionNotFound, Time::from_micros(1_769_040_711_712_150), None);
        let example = r#"{"type":"error","timestamp":"2026-01-22T00:11:51.712150+00:00","message":"Session not found","code":null,"details":null}"#;
        assert_eq!(String::from_utf8(packet).unwrap(), example);
    }

    #[test]
    fn details_are_an_object() {
        let details = Json::parse(r#""disk full""#).unwrap();
        let packet = error_packet(CommonError::Database, Time::default(), Some(&details));
        let packet: Value = serde_json::from_slice(&packet).unwrap();
        assert_eq!(packet["details"], serde_json::json!({"data": "disk full"}));
    }
}
