//! Everything that the five documents name, and where in a frame it stands.

use serde_json::Value;
use tolka_dialect::{Dialect, onyx, opencode};

/// A value that stands at a path in frames of a dialect. `[]` in a path is any item of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub(crate) document: &'static str,
    pub(crate) dialect: Dialect,
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
}

const ONYX: Dialect = Dialect::Onyx(onyx::Profile::Documented);
const OPENCODE: Dialect = Dialect::OpenCode(opencode::Profile::Superset);

const LISTS: &[(&str, Dialect, &str, &[&str])] = &[
    // 000: Packet Types Summary, Tool Kinds, Status Progression, Location, ContentBlock, FileChange.
    (
        "000",
        ONYX,
        "type",
        &["agent_message_chunk", "tool_call_start", "tool_call_progress", "prompt_response", "error"],
    ),
    ("000", ONYX, "sessionUpdate", &["agent_message_chunk", "tool_call", "tool_call_update"]),
    ("000", ONYX, "kind", &["execute", "read", "other"]),
    ("000", ONYX, "status", &["pending", "in_progress", "completed", "failed"]),
    ("000", ONYX, "content.type", &["text"]),
    ("000", ONYX, "content[].type", &["content"]),
    ("000", ONYX, "content[].content.type", &["text"]),
    ("000", ONYX, "rawOutput.metadata.files[].type", &["add", "update"]),
    ("000", ONYX, "locations[].path", &["/home/ada/project/src/lib.rs"]),
    ("000", ONYX, "stopReason", &["end_turn"]),
    ("000", ONYX, "rawOutput.error", &["File not found"]),
    ("000", ONYX, "message", &["Sandbox not running", "Database error"]),
    // 001: the nine categories, Stop Reasons, Artifact Types, Content Block Types.
    (
        "001",
        Dialect::OnyxSteps,
        "type",
        &[
            "step_start",
            "step_delta",
            "step_end",
            "tool_start",
            "tool_progress",
            "tool_end",
            "output_start",
            "output_delta",
            "output_end",
            "plan",
            "mode_update",
            "done",
            "error",
            "file_write",
            "artifact_created",
            "permission_request",
            "permission_response",
        ],
    ),
    (
        "001",
        Dialect::OnyxSteps,
        "stop_reason",
        &["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"],
    ),
    (
        "001",
        Dialect::OnyxSteps,
        "artifact.type",
        &["web_app", "markdown", "image", "csv", "excel", "pptx", "docx", "pdf", "code", "other"],
    ),
    ("001", Dialect::OnyxSteps, "content[].type", &["text", "image", "audio", "embedded_resource", "resource_link"]),
    ("001", Dialect::OnyxSteps, "status", &["completed", "in_progress", "success"]),
    ("001", Dialect::OnyxSteps, "operation", &["create"]),
    ("001", Dialect::OnyxSteps, "entries[].status", &["pending"]),
    ("001", Dialect::OnyxSteps, "tool_name", &["Read", "Bash"]),
    // 002: its seven packets, ToolCallKind, PlanEntry, stopReason, ArtifactType, content items, titles of tools.
    (
        "002",
        ONYX,
        "type",
        &[
            "agent_message_chunk",
            "tool_call_start",
            "tool_call_progress",
            "agent_plan_update",
            "prompt_response",
            "error",
            "artifact_created",
        ],
    ),
    ("002", ONYX, "sessionUpdate", &["agent_message_chunk", "tool_call", "tool_call_update", "plan"]),
    ("002", ONYX, "kind", &["search", "read", "execute", "edit", "other"]),
    ("002", ONYX, "status", &["pending", "in_progress", "completed"]),
    ("002", ONYX, "content[].type", &["content", "diff"]),
    ("002", ONYX, "entries[].status", &["pending", "in_progress", "completed"]),
    ("002", ONYX, "entries[].priority", &["medium", "high", "low"]),
    // `stop_sequence` is read and never sent; see the exceptions.
    ("002", ONYX, "stopReason", &["end_turn", "max_tokens", "stop_sequence"]),
    ("002", ONYX, "artifact.type", &["file", "image", "nextjs_app", "web_app"]),
    ("002", ONYX, "rawInput.todos[].status", &["pending", "in_progress", "completed"]),
    ("002", ONYX, "rawOutput.metadata.todos[].status", &["pending", "in_progress", "completed"]),
    ("002", ONYX, "rawInput.subagent_type", &["Explore"]),
    ("002", ONYX, "rawOutput.metadata.preview", &["one"]),
    ("002", ONYX, "rawOutput.metadata.filepath", &["/home/ada/project/new.rs"]),
    ("002", ONYX, "content[].oldText", &["", "one\n"]),
    (
        "002",
        ONYX,
        "title",
        &["glob", "grep", "read", "write", "edit", "bash", "task", "todowrite", "webfetch", "websearch"],
    ),
    // 003: Overview, tool names of its examples.
    (
        "003",
        Dialect::AgentSmithy,
        "type",
        &[
            "user",
            "chat_start",
            "chat",
            "chat_end",
            "reasoning_start",
            "reasoning",
            "reasoning_end",
            "summary_start",
            "summary_end",
            "tool_call",
            "file_edit",
            "error",
            "done",
        ],
    ),
    ("003", Dialect::AgentSmithy, "name", &["read_file", "write_to_file", "web_fetch", "web_search"]),
    // 004: Event Types (`server.connected` is the door's word for a connection; `tests/clients` waits for it), Message Types, Message Parts, Tool States, Error Types, Input Part Types.
    (
        "004",
        OPENCODE,
        "type",
        &[
            "server.instance.disposed",
            "session.idle",
            "session.error",
            "session.updated",
            "message.updated",
            "message.removed",
            "message.part.updated",
            "installation.updated",
            "installation.update-available",
        ],
    ),
    ("004", OPENCODE, "properties.info.role", &["user", "assistant"]),
    ("004", OPENCODE, "properties.part.type", &["text", "reasoning", "tool", "file"]),
    ("004", OPENCODE, "properties.part.state.status", &["pending", "running", "completed", "error"]),
    (
        "004",
        OPENCODE,
        "properties.info.error.name",
        &["ProviderAuthError", "UnknownError", "MessageOutputLengthError", "MessageAbortedError", "APIError"],
    ),
    (
        "004",
        OPENCODE,
        "properties.error.name",
        &["ProviderAuthError", "UnknownError", "MessageOutputLengthError", "MessageAbortedError", "APIError"],
    ),
    ("004", OPENCODE, "properties.part.state.attachments[].url", &["data:image/png;base64,aW1hZ2U="]),
    ("004", OPENCODE, "properties.part.url", &["file:///home/ada/project/notes.txt", "data:image/png;base64,aGVsbG8="]),
];

/// Named, and not produced: what we say instead, and why.
pub(crate) const READ_ONLY: &[(&str, &str, &str)] = &[(
    "stop_sequence",
    "max_tokens",
    "no agent stops so: the protocol below has five reasons, and this is none of them",
)];

pub(crate) fn everything() -> impl Iterator<Item = Named> {
    LISTS.iter().flat_map(|(document, dialect, path, names)| {
        names.iter().map(|name| Named { document, dialect: *dialect, path, name })
    })
}

/// Whether a frame has the value at the path.
pub(crate) fn stands_in(frame: &Value, path: &str, name: &str) -> bool {
    let Some((first, rest)) = path.split_once('.').or(Some((path, ""))).filter(|(first, _)| !first.is_empty()) else {
        return frame == name;
    };
    match first.strip_suffix("[]") {
        Some(list) => frame[list].as_array().is_some_and(|items| items.iter().any(|item| stands_in(item, rest, name))),
        None => frame.get(first).is_some_and(|value| stands_in(value, rest, name)),
    }
}
