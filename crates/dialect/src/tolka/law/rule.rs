//! The demands on facts. Their sections are those of docs/facts.md.

use crate::check::{Manners, Rule};

/// A file has a fact per line, a stream an event per fact, with its position in `id:`.
pub(super) const MANNERS: Manners =
    Manners { bare: None, crlf: None, id: None, event: None, data: None, blank: None, json: &JSON, cut: &CUT };

const JSON: Rule = Rule { name: "json", section: "Facts", demand: "A fact is one JSON object." };
const CUT: Rule = Rule { name: "cut", section: "Facts", demand: "The stream does not end inside a fact." };

pub(super) const ENVELOPE: Rule = Rule {
    name: "envelope",
    section: "The envelope",
    demand: "A fact has its version, session, seq, time, cause, type and data.",
};
pub(super) const VERSION: Rule = Rule {
    name: "version",
    section: "The envelope",
    demand: "The version is one that was ever written; a reader refuses a higher one.",
};
pub(super) const UNKNOWN: Rule =
    Rule { name: "unknown-event", section: "Events", demand: "The type is one of the version's." };
pub(super) const DATA: Rule =
    Rule { name: "data", section: "Events", demand: "The data is that of the type, and the type stands before it." };
pub(super) const SEQ: Rule =
    Rule { name: "seq", section: "The envelope", demand: "The seq of a session's facts goes up by one." };
pub(super) const TIME: Rule = Rule {
    name: "time",
    section: "The envelope",
    demand: "A fact is never earlier than the one before it in its session.",
};

pub(super) const CREATED: Rule =
    Rule { name: "created-first", section: "Sessions", demand: "A session is created once, by its first fact." };
pub(super) const QUEUED: Rule = Rule {
    name: "queued-first",
    section: "Turns",
    demand: "A prompt is dropped that was queued and has not started; it does not start after that.",
};
pub(super) const TURN: Rule =
    Rule { name: "turn", section: "Turns", demand: "A turn starts once, when no other is open, and ends once." };
pub(super) const TURN_ENDS: Rule =
    Rule { name: "turn-ends", section: "Turns", demand: "A turn that started ends: readers wait for it." };
pub(super) const IN_TURN: Rule = Rule {
    name: "in-turn",
    section: "What the agent says and does",
    demand: "Steps, texts and calls are inside a turn: outside of one no dialect tells them.",
};
pub(super) const STEP: Rule =
    Rule { name: "step", section: "Turns", demand: "A step that ends is the one that was started last." };
pub(super) const CALL_ENDED: Rule = Rule {
    name: "call-ended",
    section: "What the agent says and does",
    demand: "Nothing is told of a call after it was completed, failed or cancelled.",
};
pub(super) const ASKED_ONCE: Rule = Rule {
    name: "asked-once",
    section: "What waits for a person",
    demand: "A permission or a question is asked once.",
};
pub(super) const ANSWER: Rule = Rule {
    name: "answer",
    section: "What waits for a person",
    demand: "An answer is to what waits for one, and is one of those that were offered.",
};

/// But for those of the lines.
pub(super) const ALL: &[&Rule] = &[
    &ENVELOPE,
    &VERSION,
    &UNKNOWN,
    &DATA,
    &SEQ,
    &TIME,
    &CREATED,
    &QUEUED,
    &TURN,
    &TURN_ENDS,
    &IN_TURN,
    &STEP,
    &CALL_ENDED,
    &ASKED_ONCE,
    &ANSWER,
];
