//! What the server remembers: the answers that are left, what was asked, the gates, and what it has signed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::script::{Answer, Order, Reasoning, Script, When};
use crate::wire::{Asked, Issued, Step, Told, Wire};
use crate::words::{Cutting, counts, ending};

/// One request, as it came.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Received {
    pub wire: Wire,
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// A text where it was no JSON.
    pub body: Value,
    /// Which answer of the script it got, from 0. One that was too long got none.
    pub answer: Option<usize>,
    /// Why it got none.
    pub refused: Option<String>,
    pub outcome: Outcome,
}

/// What became of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is being told.
    Open,
    /// All was told that the script has.
    Told,
    /// Who asked went away before the end.
    Left,
}

#[derive(Debug)]
pub(crate) struct Stage {
    play: Mutex<Play>,
    received: watch::Sender<Vec<Received>>,
    gates: watch::Sender<HashSet<String>>,
}

#[derive(Debug)]
struct Play {
    script: Script,
    /// By conversation and answer. With one order for all, the conversation is "".
    used: HashMap<(String, usize), u32>,
    issued: Issued,
    seed: u64,
}

pub(crate) enum Reply {
    Stream(Vec<Step>),
    Refusal { status: u16, headers: BTreeMap<String, String>, body: Value },
}

impl Stage {
    pub(crate) fn new(script: Script) -> Self {
        let mut issued = Issued::default();
        issued.wants_details = script.reasoning == Reasoning::ReasoningDetails;
        let play = Play { script, used: HashMap::new(), issued, seed: 0 };
        Stage {
            play: Mutex::new(play),
            received: watch::Sender::new(Vec::new()),
            gates: watch::Sender::new(HashSet::new()),
        }
    }

    fn play(&self) -> MutexGuard<'_, Play> {
        self.play.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.borrow().clone()
    }

    pub(crate) async fn until(&self, is_so: impl FnMut(&Vec<Received>) -> bool) -> Vec<Received> {
        let mut received = self.received.subscribe();
        // The sender is in `self`, so that it is there for as long as we wait.
        received.wait_for(is_so).await.map(|all| all.clone()).unwrap_or_default()
    }

    pub(crate) fn open(&self, gate: &str) {
        self.gates.send_modify(|gates| gates.extend([gate.to_owned()]));
    }

    pub(crate) async fn gate(&self, name: &str) {
        // As above.
        let _ = self.gates.subscribe().wait_for(|open| open.contains(name)).await;
    }

    pub(crate) fn add(&self, answers: impl IntoIterator<Item = Answer>) {
        self.play().script.answers.extend(answers);
    }

    pub(crate) fn models(&self) -> Vec<String> {
        self.play().script.models.clone()
    }

    pub(crate) fn outcome(&self, request: usize, outcome: Outcome) {
        self.received.send_modify(|all| all[request].outcome = outcome);
    }

    /// Notes the request and chooses what it gets; its number is for [`Stage::outcome`].
    pub(crate) fn reply(
        &self,
        wire: Wire,
        path: &str,
        headers: BTreeMap<String, String>,
        body: &[u8],
    ) -> (usize, Reply) {
        let mut play = self.play();
        let text = String::from_utf8_lossy(body);
        let json: Result<Value, _> = serde_json::from_str(&text);
        let chosen = match &json {
            Ok(json) => play.choose(wire, &headers, json),
            Err(problem) => Err((400, format!("We could not parse the JSON body of your request: {problem}"))),
        };
        let (answer, refused, reply) = match chosen {
            // One that is too long gets no answer of the script, and is no mistake.
            Ok((number, reply)) => (number, None, reply),
            Err((status, why)) => {
                let body = wire.refusal(status, &why);
                (None, Some(why), Reply::Refusal { status, headers: BTreeMap::new(), body })
            }
        };
        let body = json.unwrap_or_else(|_| Value::String(text.into_owned()));
        let path = path.to_owned();
        let mut request = 0;
        self.received.send_modify(|all| {
            request = all.len();
            all.push(Received { wire, path, headers, body, answer, refused, outcome: Outcome::Open });
        });
        (request, reply)
    }
}

impl Play {
    fn choose(
        &mut self,
        wire: Wire,
        headers: &BTreeMap<String, String>,
        body: &Value,
    ) -> Result<(Option<usize>, Reply), (u16, String)> {
        let header = |name: &str| headers.get(name).map(String::as_str).unwrap_or_default();
        let key = match wire {
            Wire::OpenAi => header("authorization").trim_start_matches("Bearer "),
            Wire::Anthropic => header("x-api-key"),
        };
        if self.script.key.as_deref().is_some_and(|wanted| wanted != key) {
            // As a careless provider says it.
            return Err((401, format!("Incorrect API key provided: {key}.")));
        }
        if wire == Wire::Anthropic && header("anthropic-version").is_empty() {
            return Err((400, "anthropic-version: header is required".to_owned()));
        }
        let asked = wire.asked(body);
        if !self.script.models.is_empty() && !self.script.models.contains(&asked.model) {
            let why = match wire {
                Wire::OpenAi => format!("The model `{}` does not exist or you do not have access to it.", asked.model),
                Wire::Anthropic => format!("model: {}", asked.model),
            };
            return Err((404, why));
        }
        wire.judge(body, &self.issued).map_err(|why| (400, why))?;
        if !asked.is_streamed {
            return Err((400, "this provider only streams".to_owned()));
        }
        if self.script.context.is_some_and(|most| tokens(body) > most) {
            return Ok((None, Reply::Refusal { status: 400, headers: BTreeMap::new(), body: wire.overflow() }));
        }
        let conversation = match self.script.order {
            Order::Global => String::new(),
            Order::Conversation => asked.first_user.clone(),
        };
        let number = self
            .next(&conversation, &asked)
            .ok_or_else(|| (400, format!("the script has no answer left for {:?}", asked.last_user)))?;
        *self.used.entry((conversation, number)).or_default() += 1;
        Ok((Some(number), self.tell(number, wire, &asked, body)))
    }

    /// The first that is left and names this request; else the first that is left and is for anybody.
    fn next(&self, conversation: &str, asked: &Asked) -> Option<usize> {
        let is_left = |number: usize, answer: &Answer| {
            let used = self.used.get(&(conversation.to_owned(), number)).copied().unwrap_or(0);
            let times = answer.times.unwrap_or(1);
            times == 0 || used < times
        };
        let left = || self.script.answers.iter().enumerate().filter(|(number, answer)| is_left(*number, answer));
        let named = left().find(|(_, answer)| answer.when.as_ref().is_some_and(|when| holds(when, asked)));
        named.or_else(|| left().find(|(_, answer)| answer.when.is_none())).map(|(number, _)| number)
    }

    fn tell(&mut self, number: usize, wire: Wire, asked: &Asked, body: &Value) -> Reply {
        let answer = &self.script.answers[number];
        if let Some(status) = answer.status {
            let usual = || if answer.overflow { wire.overflow() } else { wire.refusal(status, "") };
            let body = answer.body.clone().unwrap_or_else(usual);
            return Reply::Refusal { status, headers: answer.headers.clone(), body };
        }
        self.seed += 1;
        let Script { piece, reasoning, .. } = self.script;
        let cutting = Cutting { seed: self.seed, call_prefix: wire.call_prefix(), piece, mixes: wire.mixes() };
        let words = cutting.words(answer);
        self.issued.note(&words);
        Reply::Stream(wire.steps(&Told {
            words: &words,
            model: &asked.model,
            seed: self.seed,
            ending: ending(answer),
            counts: counts(answer, tokens(body), &words),
            reasoning,
            wants_usage: asked.wants_usage,
        }))
    }
}

/// About how many tokens were sent.
fn tokens(body: &Value) -> u64 {
    body.to_string().len() as u64 / 4 + 1
}

fn holds(when: &When, asked: &Asked) -> bool {
    let When { user, result, system, model, has_tools } = when;
    let within = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|wanted| text.contains(wanted));
    let result_holds = match (result, &asked.last_result) {
        (None, _) => true,
        (Some(_), None) => false,
        (wanted, Some(given)) => within(wanted, given),
    };
    within(user, &asked.last_user)
        && result_holds
        && within(system, &asked.system)
        && within(model, &asked.model)
        && has_tools.is_none_or(|wanted| wanted == asked.has_tools)
}
