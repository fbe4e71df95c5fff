//! A model: what it is asked and what it says, in no provider's words.
//!
//! Each provider's wire is a folder of its own; all it gives is a stream of [`Piece`]s. What a provider wants
//! back with the next request and nobody else understands (signatures of thoughts) is kept as it came.

mod anthropic;
pub(super) mod endpoint;
mod fault;
#[cfg(feature = "genai")]
mod genai;
mod openai;
mod stream;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use serde_json::Value;
use tolka_facts::Json;
use tolka_facts::event::{Finish, Usage};

use crate::ModelAbout;

pub use anthropic::{Anthropic, AnthropicOptions};
pub use endpoint::{Endpoint, Secret};
pub(super) use endpoint::{is_loopback, tls};
#[cfg(feature = "genai")]
pub use genai::GenAi;
pub use openai::{AnswerLimit, OpenAi, OpenAiOptions};

pub trait Model: Send + Sync + fmt::Debug {
    fn about(&self) -> &ModelAbout;

    /// One call of the model. Nothing is sent before the stream is polled; dropping it ends the request. The last item is
    /// [`Piece::Ended`] or an error, and nothing comes after either.
    fn ask(&self, request: Request) -> Pieces;
}

pub type Pieces = Pin<Box<dyn Stream<Item = Result<Piece, ModelError>> + Send>>;

/// Everything in it is shared: a turn asks many times, and what was said before grows to megabytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    pub system: Arc<str>,
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolSpec]>,
}

impl Request {
    /// About how much is sent, without what describes the tools.
    pub(crate) fn bytes(&self) -> usize {
        let input = |input: &Input| match input {
            Input::Text(text) => text.len(),
            Input::Image { data, .. } | Input::File { data, .. } => data.len(),
        };
        let output = |output: &Output| match output {
            Output::Text(text) | Output::Thought { text, .. } => text.len(),
            Output::Call { name, input, .. } => name.len() + input.get().len(),
        };
        let messages = self.messages.iter().map(|message| match &**message {
            Message::User(inputs) => inputs.iter().map(input).sum::<usize>(),
            Message::Model(outputs) => outputs.iter().map(output).sum(),
            Message::Results(returned) => returned.iter().flat_map(|returned| &returned.content).map(input).sum(),
        });
        self.system.len() + messages.sum::<usize>()
    }
}

/// What was said so far, from the model's side.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    User(Vec<Input>),
    /// One answer of the model, its parts in the order in which it said them.
    Model(Vec<Output>),
    /// What came of the calls of the answer before, in their order.
    Results(Vec<Returned>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    Text(String),
    /// `data` is base64.
    Image {
        mime: String,
        data: String,
    },
    /// Something that is neither text nor picture (a PDF). `data` is base64.
    File {
        name: String,
        mime: String,
        data: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    Text(String),
    Thought {
        text: String,
        /// What the provider gave with it and wants back.
        kept: Option<Json>,
    },
    Call {
        id: String,
        name: String,
        input: Json,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Returned {
    /// The id of the call.
    pub call: String,
    pub content: Vec<Input>,
    pub is_error: bool,
}

/// A tool, as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// A JSON schema of its input.
    pub schema: Value,
}

/// What a model says, as it comes.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Text(String),
    Thought(String),
    /// The thought that was open has ended; what has to go back with it. A thought without text may have only this.
    ThoughtEnded {
        kept: Option<Json>,
    },
    /// Calls have slots: several may be open at once, and their pieces may mix.
    CallBegan {
        slot: usize,
        id: String,
        name: String,
    },
    CallInput {
        slot: usize,
        text: String,
    },
    Ended {
        finish: Finish,
        is_refusal: bool,
        usage: Option<Usage>,
    },
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// For people; says what to do. Never holds a key.
    pub message: String,
    pub status: Option<u16>,
    /// How long the provider asks us to wait.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// A key is missing, wrong, or may not do this.
    Auth,
    UnknownModel,
    /// The conversation does not fit.
    Overflow,
    RateLimited,
    /// The provider's fault; it may pass.
    Unavailable,
    /// No connection, or none that lasted.
    Network,
    /// The stream ended in the middle, or was silent for too long.
    Cut,
    /// The provider understood and will not: a bad request. Asking again does not help.
    Rejected,
}

impl ModelErrorKind {
    /// Whether the same request may go well later.
    pub fn may_pass(self) -> bool {
        use ModelErrorKind::{Auth, Cut, Network, Overflow, RateLimited, Rejected, Unavailable, UnknownModel};
        match self {
            RateLimited | Unavailable | Network | Cut => true,
            Auth | UnknownModel | Overflow | Rejected => false,
        }
    }
}
