//! What routes of every family need of a request, and the two kinds of answers they give: JSON and streams.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Frame;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tolka_facts::{SessionId, TurnId};
use tolka_session::Place;

use crate::app::App;
use crate::fault::Fault;
use crate::stream::Reader;

/// Images come inside prompts as base64; more than this is a file to upload, not a prompt.
pub(crate) const BODY_LIMIT: usize = 32 * 1024 * 1024;
/// A client that takes longer to send a body than this does not mean to.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A JSON body; nothing at all counts as `{}`.
pub(crate) async fn json_body(body: Body) -> Result<Value, Fault> {
    let limited = Limited::new(body, BODY_LIMIT);
    let collected = tokio::time::timeout(BODY_TIME, limited.collect())
        .await
        .map_err(|_| Fault::Timeout(format!("The body did not arrive within {} s.", BODY_TIME.as_secs())))?;
    let bytes = match collected {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(Fault::TooLarge(format!("The body is larger than {BODY_LIMIT} bytes.")));
        }
        Err(_) => return Err(Fault::BadRequest("The body ended before it was complete.".to_owned())),
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|error| Fault::BadRequest(format!("The body is not UTF-8: {error}.")))?;
    let value: Value =
        serde_json::from_str(text).map_err(|error| Fault::BadRequest(format!("The body is not JSON: {error}.")))?;
    if !value.is_object() {
        return Err(Fault::BadRequest("The body must be a JSON object.".to_owned()));
    }
    Ok(value)
}

/// An optional string of a body; another type is an error that names the field.
pub(crate) fn text_field<'a>(body: &'a Value, name: &str) -> Result<Option<&'a str>, Fault> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Fault::BadRequest(format!("`{name}` must be a string."))),
    }
}

pub(crate) fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").and_then(|value| value.to_str().ok()).filter(|id| !id.is_empty())
}

/// A place among the readers that the server takes; given back when it is dropped. A route that starts a turn
/// takes it first, so that nobody is refused a stream whose turn runs nevertheless.
pub(crate) struct Seat(App);

impl Seat {
    pub(crate) fn take(app: &App) -> Result<Self, Fault> {
        let limit = app.config.max_readers;
        if app.metrics.reader(limit) {
            Ok(Seat(app.clone()))
        } else {
            Err(Fault::TooMany(format!("{limit} streams are open, and no more are allowed.")))
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.metrics.reader_left();
    }
}

/// How a stream goes when the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtShutdown {
    /// Ends well: the reader knows that its turn is over or interrupted.
    End,
    /// Breaks off: a client that would take a clean end for good comes back by itself.
    Cut,
}

struct Telling {
    reader: Reader,
    seat: Seat,
    at_shutdown: AtShutdown,
}

impl Telling {
    fn is_stopping(&self) -> bool {
        // The flag turns once, and nobody marks this receiver: a look at its version takes no lock. It need not be
        // waited on here: every connection does, and asks its stream again when it turns.
        self.seat.0.stopping.has_changed().unwrap_or(true)
    }

    fn last_word(&self) -> Option<Result<Frame<Bytes>, std::io::Error>> {
        match self.at_shutdown {
            AtShutdown::End => None,
            AtShutdown::Cut => Some(Err(std::io::Error::other("the server is shutting down"))),
        }
    }
}

impl hyper::body::Body for Telling {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match self.reader.poll_next(cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                self.seat.0.metrics.told(bytes.len());
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(Some(Err(error))) => {
                tracing::error!(%error, "a stream broke off");
                Poll::Ready(Some(Err(std::io::Error::other("the journal cannot be read"))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.is_stopping() && self.reader.is_at_head() => Poll::Ready(self.last_word()),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// On an answer that holds memory of streams and can be taken up where it broke off: its connection may be cut when
/// memory is short.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resumable;

/// On a stream whose client can see and answer what an agent asks: while it is open, agents wait longer.
#[derive(Debug, Clone)]
pub(crate) struct Attends(pub(crate) Place);

/// A stream of server-sent events.
pub(crate) fn stream(seat: Seat, reader: Reader, at_shutdown: AtShutdown) -> Response {
    let attends = reader.channel().place_to_answer().map(Attends);
    let mut response = event_stream(Body::new(Telling { reader, seat, at_shutdown }));
    response.extensions_mut().insert(Resumable);
    if let Some(attends) = attends {
        response.extensions_mut().insert(attends);
    }
    response
}

/// Says in its headers which turn a stream tells, and where that can be read again.
pub(crate) fn named(mut response: Response, session: &SessionId, turn: &TurnId, place: Option<&str>) -> Response {
    let names = [
        (HeaderName::from_static("tolka-session"), Some(session.as_str())),
        (HeaderName::from_static("tolka-turn"), Some(turn.as_str())),
        (header::CONTENT_LOCATION, place),
    ];
    for (name, value) in names {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

pub(crate) fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Text as `encodeURIComponent` writes it, read back; what does not decode was meant as it stands.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_decode_as_the_sdk_encodes_them() {
        assert_eq!(decoded("%2Fhome%2Fu%20v%2Fm%C3%A5l"), "/home/u v/mål");
        for plain in ["/home/u", "/a%", "/a%2", "/a%zz", "/a%+1", "/a%ff"] {
            assert_eq!(decoded(plain), plain);
        }
    }
}
