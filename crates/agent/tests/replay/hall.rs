//! A session made of nothing but a mind and a listener: it stamps what it hears and folds it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tolka_agent::{Agent, Chosen, Ended, Mind, NoPast, Pace, Place, Prompt, Recording, Replay, Said, teller};
use tolka_facts::event::{
    OptionKind, PermissionAnswered, PromptQueued, QuestionAnswered, SessionCreated, TurnEnded, TurnStarted,
};
use tolka_facts::{Block, Draft, Event, Fact, Ids, Json, Part, Role, SessionId, Time, View};

pub(crate) const ACP: [&str; 12] = [
    "claude-cancel",
    "claude-perm",
    "claude-rich",
    "codex",
    "codex-cancel",
    "copilot",
    "fast-agent",
    "gemini",
    "kimi",
    "opencode-cancel",
    "opencode-perm",
    "opencode-rich",
];

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/data/recordings/acp/{name}.jsonl"))
}

pub(crate) fn replay(name: &str, pace: Pace) -> Replay {
    Replay::new(name, Recording::open(path(name)).unwrap(), pace)
}

/// A recording of our own facts.
pub(crate) fn own(name: &str, pace: Pace) -> Replay {
    let file = format!("../../tests/data/recordings/tolka/{name}.jsonl");
    Replay::new(name, Recording::open(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap(), pace)
}

/// What the person in the hall does when asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    Allows,
    Rejects,
    IsAway,
    /// Allows after a minute.
    Thinks,
    /// Never answers.
    Sleeps,
}

pub(crate) struct Hall {
    mind: Box<dyn Mind>,
    ids: Arc<Ids>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) view: View,
    unanswered: Vec<tokio::sync::oneshot::Sender<Option<Chosen>>>,
}

impl Hall {
    pub(crate) fn open(agent: &dyn Agent, turns: u64) -> Self {
        let ids = Arc::new(Ids::seeded(turns + 1));
        let session = ids.session(Time::from_millis(0));
        let mind = agent.open(Place {
            session,
            workspace: "/w".into(),
            turns,
            past: Arc::new(NoPast),
            family: None,
            depth: 0,
        });
        let mut hall = Hall { mind, ids, facts: Vec::new(), view: View::default(), unanswered: Vec::new() };
        hall.stamp(Draft::client(SessionCreated {
            workspace: "/w".into(),
            agent: agent.name().into(),
            title: String::new(),
            mode: None,
            model: Some(agent.model()),
            parent: None,
        }));
        hall
    }

    pub(crate) async fn turn(&mut self, person: Person) -> Ended {
        self.turn_until(person, None).await
    }

    /// Cancels the turn after `patience`; before it begins, if there is none.
    pub(crate) async fn turn_until(&mut self, person: Person, patience: Option<Duration>) -> Ended {
        let now = Time::from_millis(self.facts.len() as u64);
        let (turn, message) = (self.ids.turn(now), self.ids.message(now));
        let content = vec![Block::text("go")];
        self.stamp(Draft::client(PromptQueued {
            turn: turn.clone(),
            message,
            content: content.clone(),
            key: None,
            agent: None,
            model: None,
            context: None,
            steers: None,
        }));
        self.stamp(Draft::tolka(TurnStarted { turn: turn.clone(), checkpoint: None }));
        let (teller, mut said, switch) = teller(self.ids.clone());
        let mut mind = std::mem::replace(&mut self.mind, Box::new(Nobody));
        let is_cancelled_at_first = patience == Some(Duration::ZERO);
        if is_cancelled_at_first {
            switch.fire();
        }
        let ended = {
            let mut running = mind.turn(Prompt { content, ..Prompt::default() }, &teller);
            let mut patience = std::pin::pin!(tokio::time::sleep(patience.unwrap_or(Duration::from_secs(86_400))));
            let mut is_cancelled = is_cancelled_at_first;
            loop {
                tokio::select! {
                    biased;
                    Some(said) = said.recv() => self.hear(said, person).await,
                    ended = &mut running => break ended,
                    () = &mut patience, if !is_cancelled => {
                        is_cancelled = true;
                        switch.fire();
                    }
                }
            }
        };
        self.mind = mind;
        self.drain(&mut said, person).await;
        if let Some(failure) = ended.failure.clone() {
            self.stamp(Draft::agent(failure));
        }
        let Ended { stop, usage, cost, meta, .. } = ended.clone();
        self.stamp(Draft::tolka(TurnEnded { turn, stop, usage, cost, meta }));
        ended
    }

    async fn drain(&mut self, said: &mut Receiver<Said>, person: Person) {
        while let Ok(said) = said.try_recv() {
            self.hear(said, person).await;
        }
    }

    async fn hear(&mut self, said: Said, person: Person) {
        match said {
            Said::Told(draft) => self.stamp(draft),
            Said::Permission(draft, _, answer) => {
                let Event::PermissionAsked(ask) = draft.event.clone() else { panic!("{draft:?}") };
                self.stamp(draft);
                let pick = |allows: bool| {
                    let option = ask.options.iter().find(|option: &&_| OptionKind::allows(option.kind) == allows);
                    option.map(|option| option.id.clone())
                };
                let option = match person {
                    Person::Allows => pick(true),
                    Person::Rejects => pick(false),
                    Person::IsAway => None,
                    Person::Thinks => {
                        tokio::time::sleep(Duration::from_secs(60)).await;
                        pick(true)
                    }
                    Person::Sleeps => return self.unanswered.push(answer),
                };
                let (request, by) = (ask.request, "test".to_owned());
                self.stamp(Draft::client(PermissionAnswered { request, option: option.clone(), by, reason: None }));
                answer.send(option.map(|option| Chosen { option, reason: None })).unwrap();
            }
            Said::Question(draft, _, answer) => {
                let Event::QuestionAsked(ask) = draft.event.clone() else { panic!("{draft:?}") };
                self.stamp(draft);
                let answers = (person == Person::Allows).then(|| vec![vec!["yes".to_owned()]]);
                let (request, by) = (ask.request, "test".to_owned());
                self.stamp(Draft::client(QuestionAnswered { request, answers: answers.clone(), by }));
                answer.send(answers).unwrap();
            }
            Said::ToldWith(draft, _) => self.stamp(draft),
            Said::Steering(reply) => reply.send(Vec::new()).unwrap(),
            Said::Settle(done) => done.send(()).unwrap(),
        }
    }

    fn stamp(&mut self, draft: Draft) {
        let seq = self.facts.len() as u64 + 1;
        let fact = draft.stamp(SessionId::from("ses_test"), seq, Time::from_millis(seq));
        self.view.apply(&fact);
        self.facts.push(fact);
    }

    pub(crate) fn raws(&self) -> Vec<&Json> {
        self.facts.iter().filter_map(|fact| fact.raw.as_ref()).collect()
    }

    /// The agent's messages, a line for each part; `-` begins a message.
    pub(crate) fn transcript(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for message in self.view.messages.iter().filter(|message| message.role == Role::Agent) {
            for (at, part) in message.parts.iter().enumerate() {
                let mark = if at == 0 { "- " } else { "  " };
                lines.push(format!("{mark}{}", line(part)));
            }
        }
        lines
    }
}

fn line(part: &Part) -> String {
    match part {
        Part::Content(block) => format!("{block:?}"),
        Part::Text(said) => format!("says {}", said.text),
        Part::Thought(said) => format!("thinks {}", said.text),
        Part::Tool(tool) => {
            let name = tool.name.as_deref().unwrap_or("?");
            let live = if tool.live_output.is_empty() {
                String::new()
            } else {
                format!(" live {:?}", tool.live_output.to_string())
            };
            let error = tool.error.as_ref().map(|error| format!(" because {:?}", error.head())).unwrap_or_default();
            format!("{} {name} {:?} {:?} `{}`{live}{error}", tool.call, tool.kind, tool.status, tool.title)
        }
    }
}

/// Stands in for the mind while its turn runs.
struct Nobody;

impl Mind for Nobody {
    fn turn<'a>(&'a mut self, _: Prompt, _: &'a tolka_agent::Teller) -> tolka_agent::Running<'a> {
        Box::pin(std::future::pending())
    }
}
