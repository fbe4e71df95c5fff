//! Going back and forth in a session, and leaving it for a new one.
//!
//! A client of this family has one boundary in a session, which it moves back (undo) and forth (redo) or takes away.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tolka_dialect::opencode::session_info;
use tolka_facts::event::Overwrite;
use tolka_facts::{MessageId, SessionId};
use tolka_session::{ForkRequest, SessionError, Undo, What};

use super::told::{Told, place};
use super::{Answered, session_row};
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::request::{json_body, text_field};

/// What a request of this family can be refused with: the real server has a shape of its own for a session at work.
pub(super) enum Refused {
    Busy(SessionId),
    Other(Fault),
}

impl Refused {
    fn of(session: &SessionId, error: SessionError) -> Self {
        match error {
            SessionError::Busy | SessionError::Waiting(_) => Refused::Busy(session.clone()),
            other => Refused::Other(other.into()),
        }
    }
}

impl<F: Into<Fault>> From<F> for Refused {
    fn from(fault: F) -> Self {
        Refused::Other(fault.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Refused::Busy(session) => {
                let message =
                    format!("Session is busy: {session}. Abort its turn or wait for the end, then try again.");
                let body = json!({ "_tag": "SessionBusyError", "sessionID": session, "message": message });
                (StatusCode::CONFLICT, Json(body)).into_response()
            }
            Refused::Other(fault) => OpenCodeError(fault).into_response(),
        }
    }
}

pub(super) async fn revert(State(app): State<App>, Path(id): Path<String>, body: Body) -> Result<Json<Value>, Refused> {
    let body = json_body(body).await?;
    let session = session_row(&app, id).await?.head.id;
    let message = message_id(&body)?.ok_or_else(missing)?;
    if let Some(part) = part_id(&body)? {
        begins_with(&app, &session, &message, part).await?;
    }
    go_to(&app, &session, message, What::Both).await?;
    Ok(Json(shown(&app, &session).await?))
}

/// Without a revert it changes nothing, as on the real server.
pub(super) async fn unrevert(State(app): State<App>, Path(id): Path<String>) -> Result<Json<Value>, Refused> {
    let session = session_row(&app, id).await?.head.id;
    take_back(&app, &session).await?;
    Ok(Json(shown(&app, &session).await?))
}

/// In the same folder, with the files as they are.
pub(super) async fn fork(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered<Value> {
    let body = json_body(body).await?;
    let session = session_row(&app, id).await?.head.id;
    let forked = app.desk.fork(&session, ForkRequest { before: message_id(&body)?, ..ForkRequest::default() }).await?;
    Ok(Json(session_info(&forked.head)))
}

/// The boundary of the newer API. Its files can stay as they are.
pub(super) async fn stage(State(app): State<App>, Path(id): Path<String>, body: Body) -> Result<Json<Value>, Refused> {
    let body = json_body(body).await?;
    let session = session_row(&app, id).await?.head.id;
    let message = message_id(&body)?.ok_or_else(missing)?;
    let what = match body.get("files") {
        None | Some(Value::Bool(true)) => What::Both,
        Some(Value::Bool(false)) => What::Conversation,
        Some(_) => return Err(Fault::BadRequest("Expected a boolean\n  at [\"files\"]".to_owned()).into()),
    };
    go_to(&app, &session, message, what).await?;
    let revert = shown(&app, &session).await?["revert"].take();
    Ok(Json(json!({ "data": revert })))
}

pub(super) async fn clear(State(app): State<App>, Path(id): Path<String>) -> Result<StatusCode, Refused> {
    let session = session_row(&app, id).await?.head.id;
    take_back(&app, &session).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn commit(State(app): State<App>, Path(id): Path<String>) -> Answered<Value> {
    session_row(&app, id).await?;
    let words = "A revert is not made final by itself here: it is when the next prompt starts its turn, and can be \
                 taken back until then.";
    Err(Fault::NotThereYet(words.to_owned()).into())
}

async fn shown(app: &App, session: &SessionId) -> Result<Value, Fault> {
    Ok(session_info(&session_row(app, session.to_string()).await?.head))
}

/// Moves the boundary to before the prompt of a message, wherever it stands now.
async fn go_to(app: &App, session: &SessionId, message: MessageId, what: What) -> Result<(), Refused> {
    match app.desk.move_boundary(session, message, what).await {
        Ok(_) | Err(SessionError::AlreadyThere) => Ok(()),
        Err(error) => Err(Refused::of(session, error)),
    }
}

async fn take_back(app: &App, session: &SessionId) -> Result<(), Refused> {
    match app.desk.unrewind(session, Undo::All, Overwrite::Nothing).await {
        Ok(_) | Err(SessionError::NothingToUndo) => Ok(()),
        Err(error) => Err(Refused::of(session, error)),
    }
}

/// Only whole messages are hidden here: a part must be where its message begins.
async fn begins_with(app: &App, session: &SessionId, message: &MessageId, part: &str) -> Result<(), Fault> {
    let found = place(app.journal().as_ref(), session, message).await?;
    let row = session_row(app, session.to_string()).await?;
    let places: Vec<u64> = found.filter(|place| *place <= row.seq).into_iter().collect();
    let messages = Told::new(&app.tongues, session, row.seq).messages(&places).await?;
    let told = messages.first().ok_or_else(|| Fault::NotFound(format!("Message not found: {message}")))?;
    let parts = told["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = parts.iter().position(|known| known["id"] == part);
    let at = at.ok_or_else(|| Fault::NotFound(format!("Part not found: {part} in message {message}")))?;
    let is_said = |part: &Value| part["type"] == "text" || part["type"] == "tool";
    if told["info"]["role"] == "user" || !parts[..at].iter().any(is_said) {
        return Ok(());
    }
    let words = "A session goes back to before a prompt, not into an answer. Leave partID out to take the whole answer \
                 back with its prompt\n  at [\"partID\"]";
    Err(Fault::BadRequest(words.to_owned()))
}

fn message_id(body: &Value) -> Result<Option<MessageId>, Fault> {
    Ok(named(body, "messageID", "msg")?.map(MessageId::from))
}

fn part_id(body: &Value) -> Result<Option<&str>, Fault> {
    named(body, "partID", "prt")
}

/// An id of a body. OpenCode's own schema wants the prefix.
fn named<'a>(body: &'a Value, field: &str, prefix: &str) -> Result<Option<&'a str>, Fault> {
    match text_field(body, field)? {
        Some(id) if !id.starts_with(prefix) => {
            let id: String = id.chars().take(80).collect();
            let words = format!("Expected a string starting with \"{prefix}\", got \"{id}\"\n  at [\"{field}\"]");
            Err(Fault::BadRequest(words))
        }
        id => Ok(id),
    }
}

fn missing() -> Fault {
    Fault::BadRequest("Missing key\n  at [\"messageID\"]".to_owned())
}
