//! The wire that most providers speak: OpenAI's chat completions, streamed, at any base URL.
//!
//! Those who speak it differ in every detail, so each field is optional and what is not known is passed over. What a
//! provider wants to have back (its reasoning, in whichever field it came; what hangs on calls) is in `kept` of the
//! thoughts, under the name that it had.

mod answer;
mod request;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::answer::Answer;
use super::stream::{self, Letter};
use super::{Endpoint, Model, Pieces, Request};
use crate::ModelAbout;

/// What differs between the providers of this wire.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenAiOptions {
    /// Which field tells how long an answer may be ([`ModelAbout::output`]).
    pub limit: AnswerLimit,
    /// `reasoning_effort`: `low`, `medium`, `high`, or what else the provider knows.
    pub effort: Option<String>,
    pub temperature: Option<f64>,
    /// A few servers refuse `stream_options`; then nothing is known of usage.
    pub without_usage: bool,
    /// Goes into the request as it is; wins over what we would say.
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerLimit {
    /// Nothing is said; the provider has a limit of its own.
    #[default]
    Unsaid,
    /// `max_tokens`: everybody but OpenAI.
    MaxTokens,
    /// `max_completion_tokens`: OpenAI, whose reasoning models refuse the other.
    MaxCompletionTokens,
}

#[derive(Debug)]
pub struct OpenAi {
    endpoint: Arc<Endpoint>,
    about: ModelAbout,
    options: OpenAiOptions,
}

impl OpenAi {
    pub fn new(endpoint: impl Into<Arc<Endpoint>>, about: ModelAbout, options: OpenAiOptions) -> Self {
        OpenAi { endpoint: endpoint.into(), about, options }
    }
}

impl Model for OpenAi {
    fn about(&self) -> &ModelAbout {
        &self.about
    }

    fn ask(&self, request: Request) -> Pieces {
        let (about, options) = (self.about.clone(), self.options.clone());
        let key = self.endpoint.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.expose())));
        let (path, head) = ("chat/completions", key.into_iter().collect());
        let body = move |request: &Request| request::body(request, &about, &options);
        stream::ask(&self.endpoint, &self.about.model, Letter { path, head, request, body }, Answer::default())
    }
}
