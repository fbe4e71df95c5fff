//! What changed, by edits and by commands: in a turn, or in the whole session.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};
use tolka_facts::MessageId;
use tolka_session::{Between, SessionError};
use tolka_workspace::checkpoint::FileDiff;
use tolka_workspace::names::told;

use super::query::Params;
use super::{Answered, session_row};
use crate::app::App;

/// Of the turn of a message, or without one of the session, up to the files as they are now. A session that has no
/// snapshot yet has changed nothing.
pub(super) async fn list(State(app): State<App>, Path(id): Path<String>, params: Params) -> Answered<Vec<Value>> {
    let session = session_row(&app, id).await?.head.id;
    let between = match params.text("messageID") {
        Some(message) => Between::Message(MessageId::from(message)),
        None => match app.desk.tip(&session).await?.base {
            // As `session.diff` counts them.
            Some(base) => Between::Checkpoints(base.checkpoint, None),
            None => return Ok(Json(Vec::new())),
        },
    };
    let is_whole = matches!(between, Between::Checkpoints(..));
    let diffs = match app.desk.differences(&session, between).await {
        Err(SessionError::NoCheckpoint(_) | SessionError::CheckpointsOff) if is_whole => Vec::new(),
        diffs => diffs?,
    };
    Ok(Json(diffs.iter().map(shape).collect()))
}

/// A file that is no text, or too large for one, has an empty patch, as on the real server.
fn shape(FileDiff { change, patch, .. }: &FileDiff) -> Value {
    json!({
        "file": told(&change.path),
        "patch": patch.as_deref().unwrap_or_default(),
        "additions": change.added,
        "deletions": change.removed,
        "status": change.operation.status(),
    })
}
