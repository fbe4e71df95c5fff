//! The shapes of messages, as far as we read them. Structs without tags and flattening only: raw JSON
//! inside them needs the deserializer itself.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tolka_facts::event::{Cost, OptionKind, PermissionOption, Stop, Usage};
use tolka_facts::{Json, ToolKind, ToolStatus};

/// A field of the wrong type is as if it were absent.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = Option::<&'de RawValue>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    pub(super) session_update: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk {
    pub(super) content: Json,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message_id: Option<String>,
}

/// A tool call, in a `tool_call`, a `tool_call_update` or a request for permission.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolFields {
    pub(super) tool_call_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) content: Option<Vec<Json>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) locations: Option<Vec<Json>>,
    pub(super) raw_input: Option<Json>,
    pub(super) raw_output: Option<Json>,
    #[serde(rename = "_meta")]
    pub(super) meta: Option<Json>,
}

/// What agents put into a tool's `_meta` and we know to read.
#[derive(Deserialize, Default)]
pub(super) struct ToolMeta {
    #[serde(rename = "claudeCode", default, deserialize_with = "lenient")]
    pub(super) claude_code: Option<ClaudeCode>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) terminal_output_delta: Option<TerminalOutput>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClaudeCode {
    pub(super) tool_name: String,
}

#[derive(Deserialize)]
pub(super) struct TerminalOutput {
    pub(super) data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Commands {
    pub(super) available_commands: Vec<Json>,
}

#[derive(Deserialize)]
pub(super) struct WireCommand {
    pub(super) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) description: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) input: Option<CommandInput>,
}

#[derive(Deserialize)]
pub(super) struct CommandInput {
    pub(super) hint: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CurrentMode {
    pub(super) current_mode_id: String,
}

#[derive(Deserialize)]
pub(super) struct SessionInfo {
    pub(super) title: String,
}

#[derive(Deserialize)]
pub(super) struct ContextUsage {
    pub(super) used: u64,
    pub(super) size: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cost: Option<Cost>,
}

#[derive(Deserialize)]
pub(super) struct WireNotice {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) severity: Option<String>,
    pub(super) title: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) description: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compaction {
    pub(super) compaction_id: String,
    pub(super) status: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) summary: Option<Vec<Json>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompactionChunk {
    pub(super) compaction_id: String,
    pub(super) content: Json,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionRequest {
    pub(super) tool_call: ToolFields,
    pub(super) options: Vec<Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOption {
    option_id: String,
    #[serde(default, deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    kind: Option<String>,
}

/// An option that can be chosen. One whose kind we cannot place counts as a refusal: to take it for
/// leave could do harm.
pub(super) fn option(json: &Json) -> Option<PermissionOption> {
    let WireOption { option_id, name, kind } = json.read()?;
    let kind = match kind.as_deref().unwrap_or_default() {
        "allow_always" => OptionKind::AllowAlways,
        "reject_always" => OptionKind::RejectAlways,
        kind if kind.starts_with("allow") => OptionKind::AllowOnce,
        _ => OptionKind::RejectOnce,
    };
    Some(PermissionOption { name: name.unwrap_or_else(|| option_id.clone()), id: option_id, kind })
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptResult {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<WireUsage>,
    #[serde(rename = "_meta")]
    pub(super) meta: Option<Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUsage {
    #[serde(default, deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    thought_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cached_read_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cached_write_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Usage {
        Usage {
            input: usage.input_tokens.unwrap_or_default(),
            output: usage.output_tokens.unwrap_or_default(),
            reasoning: usage.thought_tokens.unwrap_or_default(),
            cache_read: usage.cached_read_tokens.unwrap_or_default(),
            cache_write: usage.cached_write_tokens.unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct WireError {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) code: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<String>,
    pub(super) data: Option<Json>,
}

pub(super) fn kind(word: &str) -> ToolKind {
    match word {
        "read" => ToolKind::Read,
        "edit" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "move" => ToolKind::Move,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "think" => ToolKind::Think,
        "fetch" => ToolKind::Fetch,
        "switch_mode" => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// `None` for a word that we do not know: the call stays as it was.
pub(super) fn status(word: &str) -> Option<ToolStatus> {
    match word {
        "pending" => Some(ToolStatus::Pending),
        "in_progress" => Some(ToolStatus::Running),
        "completed" => Some(ToolStatus::Completed),
        "failed" => Some(ToolStatus::Failed),
        "cancelled" => Some(ToolStatus::Cancelled),
        _ => None,
    }
}

/// An agent that answers has ended its turn, whatever word it has for it.
pub(super) fn stop(word: &str) -> Stop {
    match word {
        "max_tokens" => Stop::MaxTokens,
        "max_turn_requests" => Stop::MaxTurnRequests,
        "refusal" => Stop::Refusal,
        "cancelled" => Stop::Cancelled,
        _ => Stop::EndTurn,
    }
}
