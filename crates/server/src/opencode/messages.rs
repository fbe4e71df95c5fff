//! Messages as lists, folded from the session's own events.
//!
//! Lists are in the order in which messages were first told, and a page is some of these places in a row: however they
//! are cut, pages make the whole list.

use std::collections::VecDeque;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tolka_facts::MessageId;
use tolka_journal::JournalError;

use super::query::Params;
use super::told::{Told, place, places};
use super::{Answered, all_messages, session_row};
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::stream::Tongues;

/// Messages that are folded at once.
const AT_ONCE: usize = 64;

/// All messages, or with `limit` the last so many, and in a header the cursor for those before them.
pub(super) async fn list(
    State(app): State<App>,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, OpenCodeError> {
    let limit = params.number("limit")?.filter(|limit| *limit > 0);
    let row = session_row(&app, id).await?;
    let (session, end) = (&row.head.id, row.seq);
    let before = match params.text("before") {
        Some(message) => {
            let found = place(app.journal().as_ref(), session, &MessageId::from(message)).await.map_err(Fault::from)?;
            let unknown = || Fault::BadRequest("This cursor is of no message here.\n  at [\"before\"]".to_owned());
            found.filter(|place| *place <= end).ok_or_else(unknown)?
        }
        None if limit.is_none() => return Ok(all_messages::list(app, row).await?),
        None => end + 1,
    };
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let told = Told::new(&app.tongues, session, end);
    let (messages, has_more) = page(&app.tongues, told, before, limit).await.map_err(Fault::from)?;
    let mut headers = HeaderMap::new();
    let next = messages.front().filter(|_| has_more).and_then(|first| first["info"]["id"].as_str());
    if let Some(cursor) = next.and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert("x-next-cursor", cursor);
    }
    Ok((headers, Json(messages)).into_response())
}

/// The last messages before a place, and whether there are more before them.
pub(super) async fn page(
    tongues: &Tongues,
    mut told: Told,
    mut before: u64,
    limit: usize,
) -> Result<(VecDeque<Value>, bool), JournalError> {
    let mut messages = VecDeque::new();
    // One more than is wanted, to know of it.
    while messages.len() <= limit {
        let wanted = (limit - messages.len()).saturating_add(1).min(AT_ONCE);
        let places = places(tongues.journal().as_ref(), told.session(), before, wanted).await?;
        let Some(first) = places.first() else { return Ok((messages, false)) };
        before = *first;
        for message in told.messages(&places).await?.into_iter().rev() {
            messages.push_front(message);
        }
    }
    messages.pop_front();
    Ok((messages, true))
}

/// Found by its mark, and folded alone.
pub(super) async fn one(State(app): State<App>, Path((id, message)): Path<(String, String)>) -> Answered<Value> {
    let row = session_row(&app, id).await?;
    let session = &row.head.id;
    let found =
        place(app.journal().as_ref(), session, &MessageId::from(message.as_str())).await.map_err(Fault::from)?;
    let places: Vec<u64> = found.filter(|place| *place <= row.seq).into_iter().collect();
    let messages = Told::new(&app.tongues, session, row.seq).messages(&places).await.map_err(Fault::from)?;
    let found = messages.into_iter().next();
    Ok(Json(found.ok_or_else(|| Fault::NotFound(format!("Message not found: {message}")))?))
}
