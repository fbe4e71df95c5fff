//! One dialect in, another out: what a decoder reads is stamped as a journal would stamp it, and told again.
//!
//! Where a stream does not say so, it is about one session, and each fact happened when the one before did.

use std::collections::{BTreeMap, HashMap};

use tolka_facts::event::SessionCreated;
use tolka_facts::{Blobs, Draft, Event, NoBlobs, SessionId, Time, Tip};

use crate::{Carriage, DecodeError, Decoder, Dialect, Encoder, Frames, Heard};

/// For a stream that names no session.
const SESSION: &str = "ses_retold";

#[derive(Debug)]
pub struct Retelling {
    to: Dialect,
    decoder: Box<dyn Decoder>,
    sessions: HashMap<SessionId, Speaker>,
    time: Time,
    lost: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct Speaker {
    tip: Tip,
    encoder: Box<dyn Encoder>,
}

impl Retelling {
    /// `began` is the time of facts that come before the first one with a time.
    pub fn new(from: Dialect, to: Dialect, began: Time) -> Self {
        Retelling { to, decoder: from.decoder(), sessions: HashMap::new(), time: began, lost: BTreeMap::new() }
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

    /// How many facts of each kind the dialect had no words for.
    pub fn lost(&self) -> &BTreeMap<&'static str, u64> {
        &self.lost
    }

    fn tell(&mut self, heard: Heard, out: &mut Frames) {
        let session = heard.session.unwrap_or_else(|| SessionId::from(SESSION));
        self.time = heard.time.unwrap_or(self.time).max(self.time);
        let (to, time) = (self.to, self.time);
        let is_new = !self.sessions.contains_key(&session);
        let speaker = self
            .sessions
            .entry(session.clone())
            .or_insert_with(|| Speaker { tip: Tip::default(), encoder: to.encoder() });
        if is_new && !session.is_server() && !matches!(heard.draft.event, Event::SessionCreated(_)) {
            // A stream that began later, or of a wire that does not tell it. Clients cannot show what has no session.
            speaker.tell(created(), &session, time, &NoBlobs, out);
        }
        let (name, before) = (heard.draft.event.name(), out.len());
        speaker.tell(heard.draft, &session, time, &NoBlobs, out);
        if out.len() == before && is_never_told(to, name) {
            *self.lost.entry(name).or_default() += 1;
        }
    }
}

impl Speaker {
    fn tell(&mut self, draft: Draft, session: &SessionId, time: Time, blobs: &dyn Blobs, out: &mut Frames) {
        let fact = draft.stamp(session.clone(), self.tip.seq + 1, time.max(self.tip.time));
        self.tip.apply(&fact);
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

/// A fact that is told by a later one, as the input of a call is by its start, is not lost.
fn is_never_told(dialect: Dialect, event: &str) -> bool {
    let row = dialect.carriage().iter().find(|(name, _)| *name == event);
    row.is_none_or(|(_, carriage)| matches!(carriage, Carriage::Never(_)))
}
