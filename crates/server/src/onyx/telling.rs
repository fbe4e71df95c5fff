//! Turns as Onyx's clients read them: packets as events, ended by one that says so.

use axum::body::Body;
use axum::response::Response;
use tolka_dialect::Dialect;
use tolka_facts::{SessionId, TurnId};

use super::packets::Packets;
use crate::app::App;
use crate::fault::Fault;
use crate::request::{self, AtShutdown, Seat, event_stream};
use crate::stream::{Channel, Dress, Had, Reader, Whose};

fn channel(session: &SessionId, dialect: Dialect) -> Channel {
    Channel { whose: Whose::Session(session.clone()), dialect, dress: Dress::Messages }
}

pub(super) async fn tell(
    app: &App,
    session: &SessionId,
    turn: &TurnId,
    packets: Packets,
    had: Had,
    seat: Seat,
) -> Result<Response, Fault> {
    let channel = channel(session, packets.dialect());
    let reader = Reader::of_turn(&app.tongues, channel, turn, had, packets.never_started()).await?;
    let place = format!("/api/build/sessions/{session}/turns/{turn}/events?{}", packets.query());
    Ok(request::named(request::stream(seat, reader, AtShutdown::End), session, turn, Some(&place)))
}

/// A stream of one packet that is no fact, and so has no position.
pub(super) fn one_packet(payload: &[u8]) -> Response {
    event_stream(Body::from([b"event: message\ndata: ", payload, b"\n\n"].concat()))
}
