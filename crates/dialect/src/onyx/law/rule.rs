//! The demands, each with the place where it stands.

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
    section: "000, Packet Delivery Format",
    demand: "A packet is one line that begins with `data: `; its clients read each such line alone.",
};
const LINE_ENDS: Rule = Rule {
    name: "line-ends",
    section: "000, Packet Delivery Format",
    demand: "Lines end in LF, at which its clients split them.",
};
const EVENT_NAME: Rule = Rule {
    name: "event-name",
    section: "000, Packet Delivery Format",
    demand: "The name of every event is `message`.",
};
const JSON: Rule =
    Rule { name: "json", section: "000, Packet Delivery Format", demand: "The data of an event is one JSON object." };
const CUT: Rule =
    Rule { name: "cut", section: "000, Packet Delivery Format", demand: "The stream does not end inside a packet." };

pub(super) const TYPE: Rule = Rule {
    name: "type",
    section: "000, Packet Delivery Format",
    demand: "Every packet says in `type` what it is: today's client does not look for it elsewhere.",
};
pub(super) const UNKNOWN: Rule = Rule {
    name: "unknown-packet",
    section: "000, Packet Types Summary; 002, Packet Type Determination",
    demand: "A packet is of one of the types that the documents or today's client know.",
};
pub(super) const TIMESTAMP: Rule = Rule {
    name: "timestamp",
    section: "000, Packet Delivery Format",
    demand: "Every packet has an ISO 8601 `timestamp` with its offset; a documented `error` may have none.",
};
pub(super) const SESSION_UPDATE: Rule = Rule {
    name: "session-update",
    section: "002, Packet Type Determination",
    demand: "`sessionUpdate` is the ACP update that goes with the packet's type.",
};
pub(super) const META: Rule =
    Rule { name: "meta", section: "002, 1 to 4", demand: "`_meta` of an update is there and null." };
pub(super) const ROUTING: Rule = Rule {
    name: "meta",
    section: "today's client",
    demand: "`_meta` of an update is there; it is null, or says whose the update is and which tool is called.",
};

pub(super) const CHUNK: Rule = Rule {
    name: "chunk",
    section: "002, 1. agent_message_chunk",
    demand: "A chunk has `content` of type text, with `text`, and with `annotations` and `_meta` that are null.",
};
pub(super) const START: Rule = Rule {
    name: "tool-start",
    section: "000, 2. tool_call_start; 002, 2. tool_call_start",
    demand: "A call starts pending: its input and locations are empty, its output and content null.",
};
pub(super) const PROGRESS: Rule = Rule {
    name: "tool-progress",
    section: "000, 3. tool_call_progress; 002, 3. tool_call_progress",
    demand: "A progress has all fields of the call, with null for those that have nothing to say.",
};
pub(super) const RAW_OUTPUT: Rule = Rule {
    name: "raw-output",
    section: "000, 3. tool_call_progress, Status Progression",
    demand: "`rawOutput` is null until the call ends, then an object; of a failed call it has `error`.",
};
pub(super) const START_FIRST: Rule = Rule {
    name: "start-first",
    section: "000, 3. tool_call_progress",
    demand: "A progress belongs to a call that was started in the same turn.",
};
pub(super) const ONE_START: Rule =
    Rule { name: "one-start", section: "000, 2. tool_call_start", demand: "A call is started once in its turn." };
pub(super) const CALL_ORDER: Rule = Rule {
    name: "call-order",
    section: "000, Tool Call State Machine",
    demand: "A call goes from pending to in_progress to its end, never back.",
};
pub(super) const CALL_ENDED: Rule = Rule {
    name: "call-ended",
    section: "000, Tool Call State Machine",
    demand: "Nothing is told of a call after completed or failed.",
};
pub(super) const CALLS_END: Rule = Rule {
    name: "calls-end",
    section: "000, Tool Call State Machine",
    demand: "Every call has ended when its turn ends: clients would show it at work for ever.",
};

pub(super) const PLAN: Rule = Rule {
    name: "plan",
    section: "002, 4. agent_plan_update",
    demand: "A plan is a list of entries, each with its content, a known status and a known priority.",
};
pub(super) const MODE: Rule = Rule {
    name: "mode",
    section: "ACP's session modes; the documents have none",
    demand: "A `current_mode_update` names the mode in `currentModeId`.",
};
pub(super) const RESPONSE: Rule = Rule {
    name: "prompt-response",
    section: "000, 4. prompt_response; 002, 5. prompt_response",
    demand: "A `prompt_response` has a `_meta` that is an object, not null.",
};
pub(super) const STOP_REASON: Rule = Rule {
    name: "stop-reason",
    section: "ACP, Stop Reasons; today's client",
    demand: "`stopReason` is one of ACP's five; `stop_sequence`, which 002 lists, is of no version of ACP, and today's \
             client refuses it.",
};
pub(super) const STOP_REASON_DOCUMENTED: Rule = Rule {
    name: "stop-reason",
    section: "002, 5. prompt_response; ACP, Stop Reasons",
    demand: "`stopReason` is one of ACP's five, or the `stop_sequence` that 002 lists.",
};
pub(super) const ERROR: Rule = Rule {
    name: "error",
    section: "000, 5. error; today's client",
    demand: "An error has a message, and a code (a number) and details (an object) or null for them.",
};
pub(super) const ERROR_DOCUMENTED: Rule = Rule {
    name: "error",
    section: "000, 5. error; 002, 6. error",
    demand: "An error has a message; the documents contradict each other in the rest, and either's form is right: a \
             code that is a number, a string, null or left out, and details and a timestamp that may be left out.",
};
pub(super) const ONE_END: Rule = Rule {
    name: "one-end",
    section: "002, 5. prompt_response",
    demand: "A turn ends once, with a `prompt_response` or an `error`.",
};
pub(super) const TURN_END: Rule = Rule {
    name: "turn-end",
    section: "000, 4. prompt_response",
    demand: "A turn ends with a `prompt_response` or an `error`: until then clients wait.",
};
pub(super) const ARTIFACT: Rule = Rule {
    name: "artifact",
    section: "002, 7. artifact_created",
    demand: "An artifact has an id, one of four types, a name, a path and perhaps a `preview_url`.",
};
pub(super) const TODAY: Rule = Rule {
    name: "today",
    section: "today's client; the documents do not have this packet",
    demand: "The packet has the fields that today's client reads.",
};

/// But for those of the lines, and of one profile.
pub(super) const ALL: &[&Rule] = &[
    &TYPE,
    &UNKNOWN,
    &TIMESTAMP,
    &SESSION_UPDATE,
    &CHUNK,
    &START,
    &PROGRESS,
    &RAW_OUTPUT,
    &START_FIRST,
    &ONE_START,
    &CALL_ORDER,
    &CALL_ENDED,
    &CALLS_END,
    &PLAN,
    &MODE,
    &RESPONSE,
    &ONE_END,
    &TURN_END,
    &ARTIFACT,
    &TODAY,
];
pub(super) const DOCUMENTED: &[&Rule] = &[&META, &STOP_REASON_DOCUMENTED, &ERROR_DOCUMENTED];
pub(super) const CURRENT: &[&Rule] = &[&ROUTING, &STOP_REASON, &ERROR];
