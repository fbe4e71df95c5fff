//! Messages as lists, folded from the session's own events.
//!
//! Lists are in the order of the messages' making, and a prompt may be made while earlier turns run. So a list is cut at
//! quiet moments only, when no turn is open and no prompt waits: nothing before one is changed by what comes after, but for
//! messages that are hidden.

use std::collections::HashSet;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tolka_dialect::Dialect;
use tolka_dialect::opencode::{History, Profile};
use tolka_facts::{MessageId, SessionId, TurnId};
use tolka_journal::{Mark, Scope, SessionRow};

use super::query::Params;
use super::{Answered, all_messages, session_row};
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::past::{self, Page, Reach};
use crate::stream::{Channel, Cursor, Dress, Voice, Whose};

const PAGE: usize = 512;
/// Turns that are folded at once, unless they have more facts than this; then fewer, but always one.
const TURNS: usize = 20;
const FACTS: u64 = 20_000;

/// A voice for [`History`], which reads this profile.
pub(super) fn voice(app: &App, session: &SessionId) -> Voice {
    let dialect = Dialect::OpenCode(Profile::Current);
    // Payloads are never dressed; any dress will do.
    let channel = Channel { whose: Whose::Session(session.clone()), dialect, dress: Dress::Positions };
    Voice::new(&app.tongues, channel)
}

/// All messages, or with `limit` the last so many, and in a header the cursor for those before them.
pub(super) async fn list(
    State(app): State<App>,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, OpenCodeError> {
    let limit = params.number("limit")?.filter(|limit| *limit > 0);
    let row = session_row(&app, id).await?;
    if limit.is_none() && params.text("before").is_none() {
        return Ok(all_messages::list(app, row).await?);
    }
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut before = params.text("before").map(|cursor| Before::read(cursor, row.seq));
    let mut to = before.as_ref().map_or(row.seq, |before| before.to);
    let mut pages = Vec::new();
    let mut found = 0;
    loop {
        let page = quiet_page(&app, &row.head.id, to, limit.min(TURNS)).await?;
        let mut messages = messages_of(&app, &page, &row).await?;
        if let Some(cursor) = &before {
            match messages.iter().position(|message| message["info"]["id"] == *cursor.message) {
                Some(at) => {
                    messages.truncate(at);
                    before = None;
                }
                None => messages.clear(),
            }
        }
        found += messages.len();
        let more = page.has_more();
        to = page.tip.seq;
        pages.push((page.to, messages));
        if found > limit || !more {
            break;
        }
    }
    if before.is_some() {
        return Err(Fault::BadRequest("This cursor is of no message here.\n  at [\"before\"]".to_owned()).into());
    }
    let mut surplus = found.saturating_sub(limit);
    let mut next = None;
    let mut shown = Vec::new();
    for (to, messages) in pages.into_iter().rev() {
        let left_out = surplus.min(messages.len());
        surplus -= left_out;
        if left_out > 0 || next.is_none() {
            let first = messages.get(left_out).and_then(|message| message["info"]["id"].as_str());
            next = first.map(|id| Before { message: id.to_owned(), to }.write());
        }
        shown.extend(messages.into_iter().skip(left_out));
    }
    let mut headers = HeaderMap::new();
    let next = next.filter(|_| found > limit);
    if let Some(cursor) = next.and_then(|cursor| HeaderValue::from_str(&cursor).ok()) {
        headers.insert("x-next-cursor", cursor);
    }
    Ok((headers, Json(shown)).into_response())
}

/// Where a page goes on: before a message, which is on the page that ends at a place.
struct Before {
    message: String,
    to: u64,
}

impl Before {
    /// A bare id is looked for from the end of the session on.
    fn read(cursor: &str, end: u64) -> Self {
        let parts = cursor.rsplit_once('~').and_then(|(message, to)| Some((message, to.parse().ok()?)));
        let (message, to) = parts.unwrap_or((cursor, end));
        Before { message: message.to_owned(), to: to.min(end) }
    }

    fn write(&self) -> String {
        format!("{}~{}", self.message, self.to)
    }
}

/// Some turns up to a place, from a quiet moment on.
async fn quiet_page(app: &App, session: &SessionId, to: u64, turns: usize) -> Result<Page, Fault> {
    let journal = app.journal().as_ref();
    let mut page = Page::back_from(journal, session, to, Reach { turns, facts: FACTS }).await?;
    if !page.tip.is_idle() {
        page = Page::back_from(journal, session, to, Reach::turns(1)).await?;
    }
    while !page.tip.queue.is_empty() {
        let earlier = Page::back_from(journal, session, page.tip.seq, Reach::turns(TURNS)).await?;
        page = Page { to, ..earlier };
    }
    Ok(page)
}

/// A page's messages as they are at the session's end.
async fn messages_of(app: &App, page: &Page, row: &SessionRow) -> Result<Vec<Value>, Fault> {
    let (session, mut at) = (&page.session, page.tip.seq);
    let (mut voice, mut history) = (voice(app, session), History::default());
    let scope = Scope::Session(session.clone());
    while at < page.to {
        let wanted = usize::try_from(page.to - at).unwrap_or(PAGE).min(PAGE);
        let facts = app.journal().read(&scope, at, wanted).await?;
        let Some(last) = facts.last() else { break };
        at = last.place;
        voice.payloads(&facts, Cursor::whole(0), |_, frame| history.apply(frame)).await?;
    }
    let mut gone = HashSet::new();
    // Only a page that was the last one once can end with prompts that wait.
    for queued in voice.tip(session).filter(|_| page.to < row.seq).into_iter().flat_map(|tip| &tip.queue) {
        if is_dropped(app, session, &queued.prompt.turn, row.seq).await? {
            gone.insert(queued.prompt.message.clone());
        }
    }
    let messages: Vec<Value> = history.messages().collect();
    shown(app, session, messages, page.to, row.seq, gone).await
}

/// Those messages that are not gone, nor hidden after one place up to another.
pub(super) async fn shown(
    app: &App,
    session: &SessionId,
    messages: Vec<Value>,
    after: u64,
    to: u64,
    mut gone: HashSet<MessageId>,
) -> Result<Vec<Value>, Fault> {
    let id = |message: &Value| MessageId::from(message["info"]["id"].as_str().unwrap_or_default());
    let ids: Vec<MessageId> = messages.iter().map(id).collect();
    gone.extend(past::hidden(app.journal().as_ref(), session, after, to, &ids).await?);
    Ok(messages.into_iter().filter(|message| !gone.contains(&id(message))).collect())
}

/// A prompt that waits no more, and whose turn has not come.
async fn is_dropped(app: &App, session: &SessionId, turn: &TurnId, at: u64) -> Result<bool, Fault> {
    let started = app.mark(session, Mark::TurnStart(turn)).await?;
    if started.is_some() {
        return Ok(false);
    }
    let tip = app.tip_at(session, at).await?;
    Ok(tip.queue.iter().all(|queued| queued.prompt.turn != *turn))
}

/// Found by its mark, and folded from its turn alone.
pub(super) async fn one(State(app): State<App>, Path((id, message)): Path<(String, String)>) -> Answered<Value> {
    let row = session_row(&app, id).await?;
    let found = find(&app, &row, &message).await?;
    Ok(Json(found.ok_or_else(|| Fault::NotFound(format!("Message not found: {message}")))?))
}

async fn find(app: &App, row: &SessionRow, message: &str) -> Result<Option<Value>, Fault> {
    let (session, id) = (&row.head.id, MessageId::from(message));
    let place = match app.mark(session, Mark::Message(&id)).await? {
        Some(place) => Some(place),
        None => app.mark(session, Mark::Step(&id)).await?,
    };
    let Some(place) = place else { return Ok(None) };
    let tip = app.tip_at(session, place).await?;
    let queued = tip.queue.iter().find(|queued| queued.prompt.message == id).map(|queued| &queued.prompt.turn);
    let turn = queued.or(tip.turn.as_ref().map(|turn| &turn.id));
    let ended = match turn {
        Some(turn) => app.mark(session, Mark::TurnEnd(turn)).await?,
        None => None,
    };
    let mut to = ended.unwrap_or(row.seq);
    // A prompt that was dropped and a step outside of a turn have no end: they are looked for from that of the session.
    while to > 0 {
        let page = quiet_page(app, session, to, 1).await?;
        let messages = messages_of(app, &page, row).await?;
        let found = messages.into_iter().find(|shown| shown["info"]["id"] == message);
        if found.is_some() || place > page.tip.seq {
            return Ok(found);
        }
        to = page.tip.seq;
    }
    Ok(None)
}
