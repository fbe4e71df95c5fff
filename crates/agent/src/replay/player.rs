use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep};
use tolka_dialect::acp::Interpreter;
use tolka_facts::event::{FailureKind, Finish, PermissionAsked, QuestionAsked, StepEnded, Stop};
use tolka_facts::{CallId, Draft, Event, Json, MessageId, Time};

use super::Pace;
use super::fresh::{Fresh, call_of};
use super::recording::{Answer, End, Recording, What};
use crate::{Ended, Gone, Mind, Patience, Prompt, Running, Teller};

const REJECTED: &str = "The user rejected permission to use this specific tool call.";
const DISMISSED: &str = "The user dismissed this question.";

#[derive(Debug)]
pub(super) struct Player {
    recording: Arc<Recording>,
    pace: Pace,
    /// Turns that the session has had.
    turns: u64,
    /// It outlives turns: an agent's plan does. Made in the first one, which brings the ids.
    interpreter: Option<Interpreter>,
}

impl Player {
    pub(super) fn new(recording: Arc<Recording>, pace: Pace, turns: u64) -> Self {
        Player { recording, pace, turns, interpreter: None }
    }
}

impl Mind for Player {
    fn turn<'a>(&'a mut self, _: Prompt, teller: &'a Teller) -> Running<'a> {
        let (recording, pace, turn) = (self.recording.clone(), self.pace, self.turns);
        self.turns += 1;
        let interpreter = self.interpreter.get_or_insert_with(|| Interpreter::new(teller.ids().clone()));
        Box::pin(async move {
            let round = turn / (recording.score.turns.len().max(1) as u64);
            let mut stage = Stage {
                teller,
                interpreter,
                pace,
                began: Instant::now(),
                skipped: Duration::ZERO,
                fresh: Fresh::new(teller.ids().clone(), round),
                refused: HashSet::new(),
                step: None,
            };
            match stage.play(&recording, turn).await {
                Ok(ended) => ended,
                Err(cut) => stage.close(cut).await,
            }
        })
    }
}

/// Why a turn is not played to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Cancelled,
    Gone,
}

impl From<Gone> for Cut {
    fn from(_: Gone) -> Cut {
        Cut::Gone
    }
}

/// One turn, as it is played.
struct Stage<'a> {
    teller: &'a Teller,
    interpreter: &'a mut Interpreter,
    pace: Pace,
    /// The turn's clock: `skipped` and what has passed since `began`. It stands still while a person thinks.
    began: Instant,
    skipped: Duration,
    fresh: Fresh,
    /// Recorded calls that were not allowed this time: what they did then did not happen now.
    refused: HashSet<CallId>,
    /// The step that was told and not ended.
    step: Option<MessageId>,
}

impl Stage<'_> {
    async fn play(&mut self, recording: &Recording, turn: u64) -> Result<Ended, Cut> {
        let turns = &recording.score.turns;
        let index = turn % (turns.len().max(1) as u64);
        let Some(recorded) = usize::try_from(index).ok().and_then(|index| turns.get(index)) else {
            return Ok(Ended::stopped(Stop::EndTurn));
        };
        let opening = if turn == 0 { recording.score.opening.as_slice() } else { &[] };
        for what in opening {
            self.wait(Duration::ZERO).await?;
            self.perform(what, Duration::ZERO).await?;
        }
        for beat in &recorded.beats {
            self.wait(beat.at).await?;
            self.perform(&beat.what, beat.at).await?;
        }
        self.wait(recorded.ends_at).await?;
        self.end(&recorded.end).await
    }

    async fn end(&mut self, end: &End) -> Result<Ended, Cut> {
        let mut drafts = Vec::new();
        let ended = match end {
            End::Ended(ended) => ended.clone(),
            End::Acp(Ok(result)) => {
                let (stop, usage, meta) = self.interpreter.ended(result, &mut drafts);
                Ended { usage, meta, ..Ended::stopped(stop) }
            }
            End::Acp(Err(error)) => match self.interpreter.failed(error) {
                // Some agents answer a cancelled prompt with an error.
                failed if failed.kind == FailureKind::Aborted => Ended::stopped(Stop::Cancelled),
                failed => Ended::failed(failed),
            },
        };
        let finish = ended.stop.into();
        self.interpreter.close(finish, &mut drafts);
        self.tell_all(drafts).await?;
        self.close_step(finish).await?;
        Ok(ended)
    }

    /// Ends a turn that was cut. Whoever is gone does not hear it.
    async fn close(&mut self, cut: Cut) -> Ended {
        let mut drafts = Vec::new();
        self.interpreter.close(Finish::Cancelled, &mut drafts);
        if cut == Cut::Cancelled && self.tell_all(drafts).await.is_ok() {
            let _ = self.close_step(Finish::Cancelled).await;
        }
        Ended::stopped(Stop::Cancelled)
    }

    /// Closes what the interpreter knows nothing of: a step of our own facts.
    async fn close_step(&mut self, finish: Finish) -> Result<(), Cut> {
        let Some(message) = self.step.take() else { return Ok(()) };
        Ok(self.teller.tell(Draft::tolka(StepEnded { message, finish, usage: None, cost: None, kept: None })).await?)
    }

    async fn perform(&mut self, what: &What, at: Duration) -> Result<(), Cut> {
        let mut drafts = Vec::new();
        match what {
            What::Update(update) => {
                let call = update.read::<OfCall>().map(|of| CallId::from(of.tool_call_id));
                if call.is_some_and(|call| self.refused.contains(&call)) {
                    return Ok(());
                }
                self.interpreter.update(update, Time::now(), &mut drafts);
            }
            What::Foreign { method, params } => drafts.push(Interpreter::foreign(method, params)),
            What::AcpPermission { params, answer } => {
                let ask = self.interpreter.permission(params, Time::now(), &mut drafts);
                self.tell_all(std::mem::take(&mut drafts)).await?;
                let Some(mut ask) = ask else { return Ok(()) };
                let call = ask.call.clone();
                ask.call.iter_mut().for_each(|call| self.fresh.call(call));
                if !self.allows(ask, Some(params.clone()), *answer, at).await? {
                    self.refuse(call, REJECTED, &mut drafts);
                }
            }
            What::Told(draft) => return self.retell(draft.clone()).await,
            What::Permission { ask, raw, answer } => {
                let mut ask = ask.clone();
                let call = ask.call.clone();
                self.fresh.permission(&mut ask, Time::now());
                if !self.allows(ask, raw.clone(), *answer, at).await? {
                    self.refuse(call, REJECTED, &mut drafts);
                }
            }
            What::Question { ask, answer } => {
                let mut ask = ask.clone();
                let call = ask.call.clone();
                self.fresh.question(&mut ask, Time::now());
                if !self.answers(ask, *answer, at).await? {
                    self.refuse(call, DISMISSED, &mut drafts);
                }
            }
        }
        self.tell_all(drafts).await
    }

    /// Asks, and says whether to go on as recorded: the person allows it, or refuses it as was done then.
    async fn allows(
        &mut self,
        ask: PermissionAsked,
        raw: Option<Json>,
        recorded: Option<Answer>,
        at: Duration,
    ) -> Result<bool, Cut> {
        let options = ask.options.clone();
        let chosen = self.unless_cancelled(self.teller.ask_permission(ask, raw, Patience::default())).await?;
        self.go_on_from(recorded.map_or(at, |answer| answer.at));
        let chosen = chosen.and_then(|chosen| options.iter().find(|option| option.id == chosen.option));
        Ok(chosen.is_some_and(|option| option.kind.allows()) || recorded.is_some_and(|answer| !answer.allowed))
    }

    async fn answers(&mut self, ask: QuestionAsked, recorded: Option<Answer>, at: Duration) -> Result<bool, Cut> {
        let answers = self.unless_cancelled(self.teller.ask_question(ask, Patience::default())).await?;
        self.go_on_from(recorded.map_or(at, |answer| answer.at));
        Ok(answers.is_some() || recorded.is_some_and(|answer| !answer.allowed))
    }

    fn refuse(&mut self, call: Option<CallId>, why: &str, out: &mut Vec<Draft>) {
        if let Some(call) = call {
            self.interpreter.refuse(&call, why, out);
            self.refused.insert(call);
        }
    }

    /// Tells what the interpreter made: only the names of calls can be those of another playing.
    async fn tell_all(&mut self, drafts: Vec<Draft>) -> Result<(), Cut> {
        for mut draft in drafts {
            self.fresh.calls_of(&mut draft.event);
            self.tell(draft).await?;
        }
        Ok(())
    }

    /// Tells a recorded fact again.
    async fn retell(&mut self, mut draft: Draft) -> Result<(), Cut> {
        if call_of(&mut draft.event).is_some_and(|call| self.refused.contains(call)) {
            return Ok(());
        }
        self.fresh.all_of(&mut draft.event, Time::now());
        self.tell(draft).await
    }

    async fn tell(&mut self, draft: Draft) -> Result<(), Cut> {
        match &draft.event {
            Event::StepStarted(e) => self.step = Some(e.message.clone()),
            Event::StepEnded(_) => self.step = None,
            _ => {}
        }
        Ok(self.teller.tell(draft).await?)
    }

    /// Waits for a moment of the turn.
    async fn wait(&mut self, at: Duration) -> Result<(), Cut> {
        let rest = self.pace.due(at).saturating_sub(self.skipped + self.began.elapsed());
        if rest.is_zero() {
            return if self.teller.cancel().is_fired() { Err(Cut::Cancelled) } else { Ok(()) };
        }
        self.unless_cancelled(async {
            sleep(rest).await;
            Ok(())
        })
        .await
    }

    /// Sets the clock to a moment of the turn.
    fn go_on_from(&mut self, at: Duration) {
        self.skipped = self.pace.due(at);
        self.began = Instant::now();
    }

    async fn unless_cancelled<T>(&self, future: impl Future<Output = Result<T, Gone>>) -> Result<T, Cut> {
        tokio::select! {
            biased;
            () = self.teller.cancel().fired() => Err(Cut::Cancelled),
            done = future => Ok(done?),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfCall {
    tool_call_id: String,
}
