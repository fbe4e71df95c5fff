//! Messages as Anthropic writes them: a block after the other, each with its start and stop, and pings between.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, Issued, Step, Told, list, texts, usual};
use crate::script::{Counts, Cut, Ending};
use crate::words::Word;

struct Writer {
    steps: Vec<Step>,
    index: usize,
    /// The type of the block that is open.
    open: Option<&'static str>,
}

pub(super) fn steps(told: &Told<'_>) -> Vec<Step> {
    let mut writer = Writer { steps: Vec::new(), index: 0, open: None };
    let message = json!({
        "id": format!("msg_01Scripted{:016x}", told.seed),
        "type": "message",
        "role": "assistant",
        "model": told.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(told.counts, 1),
    });
    writer.event("message_start", &json!({"type": "message_start", "message": message}));
    writer.event("ping", &json!({"type": "ping"}));
    for word in told.words {
        if writer.word(word) {
            return writer.steps;
        }
    }
    let stop = match told.ending {
        Ending::Stop => "end_turn",
        Ending::ToolCalls => "tool_use",
        Ending::Length => "max_tokens",
        Ending::Refusal => "refusal",
        Ending::PauseTurn => "pause_turn",
    };
    let usage = usage(told.counts, told.counts.output + told.counts.reasoning);
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    writer.event("message_delta", &json!({"type": "message_delta", "delta": delta, "usage": usage}));
    writer.event("message_stop", &json!({"type": "message_stop"}));
    writer.steps
}

impl Writer {
    /// Whether nothing can come after it.
    fn word(&mut self, word: &Word) -> bool {
        match word {
            Word::Think(text) => {
                self.open("thinking", || json!({"type": "thinking", "thinking": "", "signature": ""}));
                self.delta(&json!({"type": "thinking_delta", "thinking": text}));
            }
            Word::ThinkEnded { signature, .. } => {
                self.open("thinking", || json!({"type": "thinking", "thinking": "", "signature": ""}));
                self.delta(&json!({"type": "signature_delta", "signature": signature}));
                self.close();
            }
            Word::Redacted { data } => {
                self.open("redacted", || json!({"type": "redacted_thinking", "data": data}));
                self.close();
            }
            Word::Text(text) => {
                self.open("text", || json!({"type": "text", "text": ""}));
                self.delta(&json!({"type": "text_delta", "text": text}));
            }
            Word::CallBegan { id, name, .. } => {
                self.open("tool_use", || json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
                self.delta(&json!({"type": "input_json_delta", "partial_json": ""}));
            }
            Word::CallInput { text, .. } => self.delta(&json!({"type": "input_json_delta", "partial_json": text})),
            Word::TextEnded | Word::CallEnded { .. } => self.close(),
            Word::Flood { text, times } => {
                self.open("text", || json!({"type": "text", "text": ""}));
                let delta = self.framed_delta(&json!({"type": "text_delta", "text": text}));
                self.steps.push(Step::Flood { event: Bytes::from(delta), times: *times });
                self.close();
            }
            Word::DelayMs(millis) => self.steps.push(Step::DelayMs(*millis)),
            Word::Gate(name) => self.steps.push(Step::Gate(name.clone())),
            Word::Hang => self.steps.push(Step::Hang),
            Word::Cut(cut) => self.steps.push(Step::Cut(*cut)),
            Word::Garbage(bytes) => self.steps.push(Step::Send(Bytes::from(bytes.clone()))),
            Word::Endless(count) => {
                self.steps.push(Step::Send(Bytes::from_static(b"event: content_block_delta\ndata: {\"type\":\"")));
                self.steps.push(Step::Flood { event: Bytes::from_static(&[b'x'; 1024]), times: count / 1024 });
            }
            Word::Error { kind, message } => {
                self.event("error", &json!({"type": "error", "error": {"type": kind, "message": message}}));
                self.steps.push(Step::Cut(Cut::Closed));
            }
        }
        matches!(word, Word::Hang | Word::Cut(_) | Word::Error { .. })
    }

    fn open(&mut self, kind: &'static str, block: impl FnOnce() -> Value) {
        if self.open != Some(kind) {
            self.close();
            self.open = Some(kind);
            let start = json!({"type": "content_block_start", "index": self.index, "content_block": block()});
            self.event("content_block_start", &start);
        }
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.event("content_block_stop", &json!({"type": "content_block_stop", "index": self.index}));
            self.index += 1;
        }
    }

    fn delta(&mut self, delta: &Value) {
        let event = self.framed_delta(delta);
        self.steps.push(Step::Send(Bytes::from(event)));
    }

    fn framed_delta(&self, delta: &Value) -> String {
        let event = json!({"type": "content_block_delta", "index": self.index, "delta": delta});
        format!("event: content_block_delta\ndata: {event}\n\n")
    }

    fn event(&mut self, name: &str, data: &Value) {
        self.steps.push(Step::Send(Bytes::from(format!("event: {name}\ndata: {data}\n\n"))));
    }
}

fn usage(counts: Counts, output: u64) -> Value {
    json!({
        "input_tokens": counts.input,
        "cache_creation_input_tokens": counts.cache_write,
        "cache_read_input_tokens": counts.cache_read,
        "output_tokens": output,
        "service_tier": "standard",
    })
}

pub(super) fn asked(body: &Value) -> Asked {
    let messages = list(body, "messages");
    let users = || messages.iter().filter(|message| message["role"] == "user");
    // A message that holds results is the loop's, but for the text that a person added to it.
    let said = |message: &Value| texts(&message["content"]);
    let last = messages.last().map(|last| list(last, "content")).unwrap_or_default();
    let result = last.iter().rfind(|block| block["type"] == "tool_result");
    let ends_in_result = last.last().is_some_and(|block| block["type"] == "tool_result");
    Asked {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        system: texts(&body["system"]),
        first_user: users().next().map(said).unwrap_or_default(),
        last_user: users().map(said).rfind(|text| !text.is_empty()).unwrap_or_default(),
        last_result: result.filter(|_| ends_in_result).map(|result| texts(&result["content"])),
        has_tools: !list(body, "tools").is_empty(),
        is_streamed: body["stream"] == true,
        wants_usage: true,
    }
}

pub(super) fn refusal(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    };
    let message = if message.is_empty() { usual(status) } else { message };
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"})
}

pub(super) fn judge(body: &Value, issued: &Issued) -> Result<(), String> {
    let max_tokens = body["max_tokens"].as_u64().ok_or("max_tokens: Field required")?;
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64()
        && (budget < 1024 || budget >= max_tokens)
    {
        return Err("`max_tokens` must be greater than `thinking.budget_tokens`, which must be 1024 or more".to_owned());
    }
    if !body["model"].is_string() {
        return Err("model: Field required".to_owned());
    }
    let mut breakpoints = 0;
    count_breakpoints(body, &mut breakpoints);
    if breakpoints > 4 {
        return Err(format!("A maximum of 4 blocks with cache_control may be provided. Found {breakpoints}."));
    }
    let messages = list(body, "messages");
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    let mut open: HashSet<&str> = HashSet::new();
    for (number, pair) in messages.iter().enumerate() {
        let role = pair["role"].as_str().unwrap_or_default();
        if number > 0 && messages[number - 1]["role"] == pair["role"] {
            return Err(format!("messages.{number}: roles must alternate between \"user\" and \"assistant\""));
        }
        match role {
            "user" => user(number, pair, &mut open)?,
            "assistant" => open = assistant(number, pair, issued)?,
            _ => return Err(format!("messages.{number}.role: Input should be 'user' or 'assistant'")),
        }
    }
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        return Err("the last message is the assistant's own".to_owned());
    }
    Ok(())
}

fn user<'a>(number: usize, message: &'a Value, open: &mut HashSet<&'a str>) -> Result<(), String> {
    let blocks = list(message, "content");
    if texts(&message["content"]).is_empty() && blocks.is_empty() {
        return Err(format!("messages.{number}: user messages must have non-empty content"));
    }
    let mut after_results = false;
    for block in blocks {
        check_text(number, block)?;
        if block["type"] != "tool_result" {
            after_results = true;
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if after_results {
            return Err(format!("messages.{number}: `tool_result` blocks must come first in the content"));
        }
        if !open.remove(id) {
            return Err(format!(
                "messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block \
                 must have a corresponding `tool_use` block in the previous message."
            ));
        }
        list(block, "content").iter().try_for_each(|inner| check_text(number, inner))?;
    }
    match open.iter().next() {
        None => Ok(()),
        Some(id) => Err(format!(
            "messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
        )),
    }
}

fn assistant<'a>(number: usize, message: &'a Value, issued: &Issued) -> Result<HashSet<&'a str>, String> {
    let mut signatures = Vec::new();
    let mut calls = HashSet::new();
    for block in list(message, "content") {
        check_text(number, block)?;
        match block["type"].as_str().unwrap_or_default() {
            "thinking" => {
                let signature = block["signature"].as_str().unwrap_or_default();
                issued
                    .check(signature, block["thinking"].as_str())
                    .map_err(|why| format!("messages.{number}: {why}"))?;
                signatures.push(signature);
            }
            "redacted_thinking" => {
                let data = block["data"].as_str().unwrap_or_default();
                issued.check(data, None).map_err(|why| format!("messages.{number}: {why}"))?;
                signatures.push(data);
            }
            "tool_use" => {
                let id = block["id"].as_str().unwrap_or_default();
                let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                if id.is_empty() || !id.chars().all(is_good) {
                    return Err(format!("messages.{number}: tool_use.id: {id:?} should match '^[a-zA-Z0-9_-]+$'"));
                }
                if !block["input"].is_object() {
                    return Err(format!("messages.{number}: tool_use.input: Input should be a valid dictionary"));
                }
                if !calls.insert(id) {
                    return Err(format!("messages.{number}: `tool_use` ids must be unique"));
                }
                issued.check_call(id, &signatures).map_err(|why| format!("messages.{number}: {why}"))?;
            }
            "text" => {}
            other => return Err(format!("messages.{number}: unexpected block {other:?}")),
        }
    }
    Ok(calls)
}

fn check_text(number: usize, block: &Value) -> Result<(), String> {
    match (block["type"].as_str(), block["text"].as_str()) {
        (Some("text"), None | Some("")) => Err(format!("messages.{number}: text content blocks must be non-empty")),
        (None, _) => Err(format!("messages.{number}: a block without a type")),
        _ => Ok(()),
    }
}

fn count_breakpoints(value: &Value, count: &mut usize) {
    match value {
        Value::Object(fields) => {
            *count += usize::from(fields.contains_key("cache_control"));
            fields.values().for_each(|value| count_breakpoints(value, count));
        }
        Value::Array(all) => all.iter().for_each(|value| count_breakpoints(value, count)),
        _ => {}
    }
}
