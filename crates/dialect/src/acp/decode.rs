//! Messages to drafts: what an agent sends, what its client sends, both as recorded (`{"t","dir","msg"}`), and our own
//! telling of a session, which marks where its turns begin.
//!
//! A stream may hold one direction only. Where no prompt is seen, a turn begins with the user's words or, if the
//! stream began in its middle, with the agent's; it ends with a response that has a reason to stop. What the protocol
//! has and facts do not becomes `Foreign`, with the whole message as its raw; so does history that a `session/load`
//! repeats.

mod answer;
mod request;
mod session;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tolka_facts::event::{Foreign, SessionCreated};
use tolka_facts::{Cause, Draft, Ids, Json, SessionId, Time};

use self::request::Request;
use self::session::Session;
use super::method::{Side, method};
use super::recorded::Recorded;
use super::rpc::{Id, Message};
use super::waiting::Waiting;
use super::wire::lenient;
use crate::recent::Recent;
use crate::{DecodeError, Heard, SseEvent, SseReader};

/// A stream of more sessions than this forgets the one that was silent longest.
const SESSIONS: usize = 256;
/// So much is kept for the first session that is named. A stream that tells more may be of none.
const EARLY: usize = 256;

#[derive(Debug)]
pub struct Decoder {
    reader: SseReader,
    /// Read but not decoded: an error stopped the call before.
    waiting: VecDeque<SseEvent>,
    /// One seed for all: the same stream gives the same ids.
    ids: Arc<Ids>,
    /// When a recording began, by its own clock.
    began: Option<Duration>,
    sessions: Recent<Session>,
    /// The session that was spoken of last: what names none is of it.
    last: Option<SessionId>,
    /// Told before any session was named.
    early: Vec<(Option<Time>, Draft)>,
    requests: Waiting<Request>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder {
            reader: SseReader::default(),
            waiting: VecDeque::new(),
            ids: Arc::new(Ids::seeded(0)),
            began: None,
            sessions: Recent::of(SESSIONS),
            last: None,
            early: Vec::new(),
            requests: Waiting::default(),
        }
    }
}

/// The session that a message names, and its folder.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Named {
    #[serde(default, deserialize_with = "lenient")]
    session_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    cwd: Option<String>,
}

fn named(params: &Json) -> Option<SessionId> {
    params.read::<Named>().and_then(|named| named.session_id).map(SessionId::from)
}

impl crate::Decoder for Decoder {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.feed(bytes, &mut events);
        self.waiting.extend(events);
        while let Some(event) = self.waiting.pop_front() {
            self.line(&event.data, out).map_err(|problem| DecodeError { line: event.line, problem })?;
        }
        read
    }

    fn finish(&mut self, out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.finish(&mut events);
        self.waiting.extend(events);
        self.feed(b"", out)?;
        self.tell_early(None, out);
        for (id, session) in self.sessions.drain() {
            Decoder::leave(&id, session, None, out);
        }
        read
    }
}

/// One message that is being read.
struct Frame<'a> {
    time: Option<Time>,
    raw: Json,
    out: &'a mut Vec<Heard>,
}

impl Frame<'_> {
    fn now(&self) -> Time {
        self.time.unwrap_or_default()
    }

    /// The message as a whole, for which there is no better word than its method.
    fn foreign(&self, what: &str, cause: Cause) -> Draft {
        Draft::new(cause, Foreign { origin: "acp".to_owned(), what: what.to_owned() }).with_raw(self.raw.clone())
    }
}

impl Decoder {
    fn line(&mut self, text: &str, out: &mut Vec<Heard>) -> Result<(), String> {
        let Some(Recorded { time, side, message: raw }) = Recorded::read(text).map_err(|e| e.to_string())? else {
            let raw = Json::parse(text).map_err(|e| e.to_string())?;
            return self.message(None, &mut Frame { time: None, raw, out });
        };
        let since = time.map(|time| time.saturating_sub(*self.began.get_or_insert(time)));
        let time =
            since.map(|since| Time::from_micros(since.saturating_add(Duration::from_nanos(500)).as_micros() as u64));
        let mut frame = Frame { time, raw, out };
        if side.is_some() {
            return self.message(side, &mut frame);
        }
        let noise = frame.foreign("noise", Cause::Agent);
        self.tell(None, vec![noise], &mut frame);
        Ok(())
    }

    fn message(&mut self, side: Option<Side>, frame: &mut Frame<'_>) -> Result<(), String> {
        let sender = |name: &str| side.or(method(name).and_then(|method| method.from)).unwrap_or(Side::Agent);
        match Message::parse(frame.raw.get()).map_err(|e| e.to_string())? {
            Message::Request { id, method, params } => match sender(&method) {
                Side::Client => self.client_asks(&id, &method, &params, frame),
                Side::Agent => self.agent_asks(&id, &method, &params, frame),
            },
            Message::Notification { method, params } => self.notified(sender(&method), &method, &params, frame),
            Message::Response { id, outcome } => self.responded(side, id.as_ref(), outcome, frame),
        }
        Ok(())
    }

    fn notified(&mut self, from: Side, method: &str, params: &Json, frame: &mut Frame<'_>) {
        #[derive(Deserialize)]
        struct Params {
            update: Json,
        }
        let session = named(params);
        match (method, from) {
            ("session/update", Side::Agent) => {
                if let (Some(id), Some(Params { update })) = (session.clone(), params.read()) {
                    let (now, mut drafts) = (frame.now(), Vec::new());
                    self.session(&id, frame).update(&update, now, &mut drafts);
                    return self.tell(Some(&id), drafts, frame);
                }
            }
            ("$/cancel_request", from) if self.withdrawn(from, params, frame) => return,
            _ => {}
        }
        let cause = if from == Side::Client { Cause::Client } else { Cause::Agent };
        let foreign = frame.foreign(method, cause);
        self.tell(session.as_ref(), vec![foreign], frame);
    }

    /// The session of this name, made known on first sight.
    fn session(&mut self, id: &SessionId, frame: &mut Frame<'_>) -> &mut Session {
        self.know(id, None, frame);
        self.sessions.touch_or_insert(id.as_str(), || Session::new(Arc::clone(&self.ids)))
    }

    /// A session is named. If that is the first time, `created` tells so, and what came before any is of it.
    fn know(&mut self, id: &SessionId, created: Option<Draft>, frame: &mut Frame<'_>) {
        self.last = Some(id.clone());
        if self.sessions.touch(id.as_str()).is_some() {
            return;
        }
        if let Some((silent, session)) = self.sessions.admit(id.as_str(), Session::new(Arc::clone(&self.ids))) {
            Decoder::leave(&silent, session, frame.time, frame.out);
        }
        frame.out.extend(Heard::all(created.into_iter().collect(), Some(id), frame.time));
        self.tell_early(Some(id), frame.out);
    }

    /// A session is heard of no more, or forgotten: what the user said last has not been told yet.
    fn leave(id: &str, mut session: Session, time: Option<Time>, out: &mut Vec<Heard>) {
        let mut drafts = Vec::new();
        session.flush(time.unwrap_or_default(), &mut drafts);
        out.extend(Heard::all(drafts, Some(&SessionId::from(id)), time));
    }

    fn tell_early(&mut self, session: Option<&SessionId>, out: &mut Vec<Heard>) {
        out.extend(self.early.drain(..).map(|(time, draft)| Heard { session: session.cloned(), time, draft }));
    }

    fn created(workspace: String, raw: &Json) -> Draft {
        let created = SessionCreated {
            workspace,
            agent: String::new(),
            title: String::new(),
            mode: None,
            model: None,
            parent: None,
        };
        Draft::agent(created).with_raw(raw.clone())
    }

    /// Tells drafts of a session, or of the one that was spoken of last.
    fn tell(&mut self, session: Option<&SessionId>, drafts: Vec<Draft>, frame: &mut Frame<'_>) {
        let known = session.filter(|id| self.sessions.get(id.as_str()).is_some()).or(self.last.as_ref());
        match known {
            Some(id) => frame.out.extend(Heard::all(drafts, Some(id), frame.time)),
            None => {
                self.early.extend(drafts.into_iter().map(|draft| (frame.time, draft)));
                if self.early.len() >= EARLY {
                    self.tell_early(None, frame.out);
                }
            }
        }
    }
}
