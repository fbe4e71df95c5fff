//! The two wires: how a request is read and judged, and how an answer or a refusal is written.

mod anthropic;
mod openai;

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::Value;

use crate::script::{Counts, Cut, Ending, Reasoning};
use crate::words::Word;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    OpenAi,
    Anthropic,
}

/// What an answer is written from.
pub(crate) struct Told<'a> {
    pub(crate) words: &'a [Word],
    pub(crate) model: &'a str,
    pub(crate) seed: u64,
    pub(crate) ending: Ending,
    pub(crate) counts: Counts,
    pub(crate) reasoning: Reasoning,
    pub(crate) wants_usage: bool,
}

/// What a connection does next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Bytes),
    Flood { event: Bytes, times: u64 },
    DelayMs(u64),
    Gate(String),
    Hang,
    Cut(Cut),
}

/// What answers are chosen by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) system: String,
    pub(crate) first_user: String,
    pub(crate) last_user: String,
    /// Only where the request ends with results.
    pub(crate) last_result: Option<String>,
    pub(crate) has_tools: bool,
    pub(crate) is_streamed: bool,
    pub(crate) wants_usage: bool,
}

/// What was said by this server and has to come back as it was.
#[derive(Debug, Default)]
pub(crate) struct Issued {
    /// The OpenAI wire has signatures only where thoughts have details.
    pub(crate) wants_details: bool,
    /// Signatures and what they sign.
    signed: HashMap<String, String>,
    /// Calls, and the signatures of the answer that they were in.
    calls: HashMap<String, Vec<String>>,
}

impl Issued {
    pub(crate) fn note(&mut self, words: &[Word]) {
        let mut signatures = Vec::new();
        for word in words {
            match word {
                Word::ThinkEnded { text, signature } => {
                    self.signed.insert(signature.clone(), text.clone());
                    signatures.push(signature.clone());
                }
                Word::Redacted { data } => {
                    self.signed.insert(data.clone(), String::new());
                    signatures.push(data.clone());
                }
                Word::CallBegan { id, .. } => drop(self.calls.insert(id.clone(), signatures.clone())),
                _ => {}
            }
        }
    }

    /// A signature is ours and signs this text.
    fn check(&self, signature: &str, text: Option<&str>) -> Result<(), String> {
        match self.signed.get(signature) {
            None => Err("Invalid `signature` in `thinking` block".to_owned()),
            Some(signed) if text.is_some_and(|text| text != signed) => {
                Err("`thinking` blocks in the latest assistant message cannot be modified".to_owned())
            }
            Some(_) => Ok(()),
        }
    }

    /// The signatures that came with a call came back with it.
    fn check_call(&self, call: &str, signatures: &[&str]) -> Result<(), String> {
        let wanted = self.calls.get(call).map(Vec::as_slice).unwrap_or_default();
        match wanted.iter().find(|wanted| !signatures.contains(&wanted.as_str())) {
            Some(_) => Err(format!("the call {call} came with a thought that is missing: expected `thinking`")),
            None => Ok(()),
        }
    }
}

impl Wire {
    pub(crate) fn call_prefix(self) -> &'static str {
        match self {
            Wire::OpenAi => "call_",
            Wire::Anthropic => "toolu_01",
        }
    }

    pub(crate) fn mixes(self) -> bool {
        self == Wire::OpenAi
    }

    pub(crate) fn steps(self, told: &Told<'_>) -> Vec<Step> {
        match self {
            Wire::OpenAi => openai::steps(told),
            Wire::Anthropic => anthropic::steps(told),
        }
    }

    pub(crate) fn asked(self, body: &Value) -> Asked {
        match self {
            Wire::OpenAi => openai::asked(body),
            Wire::Anthropic => anthropic::asked(body),
        }
    }

    /// What the provider would refuse; `Err` says why.
    pub(crate) fn judge(self, body: &Value, issued: &Issued) -> Result<(), String> {
        match self {
            Wire::OpenAi => openai::judge(body, issued),
            Wire::Anthropic => anthropic::judge(body, issued),
        }
    }

    pub(crate) fn refusal(self, status: u16, message: &str) -> Value {
        match self {
            Wire::OpenAi => openai::refusal(status, message),
            Wire::Anthropic => anthropic::refusal(status, message),
        }
    }

    pub(crate) fn overflow(self) -> Value {
        match self {
            Wire::OpenAi => openai::overflow(),
            Wire::Anthropic => anthropic::refusal(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        }
    }
}

/// What a status means where the script does not say more.
fn usual(status: u16) -> &'static str {
    match status {
        401 => "Incorrect API key provided.",
        403 => "You are not allowed to use this model.",
        404 => "The model does not exist or you do not have access to it.",
        413 => "Request exceeds the maximum size",
        429 => "Rate limit reached for requests",
        503 => "The server is currently unavailable",
        529 => "Overloaded",
        500..=599 => "The server had an error while processing your request",
        _ => "The request was refused",
    }
}

/// The texts in a message's content, which is a text or a list of parts.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn list<'a>(body: &'a Value, key: &str) -> &'a [Value] {
    body[key].as_array().map(Vec::as_slice).unwrap_or_default()
}
