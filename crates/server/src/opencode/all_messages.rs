//! All messages of a session in one answer, told as they are folded: some turns are in memory, never the session.

use std::collections::HashSet;
use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use tolka_dialect::opencode::History;
use tolka_journal::{Scope, SessionRow};

use super::messages::{shown, voice};
use crate::app::App;
use crate::fault::Fault;
use crate::stream::{Cursor, Voice};

const PAGE: usize = 512;
/// About what one write should be.
const CHUNK: usize = 64 * 1024;

/// The session up to what was durable when it was asked for; one that goes on meanwhile is not chased. What is wrong
/// with the first part has its own status, from then on a failure can only break the body off.
pub(super) async fn stream(app: App, row: SessionRow) -> Result<Response, Fault> {
    let mut telling = Telling {
        voice: voice(&app, &row.head.id),
        history: History::default(),
        at: 0,
        since: 0,
        told: false,
        ended: false,
        app,
        row,
    };
    let first = telling.next().await?;
    let rest = stream::unfold(telling, |mut telling| async move {
        if telling.ended {
            return None;
        }
        let next = telling.next().await.map_err(|fault| io::Error::other(fault.message().to_owned()));
        telling.ended |= next.is_err();
        Some((next, telling))
    });
    let body = futures_util::StreamExt::chain(stream::once(async { Ok(first) }), rest);
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

struct Telling {
    app: App,
    row: SessionRow,
    voice: Voice,
    /// What was made since a quiet moment.
    history: History,
    since: u64,
    at: u64,
    told: bool,
    ended: bool,
}

impl Telling {
    /// The next piece of the answer.
    async fn next(&mut self) -> Result<Bytes, Fault> {
        let mut piece = Vec::new();
        while piece.len() < CHUNK && !self.ended {
            let facts = match self.row.seq.saturating_sub(self.at) {
                0 => Vec::new(),
                left => {
                    let wanted = usize::try_from(left).unwrap_or(PAGE).min(PAGE);
                    self.app.journal().read(&Scope::Session(self.row.head.id.clone()), self.at, wanted).await?
                }
            };
            for fact in &facts {
                let one = std::slice::from_ref(fact);
                self.voice.payloads(one, Cursor::whole(0), |_, frame| self.history.apply(frame)).await?;
                self.at = fact.place;
                let tip = self.voice.tip(&self.row.head.id);
                let is_quiet = tip.is_some_and(|tip| tip.is_idle() && tip.queue.is_empty());
                if is_quiet && self.at - self.since >= PAGE as u64 {
                    self.tell(&mut piece).await?;
                }
            }
            if facts.is_empty() {
                self.tell(&mut piece).await?;
                piece.extend_from_slice(if self.told { b"]" } else { b"[]" });
                self.ended = true;
            }
        }
        Ok(piece.into())
    }

    async fn tell(&mut self, piece: &mut Vec<u8>) -> Result<(), Fault> {
        let messages = std::mem::take(&mut self.history).messages().collect();
        self.since = self.at;
        let (session, end) = (&self.row.head.id, self.row.seq);
        for message in shown(&self.app, session, messages, self.at, end, HashSet::new()).await? {
            piece.push(if self.told { b',' } else { b'[' });
            self.told = true;
            piece.extend(message.to_string().into_bytes());
        }
        Ok(())
    }
}
