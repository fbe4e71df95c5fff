//! Waiting for the end of a turn, for clients that take its last message as the answer to their prompt.
//!
//! Turns last longer than HTTP clients and proxies care to wait for a first byte (five minutes in Node, one
//! in nginx). So an answer that is not there soon begins with spaces, which JSON allows: until then a
//! failure has its own status, from then on it can only break the body off.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::time::timeout;
use tolka_dialect::opencode::History;
use tolka_facts::event::Stop;
use tolka_facts::{Event, SessionId, Tip, TurnId};
use tolka_journal::Scope;
use tolka_session::Accepted;

use super::messages;
use crate::app::App;
use crate::fault::Fault;
use crate::stream::{Cursor, Follow};

const PAGE: usize = 256;
/// How long nothing may be said.
const SILENCE: Duration = Duration::from_secs(20);

type Waiting = Pin<Box<dyn Future<Output = Result<Ending, Fault>> + Send>>;

enum Ending {
    /// The last message of the agent, which also tells if the turn failed after it.
    Message(Value),
    /// There is no message that could tell it.
    Wordless(String),
}

pub(super) async fn for_answer(app: App, session: SessionId, accepted: Accepted) -> Result<Response, Fault> {
    let mut waiting: Waiting = Box::pin(ending(app, session, accepted));
    match timeout(SILENCE, &mut waiting).await {
        Ok(Ok(Ending::Message(message))) => Ok(Json(message).into_response()),
        Ok(Ok(Ending::Wordless(message))) => {
            let error = json!({ "name": "UnknownError", "data": { "message": message } });
            Ok((StatusCode::INTERNAL_SERVER_ERROR, Json(error)).into_response())
        }
        Ok(Err(fault)) => Err(fault),
        Err(_) => Ok(held_open(waiting, SILENCE)),
    }
}

fn held_open(waiting: Waiting, silence: Duration) -> Response {
    let body = futures_util::stream::unfold(Some(waiting), move |waiting| async move {
        let mut waiting = waiting?;
        match timeout(silence, &mut waiting).await {
            Err(_) => Some((Ok(Bytes::from_static(b" ")), Some(waiting))),
            Ok(Ok(Ending::Message(message))) => Some((Ok(Bytes::from(message.to_string())), None)),
            Ok(Ok(Ending::Wordless(message))) => Some((Err(io::Error::other(message)), None)),
            Ok(Err(fault)) => Some((Err(io::Error::other(fault.message().to_owned())), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Follows the session from the prompt to the end of its turn. It may wait in the queue for a while; what
/// other turns tell in the meantime is folded too, and does no harm.
async fn ending(app: App, session: SessionId, accepted: Accepted) -> Result<Ending, Fault> {
    let before = accepted.seq.saturating_sub(1);
    let mut follow = Follow::new(app.journal().clone(), Scope::Session(session.clone()), before);
    let (mut voice, mut history) = (messages::voice(&app, &session), History::default());
    let mut stopping = app.stopping.clone();
    loop {
        let mut entries = tokio::select! {
            // On the way down the turn ends first, and that is a better answer.
            biased;
            entries = follow.next(PAGE) => entries?,
            _ = stopping.wait_for(|stopping| *stopping) => return Err(Fault::Unavailable(
                "The server is stopping. The prompt is kept; read the session's messages when it is back.".to_owned(),
            )),
        };
        let end = entries.iter().position(|entry| is_end(&entry.fact.event, &accepted.turn));
        entries.truncate(end.map_or(entries.len(), |end| end + 1));
        voice.payloads(&entries, Cursor::whole(before), |_, frame| history.apply(frame)).await?;
        let gone = || Fault::NotFound(format!("Session not found: {session}"));
        let last = entries.last().ok_or_else(gone)?;
        match &last.fact.event {
            _ if end.is_none() => {}
            Event::TurnEnded(ended) => {
                let message = history.answer(accepted.message.as_str()).map(Ending::Message);
                return Ok(message.unwrap_or_else(|| Ending::Wordless(reason(ended.stop, voice.tip(&session)))));
            }
            Event::PromptDropped(_) => {
                return Err(Fault::Conflict("The prompt was dropped from the queue before its turn came.".to_owned()));
            }
            _ => return Err(gone()),
        }
    }
}

fn is_end(event: &Event, turn: &TurnId) -> bool {
    match event {
        Event::TurnEnded(e) => e.turn == *turn,
        Event::PromptDropped(e) => e.turn == *turn,
        Event::SessionDeleted(_) => true,
        _ => false,
    }
}

fn reason(stop: Stop, tip: Option<&Tip>) -> String {
    let failure = tip.and_then(|tip| tip.ended_turn.as_ref()).and_then(|turn| turn.failure.as_ref());
    match (stop, failure) {
        (Stop::Cancelled, _) => "Aborted".to_owned(),
        (Stop::Interrupted, _) => "The server stopped in the middle of this turn".to_owned(),
        (_, Some(failure)) => failure.message.clone(),
        (_, None) => "The agent ended its turn without a word".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_late_begins_with_spaces() {
        let (say, said) = oneshot::channel();
        let waiting: Waiting = Box::pin(async { said.await.map(Ending::Message).map_err(|_| Fault::Internal) });
        let mut body = held_open(waiting, Duration::from_millis(1)).into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, " ");
        say.send(json!({ "info": {}, "parts": [] })).unwrap();
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!(serde_json::from_slice::<Value>(&rest).unwrap(), json!({ "info": {}, "parts": [] }));
    }

    #[tokio::test]
    async fn a_failure_that_is_late_breaks_the_body_off() {
        let waiting: Waiting = Box::pin(async { Ok(Ending::Wordless("no".to_owned())) });
        assert!(held_open(waiting, SILENCE).into_body().collect().await.is_err());
    }
}
