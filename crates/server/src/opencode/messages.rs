//! Messages as lists, folded from the session's own events.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tolka_dialect::Dialect;
use tolka_dialect::opencode::{History, Profile};
use tolka_facts::SessionId;
use tolka_journal::Scope;

use super::query::Params;
use super::{Answered, session_row};
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::stream::{Channel, Cursor, Dress, Voice, Whose};

const PAGE: usize = 512;

/// A voice for [`History`], which reads this profile.
pub(super) fn voice(app: &App, session: &SessionId) -> Voice {
    let dialect = Dialect::OpenCode(Profile::Current);
    // Payloads are never dressed; any dress will do.
    let channel = Channel { whose: Whose::Session(session.clone()), dialect, dress: Dress::Positions };
    Voice::new(&app.tongues, channel)
}

/// The session up to what was durable when it was asked for; one that goes on meanwhile is not chased.
async fn history(app: &App, id: String) -> Result<History, Fault> {
    let row = session_row(app, id).await?;
    let (session, mut at) = (row.head.id, 0);
    let (mut voice, mut history) = (voice(app, &session), History::default());
    let scope = Scope::Session(session);
    while at < row.seq {
        let page = app.journal().read(&scope, at, PAGE).await?;
        let Some(last) = page.last() else { break };
        at = last.place;
        voice.payloads(&page, Cursor::whole(0), |_, frame| history.apply(frame)).await?;
    }
    Ok(history)
}

/// With `limit` the last so many, and in a header the cursor for those before them.
pub(super) async fn list(
    State(app): State<App>,
    Path(id): Path<String>,
    params: Params,
) -> Result<(HeaderMap, Json<Vec<Value>>), OpenCodeError> {
    let limit = params.number("limit")?.filter(|limit| *limit > 0);
    let history = history(&app, id).await?;
    let mut messages: Vec<Value> = history.messages().collect();
    if let Some(before) = params.text("before") {
        let at = messages.iter().position(|message| message["info"]["id"] == before);
        let at =
            at.ok_or_else(|| Fault::BadRequest("This cursor is of no message here.\n  at [\"before\"]".to_owned()))?;
        messages.truncate(at);
    }
    let mut headers = HeaderMap::new();
    let surplus = limit.map_or(0, |limit| messages.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX)));
    if surplus > 0 {
        messages.drain(..surplus);
        let oldest = messages.first().and_then(|message| message["info"]["id"].as_str());
        if let Some(cursor) = oldest.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert("x-next-cursor", cursor);
        }
    }
    Ok((headers, Json(messages)))
}

pub(super) async fn one(State(app): State<App>, Path((id, message)): Path<(String, String)>) -> Answered<Value> {
    let found = history(&app, id).await?.message(&message);
    Ok(Json(found.ok_or_else(|| Fault::NotFound(format!("Message not found: {message}")))?))
}
