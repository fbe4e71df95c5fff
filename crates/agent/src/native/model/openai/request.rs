//! The conversation as chat completions want it.
//!
//! Pictures in results go into a message of the user after them, since a `tool` message is text; neighbours of one role
//! are one message, since the templates of many local models demand turns.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tolka_facts::Json;

use super::{AnswerLimit, OpenAiOptions};
use crate::ModelAbout;
use crate::native::model::{Input, Message, Output, Request, Returned};

pub(super) fn body(request: &Request, about: &ModelAbout, options: &OpenAiOptions) -> serde_json::Result<Vec<u8>> {
    let limit = |field: AnswerLimit| about.output.filter(|_| options.limit == field);
    let tools = request.tools.iter().map(|tool| Tool {
        kind: "function",
        function: Function { name: &tool.name, description: &tool.description, parameters: &tool.schema },
    });
    let said = |key: &str| !options.extra.contains_key(key);
    serde_json::to_vec(&Body {
        model: said("model").then_some(about.model.id.as_str()),
        messages: messages(request),
        tools: tools.collect(),
        stream: true,
        stream_options: (!options.without_usage && said("stream_options")).then(|| json!({"include_usage": true})),
        max_tokens: limit(AnswerLimit::MaxTokens).filter(|_| said("max_tokens")),
        max_completion_tokens: limit(AnswerLimit::MaxCompletionTokens).filter(|_| said("max_completion_tokens")),
        reasoning_effort: options.effort.as_deref().filter(|_| said("reasoning_effort")),
        temperature: options.temperature.filter(|_| said("temperature")),
        extra: options
            .extra
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "messages" | "tools" | "stream"))
            .collect(),
    })
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    messages: Vec<Chat<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(flatten)]
    extra: std::collections::BTreeMap<&'a String, &'a Value>,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Chat<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content,
    },
    Assistant {
        /// `null` beside calls; a few refuse a message without the field.
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
        /// Reasoning under the name that it came with.
        #[serde(flatten)]
        kept: Map<String, Value>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Called<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Value>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// Text alone is sent as text: not every server takes parts.
#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
    File { file: File },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct File {
    filename: String,
    file_data: String,
}

fn messages(request: &Request) -> Vec<Chat<'_>> {
    let mut chat = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        chat.push(Chat::System { content: &request.system });
    }
    for message in &request.messages {
        match &**message {
            Message::User(inputs) => push_user(&mut chat, inputs.iter().map(part).collect()),
            Message::Model(outputs) => push_model(&mut chat, outputs),
            Message::Results(results) => push_results(&mut chat, results),
        }
    }
    chat
}

fn push_user(chat: &mut Vec<Chat<'_>>, parts: Vec<Part>) {
    if parts.is_empty() {
        return;
    }
    let mut all = match chat.pop_if(|last| matches!(last, Chat::User { .. })) {
        Some(Chat::User { content: Content::Text(text) }) => vec![Part::Text { text }],
        Some(Chat::User { content: Content::Parts(before) }) => before,
        _ => Vec::new(),
    };
    all.extend(parts);
    let texts: Option<Vec<&str>> =
        all.iter().map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None }).collect();
    let content = texts.map(|texts| Content::Text(texts.join("\n\n"))).unwrap_or(Content::Parts(all));
    chat.push(Chat::User { content });
}

fn push_model<'a>(chat: &mut Vec<Chat<'a>>, outputs: &'a [Output]) {
    let (mut text, mut calls, mut thoughts) = (String::new(), Vec::new(), Thoughts::default());
    for output in outputs {
        match output {
            Output::Text(said) => text.push_str(said),
            Output::Thought { text, kept } => thoughts.take(text, kept.as_ref()),
            Output::Call { id, name, input } => {
                let function = Called { name, arguments: arguments(input) };
                calls.push(Call { id, kind: "function", function, extra_content: None });
            }
        }
    }
    for (call, extra) in calls.iter_mut().zip(thoughts.on_calls) {
        call.extra_content = Some(extra).filter(|extra| !extra.is_null());
    }
    if text.is_empty() && calls.is_empty() {
        return;
    }
    if let Some(Chat::Assistant { content, tool_calls, kept }) = chat.last_mut() {
        content.get_or_insert_default().push_str(&text);
        tool_calls.extend(calls);
        kept.extend(thoughts.fields);
        return;
    }
    let content = Some(text).filter(|text| !text.is_empty());
    chat.push(Chat::Assistant { content, tool_calls: calls, kept: thoughts.fields });
}

/// What has to go back, from the `kept` of an answer's thoughts (see `answer/thought.rs`).
#[derive(Default)]
struct Thoughts {
    fields: Map<String, Value>,
    on_calls: Vec<Value>,
}

impl Thoughts {
    /// What another wire has kept is not for this one.
    fn take(&mut self, text: &str, kept: Option<&Json>) {
        let Some(Value::Object(mut kept)) = kept.map(Json::value) else { return };
        if let Some(Value::String(field)) = kept.get("field") {
            let before = self.fields.entry(field).or_insert_with(|| Value::String(String::new()));
            if let Value::String(before) = before {
                before.push_str(text);
            }
        }
        if let Some(Value::Array(details)) = kept.remove("reasoning_details") {
            let before = self.fields.entry("reasoning_details").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(before) = before {
                before.extend(details);
            }
        }
        if let Some(Value::Array(extra)) = kept.remove("extra_content") {
            self.on_calls = extra;
        }
    }
}

fn push_results<'a>(chat: &mut Vec<Chat<'a>>, results: &'a [Returned]) {
    let mut others = Vec::new();
    for result in results {
        let (texts, seen): (Vec<_>, Vec<_>) =
            result.content.iter().map(part).partition(|part| matches!(part, Part::Text { .. }));
        let texts = texts.into_iter().filter_map(|part| if let Part::Text { text } = part { Some(text) } else { None });
        let mut content = texts.collect::<Vec<_>>().join("\n");
        if !seen.is_empty() {
            let text = format!("What the call {} gave:", result.call);
            others.push(Part::Text { text });
            others.extend(seen);
            if content.is_empty() {
                content.push_str("It is shown in the next message.");
            }
        }
        if result.is_error && !content.starts_with("Error") {
            content.insert_str(0, "Error: ");
        }
        chat.push(Chat::Tool { tool_call_id: &result.call, content });
    }
    push_user(chat, others);
}

/// Calls without input have none to send; the wire wants an object.
fn arguments(input: &Json) -> &str {
    match input.get() {
        "null" | "\"\"" => "{}",
        text => text,
    }
}

fn part(input: &Input) -> Part {
    match input {
        Input::Text(text) => Part::Text { text: text.clone() },
        Input::Image { mime, data } => {
            Part::ImageUrl { image_url: ImageUrl { url: format!("data:{mime};base64,{data}") } }
        }
        Input::File { name, mime, data } => match plain(mime, data) {
            Some(text) => Part::Text { text: format!("{name}:\n{text}") },
            None => {
                let file_data = format!("data:{mime};base64,{data}");
                Part::File { file: File { filename: name.clone(), file_data } }
            }
        },
    }
}

/// A file that is text after all.
fn plain(mime: &str, data: &str) -> Option<String> {
    let is_text = mime.starts_with("text/") || matches!(mime, "application/json" | "application/xml");
    is_text.then(|| STANDARD.decode(data).ok()).flatten().and_then(|bytes| String::from_utf8(bytes).ok())
}
