//! Messages and errors. What document 004 requires is required; what it does not know is let pass.

use serde::Deserialize;
use tolka_facts::Json;
use tolka_facts::event::{Model, Usage};

use super::tagged::tagged;

tagged! {
    Message by "role" {
        "user" => User(UserMessage),
        "assistant" => Assistant(Box<AssistantMessage>),
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct UserMessage {
    pub id: String,
    #[serde(rename = "sessionID")]
    pub session_id: String,
    pub time: Created,
    pub agent: String,
    pub model: ModelRef,
    pub summary: Option<Summary>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Summary {
    pub title: Option<String>,
    pub body: Option<String>,
    pub diffs: Vec<Json>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AssistantMessage {
    pub id: String,
    #[serde(rename = "sessionID")]
    pub session_id: String,
    #[serde(rename = "parentID")]
    pub parent_id: String,
    #[serde(rename = "modelID")]
    pub model_id: String,
    #[serde(rename = "providerID")]
    pub provider_id: String,
    pub mode: String,
    /// Whether it is a summary of the session.
    pub summary: Option<bool>,
    pub path: Path,
    pub time: Created,
    pub tokens: Tokens,
    pub cost: f64,
    pub finish: Option<String>,
    pub error: Option<WireError>,
}

impl AssistantMessage {
    pub fn model(&self) -> Model {
        Model { provider: self.provider_id.clone(), id: self.model_id.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Created {
    pub created: f64,
    pub completed: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ModelRef {
    #[serde(rename = "providerID")]
    pub provider_id: String,
    #[serde(rename = "modelID")]
    pub model_id: String,
}

impl From<ModelRef> for Model {
    fn from(model: ModelRef) -> Model {
        Model { provider: model.provider_id, id: model.model_id }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Path {
    pub cwd: String,
    pub root: String,
}

/// The wire says `number`; a count that is none of ours (negative, too large) is brought into range.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Tokens {
    pub input: f64,
    pub output: f64,
    pub reasoning: f64,
    pub cache: Cache,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Cache {
    pub read: f64,
    pub write: f64,
}

impl Tokens {
    /// `None` when nothing was counted: the wire prints zeros for what it does not know.
    pub fn usage(&self) -> Option<Usage> {
        // A cast from float saturates. The limit keeps sums of many steps in range.
        let count = |n: f64| (n as u64).min(1 << 48);
        let usage = Usage {
            input: count(self.input),
            output: count(self.output),
            reasoning: count(self.reasoning),
            cache_read: count(self.cache.read),
            cache_write: count(self.cache.write),
        };
        (usage.total() > 0).then_some(usage)
    }
}

tagged! {
    /// Document 004 names the first five.
    WireError by "name" in "data" {
        "ProviderAuthError" => ProviderAuth(ProviderAuthError),
        "UnknownError" => Unknown(Words),
        "MessageOutputLengthError" => OutputLength(Nothing),
        "MessageAbortedError" => Aborted(Words),
        "APIError" => Api(ApiError),
        "StructuredOutputError" => StructuredOutput(Words),
        "ContextOverflowError" => ContextOverflow(Words),
        "ContentFilterError" => ContentFilter(Words),
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ProviderAuthError {
    #[serde(rename = "providerID")]
    pub provider_id: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Words {
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Nothing {}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiError {
    pub message: String,
    pub status_code: Option<i64>,
    pub is_retryable: bool,
    pub response_headers: Option<Json>,
    pub response_body: Option<String>,
}
