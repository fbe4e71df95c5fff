//! One dialect in, another out: what a decoder reads is stamped as a journal would stamp it, and told again.
//!
//! Where a stream does not say so, it is about one session, and each fact happened when the one before did.

mod steps;

use std::collections::BTreeMap;

use tolka_facts::event::SessionCreated;
use tolka_facts::{Blobs, Cause, Draft, Event, NoBlobs, SessionId, Time, Tip};

use steps::Steps;

use crate::recent::Recent;
use crate::{Carriage, DecodeError, Decoder, Dialect, Encoder, Frames, Heard};

/// For a stream that names no session.
const SESSION: &str = "ses_retold";
/// Of more sessions than this the one that was silent longest is forgotten; should it speak again, it is told as new.
/// Decoders remember fewer.
const SESSIONS: usize = 1024;

#[derive(Debug)]
pub struct Retelling {
    from: Dialect,
    to: Dialect,
    decoder: Box<dyn Decoder>,
    sessions: Recent<Speaker>,
    began: Time,
    time: Time,
    /// The one session that is told, where the dialect tells only one: the first that speaks, unless one was chosen.
    only: Option<SessionId>,
    understood: u64,
    lost: BTreeMap<&'static str, u64>,
    left_out: BTreeMap<SessionId, u64>,
}

#[derive(Debug)]
struct Speaker {
    tip: Tip,
    encoder: Box<dyn Encoder>,
    /// Facts are told as they are, and within a family nobody misses what it has no words for.
    steps: Option<Steps>,
}

impl Retelling {
    /// `began` is the time of facts that come before the first one with a time.
    pub fn new(from: Dialect, to: Dialect, began: Time) -> Self {
        Retelling {
            from,
            to,
            decoder: from.decoder(),
            sessions: Recent::of(SESSIONS),
            began,
            time: began,
            only: None,
            understood: 0,
            lost: BTreeMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// Tells this session and no other.
    #[must_use]
    pub fn of_session(mut self, session: SessionId) -> Self {
        self.only = Some(session);
        self
    }

    /// Takes bytes, cut anywhere, and tells what they say. On an error all that was read before it is told; the next
    /// call goes on after it.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Frames) -> Result<(), DecodeError> {
        let mut heard = Vec::new();
        let read = self.decoder.feed(bytes, &mut heard);
        heard.into_iter().for_each(|heard| self.tell(heard, out));
        read
    }

    pub fn finish(&mut self, out: &mut Frames) -> Result<(), DecodeError> {
        let mut heard = Vec::new();
        let read = self.decoder.finish(&mut heard);
        heard.into_iter().for_each(|heard| self.tell(heard, out));
        read
    }

    /// How many facts of each kind the dialect had no words for. What we made up ourselves is no loss.
    pub fn lost(&self) -> &BTreeMap<&'static str, u64> {
        &self.lost
    }

    /// How many facts were read that we have a word for. None, of a stream that has events: it is of another dialect.
    pub fn understood(&self) -> u64 {
        self.understood
    }

    /// How many facts were of sessions that are not told.
    pub fn left_out(&self) -> &BTreeMap<SessionId, u64> {
        &self.left_out
    }

    /// Whether a session is one of those that are told.
    fn is_told(&mut self, session: &SessionId) -> bool {
        let tells_many = matches!(self.to, Dialect::Tolka | Dialect::OpenCode(_));
        if session.is_server() || (tells_many && self.only.is_none()) {
            return true;
        }
        *self.only.get_or_insert_with(|| session.clone()) == *session
    }

    fn tell(&mut self, mut heard: Heard, out: &mut Frames) {
        self.understood += u64::from(!matches!(heard.draft.event, Event::Foreign(_)));
        let session = self.ours(heard.session.unwrap_or_else(|| SessionId::from(SESSION)));
        if let Event::SessionCreated(SessionCreated { parent: Some(parent), .. }) = &mut heard.draft.event {
            parent.session = self.ours(parent.session.clone());
        }
        if !self.is_told(&session) {
            // A feed may be of any number of sessions; what is kept of them is only a count.
            if self.left_out.len() < SESSIONS || self.left_out.contains_key(&session) {
                *self.left_out.entry(session).or_default() += 1;
            }
            return;
        }
        self.time = heard.time.map_or(self.time, |time| self.absolute(time)).max(self.time);
        let (from, to, time) = (self.from, self.to, self.time);
        let is_new = self.sessions.get(session.as_str()).is_none();
        let speaker = self.sessions.touch_or_insert(session.as_str(), || Speaker::new(from, to));
        if is_new && !session.is_server() && !matches!(heard.draft.event, Event::SessionCreated(_)) {
            // A stream that began later, or of a wire that does not tell it. Clients cannot show what has no session.
            speaker.tell(created(), &session, time, &NoBlobs, out);
        }
        let steps = speaker.steps.as_ref().map(|steps| steps.before(&heard.draft.event, &speaker.tip, time));
        for draft in steps.into_iter().flatten() {
            speaker.tell(draft, &session, time, &NoBlobs, out);
        }
        let (name, before) = (heard.draft.event.name(), out.len());
        let is_made_up = from != Dialect::Tolka && heard.draft.cause == Cause::Tolka;
        speaker.tell(heard.draft, &session, time, &NoBlobs, out);
        if out.len() == before && !is_made_up && is_never(to, name) {
            *self.lost.entry(name).or_default() += 1;
        }
    }

    /// Recordings of ACP count from their own beginning.
    fn absolute(&self, time: Time) -> Time {
        match self.from {
            Dialect::Acp => Time::from_micros(self.began.micros().saturating_add(time.micros())),
            _ => time,
        }
    }

    /// The id of a session as ours are, which some families insist on. Within a family it stays as it was.
    fn ours(&self, session: SessionId) -> SessionId {
        if is_one_family(self.from, self.to) || session.is_server() || session.as_str().starts_with("ses") {
            return session;
        }
        SessionId::from(format!("ses_{session}"))
    }
}

impl Speaker {
    fn new(from: Dialect, to: Dialect) -> Self {
        let steps = (from != Dialect::Tolka && !is_one_family(from, to)).then(Steps::default);
        Speaker { tip: Tip::default(), encoder: to.encoder(), steps }
    }

    fn tell(&mut self, draft: Draft, session: &SessionId, time: Time, blobs: &dyn Blobs, out: &mut Frames) {
        let fact = draft.stamp(session.clone(), self.tip.seq + 1, time.max(self.tip.time));
        self.tip.apply(&fact);
        if let Some(steps) = &mut self.steps {
            steps.after(&fact.event, &self.tip);
        }
        self.encoder.encode(&fact, &self.tip, blobs, out);
    }
}

fn created() -> Draft {
    Draft::tolka(SessionCreated {
        workspace: String::new(),
        agent: String::new(),
        title: String::new(),
        mode: None,
        model: None,
        parent: None,
    })
}

fn is_one_family(one: Dialect, other: Dialect) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

/// Whether a dialect has no words for an event. One that is told by a later one, as the input of a call is by its start,
/// does not count.
fn is_never(dialect: Dialect, event: &str) -> bool {
    let row = dialect.carriage().iter().find(|(name, _)| *name == event);
    row.is_none_or(|(_, carriage)| matches!(carriage, Carriage::Never(_)))
}
