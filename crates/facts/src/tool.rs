//! A tool call as all its updates together make it: agents send partial updates, dialects need the whole.

use serde::{Deserialize, Serialize};

use crate::event::ToolChanged;
use crate::{Block, Body, CallId, Json, MessageId, Rope, SessionId, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    #[default]
    Pending,
    Running,
    Completed,
    Failed,
    /// Ended because its turn was; dialects without the word say failed.
    Cancelled,
}

impl ToolStatus {
    pub fn is_terminal(self) -> bool {
        matches!(self, ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    #[default]
    Other,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolContent {
    Content {
        block: Block,
    },
    Diff {
        path: String,
        /// `None` or empty: the file is new.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        old: Option<Body>,
        new: Body,
    },
    Terminal {
        id: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Location {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Tool {
    pub call: CallId,
    /// Where it was first told: dialects make ids from it.
    pub first_seq: u64,
    pub first_time: Time,
    pub message: MessageId,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    pub kind: ToolKind,
    pub title: String,
    pub status: ToolStatus,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content: Option<Vec<ToolContent>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub locations: Option<Vec<Location>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<Body>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub meta: Option<Json>,
    /// The session of the subagent that works for the call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subagent: Option<SessionId>,
    /// Input and output that were told piece by piece.
    #[serde(skip_serializing_if = "Rope::is_empty", default)]
    pub live_input: Rope,
    #[serde(skip_serializing_if = "Rope::is_empty", default)]
    pub live_output: Rope,
}

impl Tool {
    pub fn is_open(&self) -> bool {
        !self.status.is_terminal()
    }

    /// Merges an update: what it names replaces, what it does not stays.
    pub fn merge(&mut self, change: &ToolChanged, time: Time) {
        let keep = |slot: &mut Option<_>, new: &Option<_>| {
            if new.is_some() {
                slot.clone_from(new);
            }
        };
        keep(&mut self.input, &change.input);
        keep(&mut self.output, &change.output);
        keep(&mut self.meta, &change.meta);
        if change.subagent.is_some() {
            self.subagent.clone_from(&change.subagent);
        }
        if change.name.is_some() {
            self.name.clone_from(&change.name);
        }
        if change.content.is_some() {
            self.content.clone_from(&change.content);
        }
        if change.locations.is_some() {
            self.locations.clone_from(&change.locations);
        }
        if change.error.is_some() {
            self.error.clone_from(&change.error);
        }
        if let Some(kind) = change.kind {
            self.kind = kind;
        }
        if let Some(title) = &change.title {
            self.title.clone_from(title);
        }
        // Some agents say pending again of a call that runs; no wire has a way back.
        let is_step_back = |status: &ToolStatus| *status == ToolStatus::Pending && self.started.is_some();
        if let Some(status) = change.status.filter(|status| !is_step_back(status)) {
            self.status = status;
            if status != ToolStatus::Pending {
                self.started.get_or_insert(time);
            }
            if status.is_terminal() {
                self.ended.get_or_insert(time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_runs_does_not_wait_again() {
        let mut tool = Tool::default();
        let change = |status| ToolChanged { status: Some(status), ..ToolChanged::of(CallId::from("call_1")) };
        for status in [ToolStatus::Pending, ToolStatus::Running, ToolStatus::Pending] {
            tool.merge(&change(status), Time::from_micros(1));
        }
        assert_eq!(tool.status, ToolStatus::Running);
    }
}
