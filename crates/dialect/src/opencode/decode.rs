//! OpenCode's wire to drafts: our three profiles, the real server's `/event` and `/global/event`, and the
//! bare `{type, properties}` of document 004.
//!
//! A feed tells of many sessions at once and a draft does not name its session, so the drafts of several
//! sessions come interleaved, in the order of the feed. Text is told exactly once, whether it comes as
//! deltas, as whole parts, or as both. An event of a kind that is not known becomes a `Foreign` draft with
//! all that it said; one of a known kind that lacks what its document requires is an error, and the next
//! call goes on after it.

mod asks;
mod call;
mod event;
mod failure;
mod grown;
mod message;
mod part;
mod parts;
mod server;
mod session;
mod summary;
mod tagged;
mod time;
mod turn;

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;
use tolka_facts::event::Foreign;
use tolka_facts::{Draft, Json, SessionId};

pub use event::{SessionInfo, WireEvent};
pub use message::{AssistantMessage, Message, UserMessage, WireError};
pub use part::{InputPart, Part, Status, ToolState};

use crate::{DecodeError, Heard, SseEvent, SseReader};
use session::Session;

/// A feed of more sessions than this forgets the one that was silent longest.
const SESSIONS: usize = 256;

#[derive(Debug, Default)]
pub struct Decoder {
    reader: SseReader,
    /// Read but not decoded: an error stopped the call before.
    waiting: VecDeque<SseEvent>,
    sessions: HashMap<String, (u64, Session)>,
    events: u64,
}

/// `{directory, project, payload}` of `/global/event`, or the event itself.
#[derive(Deserialize)]
struct Envelope {
    r#type: Option<String>,
    payload: Option<Json>,
    directory: Option<String>,
}

impl crate::Decoder for Decoder {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.feed(bytes, &mut events);
        self.waiting.extend(events);
        while let Some(event) = self.waiting.pop_front() {
            self.frame(&event.data, out).map_err(|e| DecodeError { line: event.line, problem: e.to_string() })?;
        }
        read
    }

    fn finish(&mut self, out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.finish(&mut events);
        self.waiting.extend(events);
        self.feed(b"", out)?;
        let mut sessions: Vec<_> = self.sessions.drain().map(|(_, session)| session).collect();
        sessions.sort_by_key(|(used, _)| *used);
        for (_, session) in &mut sessions {
            let mut drafts = Vec::new();
            session.finish(&mut drafts);
            out.extend(Heard::all(drafts, Some(&session.session_id()), None));
        }
        read
    }
}

impl Decoder {
    fn frame(&mut self, data: &str, out: &mut Vec<Heard>) -> Result<(), serde_json::Error> {
        let envelope: Envelope = serde_json::from_str(data)?;
        let Some(payload) = envelope.payload else {
            return self.event(data, envelope.r#type.as_deref(), envelope.directory.as_deref(), out);
        };
        let inner: Envelope = serde_json::from_str(payload.get())?;
        // `/global/event` repeats every durable event in this second form.
        if inner.r#type.as_deref() == Some("sync") {
            return Ok(());
        }
        self.event(payload.get(), inner.r#type.as_deref(), envelope.directory.as_deref(), out)
    }

    fn event(
        &mut self,
        raw: &str,
        kind: Option<&str>,
        directory: Option<&str>,
        out: &mut Vec<Heard>,
    ) -> Result<(), serde_json::Error> {
        let event: WireEvent = serde_json::from_str(raw)?;
        let mut drafts = Vec::new();
        let Some(id) = event.session().map(str::to_owned) else {
            server::tell(event, kind.unwrap_or_default(), directory, raw, &mut drafts);
            keep_raw(&mut drafts, raw);
            out.extend(Heard::all(drafts, Some(&SessionId::server()), time::read(raw)));
            return Ok(());
        };
        let is_deleted = matches!(event, WireEvent::SessionDeleted(_));
        let session = self.session(&id);
        session.release(part_of(&event), &mut drafts);
        let before = drafts.len();
        let repeats = repeats_state(&event);
        let time = time::read(raw).or_else(|| time::before_retry(&event, raw));
        session.now = time.or(session.now);
        tell(session, event, raw, &mut drafts);
        if !repeats {
            keep_raw(&mut drafts[before..], raw);
        }
        out.extend(Heard::all(drafts, Some(&session.session_id()), time));
        if is_deleted {
            self.sessions.remove(&id);
        }
        Ok(())
    }

    fn session(&mut self, id: &str) -> &mut Session {
        self.events += 1;
        if !self.sessions.contains_key(id) && self.sessions.len() >= SESSIONS {
            let silent = self.sessions.iter().min_by_key(|(_, (used, _))| *used).map(|(id, _)| id.clone());
            silent.and_then(|silent| self.sessions.remove(&silent));
        }
        let (used, session) = self.sessions.entry(id.to_owned()).or_insert_with(|| (0, Session::new(id)));
        *used = self.events;
        session
    }
}

fn tell(session: &mut Session, event: WireEvent, raw: &str, out: &mut Vec<Draft>) {
    match event {
        WireEvent::SessionCreated(e) => session.created(&e.info, out),
        WireEvent::SessionUpdated(e) => session.updated(&e.info, out),
        WireEvent::SessionDeleted(_) => Session::deleted(out),
        WireEvent::SessionStatus(e) => {
            session.status(&e.status, out);
            if matches!(e.status, Status::Other(_)) {
                out.push(foreign("session.status", raw));
            }
        }
        WireEvent::SessionIdle(_) => session.idle(out),
        WireEvent::SessionError(e) => session.error(e.error.as_ref(), out),
        WireEvent::SessionCompacted(_) => session.compacted(out),
        WireEvent::MessageUpdated(e) => match e.info {
            Message::User(message) => session.user(message, raw, out),
            Message::Assistant(message) => session.assistant(&message, out),
            Message::Other(_) => out.push(foreign("message.updated", raw)),
        },
        WireEvent::MessageRemoved(e) => session.removed(&e.message_id, out),
        WireEvent::PartUpdated(e) => session.part(&e, raw, out),
        WireEvent::PartDelta(e) => session.delta(&e, raw, out),
        WireEvent::PermissionAsked(e) => session.permission_asked(e, out),
        WireEvent::PermissionUpdated(e) => session.permission_updated(e, out),
        WireEvent::PermissionReplied(e) => session.permission_replied(&e, out),
        WireEvent::QuestionAsked(e) => session.question_asked(e, out),
        WireEvent::QuestionReplied(e) => session.question_answered(&e.request_id, Some(e.answers), out),
        WireEvent::QuestionRejected(e) => session.question_answered(&e.request_id, None, out),
        WireEvent::TodoUpdated(e) => session.todos(e, out),
        other => server::tell(other, "", None, raw, out),
    }
}

/// The message that an event is a part of.
fn part_of(event: &WireEvent) -> Option<&str> {
    match event {
        WireEvent::PartUpdated(e) => e.part.place().map(|(_, message, _)| message),
        WireEvent::PartDelta(e) => Some(&e.message_id),
        _ => None,
    }
}

/// Events that say again what was said: their raw form would make a journal grow with the square of a text.
fn repeats_state(event: &WireEvent) -> bool {
    match event {
        WireEvent::PartDelta(_) => true,
        WireEvent::PartUpdated(e) => match &e.part {
            Part::Text(_) | Part::Reasoning(_) => true,
            Part::Tool(part) => matches!(part.state, ToolState::Pending(_) | ToolState::Running(_)),
            _ => false,
        },
        _ => false,
    }
}

fn keep_raw(drafts: &mut [Draft], raw: &str) {
    if drafts.iter().all(|draft| draft.raw.is_none())
        && let Some(first) = drafts.first_mut()
    {
        first.raw = Json::parse(raw).ok();
    }
}

fn foreign(what: &str, raw: &str) -> Draft {
    let mut draft = Draft::agent(Foreign { origin: "opencode".to_owned(), what: what.to_owned() });
    draft.raw = Json::parse(raw).ok();
    draft
}
