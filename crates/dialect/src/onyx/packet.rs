//! The packets as they are read: by field, in either spelling, with what does not fit left out, for three
//! generations of this server disagree on what must be there. The text of a packet is kept beside it by
//! whoever needs it whole.

use serde_json::Value;
use tolka_facts::event::{ArtifactKind, PermissionOption, PlanEntry, Stop};
use tolka_facts::{Block, CallId, Json, Location, ToolContent, ToolKind, ToolStatus};

use super::fields::{Fields, artifact_kind, location, option, plan_entry, stop, tool_content, tool_status};
use super::rules;

#[derive(Debug, Clone, PartialEq)]
pub enum Packet {
    /// `None` if the content is no block that we know.
    MessageChunk(Option<Block>),
    ThoughtChunk(Option<Block>),
    ToolStart(ToolPacket),
    ToolProgress(ToolPacket),
    Plan(Vec<PlanEntry>),
    Mode(String),
    PromptResponse {
        stop: Stop,
        meta: Option<Json>,
    },
    Error(ErrorPacket),
    ArtifactCreated(Artifact),
    ApprovalRequested(Approval),
    SubagentStarted {
        session: String,
        parent: String,
    },
    ContextUsage {
        used: u64,
        cost: Option<f64>,
    },
    Compaction {
        summary: Option<String>,
    },
    /// A type that we do not know, or none.
    Unknown(String),
}

/// What a `tool_call_start` or `tool_call_progress` tells; a field that is missing or null is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolPacket {
    pub call: CallId,
    pub name: Option<String>,
    pub title: Option<String>,
    pub kind: Option<ToolKind>,
    pub status: Option<ToolStatus>,
    /// `None` for an empty object too: that is how a start says that there is none yet.
    pub input: Option<Json>,
    pub output: Option<Json>,
    pub content: Option<Vec<ToolContent>>,
    pub locations: Option<Vec<Location>>,
    pub meta: Option<Json>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ErrorPacket {
    pub message: String,
    /// The documents disagree on number or text; a text that is a number is one.
    pub code: Option<i64>,
    /// ACP's own errors call it `data`.
    pub details: Option<Json>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub id: String,
    pub kind: ArtifactKind,
    pub name: String,
    pub path: String,
    pub preview: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub id: String,
    pub call: Option<CallId>,
    pub permission: String,
    pub title: String,
    pub patterns: Vec<String>,
    /// Empty in today's server's packets, which say no more than the id.
    pub options: Vec<PermissionOption>,
}

#[derive(Debug, thiserror::Error)]
#[error("not a packet: {0}")]
pub struct PacketError(#[from] serde_json::Error);

impl Packet {
    pub fn parse(json: &str) -> Result<Self, PacketError> {
        Ok(Packet::read(&Fields::parse(json)?, None))
    }

    /// `event` is the name of the server-sent event, which stands in for a missing type.
    pub(super) fn parse_event(json: &str, event: Option<&str>) -> Result<Self, PacketError> {
        Ok(Packet::read(&Fields::parse(json)?, event.filter(|name| *name != "message")))
    }

    fn read(fields: &Fields, event: Option<&str>) -> Self {
        let update = || fields.text(&["sessionUpdate", "session_update"]);
        let named = fields.text(&["type"]).or_else(|| update().map(|update| rules::type_of_update(&update).to_owned()));
        let kind = named.or_else(|| event.map(str::to_owned)).unwrap_or_default();
        match kind.as_str() {
            // The second name of each pair is the stored form.
            "agent_message_chunk" | "agent_message" => Packet::MessageChunk(fields.block()),
            "agent_thought_chunk" | "agent_thought" => Packet::ThoughtChunk(fields.block()),
            "tool_call_start" => Packet::ToolStart(ToolPacket::read(fields)),
            "tool_call_progress" => Packet::ToolProgress(ToolPacket::read(fields)),
            "agent_plan_update" => Packet::Plan(fields.list(&["entries"], plan_entry).unwrap_or_default()),
            "current_mode_update" => {
                Packet::Mode(fields.text(&["currentModeId", "current_mode_id"]).unwrap_or_default())
            }
            "prompt_response" => Packet::PromptResponse {
                stop: stop(&fields.text(&["stopReason", "stop_reason"]).unwrap_or_default()),
                meta: fields.json(&["_meta"]).filter(|meta| meta.get() != "{}").cloned(),
            },
            "error" => Packet::Error(ErrorPacket {
                message: fields.text(&["message"]).unwrap_or_default(),
                code: fields.code(),
                details: fields.json(&["details", "data"]).cloned(),
            }),
            "artifact_created" => fields.read(&["artifact"]).map_or(Packet::Unknown(kind), |artifact: Value| {
                let text = |name: &str| artifact[name].as_str().unwrap_or_default().to_owned();
                Packet::ArtifactCreated(Artifact {
                    id: text("id"),
                    kind: artifact_kind(&text("type")),
                    name: text("name"),
                    path: text("path"),
                    preview: artifact["preview_url"].as_str().map(str::to_owned),
                })
            }),
            "approval_requested" => Packet::ApprovalRequested(Approval {
                id: fields.text(&["approval_id"]).unwrap_or_default(),
                call: fields
                    .read::<Value>(&["toolCall"])
                    .and_then(|call| call["toolCallId"].as_str().map(CallId::from)),
                permission: fields.text(&["permission"]).unwrap_or_default(),
                title: fields.text(&["title"]).unwrap_or_default(),
                patterns: fields.read(&["patterns"]).unwrap_or_default(),
                options: fields.list(&["options"], option).unwrap_or_default(),
            }),
            "subagent_started" => Packet::SubagentStarted {
                session: fields.text(&["subagent_session_id"]).unwrap_or_default(),
                parent: fields.text(&["parent_session_id"]).unwrap_or_default(),
            },
            "context_usage" => Packet::ContextUsage {
                used: fields.read(&["used_tokens"]).unwrap_or_default(),
                cost: fields.read(&["cost"]),
            },
            "compaction" => Packet::Compaction { summary: fields.text(&["summary"]) },
            _ => Packet::Unknown(kind),
        }
    }

    /// The packet's type on the live stream.
    pub fn name(&self) -> &str {
        match self {
            Packet::MessageChunk(_) => "agent_message_chunk",
            Packet::ThoughtChunk(_) => "agent_thought_chunk",
            Packet::ToolStart(_) => "tool_call_start",
            Packet::ToolProgress(_) => "tool_call_progress",
            Packet::Plan(_) => "agent_plan_update",
            Packet::Mode(_) => "current_mode_update",
            Packet::PromptResponse { .. } => "prompt_response",
            Packet::Error(_) => "error",
            Packet::ArtifactCreated(_) => "artifact_created",
            Packet::ApprovalRequested(_) => "approval_requested",
            Packet::SubagentStarted { .. } => "subagent_started",
            Packet::ContextUsage { .. } => "context_usage",
            Packet::Compaction { .. } => "compaction",
            Packet::Unknown(kind) => kind,
        }
    }
}

impl ToolPacket {
    fn read(fields: &Fields) -> Self {
        let in_meta = || {
            let meta: Value = fields.read(&["_meta"])?;
            ["toolName", "tool_name"].iter().find_map(|name| meta[*name].as_str().map(str::to_owned))
        };
        ToolPacket {
            call: CallId::from(fields.text(&["tool_call_id", "toolCallId"]).unwrap_or_default()),
            name: fields.text(&["tool_name", "toolName"]).or_else(in_meta),
            title: fields.text(&["title"]),
            kind: fields.read(&["kind"]),
            status: fields.text(&["status"]).and_then(|status| tool_status(&status)),
            input: fields.json(&["raw_input", "rawInput"]).filter(|input| input.get() != "{}").cloned(),
            output: fields.json(&["raw_output", "rawOutput"]).cloned(),
            content: fields.list(&["content"], tool_content),
            locations: fields.list(&["locations"], location),
            meta: fields.json(&["_meta"]).cloned(),
        }
    }
}

/// Reads a fragment of a packet, `{"content": […]}`, as the document shows them.
pub fn read_content(json: &str) -> Result<Option<Vec<ToolContent>>, PacketError> {
    Ok(Fields::parse(json)?.list(&["content"], tool_content))
}
