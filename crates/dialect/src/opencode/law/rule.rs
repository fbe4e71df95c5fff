//! The demands, each with the place where it stands. "Today" is what OpenCode 1.18 publishes as its schema and does.

use crate::check::{Manners, Rule};

pub(super) const MANNERS: Manners = Manners {
    bare: Some(&FRAMING),
    crlf: Some(&LINE_ENDS),
    id: None,
    event: Some((&EVENT_NAME, &["message"])),
    data: Some(&FRAMING),
    blank: None,
    json: &JSON,
    cut: &CUT,
};

const FRAMING: Rule = Rule {
    name: "framing",
    section: "004, Subscribing to Events",
    demand: "An event is one line that begins with `data: `, and a blank line.",
};
const LINE_ENDS: Rule = Rule {
    name: "line-ends",
    section: "004, Subscribing to Events",
    demand: "Lines end in LF: clients look for two of them at the end of an event.",
};
const EVENT_NAME: Rule = Rule {
    name: "event-name",
    section: "004, Subscribing to Events",
    demand: "Events have no name but `message`: what an event is stands in its `type`.",
};
const JSON: Rule =
    Rule { name: "json", section: "004, Subscribing to Events", demand: "The data of an event is one JSON object." };
const CUT: Rule =
    Rule { name: "cut", section: "004, Subscribing to Events", demand: "The stream does not end inside an event." };

pub(super) const ENVELOPE: Rule = Rule {
    name: "envelope",
    section: "004, Subscribing to Events; today",
    demand: "An event is `{type, properties}`, today with an `id`; on the global feed that is the `payload`.",
};
pub(super) const EVENT_ID: Rule =
    Rule { name: "event-id", section: "today", demand: "The id of an event is that of no event before it." };
pub(super) const UNKNOWN: Rule = Rule {
    name: "unknown-event",
    section: "004, Event Types; today's schema",
    demand: "An event is of a type that the document or today's schema knows.",
};
pub(super) const CONNECTED: Rule = Rule {
    name: "connected-first",
    section: "004, Connection Events",
    demand: "`server.connected` is the first event of a feed.",
};

pub(super) const EVENT: Rule = Rule {
    name: "event",
    section: "004, Event Types; today's schema",
    demand: "The event has the properties that go with its type.",
};
pub(super) const SESSION: Rule = Rule {
    name: "session",
    section: "004, Session Events; today's schema",
    demand: "A session's event names it, and shows it as `info` (in the document `session`).",
};
pub(super) const MESSAGE: Rule =
    Rule { name: "message", section: "004, Message Types", demand: "A message has the fields of its role." };
pub(super) const PART: Rule =
    Rule { name: "part", section: "004, Message Parts", demand: "A part has the fields of its type." };
pub(super) const TOOL_STATE: Rule = Rule {
    name: "tool-state",
    section: "004, Tool States",
    demand: "The state of a tool has the fields of its status: pending, running, completed or error.",
};
pub(super) const ERROR: Rule = Rule {
    name: "error",
    section: "004, Error Types; today's schema",
    demand: "An error has a known name and the data that goes with it.",
};

pub(super) const SAME: Rule = Rule {
    name: "same",
    section: "004, Message Structure",
    demand: "What a message or a part is, and where it belongs, never changes.",
};
pub(super) const MESSAGE_FIRST: Rule = Rule {
    name: "message-first",
    section: "004, Message Structure",
    demand: "A message is told before its parts: clients drop a part of a message that they do not know. Judged in \
             sessions that were created on the feed.",
};
pub(super) const PART_FIRST: Rule =
    Rule { name: "part-first", section: "today", demand: "A part is told before the pieces that are added to it." };
pub(super) const TEXT: Rule = Rule {
    name: "text",
    section: "004, Handling `message.part.updated`",
    demand: "The text of a part only grows, and is what its pieces add up to; at its end blanks may be cut off.",
};
pub(super) const DELTA: Rule = Rule {
    name: "delta",
    section: "004, Handling `message.part.updated`",
    demand: "`delta` is what was added to the text since the last `message.part.updated` of the part.",
};
pub(super) const NO_DELTA: Rule = Rule {
    name: "no-delta",
    section: "today",
    demand: "Pieces come as `message.part.delta` alone: a client that reads both would show them twice.",
};
pub(super) const NO_PIECES: Rule = Rule {
    name: "no-pieces",
    section: "004, Message Events",
    demand: "Text comes as `message.part.updated` with its `delta`: the document has no `message.part.delta`, and its \
             client loses what stands there.",
};
pub(super) const TOOL_ORDER: Rule = Rule {
    name: "tool-order",
    section: "004, Tool States",
    demand: "A tool goes from pending to running to completed or error, never back and never on.",
};
pub(super) const STEPS: Rule = Rule {
    name: "steps",
    section: "today",
    demand: "A step of a message is started, then finished, before another starts.",
};
pub(super) const COMPLETED: Rule = Rule {
    name: "completed-once",
    section: "004, Message Types",
    demand: "A message is completed once, and stays so.",
};

pub(super) const ASKED_ONCE: Rule =
    Rule { name: "asked-once", section: "today", demand: "A permission or a question is asked once." };
pub(super) const ASKED: Rule = Rule {
    name: "asked-first",
    section: "today",
    demand: "An answer is to a permission or a question that was asked and not answered yet.",
};

pub(super) const IDLE: Rule = Rule {
    name: "idle-after-busy",
    section: "004, Session Events",
    demand: "`session.idle` says that work is done; there was some since the last one.",
};
pub(super) const IDLE_STATUS: Rule = Rule {
    name: "idle-status",
    section: "today",
    demand: "`session.status` says idle before `session.idle` does: clients of today go by it.",
};
pub(super) const IDLE_TOLD: Rule = Rule {
    name: "idle-told",
    section: "004, Detecting Response Completion",
    demand: "`session.idle` follows when `session.status` says idle: clients of the document wait for it.",
};
pub(super) const AFTER_IDLE: Rule = Rule {
    name: "after-idle",
    section: "004, Detecting Response Completion",
    demand: "At `session.idle` the response is complete: nothing of it comes later, as clients have stopped reading.",
};
pub(super) const TOOL_AT_IDLE: Rule = Rule {
    name: "tool-at-idle",
    section: "004, Detecting Response Completion; Tool States",
    demand: "At `session.idle` every tool of the response is completed or in error: clients would show it at work for \
             ever.",
};
pub(super) const BUSY_AT_END: Rule = Rule {
    name: "busy-at-end",
    section: "004, Detecting Response Completion",
    demand: "The stream goes on until `session.idle`: what the agent said since the last one, or since \
             `session.error`, is complete.",
};

/// But for those of the lines.
pub(super) const ALL: &[&Rule] = &[
    &ENVELOPE,
    &EVENT_ID,
    &UNKNOWN,
    &CONNECTED,
    &EVENT,
    &SESSION,
    &MESSAGE,
    &PART,
    &TOOL_STATE,
    &ERROR,
    &SAME,
    &MESSAGE_FIRST,
    &PART_FIRST,
    &TEXT,
    &DELTA,
    &NO_DELTA,
    &NO_PIECES,
    &TOOL_ORDER,
    &STEPS,
    &COMPLETED,
    &ASKED_ONCE,
    &ASKED,
    &IDLE,
    &IDLE_STATUS,
    &IDLE_TOLD,
    &AFTER_IDLE,
    &TOOL_AT_IDLE,
    &BUSY_AT_END,
];
