//! The stream of one turn, from wherever its reader stands to the turn's end.
//!
//! A turn may still wait for others when its stream begins. The reader then gets keep-alives and nothing of the
//! turns before: what it reads is its own turn, from the first packet to the one that ends it.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use tokio::time::{Instant, timeout, timeout_at};
use tolka_dialect::Dialect;
use tolka_dialect::onyx::Profile;
use tolka_facts::{Event, Fact, SessionId, TurnId};
use tolka_journal::{Entry, JournalError, Scope};

use super::shapes::stamp;
use crate::app::App;
use crate::fault::Fault;
use crate::stream::{Channel, Cursor, Dress, Follow, Reader, Until, Voice, Whose};

const PAGE: usize = 256;
/// What a turn's reader sends as well, so that the wait looks like the turn.
const SILENCE: Duration = Duration::from_secs(10);
/// How long a server that goes down waits for what it still has to tell.
const LAST_WORDS: Duration = Duration::from_millis(200);
const KEEPALIVE: &[u8] = b": keepalive\n\n";

pub(super) fn channel(session: &SessionId, profile: Profile) -> Channel {
    let whose = Whose::Session(session.clone());
    Channel { whose, dialect: Dialect::Onyx(profile), dress: Dress::Messages }
}

/// A place among the readers that the server takes; given back when it is dropped. It is taken before a prompt
/// is, so that nobody is refused a stream whose turn runs nevertheless.
pub(super) struct Seat(App);

impl Seat {
    pub(super) fn take(app: &App) -> Result<Self, Fault> {
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

pub(super) struct Telling {
    app: App,
    channel: Channel,
    session: SessionId,
    turn: TurnId,
    /// What the reader has.
    cursor: Cursor,
    state: State,
    /// When the next keep-alive is due; only the wait looks at it.
    silent_until: Instant,
}

enum State {
    /// In the queue: looks for the fact that takes it out.
    Waiting(Follow),
    Telling(Box<Reader>),
    /// All that is left to say.
    Rest(Bytes),
    Over,
}

impl Telling {
    /// For a prompt that was queued by the fact at `queued`; `cursor` is what the reader has of the turn.
    pub(super) async fn new(
        app: &App,
        channel: Channel,
        turn: &TurnId,
        queued: u64,
        cursor: Cursor,
    ) -> Result<Self, Fault> {
        let Whose::Session(session) = channel.whose.clone() else { return Err(Fault::Internal) };
        let journal = app.journal();
        let started = journal.mark(&session, &format!("turn:{turn}")).await?;
        let ended = journal.mark(&session, &format!("end:{turn}")).await?;
        let rest = match ended {
            // The reader has some of the last fact: a stream from there would look for the end behind it.
            Some(end) if cursor.place >= end => Some(rest_of(app, &channel, &session, end, cursor).await?),
            _ => None,
        };
        let mut telling = Telling {
            app: app.clone(),
            channel,
            session,
            turn: turn.clone(),
            cursor,
            state: State::Over,
            silent_until: Instant::now() + SILENCE,
        };
        telling.state = match (rest, started) {
            (Some(rest), _) => State::Rest(rest),
            (None, Some(start)) => telling.started(start),
            (None, None) => {
                let scope = Scope::Session(telling.session.clone());
                State::Waiting(Follow::new(journal.clone(), scope, queued))
            }
        };
        Ok(telling)
    }

    fn started(&self, at: u64) -> State {
        let cursor = self.cursor.max(Cursor::whole(at - 1));
        let until = Until::TurnEnds(self.turn.clone());
        State::Telling(Box::new(Reader::new(&self.app.tongues, self.channel.clone(), cursor, until)))
    }

    /// The next bytes to write, or `None` when the turn is over.
    async fn next(&mut self) -> Option<Result<Bytes, JournalError>> {
        loop {
            match &mut self.state {
                State::Waiting(follow) => {
                    let Ok(page) = timeout_at(self.silent_until, follow.next(PAGE)).await else {
                        self.silent_until = Instant::now() + SILENCE;
                        return Some(Ok(Bytes::from_static(KEEPALIVE)));
                    };
                    match page {
                        Ok(page) => self.look_for_start(&page),
                        Err(error) => {
                            self.state = State::Over;
                            return Some(Err(error));
                        }
                    }
                }
                State::Telling(reader) => return reader.next().await,
                State::Rest(bytes) => {
                    let bytes = std::mem::take(bytes);
                    self.state = State::Over;
                    return (!bytes.is_empty()).then_some(Ok(bytes));
                }
                State::Over => return None,
            }
        }
    }

    /// When the server goes down, the turn has ended before: what is left comes at once, or the stream ends and
    /// can be taken up later. What was begun is never dropped and then gone on with: that would leave a gap.
    async fn next_or_last(&mut self, seat: &Seat) -> Option<Result<Bytes, JournalError>> {
        let mut stopping = seat.0.stopping.clone();
        let next = self.next();
        tokio::pin!(next);
        tokio::select! {
            biased;
            next = &mut next => return next,
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        timeout(LAST_WORDS, next).await.ok().flatten()
    }

    fn look_for_start(&mut self, page: &[Entry]) {
        if page.is_empty() {
            // Purged while it waited.
            self.state = State::Over;
        }
        for entry in page {
            match &entry.fact.event {
                Event::TurnStarted(e) if e.turn == self.turn => {
                    self.state = self.started(entry.place);
                    return;
                }
                Event::PromptDropped(e) if e.turn == self.turn => return self.give_up(&entry.fact),
                Event::SessionDeleted(_) => return self.give_up(&entry.fact),
                _ => {}
            }
        }
    }

    /// The turn will never start. Its client waits for an end all the same.
    fn give_up(&mut self, fact: &Fact) {
        let at = Cursor { place: fact.seq, n: 0 };
        let packet = json!({
            "_meta": {},
            "stopReason": "cancelled",
            "type": "prompt_response",
            "timestamp": stamp(fact.time),
        });
        let told = if at > self.cursor { frame(at, packet.to_string().as_bytes()) } else { Vec::new() };
        self.state = State::Rest(told.into());
    }

    pub(super) fn respond(self, seat: Seat) -> Response {
        let names = [("tolka-session", self.session.to_string()), ("tolka-turn", self.turn.to_string())];
        let told = futures_util::stream::unfold((self, seat), |(mut telling, seat)| async {
            let next = telling.next_or_last(&seat).await?;
            let next = next.inspect(|bytes| seat.0.metrics.told(bytes.len())).map_err(|error| {
                tracing::error!(%error, "a stream broke off");
                std::io::Error::other("the journal cannot be read")
            });
            Some((next, (telling, seat)))
        });
        let mut response = event_stream(Body::from_stream(told));
        for (name, value) in names {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

/// The frames of the turn's last fact that a reader at `cursor` lacks.
async fn rest_of(app: &App, channel: &Channel, session: &SessionId, end: u64, cursor: Cursor) -> Result<Bytes, Fault> {
    let mut rest = Vec::new();
    if cursor.place == end {
        let entry = super::fact_at(app, session, end).await?;
        let mut voice = Voice::new(app.journal().clone(), channel.clone());
        voice.payloads(&[entry], cursor, |at, payload| rest.extend(frame(at, payload))).await?;
    }
    Ok(rest.into())
}

/// A stream of one packet that is no fact, and so has no position.
pub(super) fn one_packet(payload: &[u8]) -> Response {
    event_stream(Body::from([b"event: message\ndata: ", payload, b"\n\n"].concat()))
}

fn frame(at: Cursor, payload: &[u8]) -> Vec<u8> {
    [format!("event: message\nid: {at}\ndata: ").as_bytes(), payload, b"\n\n"].concat()
}

fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
