//! What each packet holds, beside what all have. Nulls that the documents show are fields like others: a client that
//! was written to them may look.

use super::rule;
use crate::check::{Field, Kind, Rule, may, must};

pub(super) struct Known {
    pub(super) name: &'static str,
    /// `sessionUpdate`, of packets that are updates of ACP.
    pub(super) update: Option<&'static str>,
    pub(super) rule: &'static Rule,
    pub(super) fields: &'static [Field],
}

const fn update(name: &'static str, update: &'static str, rule: &'static Rule, fields: &'static [Field]) -> Known {
    Known { name, update: Some(update), rule, fields }
}

const fn other(name: &'static str, rule: &'static Rule, fields: &'static [Field]) -> Known {
    Known { name, update: None, rule, fields }
}

/// But for `error`, which each profile has its own of.
pub(super) const PACKETS: &[Known] = &[
    update("agent_message_chunk", "agent_message_chunk", &rule::CHUNK, CHUNK),
    update("agent_thought_chunk", "agent_thought_chunk", &rule::CHUNK, CHUNK),
    update("tool_call_start", "tool_call", &rule::START, START),
    update("tool_call_progress", "tool_call_update", &rule::PROGRESS, PROGRESS),
    update("agent_plan_update", "plan", &rule::PLAN, PLAN),
    update("current_mode_update", "current_mode_update", &rule::MODE, &[must("currentModeId", Kind::Text)]),
    other("prompt_response", &rule::RESPONSE, &[must("_meta", Kind::Open)]),
    other("artifact_created", &rule::ARTIFACT, ARTIFACT),
    other("approval_requested", &rule::TODAY, APPROVAL),
    other("subagent_started", &rule::TODAY, SUBAGENT),
    other("context_usage", &rule::TODAY, CONTEXT_USAGE),
    other("compaction", &rule::TODAY, &[must("summary", Kind::Or(&Kind::Text))]),
    other("connect_app_request", &rule::TODAY, CONNECT_APP),
];

pub(super) const STAMPED: &[Field] = &[must("timestamp", Kind::Time)];
pub(super) const STAMPED_PERHAPS: &[Field] = &[may("timestamp", Kind::Time)];
pub(super) const NO_META: &[Field] = &[META];
pub(super) const ROUTING: &[Field] = &[must("_meta", Kind::Or(&Kind::Object(ROUTES)))];
pub(super) const FAILED: &Known = &other("error", &rule::ERROR, ERROR);
pub(super) const FAILED_DOCUMENTED: &Known = &other("error", &rule::ERROR_DOCUMENTED, ERROR_DOCUMENTED);
/// Of a `prompt_response`: what ACP has, and the one that document 002 has beside.
pub(super) const STOPPED: &[Field] = &[must("stopReason", Kind::OneOf(STOP_REASONS))];
pub(super) const STOPPED_DOCUMENTED: &[Field] = &[must("stopReason", Kind::OneOf(STOP_REASONS_DOCUMENTED))];

const META: Field = must("_meta", Kind::Null);
const ROUTES: &[Field] = &[
    may("sessionId", Kind::Text),
    may("parentSessionId", Kind::Text),
    may("parentToolCallId", Kind::Text),
    may("subagentSessionId", Kind::Text),
    may("toolName", Kind::Text),
];
const STOP_REASONS: &[&str] = &["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
const STOP_REASONS_DOCUMENTED: &[&str] =
    &["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "stop_sequence"];
const KINDS: &[&str] =
    &["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];
const STATUSES: &[&str] = &["pending", "in_progress", "completed", "failed"];
const MAYBE_TEXT: Kind = Kind::Or(&Kind::Text);

const CHUNK: &[Field] = &[must(
    "content",
    Kind::Object(&[
        META,
        must("type", Kind::OneOf(&["text"])),
        must("text", Kind::Text),
        must("annotations", Kind::Null),
    ]),
)];

const START: &[Field] = &[
    must("toolCallId", Kind::Text),
    must("title", Kind::Text),
    must("kind", Kind::OneOf(KINDS)),
    must("status", Kind::OneOf(&["pending"])),
    must("rawInput", Kind::EmptyObject),
    must("rawOutput", Kind::Null),
    must("content", Kind::Null),
    must("locations", Kind::EmptyList),
];

const PROGRESS: &[Field] = &[
    must("toolCallId", Kind::Text),
    must("title", Kind::Text),
    must("kind", Kind::OneOf(KINDS)),
    must("status", Kind::OneOf(STATUSES)),
    must("rawInput", Kind::Open),
    must("rawOutput", Kind::Or(&Kind::Open)),
    must("content", Kind::Or(&Kind::List(&Kind::Tagged("type", ITEMS)))),
    must("locations", Kind::Or(&Kind::List(&Kind::Object(LOCATION)))),
];

const LOCATION: &[Field] = &[META, must("path", Kind::Text), must("line", Kind::Or(&Kind::Integer))];

const ITEMS: &[(&str, &[Field])] = &[
    ("content", &[META, must("content", Kind::Tagged("type", BLOCKS))]),
    ("diff", &[META, must("path", Kind::Text), must("oldText", Kind::Text), must("newText", Kind::Text)]),
];

/// The documents show text; the others are ACP's, and pass through.
const BLOCKS: &[(&str, &[Field])] = &[
    ("text", &[META, must("text", Kind::Text), ANNOTATIONS]),
    ("image", &[META, must("data", Kind::Text), must("mimeType", Kind::Text), may("uri", MAYBE_TEXT), ANNOTATIONS]),
    ("audio", &[META, must("data", Kind::Text), must("mimeType", Kind::Text), ANNOTATIONS]),
    ("resource_link", &[META, must("uri", Kind::Text), must("name", Kind::Text), ANNOTATIONS]),
    ("resource", &[META, must("resource", Kind::Object(&[must("uri", Kind::Text)])), ANNOTATIONS]),
];
const ANNOTATIONS: Field = must("annotations", Kind::Or(&Kind::Open));

const PLAN: &[Field] = &[must(
    "entries",
    Kind::List(&Kind::Object(&[
        META,
        must("content", Kind::Text),
        must("status", Kind::OneOf(&["pending", "in_progress", "completed"])),
        must("priority", Kind::OneOf(&["high", "medium", "low"])),
    ])),
)];

/// Document 000's, as today's client has it.
const ERROR: &[Field] =
    &[must("message", Kind::Text), must("code", Kind::Or(&Kind::Integer)), must("details", Kind::Or(&Kind::Open))];
/// Either document's: 002 has a code in words or none, and no details.
const ERROR_DOCUMENTED: &[Field] = &[
    must("message", Kind::Text),
    may("code", Kind::Or(&Kind::Either(&Kind::Integer, &Kind::Text))),
    may("details", Kind::Or(&Kind::Open)),
];

const ARTIFACT: &[Field] = &[must(
    "artifact",
    Kind::Object(&[
        must("id", Kind::Text),
        must("type", Kind::OneOf(&["file", "image", "nextjs_app", "web_app"])),
        must("name", Kind::Text),
        must("path", Kind::Text),
        may("preview_url", MAYBE_TEXT),
    ]),
)];

/// Today's server sends the two ids alone.
const APPROVAL: &[Field] = &[
    must("approval_id", Kind::Text),
    must("session_id", Kind::Text),
    may("permission", Kind::Text),
    may("title", Kind::Text),
    may("patterns", Kind::List(&Kind::Text)),
    may("toolCall", Kind::Or(&Kind::Object(PROGRESS))),
    may("options", Kind::List(&Kind::Object(CHOICE))),
];
const CHOICE: &[Field] = &[
    must("optionId", Kind::Text),
    must("name", Kind::Text),
    must("kind", Kind::OneOf(&["allow_once", "allow_always", "reject_once", "reject_always"])),
];

const SUBAGENT: &[Field] = &[must("subagent_session_id", Kind::Text), must("parent_session_id", Kind::Text)];
const CONTEXT_USAGE: &[Field] = &[must("used_tokens", Kind::Integer), must("cost", Kind::Or(&Kind::Number))];
const CONNECT_APP: &[Field] =
    &[must("request_id", Kind::Text), must("external_app_id", Kind::Integer), must("reason", MAYBE_TEXT)];
