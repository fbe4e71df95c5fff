//! When turns and steps start and end.
//!
//! The wire has no word for a turn. A turn is what happens about one user message: it starts when the
//! session is busy and ends when it is idle, or when the agent goes on to another user message. One that is told
//! again while it waits is taken into the turn that runs.

use tolka_facts::event::{
    Failed, Finish, Model, PromptSteered, RetryScheduled, StepEnded, StepStarted, Stop, TurnEnded, TurnStarted, Usage,
};
use tolka_facts::{Cause, Draft, MessageId, TurnId};

use super::failure;
use super::message::{AssistantMessage, WireError};
use super::part::Status;
use super::session::{Held, Seen, Session};
use super::time::whole;

#[derive(Debug)]
pub(super) struct Turn {
    id: TurnId,
    message: String,
    pub(super) step: Option<Step>,
    pub(super) stop: Option<Stop>,
    /// Told because a message carried it; the event that repeats it is not told.
    failed: Option<Failed>,
    /// The session was idle after an error while a step was open: the real server completes the step
    /// after that and is idle once more.
    pub(super) ending: bool,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) message: String,
    finish: Finish,
    usage: Option<Usage>,
    cost: Option<f64>,
}

impl Session {
    pub(super) fn assistant(&mut self, message: &AssistantMessage, out: &mut Vec<Draft>) {
        if message.summary == Some(true) {
            return self.summary_message(message, out);
        }
        let is_new = self.messages.get(&message.id).is_none();
        if is_new {
            self.need_turn(Some(&message.parent_id), out);
            self.open_step(&message.id, Some(message.model()), Cause::Agent, out);
        }
        let Some(turn) = &mut self.turn else { return };
        let Some(step) = turn.step.as_mut().filter(|step| step.message == message.id) else { return };
        step.finish = failure::finish(message.finish.as_deref(), message.error.as_ref());
        step.usage = message.tokens.usage();
        step.cost = (message.cost != 0.0).then_some(message.cost);
        if let (Some(error), None) = (&message.error, turn.stop) {
            turn.stop = Some(failure::stop(Some(error)));
            if turn.stop == Some(Stop::Failed) {
                let failed = failure::failed(Some(error));
                turn.failed = Some(failed.clone());
                out.push(Draft::agent(failed));
            }
        }
        match message.time.completed {
            Some(_) if is_new => self.held = Some(Held::StepEnd(message.id.clone())),
            Some(_) => self.end_step(&message.id, Cause::Agent, out),
            None => {}
        }
    }

    pub(super) fn status(&mut self, status: &Status, out: &mut Vec<Draft>) {
        match status {
            Status::Busy(_) => {
                if self.turn.as_ref().is_some_and(|turn| turn.ending) {
                    self.end_turn(out);
                }
                self.busy = true;
                self.start_if_clear(out);
            }
            Status::Retry(retry) => {
                self.busy = true;
                self.need_turn(None, out);
                out.push(Draft::agent(RetryScheduled {
                    attempt: whole(retry.attempt),
                    delay_ms: self.now.map_or(0, |now| whole(retry.next).saturating_sub(now.millis())),
                    message: retry.message.clone(),
                    code: None,
                }));
            }
            // `session.idle` follows, and says the same once.
            Status::Idle(_) | Status::Other(_) => {}
        }
    }

    pub(super) fn idle(&mut self, out: &mut Vec<Draft>) {
        if std::mem::take(&mut self.busy) {
            self.need_turn(None, out);
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.stop.is_some() && turn.step.is_some() && !turn.ending {
            turn.ending = true;
            return;
        }
        self.end_turn(out);
    }

    /// An abort is how a turn was cancelled; any other error is why it fails.
    pub(super) fn error(&mut self, error: Option<&WireError>, out: &mut Vec<Draft>) {
        if self.busy {
            self.need_turn(None, out);
        }
        let failed = failure::failed(error);
        let Some(turn) = &mut self.turn else {
            return out.push(Draft::agent(failed));
        };
        let stop = failure::stop(error);
        turn.stop = Some(stop);
        if stop == Stop::Failed && turn.failed.take().as_ref() != Some(&failed) {
            out.push(Draft::agent(failed));
        }
    }

    /// A user message that is told again: if it waited, the turn that runs takes it.
    pub(super) fn taken(&mut self, message: &str, out: &mut Vec<Draft>) {
        if self.busy && self.turn.is_none() && self.queue.front().is_some_and(|first| first != message) {
            self.need_turn(None, out);
        }
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.ending) else { return };
        let Some(at) = self.queue.iter().position(|queued| queued == message) else { return };
        self.queue.remove(at);
        out.push(Draft::agent(PromptSteered { turn: turn_of(message), into: turn.id.clone() }));
    }

    /// With one prompt waiting it is clear whose turn it is; else the first step tells.
    pub(super) fn start_if_clear(&mut self, out: &mut Vec<Draft>) {
        if self.busy && self.turn.is_none() && self.queue.len() == 1 {
            self.need_turn(None, out);
        }
    }

    /// Sees to it that a turn is open: that of the user message `parent`, if it is known.
    pub(super) fn need_turn(&mut self, parent: Option<&str>, out: &mut Vec<Draft>) {
        let waits = |parent: &str| self.queue.iter().any(|queued| queued == parent);
        if let Some(turn) = &self.turn {
            if parent.is_none_or(|parent| parent == turn.message || !waits(parent)) {
                return;
            }
            self.end_turn(out);
        }
        let message = parent.map(str::to_owned).or_else(|| self.queue.front().cloned());
        if let Some(at) = self.queue.iter().position(|queued| Some(queued) == message.as_ref()) {
            // Those before it went into the same turn.
            self.queue.drain(..=at);
        }
        self.turns += 1;
        let id = match &message {
            Some(message) => turn_of(message),
            None => TurnId::from(format!("trn_{}_{}", self.id, self.turns)),
        };
        let cause = if self.busy { Cause::Agent } else { Cause::Tolka };
        out.push(Draft::new(cause, TurnStarted { turn: id.clone(), checkpoint: None }));
        let message = message.unwrap_or_default();
        self.turn = Some(Turn { id, message, step: None, stop: None, failed: None, ending: false });
    }

    pub(super) fn open_step(&mut self, message: &str, model: Option<Model>, cause: Cause, out: &mut Vec<Draft>) {
        if let Some(open) = self.step().map(|step| step.message.clone()) {
            self.end_step(&open, Cause::Tolka, out);
        }
        self.messages.insert(message, Seen::Agent);
        let Some(turn) = &mut self.turn else { return };
        out.push(Draft::new(cause, StepStarted { message: MessageId::from(message), model }));
        turn.step = Some(Step { message: message.to_owned(), finish: Finish::Unknown, usage: None, cost: None });
    }

    pub(super) fn step(&self) -> Option<&Step> {
        self.turn.as_ref().and_then(|turn| turn.step.as_ref())
    }

    pub(super) fn end_step(&mut self, message: &str, cause: Cause, out: &mut Vec<Draft>) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(step) = turn.step.take_if(|step| step.message == message) {
            let Step { finish, usage, cost, .. } = step;
            out.push(Draft::new(
                cause,
                StepEnded { message: MessageId::from(message), finish, usage, cost, kept: None },
            ));
        }
    }

    pub(super) fn end_turn(&mut self, out: &mut Vec<Draft>) {
        if let Some(open) = self.step().map(|step| step.message.clone()) {
            self.end_step(&open, Cause::Tolka, out);
        }
        if let Some(turn) = self.turn.take() {
            let stop = turn.stop.unwrap_or(Stop::EndTurn);
            out.push(Draft::agent(TurnEnded { turn: turn.id, stop, usage: None, cost: None, meta: None }));
        }
    }
}

/// The wire names no turns; the user's message names them.
pub(super) fn turn_of(message: &str) -> TurnId {
    TurnId::from(format!("trn_{}", message.strip_prefix("msg_").unwrap_or(message)))
}
