//! One session's events, or everybody's, in any dialect: as a stream, as a long poll, as a page.

use std::time::Duration;

use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tolka_dialect::Dialect;
use tolka_facts::{SessionId, TurnId};
use tolka_journal::Scope;

use super::{limit, number};
use crate::app::App;
use crate::fault::{Fault, TolkaError};
use crate::guard::Caller;
use crate::request::{self, AtShutdown, Seat, last_event_id};
use crate::stream::{Channel, Cursor, Dress, Follow, Had, Reader, Until, Voice, Whose};

const PAGE: usize = 200;
const WAIT_MOST: u64 = 60;

#[derive(Deserialize)]
pub(super) struct EventsQuery {
    dialect: Option<String>,
    after: Option<String>,
    /// The dialect that `after` is a position in, if it is another one.
    of: Option<String>,
    /// Only this turn; the stream ends with it.
    turn: Option<String>,
    /// Frames of the turn that were read, for streams without positions.
    skip: Option<String>,
    format: Option<String>,
    /// Seconds to wait for a first event when a page would be empty.
    wait: Option<String>,
    limit: Option<String>,
}

impl EventsQuery {
    fn dialect(&self) -> Result<Dialect, Fault> {
        let name = self.dialect.as_deref().unwrap_or("tolka");
        name.parse().map_err(|error: tolka_dialect::UnknownDialect| Fault::BadRequest(error.to_string()))
    }

    /// Of the turn; only a stream of one skips.
    fn skip(&self) -> Result<Option<u64>, Fault> {
        number("skip", self.skip.as_deref(), 0..=u64::MAX)
    }

    /// How many events a page has, and how long it waits for the first.
    fn page(&self) -> Result<(usize, Duration), Fault> {
        let wait = number("wait", self.wait.as_deref(), 0..=u64::MAX)?.unwrap_or(0).min(WAIT_MOST);
        Ok((limit(self.limit.as_deref(), PAGE)?, Duration::from_secs(wait)))
    }

    fn wants_page(&self, headers: &HeaderMap) -> Result<bool, Fault> {
        match self.format.as_deref() {
            Some("json") => Ok(true),
            Some("sse") => Ok(false),
            Some(other) => Err(Fault::BadRequest(format!("`format` is json or sse, not `{other}`."))),
            None => {
                let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
                Ok(self.wait.is_some() || accept.contains("application/json") && !accept.contains("text/event-stream"))
            }
        }
    }
}

pub(super) async fn session(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(query): Query<EventsQuery>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, TolkaError> {
    let session = SessionId::from(id);
    let head = app.desk.tip(&session).await?.seq;
    let dialect = query.dialect()?;
    let (size, skip) = (query.page()?, query.skip()?);
    let dress = if dialect.event_name().is_some() { Dress::Messages } else { Dress::Positions };
    let channel = Channel { whose: Whose::Session(session.clone()), dialect, dress };
    let asked = last_event_id(&headers).or(query.after.as_deref());
    let mut cursor = match asked {
        Some(text) => text.parse::<Cursor>().map_err(|error| Fault::BadRequest(error.to_string()))?,
        None => Cursor::whole(0),
    };
    if cursor.place > head {
        return Err(Fault::Gone(format!(
            "Position {cursor} is beyond the end of this session, which is {head}; it may be of another journal. Start without `after`."
        ))
        .into());
    }
    // Frames are counted differently in every dialect: what was told in part is told again.
    let of = query.of.as_deref().map(str::parse::<Dialect>).transpose();
    let of = of.map_err(|error| Fault::BadRequest(format!("`of`: {error}")))?;
    if of.is_some_and(|of| of != dialect) {
        cursor = Cursor::whole(cursor.before());
    }
    if query.wants_page(&headers)? {
        if query.turn.is_some() || skip.is_some() {
            let message = "`turn` and `skip` need a stream; a page starts at a position.";
            return Err(Fault::BadRequest(message.to_owned()).into());
        }
        return page(&app, &caller, channel, cursor, size).await;
    }
    let seat = Seat::take(&app)?;
    let (reader, at_shutdown) = match &query.turn {
        None => (Reader::new(&app.tongues, channel, cursor, Until::Never), AtShutdown::Cut),
        Some(turn) => {
            let had = match (skip, asked) {
                (Some(frames), _) => Had::Frames(frames),
                (None, Some(_)) => Had::UpTo(cursor),
                (None, None) => Had::Nothing,
            };
            let turn = TurnId::from(turn.as_str());
            (Reader::of_turn(&app.tongues, channel, &turn, had, |_| Vec::new()).await?, AtShutdown::End)
        }
    };
    let mut response = request::stream(seat, reader.greet(b""), at_shutdown);
    if let Ok(session) = HeaderValue::from_str(session.as_str()) {
        response.headers_mut().insert("tolka-session", session);
    }
    Ok(response)
}

pub(super) async fn feed(
    State(app): State<App>,
    Query(query): Query<EventsQuery>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, TolkaError> {
    let channel = Channel { whose: Whose::Feed { directory: None }, dialect: query.dialect()?, dress: Dress::Feed };
    let size = query.page()?;
    let head = *app.journal().watch(&Scope::All).borrow();
    let cursor = match last_event_id(&headers).or(query.after.as_deref()) {
        None => Cursor::whole(head),
        Some(text) => {
            Cursor::of_feed(text, app.journal().epoch()).filter(|cursor| cursor.place <= head).ok_or_else(|| {
                Fault::Gone(
                    "This cursor is not of this journal. Start without `after`, and read a view of each session first."
                        .to_owned(),
                )
            })?
        }
    };
    if query.wants_page(&headers)? {
        return page(&app, &caller, channel, cursor, size).await;
    }
    let reader = Reader::new(&app.tongues, channel, cursor, Until::Never).greet(b"");
    Ok(request::stream(Seat::take(&app)?, reader, AtShutdown::Cut))
}

/// The same events with the same positions, without a stream.
async fn page(
    app: &App,
    caller: &Caller,
    channel: Channel,
    cursor: Cursor,
    (limit, wait): (usize, Duration),
) -> Result<Response, TolkaError> {
    let scope = match &channel.whose {
        Whose::Session(session) => Scope::Session(session.clone()),
        Whose::Feed { .. } => Scope::All,
    };
    let is_feed = scope == Scope::All;
    let name =
        |cursor: Cursor| if is_feed { format!("{}.{cursor}", app.journal().epoch()) } else { cursor.to_string() };
    // Who waits for what comes is there to answer it, if it may; until the next poll the session is patient.
    let place = channel.place_to_answer().filter(|_| caller.may_approve && !wait.is_zero());
    let _attendance = place.map(|place| app.desk.attend(place));
    let mut follow = Follow::new(app.journal().clone(), scope, cursor.before());
    let mut voice = Voice::new(&app.tongues, channel);
    let deadline = tokio::time::Instant::now() + wait;
    let mut events = Vec::new();
    let mut position = cursor;
    loop {
        let entries = follow.ready(limit).await?;
        if entries.is_empty() {
            if !events.is_empty() || wait.is_zero() || !arrived_by(app, &mut follow, deadline).await {
                break;
            }
            continue;
        }
        voice
            .payloads(&entries, cursor, |at, payload| {
                if let Ok(data) = serde_json::from_slice::<Box<RawValue>>(payload) {
                    events.push(json!({ "position": name(at), "data": data }));
                }
            })
            .await?;
        position = Cursor::whole(follow.at());
        if events.len() >= limit {
            break;
        }
    }
    let more = follow.has_more();
    Ok(axum::Json(json!({ "events": events, "position": name(position), "more": more })).into_response())
}

/// Whether a fact came in time; a server that goes down has no time left.
async fn arrived_by(app: &App, follow: &mut Follow, deadline: tokio::time::Instant) -> bool {
    let mut stopping = app.stopping.clone();
    tokio::select! {
        arrived = tokio::time::timeout_at(deadline, follow.arrived()) => arrived.unwrap_or(false),
        _ = stopping.wait_for(|stopping| *stopping) => false,
    }
}
