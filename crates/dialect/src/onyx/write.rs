//! The packets as they are written: borrowed, keys in the order of the real server's output, nulls kept,
//! `type` and `timestamp` last. Reading is in `packet.rs`; it forgives, this does not.

use std::borrow::Cow;

use serde::Serialize;
use tolka_facts::event::{ArtifactKind, ArtifactSaved, PermissionOption, PlanEntry, PlanStatus, Priority, Stop};
use tolka_facts::{Json, ToolKind, ToolStatus};

use super::content::{Content, Null};
use super::stamp::Stamp;
use super::tool::Body;

/// What today's client looks for in `_meta`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_session_id: Option<&'a str>,
    /// The call of the parent that a subagent works for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subagent_session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<&'a str>,
}

impl Meta<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.session_id.is_none() && self.subagent_session_id.is_none() && self.tool_name.is_none()
    }
}

/// `agent_message_chunk` and `agent_thought_chunk`.
#[derive(Debug, Serialize)]
pub(super) struct Chunk<'a> {
    pub(super) _meta: Option<Meta<'a>>,
    pub(super) content: Content<'a>,
    #[serde(rename = "sessionUpdate")]
    pub(super) update: &'static str,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

#[derive(Debug, Serialize)]
pub(super) struct Plan<'a> {
    pub(super) _meta: Option<Meta<'a>>,
    pub(super) entries: Vec<Entry<'a>>,
    #[serde(rename = "sessionUpdate")]
    pub(super) update: &'static str,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

#[derive(Debug, Serialize)]
pub(super) struct Entry<'a> {
    _meta: Null,
    content: &'a str,
    priority: &'static str,
    status: &'static str,
}

impl<'a> From<&'a PlanEntry> for Entry<'a> {
    fn from(entry: &'a PlanEntry) -> Self {
        let priority = match entry.priority {
            Priority::High => "high",
            Priority::Medium => "medium",
            Priority::Low => "low",
        };
        let status = match entry.status {
            PlanStatus::Pending => "pending",
            PlanStatus::InProgress => "in_progress",
            // The wire has no word for a dropped entry; like a finished one, nothing is left to do on it.
            PlanStatus::Completed | PlanStatus::Cancelled => "completed",
        };
        Entry { _meta: (), content: &entry.content, priority, status }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Mode<'a> {
    pub(super) _meta: Option<Meta<'a>>,
    #[serde(rename = "currentModeId")]
    pub(super) mode: &'a str,
    #[serde(rename = "sessionUpdate")]
    pub(super) update: &'static str,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

#[derive(Debug, Serialize)]
pub(super) struct PromptResponse {
    pub(super) _meta: Json,
    #[serde(rename = "stopReason")]
    pub(super) stop: &'static str,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

/// The packet that ends a turn which never began: its prompt was dropped from the queue.
pub fn cancelled_packet(time: tolka_facts::Time) -> Vec<u8> {
    let meta = Json::of(&serde_json::Map::new());
    let packet = PromptResponse { _meta: meta, stop: "cancelled", r#type: "prompt_response", timestamp: Stamp(time) };
    // String keys only, and writing to a Vec cannot fail.
    serde_json::to_vec(&packet).unwrap_or_default()
}

#[derive(Debug, Serialize)]
pub(super) struct ArtifactCreated<'a> {
    pub(super) artifact: Artifact<'a>,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

#[derive(Debug, Serialize)]
pub(super) struct Artifact<'a> {
    id: &'a str,
    r#type: &'static str,
    name: &'a str,
    path: &'a str,
    preview_url: Option<&'a str>,
}

impl<'a> From<&'a ArtifactSaved> for Artifact<'a> {
    fn from(saved: &'a ArtifactSaved) -> Self {
        let kind = match saved.kind {
            ArtifactKind::Image => "image",
            ArtifactKind::WebApp => "web_app",
            ArtifactKind::NextjsApp => "nextjs_app",
            ArtifactKind::File => "file",
            ArtifactKind::Markdown
            | ArtifactKind::Document
            | ArtifactKind::Presentation
            | ArtifactKind::Spreadsheet
            | ArtifactKind::Pdf
            | ArtifactKind::Code => match saved.mime.starts_with("image/") {
                true => "image",
                false => "file",
            },
        };
        let (id, preview_url) = (saved.id.as_str(), saved.preview.as_deref());
        Artifact { id, r#type: kind, name: &saved.name, path: &saved.path, preview_url }
    }
}

/// Today's server only pokes its client with the two ids; the rest lets a reader answer at once.
#[derive(Debug, Serialize)]
pub(super) struct ApprovalRequested<'a> {
    pub(super) approval_id: &'a str,
    pub(super) session_id: &'a str,
    pub(super) permission: &'a str,
    pub(super) title: &'a str,
    pub(super) patterns: &'a [String],
    #[serde(rename = "toolCall")]
    pub(super) tool_call: Option<Body<'a>>,
    pub(super) options: Vec<Choice<'a>>,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

/// As ACP has it.
#[derive(Debug, Serialize)]
pub(super) struct Choice<'a> {
    kind: tolka_facts::event::OptionKind,
    name: &'a str,
    #[serde(rename = "optionId")]
    id: &'a str,
}

impl<'a> From<&'a PermissionOption> for Choice<'a> {
    fn from(option: &'a PermissionOption) -> Self {
        Choice { kind: option.kind, name: &option.name, id: &option.id }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct SubagentStarted<'a> {
    pub(super) subagent_session_id: &'a str,
    pub(super) parent_session_id: &'a str,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

#[derive(Debug, Serialize)]
pub(super) struct ContextUsage {
    pub(super) used_tokens: u64,
    pub(super) cost: Option<f64>,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

#[derive(Debug, Serialize)]
pub(super) struct Compaction<'a> {
    pub(super) summary: Option<Cow<'a, str>>,
    pub(super) r#type: &'static str,
    pub(super) timestamp: Stamp,
}

pub(super) fn status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending => "pending",
        ToolStatus::Running => "in_progress",
        ToolStatus::Completed => "completed",
        ToolStatus::Failed | ToolStatus::Cancelled => "failed",
    }
}

pub(super) fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        ToolKind::Other => "other",
    }
}

/// `None` for the two ends that are told as an `error`.
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
