//! What goes wrong between us and a provider, as one kind and in words that say what to do.
//!
//! Providers agree on little: the same fault comes as a status, a code, a type or only as a sentence. All of them are
//! weighed here, in one place, for every wire. No word of a provider gets past [`Accuser`] with a secret in it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::endpoint::Endpoint;
use super::{ModelError, ModelErrorKind};
use tolka_facts::event::Model;

/// Enough of a provider's text to see what it means.
const WORDS: usize = 600;

/// Who would be at fault, and where.
#[derive(Debug, Clone)]
pub(super) struct Accuser {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) model: Model,
}

/// A provider's own account of what is wrong.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Complaint {
    pub(super) status: Option<u16>,
    /// `code` and `type`, whatever it gave, in lower case.
    pub(super) tags: String,
    pub(super) text: String,
    pub(super) retry_after: Option<Duration>,
}

impl Complaint {
    pub(super) fn answered(status: u16, head: &HeaderMap, body: &str) -> Self {
        let complaint = serde_json::from_str(body).ok().and_then(|body: Value| Complaint::read(&body));
        let Complaint { tags, text, .. } = complaint.unwrap_or_else(|| {
            let is_page = body.trim_start().starts_with('<');
            let text = if is_page { "it answered with a web page" } else { body.trim() };
            Complaint { text: text.to_owned(), ..Complaint::default() }
        });
        Complaint { status: Some(status), tags, text, retry_after: retry_after(head) }
    }

    /// The fault that a JSON object tells of, if it tells of one.
    pub(super) fn read(body: &Value) -> Option<Self> {
        // Some wrap it in a list.
        let body = body.get(0).unwrap_or(body);
        let error = match body.get("error") {
            Some(error) if !error.is_null() => error,
            _ if body.get("object").is_some_and(|object| object == "error") => body,
            _ if body.get("choices").is_some() || body.get("content").is_some() => return None,
            _ => ["message", "detail", "errors"].iter().find_map(|key| body.get(key))?,
        };
        let mut complaint = Complaint { text: words(error), ..Complaint::default() };
        // OpenRouter puts what the provider behind it said into `metadata.raw`.
        if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
            complaint.text = format!("{}: {raw}", complaint.text);
        }
        for tag in ["code", "type", "status"].iter().filter_map(|key| error.get(key)) {
            match tag {
                Value::Number(number) => complaint.status = number.as_u64().and_then(|code| u16::try_from(code).ok()),
                Value::String(tag) => complaint.tags = format!("{} {}", complaint.tags, tag.to_lowercase()),
                _ => {}
            }
        }
        Some(complaint)
    }

    fn is_unpaid(&self) -> bool {
        let is_tagged = ["insufficient_quota", "billing"].iter().any(|tag| self.tags.contains(tag));
        is_tagged || self.status == Some(402) || self.text.to_lowercase().contains("credit balance is too low")
    }

    pub(super) fn kind(&self) -> ModelErrorKind {
        use ModelErrorKind::{Auth, Overflow, RateLimited, Rejected, Unavailable, UnknownModel};
        let text = self.text.to_lowercase();
        let tagged = |tags: &[&str]| tags.iter().any(|tag| self.tags.contains(tag));
        let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
        let status = self.status.unwrap_or(0);

        if self.is_unpaid() {
            return Auth;
        }
        if tagged(&["rate_limit"]) || status == 429 || says(&["tokens per minute"]) {
            return RateLimited;
        }
        // Before all that may pass: llama.cpp tells it as an error of the server.
        if tagged(&OVERFLOW_TAGS) || says(&OVERFLOW) || status == 413 {
            return Overflow;
        }
        // Ollama calls every fault so; then the status is right.
        let is_theirs = tagged(&["overloaded", "api_error", "server_error", "timeout_error", "unavailable"]);
        if is_theirs && !(400..500).contains(&status) {
            return Unavailable;
        }
        if tagged(&["authentication", "permission", "invalid_api_key"]) || matches!(status, 401 | 403) {
            return Auth;
        }
        if tagged(&["model_not_found"]) || (status == 404 && says(&["model", "no endpoints found"])) {
            return UnknownModel;
        }
        match status {
            400 | 422 if says(&["api key not valid", "invalid api key", "incorrect api key"]) => Auth,
            400 | 422 if says(&["not a valid model", "unknown model", "invalid model", "model does not exist"]) => {
                UnknownModel
            }
            408 | 425 | 500..=599 => Unavailable,
            // Told in the middle of an answer without a word of why.
            0 | 200 if !tagged(&["invalid_request"]) => Unavailable,
            _ => Rejected,
        }
    }
}

const OVERFLOW_TAGS: [&str; 4] =
    ["context_length_exceeded", "exceed_context_size", "request_too_large", "context_window_exceeded"];

/// How OpenAI, Anthropic, vLLM, llama.cpp, Ollama, Gemini, Mistral, Groq, xAI and Bedrock say it.
const OVERFLOW: [&str; 18] = [
    "maximum context length",
    "model's context length is only",
    "reduce the length of the input",
    "context size has been exceeded",
    "max context length",
    "maximum model length",
    "prompt is too long",
    "prompt too long",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeded the context window",
    "context length exceeded",
    "context_length_exceeded",
    "maximum number of tokens allowed",
    "reduce the length of the messages",
    "maximum prompt length",
    "input is too long",
];

/// The sentence in whatever a provider calls an error.
fn words(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        Value::Object(fields) => match fields.get("message").or_else(|| fields.get("msg")) {
            Some(inner) => words(inner),
            None => error.to_string(),
        },
        Value::Array(all) if !all.is_empty() => all.iter().map(words).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

impl Accuser {
    pub(super) fn error(&self, kind: ModelErrorKind, message: &str) -> ModelError {
        ModelError { kind, message: self.endpoint.scrubbed(message), status: None, retry_after: None }
    }

    /// A provider's words: the beginning, once nothing in them is secret. In the other order half a key would be left.
    pub(super) fn quoted(&self, text: &str) -> String {
        let text = self.endpoint.scrubbed(text);
        match text.char_indices().nth(WORDS) {
            Some((end, _)) => format!("{} …", &text[..end]),
            None => text,
        }
    }

    /// Something in our settings that no request can be made with.
    pub(super) fn unusable(&self, problem: &str) -> ModelError {
        let Model { provider, .. } = &self.model;
        self.error(ModelErrorKind::Rejected, &format!("{provider} cannot be asked: {problem}. Check its settings."))
    }

    pub(super) fn cut(&self, what: &str) -> ModelError {
        self.error(ModelErrorKind::Cut, &format!("the answer of {} was cut off: {what}", self.model.provider))
    }

    /// It said what nobody can read.
    pub(super) fn garbled(&self, what: &str) -> ModelError {
        let message = format!("{} sent what is no answer: {}", self.model.provider, self.quoted(what));
        self.error(ModelErrorKind::Unavailable, &message)
    }

    pub(super) fn complains(&self, complaint: &Complaint) -> ModelError {
        let kind = complaint.kind();
        let Model { provider, id } = &self.model;
        let status = complaint.status.filter(|status| *status >= 300);
        let code = status.map(|status| format!(" ({status})")).unwrap_or_default();
        let said = match complaint.text.trim() {
            "" => String::new(),
            text => format!(": {}", self.quoted(text.trim_end_matches('.'))),
        };
        let message = match kind {
            ModelErrorKind::Auth => self.refused(complaint, &code, &said),
            ModelErrorKind::UnknownModel => {
                format!("{provider} has no model {id}{code}{said}. `tolka models` lists those that can be used.")
            }
            ModelErrorKind::Overflow => format!(
                "the conversation does not fit into {id}{code}{said}. Go on in a new session, or with a model that takes more."
            ),
            ModelErrorKind::RateLimited => {
                format!("{provider} takes no more requests for now{code}{said}. Wait a while, or use another model.")
            }
            ModelErrorKind::Unavailable => format!("{provider} is not able to answer{code}{said}"),
            ModelErrorKind::Rejected if status == Some(404) => {
                format!("{provider} knows no such address{code}{said}. Check its base URL.")
            }
            ModelErrorKind::Rejected | ModelErrorKind::Network | ModelErrorKind::Cut => {
                format!("{provider} rejected the request{code}{said}")
            }
        };
        ModelError { status, retry_after: complaint.retry_after, ..self.error(kind, &message) }
    }

    fn refused(&self, complaint: &Complaint, code: &str, said: &str) -> String {
        let provider = &self.model.provider;
        if complaint.is_unpaid() {
            return format!(
                "the account at {provider} has nothing left to spend{code}{said}. Add credit, or use another model."
            );
        }
        let place = self.endpoint.key_name.as_deref().unwrap_or("the provider's key in tolka.toml");
        match self.endpoint.key {
            Some(_) => format!("the key of {provider} was refused{code}{said}. Check {place}."),
            None => format!("{provider} wants a key and has none{code}{said}. Set {place}."),
        }
    }
}

/// How long we are asked to wait: in milliseconds, in seconds, or until a date.
fn retry_after(head: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| head.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = text("retry-after")?;
    if let Some(seconds) = number(text) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(until.duration_since(jiff::Timestamp::now())).unwrap_or_default())
}

#[cfg(test)]
mod tests;
