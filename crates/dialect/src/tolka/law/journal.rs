use std::collections::HashSet;

use tolka_facts::event::{PermissionAnswered, PromptSteered, QuestionAnswered, TurnEnded, TurnStarted};
use tolka_facts::{CallId, Event, MessageId, RequestId, ToolStatus, TurnId};

use super::rule;
use crate::check::Findings;
use crate::recent::Recent;

const REMEMBERED_TURNS: usize = 1024;
const REMEMBERED_ASKS: usize = 1024;
const REMEMBERED_CALLS: usize = 16 * 1024;

/// What is known of one session.
#[derive(Debug)]
pub(super) struct Journal {
    seq: u64,
    time: u64,
    /// The stream has it from its first fact.
    is_whole: bool,
    turn: Turn,
    turns: Recent<Past>,
    /// Since the turn started; empty again when it has ended.
    step: Option<MessageId>,
    ended_calls: HashSet<CallId>,
    asks: Recent<Ask>,
}

#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// The stream starts later than the journal, and no turn has started or ended since.
    Unknown,
    None,
    Open(TurnId),
}

/// What became of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    Queued,
    /// Without a turn: it was dropped, or the turn that was open took it.
    Gone,
    Started,
}

#[derive(Debug)]
enum Ask {
    /// With the answers that it offers.
    Permission(Vec<String>),
    /// With how many answers it wants.
    Question(usize),
    Answered,
}

impl Journal {
    pub(super) fn from(seq: u64, time: u64) -> Self {
        let is_whole = seq == 1;
        Journal {
            seq,
            time,
            is_whole,
            turn: if is_whole { Turn::None } else { Turn::Unknown },
            turns: Recent::of(REMEMBERED_TURNS),
            step: None,
            ended_calls: HashSet::new(),
            asks: Recent::of(REMEMBERED_ASKS),
        }
    }

    /// `time` is `None` where the fact has none that can be read.
    pub(super) fn goes_on(&mut self, seq: u64, time: Option<u64>, out: &mut Findings<'_>) {
        let time = time.unwrap_or(self.time);
        if self.seq.checked_add(1) != Some(seq) {
            out.add(&rule::SEQ, format!("{seq} comes after {}", self.seq));
        }
        if time < self.time {
            out.add(&rule::TIME, format!("{time} comes after {}", self.time));
        }
        self.seq = seq;
        self.time = self.time.max(time);
    }

    /// A fact could not be read. Had it been a turn's start or end, what follows would be blamed for it.
    pub(super) fn lost_a_fact(&mut self) {
        self.turn = Turn::Unknown;
    }

    pub(super) fn open_turn(&self) -> Option<&TurnId> {
        match &self.turn {
            Turn::Open(turn) => Some(turn),
            Turn::Unknown | Turn::None => None,
        }
    }

    pub(super) fn apply(&mut self, event: &Event, out: &mut Findings<'_>) {
        if is_of_a_turn(event) && self.turn == Turn::None {
            return out.add(&rule::IN_TURN, format!("`{}` comes while no turn is open", event.name()));
        }
        match event {
            Event::SessionCreated(_) if self.seq != 1 => out.add(&rule::CREATED, "the session had facts before"),
            Event::PromptQueued(e) => self.turns.insert(e.turn.as_str(), Past::Queued),
            Event::PromptDropped(e) => self.leaves_queue(&e.turn, "is dropped", out),
            Event::PromptSteered(e) => self.prompt_steered(e, out),
            Event::TurnStarted(e) => self.turn_started(e, out),
            Event::TurnEnded(e) => self.turn_ended(e, out),
            Event::StepStarted(e) => self.step = Some(e.message.clone()),
            Event::StepEnded(e) => {
                let step = self.step.take();
                if step.as_ref() != Some(&e.message) && (step.is_some() || self.turn != Turn::Unknown) {
                    out.add(&rule::STEP, format!("`{}` ends, and was not started or has ended", e.message));
                }
            }
            Event::ToolChanged(e) => {
                self.call(&e.call, out);
                if e.status.is_some_and(ToolStatus::is_terminal) && self.ended_calls.len() < REMEMBERED_CALLS {
                    self.ended_calls.insert(e.call.clone());
                }
            }
            Event::InputAppended(e) => self.call(&e.call, out),
            Event::OutputAppended(e) => self.call(&e.call, out),
            Event::PermissionAsked(e) => {
                let offered = e.options.iter().map(|option| option.id.clone()).collect();
                self.ask(&e.request, Ask::Permission(offered), out);
            }
            Event::QuestionAsked(e) => self.ask(&e.request, Ask::Question(e.questions.len()), out),
            Event::PermissionAnswered(e) => self.permission_answered(e, out),
            Event::QuestionAnswered(e) => self.question_answered(e, out),
            _ => {}
        }
    }

    fn prompt_steered(&mut self, e: &PromptSteered, out: &mut Findings<'_>) {
        if let Turn::Open(open) = &self.turn
            && *open != e.into
        {
            out.add(&rule::TURN, format!("`{}` is taken into `{}`, and `{open}` is open", e.turn, e.into));
        }
        self.leaves_queue(&e.turn, "is taken", out);
    }

    /// Without a turn of its own.
    fn leaves_queue(&mut self, turn: &TurnId, how: &str, out: &mut Findings<'_>) {
        let may_be_forgotten = !self.is_whole || self.turns.is_full();
        match self.turns.get(turn.as_str()) {
            Some(Past::Queued) => {}
            Some(Past::Gone | Past::Started) => {
                out.add(&rule::QUEUED, format!("`{turn}` {how}, and waits no more"));
            }
            None if may_be_forgotten => {}
            None => out.add(&rule::QUEUED, format!("`{turn}` {how}, and was not queued")),
        }
        self.turns.insert(turn.as_str(), Past::Gone);
    }

    fn turn_started(&mut self, e: &TurnStarted, out: &mut Findings<'_>) {
        let turn = &e.turn;
        match self.turns.get(turn.as_str()) {
            Some(Past::Gone) => out.add(&rule::QUEUED, format!("`{turn}` starts, and waits no more")),
            Some(Past::Started) => out.add(&rule::TURN, format!("`{turn}` starts, and has started before")),
            Some(Past::Queued) | None => {
                if let Turn::Open(open) = &self.turn {
                    out.add(&rule::TURN, format!("`{turn}` starts while `{open}` is open"));
                }
            }
        }
        self.turns.insert(turn.as_str(), Past::Started);
        self.turn = Turn::Open(turn.clone());
    }

    fn turn_ended(&mut self, e: &TurnEnded, out: &mut Findings<'_>) {
        let is_other = self.turn != Turn::Unknown && self.open_turn() != Some(&e.turn);
        if is_other {
            out.add(&rule::TURN, format!("`{}` ends, and is not open", e.turn));
        }
        // The end of a turn that is over ends nothing; that of one which nobody knows is the open one's, misnamed.
        if is_other && self.turns.get(e.turn.as_str()) == Some(&Past::Started) {
            return;
        }
        self.turns.insert(e.turn.as_str(), Past::Started);
        self.forget_turn();
        self.turn = Turn::None;
    }

    fn forget_turn(&mut self) {
        self.step = None;
        self.ended_calls = HashSet::new();
        self.asks = Recent::of(REMEMBERED_ASKS);
    }

    fn call(&mut self, call: &CallId, out: &mut Findings<'_>) {
        if self.ended_calls.contains(call) {
            out.add(&rule::CALL_ENDED, format!("`{call}` has ended before"));
        }
    }

    fn ask(&mut self, request: &RequestId, ask: Ask, out: &mut Findings<'_>) {
        if self.asks.get(request.as_str()).is_some() {
            out.add(&rule::ASKED_ONCE, format!("`{request}` was asked before"));
        }
        self.asks.insert(request.as_str(), ask);
    }

    fn permission_answered(&mut self, e: &PermissionAnswered, out: &mut Findings<'_>) {
        match self.asks.get(e.request.as_str()) {
            Some(Ask::Permission(offered)) => {
                if let Some(option) = e.option.as_ref().filter(|option| !offered.contains(option)) {
                    out.add(&rule::ANSWER, format!("`{option}` was not offered by `{}`", e.request));
                }
            }
            other => self.not_waiting(&e.request, other, out),
        }
        self.asks.insert(e.request.as_str(), Ask::Answered);
    }

    fn question_answered(&mut self, e: &QuestionAnswered, out: &mut Findings<'_>) {
        match self.asks.get(e.request.as_str()) {
            Some(Ask::Question(asked)) => {
                if let Some(answers) = e.answers.as_ref().filter(|answers| answers.len() != *asked) {
                    let problem = format!("{} answers to the {asked} questions of `{}`", answers.len(), e.request);
                    out.add(&rule::ANSWER, problem);
                }
            }
            other => self.not_waiting(&e.request, other, out),
        }
        self.asks.insert(e.request.as_str(), Ask::Answered);
    }

    fn not_waiting(&self, request: &RequestId, known: Option<&Ask>, out: &mut Findings<'_>) {
        let problem = match known {
            None if self.turn == Turn::Unknown || self.asks.is_full() => return,
            None => "was not asked in this turn",
            Some(Ask::Answered) => "was answered before",
            Some(Ask::Permission(_) | Ask::Question(_)) => "is another kind of request",
        };
        out.add(&rule::ANSWER, format!("`{request}` {problem}"));
    }
}

fn is_of_a_turn(event: &Event) -> bool {
    matches!(
        event,
        Event::StepStarted(_)
            | Event::StepEnded(_)
            | Event::TextAppended(_)
            | Event::ThoughtAppended(_)
            | Event::ToolChanged(_)
            | Event::InputAppended(_)
            | Event::OutputAppended(_)
            | Event::PromptSteered(_)
            | Event::RetryScheduled(_)
    )
}
