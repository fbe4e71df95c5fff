//! The feeds: what happens in all sessions, from now on or from where the client left off.
//!
//! OpenCode's own server gives no ids and so cannot resume; its SDK nevertheless remembers an `id:` and
//! sends it back when it reconnects. Giving it one is all it takes to lose nothing.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use tolka_dialect::Dialect;
use tolka_dialect::opencode::Profile;
use tolka_facts::{Time, derived_id};
use tolka_journal::Scope;

use super::folder::Folder;
use super::query::Params;
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::request::{self, AtShutdown, Seat, last_event_id};
use crate::stream::{Channel, Cursor, Dress, Reader, Until, Whose};

pub(super) async fn feed(
    State(app): State<App>,
    folder: Folder,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, OpenCodeError> {
    let dialect = Dialect::OpenCode(profile(&params, Profile::Superset)?);
    let whose = Whose::Feed { directory: folder.to_filter_by(&app).await };
    Ok(open(&app, Channel { whose, dialect, dress: Dress::Feed }, &params, &headers)?)
}

/// All folders, whichever the client stands in: each frame says where it belongs, and clients choose by that.
pub(super) async fn global_feed(
    State(app): State<App>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, OpenCodeError> {
    let dialect = Dialect::OpenCode(profile(&params, Profile::Current)?);
    let whose = Whose::Feed { directory: None };
    Ok(open(&app, Channel { whose, dialect, dress: Dress::GlobalFeed }, &params, &headers)?)
}

fn profile(params: &Params, usual: Profile) -> Result<Profile, Fault> {
    match params.text("profile") {
        None => Ok(usual),
        Some("superset") => Ok(Profile::Superset),
        Some("current") => Ok(Profile::Current),
        Some("documented") => Ok(Profile::Documented),
        Some(_) => Err(Fault::BadRequest("`profile` is superset, current or documented.".to_owned())),
    }
}

fn open(app: &App, channel: Channel, params: &Params, headers: &HeaderMap) -> Result<Response, Fault> {
    let head = *app.journal().watch(&Scope::All).borrow();
    let left_off = last_event_id(headers).or(params.text("after"));
    let left_off = left_off.and_then(|id| Cursor::of_feed(id, app.journal().epoch()));
    // A cursor that means nothing here must not keep a client out: it starts at now, like one without.
    let cursor = left_off.filter(|cursor| cursor.place <= head).unwrap_or_else(|| Cursor::whole(app.feed_start()));
    let seat = Seat::take(app)?;
    let connected = frame("server.connected", channel.dress);
    let heartbeat = frame("server.heartbeat", channel.dress);
    let reader = Reader::new(&app.tongues, channel, cursor, Until::Never).greet(&connected).beat_with(heartbeat);
    Ok(request::stream(seat, reader, AtShutdown::Cut))
}

/// A frame about the connection itself; it has no place in the journal, and so no `id:` line.
fn frame(kind: &str, dress: Dress) -> Bytes {
    let event = json!({ "id": derived_id("evt", Time::now(), 0, 0), "type": kind, "properties": {} });
    let event = if dress == Dress::GlobalFeed { json!({ "payload": event }) } else { event };
    Bytes::from(format!("data: {event}\n\n"))
}
