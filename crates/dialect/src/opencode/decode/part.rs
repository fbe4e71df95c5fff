//! The parts of messages, the four states of a tool, and what a client may put into a prompt.

use serde::Deserialize;
use tolka_facts::Json;

use super::message::{Nothing, Tokens, WireError};
use super::tagged::tagged;

/// Declares the parts: each has the three ids that say where it stands.
macro_rules! parts {
    ($($kind:literal => $variant:ident($name:ident) { $($(#[$attr:meta])* $field:ident : $type:ty),* $(,)? })*) => {
        $(
            #[derive(Debug, Clone, PartialEq, Deserialize)]
            pub struct $name {
                pub id: String,
                #[serde(rename = "sessionID")]
                pub session_id: String,
                #[serde(rename = "messageID")]
                pub message_id: String,
                $($(#[$attr])* pub $field: $type,)*
            }
        )*

        tagged! {
            /// Document 004 names text, reasoning, tool and file.
            Part by "type" { $($kind => $variant($name)),* }
        }

        impl Part {
            /// Session, message and part id; `None` for a kind that is not listed.
            pub fn place(&self) -> Option<(&str, &str, &str)> {
                match self {
                    $(Part::$variant(part) => Some((&part.session_id, &part.message_id, &part.id)),)*
                    Part::Other(_) => None,
                }
            }

            pub fn kind(&self) -> &'static str {
                match self {
                    $(Part::$variant(_) => $kind,)*
                    Part::Other(_) => "other",
                }
            }
        }
    };
}

parts! {
    "text" => Text(TextPart) { text: String, synthetic: Option<bool>, time: Option<Span> }
    "reasoning" => Reasoning(ReasoningPart) { text: String, time: Span }
    "file" => File(FilePart) { mime: String, filename: Option<String>, url: String }
    "tool" => Tool(ToolPart) { #[serde(rename = "callID")] call_id: String, tool: String, state: ToolState }
    "step-start" => StepStart(StepStartPart) { snapshot: Option<String> }
    "step-finish" => StepFinish(StepFinishPart) { reason: String, cost: f64, tokens: Tokens, snapshot: Option<String> }
    "patch" => Patch(PatchPart) { hash: String, files: Vec<String> }
    "compaction" => Compaction(CompactionPart) { auto: bool }
    "subtask" => Subtask(SubtaskPart) { prompt: String, description: String, agent: String }
    "agent" => Agent(AgentPart) { name: String }
    "snapshot" => Snapshot(SnapshotPart) { snapshot: String }
    "retry" => Retry(RetryPart) { attempt: f64, error: WireError }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Span {
    pub start: f64,
    pub end: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Ended {
    pub start: f64,
    pub end: f64,
}

tagged! {
    ToolState by "status" {
        "pending" => Pending(Pending),
        "running" => Running(Running),
        "completed" => Completed(Completed),
        "error" => Error(Failed),
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Pending {
    pub input: Json,
    pub raw: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Running {
    pub input: Json,
    pub title: Option<String>,
    pub metadata: Option<Json>,
    pub time: Span,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Completed {
    pub input: Json,
    pub output: String,
    pub title: String,
    pub metadata: Json,
    pub time: Ended,
    #[serde(default)]
    pub attachments: Vec<Attachment>,
}

/// A `FilePart`, said to be one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Attachment {
    pub r#type: FileTag,
    pub mime: String,
    pub filename: Option<String>,
    pub url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileTag {
    File,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Failed {
    pub input: Json,
    pub error: String,
    pub metadata: Option<Json>,
    pub time: Ended,
}

tagged! {
    /// What `session.status` says of a session.
    Status by "type" {
        "busy" => Busy(Nothing),
        "idle" => Idle(Nothing),
        "retry" => Retry(Retry),
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Retry {
    pub attempt: f64,
    pub message: String,
    pub next: f64,
}

tagged! {
    /// Document 004 names text and file.
    InputPart by "type" {
        "text" => Text(InputText),
        "file" => File(InputFile),
        "agent" => Agent(InputAgent),
        "subtask" => Subtask(InputSubtask),
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InputText {
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InputFile {
    pub mime: String,
    pub filename: Option<String>,
    pub url: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InputAgent {
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InputSubtask {
    pub prompt: String,
    pub description: String,
    pub agent: String,
}
