//! The conversation as messages want it: user and assistant in turns, results first in the user's message, and no text
//! that is empty.
//!
//! Up to four marks say what to keep in the provider's cache: the tools, the system prompt, and the last two messages
//! of the user, so that each step finds what the one before it left there.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};
use tolka_facts::Json;

use super::AnthropicOptions;
use crate::ModelAbout;
use crate::native::model::{Input, Message, Output, Request, Returned};

/// Where nothing is known of the model: every one that is in use can write so much.
const ANSWER: u64 = 8_192;
/// Beside the thoughts, which count too.
const BESIDE_THOUGHTS: u64 = 4_096;

pub(super) fn body(request: &Request, about: &ModelAbout, options: &AnthropicOptions) -> serde_json::Result<Vec<u8>> {
    let AnthropicOptions { thinking, temperature, without_cache, extra } = options;
    let said = |key: &str| !extra.contains_key(key);
    let least = thinking.map_or(0, |budget| budget + BESIDE_THOUGHTS);
    let max_tokens = match about.output {
        Some(limit) => limit,
        None => ANSWER.max(least),
    };
    // Thoughts must leave room for the answer.
    let budget = thinking.map(|budget| budget.min(max_tokens / 4 * 3)).filter(|budget| *budget >= 1024);
    let mut messages = messages(&request.messages);
    let budget = budget.filter(|_| said("thinking") && may_think(&messages));
    let mut tools: Vec<Tool<'_>> = request.tools.iter().map(Tool::from).collect();
    let mut system = System { kind: "text", text: &request.system, cache_control: None };
    if !without_cache {
        let users = messages.iter_mut().rev().filter(|message| message.role == Role::User);
        users.take(2).filter_map(|message| message.content.last_mut()).for_each(Block::mark);
        tools.last_mut().into_iter().for_each(|tool| tool.cache_control = Some(EPHEMERAL));
        system.cache_control = Some(EPHEMERAL);
    }
    serde_json::to_vec(&Body {
        model: said("model").then_some(about.model.id.as_str()),
        max_tokens: said("max_tokens").then_some(max_tokens),
        system: (!request.system.is_empty()).then_some([system]),
        messages,
        tools,
        stream: true,
        thinking: budget.map(|budget| json!({"type": "enabled", "budget_tokens": budget})),
        // One who thinks takes none.
        temperature: temperature.filter(|_| said("temperature") && budget.is_none()),
        extra: extra
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "messages" | "tools" | "stream" | "system"))
            .collect(),
    })
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[System<'a>; 1]>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(flatten)]
    extra: std::collections::BTreeMap<&'a String, &'a Value>,
}

#[derive(Serialize)]
struct Mark {
    #[serde(rename = "type")]
    kind: &'static str,
}

const EPHEMERAL: Mark = Mark { kind: "ephemeral" };

#[derive(Serialize)]
struct System<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

impl<'a> From<&'a crate::native::model::ToolSpec> for Tool<'a> {
    fn from(tool: &'a crate::native::model::ToolSpec) -> Self {
        Tool { name: &tool.name, description: &tool.description, input_schema: &tool.schema, cache_control: None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    part: Part<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

impl Block<'_> {
    fn mark(&mut self) {
        self.cache_control = Some(EPHEMERAL);
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        title: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: Cow<'a, str>,
}

fn messages(all: &[Arc<Message>]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(all.len());
    for message in all {
        let (role, parts): (_, Vec<Part<'_>>) = match &**message {
            Message::User(inputs) => (Role::User, inputs.iter().filter_map(input).collect()),
            Message::Model(outputs) => (Role::Assistant, outputs.iter().filter_map(output).collect()),
            Message::Results(results) => (Role::User, results.iter().map(result).collect()),
        };
        let blocks = parts.into_iter().map(|part| Block { part, cache_control: None });
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => turns.push(Turn { role, content: blocks.collect() }),
        }
    }
    // Thoughts alone are no message.
    turns.retain(|turn| {
        turn.content.iter().any(|block| !matches!(block.part, Part::Thinking { .. } | Part::RedactedThinking { .. }))
    });
    // What is gone may have stood between two of one role.
    turns.into_iter().fold(Vec::new(), |mut turns: Vec<Turn<'_>>, turn| {
        match turns.last_mut() {
            Some(last) if last.role == turn.role => last.content.extend(turn.content),
            _ => turns.push(turn),
        }
        turns
    })
}

/// A step in which calls were made without a thought before them cannot go on with thoughts: another model made them.
fn may_think(messages: &[Turn<'_>]) -> bool {
    let [.., Turn { role: Role::Assistant, content }, Turn { content: answer, .. }] = messages else { return true };
    let is_step = answer.iter().any(|block| matches!(block.part, Part::ToolResult { .. }));
    let thinks =
        matches!(content.first().map(|block| &block.part), Some(Part::Thinking { .. } | Part::RedactedThinking { .. }));
    !is_step || thinks
}

fn input(input: &Input) -> Option<Part<'_>> {
    match input {
        Input::Text(text) if text.trim().is_empty() => None,
        Input::Text(text) => Some(Part::Text { text: text.into() }),
        Input::Image { mime, data } => Some(match mime.as_str() {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => {
                Part::Image { source: Source { kind: "base64", media_type: mime, data: data.into() } }
            }
            _ => Part::Text { text: format!("[a picture of type {mime}, which cannot be shown]").into() },
        }),
        Input::File { name, mime, data } => Some(file(name, mime, data)),
    }
}

fn file<'a>(name: &'a str, mime: &'a str, data: &'a str) -> Part<'a> {
    if mime == "application/pdf" {
        let source = Source { kind: "base64", media_type: mime, data: data.into() };
        return Part::Document { source, title: name };
    }
    let is_text = mime.starts_with("text/") || matches!(mime, "application/json" | "application/xml");
    let text = is_text.then(|| STANDARD.decode(data).ok()).flatten().and_then(|bytes| String::from_utf8(bytes).ok());
    match text.filter(|text| !text.trim().is_empty()) {
        Some(text) => {
            Part::Document { source: Source { kind: "text", media_type: "text/plain", data: text.into() }, title: name }
        }
        None => Part::Text { text: format!("[the file {name} of type {mime}, which cannot be shown]").into() },
    }
}

fn output(output: &Output) -> Option<Part<'_>> {
    match output {
        Output::Text(text) if text.trim().is_empty() => None,
        Output::Text(text) => Some(Part::Text { text: text.into() }),
        Output::Thought { text, kept } => thought(text, kept.as_ref()?),
        Output::Call { id, name, input } => Some(Part::ToolUse { id: id_of(id), name, input: object(input) }),
    }
}

/// One that nobody signed, or that another wire has kept, cannot go back.
fn thought<'a>(text: &'a str, kept: &Json) -> Option<Part<'a>> {
    let kept = kept.value();
    let text_of = |key: &str| kept.get(key).and_then(Value::as_str).map(str::to_owned);
    match (text_of("signature"), text_of("data")) {
        (Some(signature), _) => Some(Part::Thinking { thinking: text, signature }),
        (None, Some(data)) => Some(Part::RedactedThinking { data }),
        (None, None) => None,
    }
}

fn result(returned: &Returned) -> Part<'_> {
    Part::ToolResult {
        tool_use_id: id_of(&returned.call),
        content: returned.content.iter().filter_map(input).collect(),
        is_error: returned.is_error,
    }
}

/// Ids of calls that another provider made may have characters that are refused here.
fn id_of(id: &str) -> Cow<'_, str> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !id.is_empty() && id.chars().all(is_good) {
        true => id.into(),
        false => format!("call_{}", id.replace(|c| !is_good(c), "_")).into(),
    }
}

/// The wire takes objects only.
fn object(input: &Json) -> Value {
    match input.value() {
        object @ Value::Object(_) => object,
        Value::Null => json!({}),
        Value::String(text) if text.is_empty() => json!({}),
        other => json!({ "input": other }),
    }
}
