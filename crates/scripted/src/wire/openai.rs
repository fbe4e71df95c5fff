//! Chat completions as OpenAI writes them: a role first, a chunk for each piece, the usage last, then `[DONE]`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, Issued, Step, Told, list, texts, usual};
use crate::script::{Counts, Cut, Ending, Reasoning};
use crate::words::Word;

struct Writer<'a> {
    told: &'a Told<'a>,
    steps: Vec<Step>,
    /// Thoughts so far, which number their details.
    thoughts: usize,
}

pub(super) fn steps(told: &Told<'_>) -> Vec<Step> {
    let mut writer = Writer { told, steps: Vec::new(), thoughts: 0 };
    writer.delta(&json!({"role": "assistant", "content": ""}));
    for word in told.words {
        if writer.word(word) {
            return writer.steps;
        }
    }
    let finish = match told.ending {
        Ending::Stop | Ending::PauseTurn => "stop",
        Ending::ToolCalls => "tool_calls",
        Ending::Length => "length",
        Ending::Refusal => "content_filter",
    };
    writer.chunk(&json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish}]), &Value::Null);
    if told.wants_usage {
        writer.chunk(&json!([]), &usage(told.counts));
    }
    writer.send("data: [DONE]\n\n".to_owned());
    writer.steps
}

impl Writer<'_> {
    /// Whether nothing can come after it.
    fn word(&mut self, word: &Word) -> bool {
        match word {
            Word::Think(text) => self.think(text),
            Word::ThinkEnded { signature, .. } => {
                if self.told.reasoning == Reasoning::ReasoningDetails {
                    self.details(&json!({"type": "reasoning.text", "signature": signature}));
                }
                self.thoughts += 1;
            }
            Word::Redacted { data } => {
                if self.told.reasoning == Reasoning::ReasoningDetails {
                    self.details(&json!({"type": "reasoning.encrypted", "data": data}));
                }
                self.thoughts += 1;
            }
            Word::Text(text) => self.delta(&json!({ "content": text })),
            Word::CallBegan { slot, id, name } => {
                let function = json!({"name": name, "arguments": ""});
                self.delta(
                    &json!({"tool_calls": [{"index": slot, "id": id, "type": "function", "function": function}]}),
                );
            }
            Word::CallInput { slot, text } => {
                self.delta(&json!({"tool_calls": [{"index": slot, "function": {"arguments": text}}]}));
            }
            Word::TextEnded | Word::CallEnded { .. } => {}
            Word::Flood { text, times } => {
                let event = self.event(&json!([choice(&json!({ "content": text }))]), &Value::Null);
                self.steps.push(Step::Flood { event: Bytes::from(event), times: *times });
            }
            Word::DelayMs(millis) => self.steps.push(Step::DelayMs(*millis)),
            Word::Gate(name) => self.steps.push(Step::Gate(name.clone())),
            Word::Hang => self.steps.push(Step::Hang),
            Word::Cut(cut) => self.steps.push(Step::Cut(*cut)),
            Word::Garbage(bytes) => self.send(bytes.clone()),
            Word::Endless(count) => {
                self.send("data: {\"choices\":[{\"delta\":{\"content\":\"".to_owned());
                self.steps.push(Step::Flood { event: Bytes::from_static(&[b'x'; 1024]), times: count / 1024 });
            }
            Word::Error { kind, message } => {
                let error = json!({"error": {"message": message, "type": kind, "param": null, "code": null}});
                self.send(format!("data: {error}\n\n"));
                self.steps.push(Step::Cut(Cut::Closed));
            }
        }
        matches!(word, Word::Hang | Word::Cut(_) | Word::Error { .. })
    }

    fn think(&mut self, text: &str) {
        match self.told.reasoning {
            Reasoning::ReasoningContent => self.delta(&json!({ "reasoning_content": text })),
            Reasoning::Reasoning => self.delta(&json!({ "reasoning": text })),
            Reasoning::ReasoningDetails => {
                let detail = json!({"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": self.thoughts});
                self.delta(
                    &json!({"role": "assistant", "content": "", "reasoning": text, "reasoning_details": [detail]}),
                );
            }
        }
    }

    fn details(&mut self, detail: &Value) {
        let mut detail = detail.clone();
        detail["format"] = json!("anthropic-claude-v1");
        detail["index"] = json!(self.thoughts);
        self.delta(&json!({"role": "assistant", "content": "", "reasoning": null, "reasoning_details": [detail]}));
    }

    fn delta(&mut self, delta: &Value) {
        self.chunk(&json!([choice(delta)]), &Value::Null);
    }

    fn chunk(&mut self, choices: &Value, usage: &Value) {
        let event = self.event(choices, usage);
        self.send(event);
    }

    fn event(&self, choices: &Value, usage: &Value) -> String {
        let mut chunk = json!({
            "id": format!("chatcmpl-scripted{:016x}", self.told.seed),
            "object": "chat.completion.chunk",
            "created": 1_760_000_000 + self.told.seed % 1_000_000,
            "model": self.told.model,
            "service_tier": "default",
            "system_fingerprint": "fp_scripted",
            "choices": choices,
        });
        if self.told.wants_usage {
            chunk["usage"] = usage.clone();
        }
        format!("data: {chunk}\n\n")
    }

    fn send(&mut self, event: String) {
        self.steps.push(Step::Send(Bytes::from(event)));
    }
}

fn choice(delta: &Value) -> Value {
    json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null})
}

fn usage(counts: Counts) -> Value {
    let Counts { input, output, reasoning, cache_read, cache_write } = counts;
    let (prompt, completion) = (input + cache_read + cache_write, output + reasoning);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cache_read, "cache_write_tokens": cache_write, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
    })
}

pub(super) fn asked(body: &Value) -> Asked {
    let messages = list(body, "messages");
    let of = |role: &'static str| messages.iter().filter(move |message| message["role"] == role);
    let user = |message: Option<&Value>| message.map(|message| texts(&message["content"])).unwrap_or_default();
    let ends_in_result = messages.last().is_some_and(|last| last["role"] == "tool");
    Asked {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        system: user(of("system").next()),
        first_user: user(of("user").next()),
        last_user: user(of("user").next_back()),
        last_result: ends_in_result.then(|| user(messages.last())),
        has_tools: !list(body, "tools").is_empty(),
        is_streamed: body["stream"] == true,
        wants_usage: body["stream_options"]["include_usage"] == true,
    }
}

pub(super) fn refusal(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        404 => ("invalid_request_error", json!("model_not_found")),
        429 => ("requests", json!("rate_limit_exceeded")),
        500..=599 => ("server_error", Value::Null),
        _ => ("invalid_request_error", Value::Null),
    };
    let message = if message.is_empty() { usual(status) } else { message };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

pub(super) fn overflow() -> Value {
    let message = "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens. \
                   Please reduce the length of the messages.";
    json!({"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}})
}

pub(super) fn judge(body: &Value, issued: &Issued) -> Result<(), String> {
    if !body["model"].is_string() {
        return Err("you must provide a model parameter".to_owned());
    }
    let messages = list(body, "messages");
    if !messages.iter().any(|message| matches!(message["role"].as_str(), Some("user" | "tool"))) {
        return Err("'messages' must have a message of the user".to_owned());
    }
    let names: Vec<_> = list(body, "tools").iter().map(|tool| &tool["function"]["name"]).collect();
    if let Some(bad) = names.iter().find(|name| !name.as_str().is_some_and(is_name)) {
        return Err(format!("Invalid 'tools[].function.name': {bad} does not match '^[a-zA-Z0-9_-]+$'"));
    }
    // Calls whose results have not come yet.
    let mut open: Vec<&str> = Vec::new();
    let mut before = "";
    for (number, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            return Err(format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
                 The following tool_call_ids did not have response messages: {}",
                open.join(", ")
            ));
        }
        match role {
            "system" | "developer" if number == 0 => {}
            "user" if before != "user" => has_content(number, message)?,
            "assistant" if before != "assistant" => open = assistant(number, message, issued)?,
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let place = open.iter().position(|call| *call == id).ok_or_else(|| {
                    format!("messages[{number}]: a message with role 'tool' must be a response to a preceding message with 'tool_calls': {id:?}")
                })?;
                open.remove(place);
                if !message["content"].is_string() {
                    return Err(format!("messages[{number}].content of a tool message has to be a string"));
                }
            }
            _ => return Err(format!("messages[{number}]: roles must alternate: {role:?} after {before:?}")),
        }
        before = role;
    }
    match (open.is_empty(), before) {
        (true, "assistant") => Err("the last message is the assistant's own".to_owned()),
        (true, _) => Ok(()),
        (false, _) => Err(format!("no tool messages for the tool_call_ids {}", open.join(", "))),
    }
}

fn has_content(number: usize, message: &Value) -> Result<(), String> {
    match &message["content"] {
        Value::String(_) => Ok(()),
        Value::Array(parts) if !parts.is_empty() => Ok(()),
        _ => Err(format!("Invalid value for 'content' of messages[{number}]: expected a string or parts")),
    }
}

fn assistant<'a>(number: usize, message: &'a Value, issued: &Issued) -> Result<Vec<&'a str>, String> {
    let calls = list(message, "tool_calls");
    if calls.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
        return Err(format!("messages[{number}]: an assistant message must have content or tool_calls"));
    }
    let details = list(message, "reasoning_details");
    let signature = |detail: &'a Value| detail["signature"].as_str().or_else(|| detail["data"].as_str());
    for detail in details {
        issued.check(signature(detail).unwrap_or_default(), detail["text"].as_str())?;
    }
    let signatures: Vec<&str> = details.iter().filter_map(signature).collect();
    let mut ids = Vec::new();
    for call in calls {
        let id = call["id"].as_str().filter(|id| !id.is_empty()).ok_or("a call without an id")?;
        if call["type"] != "function" || !call["function"]["name"].as_str().is_some_and(is_name) {
            return Err(format!("messages[{number}]: the call {id} is no function call"));
        }
        let input = call["function"]["arguments"].as_str().unwrap_or_default();
        if !serde_json::from_str::<Value>(input).is_ok_and(|input| input.is_object()) {
            return Err(format!("messages[{number}]: the arguments of {id} are no JSON object: {input:?}"));
        }
        if ids.contains(&id) {
            return Err(format!("messages[{number}]: the id {id} is there twice"));
        }
        // Only details can be signed here.
        if !details.is_empty() || issued.wants_details {
            issued.check_call(id, &signatures)?;
        }
        ids.push(id);
    }
    Ok(ids)
}

fn is_name(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_good)
}
