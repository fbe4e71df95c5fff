//! OpenCode's errors as failures, and what they say about the end of a turn.

use serde_json::json;
use tolka_facts::Json;
use tolka_facts::event::{Failed, FailureKind, Finish, Stop};

use super::message::WireError;

pub(super) fn failed(error: Option<&WireError>) -> Failed {
    let plain =
        |kind, message: &str| Failed { kind, message: message.to_owned(), code: None, retryable: false, details: None };
    match error {
        Some(WireError::ProviderAuth(e)) => plain(FailureKind::Auth, &e.message),
        Some(WireError::OutputLength(_)) => {
            plain(FailureKind::OutputLength, "The answer is longer than the model may write.")
        }
        Some(WireError::Aborted(e)) => plain(FailureKind::Aborted, &e.message),
        Some(WireError::Api(e)) => {
            let mut details = json!({});
            if let Some(headers) = &e.response_headers {
                details["responseHeaders"] = headers.value();
            }
            if let Some(body) = &e.response_body {
                details["responseBody"] = json!(body);
            }
            Failed {
                kind: FailureKind::Provider,
                message: e.message.clone(),
                code: e.status_code,
                retryable: e.is_retryable,
                details: details
                    .as_object()
                    .is_some_and(|fields| !fields.is_empty())
                    .then(|| Json::from_value(&details)),
            }
        }
        Some(WireError::ContextOverflow(e) | WireError::ContentFilter(e)) => plain(FailureKind::Provider, &e.message),
        Some(WireError::Unknown(e) | WireError::StructuredOutput(e)) => plain(FailureKind::Unknown, &e.message),
        Some(WireError::Other(error)) => plain(FailureKind::Unknown, &words(error)),
        None => plain(FailureKind::Unknown, "The server did not say what went wrong."),
    }
}

/// What can be read of an error that is not listed.
fn words(error: &Json) -> String {
    let value = error.value();
    let message = value.pointer("/data/message").and_then(|message| message.as_str());
    let name = value.get("name").and_then(|name| name.as_str());
    message.or(name).unwrap_or_default().to_owned()
}

pub(super) fn stop(error: Option<&WireError>) -> Stop {
    match error {
        Some(WireError::Aborted(_)) => Stop::Cancelled,
        _ => Stop::Failed,
    }
}

/// How a step ended: as it says; if it does not, as its error tells.
pub(super) fn finish(said: Option<&str>, error: Option<&WireError>) -> Finish {
    match (said, error) {
        (Some("stop"), _) => Finish::Stop,
        (Some("tool-calls"), _) => Finish::ToolCalls,
        (Some("length"), _) => Finish::Length,
        (Some("error"), _) => Finish::Error,
        (Some("cancelled"), _) | (None, Some(WireError::Aborted(_))) => Finish::Cancelled,
        (None, Some(_)) => Finish::Error,
        (Some(_), _) | (None, None) => Finish::Unknown,
    }
}
