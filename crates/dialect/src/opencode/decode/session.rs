//! One session of a feed: what it is called, what waits for its parts, what was told before.

use std::collections::VecDeque;

use tolka_facts::event::{
    MessageHidden, Model, Parent, ParentKind, PromptDropped, PromptQueued, SessionChanged, SessionCreated,
    SessionDeleted,
};
use tolka_facts::{Block, Cause, Draft, Event, Json, MessageId, PartId, SessionId, Time};

use super::call::Call;
use super::event::SessionInfo;
use super::grown::Grown;
use super::message::UserMessage;
use super::summary::Summary;
use super::turn::{Turn, turn_of};
use crate::recent::Recent;

/// How much of the past a session remembers, to tell a repetition from news.
const MESSAGES: usize = 1024;
const PARTS: usize = 2048;
/// More prompts than anybody lets wait.
const QUEUE: usize = 256;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    head: Option<Head>,
    pub(super) messages: Recent<Seen>,
    pub(super) runs: Recent<Run>,
    pub(super) calls: Recent<Call>,
    pub(super) asks: Recent<()>,
    /// User messages that no turn was started for.
    pub(super) queue: VecDeque<String>,
    pub(super) busy: bool,
    pub(super) turn: Option<Turn>,
    pub(super) turns: u64,
    /// The last time that an event of it named.
    pub(super) now: Option<Time>,
    pub(super) held: Option<Held>,
    pub(super) compaction: Option<String>,
    pub(super) summary: Option<Summary>,
}

#[derive(Debug, Clone, PartialEq)]
struct Head {
    title: String,
    mode: Option<String>,
    model: Option<Model>,
    archived: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    User,
    Agent,
    Summary,
}

/// A part of text or thought.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) grown: Grown,
    pub(super) is_thought: bool,
    /// The id it is told by: another one each time that its text was replaced.
    pub(super) told: PartId,
    pub(super) replaced: u32,
}

/// What is complete only when the next event is not one of its parts.
#[derive(Debug)]
pub(super) enum Held {
    Prompt(Box<HeldPrompt>),
    /// The end of a step that was complete when it was first seen: a copy of an old one.
    StepEnd(String),
}

#[derive(Debug)]
pub(super) struct HeldPrompt {
    message: UserMessage,
    raw: Option<Json>,
    pub(super) blocks: Vec<(String, Block)>,
    /// What its parts say beside the prompt.
    pub(super) beside: Vec<Draft>,
}

impl HeldPrompt {
    /// Of nobody's: in the middle of a turn there had to be a summary.
    fn asks_for_summary(&self) -> bool {
        let is_asked = |draft: &Draft| matches!(draft.event, Event::CompactionStarted(_));
        self.blocks.is_empty() && !self.beside.is_empty() && self.beside.iter().all(is_asked)
    }
}

impl Held {
    fn message(&self) -> &str {
        match self {
            Held::Prompt(prompt) => &prompt.message.id,
            Held::StepEnd(message) => message,
        }
    }
}

impl Session {
    pub(super) fn session_id(&self) -> SessionId {
        SessionId::from(self.id.as_str())
    }

    pub(super) fn new(id: &str) -> Self {
        Session {
            id: id.to_owned(),
            head: None,
            messages: Recent::of(MESSAGES),
            runs: Recent::of(PARTS),
            calls: Recent::of(PARTS),
            asks: Recent::of(PARTS),
            queue: VecDeque::new(),
            busy: false,
            turn: None,
            turns: 0,
            now: None,
            held: None,
            compaction: None,
            summary: None,
        }
    }

    /// Tells what was held, unless the event that comes now is a part of it.
    pub(super) fn release(&mut self, part_of: Option<&str>, out: &mut Vec<Draft>) {
        if self.held.as_ref().is_none_or(|held| Some(held.message()) == part_of) {
            return;
        }
        match self.held.take() {
            Some(Held::Prompt(mut held)) if self.busy && self.turn.is_some() && held.asks_for_summary() => {
                out.append(&mut held.beside);
            }
            Some(Held::Prompt(mut held)) => {
                let message = held.message;
                out.push(Draft {
                    cause: Cause::Client,
                    event: PromptQueued {
                        turn: turn_of(&message.id),
                        message: MessageId::from(message.id.as_str()),
                        content: held.blocks.into_iter().map(|(_, block)| block).collect(),
                        key: None,
                        agent: Some(message.agent),
                        model: Some(message.model.into()),
                        context: None,
                        steers: None,
                    }
                    .into(),
                    raw: held.raw,
                });
                out.append(&mut held.beside);
                self.queue.push_back(message.id);
                if self.queue.len() > QUEUE {
                    self.queue.pop_front();
                }
                self.start_if_clear(out);
            }
            Some(Held::StepEnd(message)) => self.end_step(&message, Cause::Agent, out),
            None => {}
        }
    }

    pub(super) fn created(&mut self, info: &SessionInfo, out: &mut Vec<Draft>) {
        if self.head.is_some() {
            return self.updated(info, out);
        }
        let head = Head::of(info);
        out.push(Draft::agent(SessionCreated {
            workspace: info.directory.clone(),
            agent: "opencode".to_owned(),
            title: head.title.clone(),
            mode: head.mode.clone(),
            model: head.model.clone(),
            parent: info.parent_id.as_ref().map(|parent| Parent {
                session: SessionId::from(parent.as_str()),
                kind: ParentKind::Subagent,
                at: None,
                call: None,
            }),
        }));
        self.head = Some(head);
    }

    pub(super) fn updated(&mut self, info: &SessionInfo, out: &mut Vec<Draft>) {
        let new = Head::of(info);
        let old = self.head.replace(new.clone());
        let old = old.unwrap_or(Head { title: String::new(), mode: None, model: None, archived: false });
        let change = SessionChanged {
            title: (new.title != old.title).then_some(new.title),
            mode: new.mode.filter(|mode| old.mode.as_ref() != Some(mode)),
            model: new.model.filter(|model| old.model.as_ref() != Some(model)),
            agent: None,
            archived: (new.archived != old.archived).then_some(new.archived),
        };
        let nothing = SessionChanged { title: None, mode: None, model: None, agent: None, archived: None };
        if change != nothing {
            out.push(Draft::agent(change));
        }
    }

    pub(super) fn deleted(out: &mut Vec<Draft>) {
        out.push(Draft::client(SessionDeleted {}));
    }

    /// The stream is over: what was held back is told.
    pub(super) fn finish(&mut self, out: &mut Vec<Draft>) {
        self.release(None, out);
        if self.turn.as_ref().is_some_and(|turn| turn.ending) {
            self.end_turn(out);
        }
    }

    pub(super) fn user(&mut self, message: UserMessage, raw: &str, out: &mut Vec<Draft>) {
        if self.messages.get(&message.id).is_some() {
            return self.taken(&message.id, out);
        }
        // A turn that nobody is busy with and that has no open step is history that was copied here.
        if self.turn.as_ref().is_some_and(|turn| turn.ending || (!self.busy && turn.step.is_none())) {
            self.end_turn(out);
        }
        self.messages.insert(&message.id, Seen::User);
        let raw = Json::parse(raw).ok();
        self.held = Some(Held::Prompt(Box::new(HeldPrompt { message, raw, blocks: Vec::new(), beside: Vec::new() })));
    }

    pub(super) fn removed(&mut self, message: &str, out: &mut Vec<Draft>) {
        match self.queue.iter().position(|queued| queued == message) {
            Some(at) => {
                self.queue.remove(at);
                out.push(Draft::client(PromptDropped { turn: turn_of(message) }));
            }
            None => out.push(Draft::client(MessageHidden { message: MessageId::from(message) })),
        }
    }
}

impl Head {
    fn of(info: &SessionInfo) -> Head {
        Head {
            title: info.title.clone(),
            mode: info.agent.clone(),
            model: info.model.as_ref().map(Model::from),
            archived: info.time.as_ref().is_some_and(|time| time.archived.is_some()),
        }
    }
}
