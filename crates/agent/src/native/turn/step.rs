//! One call of the model: what it says becomes facts piece by piece, and an answer when it has ended.
//!
//! A step is told when it begins, and as ended when its calls are. It ends in one of four ways: with an answer; broken off, and then it is no part of the
//! conversation; silent, when the model said nothing before it failed, so that the same step can be asked again; halted.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tolka_facts::event::{
    Finish, InputAppended, Model as ModelName, StepEnded, StepStarted, TextAppended, ThoughtAppended, ToolChanged,
    Usage,
};
use tolka_facts::{CallId, Draft, Json, MessageId, PartId, Time, ToolStatus};

use super::halt::{Halt, Why};
use crate::native::conversation::{Conversation, Kept, input_of, no_input};
use crate::native::kind::kind_of;
use crate::native::model::{ModelError, ModelErrorKind, Output, Piece, Pieces};
use crate::native::spent::Used;
use crate::{Gone, Teller};

/// What a call of a tool that is not there is called instead.
pub(in crate::native) const INVALID: &str = "invalid";

pub(super) struct Step<'a> {
    teller: &'a Teller,
    /// The tools that the model was offered.
    offered: Arc<HashSet<String>>,
    message: MessageId,
    parts: Vec<Spoken>,
    /// The run of text or thought that the next piece goes on with: an index of `parts`.
    open: Option<usize>,
    /// The last thought, while what has to go back with it may still come.
    thought: Option<usize>,
}

/// A part of the answer as it grows.
enum Spoken {
    Text { part: PartId, text: String },
    Thought { part: Option<PartId>, text: String, kept: Option<Json> },
    Call(Written),
}

/// A call as the model wrote it.
#[derive(Debug, Clone)]
pub(super) struct Written {
    slot: usize,
    pub(super) id: CallId,
    /// As the model named it.
    pub(super) name: String,
    pub(super) is_offered: bool,
    text: String,
}

impl Written {
    pub(super) fn input(&self) -> Result<Json, String> {
        input_of(&self.text)
    }

    /// What the conversation and clients call it.
    pub(super) fn shown_name(&self) -> &str {
        if self.is_offered { &self.name } else { INVALID }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// How a call of the model went.
pub(super) enum Heard {
    Ended { finish: Finish, is_refusal: bool, usage: Option<Usage> },
    Failed(ModelError),
    Halted(Why),
}

/// What a whole answer leaves for the loop.
pub(super) struct Answer {
    pub(super) outputs: Vec<Output>,
    pub(super) calls: Vec<Written>,
    /// To be told when the calls have ended: until then the step goes on.
    pub(super) ended: StepEnded,
}

impl<'a> Step<'a> {
    /// `named`: what its message is called, where that was said before.
    pub(super) async fn begin(
        teller: &'a Teller,
        named: Option<MessageId>,
        model: ModelName,
        offered: Arc<HashSet<String>>,
    ) -> Result<Self, Gone> {
        let message = named.unwrap_or_else(|| teller.ids().message(Time::now()));
        teller.tell(Draft::agent(StepStarted { message: message.clone(), model: Some(model) })).await?;
        Ok(Step { teller, offered, message, parts: Vec::new(), open: None, thought: None })
    }

    /// Whether the model has said anything.
    pub(super) fn is_silent(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the model has ended without a word for anybody and without a call. Thoughts answer nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Spoken::Text { text, .. } => text.trim().is_empty(),
            Spoken::Thought { .. } => true,
            Spoken::Call(_) => false,
        })
    }

    /// What a tool is called here. Models do not agree on capitals; what fits one tool only is that one.
    fn offered_name(&self, name: String) -> String {
        if self.offered.contains(&name) {
            return name;
        }
        let mut alike = self.offered.iter().filter(|known| known.eq_ignore_ascii_case(name.trim()));
        match (alike.next(), alike.next()) {
            (Some(known), None) => known.clone(),
            _ => name,
        }
    }

    pub(super) async fn listen(
        &mut self,
        mut pieces: Pieces,
        conversation: &mut Conversation,
        halt: &mut Halt<'_>,
    ) -> Result<Heard, Gone> {
        loop {
            let piece = match halt.or(pieces.next()).await {
                Ok(Some(Ok(piece))) => piece,
                Ok(Some(Err(error))) => return Ok(Heard::Failed(error)),
                Ok(None) => return Ok(Heard::Failed(broken("The model's answer ended in the middle."))),
                Err(why) => return Ok(Heard::Halted(why)),
            };
            match piece {
                Piece::Text(text) => self.text(text).await?,
                Piece::Thought(text) => self.thought(text).await?,
                Piece::ThoughtEnded { kept } => self.thought_ended(kept),
                Piece::CallBegan { slot, id, name } => {
                    let (id, name) = (conversation.name_call(id), self.offered_name(name));
                    self.call_began(Written {
                        slot,
                        id,
                        is_offered: self.offered.contains(&name),
                        name,
                        text: String::new(),
                    })
                    .await?;
                }
                Piece::CallInput { slot, text } => self.call_input(slot, text).await?,
                Piece::Ended { finish: Finish::Error, .. } => {
                    return Ok(Heard::Failed(broken("The model ended its answer with an error.")));
                }
                Piece::Ended { finish, is_refusal, usage } => return Ok(Heard::Ended { finish, is_refusal, usage }),
            }
        }
    }

    async fn text(&mut self, text: String) -> Result<(), Gone> {
        if text.is_empty() {
            return Ok(());
        }
        let at = match self.open {
            Some(at) if matches!(self.parts[at], Spoken::Text { .. }) => at,
            _ => self.push(Spoken::Text { part: self.teller.ids().part(Time::now()), text: String::new() }),
        };
        self.open = Some(at);
        let Spoken::Text { part, text: said } = &mut self.parts[at] else { return Ok(()) };
        said.push_str(&text);
        let part = part.clone();
        self.teller.tell(Draft::agent(TextAppended { part, text })).await
    }

    async fn thought(&mut self, text: String) -> Result<(), Gone> {
        if text.is_empty() {
            return Ok(());
        }
        let at = match self.open {
            Some(at) if matches!(self.parts[at], Spoken::Thought { .. }) => at,
            _ => {
                let part = Some(self.teller.ids().part(Time::now()));
                self.push(Spoken::Thought { part, text: String::new(), kept: None })
            }
        };
        (self.open, self.thought) = (Some(at), Some(at));
        let Spoken::Thought { part: Some(part), text: said, .. } = &mut self.parts[at] else { return Ok(()) };
        said.push_str(&text);
        let part = part.clone();
        self.teller.tell(Draft::agent(ThoughtAppended { part, text })).await
    }

    fn thought_ended(&mut self, ended: Option<Json>) {
        if self.open == self.thought {
            self.open = None;
        }
        match self.thought.take().map(|at| &mut self.parts[at]) {
            Some(Spoken::Thought { kept, .. }) => *kept = ended,
            _ if ended.is_none() => {}
            _ => {
                self.push(Spoken::Thought { part: None, text: String::new(), kept: ended });
                self.open = None;
            }
        }
    }

    async fn call_began(&mut self, call: Written) -> Result<(), Gone> {
        let changed = ToolChanged {
            name: Some(call.shown_name().to_owned()),
            kind: Some(kind_of(&call.name)),
            title: Some(call.name.clone()),
            status: Some(ToolStatus::Pending),
            input: Some(no_input()),
            ..ToolChanged::of(call.id.clone())
        };
        self.push(Spoken::Call(call));
        self.open = None;
        self.teller.tell(Draft::agent(changed)).await
    }

    /// Input for a slot that no call has begun in is nobody's.
    async fn call_input(&mut self, slot: usize, text: String) -> Result<(), Gone> {
        let mut calls = self.parts.iter_mut().rev().filter_map(|part| match part {
            Spoken::Call(call) => Some(call),
            Spoken::Text { .. } | Spoken::Thought { .. } => None,
        });
        let Some(written) = calls.find(|call| call.slot == slot).filter(|_| !text.is_empty()) else { return Ok(()) };
        written.text.push_str(&text);
        let call = written.id.clone();
        self.teller.tell(Draft::agent(InputAppended { call, text })).await
    }

    fn push(&mut self, part: Spoken) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// The model has said all.
    pub(super) fn end(self, finish: Finish, Used { usage, cost }: Used) -> Answer {
        let (mut outputs, mut calls, mut kept) = (Vec::with_capacity(self.parts.len()), Vec::new(), Vec::new());
        for spoken in self.parts {
            match spoken {
                Spoken::Text { text, .. } => outputs.push(Output::Text(text)),
                Spoken::Thought { part, text, kept: back } => {
                    if let Some(back) = &back {
                        let at = part.is_none().then_some(outputs.len());
                        kept.push(Kept { part, at, kept: back.clone() });
                    }
                    outputs.push(Output::Thought { text, kept: back });
                }
                Spoken::Call(call) => {
                    let (id, name) = (call.id.as_str().to_owned(), call.shown_name().to_owned());
                    outputs.push(Output::Call { id, name, input: call.input().unwrap_or_else(|_| no_input()) });
                    calls.push(call);
                }
            }
        }
        let is_call = !calls.is_empty() && matches!(finish, Finish::Stop | Finish::Unknown);
        let finish = if is_call { Finish::ToolCalls } else { finish };
        let kept = (!kept.is_empty()).then(|| Json::of(&kept));
        let ended = StepEnded { message: self.message, finish, usage, cost, kept };
        Answer { outputs, calls, ended }
    }

    /// It came to nothing: calls that were being written will not be run.
    pub(super) async fn give_up(self, finish: Finish, why: &str) -> Result<(), Gone> {
        let status = if finish == Finish::Cancelled { ToolStatus::Cancelled } else { ToolStatus::Failed };
        for part in self.parts {
            let Spoken::Call(call) = part else { continue };
            let (status, error) = (Some(status), Some(why.into()));
            self.teller.tell(Draft::agent(ToolChanged { status, error, ..ToolChanged::of(call.id) })).await?;
        }
        let ended = StepEnded { message: self.message, finish, usage: None, cost: None, kept: None };
        self.teller.tell(Draft::agent(ended)).await
    }
}

fn broken(message: &str) -> ModelError {
    ModelError { kind: ModelErrorKind::Cut, message: message.to_owned(), status: None, retry_after: None }
}
