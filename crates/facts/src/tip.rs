//! The bounded state after a fact: what is open now, never what was. Encoders read it to fill in what a
//! partial update leaves out; the session's actor reads it to know what it was doing when it died.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::{Changes, PlanEntry, ProcessStarted, RewindStarted, UsageSet};
use crate::{CallId, EndedCalls, Event, Fact, PartId, RequestId, Rope, Time, Tool, TurnId};

mod open;
mod rewinds;

pub use open::{Ask, Head, OpenStep, OpenText, OpenTurn, Queued, Voice};
pub use rewinds::{Base, Rewind};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Tip {
    pub seq: u64,
    pub time: Time,
    pub head: Head,
    #[serde(skip_serializing_if = "VecDeque::is_empty", default)]
    #[cfg_attr(test, ts(as = "Vec<Queued>"))]
    pub queue: VecDeque<Queued>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn: Option<OpenTurn>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub plan: Vec<PlanEntry>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<UsageSet>,
    /// A fork that does not have all its facts yet.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_copying: bool,
    /// The restore that is under way.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rewinding: Option<RewindStarted>,
    /// Rewinds that can be taken back, the last one last: no turn has started since. Of very many the last.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rewinds: Vec<Rewind>,
    /// Of those before them, the last that hides anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub buried: Option<Rewind>,
    /// By starting a turn the last fact ended all chance to take rewinds back. It stays for that one fact.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub has_settled: bool,
    /// Those that run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub processes: Vec<ProcessStarted>,
    /// What the session's changes are counted from: the first snapshot, or the last that was approved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<Base>,
    /// What the last fact ended. It stays for that one fact, so that an encoder can tell the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_text: Option<OpenText>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_turn: Option<OpenTurn>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answered: Option<Ask>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dropped: Option<Queued>,
    /// The prompt that the last fact took out of the queue, to start its turn or to be part of the open one. It stays for
    /// that one fact: an open turn need not hold it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub taken: Option<Queued>,
}

impl Tip {
    /// No turn is open. Encoders hold no state then, so a stream can be taken up here with a fresh one.
    pub fn is_idle(&self) -> bool {
        self.turn.is_none()
    }

    /// The call, open or ended by the last fact.
    pub fn tool(&self, call: &CallId) -> Option<&Tool> {
        self.turn.as_ref().and_then(|turn| turn.tool(call))
    }

    pub fn asks(&self) -> impl Iterator<Item = &Ask> {
        self.turn.iter().flat_map(|turn| &turn.asks)
    }

    /// Bytes of the texts that are open: a state of this tip is no shorter. Writing it out only to learn that it is too
    /// long to keep would cost in proportion to them.
    pub fn open_bytes(&self) -> usize {
        let tool = |tool: &Arc<Tool>| tool.live_input.len() + tool.live_output.len();
        let turn = |turn: &OpenTurn| {
            turn.text.as_ref().map_or(0, |open| open.text.len()) + turn.tools.iter().map(tool).sum::<usize>()
        };
        self.turn.as_ref().map_or(0, turn)
    }

    pub fn apply(&mut self, fact: &Fact) {
        self.seq = fact.seq;
        self.time = fact.time;
        self.ended_text = None;
        self.ended_turn = None;
        self.answered = None;
        self.dropped = None;
        self.taken = None;
        self.has_settled = false;
        if let Some(turn) = &mut self.turn {
            turn.tools.retain(|tool| tool.is_open());
        }
        self.apply_event(fact);
        self.head.busy = self.turn.is_some() || self.rewinding.is_some() || self.is_copying;
        self.head.queued = self.queue.len() as u64;
        self.head.waiting = self.asks().count() as u64;
        self.head.rewound = self.deciding().cloned();
    }

    fn apply_event(&mut self, fact: &Fact) {
        match &fact.event {
            Event::SessionCreated(e) => {
                self.head = Head {
                    id: fact.session.clone(),
                    workspace: e.workspace.clone(),
                    agent: e.agent.clone(),
                    title: e.title.clone(),
                    mode: e.mode.clone(),
                    model: e.model.clone(),
                    parent: e.parent.clone(),
                    created: fact.time,
                    updated: fact.time,
                    ..Head::default()
                };
                self.is_copying = e.parent.as_ref().is_some_and(|parent| parent.at.is_some());
            }
            Event::SessionChanged(e) => {
                let head = &mut self.head;
                head.title = e.title.clone().unwrap_or_else(|| std::mem::take(&mut head.title));
                head.agent = e.agent.clone().unwrap_or_else(|| std::mem::take(&mut head.agent));
                head.mode = e.mode.clone().or_else(|| head.mode.take());
                head.model = e.model.clone().or_else(|| head.model.take());
                head.archived = e.archived.unwrap_or(head.archived);
                head.updated = fact.time;
            }
            Event::SessionDeleted(_) => self.head.deleted = true,
            Event::PromptQueued(e) => {
                self.queue.push_back(Queued { seq: fact.seq, time: fact.time, prompt: e.clone() });
                self.head.updated = fact.time;
            }
            Event::PromptDropped(e) => {
                let at = self.queue.iter().position(|queued| queued.prompt.turn == e.turn);
                self.dropped = at.and_then(|at| self.queue.remove(at));
            }
            Event::TurnStarted(e) => {
                self.start_turn(&e.turn, fact);
                self.settle();
                e.checkpoint.iter().for_each(|checkpoint| self.begin_from(checkpoint));
            }
            Event::PromptSteered(e) => self.steer(&e.turn, fact),
            Event::TurnEnded(e) => {
                self.end_text();
                self.ended_turn = self.turn.take();
                self.head.updated = fact.time;
                if let Some(usage) = e.usage
                    && self.ended_turn.as_ref().is_none_or(|turn| turn.steps == 0 && !turn.has_counted)
                {
                    self.head.tokens += usage;
                }
            }
            Event::StepStarted(e) => {
                self.end_text();
                if let Some(turn) = &mut self.turn {
                    turn.steps += 1;
                    turn.step = Some(OpenStep {
                        message: e.message.clone(),
                        first_seq: fact.seq,
                        started: fact.time,
                        tools: false,
                        model: e.model.clone(),
                    });
                }
            }
            Event::StepEnded(e) => {
                self.end_text();
                self.head.tokens += e.usage.unwrap_or_default();
                if let Some(turn) = &mut self.turn {
                    turn.step = None;
                }
            }
            Event::TextAppended(e) => self.append(Voice::Text, &e.part, &e.text, fact),
            Event::ThoughtAppended(e) => self.append(Voice::Thought, &e.part, &e.text, fact),
            Event::ToolChanged(e) => {
                if let Some(tool) = self.call(&e.call, fact) {
                    tool.merge(e, fact.time);
                    let ended = !tool.is_open();
                    if let Some(turn) = self.turn.as_mut().filter(|_| ended) {
                        turn.ended_calls.push(e.call.as_str());
                    }
                }
            }
            Event::InputAppended(e) => {
                if let Some(tool) = self.call(&e.call, fact) {
                    tool.live_input.push(&e.text);
                }
            }
            Event::OutputAppended(e) => {
                if let Some(tool) = self.call(&e.call, fact) {
                    tool.live_output.push(&e.text);
                }
            }
            Event::PlanSet(e) => self.plan.clone_from(&e.entries),
            Event::ModeSet(e) => self.head.mode = Some(e.mode.clone()),
            Event::UsageSet(e) => {
                self.head.cost = e.cost.clone().or_else(|| self.head.cost.take());
                self.head.tokens += e.subagents.unwrap_or_default();
                self.usage = Some(e.clone());
            }
            Event::FileChanged(e) => {
                self.head.files += 1;
                self.head.added += e.added;
                self.head.removed += e.removed;
            }
            Event::PermissionAsked(e) => self.ask(Ask::Permission(e.clone())),
            Event::QuestionAsked(e) => self.ask(Ask::Question(e.clone())),
            Event::PermissionAnswered(e) => self.answer(&e.request),
            Event::QuestionAnswered(e) => self.answer(&e.request),
            Event::Failed(e) => {
                if let Some(turn) = &mut self.turn {
                    turn.failure = Some(e.clone());
                }
            }
            Event::CheckpointSaved(e) => {
                self.begin_from(&e.checkpoint);
                self.counted(e.total.as_ref());
            }
            Event::RewindStarted(e) => self.rewinding = Some(e.clone()),
            Event::RewindFailed(_) => self.rewinding = None,
            Event::Rewound(e) => self.rewound(e),
            Event::Unrewound(e) => self.unrewound(e),
            Event::Approved(e) => self.approved(e),
            Event::SessionForked(e) => {
                self.is_copying = false;
                self.base = None;
                // What was copied is older than the session is.
                self.head.created = fact.time;
                self.counted(Some(&Changes::default()));
                e.checkpoint.iter().for_each(|checkpoint| self.begin_from(checkpoint));
                self.head.updated = fact.time;
            }
            Event::CompactionStarted(e) => {
                if let Some(turn) = &mut self.turn {
                    turn.compaction = Some(e.id.clone());
                }
            }
            Event::CompactionEnded(e) => {
                self.head.tokens += e.usage.unwrap_or_default();
                if let Some(turn) = &mut self.turn {
                    turn.compaction.take_if(|open| *open == e.id);
                    turn.has_counted |= e.usage.is_some();
                }
            }
            Event::ProcessStarted(e) => {
                self.processes.push(e.clone());
                self.head.processes = self.processes.len() as u64;
            }
            Event::ProcessEnded(e) => {
                self.processes.retain(|running| running.process != e.process);
                self.head.processes = self.processes.len() as u64;
            }
            Event::CommandsSet(_)
            | Event::Noticed(_)
            | Event::ArtifactSaved(_)
            | Event::MessageHidden(_)
            | Event::FilesMoved(_)
            | Event::Foreign(_)
            | Event::InstanceDisposed(_)
            | Event::VersionChanged(_)
            | Event::UpdateFound(_)
            | Event::BranchChanged(_)
            | Event::PtyChanged(_)
            | Event::SessionChosen(_)
            | Event::RetryScheduled(_) => {}
        }
    }

    fn take(&mut self, turn: &TurnId) {
        let at = self.queue.iter().position(|queued| queued.prompt.turn == *turn);
        self.taken = at.and_then(|at| self.queue.remove(at));
    }

    fn steer(&mut self, turn: &TurnId, fact: &Fact) {
        self.take(turn);
        if let (Some(turn), Some(taken)) = (&mut self.turn, &self.taken) {
            turn.steered = Some(taken.prompt.message.clone());
        }
        self.head.updated = fact.time;
    }

    fn start_turn(&mut self, id: &TurnId, fact: &Fact) {
        self.take(id);
        let prompt = self.taken.as_ref().map(|queued| &queued.prompt);
        self.turn = Some(OpenTurn {
            id: id.clone(),
            index: self.head.turns,
            first_seq: fact.seq,
            started: fact.time,
            message: prompt.map(|p| p.message.clone()).unwrap_or_default(),
            steered: None,
            model: prompt.and_then(|p| p.model.clone()),
            mode: prompt.and_then(|p| p.agent.clone()),
            steps: 0,
            step: None,
            text: None,
            tools: Vec::new(),
            ended_calls: EndedCalls::default(),
            asks: Vec::new(),
            compaction: None,
            has_counted: false,
            failure: None,
        });
        self.head.turns += 1;
        self.head.updated = fact.time;
    }

    fn end_text(&mut self) {
        self.ended_text = self.turn.as_mut().and_then(|turn| turn.text.take());
    }

    fn append(&mut self, voice: Voice, part: &PartId, text: &str, fact: &Fact) {
        let Some(turn) = &mut self.turn else { return };
        if turn.text.as_ref().is_none_or(|open| open.part != *part || open.voice != voice) {
            self.ended_text = turn.text.take();
            turn.text = Some(OpenText {
                part: part.clone(),
                voice,
                message: turn.current_message().clone(),
                first_seq: fact.seq,
                started: fact.time,
                text: Rope::default(),
            });
        }
        if let Some(open) = &mut turn.text {
            open.text.push(text);
        }
    }

    /// The call to change, made on first sight. `None` when no turn is open or the call has ended:
    /// nothing comes after a terminal state.
    fn call(&mut self, call: &CallId, fact: &Fact) -> Option<&mut Tool> {
        let turn = self.turn.as_mut()?;
        if let Some(at) = turn.tools.iter().position(|tool| tool.call == *call) {
            return Some(Arc::make_mut(&mut turn.tools[at]));
        }
        if turn.ended_calls.contains(call) {
            return None;
        }
        self.ended_text = turn.text.take();
        let message = turn.current_message().clone();
        if let Some(step) = &mut turn.step {
            step.tools = true;
        }
        turn.tools.push(Arc::new(Tool {
            call: call.clone(),
            first_seq: fact.seq,
            first_time: fact.time,
            message,
            ..Tool::default()
        }));
        turn.tools.last_mut().map(Arc::make_mut)
    }

    fn ask(&mut self, ask: Ask) {
        if let Some(turn) = &mut self.turn {
            turn.asks.push(ask);
        }
    }

    fn answer(&mut self, request: &RequestId) {
        if let Some(turn) = &mut self.turn
            && let Some(at) = turn.asks.iter().position(|ask| ask.request() == request)
        {
            self.answered = Some(turn.asks.remove(at));
        }
    }
}
