//! What facts owe each other: a journal is gapless, its time does not run back, and what is begun, ended and answered
//! goes in pairs.
//!
//! A stream may start anywhere in a journal. Of what may have been before its start nothing is demanded.

mod journal;
mod rule;

use serde_json::Value;
use tolka_facts::{Event, Fact, VERSION};

use crate::check::{Field, Findings, Kind, Law, Manners, Packet, Rule, must, problems};
use crate::recent::Recent;
use journal::Journal;

const REMEMBERED_SESSIONS: usize = 1024;

const ENVELOPE: &[Field] = &[
    must("v", Kind::Integer),
    must("session", Kind::Text),
    must("seq", Kind::Integer),
    must("time", Kind::Integer),
    must("cause", Kind::OneOf(&["agent", "client", "tolka"])),
    must("type", Kind::Text),
    must("data", Kind::Open),
];

pub(crate) fn law() -> Box<dyn Law> {
    Box::new(Journals { sessions: Recent::of(REMEMBERED_SESSIONS) })
}

#[derive(Debug)]
struct Journals {
    sessions: Recent<Journal>,
}

impl Law for Journals {
    fn manners(&self) -> &'static Manners {
        &rule::MANNERS
    }

    fn judge(&mut self, packet: &Packet<'_>, out: &mut Findings<'_>) {
        let fact = packet.body;
        let wrong = problems(fact, ENVELOPE);
        let is_sound = wrong.is_empty();
        wrong.into_iter().for_each(|problem| out.add(&rule::ENVELOPE, problem));
        let (Some(id), Some(seq)) = (fact["session"].as_str(), fact["seq"].as_u64()) else { return };
        let (time, event) = (fact["time"].as_u64(), if is_sound { read(fact, out) } else { None });
        match self.sessions.get_mut(id) {
            Some(journal) => journal.goes_on(seq, time, out),
            None => self.sessions.insert(id, Journal::from(seq, time.unwrap_or_default())),
        }
        let Some(journal) = self.sessions.get_mut(id) else { return };
        match event {
            Some(event) => journal.apply(&event, out),
            None => journal.lost_a_fact(),
        }
    }

    fn end(&mut self, out: &mut Findings<'_>) {
        for (id, journal) in self.sessions.iter() {
            if let Some(turn) = journal.open_turn() {
                out.add(&rule::TURN_ENDS, format!("the stream ends, and turn `{turn}` of `{id}` is open"));
            }
        }
    }

    fn rules(&self) -> Vec<&'static Rule> {
        rule::ALL.to_vec()
    }
}

/// The event, if it is one that this version knows and has what it must have.
fn read(fact: &Value, out: &mut Findings<'_>) -> Option<Event> {
    let (version, kind) = (fact["v"].as_u64()?, fact["type"].as_str()?);
    if !(1..=u64::from(VERSION)).contains(&version) {
        out.add(&rule::VERSION, format!("version {version}, where {VERSION} is the newest"));
        return None;
    }
    if !Event::NAMES.contains(&kind) {
        out.add(&rule::UNKNOWN, format!("`{kind}` is no event of version {version}"));
        return None;
    }
    match Fact::from_json(fact.to_string().as_bytes()) {
        Ok(fact) => Some(fact.event),
        Err(error) => {
            out.add(&rule::DATA, error.to_string());
            None
        }
    }
}
