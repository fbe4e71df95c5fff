//! Turns as Onyx's clients read them: packets as events, ended by one that says so.

use axum::body::Body;
use axum::response::Response;
use tolka_dialect::Dialect;
use tolka_dialect::onyx::{Profile, cancelled_packet};
use tolka_facts::{Fact, SessionId, TurnId};

use crate::app::App;
use crate::fault::Fault;
use crate::request::{self, AtShutdown, Seat, event_stream};
use crate::stream::{Channel, Dress, Had, Reader, Whose};

pub(super) fn channel(session: &SessionId, dialect: Dialect) -> Channel {
    Channel { whose: Whose::Session(session.clone()), dialect, dress: Dress::Messages }
}

pub(super) async fn tell(app: &App, channel: Channel, turn: &TurnId, had: Had, seat: Seat) -> Result<Response, Fault> {
    let Whose::Session(session) = channel.whose.clone() else { return Err(Fault::Internal) };
    let reader = Reader::of_turn(&app.tongues, channel, turn, had, never_started).await?;
    Ok(request::named(request::stream(seat, reader, AtShutdown::End), &session, turn, None))
}

/// The turn was dropped before it started. Its client waits for an end all the same.
fn never_started(fact: &Fact) -> Vec<Vec<u8>> {
    vec![cancelled_packet(fact.time)]
}

/// A stream of one packet that is no fact, and so has no position.
pub(super) fn one_packet(payload: &[u8]) -> Response {
    event_stream(Body::from([b"event: message\ndata: ", payload, b"\n\n"].concat()))
}
