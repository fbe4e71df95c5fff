//! Facts to events. What an encoder remembers is about the open turn only: which step and calls were
//! told, and where growing state was last told whole. When a turn ends it has forgotten everything.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tolka_facts::event::{Finish, Model, PromptQueued, PtyChange, StepEnded, Stop, TurnEnded, Usage};
use tolka_facts::{
    Blobs, Block, CallId, Event, Fact, MessageId, OpenText, OpenTurn, RequestId, Rope, Time, Tip, Tool, Voice, derived_id,
};

use super::marks::Mark;
use super::wire::{self, Frame, PartDelta, PartUpdated, Span, TextPart};
use super::{Profile, error, tools};
use crate::Frames;

#[derive(Debug, Clone)]
pub struct Encoder {
    profile: Profile,
    told: Told,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Told {
    /// The last step, also after it ended: how the turn ends belongs to its message.
    step: Option<Step>,
    text: Option<Mark>,
    calls: Vec<Call>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Step {
    message: MessageId,
    created: Time,
    completed: Option<Time>,
    model: Option<Model>,
    finish: Option<Finish>,
    usage: Usage,
    cost: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Call {
    id: CallId,
    /// Of the part as it was last told: agents repeat themselves, and a repetition is not told.
    print: u64,
    input: Mark,
    output: Mark,
}

impl Encoder {
    pub fn new(profile: Profile) -> Self {
        Encoder { profile, told: Told::default() }
    }

    pub fn resume(profile: Profile, state: &[u8]) -> Option<Self> {
        let told = if state.is_empty() { Told::default() } else { serde_json::from_slice(state).ok()? };
        Some(Encoder { profile, told })
    }
}

impl crate::Encoder for Encoder {
    fn encode(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        let first = out.len();
        Telling { profile: self.profile, told: &mut self.told, fact, tip, blobs, out, first }.tell();
    }

    fn state(&self) -> Vec<u8> {
        if self.told == Told::default() { Vec::new() } else { serde_json::to_vec(&self.told).unwrap_or_default() }
    }
}

/// One fact on its way out.
struct Telling<'a> {
    profile: Profile,
    told: &'a mut Told,
    fact: &'a Fact,
    tip: &'a Tip,
    blobs: &'a dyn Blobs,
    out: &'a mut Frames,
    /// How many frames `out` held before this fact.
    first: usize,
}

impl<'a> Telling<'a> {
    fn tell(&mut self) {
        let tip = self.tip;
        if let Some(ended) = &tip.ended_text {
            self.text_ended(ended);
        }
        let session = self.session();
        let fact = self.fact;
        match &fact.event {
            Event::SessionCreated(_) => self.session_event("session.created"),
            Event::SessionChanged(_) | Event::ModeSet(_) => self.session_event("session.updated"),
            Event::SessionDeleted(_) => self.session_event("session.deleted"),
            Event::PromptQueued(e) => self.prompt(e),
            Event::PromptDropped(_) => {
                if let Some(dropped) = &tip.dropped {
                    let message = &dropped.prompt.message;
                    self.event("message.removed", json!({ "sessionID": session, "messageID": message }));
                }
            }
            Event::TurnStarted(_) => self.status("busy"),
            Event::TurnEnded(e) => self.turn_ended(e),
            Event::StepStarted(e) => self.step_started(&e.message, e.model.clone()),
            Event::StepEnded(e) => self.step_ended(e),
            Event::TextAppended(e) => self.text(&e.text),
            Event::ThoughtAppended(e) => self.text(&e.text),
            Event::ToolChanged(e) => self.tool(&e.call),
            Event::InputAppended(e) => self.live(&e.call, |known, tool| known.input.reached(tool.live_input.len())),
            Event::OutputAppended(e) => self.live(&e.call, |known, tool| known.output.reached(tool.live_output.len())),
            Event::PlanSet(e) => {
                self.event("todo.updated", json!({ "sessionID": session, "todos": wire::todos(&e.entries) }));
            }
            Event::UsageSet(e) if e.cost.is_some() => self.session_event("session.updated"),
            Event::Noticed(e) => {
                let variant = json!(e.severity);
                let variant = if variant == "other" { json!("info") } else { variant };
                let message = e.description.as_deref().unwrap_or_default();
                self.event("tui.toast.show", json!({ "title": e.title, "message": message, "variant": variant }));
            }
            Event::FileChanged(e) => self.event("file.edited", json!({ "file": e.path })),
            Event::PermissionAsked(e) => {
                self.event("permission.asked", wire::permission(e, tip, self.blobs));
                if self.profile != Profile::Current {
                    let old = self.old_permission(e);
                    self.event("permission.updated", old);
                }
            }
            Event::PermissionAnswered(e) => self.permission_answered(&e.request, e.option.as_deref()),
            Event::QuestionAsked(e) => self.event("question.asked", wire::question(e, tip)),
            Event::QuestionAnswered(e) => match &e.answers {
                Some(answers) => self.event(
                    "question.replied",
                    json!({ "sessionID": session, "requestID": e.request, "answers": answers }),
                ),
                None => self.event("question.rejected", json!({ "sessionID": session, "requestID": e.request })),
            },
            Event::CompactionEnded(e) if e.error.is_none() => {
                self.event("session.compacted", json!({ "sessionID": session }));
            }
            Event::MessageHidden(e) => {
                self.event("message.removed", json!({ "sessionID": session, "messageID": e.message }));
            }
            Event::Failed(e) => {
                let error = error::error_json(e, &self.model(), self.blobs);
                self.event("session.error", json!({ "sessionID": session, "error": error }));
            }
            Event::InstanceDisposed(e) => {
                self.event("server.instance.disposed", json!({ "directory": e.directory }));
            }
            Event::VersionChanged(e) => self.event("installation.updated", json!({ "version": e.version })),
            Event::UpdateFound(e) => self.event("installation.update-available", json!({ "version": e.version })),
            Event::BranchChanged(e) => self.event("vcs.branch.updated", json!({ "branch": e.branch })),
            Event::PtyChanged(e) => {
                let info = e.info.as_ref().map(tolka_facts::Json::value);
                match e.change {
                    PtyChange::Created => self.event("pty.created", json!({ "info": info })),
                    PtyChange::Updated => self.event("pty.updated", json!({ "info": info })),
                    PtyChange::Exited => {
                        let code = info.as_ref().and_then(|info| info.get("exitCode")).cloned();
                        self.event("pty.exited", json!({ "id": e.id, "exitCode": code.unwrap_or(json!(0)) }));
                    }
                    PtyChange::Deleted => self.event("pty.deleted", json!({ "id": e.id })),
                }
            }
            // This wire has no word for them; the tolka dialect carries all.
            Event::CommandsSet(_)
            | Event::UsageSet(_)
            | Event::ArtifactSaved(_)
            | Event::CompactionStarted(_)
            | Event::CompactionEnded(_)
            | Event::CheckpointSaved(_)
            | Event::RewindStarted(_)
            | Event::Rewound(_)
            | Event::Unrewound(_)
            | Event::Foreign(_) => {}
        }
    }

    fn session(&self) -> &'a str {
        self.fact.session.as_str()
    }

    fn event<P: Serialize>(&mut self, kind: &str, properties: P) {
        let n = u32::try_from(self.out.len() - self.first).unwrap_or(u32::MAX);
        let id = derived_id("evt", self.fact.time, self.fact.seq, n);
        self.out.push(&Frame { id, r#type: kind, properties });
    }

    /// `session` is the document's name for what today's server calls `info`.
    fn session_event(&mut self, kind: &str) {
        let info = wire::session_info(&self.tip.head);
        let mut properties = json!({ "sessionID": self.session(), "info": info });
        if self.profile != Profile::Current && kind == "session.updated" {
            properties["session"] = info;
        }
        self.event(kind, properties);
    }

    fn status(&mut self, status: &str) {
        self.event("session.status", json!({ "sessionID": self.session(), "status": { "type": status } }));
    }

    fn model(&self) -> Model {
        let asked = self.tip.turn.as_ref().or(self.tip.ended_turn.as_ref()).and_then(|turn| turn.model.as_ref());
        wire::model(&self.tip.head, asked)
    }

    fn prompt(&mut self, prompt: &PromptQueued) {
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

    fn part<P: Serialize>(&mut self, part: P, delta: Option<&str>) {
        let (session_id, time) = (self.session(), self.fact.time.millis());
        self.event("message.part.updated", PartUpdated { session_id, part, time, delta });
    }

    fn step_started(&mut self, message: &MessageId, model: Option<Model>) {
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

    fn step_part(&self, message: &MessageId, fields: Value) -> Value {
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

    fn step_ended(&mut self, e: &StepEnded) {
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

    fn message(&mut self, step: &Step, turn: Option<&OpenTurn>, error: Option<&Value>) {
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
    fn turn_ended(&mut self, e: &TurnEnded) {
        let turn = self.tip.ended_turn.as_ref();
        for tool in turn.into_iter().flat_map(OpenTurn::open_tools) {
            let mut lost = tool.clone();
            lost.status = tolka_facts::ToolStatus::Failed;
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

    fn text(&mut self, piece: &str) {
        let Some(open) = self.tip.turn.as_ref().and_then(|turn| turn.text.as_ref()) else { return };
        let id = text_part_id(open);
        let is_first = open.first_seq == self.fact.seq;
        let mut mark = if is_first { Mark::text() } else { self.told.text.unwrap_or_else(Mark::text) };
        let last = mark.reached(open.text.len());
        self.told.text = Some(mark);
        if self.profile == Profile::Documented {
            return self.text_part(open, &id, &open.text, None, Some(piece));
        }
        if is_first {
            self.text_part(open, &id, &Rope::default(), None, None);
        }
        let (session_id, message_id) = (self.session(), open.message.as_str());
        self.event(
            "message.part.delta",
            PartDelta { session_id, message_id, part_id: &id, field: "text", delta: piece },
        );
        if let (Profile::Superset, Some(last)) = (self.profile, last) {
            let since = open.text.since(last);
            self.text_part(open, &id, &open.text, None, Some(&since));
        }
    }

    fn text_ended(&mut self, open: &OpenText) {
        let last = self.told.text.take().map_or(0, Mark::at);
        let since = match self.profile {
            Profile::Superset => open.text.since(last),
            Profile::Current | Profile::Documented => String::new(),
        };
        let delta = (!since.is_empty()).then_some(since.as_str());
        self.text_part(open, &text_part_id(open), &open.text, Some(self.fact.time.millis()), delta);
    }

    fn text_part(&mut self, open: &OpenText, id: &str, text: &Rope, end: Option<u64>, delta: Option<&str>) {
        let part = TextPart {
            id,
            session_id: self.session(),
            message_id: open.message.as_str(),
            r#type: match open.voice {
                Voice::Text => "text",
                Voice::Thought => "reasoning",
            },
            text,
            time: Span { start: open.started.millis(), end },
        };
        self.part(part, delta);
    }

    fn tool(&mut self, call: &CallId) {
        if let Some(tool) = self.tip.tool(call) {
            self.tool_part(tool);
        }
    }

    fn live(&mut self, call: &CallId, reached: impl Fn(&mut Call, &Tool) -> Option<usize>) {
        let Some(tool) = self.tip.tool(call) else { return };
        self.announce(tool);
        let known = self.told.calls.iter_mut().find(|known| known.id == *call);
        if known.is_some_and(|known| reached(known, tool).is_some()) {
            self.tool_part(tool);
        }
    }

    /// Every call is first told as pending and empty, also where its agent began further on.
    fn announce(&mut self, tool: &Tool) {
        if self.told.calls.iter().any(|known| known.id == tool.call) {
            return;
        }
        let mut part = Vec::with_capacity(256);
        tools::write_announced(tool, self.session(), &mut part);
        let (input, output) = (Mark::output(), Mark::output());
        self.told.calls.push(Call { id: tool.call.clone(), print: fingerprint(&part), input, output });
        self.raw_part(&part);
    }

    fn tool_part(&mut self, tool: &Tool) {
        self.announce(tool);
        let mut part = Vec::with_capacity(512);
        tools::write_part(tool, self.session(), self.blobs, &mut part);
        let print = fingerprint(&part);
        let Some(at) = self.told.calls.iter().position(|known| known.id == tool.call) else { return };
        let is_news = std::mem::replace(&mut self.told.calls[at].print, print) != print;
        if !tool.is_open() {
            self.told.calls.remove(at);
        }
        if is_news {
            self.raw_part(&part);
        }
    }

    fn raw_part(&mut self, part: &[u8]) {
        if let Ok(part) = serde_json::from_slice::<&serde_json::value::RawValue>(part) {
            self.part(part, None);
        }
    }

    /// The event that clients of the old SDK wait for.
    fn old_permission(&self, ask: &tolka_facts::event::PermissionAsked) -> Value {
        let message = self.tip.turn.as_ref().map(|turn| turn.current_message());
        json!({
            "id": ask.request,
            "type": ask.permission,
            "pattern": ask.patterns,
            "sessionID": self.session(),
            "messageID": message,
            "callID": ask.call,
            "title": ask.title,
            "metadata": wire::metadata(ask, self.blobs),
            "time": { "created": self.fact.time.millis() },
        })
    }

    fn permission_answered(&mut self, request: &RequestId, option: Option<&str>) {
        use tolka_facts::event::OptionKind;
        let kind = match &self.tip.answered {
            Some(tolka_facts::Ask::Permission(ask)) => {
                ask.options.iter().find(|known| Some(known.id.as_str()) == option).map(|known| known.kind)
            }
            Some(tolka_facts::Ask::Question(_)) | None => None,
        };
        let reply = match kind {
            Some(OptionKind::AllowOnce) => "once",
            Some(OptionKind::AllowAlways) => "always",
            Some(OptionKind::RejectOnce | OptionKind::RejectAlways) | None => "reject",
        };
        let mut properties = json!({ "sessionID": self.session(), "requestID": request, "reply": reply });
        if self.profile != Profile::Current {
            properties["permissionID"] = json!(request);
            properties["response"] = json!(reply);
        }
        self.event("permission.replied", properties);
    }
}

fn text_part_id(open: &OpenText) -> String {
    derived_id("prt", open.started, open.first_seq, 0)
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

/// FNV-1a: no seed, so that the state of an encoder is the same in every process.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
