//! Messages: the user's prompt, and one of the agent's for each step.

use serde::Serialize;
use serde_json::{Value, json};
use tolka_facts::event::{Finish, Model, PromptQueued, RetryScheduled, StepEnded, Stop, TurnEnded, TurnStarted, Usage};
use tolka_facts::{Blobs, Block, Fact, MessageId, OpenTurn, Subtask, Time, ToolStatus, derived_id};

use super::super::info::Tokens;
use super::super::{error, wire};
use super::files::FileDiff;
use super::{Asked, Status, Step, Telling, Told};

#[derive(Serialize)]
struct MessageUpdated<'a> {
    #[serde(rename = "sessionID")]
    session_id: &'a str,
    info: AgentMessage<'a>,
}

#[derive(Serialize)]
struct AgentMessage<'a> {
    id: &'a str,
    #[serde(rename = "sessionID")]
    session_id: &'a str,
    role: &'a str,
    #[serde(rename = "parentID")]
    parent_id: &'a str,
    #[serde(rename = "modelID")]
    model_id: &'a str,
    #[serde(rename = "providerID")]
    provider_id: &'a str,
    mode: &'a str,
    agent: &'a str,
    path: Path<'a>,
    time: Times,
    cost: f64,
    tokens: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Value>,
}

#[derive(Serialize)]
struct Path<'a> {
    cwd: &'a str,
    root: &'a str,
}

#[derive(Serialize)]
struct Times {
    created: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<u64>,
}

/// Whose part it is.
#[derive(Serialize)]
pub(super) struct Place<'a> {
    id: String,
    #[serde(rename = "sessionID")]
    session_id: &'a str,
    #[serde(rename = "messageID")]
    message_id: &'a str,
}

impl<'a> Place<'a> {
    pub(super) fn of(fact: &'a Fact, message: &'a MessageId) -> Self {
        Place {
            id: derived_id("prt", fact.time, fact.seq, 0),
            session_id: fact.session.as_str(),
            message_id: message.as_str(),
        }
    }
}

#[derive(Serialize)]
struct StepStart<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a str>,
}

#[derive(Serialize)]
struct StepFinish<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    r#type: &'a str,
    reason: &'a str,
    tokens: Tokens,
    cost: f64,
}

impl Asked {
    fn of(prompt: &PromptQueued, created: Time) -> Self {
        let PromptQueued { message, agent, model, .. } = prompt;
        Asked { message: message.clone(), created, agent: agent.clone(), model: model.clone() }
    }
}

impl Telling<'_> {
    pub(super) fn turn_started(&mut self, e: &TurnStarted) {
        self.told.checkpoint.clone_from(&e.checkpoint);
        self.told.asked = self.tip.taken.as_ref().map(|taken| Asked::of(&taken.prompt, taken.time));
        // Clients leave out all from the place on that was gone back to, so they are told first that there is none now.
        if self.tip.has_settled {
            self.session_event("session.updated");
        }
        self.status(Status::Busy);
    }

    /// Told when it is queued, and once more when a running turn takes it: clients put the one in the place of the other.
    pub(super) fn user_message(&mut self, prompt: &PromptQueued, created: Time) {
        self.asked_message(&Asked::of(prompt, created), None);
    }

    /// `diffs`: what its turn changed.
    pub(super) fn asked_message(&mut self, asked: &Asked, diffs: Option<&[FileDiff<'_>]>) {
        let head = &self.tip.head;
        let model = wire::model(head, asked.model.as_ref());
        let mut info = json!({
            "id": asked.message,
            "sessionID": self.session(),
            "role": "user",
            "time": { "created": asked.created.millis() },
            "agent": asked.agent.as_deref().unwrap_or(wire::agent_name(head)),
            "model": { "providerID": model.provider, "modelID": model.id },
        });
        if let Some(diffs) = diffs {
            info["summary"] = json!({ "diffs": diffs });
        }
        self.event("message.updated", json!({ "sessionID": self.session(), "info": info }));
    }

    pub(super) fn prompt(&mut self, prompt: &PromptQueued) {
        self.user_message(prompt, self.fact.time);
        for (at, block) in (0..).zip(&prompt.content) {
            let mut part = json!({
                "id": derived_id("prt", self.fact.time, self.fact.seq, at),
                "sessionID": self.session(),
                "messageID": prompt.message,
            });
            let Value::Object(fields) = block_part(block, self.blobs) else { continue };
            part.as_object_mut().into_iter().for_each(|part| part.extend(fields.clone()));
            self.part(&part);
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
        // Between two steps the workspace is not saved.
        let is_first = self.tip.turn.as_ref().is_some_and(|turn| turn.steps == 1);
        let snapshot = self.told.checkpoint.clone().filter(|_| is_first);
        let place = Place::of(self.fact, message);
        self.part(StepStart { place, r#type: "step-start", snapshot: snapshot.as_deref() });
    }

    pub(super) fn step_ended(&mut self, e: &StepEnded) {
        let Some(mut step) = self.told.step.take() else { return };
        step.finish = Some(e.finish);
        step.usage = e.usage.unwrap_or_default();
        step.cost = e.cost.unwrap_or_default();
        step.completed = Some(self.fact.time);
        let place = Place::of(self.fact, &e.message);
        let (reason, tokens) = (finish_name(e.finish), Tokens::counted(step.usage));
        self.part(StepFinish { place, r#type: "step-finish", reason, tokens, cost: step.cost });
        self.message(&step, self.tip.turn.as_ref(), None);
        self.told.step = Some(step);
    }

    /// A step whose answer broke off shows why, as the model is asked again in another: clients draw the error of a
    /// message, and make nothing of how it finished.
    pub(super) fn cut_off(&mut self, retry: &RetryScheduled) {
        let Some(step) = self.told.step.take_if(|step| step.finish == Some(Finish::Error)) else { return };
        let error = error::retried(retry);
        self.message(&step, self.tip.turn.as_ref(), Some(&error));
        self.told.step = Some(step);
    }

    pub(super) fn message(&mut self, step: &Step, turn: Option<&OpenTurn>, error: Option<&Value>) {
        let head = &self.tip.head;
        let asked = step.model.as_ref().or_else(|| turn.and_then(|turn| turn.model.as_ref()));
        let model = wire::model(head, asked);
        let mode = turn.and_then(|turn| turn.mode.as_deref()).unwrap_or(wire::agent_name(head));
        let info = AgentMessage {
            id: step.message.as_str(),
            session_id: self.session(),
            role: "assistant",
            parent_id: turn.map_or("", |turn| turn.asked_message().as_str()),
            model_id: model.id,
            provider_id: model.provider,
            mode,
            agent: mode,
            path: Path { cwd: &head.workspace, root: &head.workspace },
            time: Times { created: step.created.millis(), completed: step.completed.map(Time::millis) },
            cost: step.cost,
            tokens: Tokens::counted(step.usage),
            finish: step.finish.map(finish_name),
            error,
        };
        self.event("message.updated", MessageUpdated { session_id: self.session(), info });
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
        self.status(Status::Idle);
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

fn block_part(block: &Block, blobs: &dyn Blobs) -> Value {
    if let Some(Subtask { kind, description, prompt }) = Subtask::of(block, blobs) {
        return json!({ "type": "subtask", "prompt": prompt, "description": description, "agent": kind });
    }
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
