//! The eight conversions that the document names: an ACP message through the interpreter and the encoder gives the
//! packet.

use std::sync::Arc;

use serde_json::{Value, json};
use tolka_dialect::acp::Interpreter;
use tolka_facts::event::{Stop, TurnEnded};
use tolka_facts::{Draft, Ids, Json, Time, TurnId};

use crate::Session;

/// An agent that speaks ACP, and its session as this dialect tells it.
struct Agent {
    interpreter: Interpreter,
    session: Session,
}

impl Agent {
    fn new() -> Self {
        Agent { interpreter: Interpreter::new(Arc::new(Ids::seeded(1))), session: Session::in_turn() }
    }

    fn update(&mut self, update: &Value) -> &mut Self {
        let mut drafts = Vec::new();
        self.interpreter.update(&Json::from_value(update), Time::from_micros(crate::START), &mut drafts);
        drafts.into_iter().for_each(|draft| {
            self.session.draft(draft);
        });
        self
    }

    fn answer(&mut self, result: &Value) -> &mut Self {
        let mut drafts = Vec::new();
        let (stop, usage, meta) = self.interpreter.ended(&Json::from_value(result), &mut drafts);
        drafts.into_iter().for_each(|draft| {
            self.session.draft(draft);
        });
        self.session.tell(TurnEnded { turn: TurnId::from("trn_1"), stop, usage, cost: None, meta });
        self
    }

    fn told(&self, kind: &str) -> Value {
        let packets = self.session.packets();
        let mut told = packets.into_iter().filter(|packet| packet["type"] == kind);
        let packet = told.next().unwrap_or_else(|| panic!("no {kind}"));
        assert_eq!(told.next(), None, "more than one {kind}");
        packet
    }
}

const TIME: &str = "2025-01-20T12:00:00.000Z";

fn chunk(update: &str, text: &str) -> Value {
    json!({"sessionUpdate": update, "content": {"type": "text", "text": text}})
}

fn read_call() -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": "tc_123", "title": "Reading file.py", "kind": "read",
        "status": "pending", "rawInput": {"file_path": "/path/to/file.py"}, "_meta": {"claudeCode": {"toolName": "Read"}}})
}

#[test]
fn thought_to_step_delta() {
    let mut agent = Agent::new();
    agent.update(&chunk("agent_thought_chunk", "I need to look first."));
    let start = agent.told("step_start");
    assert_eq!(start["step_name"], "Step 1");
    let delta = json!({"type": "step_delta", "step_id": start["step_id"], "content": "I need to look first.",
        "timestamp": TIME});
    assert_eq!(agent.told("step_delta"), delta);
}

#[test]
fn tool_start_to_tool_start() {
    let mut agent = Agent::new();
    agent.update(&read_call());
    let start = json!({"type": "tool_start", "tool_call_id": "tc_123", "tool_name": "Read",
        "tool_input": {"file_path": "/path/to/file.py"}, "title": "Reading file.py", "timestamp": TIME});
    assert_eq!(agent.told("tool_start"), start);
}

#[test]
fn tool_progress_to_tool_end() {
    let mut agent = Agent::new();
    agent.update(&read_call()).update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "tc_123",
        "status": "completed", "rawOutput": "File contents here...",
        "content": [{"type": "content", "content": {"type": "text", "text": "File contents here..."}}]}));
    let end = json!({"type": "tool_end", "tool_call_id": "tc_123", "tool_name": "Read", "status": "success",
        "result": "File contents here...", "content": [{"type": "text", "text": "File contents here..."}],
        "timestamp": TIME});
    assert_eq!(agent.told("tool_end"), end);
}

#[test]
fn message_chunk_to_output_delta() {
    let mut agent = Agent::new();
    agent.update(&chunk("agent_message_chunk", "I've updated it."));
    let delta = json!({"type": "output_delta", "content": "I've updated it.", "timestamp": TIME});
    assert_eq!(agent.told("output_delta"), delta);
}

#[test]
fn plan_to_plan() {
    let mut agent = Agent::new();
    agent.update(&json!({"sessionUpdate": "plan", "entries": [
        {"content": "Read the file", "priority": "high", "status": "completed"},
        {"content": "Make changes", "priority": "low", "status": "in_progress"}]}));
    let plan = json!({"type": "plan", "plan": "1. Read the file\n2. Make changes", "entries": [
        {"id": "1", "description": "Read the file", "status": "completed", "priority": 1},
        {"id": "2", "description": "Make changes", "status": "in_progress", "priority": 3}], "timestamp": TIME});
    assert_eq!(agent.told("plan"), plan);
}

#[test]
fn mode_update_to_mode_update() {
    let mut agent = Agent::new();
    agent.update(&json!({"sessionUpdate": "current_mode_update", "currentModeId": "implement"}));
    let update = json!({"type": "mode_update", "mode": "implement", "description": null, "timestamp": TIME});
    assert_eq!(agent.told("mode_update"), update);
}

#[test]
fn prompt_response_to_done() {
    let mut agent = Agent::new();
    agent.update(&chunk("agent_message_chunk", "Done."));
    agent.answer(&json!({"stopReason": "end_turn", "usage": {"inputTokens": 1000, "outputTokens": 500,
        "totalTokens": 1500}}));
    let done = json!({"type": "done", "summary": "Completed", "stop_reason": "end_turn",
        "usage": {"input_tokens": 1000, "output_tokens": 500}, "timestamp": TIME});
    assert_eq!(agent.told("done"), done);
    for reason in ["max_tokens", "max_turn_requests", "refusal", "cancelled"] {
        let mut agent = Agent::new();
        agent.answer(&json!({ "stopReason": reason }));
        assert_eq!(agent.told("done")["stop_reason"], reason);
    }
}

#[test]
fn error_to_error() {
    let mut agent = Agent::new();
    let error = Json::from_value(&json!({"code": -32603, "message": "Failed to read file: File not found"}));
    let failed = agent.interpreter.failed(&error);
    agent.session.draft(Draft::agent(failed).with_raw(error)).end(Stop::Failed);
    let told = json!({"type": "error", "message": "Failed to read file: File not found", "code": -32603,
        "timestamp": TIME});
    assert_eq!(agent.told("error"), told);
}
