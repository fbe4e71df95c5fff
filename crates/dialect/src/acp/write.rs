//! Messages as an agent writes them. Fields stand in the order of the protocol's own examples; what is not known is
//! left out, as every agent does.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use tolka_facts::event::{Command, Cost, ParentKind, PlanEntry, PlanStatus, Priority, Severity, Stop, Usage};
use tolka_facts::{Blobs, Block, Body, CallId, Head, Json, Location, SessionId, ToolContent, ToolKind, ToolStatus};

use super::mark::{Meta, RetryMark, TurnMark};

#[derive(Serialize)]
pub(super) struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

#[derive(Serialize)]
pub(super) struct Request<'a, P> {
    jsonrpc: &'static str,
    id: &'a str,
    method: &'static str,
    params: P,
}

#[derive(Serialize)]
pub(super) struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a str,
    result: R,
}

#[derive(Serialize)]
pub(super) struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    id: &'a str,
    error: RpcError<'a>,
}

#[derive(Serialize)]
pub(super) struct RpcError<'a> {
    pub(super) code: i64,
    pub(super) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Json>,
}

const JSONRPC: &str = "2.0";

pub(super) fn notification<P>(method: &str, params: Option<P>) -> Notification<'_, P> {
    Notification { jsonrpc: JSONRPC, method, params }
}

pub(super) fn request<'a, P>(id: &'a str, method: &'static str, params: P) -> Request<'a, P> {
    Request { jsonrpc: JSONRPC, id, method, params }
}

pub(super) fn response<R>(id: &str, result: R) -> Response<'_, R> {
    Response { jsonrpc: JSONRPC, id, result }
}

pub(super) fn error_response<'a>(id: &'a str, error: RpcError<'a>) -> ErrorResponse<'a> {
    ErrorResponse { jsonrpc: JSONRPC, id, error }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionUpdate<'a, U> {
    pub(super) session_id: &'a str,
    pub(super) update: U,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<Routing<'a>>,
}

/// Whose session it is, where that is a subagent's: the protocol has no word for it yet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Routing<'a> {
    parent_session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_call_id: Option<&'a str>,
}

impl<'a> Routing<'a> {
    pub(super) fn of(head: &'a Head) -> Option<Self> {
        let parent = head.parent.as_ref().filter(|parent| parent.kind == ParentKind::Subagent)?;
        let parent_tool_call_id = parent.call.as_ref().map(CallId::as_str);
        Some(Routing { parent_session_id: parent.session.as_str(), parent_tool_call_id })
    }
}

/// An update; its kind stands first in it. Kinds have the names of the schema.
#[derive(Serialize)]
#[allow(clippy::enum_variant_names, reason = "half of the protocol's names end so")]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Update<'a> {
    UserMessageChunk {
        content: Content<'a>,
        #[serde(skip_serializing_if = "str::is_empty")]
        message_id: &'a str,
        #[serde(rename = "_meta")]
        meta: Meta<TurnMark>,
    },
    AgentMessageChunk {
        content: Content<'a>,
        message_id: &'a str,
    },
    AgentThoughtChunk {
        content: Content<'a>,
        message_id: &'a str,
    },
    ToolCall(ToolCall<'a>),
    ToolCallUpdate(ToolCall<'a>),
    Plan {
        entries: Vec<Entry<'a>>,
    },
    AvailableCommandsUpdate {
        available_commands: Vec<AvailableCommand<'a>>,
    },
    CurrentModeUpdate {
        current_mode_id: &'a str,
    },
    SessionInfoUpdate {
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Meta<TurnMark>>,
    },
    UsageUpdate {
        used: u64,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<&'a Cost>,
    },
    Notice {
        severity: Severity,
        title: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Meta<RetryMark>>,
    },
    CompactionUpdate {
        compaction_id: &'a str,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<[Content<'a>; 1]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall<'a> {
    pub(super) tool_call_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<ToolKind>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "status")]
    pub(super) status: Option<ToolStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Vec<Shown<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) locations: Option<&'a [Location]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_input: Option<Cow<'a, Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_output: Option<Cow<'a, Json>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<CallMeta<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum CallMeta<'a> {
    Told(Cow<'a, Json>),
    /// As clients of Onyx, which is made of the protocol, look for it.
    Subagent {
        #[serde(rename = "subagentSessionId")]
        subagent_session_id: &'a SessionId,
    },
    /// As Codex tells it; the protocol itself has terminals only, which the client runs.
    Output {
        terminal_output_delta: OutputDelta<'a>,
    },
}

#[derive(Serialize)]
pub(super) struct OutputDelta<'a> {
    pub(super) data: &'a str,
    pub(super) terminal_id: &'a str,
}

fn status<S: Serializer>(status: &Option<ToolStatus>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match status.unwrap_or_default() {
        ToolStatus::Pending => "pending",
        ToolStatus::Running => "in_progress",
        ToolStatus::Completed => "completed",
        // The protocol has no word for a call that was called off.
        ToolStatus::Failed | ToolStatus::Cancelled => "failed",
    })
}

/// What a call shows.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Shown<'a> {
    Content {
        content: Content<'a>,
    },
    Diff {
        path: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        old_text: Option<Cow<'a, str>>,
        new_text: Cow<'a, str>,
    },
    Terminal {
        terminal_id: &'a str,
    },
}

impl<'a> Shown<'a> {
    pub(super) fn of(content: &'a ToolContent, blobs: &dyn Blobs) -> Self {
        match content {
            ToolContent::Content { block } => Shown::Content { content: Content::of(block, blobs) },
            ToolContent::Diff { path, old, new } => {
                Shown::Diff { path, old_text: old.as_ref().map(|old| old.text(blobs)), new_text: new.text(blobs) }
            }
            ToolContent::Terminal { id } => Shown::Terminal { terminal_id: id },
        }
    }
}

/// A content block.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Content<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<&'a Value>,
    },
    Image {
        data: Cow<'a, str>,
        mime_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<&'a str>,
    },
    Audio {
        data: Cow<'a, str>,
        mime_type: &'a str,
    },
    ResourceLink {
        uri: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    Resource {
        resource: Resource<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<Cow<'a, str>>,
}

impl<'a> Content<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Content::Text { text: text.into(), annotations: None }
    }

    pub(super) fn of(block: &'a Block, blobs: &dyn Blobs) -> Self {
        match block {
            Block::Text { text, annotations } => {
                Content::Text { text: text.text(blobs), annotations: annotations.as_ref().filter(|a| a.is_object()) }
            }
            Block::Image { data, mime, uri } => {
                Content::Image { data: data.text(blobs), mime_type: mime, uri: uri.as_deref() }
            }
            Block::Audio { data, mime } => Content::Audio { data: data.text(blobs), mime_type: mime },
            Block::Link { uri, name, title, description, mime, size } => Content::ResourceLink {
                uri,
                name,
                title: title.as_deref(),
                description: description.as_deref(),
                mime_type: mime.as_deref(),
                size: *size,
            },
            Block::Resource { uri, mime, text, blob } => {
                let body = |body: &'a Option<Body>| body.as_ref().map(|body| body.text(blobs));
                // The protocol demands one of the two.
                let text = if blob.is_some() { body(text) } else { body(text).or(Some(Cow::Borrowed(""))) };
                Content::Resource { resource: Resource { uri, mime_type: mime.as_deref(), text, blob: body(blob) } }
            }
        }
    }
}

#[derive(Serialize)]
pub(super) struct Entry<'a> {
    content: &'a str,
    priority: Priority,
    status: &'static str,
}

impl<'a> From<&'a PlanEntry> for Entry<'a> {
    fn from(entry: &'a PlanEntry) -> Self {
        let status = match entry.status {
            PlanStatus::Pending => "pending",
            PlanStatus::InProgress => "in_progress",
            // Nothing remains to be done about a cancelled one either.
            PlanStatus::Completed | PlanStatus::Cancelled => "completed",
        };
        Entry { content: &entry.content, priority: entry.priority, status }
    }
}

#[derive(Serialize)]
pub(super) struct AvailableCommand<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<CommandInput<'a>>,
}

#[derive(Serialize)]
struct CommandInput<'a> {
    hint: &'a str,
}

impl<'a> From<&'a Command> for AvailableCommand<'a> {
    fn from(command: &'a Command) -> Self {
        let input = command.hint.as_deref().map(|hint| CommandInput { hint });
        AvailableCommand { name: &command.name, description: &command.description, input }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptResult<'a> {
    pub(super) stop_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Tokens>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<Cow<'a, Json>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tokens {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    thought_tokens: u64,
    cached_read_tokens: u64,
    cached_write_tokens: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let Usage { input, output, reasoning, cache_read, cache_write } = usage;
        // Other servers' numbers may be any.
        let total = [output, reasoning, cache_read, cache_write].into_iter().fold(input, u64::saturating_add);
        Tokens {
            total_tokens: total,
            input_tokens: usage.input,
            output_tokens: usage.output,
            thought_tokens: usage.reasoning,
            cached_read_tokens: usage.cache_read,
            cached_write_tokens: usage.cache_write,
        }
    }
}

/// `None` for a turn that has no result, but an error.
pub(super) fn stop_reason(stop: Stop) -> Option<&'static str> {
    match stop {
        Stop::EndTurn => Some("end_turn"),
        Stop::MaxTokens => Some("max_tokens"),
        Stop::MaxTurnRequests => Some("max_turn_requests"),
        Stop::Refusal => Some("refusal"),
        Stop::Cancelled => Some("cancelled"),
        Stop::Failed | Stop::Interrupted => None,
    }
}
