//! One request and its answer, for every wire: sends, waits within bounds, cuts the bytes into events, and hands those
//! to the wire's own [`Reading`].
//!
//! An answer has ended when the wire says so, never because the bytes stopped: a connection that closes in the middle
//! is an error even when it closes politely.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};
use serde_json::Value;
use tokio::time::timeout;
use tolka_dialect::{SseEvent, SseReader};
use tolka_facts::event::Model;

use super::endpoint::{is_loopback, shown};
use super::fault::{Accuser, Complaint};
use super::{Endpoint, ModelError, ModelErrorKind, Piece, Pieces, Request};

/// No event of a provider is longer.
const FRAME: usize = 8 * 1024 * 1024;
/// A request of so many bytes takes about a millisecond to write.
const LONG: usize = 256 * 1024;
/// Of an answer that is an error.
const COMPLAINT: usize = 64 * 1024;
/// Once an answer is finished only its usage is missing; nobody waits long for that.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// The end of the body comes with the end of the answer; a connection that saw it can be used again.
const LAST_BYTES: Duration = Duration::from_millis(20);

/// How a wire reads its events.
pub(super) trait Reading: Send + 'static {
    /// Takes the next event. It pushes [`Piece::Ended`] once, when the answer is over.
    fn take(&mut self, event: &SseEvent, out: &mut VecDeque<Piece>) -> Result<(), Trouble>;

    /// The model has said all; what may still come is only about it.
    fn is_finished(&self) -> bool;

    /// No more comes. Called only when it is finished.
    fn end(&mut self, out: &mut VecDeque<Piece>);
}

#[derive(Debug)]
pub(super) enum Trouble {
    Complaint(Complaint),
    Garbled(String),
}

/// What is sent, as far as the wires differ.
pub(super) struct Letter<B> {
    pub(super) path: &'static str,
    pub(super) head: Vec<(&'static str, String)>,
    pub(super) request: Request,
    /// Makes the body of the request.
    pub(super) body: B,
}

pub(super) fn ask<B, R>(endpoint: &Arc<Endpoint>, model: &Model, letter: Letter<B>, reading: R) -> Pieces
where
    B: FnOnce(&Request) -> serde_json::Result<Vec<u8>> + Send + 'static,
    R: Reading,
{
    let accuser = Accuser { endpoint: Arc::clone(endpoint), model: model.clone() };
    let exchange =
        Exchange { accuser, reading, events: Events::default(), body: None, lost: None, ready: VecDeque::new() };
    Box::pin(stream::unfold((exchange, Step::Begin(letter)), async move |(mut exchange, step)| {
        match step {
            Step::Over => return None,
            Step::Begin(letter) => {
                if let Err(error) = exchange.begin(letter).await {
                    return Some((Err(error), (exchange, Step::Over)));
                }
            }
            Step::Reading => {}
        }
        match exchange.next().await {
            Ok(piece @ Piece::Ended { .. }) => {
                exchange.close().await;
                Some((Ok(piece), (exchange, Step::Over)))
            }
            Ok(piece) => Some((Ok(piece), (exchange, Step::Reading))),
            Err(error) => Some((Err(error), (exchange, Step::Over))),
        }
    }))
}

enum Step<B> {
    Begin(Letter<B>),
    Reading,
    Over,
}

struct Exchange<R> {
    accuser: Accuser,
    reading: R,
    events: Events,
    /// `None` before it came and after it ended.
    body: Option<Response>,
    /// What ended it, while pieces from before that are still to be given.
    lost: Option<ModelError>,
    ready: VecDeque<Piece>,
}

/// The bytes as events.
#[derive(Default)]
struct Events {
    reader: Option<SseReader>,
    /// A body that is one JSON text.
    whole: Vec<u8>,
    cut: Vec<SseEvent>,
}

impl<R: Reading> Exchange<R> {
    async fn begin<B>(&mut self, letter: Letter<B>) -> Result<(), ModelError>
    where
        B: FnOnce(&Request) -> serde_json::Result<Vec<u8>> + Send + 'static,
    {
        let accuser = self.accuser.clone();
        let unusable = |problem: String| accuser.unusable(&problem);
        let Letter { path, mut head, request, body } = letter;
        head.push(("content-type", "application/json".to_owned()));
        let body = composed(&accuser, request, body).await?.map_err(|problem| unusable(problem.to_string()))?;
        let endpoint = Arc::clone(&accuser.endpoint);
        let url =
            endpoint.url(path).map_err(|problem| accuser.unusable(&format!("its base URL is wrong: {problem}")))?;
        let head = endpoint.head(&head).map_err(unusable)?;
        let client = endpoint.client(&url).map_err(unusable)?;
        let sent = client.post(url.clone()).headers(head).body(body).send();
        let response = match timeout(endpoint.first, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(problem)) => return Err(self.unreachable(&url, problem)),
            Err(_) => return Err(accuser.cut(&format!("it said nothing for {:?}", endpoint.first))),
        };
        if !response.status().is_success() {
            return Err(refusal(&accuser, response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/html") {
            let problem = format!("{} answered with a web page; check the base URL", shown(&url));
            return Err(accuser.unusable(&problem));
        }
        let is_whole = kind.starts_with("application/json");
        self.events.reader = (!is_whole).then(|| SseReader::new(FRAME));
        self.body = Some(response);
        Ok(())
    }

    async fn next(&mut self) -> Result<Piece, ModelError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(piece);
            }
            match self.chunk().await {
                Ok(Some(bytes)) => self.feed(&bytes)?,
                Ok(None) => self.closed(None)?,
                Err(error) => self.closed(Some(error))?,
            }
        }
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let patience = if self.reading.is_finished() { AFTER_FINISH } else { self.accuser.endpoint.idle };
        let Some(body) = &mut self.body else { return self.lost.take().map_or(Ok(None), Err) };
        match timeout(patience, body.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(problem)) => {
                tracing::debug!(problem = causes(&problem.without_url()), "an answer broke off");
                Err(self.accuser.cut("the connection broke in the middle"))
            }
            Err(_) => Err(self.accuser.cut(&format!("it was silent for {patience:?}"))),
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let Events { reader, whole, cut } = &mut self.events;
        let read = match reader {
            Some(reader) => reader.feed(bytes, cut).map_err(|problem| problem.problem),
            None if whole.len() + bytes.len() > FRAME => Err(format!("longer than {FRAME} bytes")),
            None => {
                whole.extend_from_slice(bytes);
                Ok(())
            }
        };
        self.take()?;
        read.map_err(|problem| self.accuser.garbled(&problem))
    }

    fn take(&mut self) -> Result<(), ModelError> {
        for event in self.events.cut.drain(..) {
            self.reading.take(&event, &mut self.ready).map_err(|trouble| match trouble {
                Trouble::Complaint(complaint) => self.accuser.complains(&complaint),
                Trouble::Garbled(what) => self.accuser.garbled(&what),
            })?;
            if matches!(self.ready.back(), Some(Piece::Ended { .. })) {
                break;
            }
        }
        Ok(())
    }

    /// No more bytes come.
    fn closed(&mut self, error: Option<ModelError>) -> Result<(), ModelError> {
        let Events { reader, whole, cut } = &mut self.events;
        match (reader, self.body.take()) {
            (_, None) => {}
            // What is left without its blank line is not complete, and so no part of the answer.
            (Some(reader), Some(_)) => drop(reader.finish(cut)),
            (None, Some(_)) => {
                let data = String::from_utf8_lossy(&std::mem::take(whole)).into_owned();
                cut.push(SseEvent { data, ..SseEvent::default() });
            }
        }
        self.take()?;
        match (self.ready.is_empty(), self.reading.is_finished(), error) {
            (false, _, error) => {
                self.lost = error;
                Ok(())
            }
            (true, true, _) => {
                self.reading.end(&mut self.ready);
                Ok(())
            }
            (true, false, Some(error)) => Err(error),
            (true, false, None) => Err(self.accuser.cut("the connection was closed in the middle")),
        }
    }

    async fn close(&mut self) {
        if let Some(mut body) = self.body.take() {
            let rest = async { while let Ok(Some(_)) = body.chunk().await {} };
            // It is only for the next request's sake.
            let _ = timeout(LAST_BYTES, rest).await;
        }
    }

    fn unreachable(&self, url: &Url, problem: reqwest::Error) -> ModelError {
        if !problem.is_connect() {
            tracing::debug!(problem = causes(&problem.without_url()), "no answer began");
            let what = "the connection broke before its first word";
            return ModelError { kind: ModelErrorKind::Network, ..self.accuser.cut(what) };
        }
        let advice = if is_loopback(url) { "Is it running?" } else { "Check the network and the base URL." };
        let causes = causes(&problem.without_url());
        let message =
            format!("{} cannot be reached at {}: {causes}. {advice}", self.accuser.model.provider, shown(url));
        self.accuser.error(ModelErrorKind::Network, &message)
    }
}

/// Makes what is sent: what is long where it keeps nobody waiting.
pub(super) async fn composed<T: Send + 'static>(
    accuser: &Accuser,
    request: Request,
    make: impl FnOnce(&Request) -> T + Send + 'static,
) -> Result<T, ModelError> {
    if request.bytes() < LONG {
        return Ok(make(&request));
    }
    let made = tokio::task::spawn_blocking(move || make(&request)).await;
    // It fails only if the runtime is going down.
    made.map_err(|_| accuser.cut("Tolka is about to stop"))
}

async fn refusal(accuser: &Accuser, mut response: Response) -> ModelError {
    let (status, head) = (response.status(), response.headers().clone());
    if status.is_redirection() {
        let to = head.get(LOCATION).and_then(|to| to.to_str().ok()).and_then(|to| response.url().join(to).ok());
        let to = to.map_or_else(|| "somewhere else".to_owned(), |to| shown(&to));
        let error = accuser.unusable(&format!("it has moved to {to} ({}), where no key is sent", status.as_u16()));
        return ModelError { status: Some(status.as_u16()), ..error };
    }
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > COMPLAINT {
                break;
            }
        }
    };
    // The status alone says enough when the words do not come.
    let _ = timeout(accuser.endpoint.idle.min(AFTER_FINISH), read).await;
    accuser.complains(&Complaint::answered(status.as_u16(), &head, &String::from_utf8_lossy(&body)))
}

/// An error and what lies beneath it: the outermost alone says next to nothing.
fn causes(problem: &dyn std::error::Error) -> String {
    let mut text = problem.to_string();
    let mut cause = problem.source();
    while let Some(problem) = cause {
        let said = problem.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = problem.source();
    }
    text
}

/// An event's data as JSON, for what is not read in the usual way.
pub(super) fn value(event: &SseEvent) -> Result<Value, Trouble> {
    serde_json::from_str(&event.data).map_err(|_| Trouble::Garbled(event.data.clone()))
}

/// An event that is no part of an answer: a fault that is told, or nothing that can be read.
pub(super) fn odd(event: &SseEvent) -> Trouble {
    match value(event) {
        Ok(body) => match Complaint::read(&body) {
            Some(complaint) => Trouble::Complaint(complaint),
            None => Trouble::Garbled(event.data.clone()),
        },
        Err(trouble) => trouble,
    }
}

/// An id for a call that came without. Results are matched by it for as long as the session lives.
pub(super) fn new_id() -> String {
    // Each has keys of its own, from the system's randomness.
    format!("call_{:016x}", RandomState::new().build_hasher().finish())
}
