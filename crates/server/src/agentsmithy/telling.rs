//! Turns as the document's client reads them: bare events, ended by `done`, whatever happens.

use axum::body::Body;
use axum::response::Response;
use serde_json::json;
use tolka_dialect::Dialect;
use tolka_facts::{Event, Fact, SessionId, TurnId};

use crate::app::App;
use crate::fault::Fault;
use crate::request::{self, AtShutdown, Seat, event_stream};
use crate::stream::{Channel, Dress, Had, Reader, Whose};

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
    Ok(request::named(response, session, turn, Some(&format!("/api/chat?dialog_id={session}&turn={turn}"))))
}

/// The turn was dropped before it started. Its client waits for an end all the same.
fn never_started(fact: &Fact) -> Vec<Vec<u8>> {
    farewell(why_never(&fact.event), Some(fact.session.as_str())).into()
}

pub(super) fn why_never(event: &Event) -> &'static str {
    match event {
        Event::SessionDeleted(_) => "The dialog was deleted before the turn of this message came.",
        _ => "The message was dropped from the queue before its turn came. Send it again if it is still wanted.",
    }
}

/// A refusal that a client which does not look at the status reads as well: the document's does not.
pub(super) fn refused(fault: &Fault, dialog: Option<&str>) -> Response {
    let [error, done] = farewell(fault.message(), dialog);
    let mut response = event_stream(Body::from([b"data: ", &*error, b"\n\ndata: ", &*done, b"\n\n"].concat()));
    *response.status_mut() = fault.status();
    response
}

/// An `error` and the `done` that must follow it, of no fact and so outside of what a stream can be taken up at.
fn farewell(words: &str, dialog: Option<&str>) -> [Vec<u8>; 2] {
    let mut events = [json!({ "type": "error", "error": words }), json!({ "type": "done", "done": true })];
    for event in &mut events {
        if let Some(dialog) = dialog {
            event["dialog_id"] = json!(dialog);
        }
    }
    events.map(|event| event.to_string().into_bytes())
}
