//! A server at an address: each of our messages is a request, and what comes back is an answer or a stream of messages.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::{McpError, cut};
use crate::lines::LONGEST;
use crate::pace::Pace;
use crate::peer::{Heard, Peer};
use crate::sse::Events;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Of what an address says that it refuses something.
const WORDS: usize = 500;
/// For a message that wants no answer.
const SHORT: Duration = Duration::from_secs(10);

pub(crate) struct Http {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// What it calls our connection, and the version that was agreed on.
    agreed: Mutex<HeaderMap>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Http")
    }
}

impl Http {
    pub(crate) fn new(client: Client, url: Url, headers: &[(String, String)]) -> Result<Self, McpError> {
        let mut head = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::try_from(value.as_str());
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(McpError::Gone("one of its headers cannot be sent".to_owned()));
            };
            value.set_sensitive(true);
            head.insert(name, value);
        }
        Ok(Http { client, url, headers: head, agreed: Mutex::default() })
    }

    /// From now on each request says which version was agreed on.
    pub(crate) fn agree(&self, version: &str) {
        if let Ok(version) = HeaderValue::try_from(version) {
            self.agreed().insert(VERSION, version);
        }
    }

    /// Sends a message, and lets the peer hear all that comes back until that ends.
    pub(crate) async fn post(
        &self,
        message: Vec<u8>,
        peer: &Peer,
        out: &mpsc::Sender<Vec<u8>>,
    ) -> Result<(), McpError> {
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, JSON).header(ACCEPT, BOTH).body(message);
        let response = self.allowed(request.headers(self.head()).send().await.map_err(|error| lost(&error))?).await?;
        if let Some(session) = response.headers().get(SESSION) {
            self.agreed().insert(SESSION, session.clone());
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with(EVENTS) {
            return listen(response, peer, out).await.map(drop);
        }
        let is_json = kind.starts_with(JSON);
        let body = read(response, LONGEST).await?;
        if is_json && !body.is_empty() {
            reply_to(peer.hear(&body), out);
        }
        Ok(())
    }

    /// A notification or a reply. That it did not arrive is noticed by nobody but the server.
    pub(crate) async fn post_soon(&self, message: Vec<u8>, peer: &Peer, out: &mpsc::Sender<Vec<u8>>) {
        let _ = timeout(SHORT, self.post(message, peer, out)).await;
    }

    /// Hears what the server says without being asked, as long as it does. Many never do, and say so.
    /// Gives how many messages that were.
    pub(crate) async fn overhear(&self, peer: &Peer, out: &mpsc::Sender<Vec<u8>>) -> Result<usize, McpError> {
        let request = self.client.get(self.url.clone()).header(ACCEPT, EVENTS).headers(self.head());
        let response = self.allowed(request.send().await.map_err(|error| lost(&error))?).await?;
        listen(response, peer, out).await
    }

    /// Tells it that nothing more will come.
    pub(crate) async fn leave(&self) {
        if self.agreed().contains_key(SESSION) {
            let _ = timeout(SHORT, self.client.delete(self.url.clone()).headers(self.head()).send()).await;
        }
    }

    fn head(&self) -> HeaderMap {
        let mut head = self.headers.clone();
        head.extend(self.agreed().clone());
        head
    }

    async fn allowed(&self, response: Response) -> Result<Response, McpError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let is_of_session = self.agreed().contains_key(SESSION);
        let said = read(response, 64 << 10).await.unwrap_or_default();
        let said = cut(String::from_utf8_lossy(&said).trim(), WORDS);
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                McpError::NeedsAuth(format!("{status}; put what it wants into `headers`"))
            }
            StatusCode::NOT_FOUND if is_of_session => McpError::Gone("it has forgotten the connection".to_owned()),
            status if status.is_redirection() => {
                McpError::Gone(format!("it answers {status}: use the address that it leads to"))
            }
            status if said.is_empty() => McpError::Gone(format!("it answers {status}")),
            status => McpError::Gone(format!("it answers {status}: {said}")),
        })
    }

    fn agreed(&self) -> std::sync::MutexGuard<'_, HeaderMap> {
        // Nothing that can panic happens under it.
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives how many messages made sense.
async fn listen(response: Response, peer: &Peer, out: &mpsc::Sender<Vec<u8>>) -> Result<usize, McpError> {
    let (mut events, mut pace, mut understood) = (Events::default(), Pace::new(), 0);
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| lost(&error))?;
        for event in events.feed(&piece).map_err(|_| too_long())? {
            let heard = peer.hear(&event);
            if pace.is_over(&heard) {
                return Err(McpError::flooded());
            }
            understood += usize::from(heard != Heard::Nonsense);
            reply_to(heard, out);
            pace.keep(event.len()).await;
        }
    }
    Ok(understood)
}

fn reply_to(heard: Heard, out: &mpsc::Sender<Vec<u8>>) {
    if let Heard::Reply(reply) = heard {
        // One that asks faster than it hears answers has no use for them.
        let _ = out.try_send(reply);
    }
}

async fn read(response: Response, most: usize) -> Result<Vec<u8>, McpError> {
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| lost(&error))?;
        if body.len() + piece.len() > most {
            return Err(too_long());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn too_long() -> McpError {
    McpError::Unreadable(format!("a message of more than {LONGEST} bytes"))
}

/// Without the address, which may hold a key; with the reason, which stands at the end of the chain.
fn lost(error: &reqwest::Error) -> McpError {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let words = if std::ptr::addr_eq(reason, error) { "the request failed".to_owned() } else { reason.to_string() };
    McpError::Gone(format!("it cannot be reached: {words}"))
}
