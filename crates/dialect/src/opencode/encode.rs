//! Facts to events. What an encoder remembers is about the open turn only: which step and calls were
//! told, and where growing state was last told whole. When a turn ends it has forgotten everything.

mod ask;
mod call;
mod compaction;
mod files;
mod message;
mod text;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tolka_facts::event::{Changes, Finish, Model, PtyChange, Usage};
use tolka_facts::{Blobs, CallId, Event, Fact, MessageId, Time, Tip, event_id};

use super::info::{Names, SessionInfo};
use super::marks::Mark;
use super::wire::{self, Frame, ModelName, PartUpdated};
use super::{Profile, error};
use crate::{Frames, Growing};

#[derive(Debug, Clone)]
pub struct Encoder {
    profile: Profile,
    told: Told,
    /// Of the session that was told last. They follow from its head, so they are no part of the state.
    names: Option<Names>,
    growing: Growing,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Told {
    /// The last step, also after it ended: how the turn ends belongs to its message.
    step: Option<Step>,
    text: Option<Mark>,
    calls: Vec<Call>,
    /// The last status said that the model will be asked again. It is busy once more when the agent goes on.
    #[serde(default)]
    is_waiting: bool,
    /// The files before the turn.
    #[serde(default)]
    checkpoint: Option<String>,
    /// The prompt of the turn, to be told once more with what the turn changed.
    #[serde(default)]
    asked: Option<Asked>,
    /// The summary that is being made.
    #[serde(default)]
    compaction: Option<Compaction>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Compaction {
    /// The message that asks for it.
    message: MessageId,
    created: Time,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Asked {
    message: MessageId,
    created: Time,
    agent: Option<String>,
    model: Option<Model>,
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
    seen: u64,
    input: Mark,
    output: Mark,
    /// A person was asked about it: it runs, as far as clients can see.
    #[serde(default)]
    asked: bool,
    /// What is yet to be told of it, see [`Growing::Held`].
    #[serde(skip)]
    held: Option<Held>,
}

/// Lengths of live input and output.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    input: usize,
    output: usize,
}

impl Encoder {
    pub fn new(profile: Profile) -> Self {
        Encoder { profile, told: Told::default(), names: None, growing: Growing::Told }
    }

    pub fn resume(profile: Profile, state: &[u8]) -> Option<Self> {
        let told = if state.is_empty() { Told::default() } else { serde_json::from_slice(state).ok()? };
        Some(Encoder { profile, told, names: None, growing: Growing::Told })
    }
}

impl crate::Encoder for Encoder {
    fn encode(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        let first = out.len();
        let (profile, growing) = (self.profile, self.growing);
        let (told, names) = (&mut self.told, &mut self.names);
        let mut telling = Telling { profile, told, names, growing, fact, tip, blobs, out, first };
        telling.tell();
        if growing == Growing::Told {
            telling.held();
        }
    }

    fn state(&self) -> Vec<u8> {
        if self.told == Told::default() { Vec::new() } else { serde_json::to_vec(&self.told).unwrap_or_default() }
    }

    fn set_growing(&mut self, growing: Growing) {
        self.growing = growing;
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Status<'a> {
    Busy,
    Idle,
    /// `next` is when, in milliseconds since 1970.
    Retry {
        attempt: u64,
        message: &'a str,
        next: u64,
    },
}

/// Whether the agent does something again. The end of its turn has a status of its own.
fn goes_on(event: &Event) -> bool {
    matches!(
        event,
        Event::StepStarted(_)
            | Event::StepEnded(_)
            | Event::TextAppended(_)
            | Event::ThoughtAppended(_)
            | Event::ToolChanged(_)
            | Event::InputAppended(_)
            | Event::OutputAppended(_)
    )
}

/// One fact on its way out.
struct Telling<'a> {
    profile: Profile,
    told: &'a mut Told,
    names: &'a mut Option<Names>,
    growing: Growing,
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
        if self.told.is_waiting && goes_on(&fact.event) {
            self.told.is_waiting = false;
            self.status(Status::Busy);
        }
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
            Event::TurnStarted(e) => self.turn_started(e),
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
            // What subagents do and ask is told in their own sessions, and these clients show it from there.
            Event::FileChanged(e) if self.is_of_subagent(e.call.as_ref()) => {}
            Event::PermissionAsked(e) if self.is_of_subagent(e.call.as_ref()) => {}
            Event::QuestionAsked(e) if self.is_of_subagent(e.call.as_ref()) => {}
            Event::PermissionAnswered(_) | Event::QuestionAnswered(_)
                if tip.answered.as_ref().is_some_and(|ask| tip.asked_in(ask).is_some()) => {}
            Event::FileChanged(e) => self.event("file.edited", json!({ "file": e.path })),
            Event::PermissionAsked(e) => {
                if let Some(call) = &e.call {
                    self.tool(call);
                }
                self.event("permission.asked", wire::permission(e, tip, self.blobs));
                if self.profile != Profile::Current {
                    let old = self.old_permission(e);
                    self.event("permission.updated", old);
                }
            }
            Event::RetryScheduled(e) if tip.turn.is_some() => {
                self.told.is_waiting = true;
                self.cut_off(e);
                let next = fact.time.millis() + e.delay_ms;
                self.status(Status::Retry { attempt: e.attempt, message: &e.message, next });
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
            Event::CompactionStarted(e) => self.compaction_started(e),
            Event::CompactionEnded(e) => self.compaction_ended(e),
            Event::CheckpointSaved(e) => self.saved(e),
            Event::Rewound(e) => {
                self.moved_back(e.changes.as_ref(), e.total.as_ref());
                self.kept(&e.kept);
            }
            Event::Unrewound(e) => {
                self.moved_back(e.changes.as_ref(), e.total.as_ref());
                self.kept(&e.kept);
            }
            Event::RewindFailed(e) => {
                let title = "Nothing was taken back";
                self.event("tui.toast.show", json!({ "title": title, "message": e.message, "variant": "error" }));
            }
            Event::Approved(_) => self.moved_back(None, Some(&Changes::default())),
            Event::FilesMoved(e) => self.files_moved(&e.changes),
            Event::SessionForked(_) => self.session_event("session.updated"),
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
            Event::BranchChanged(e) => match &e.branch {
                Some(branch) => self.event("vcs.branch.updated", json!({ "branch": branch })),
                None => self.event("vcs.branch.updated", json!({})),
            },
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
            Event::PromptSteered(_) if tip.turn.is_some() => {
                if let Some(taken) = &tip.taken {
                    self.user_message(&taken.prompt, taken.time);
                }
            }
            // This wire has no word for them; the tolka dialect carries all.
            Event::CommandsSet(_)
            | Event::UsageSet(_)
            | Event::ArtifactSaved(_)
            | Event::RewindStarted(_)
            | Event::ProcessStarted(_)
            | Event::ProcessEnded(_)
            | Event::Foreign(_)
            | Event::RetryScheduled(_)
            | Event::PromptSteered(_)
            | Event::SessionChosen(_) => {}
        }
    }

    fn session(&self) -> &'a str {
        self.fact.session.as_str()
    }

    /// The name of the next event.
    fn event_id(&self) -> String {
        let n = u32::try_from(self.out.len() - self.first).unwrap_or(u32::MAX);
        event_id("evt", self.fact, n)
    }

    fn event<P: Serialize>(&mut self, kind: &str, properties: P) {
        let id = self.event_id();
        self.out.push(&Frame { id, r#type: kind, properties });
    }

    /// `session` is the document's name for what today's server calls `info`.
    fn session_event(&mut self, kind: &str) {
        #[derive(Serialize)]
        struct Properties<'a> {
            #[serde(rename = "sessionID")]
            session_id: &'a str,
            info: &'a SessionInfo<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            session: Option<&'a SessionInfo<'a>>,
        }
        let head = &self.tip.head;
        let names = self.names.take().filter(|names| names.are_of(head)).unwrap_or_else(|| Names::of(head));
        let info = SessionInfo::of(head, &names);
        let is_twice = self.profile != Profile::Current && kind == "session.updated";
        let session = is_twice.then_some(&info);
        self.event(kind, Properties { session_id: self.session(), info: &info, session });
        *self.names = Some(names);
    }

    fn status(&mut self, status: Status<'_>) {
        #[derive(Serialize)]
        struct Properties<'a> {
            #[serde(rename = "sessionID")]
            session_id: &'a str,
            status: Status<'a>,
        }
        self.event("session.status", Properties { session_id: self.session(), status });
    }

    fn model(&self) -> Model {
        let asked = self.tip.turn.as_ref().or(self.tip.ended_turn.as_ref()).and_then(|turn| turn.model.as_ref());
        let ModelName { provider, id } = wire::model(&self.tip.head, asked);
        Model { provider: provider.to_owned(), id: id.to_owned() }
    }

    fn part<P: Serialize>(&mut self, part: P) {
        let (session_id, time) = (self.session(), self.fact.time.millis());
        self.event("message.part.updated", PartUpdated { session_id, part, time });
    }
}
