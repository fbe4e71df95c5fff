//! Messages: the user's prompt, and one of the agent's for each step.

use serde_json::{Value, json};
use tolka_facts::event::{Finish, Model, PromptQueued, StepEnded, Stop, TurnEnded, Usage};
use tolka_facts::{Blobs, Block, MessageId, OpenTurn, ToolStatus, derived_id};

use super::super::{error, wire};
use super::{Step, Telling, Told};

impl Telling<'_> {
    pub(super) fn prompt(&mut self, prompt: &PromptQueued) {
        let head = &self.tip.head;
        let model = wire::model(head, prompt.model.as_ref());
        let info = json!({
            "id": prompt.message,
            "sessionID": self.session(),
            "role": "user",
            "time": { "created": self.fact.time.millis() },
            "agent": prompt.agent.as_deref().unwrap_or(wire::agent_name(head)),
            "model": { "providerID": model.provider, "modelID": model.id },
        });
        self.event("message.updated", json!({ "sessionID": self.session(), "info": info }));
        for (at, block) in (0..).zip(&prompt.content) {
            let mut part = json!({
                "id": derived_id("prt", self.fact.time, self.fact.seq, at),
                "sessionID": self.session(),
                "messageID": prompt.message,
            });
            let Value::Object(fields) = block_part(block, self.blobs) else { continue };
            part.as_object_mut().into_iter().for_each(|part| part.extend(fields.clone()));
            self.part(&part, None);
        }
        self.session_event("session.updated");
    }

    pub(super) fn step_started(&mut self, message: &MessageId, model: Option<Model>) {
        let step = Step {
            message: message.clone(),
            created: self.fact.time,
            completed: None,
            model,
            finish: None,
            usage: Usage::default(),
            cost: 0.0,
        };
        self.message(&step, self.tip.turn.as_ref(), None);
        // A step outside a turn is told and forgotten: between turns nothing is held.
        self.told.step = self.tip.turn.is_some().then_some(step);
        let part = self.step_part(message, json!({ "type": "step-start" }));
        self.part(part, None);
    }

    pub(super) fn step_part(&self, message: &MessageId, fields: Value) -> Value {
        let mut part = json!({
            "id": derived_id("prt", self.fact.time, self.fact.seq, 0),
            "sessionID": self.session(),
            "messageID": message,
        });
        if let (Some(part), Value::Object(fields)) = (part.as_object_mut(), fields) {
            part.extend(fields);
        }
        part
    }

    pub(super) fn step_ended(&mut self, e: &StepEnded) {
        let Some(mut step) = self.told.step.take() else { return };
        step.finish = Some(e.finish);
        step.usage = e.usage.unwrap_or_default();
        step.cost = e.cost.unwrap_or_default();
        step.completed = Some(self.fact.time);
        let part = self.step_part(
            &e.message,
            json!({
                "type": "step-finish",
                "reason": finish_name(e.finish),
                "tokens": counted(step.usage),
                "cost": step.cost,
            }),
        );
        self.part(part, None);
        self.message(&step, self.tip.turn.as_ref(), None);
        self.told.step = Some(step);
    }

    pub(super) fn message(&mut self, step: &Step, turn: Option<&OpenTurn>, error: Option<&Value>) {
        let head = &self.tip.head;
        let asked = step.model.as_ref().or_else(|| turn.and_then(|turn| turn.model.as_ref()));
        let model = wire::model(head, asked);
        let mut info = json!({
            "id": step.message,
            "sessionID": self.session(),
            "role": "assistant",
            "parentID": turn.map_or("", |turn| turn.message.as_str()),
            "modelID": model.id,
            "providerID": model.provider,
            "mode": wire::agent_name(head),
            "agent": wire::agent_name(head),
            "path": { "cwd": head.workspace, "root": head.workspace },
            "time": { "created": step.created.millis() },
            "cost": step.cost,
            "tokens": counted(step.usage),
        });
        if let Some(completed) = step.completed {
            info["time"]["completed"] = json!(completed.millis());
        }
        if let Some(finish) = step.finish {
            info["finish"] = json!(finish_name(finish));
        }
        if let Some(error) = error {
            info["error"] = error.clone();
        }
        self.event("message.updated", json!({ "sessionID": self.session(), "info": info }));
    }

    /// The message gets its end and its error, then the session is idle: a client that stops reading at
    /// `session.idle` has missed nothing.
    pub(super) fn turn_ended(&mut self, e: &TurnEnded) {
        let turn = self.tip.ended_turn.as_ref();
        for tool in turn.into_iter().flat_map(OpenTurn::open_tools) {
            let mut lost = tool.clone();
            lost.status = ToolStatus::Failed;
            lost.ended = Some(self.fact.time);
            lost.error = Some("The turn ended before the tool did.".into());
            self.tool_part(&lost);
        }
        let error = match e.stop {
            Stop::Cancelled => Some(error::aborted("Aborted")),
            Stop::Interrupted => Some(error::aborted("The server stopped in the middle of this turn")),
            Stop::Failed => turn
                .and_then(|turn| turn.failure.as_ref())
                .map(|failed| error::error_json(failed, &self.model(), self.blobs)),
            Stop::EndTurn | Stop::MaxTokens | Stop::MaxTurnRequests | Stop::Refusal => None,
        };
        if matches!(e.stop, Stop::Cancelled | Stop::Interrupted) {
            self.event("session.error", json!({ "sessionID": self.session(), "error": error }));
        }
        if let Some(mut step) = self.told.step.take()
            && (step.completed.is_none() || error.is_some())
        {
            step.completed.get_or_insert(self.fact.time);
            self.message(&step, turn, error.as_ref());
        }
        self.session_event("session.updated");
        self.status("idle");
        self.event("session.idle", json!({ "sessionID": self.session() }));
        *self.told = Told::default();
    }
}

fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool-calls",
        Finish::Length => "length",
        Finish::Error => "error",
        Finish::Cancelled => "cancelled",
        Finish::Unknown => "unknown",
    }
}

/// Tokens of a step carry their total once there are any, as the real server's do.
fn counted(usage: Usage) -> Value {
    let mut tokens = wire::tokens(usage);
    if usage.total() > 0 {
        tokens["total"] = json!(usage.total());
    }
    tokens
}

fn block_part(block: &Block, blobs: &dyn Blobs) -> Value {
    match block {
        Block::Text { text, .. } => json!({ "type": "text", "text": text.text(blobs) }),
        Block::Image { data, mime, .. } | Block::Audio { data, mime } => {
            json!({ "type": "file", "mime": mime, "url": format!("data:{mime};base64,{}", data.text(blobs)) })
        }
        Block::Link { uri, name, mime, .. } => {
            json!({ "type": "file", "mime": mime.as_deref().unwrap_or("text/plain"), "filename": name, "url": uri })
        }
        Block::Resource { uri, mime, text, blob } => {
            let mime = mime.as_deref().unwrap_or("text/plain");
            match (text, blob) {
                (Some(text), _) => json!({ "type": "text", "text": text.text(blobs), "synthetic": true }),
                (None, Some(blob)) => {
                    json!({ "type": "file", "mime": mime, "url": format!("data:{mime};base64,{}", blob.text(blobs)) })
                }
                (None, None) => json!({ "type": "file", "mime": mime, "url": uri }),
            }
        }
    }
}
