//! The schema as tables, as far as clients and agents depend on it.

use serde_json::Value;

use super::rule::SHAPE;
use crate::check::{Field, Findings, Kind, may, must};

const META: Field = may("_meta", Kind::Or(&Kind::Open));
const SESSION: Field = must("sessionId", Kind::Text);
const TEXT_OR_NULL: Kind = Kind::Or(&Kind::Text);
const BLOCK_TYPES: Kind = Kind::OneOf(&["text", "image", "audio", "resource_link", "resource"]);
const BLOCK: Kind = Kind::Object(&[must("type", BLOCK_TYPES), META]);
const CHUNK: &[Field] = &[must("content", BLOCK), may("messageId", TEXT_OR_NULL), META];
const TOOL_KIND: Kind =
    Kind::OneOf(&["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]);
const STATUS: Kind = Kind::OneOf(&["pending", "in_progress", "completed", "failed"]);
const CONTENT: Kind = Kind::List(&Kind::Object(&[must("type", Kind::OneOf(&["content", "diff", "terminal"]))]));
const LOCATION: Kind = Kind::Object(&[must("path", Kind::Text), may("line", Kind::Or(&Kind::Integer)), META]);
const LOCATIONS: Kind = Kind::List(&LOCATION);
const TOOL_CALL: &[Field] = &[
    must("toolCallId", Kind::Text),
    must("title", Kind::Text),
    may("name", TEXT_OR_NULL),
    may("kind", TOOL_KIND),
    may("status", STATUS),
    may("content", CONTENT),
    may("locations", LOCATIONS),
    META,
];
const TOOL_CALL_UPDATE: &[Field] = &[
    must("toolCallId", Kind::Text),
    may("title", TEXT_OR_NULL),
    may("name", TEXT_OR_NULL),
    may("kind", Kind::Or(&TOOL_KIND)),
    may("status", Kind::Or(&STATUS)),
    may("content", Kind::Or(&CONTENT)),
    may("locations", Kind::Or(&LOCATIONS)),
    META,
];
const PLAN_ENTRY: Kind = Kind::Object(&[
    must("content", Kind::Text),
    must("priority", Kind::OneOf(&["high", "medium", "low"])),
    must("status", Kind::OneOf(&["pending", "in_progress", "completed"])),
    META,
]);
const COMMAND: Kind = Kind::Object(&[
    must("name", Kind::Text),
    must("description", Kind::Text),
    may("input", Kind::Or(&Kind::Object(&[must("hint", Kind::Text)]))),
    META,
]);
const COST: Kind = Kind::Object(&[must("amount", Kind::Number), must("currency", Kind::Text), META]);
const OPTION_KIND: Kind = Kind::OneOf(&["allow_once", "allow_always", "reject_once", "reject_always"]);
const OPTION: Kind =
    Kind::Object(&[must("optionId", Kind::Text), must("name", Kind::Text), must("kind", OPTION_KIND), META]);
const CONFIG_OPTION: Kind = Kind::Object(&[must("id", Kind::Text), must("name", Kind::Text), must("type", Kind::Text)]);

type Table = &'static [(&'static str, &'static [Field])];

fn row(table: Table, name: &str) -> Option<&'static [Field]> {
    table.iter().find(|(row, _)| *row == name).map(|(_, fields)| *fields)
}

/// `None` for a kind that the schema does not have.
pub(super) fn update(kind: &str) -> Option<&'static [Field]> {
    row(UPDATES, kind)
}

/// What the parameters of a method must hold.
pub(super) fn params(method: &str) -> &'static [Field] {
    row(PARAMS, method).unwrap_or_default()
}

/// What the result of a method must hold.
pub(super) fn result(method: &str) -> &'static [Field] {
    row(RESULTS, method).unwrap_or_default()
}

const UPDATES: Table = &[
    ("user_message_chunk", CHUNK),
    ("agent_message_chunk", CHUNK),
    ("agent_thought_chunk", CHUNK),
    ("tool_call", TOOL_CALL),
    ("tool_call_update", TOOL_CALL_UPDATE),
    ("plan", &[must("entries", Kind::List(&PLAN_ENTRY)), META]),
    ("available_commands_update", &[must("availableCommands", Kind::List(&COMMAND)), META]),
    ("current_mode_update", &[must("currentModeId", Kind::Text), META]),
    ("config_option_update", &[must("configOptions", Kind::List(&CONFIG_OPTION)), META]),
    ("session_info_update", &[may("title", TEXT_OR_NULL), may("updatedAt", TEXT_OR_NULL), META]),
    ("usage_update", &[must("used", Kind::Integer), must("size", Kind::Integer), may("cost", Kind::Or(&COST)), META]),
    ("notice", &[must("severity", Kind::Text), must("title", Kind::Text), may("description", TEXT_OR_NULL), META]),
    (
        "compaction_update",
        &[
            must("compactionId", Kind::Text),
            must("status", Kind::Text),
            may("summary", Kind::Or(&Kind::List(&BLOCK))),
            may("error", TEXT_OR_NULL),
            META,
        ],
    ),
    ("compaction_summary_chunk", &[must("compactionId", Kind::Text), must("content", BLOCK), META]),
];

const MCP_SERVERS: Field = must("mcpServers", Kind::List(&Kind::Open));
const TERMINAL: &[Field] = &[SESSION, must("terminalId", Kind::Text), META];
const UPDATE: Kind = Kind::Object(&[must("sessionUpdate", Kind::Text)]);

const PARAMS: Table = &[
    ("initialize", &[must("protocolVersion", Kind::Integer), may("clientCapabilities", Kind::Open), META]),
    ("authenticate", &[must("methodId", Kind::Text), META]),
    ("session/new", &[must("cwd", Kind::Text), MCP_SERVERS, META]),
    ("session/load", &[SESSION, must("cwd", Kind::Text), MCP_SERVERS, META]),
    ("session/resume", &[SESSION, must("cwd", Kind::Text), META]),
    ("session/delete", &[SESSION, META]),
    ("session/close", &[SESSION, META]),
    ("session/cancel", &[SESSION, META]),
    ("session/set_mode", &[SESSION, must("modeId", Kind::Text), META]),
    ("session/set_config_option", &[SESSION, must("configId", Kind::Text), must("value", Kind::Any), META]),
    ("session/prompt", &[SESSION, must("prompt", Kind::List(&BLOCK)), META]),
    ("session/update", &[SESSION, must("update", UPDATE), META]),
    (
        "session/request_permission",
        &[SESSION, must("toolCall", Kind::Object(TOOL_CALL_UPDATE)), must("options", Kind::List(&OPTION)), META],
    ),
    ("elicitation/create", &[must("message", Kind::Text), must("mode", Kind::Text), META]),
    ("elicitation/complete", &[must("elicitationId", Kind::Text), META]),
    ("fs/read_text_file", &[SESSION, must("path", Kind::Text), META]),
    ("fs/write_text_file", &[SESSION, must("path", Kind::Text), must("content", Kind::Text), META]),
    ("terminal/create", &[SESSION, must("command", Kind::Text), META]),
    ("terminal/output", TERMINAL),
    ("terminal/release", TERMINAL),
    ("terminal/wait_for_exit", TERMINAL),
    ("terminal/kill", TERMINAL),
    ("$/cancel_request", &[must("requestId", Kind::Any), META]),
];

const STOP: Kind = Kind::OneOf(&["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]);
const OUTCOME: Kind = Kind::Object(&[must("outcome", Kind::OneOf(&["selected", "cancelled"]))]);
const LISTED: Kind = Kind::Object(&[SESSION, must("cwd", Kind::Text)]);

const RESULTS: Table = &[
    ("initialize", &[must("protocolVersion", Kind::Integer), META]),
    ("session/new", &[SESSION, META]),
    ("session/list", &[must("sessions", Kind::List(&LISTED)), META]),
    ("session/prompt", &[must("stopReason", STOP), META]),
    ("session/request_permission", &[must("outcome", OUTCOME), META]),
    ("elicitation/create", &[must("action", Kind::Text), META]),
    ("fs/read_text_file", &[must("content", Kind::Text), META]),
    ("terminal/create", &[must("terminalId", Kind::Text), META]),
    ("terminal/output", &[must("output", Kind::Text), must("truncated", Kind::Bool), META]),
];

/// What calls show, by type.
const SHOWN: Table = &[
    ("content", &[must("content", BLOCK)]),
    ("diff", &[must("path", Kind::Text), must("newText", Kind::Text), may("oldText", TEXT_OR_NULL)]),
    ("terminal", &[must("terminalId", Kind::Text)]),
];

/// Content blocks, by type.
const BLOCKS: Table = &[
    ("text", &[must("text", Kind::Text)]),
    ("image", &[must("data", Kind::Text), must("mimeType", Kind::Text)]),
    ("audio", &[must("data", Kind::Text), must("mimeType", Kind::Text)]),
    ("resource_link", &[must("uri", Kind::Text), must("name", Kind::Text)]),
    ("resource", &[must("resource", Kind::Object(&[must("uri", Kind::Text)]))]),
];

pub(super) const ERROR: &[Field] = &[must("code", Kind::Integer), must("message", Kind::Text)];

/// Content blocks and what calls show are told apart by their types, which tables cannot say.
pub(super) fn contents(holder: &Value, out: &mut Findings<'_>) {
    for block in blocks(holder) {
        block_fields(block, out);
    }
    for content in holder["content"].as_array().into_iter().flatten() {
        typed(content, SHOWN, out);
        block_fields(&content["content"], out);
    }
}

/// The blocks of a chunk, of a prompt and of a summary.
fn blocks(holder: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["prompt", "summary"].into_iter().filter_map(|name| holder[name].as_array()).flatten();
    holder.get("content").into_iter().chain(lists)
}

fn block_fields(block: &Value, out: &mut Findings<'_>) {
    typed(block, BLOCKS, out);
    let resource = &block["resource"];
    if block["type"] == "resource" && !resource["text"].is_string() && !resource["blob"].is_string() {
        out.add(&SHAPE, "a resource has neither `text` nor `blob`");
    }
}

/// What has no type, or an unknown one, was told of by the table that it stands in.
fn typed(value: &Value, table: Table, out: &mut Findings<'_>) {
    if let Some(fields) = value["type"].as_str().and_then(|kind| row(table, kind)) {
        out.shape(&SHAPE, value, fields);
    }
}
