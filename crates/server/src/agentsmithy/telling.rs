//! Turns as the document's client reads them: bare events, ended by `done`, whatever happens.

use axum::body::Body;
use axum::response::Response;
use tolka_dialect::Dialect;
use tolka_dialect::agentsmithy::farewell_packets;
use tolka_facts::{Event, Fact, SessionId, TurnId};

use super::dialogs;
use crate::app::App;
use crate::fault::Fault;
use crate::request::{self, AtShutdown, Seat, event_stream};
use crate::stream::{Channel, Dress, Had, Reader, Whose};

pub(super) const DROPPED: &str =
    "The message was dropped from the queue before its turn came. Send it again if it is still wanted.";

pub(super) fn channel(session: &SessionId) -> Channel {
    Channel { whose: Whose::Session(session.clone()), dialect: Dialect::AgentSmithy, dress: Dress::Bare }
}

pub(super) async fn tell(
    app: &App,
    session: &SessionId,
    turn: &TurnId,
    had: Had,
    seat: Seat,
) -> Result<Response, Fault> {
    let reader = Reader::of_turn(&app.tongues, channel(session), turn, had, never_started).await?;
    let response = request::stream(seat, reader, AtShutdown::End);
    Ok(named(response, session, turn))
}

/// Says in its headers which turn an answer is of, and where its events can be read.
pub(super) fn named(response: Response, session: &SessionId, turn: &TurnId) -> Response {
    request::named(response, session, turn, Some(&format!("/api/chat?dialog_id={session}&turn={turn}")))
}

/// The turn will never start. Its client waits for an end all the same.
fn never_started(fact: &Fact) -> Vec<Vec<u8>> {
    let why = match &fact.event {
        Event::SessionDeleted(_) => "The dialog was deleted before the turn of this message came.",
        _ => DROPPED,
    };
    farewell_packets(why, Some(fact.session.as_str())).into()
}

/// A refusal that a client which does not look at the status reads as well: the document's does not. Every event of its
/// names a dialog, so these do too: the one that was named, else the current one, and nothing if there is none.
pub(super) async fn refused(app: &App, fault: &Fault, named: Option<&str>) -> Response {
    let dialog = match named {
        Some(named) => named.to_owned(),
        None => {
            let current = dialogs::current_row(app).await.ok().flatten();
            current.map(|row| row.head.id.to_string()).unwrap_or_default()
        }
    };
    let [error, done] = farewell_packets(fault.message(), Some(&dialog));
    let mut response = event_stream(Body::from([b"data: ", &*error, b"\n\ndata: ", &*done, b"\n\n"].concat()));
    *response.status_mut() = fault.status();
    response
}
