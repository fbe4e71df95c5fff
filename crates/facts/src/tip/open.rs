//! What a tip is made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Rewind;
use crate::event::{Cost, Failed, Model, Parent, PermissionAsked, PromptQueued, QuestionAsked, Usage};
use crate::{CallId, EndedCalls, MessageId, PartId, RequestId, Rope, SessionId, Time, Tool, TurnId};

/// What is known of the session as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Head {
    pub id: SessionId,
    pub workspace: String,
    pub agent: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<Model>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<Parent>,
    pub created: Time,
    pub updated: Time,
    #[serde(default)]
    pub archived: bool,
    #[serde(default)]
    pub deleted: bool,
    /// Turns that were started, ever.
    pub turns: u64,
    pub tokens: Usage,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Cost>,
    /// What changed since the last approval, as the last snapshot has it, and the changes that were told since.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    /// A turn is open, or a restore under way. Kept here so that a list can say so, and so that a restart finds what to recover.
    #[serde(default)]
    pub busy: bool,
    #[serde(default)]
    pub queued: u64,
    /// That go on beside turns. A restart finds here what to tell as ended.
    #[serde(skip_serializing_if = "is_none", default)]
    pub processes: u64,
    /// Permissions and questions that wait for a person.
    #[serde(default)]
    pub waiting: u64,
    /// The rewind that says what is hidden of the conversation: the last one that hides anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rewound: Option<Rewind>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Queued {
    pub seq: u64,
    pub time: Time,
    pub prompt: PromptQueued,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OpenTurn {
    pub id: TurnId,
    /// From 0, over the whole session.
    pub index: u64,
    pub first_seq: u64,
    pub started: Time,
    /// The user's message.
    pub message: MessageId,
    /// The last message that was sent to the turn while it ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steered: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<Model>,
    /// The way of working that its prompt names.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<OpenStep>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<OpenText>,
    /// Open calls, and the one that the last fact ended. Copies of a tip share them until they change: an input or a
    /// diff may be long, and a tip is copied for everybody who asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tools: Vec<Arc<Tool>>,
    #[serde(skip_serializing_if = "EndedCalls::is_empty", default)]
    pub ended_calls: EndedCalls,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asks: Vec<Ask>,
    /// The summary that is being made, by its id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compaction: Option<String>,
    /// What a summary took was counted with it; the turn's end tells it once more.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub has_counted: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failed>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OpenStep {
    pub message: MessageId,
    pub first_seq: u64,
    pub started: Time,
    /// A tool was called in it.
    pub tools: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<Model>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    Text,
    Thought,
}

/// A run of text that may still grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OpenText {
    pub part: PartId,
    pub voice: Voice,
    pub message: MessageId,
    pub first_seq: u64,
    pub started: Time,
    pub text: Rope,
}

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    Permission(PermissionAsked),
    Question(QuestionAsked),
}

impl Ask {
    pub fn request(&self) -> &RequestId {
        match self {
            Ask::Permission(ask) => &ask.request,
            Ask::Question(ask) => &ask.request,
        }
    }
}

impl OpenTurn {
    /// The call, open or ended by the last fact.
    pub fn tool(&self, call: &CallId) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.call == *call).map(Arc::as_ref)
    }

    pub fn open_tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().map(Arc::as_ref).filter(|tool| tool.is_open())
    }

    /// The user's message that the agent works on: the last one of the turn.
    pub fn asked_message(&self) -> &MessageId {
        self.steered.as_ref().unwrap_or(&self.message)
    }

    /// The message that parts belong to now: the open step's, or the user's if none was told.
    pub fn current_message(&self) -> &MessageId {
        self.step.as_ref().map_or(&self.message, |step| &step.message)
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}
