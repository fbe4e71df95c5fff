//! A prompt, with or without waiting for what comes of it.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;
use tolka_dialect::opencode::blocks_from_parts;
use tolka_facts::{MessageId, SessionId};
use tolka_session::{Accepted, PromptRequest};

use super::{choice, session_row, wait};
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::request::{json_body, text_field};

/// Ours have 30; a name that is kept and looked up need not be longer than this.
const LONGEST_ID: usize = 128;

pub(super) async fn and_go(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Body,
) -> Result<StatusCode, OpenCodeError> {
    prompt(&app, id, body).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The prompt is durable before the wait begins: a client that leaves leaves the turn running.
pub(super) async fn and_wait(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, OpenCodeError> {
    let (session, accepted) = prompt(&app, id, body).await?;
    Ok(wait::for_answer(app, session, accepted).await?)
}

async fn prompt(app: &App, id: String, body: Body) -> Result<(SessionId, Accepted), Fault> {
    let body = json_body(body).await?;
    let head = session_row(app, id).await?.head;
    refuse_unsupported(&body)?;
    let choice::Choice { mode, model, .. } = choice::in_session(app, &head, &body)?;
    let content = blocks_from_parts(body.get("parts")).map_err(|error| Fault::BadRequest(error.to_string()))?;
    let message = message_id(&body)?;
    let request = PromptRequest { content, message, agent: mode, model, ..PromptRequest::default() };
    let accepted = app.desk.prompt(&head.id, request).await?;
    Ok((head.id, accepted))
}

/// A message that its client names is the same message however often it is sent.
pub(super) fn message_id(body: &Value) -> Result<Option<MessageId>, Fault> {
    match text_field(body, "messageID")? {
        None => Ok(None),
        Some(id) if id.starts_with("msg") && id.len() <= LONGEST_ID => Ok(Some(MessageId::from(id))),
        Some(_) => {
            let wrong = format!("Expected a string starting with \"msg\", of {LONGEST_ID} bytes at most");
            Err(Fault::BadRequest(format!("{wrong}\n  at [\"messageID\"]")))
        }
    }
}

/// Who asks for these would be misled by an answer that looks as if they had been heeded.
fn refuse_unsupported(body: &Value) -> Result<(), Fault> {
    let unsupported = |what: &str, field: &str| Err(Fault::BadRequest(format!("{what}\n  at [\"{field}\"]")));
    if body.get("noReply") == Some(&Value::Bool(true)) {
        return unsupported("A prompt without a reply is not supported; every prompt here starts a turn", "noReply");
    }
    if body.get("format").and_then(|format| format.get("type")).is_some_and(|kind| kind != "text") {
        return unsupported("Only text can be asked for; agents here know no output schema", "format");
    }
    let tools = body.get("tools").and_then(Value::as_object);
    if tools.is_some_and(|tools| tools.values().any(|enabled| *enabled == Value::Bool(false))) {
        return unsupported(
            "Tools cannot be switched off here; agents bring their own and ask before they act",
            "tools",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_heeded_is_refused_by_name() {
        for (body, field) in [
            (json!({ "noReply": true }), "noReply"),
            (json!({ "format": { "type": "json_schema", "schema": {} } }), "format"),
            (json!({ "tools": { "read": true, "bash": false } }), "tools"),
        ] {
            let fault = refuse_unsupported(&body).unwrap_err();
            assert!(fault.message().ends_with(&format!("at [\"{field}\"]")), "{}", fault.message());
        }
        let fine = json!({ "noReply": false, "format": { "type": "text" }, "tools": { "bash": true }, "system": "x" });
        assert!(refuse_unsupported(&fine).is_ok());
    }

    #[test]
    fn messages_are_named_as_opencode_names_them() {
        let read = |id: Value| message_id(&json!({ "messageID": id }));
        assert_eq!(read(json!("msg_1")).unwrap(), Some(MessageId::from("msg_1")));
        assert_eq!(read(Value::Null).unwrap(), None);
        assert!(read(json!("ses_1")).is_err() && read(json!(7)).is_err());
        assert!(read(json!(format!("msg_{}", "x".repeat(LONGEST_ID)))).is_err());
    }
}
