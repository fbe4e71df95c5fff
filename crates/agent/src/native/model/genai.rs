//! The providers that speak neither of our wires (Bedrock, Vertex, Gemini's own, Cohere and more), by way of the
//! `genai` crate. Only with the feature of that name.
//!
//! It is a thin adapter: text and thoughts come as they are said; calls come whole at the end, since in pieces that crate
//! mixes up those that are side by side. An end without a reason is a cut: it ends so where a connection breaks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatStream, ChatStreamEvent, StopReason, StreamEnd};
use genai::resolver::{AuthData, AuthResolver, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::json;
use tokio::time::timeout;
use tolka_facts::Json;
use tolka_facts::event::{Finish, Usage};

use super::fault::{Accuser, Complaint};
use super::stream::{composed, new_id};
use super::{Endpoint, Model, ModelError, ModelErrorKind, Piece, Pieces, Request};
use crate::ModelAbout;

mod request;

#[derive(Debug)]
pub struct GenAi {
    adapter: String,
    endpoint: Arc<Endpoint>,
    about: ModelAbout,
}

impl GenAi {
    /// `adapter` is a provider's name in that crate: `gemini`, `vertex`, `bedrock_api`. Without a base URL it is asked
    /// where that crate knows it to be. That crate would look for a key in the environment by itself; whoever makes this
    /// looks there ([`GenAi::key_env`]), since nobody can hide a key that nobody knows of.
    pub fn new(adapter: impl Into<String>, endpoint: impl Into<Arc<Endpoint>>, about: ModelAbout) -> Self {
        GenAi { adapter: adapter.into(), endpoint: endpoint.into(), about }
    }

    /// The environment variable that usually has a provider's key. `None`: it needs none, or is not known.
    pub fn key_env(adapter: &str) -> Option<&'static str> {
        AdapterKind::from_lower_str(adapter)?.default_key_env_name()
    }
}

impl Model for GenAi {
    fn about(&self) -> &ModelAbout {
        &self.about
    }

    fn ask(&self, request: Request) -> Pieces {
        let exchange = Exchange {
            accuser: Accuser { endpoint: Arc::clone(&self.endpoint), model: self.about.model.clone() },
            adapter: self.adapter.clone(),
            output: self.about.output,
            ready: VecDeque::new(),
            is_thinking: false,
            signatures: Vec::new(),
        };
        Box::pin(stream::unfold((exchange, Step::Begin(request)), async move |(mut exchange, step)| {
            let mut stream = match step {
                Step::Over => return None,
                Step::Reading(stream) => stream,
                Step::Begin(request) => match exchange.begin(request).await {
                    Ok(stream) => Box::new(stream),
                    Err(error) => return Some((Err(error), (exchange, Step::Over))),
                },
            };
            match exchange.next(&mut stream).await {
                Ok(piece @ Piece::Ended { .. }) => Some((Ok(piece), (exchange, Step::Over))),
                Ok(piece) => Some((Ok(piece), (exchange, Step::Reading(stream)))),
                Err(error) => Some((Err(error), (exchange, Step::Over))),
            }
        }))
    }
}

enum Step {
    Begin(Request),
    Reading(Box<ChatStream>),
    Over,
}

struct Exchange {
    accuser: Accuser,
    adapter: String,
    output: Option<u64>,
    ready: VecDeque<Piece>,
    is_thinking: bool,
    signatures: Vec<String>,
}

impl Exchange {
    async fn begin(&self, request: Request) -> Result<ChatStream, ModelError> {
        let client = self.client().map_err(|problem| self.accuser.unusable(&problem))?;
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true)
            .with_stream_header_timeout(self.accuser.endpoint.first)
            .with_stream_read_timeout(self.accuser.endpoint.idle);
        if let Some(output) = self.output {
            options = options.with_max_tokens(u32::try_from(output).unwrap_or(u32::MAX));
        }
        let model = format!("{}::{}", self.adapter, self.accuser.model.id);
        let chat = composed(&self.accuser, request, request::chat).await?;
        let asked = client.exec_chat_stream(model, chat, Some(&options));
        match timeout(self.accuser.endpoint.first, asked).await {
            Ok(Ok(response)) => Ok(response.stream),
            Ok(Err(problem)) => Err(self.failed(&problem)),
            Err(_) => Err(self.silent(self.accuser.endpoint.first)),
        }
    }

    /// Ours, so that keys go to one host only and TLS is the one that we have.
    fn client(&self) -> Result<Client, String> {
        if AdapterKind::from_lower_str(&self.adapter).is_none() {
            return Err(format!("genai knows no provider {:?}", self.adapter));
        }
        let endpoint = Arc::clone(&self.accuser.endpoint);
        let base = endpoint.base_url.trim();
        let url = if base.is_empty() { "https://localhost/" } else { base };
        let url = Url::parse(url).map_err(|problem| format!("its base URL is wrong: {problem}"))?;
        let mut builder = Client::builder().with_reqwest(endpoint.client(&url)?.clone());
        if !base.is_empty() {
            let base = format!("{}/", base.trim_end_matches('/'));
            let target = move |target: ServiceTarget| {
                let endpoint = genai::resolver::Endpoint::from_owned(base.clone());
                Ok(ServiceTarget { endpoint, ..target })
            };
            builder = builder.with_service_target_resolver(ServiceTargetResolver::from_resolver_fn(target));
        }
        let auth = match &endpoint.key {
            Some(key) => Some(AuthData::from_single(key.expose())),
            None => GenAi::key_env(&self.adapter).map(|_| AuthData::None),
        };
        if let Some(auth) = auth {
            let auth = move |_: ModelIden| Ok(Some(auth.clone()));
            builder = builder.with_auth_resolver(AuthResolver::from_resolver_fn(auth));
        }
        builder.build().map_err(|problem| problem.to_string())
    }

    async fn next(&mut self, stream: &mut ChatStream) -> Result<Piece, ModelError> {
        let idle = self.accuser.endpoint.idle;
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(piece);
            }
            match timeout(idle, stream.next()).await {
                Err(_) => return Err(self.silent(idle)),
                Ok(None) => return Err(self.accuser.cut("the connection was closed in the middle")),
                Ok(Some(Err(problem))) => return Err(self.failed(&problem)),
                Ok(Some(Ok(event))) => self.take(event)?,
            }
        }
    }

    fn take(&mut self, event: ChatStreamEvent) -> Result<(), ModelError> {
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                self.end_thought();
                self.ready.push_back(Piece::Text(chunk.content));
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                self.is_thinking = true;
                self.ready.push_back(Piece::Thought(chunk.content));
            }
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => self.signatures.push(chunk.content),
            ChatStreamEvent::End(end) => self.end(end)?,
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::Chunk(_)
            | ChatStreamEvent::ReasoningChunk(_)
            | ChatStreamEvent::ToolCallChunk(_) => {}
        }
        Ok(())
    }

    fn end_thought(&mut self) {
        let signatures = std::mem::take(&mut self.signatures);
        if std::mem::take(&mut self.is_thinking) || !signatures.is_empty() {
            let kept = (!signatures.is_empty()).then(|| Json::of(&json!({ "thought_signatures": signatures })));
            self.ready.push_back(Piece::ThoughtEnded { kept });
        }
    }

    fn end(&mut self, end: StreamEnd) -> Result<(), ModelError> {
        let Some(reason) = end.captured_stop_reason else {
            return Err(self.accuser.cut("it ended without saying why"));
        };
        let calls = end.captured_content.map(|content| content.into_tool_calls()).unwrap_or_default();
        self.end_thought();
        for (slot, call) in calls.iter().enumerate() {
            let id = if call.call_id.is_empty() { new_id() } else { call.call_id.clone() };
            self.ready.push_back(Piece::CallBegan { slot, id, name: call.fn_name.clone() });
            let text = match &call.fn_arguments {
                serde_json::Value::Null => "{}".to_owned(),
                serde_json::Value::String(text) if text.trim().is_empty() => "{}".to_owned(),
                serde_json::Value::String(text) => text.clone(),
                input => input.to_string(),
            };
            self.ready.push_back(Piece::CallInput { slot, text });
        }
        // Gemini hangs its signatures on calls.
        if calls.iter().any(|call| call.thought_signatures.is_some()) {
            let on_calls: Vec<_> = calls.iter().map(|call| &call.thought_signatures).collect();
            let kept = Some(Json::of(&json!({ "call_signatures": on_calls })));
            self.ready.push_back(Piece::ThoughtEnded { kept });
        }
        let finish = match reason {
            StopReason::MaxTokens(_) => Finish::Length,
            _ if !calls.is_empty() => Finish::ToolCalls,
            StopReason::Completed(_) | StopReason::StopSequence(_) | StopReason::ContentFilter(_) => Finish::Stop,
            StopReason::ToolCall(_) | StopReason::Other(_) => Finish::Unknown,
        };
        let is_refusal = matches!(reason, StopReason::ContentFilter(_));
        self.ready.push_back(Piece::Ended { finish, is_refusal, usage: end.captured_usage.as_ref().map(usage) });
        Ok(())
    }

    fn silent(&self, patience: Duration) -> ModelError {
        self.accuser.cut(&format!("it was silent for {patience:?}"))
    }

    fn failed(&self, problem: &genai::Error) -> ModelError {
        use genai::webc::Error as Web;
        let refused = |status: u16, headers: &HeaderMap, body: &str| {
            self.accuser.complains(&Complaint::answered(status, headers, body))
        };
        match problem {
            genai::Error::HttpError { status, body, headers, .. } => refused(status.as_u16(), headers, body),
            genai::Error::WebModelCall { webc_error, .. } | genai::Error::WebAdapterCall { webc_error, .. } => {
                match webc_error {
                    Web::ResponseFailedStatus { status, body, headers } => refused(status.as_u16(), headers, body),
                    other => self.accuser.error(ModelErrorKind::Network, &self.words(&other.to_string())),
                }
            }
            genai::Error::ChatResponse { body, .. } => {
                let text = body.to_string();
                let complaint = Complaint::read(body).unwrap_or_else(|| Complaint { text, ..Complaint::default() });
                self.accuser.complains(&complaint)
            }
            // What was refused before the first word is inside of it.
            genai::Error::WebStream { cause, error, .. } => match error.downcast_ref::<genai::Error>() {
                Some(inner) => self.failed(inner),
                None => {
                    tracing::debug!(problem = self.words(cause), "an answer broke off");
                    self.accuser.cut("the connection broke in the middle")
                }
            },
            genai::Error::StreamParse { .. } => self.accuser.garbled(&problem.to_string()),
            genai::Error::RequiresApiKey { .. }
            | genai::Error::NoAuthResolver { .. }
            | genai::Error::NoAuthData { .. }
            | genai::Error::Resolver { .. } => self.accuser.complains(&Complaint {
                status: Some(401),
                text: problem.to_string(),
                ..Complaint::default()
            }),
            // Some of them hold the whole request in their words.
            other => self.accuser.unusable(&self.accuser.quoted(&other.to_string())),
        }
    }

    fn words(&self, problem: &str) -> String {
        format!("{} cannot be reached: {}", self.accuser.model.provider, self.accuser.quoted(problem))
    }
}

fn usage(counts: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
    let of_prompt = counts.prompt_tokens_details.as_ref();
    let cache_read = count(of_prompt.and_then(|of| of.cached_tokens));
    let cache_write = count(of_prompt.and_then(|of| of.cache_creation_tokens));
    let reasoning = count(counts.completion_tokens_details.as_ref().and_then(|of| of.reasoning_tokens));
    Usage {
        input: count(counts.prompt_tokens).saturating_sub(cache_read + cache_write),
        output: count(counts.completion_tokens).saturating_sub(reasoning),
        reasoning,
        cache_read,
        cache_write,
    }
}
