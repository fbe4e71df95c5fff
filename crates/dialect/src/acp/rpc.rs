use std::fmt;

use serde::{Deserialize, Serialize};
use tolka_facts::Json;

/// The id of a request; agents use numbers and strings alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    Number(i64),
    Text(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(id) => id.fmt(f),
            Id::Text(id) => id.fmt(f),
        }
    }
}

/// A JSON-RPC message: one line between a client and an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Request {
        id: Id,
        method: String,
        params: Json,
    },
    Notification {
        method: String,
        params: Json,
    },
    /// `id` is missing where the peer could not read the request. `Err` holds the error object.
    Response {
        id: Option<Id>,
        outcome: Result<Json, Json>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error("not JSON-RPC: {0}")]
    Json(#[from] serde_json::Error),
    #[error("a JSON-RPC message needs a method, a result or an error")]
    Shapeless,
}

#[derive(Deserialize)]
struct Wire {
    id: Option<Id>,
    method: Option<String>,
    params: Option<Json>,
    /// `null` is a result too: only a missing key is none.
    #[serde(default, deserialize_with = "present")]
    result: Option<Json>,
    error: Option<Json>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

impl Message {
    pub fn parse(line: &str) -> Result<Self, MessageError> {
        let Wire { id, method, params, result, error } = serde_json::from_str(line)?;
        match (method, id) {
            (Some(method), Some(id)) => Ok(Message::Request { id, method, params: params.unwrap_or_default() }),
            (Some(method), None) => Ok(Message::Notification { method, params: params.unwrap_or_default() }),
            (None, id) => {
                let outcome = error.map(Err).or(result.map(Ok)).ok_or(MessageError::Shapeless)?;
                Ok(Message::Response { id, outcome })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn tells_requests_notifications_and_responses_apart() {
        let told = |line| Message::parse(line).unwrap();
        let id = Id::Text("1-a".into());
        assert_eq!(
            told(r#"{"jsonrpc":"2.0","id":"1-a","method":"session/prompt","params":{"a": 1.0}}"#),
            Message::Request { id: id.clone(), method: "session/prompt".into(), params: json(r#"{"a": 1.0}"#) }
        );
        assert_eq!(
            told(r#"{"method":"session/cancel"}"#),
            Message::Notification { method: "session/cancel".into(), params: Json::default() }
        );
        assert_eq!(
            told(r#"{"id":"1-a","result":null}"#),
            Message::Response { id: Some(id), outcome: Ok(json("null")) }
        );
        assert_eq!(
            told(r#"{"id":null,"error":{"code":-32700}}"#),
            Message::Response { id: None, outcome: Err(json(r#"{"code":-32700}"#)) }
        );
        assert!(matches!(Message::parse(r#"{"id":1}"#), Err(MessageError::Shapeless)));
        assert!(matches!(Message::parse("kimi-cli is no longer"), Err(MessageError::Json(_))));
    }
}
