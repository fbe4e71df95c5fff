//! The words of this wire for what ends, how it ended, and what was done to a file.

use tolka_facts::ToolStatus;
use tolka_facts::event::{FileOperation, Finish, Stop};

/// What an error says that has no code.
pub(super) const UNKNOWN_CODE: i64 = -1;

/// The name of a step that is a thought outside of any call of the model.
pub(super) const THINKING: &str = "Thinking";

/// How a `done` says why the agent stopped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    pub(super) reason: &'static str,
    pub(super) summary: &'static str,
}

impl Ending {
    pub(super) const CANCELLED: Ending = Ending { reason: "cancelled", summary: "Cancelled" };

    /// `None` for the two ends that are told as an `error`.
    pub(super) fn of(stop: Stop) -> Option<Self> {
        let (reason, summary) = match stop {
            Stop::EndTurn => ("end_turn", "Completed"),
            Stop::MaxTokens => ("max_tokens", "Stopped at the token limit"),
            Stop::MaxTurnRequests => ("max_turn_requests", "Stopped at the limit of requests in a turn"),
            Stop::Refusal => ("refusal", "The agent refused the request"),
            Stop::Cancelled => return Some(Ending::CANCELLED),
            Stop::Failed | Stop::Interrupted => return None,
        };
        Some(Ending { reason, summary })
    }
}

/// How a step ended: `step_end.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepStatus {
    Completed,
    Failed,
    Cancelled,
}

impl StepStatus {
    pub(super) fn name(self) -> &'static str {
        match self {
            StepStatus::Completed => "completed",
            StepStatus::Failed => "failed",
            StepStatus::Cancelled => "cancelled",
        }
    }

    pub(super) fn read(name: &str) -> Self {
        match name {
            "failed" | "error" => StepStatus::Failed,
            "cancelled" => StepStatus::Cancelled,
            _ => StepStatus::Completed,
        }
    }
}

impl From<Finish> for StepStatus {
    fn from(finish: Finish) -> Self {
        match finish {
            Finish::Error => StepStatus::Failed,
            Finish::Cancelled => StepStatus::Cancelled,
            Finish::Stop | Finish::ToolCalls | Finish::Length | Finish::Unknown => StepStatus::Completed,
        }
    }
}

/// Of a step that its turn's end cuts.
impl From<Stop> for StepStatus {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed | Stop::Interrupted => StepStatus::Failed,
            Stop::Cancelled => StepStatus::Cancelled,
            Stop::EndTurn | Stop::MaxTokens | Stop::MaxTurnRequests | Stop::Refusal => StepStatus::Completed,
        }
    }
}

/// `tool_end.status`; a call that has not ended is given as one that failed, for then its turn ended before it.
pub(super) fn tool_end(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "success",
        ToolStatus::Cancelled => "cancelled",
        ToolStatus::Failed | ToolStatus::Running | ToolStatus::Pending => "error",
    }
}

pub(super) fn read_tool_end(name: &str) -> ToolStatus {
    match name {
        "error" | "failed" => ToolStatus::Failed,
        "cancelled" => ToolStatus::Cancelled,
        _ => ToolStatus::Completed,
    }
}

pub(super) fn operation(operation: FileOperation) -> &'static str {
    match operation {
        FileOperation::Create => "create",
        FileOperation::Update => "update",
        FileOperation::Delete => "delete",
    }
}

pub(super) fn read_operation(name: &str) -> FileOperation {
    match name {
        "create" => FileOperation::Create,
        "delete" => FileOperation::Delete,
        _ => FileOperation::Update,
    }
}
