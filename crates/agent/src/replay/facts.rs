//! Reading our own facts.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tolka_facts::event::{Model, Stop, TurnEnded};
use tolka_facts::{Cause, Draft, Event, Fact, RequestId, SessionId, Time};

use super::recording::{Answer, End, Problem, Recording, Score, Spot, What};
use crate::Ended;

pub(super) fn read(lines: &[(usize, &str)]) -> Result<Recording, Problem> {
    let mut reader = Reader::default();
    for (line, text) in lines {
        let fact = Fact::from_json(text.as_bytes()).map_err(|e| Problem { line: *line, problem: e.to_string() })?;
        let session = reader.session.get_or_insert_with(|| fact.session.clone());
        if *session != fact.session {
            let problem = format!("a fact of {} among those of {session}; a recording has one session", fact.session);
            return Err(Problem { line: *line, problem });
        }
        reader.fact(fact);
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    session: Option<SessionId>,
    score: Score,
    model: Option<Model>,
    /// The open turn, and when it began.
    open: Option<(usize, Time)>,
    asks: HashMap<RequestId, (Spot, HashSet<String>)>,
}

impl Reader {
    fn fact(&mut self, fact: Fact) {
        let at = self.open.map(|(_, began)| since(began, fact.time)).unwrap_or_default();
        match fact.event {
            Event::TurnStarted(_) => self.open = Some((self.score.open_turn(), fact.time)),
            Event::TurnEnded(ended) => self.end(at, ended),
            Event::PermissionAnswered(e) => {
                if let Some((spot, allowing)) = self.asks.remove(&e.request) {
                    let allowed = e.option.is_some_and(|option| allowing.contains(&option));
                    self.score.answer(spot, Answer { at, allowed });
                }
            }
            Event::QuestionAnswered(e) => {
                if let Some((spot, _)) = self.asks.remove(&e.request) {
                    self.score.answer(spot, Answer { at, allowed: e.answers.is_some() });
                }
            }
            Event::SessionCreated(e) => self.model = e.model,
            Event::PromptQueued(e) => self.model = self.model.take().or(e.model),
            // A title that the agent found is part of what it did; the desk's own is not.
            Event::SessionChanged(_) if fact.cause != Cause::Agent => {}
            event if is_the_desks(&event) || fact.cause == Cause::Client => {}
            Event::PermissionAsked(ask) => {
                let allowing = ask.options.iter().filter(|option| option.kind.allows()).map(|option| option.id.clone());
                let (request, allowing) = (ask.request.clone(), allowing.collect());
                self.ask(at, request, allowing, What::Permission { ask, raw: fact.raw, answer: None });
            }
            Event::QuestionAsked(ask) => {
                self.ask(at, ask.request.clone(), HashSet::new(), What::Question { ask, answer: None });
            }
            event => self.tell(at, Draft { cause: fact.cause, event, raw: fact.raw }),
        }
    }

    fn tell(&mut self, at: Duration, draft: Draft) {
        match self.open {
            Some((turn, _)) => {
                self.score.add(turn, at, What::Told(draft));
            }
            None => self.score.add_between(What::Told(draft)),
        }
    }

    fn ask(&mut self, at: Duration, request: RequestId, allowing: HashSet<String>, what: What) {
        let spot = self.open.and_then(|(turn, _)| self.score.add(turn, at, what));
        if let Some(spot) = spot {
            self.asks.insert(request, (spot, allowing));
        }
    }

    fn end(&mut self, at: Duration, ended: TurnEnded) {
        // A capture may begin inside a turn: what it has of that is the turn.
        let turn = self.open.take().map(|(turn, _)| turn).unwrap_or_else(|| self.whole());
        let TurnEnded { stop, usage, cost, meta, .. } = ended;
        // The desk tells why a turn fails from what the agent gives it at the end.
        let failure = (stop == Stop::Failed).then(|| self.take_failure(turn)).flatten();
        self.score.end_turn(turn, at, End::Ended(Ended { stop, usage, cost, meta, failure }));
    }

    fn take_failure(&mut self, turn: usize) -> Option<tolka_facts::event::Failed> {
        let beats = &mut self.score.turns.get_mut(turn)?.beats;
        let is_failure = |what: &What| matches!(what, What::Told(draft) if matches!(draft.event, Event::Failed(_)));
        let at = beats.iter().rposition(|beat| is_failure(&beat.what))?;
        match beats.remove(at).what {
            What::Told(Draft { event: Event::Failed(failed), .. }) => Some(failed),
            _ => None,
        }
    }

    /// Everything that was told outside of turns so far, as a turn.
    fn whole(&mut self) -> usize {
        let told = std::mem::take(&mut self.score.opening);
        let turn = self.score.open_turn();
        for what in told {
            self.score.add(turn, Duration::ZERO, what);
        }
        turn
    }

    fn finish(mut self) -> Recording {
        if self.score.turns.is_empty() {
            let turn = self.whole();
            self.score.end_turn(turn, Duration::ZERO, End::Ended(Ended::stopped(Stop::EndTurn)));
        }
        Recording { score: self.score, model: self.model }
    }
}

/// Told by the session itself in every session, or about things that only the recorded one had.
fn is_the_desks(event: &Event) -> bool {
    matches!(
        event,
        Event::SessionDeleted(_)
            | Event::PromptDropped(_)
            | Event::PromptSteered(_)
            | Event::CheckpointSaved(_)
            | Event::RewindStarted(_)
            | Event::RewindFailed(_)
            | Event::Approved(_)
            | Event::FilesMoved(_)
            | Event::SessionForked(_)
            | Event::Rewound(_)
            | Event::Unrewound(_)
            | Event::MessageHidden(_)
            | Event::InstanceDisposed(_)
            | Event::VersionChanged(_)
            | Event::UpdateFound(_)
            | Event::BranchChanged(_)
            | Event::PtyChanged(_)
            | Event::SessionChosen(_)
    )
}

fn since(began: Time, time: Time) -> Duration {
    Duration::from_micros(time.micros().saturating_sub(began.micros()))
}
