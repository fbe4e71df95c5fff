//! Conversations as ACP agents hold them: random updates, with what real agents do beside the schema (calls that are
//! told by a request for leave alone, output in `_meta`, unknown kinds, extra fields, odd spacing).

use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
enum Act {
    Update(Value),
    Call { call: u8, name: u8 },
    Change { call: u8, status: u8, output: bool, more: u8 },
    Permission { call: u8, option: u8 },
    Form { answer: bool },
    Notify,
    Read,
    End { stop: u8, usage: bool },
    Fail,
}

fn chunk() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec!["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]);
    let contents = prop::sample::select(vec![
        json!({ "type": "text", "text": "Hello, wörld\n" }),
        json!({ "text": "odd order", "type": "text", "annotations": { "priority": 1.0 } }),
        json!({ "type": "text", "text": "" }),
        json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" }),
    ]);
    (kinds, contents, prop::option::of(0..3u8)).prop_map(|(kind, content, message)| {
        let mut update = json!({ "sessionUpdate": kind, "content": content });
        if let Some(message) = message {
            update["messageId"] = format!("m{message}").into();
        }
        update
    })
}

fn other() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({ "sessionUpdate": "plan", "entries": [{ "content": "x", "priority": "low", "status": "pending" }] }),
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 0.10, "currency": "EUR" } }),
        json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan", "_meta": { "a": null } }),
        json!({ "sessionUpdate": "session_info_update", "_meta": { "codex": 1 } }),
        json!({ "sessionUpdate": "session_info_update", "title": "A title" }),
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] }),
        json!({ "sessionUpdate": "config_option_update", "configOptions": [] }),
        json!({ "sessionUpdate": "notice", "severity": "info", "title": "t" }),
        json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress" }),
        json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": { "type": "text", "text": "s" } }),
        json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed" }),
    ])
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => chunk().prop_map(Act::Update),
        4 => other().prop_map(Act::Update),
        4 => (0..4u8, 0..3u8).prop_map(|(call, name)| Act::Call { call, name }),
        8 => (0..4u8, 0..5u8, any::<bool>(), 0..5u8)
            .prop_map(|(call, status, output, more)| Act::Change { call, status, output, more }),
        2 => (0..4u8, 0..3u8).prop_map(|(call, option)| Act::Permission { call, option }),
        1 => any::<bool>().prop_map(|answer| Act::Form { answer }),
        1 => Just(Act::Notify),
        1 => Just(Act::Read),
        2 => (0..5u8, any::<bool>()).prop_map(|(stop, usage)| Act::End { stop, usage }),
        1 => Just(Act::Fail),
    ]
}

/// Lines of both sides, as they are recorded.
pub(crate) fn talk() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(act(), 0..60).prop_map(|acts| {
        let mut talk = Talk::default();
        talk.client(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } }));
        talk.agent(json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1 } }));
        talk.client(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": "/w", "mcpServers": [] } }),
        );
        talk.agent(json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": "s-1" } }));
        acts.into_iter().for_each(|act| talk.play(act));
        talk.lines
    })
}

#[derive(Default)]
struct Talk {
    lines: Vec<u8>,
    at: u32,
    /// The prompt that is open, and how many there were.
    open: Option<u32>,
    prompts: u32,
    asked: u32,
    /// Calls of the turn, and whether each has ended.
    calls: std::collections::BTreeMap<String, bool>,
}

impl Talk {
    fn line(&mut self, dir: &str, msg: &Value) {
        self.at += 7;
        let line = format!("{{\"t\": {}, \"dir\": \"{dir}\", \"msg\": {msg}}}\n", f64::from(self.at) / 1000.0);
        self.lines.extend(line.into_bytes());
    }

    fn client(&mut self, msg: Value) {
        self.line("c2a", &msg);
    }

    fn agent(&mut self, msg: Value) {
        self.line("a2c", &msg);
    }

    fn update(&mut self, update: Value) {
        let params = json!({ "sessionId": "s-1", "update": update });
        self.agent(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    fn prompt(&mut self) {
        if self.open.is_none() {
            self.prompts += 1;
            self.open = Some(10 + self.prompts);
            self.calls.clear();
            let prompt = json!([{ "type": "text", "text": "Do it" }, { "type": "resource_link", "uri": "file:///a", "name": "a" }]);
            let params = json!({ "sessionId": "s-1", "prompt": prompt });
            self.client(
                json!({ "jsonrpc": "2.0", "id": 10 + self.prompts, "method": "session/prompt", "params": params }),
            );
        }
    }

    fn call(&self, call: u8) -> String {
        format!("call_{}_{call}", self.prompts)
    }

    fn play(&mut self, act: Act) {
        match act {
            Act::Update(update) => {
                let is_anywhere = !update["sessionUpdate"].as_str().unwrap().ends_with("message_chunk")
                    && update["sessionUpdate"] != "agent_thought_chunk";
                if !is_anywhere {
                    self.prompt();
                }
                self.update(update);
            }
            Act::Call { call, name } => {
                self.prompt();
                let id = self.call(call);
                if !self.calls.contains_key(&id) {
                    self.calls.insert(id.clone(), false);
                    let titles = ["bash", "Run it", "todowrite"];
                    self.update(json!({
                        "sessionUpdate": "tool_call", "toolCallId": id, "title": titles[usize::from(name)],
                        "kind": "execute", "status": "pending", "rawInput": {},
                    }));
                }
            }
            Act::Change { call, status, output, more } => self.change(call, status, output, more),
            Act::Permission { call, option } => {
                self.prompt();
                let id = self.call(call);
                self.asked += 1;
                let params = json!({
                    "options": [{ "kind": "allow_once", "name": "Yes", "optionId": "y" }, { "kind": "reject_once", "name": "No", "optionId": "n" }],
                    "sessionId": "s-1",
                    "toolCall": { "toolCallId": id, "title": "Leave?", "rawInput": { "command": "ls" }, "_meta": { "x": 1 } },
                });
                self.agent(json!({ "jsonrpc": "2.0", "id": self.asked, "method": "session/request_permission", "params": params }));
                let outcome = match option {
                    0 => json!({ "outcome": "selected", "optionId": "y" }),
                    1 => json!({ "outcome": "selected", "optionId": "n" }),
                    _ => json!({ "outcome": "cancelled" }),
                };
                self.client(json!({ "jsonrpc": "2.0", "id": self.asked, "result": { "outcome": outcome } }));
            }
            Act::Form { answer } => {
                self.prompt();
                self.asked += 1;
                let schema = json!({ "type": "object", "properties": { "colour": { "type": "string", "enum": ["red", "blue"] } } });
                let params =
                    json!({ "mode": "form", "sessionId": "s-1", "message": "Which?", "requestedSchema": schema });
                self.agent(
                    json!({ "jsonrpc": "2.0", "id": self.asked, "method": "elicitation/create", "params": params }),
                );
                let result = if answer {
                    json!({ "action": "accept", "content": { "colour": "red" } })
                } else {
                    json!({ "action": "cancel" })
                };
                self.client(json!({ "jsonrpc": "2.0", "id": self.asked, "result": result }));
            }
            Act::Notify => {
                self.agent(json!({ "jsonrpc": "2.0", "method": "_auth/status", "params": { "kind": [1, null] } }));
            }
            Act::Read => {
                self.asked += 1;
                let params = json!({ "sessionId": "s-1", "path": "/w/a" });
                self.agent(
                    json!({ "jsonrpc": "2.0", "id": self.asked, "method": "fs/read_text_file", "params": params }),
                );
                self.client(json!({ "jsonrpc": "2.0", "id": self.asked, "result": { "content": "x" } }));
            }
            Act::End { stop, usage } => {
                if let Some(id) = self.open.take() {
                    let reasons = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
                    let mut result = json!({ "stopReason": reasons[usize::from(stop)] });
                    if usage {
                        result["usage"] = json!({ "inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "odd": null });
                        result["_meta"] = json!({ "quota": { "b": 1, "a": 2 } });
                    }
                    self.agent(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                }
            }
            Act::Fail => {
                if let Some(id) = self.open.take() {
                    let error = json!({ "code": -32000, "message": "log in", "data": { "why": "key" } });
                    self.agent(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                }
            }
        }
    }

    fn change(&mut self, call: u8, status: u8, output: bool, more: u8) {
        self.prompt();
        let id = self.call(call);
        if *self.calls.get(&id).unwrap_or(&false) {
            return;
        }
        let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id });
        if let Some(status) = ["pending", "in_progress", "completed", "failed"].get(usize::from(status)) {
            update["status"] = (*status).into();
            self.calls.insert(id.clone(), matches!(*status, "completed" | "failed"));
        } else {
            self.calls.entry(id.clone()).or_insert(false);
        }
        match more {
            0 => update["rawInput"] = json!({ "todos": [{ "content": "a", "status": "pending" }] }),
            1 => update["content"] = json!([{ "type": "diff", "path": "/w/a", "oldText": null, "newText": "b" }]),
            2 => update["rawOutput"] = json!({ "error": "no", "code": 1.50 }),
            3 => update["locations"] = json!([{ "path": "/w/a", "line": 3 }]),
            _ => {}
        }
        if output {
            update["_meta"] = json!({ "terminal_output_delta": { "data": "out\n", "terminal_id": id } });
        }
        self.update(update);
    }
}
