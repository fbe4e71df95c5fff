//! Reading a conversation between a client and an ACP agent.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tolka_dialect::acp::{Id, Message, Recorded, RecordedError, Side};
use tolka_facts::Json;

use super::recording::{Answer, End, Problem, Recording, Score, Spot, What, failure};
use crate::Ended;

pub(super) fn read(lines: &[(usize, &str)]) -> Result<Recording, Problem> {
    let mut reader = Reader::default();
    for (line, text) in lines {
        reader.line(text).map_err(|problem| Problem { line: *line, problem })?;
    }
    Ok(Recording { score: reader.finish(), model: None })
}

#[derive(Default)]
struct Reader {
    score: Score,
    /// Prompts without an answer yet: the turn of each, and when it began.
    prompts: Vec<(Id, usize, Duration)>,
    /// Permissions without an answer yet: where each stands, when its turn began, and what allows it.
    asks: HashMap<Id, (Spot, Duration, HashSet<String>)>,
    /// Requests that prepare a session.
    setups: HashSet<Id>,
    loads: HashSet<Id>,
    /// The session was opened again after a turn. What comes between turns now belongs to that.
    reopened: bool,
    refusal: Option<Json>,
    noise: Vec<String>,
}

impl Reader {
    fn line(&mut self, text: &str) -> Result<(), String> {
        let recorded = Recorded::read(text).map_err(|e| match e {
            RecordedError::Json(e) => format!("not a recorded message: {e}"),
            RecordedError::Time(_) | RecordedError::Direction(_) => e.to_string(),
        })?;
        let Some(Recorded { time: Some(t), side, message: raw }) = recorded else {
            return Err("not a recorded message: it has no `t`, no `dir` or no `msg`".to_owned());
        };
        let message = || Message::parse(raw.get()).map_err(|e| e.to_string());
        match side {
            Some(Side::Client) => self.client(t, message()?),
            Some(Side::Agent) => self.agent(t, message()?),
            None => self.noise.push(raw.read().unwrap_or_else(|| raw.get().to_owned())),
        }
        Ok(())
    }

    fn client(&mut self, t: Duration, message: Message) {
        match message {
            Message::Request { id, method, .. } => match method.as_str() {
                "session/prompt" => self.prompts.push((id, self.score.open_turn(), t)),
                "session/load" => {
                    self.loads.insert(id.clone());
                    self.set_up(id);
                }
                "initialize" | "authenticate" | "session/new" | "session/resume" => self.set_up(id),
                _ => {}
            },
            Message::Response { id: Some(id), outcome } => {
                if let Some((spot, began, allowing)) = self.asks.remove(&id) {
                    let chosen = outcome.ok().and_then(|result| result.read::<Chosen>());
                    let allowed = chosen.is_some_and(|chosen| allowing.contains(&chosen.outcome.option_id));
                    self.score.answer(spot, Answer { at: t.saturating_sub(began), allowed });
                }
            }
            Message::Response { id: None, .. } | Message::Notification { .. } => {}
        }
    }

    fn set_up(&mut self, request: Id) {
        self.setups.insert(request);
        self.reopened |= !self.score.turns.is_empty();
    }

    fn agent(&mut self, t: Duration, message: Message) {
        match message {
            Message::Notification { method, params } => {
                let update = (method == "session/update").then(|| params.read::<Params>()).flatten();
                let what = match update {
                    Some(Params { update }) => What::Update(update),
                    None => What::Foreign { method, params },
                };
                self.told(t, what);
            }
            Message::Request { id, method, params } if method == "session/request_permission" => {
                let offered = params.read::<Offered>().map(|offered| offered.options).unwrap_or_default();
                let allowing = offered.into_iter().filter(|option| option.kind.starts_with("allow"));
                let allowing = allowing.map(|option| option.option_id).collect();
                if let Some((spot, began)) = self.told(t, What::AcpPermission { params, answer: None }) {
                    self.asks.insert(id, (spot, began, allowing));
                }
            }
            Message::Request { method, params, .. } => {
                self.told(t, What::Foreign { method, params });
            }
            Message::Response { id: Some(id), outcome } => {
                if let Some(at) = self.prompts.iter().position(|(prompt, ..)| *prompt == id) {
                    let (_, turn, began) = self.prompts.remove(at);
                    self.score.end_turn(turn, t.saturating_sub(began), End::Acp(outcome));
                } else if self.setups.remove(&id) {
                    self.loads.remove(&id);
                    self.refusal = outcome.err().or(self.refusal.take());
                }
            }
            Message::Response { id: None, .. } => {}
        }
    }

    /// History that a load repeats is no news, and is left out.
    fn told(&mut self, t: Duration, what: What) -> Option<(Spot, Duration)> {
        if !self.loads.is_empty() {
            return None;
        }
        let Some((_, turn, began)) = self.prompts.first() else {
            if !self.reopened {
                self.score.add_between(what);
            }
            return None;
        };
        Some((self.score.add(*turn, t.saturating_sub(*began), what)?, *began))
    }

    fn finish(mut self) -> Score {
        if self.score.turns.is_empty() {
            let turn = self.score.open_turn();
            let noise = (!self.noise.is_empty()).then(|| Json::from(json!({ "output": self.noise.join("\n") })));
            let end = match self.refusal {
                Some(error) => End::Acp(Err(error)),
                None => End::Ended(Ended::failed(failure("the agent ended before it was ready", noise))),
            };
            self.score.end_turn(turn, Duration::ZERO, end);
        }
        self.score
    }
}

#[derive(Deserialize)]
struct Params {
    update: Json,
}

#[derive(Deserialize)]
struct Offered {
    options: Vec<OfferedOption>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfferedOption {
    option_id: String,
    kind: String,
}

#[derive(Deserialize)]
struct Chosen {
    outcome: ChosenOption,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChosenOption {
    option_id: String,
}
