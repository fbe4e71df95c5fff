//! A session made of nothing but a mind and a listener: it stamps what it hears, remembers it, and answers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::oneshot;
use tolka_agent::native::Native;
use tolka_agent::native::model::Model;
use tolka_agent::native::permission::{Grants, Leave, Rule, Rules};
use tolka_agent::native::processes::Processes;
use tolka_agent::native::settings::{Compaction, Few, Settings, Titles};
use tolka_agent::native::web::Web;
use tolka_agent::{
    Agent, Chosen, Ended, Mind, Past, Patience, Place, Prompt, Remembered, Remembering, Said, Steered, UNNAMED, teller,
};
use tolka_facts::event::{
    MessageHidden, Model as ModelName, PermissionAnswered, PromptQueued, PromptSteered, QuestionAnswered, Rewound,
    SessionCreated, Stop, TurnEnded, TurnStarted, Unrewound,
};
use tolka_facts::{Blobs, Block, Draft, Event, Fact, Hash, Ids, Json, SessionId, Time, TurnId, View};
use tolka_workspace::command::Shell;

/// The facts so far, and what they moved out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Stored>>);

#[derive(Debug, Default)]
struct Stored {
    facts: Vec<Fact>,
    blobs: HashMap<Hash, Vec<u8>>,
}

impl Memory {
    pub(crate) fn facts(&self) -> Vec<Fact> {
        self.0.lock().unwrap().facts.clone()
    }

    /// Only the first `count` facts.
    pub(crate) fn until(&self, count: usize) -> Memory {
        let stored = self.0.lock().unwrap();
        Memory(Arc::new(Mutex::new(Stored { facts: stored.facts[..count].to_vec(), blobs: stored.blobs.clone() })))
    }

    pub(crate) fn view(&self) -> View {
        let mut view = View::default();
        self.0.lock().unwrap().facts.iter().for_each(|fact| view.apply(fact));
        view
    }

    fn stamp(&self, mut draft: Draft, contents: Vec<Vec<u8>>) -> Fact {
        let mut stored = self.0.lock().unwrap();
        stored.blobs.extend(contents.into_iter().map(|content| (Hash::of(&content), content)));
        draft.spill(&mut |content| drop(stored.blobs.insert(Hash::of(content), content.to_vec())));
        let seq = stored.facts.len() as u64 + 1;
        let fact = draft.stamp(SessionId::from("ses_test"), seq, Time::from_millis(seq));
        stored.facts.push(fact.clone());
        fact
    }
}

impl Blobs for Memory {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.0.lock().unwrap().blobs.get(hash).cloned()
    }
}

impl Past for Memory {
    fn remember(&self) -> Remembering<'_> {
        Box::pin(async { Ok(Remembered { view: self.view(), blobs: Arc::new(self.clone()) }) })
    }

    fn go_on(&self, mut known: View) -> Remembering<'_> {
        let seq = known.tip.seq;
        self.facts().iter().filter(|fact| fact.seq > seq).for_each(|fact| known.apply(fact));
        assert_eq!(known, self.view());
        Box::pin(async { Ok(Remembered { view: known, blobs: Arc::new(self.clone()) }) })
    }
}

/// What the person in the hall does when a fact is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    Nothing,
    Cancels,
    /// Sends a prompt to the turn that runs.
    Steers(String),
}

/// What the person says when asked for leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    Allows,
    Rejects,
    /// Allows, after so long.
    Dawdles(Duration),
    /// Never answers.
    Sleeps,
}

pub(crate) struct Hall {
    pub(crate) folder: TempDir,
    pub(crate) memory: Memory,
    pub(crate) settings: Settings,
    pub(crate) person: Person,
    pub(crate) mode: Option<String>,
    pub(crate) title: String,
    pub(crate) model: Option<ModelName>,
    mind: Option<Box<dyn Mind>>,
    ids: Arc<Ids>,
    steering: Vec<Steered>,
    unanswered: Vec<oneshot::Sender<Option<Chosen>>>,
}

impl Hall {
    pub(crate) fn open(models: Vec<Arc<dyn Model>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(models, folder.path());
        let memory = Memory::default();
        let workspace = folder.path().to_str().unwrap().to_owned();
        memory.stamp(
            Draft::client(SessionCreated {
                workspace,
                agent: "native".into(),
                title: UNNAMED.into(),
                mode: None,
                model: None,
                parent: None,
            }),
            Vec::new(),
        );
        Hall {
            folder,
            memory,
            settings,
            person: Person::Allows,
            mode: None,
            title: "Named".to_owned(),
            model: None,
            mind: None,
            ids: Arc::new(Ids::seeded(1)),
            steering: Vec::new(),
            unanswered: Vec::new(),
        }
    }

    pub(crate) fn facts(&self) -> Vec<Fact> {
        self.memory.facts()
    }

    /// As after a restart, with other models.
    pub(crate) fn renew(&mut self, models: Vec<Arc<dyn Model>>) {
        self.settings.models = models;
        self.mind = None;
    }

    /// Hides a message, as a rewind does.
    pub(crate) fn hide(&self, at: usize) {
        let message = self.memory.view().messages[at].id.clone();
        self.memory.stamp(Draft::client(MessageHidden { message }), Vec::new());
    }

    /// Takes the conversation back to before the turn of a message.
    pub(crate) fn rewind(&self, at: usize) {
        let view = self.memory.view();
        let message = &view.messages[at];
        let rewound = Rewound::to(message.id.clone(), message.started.unwrap(), "c".into());
        self.memory.stamp(Draft::client(rewound), Vec::new());
    }

    pub(crate) fn unrewind(&self) {
        self.memory.stamp(Draft::client(Unrewound::to("c".into())), Vec::new());
    }

    /// What is hidden when a turn starts stays so.
    fn bury(&self) {
        for message in self.memory.view().messages.into_iter().filter(|message| message.rewound) {
            self.memory.stamp(Draft::tolka(MessageHidden { message: message.id }), Vec::new());
        }
    }

    /// Nothing may be done without leave.
    pub(crate) fn ask_for_all(&mut self) {
        self.settings.rules = Rules(vec![Rule { permission: "*".into(), pattern: "*".into(), leave: Leave::Ask }]);
    }

    pub(crate) async fn say(&mut self, text: &str) -> Ended {
        self.prompt(vec![Block::text(text)], None, |_| Act::Nothing).await
    }

    pub(crate) async fn say_until(&mut self, text: &str, cancel: impl FnMut(&Fact) -> bool) -> Ended {
        let mut cancel = cancel;
        self.prompt(vec![Block::text(text)], None, |fact| if cancel(fact) { Act::Cancels } else { Act::Nothing }).await
    }

    pub(crate) async fn prompt(
        &mut self,
        content: Vec<Block>,
        context: Option<Json>,
        mut acts: impl FnMut(&Fact) -> Act,
    ) -> Ended {
        let now = Time::from_millis(self.facts().len() as u64);
        let (turn, message) = (self.ids.turn(now), self.ids.message(now));
        self.queue(turn.clone(), message.clone(), content.clone(), context.clone(), None);
        self.bury();
        self.memory.stamp(Draft::tolka(TurnStarted { turn: turn.clone(), checkpoint: None }), Vec::new());
        let (teller, mut said, switch) = teller(self.ids.clone());
        let mut mind = self.mind.take().unwrap_or_else(|| self.new_mind(&self.memory));
        let prompt = Prompt {
            turn: turn.clone(),
            message,
            content,
            context,
            model: self.model.clone(),
            mode: self.mode.clone(),
            checkpoint: None,
            title: self.title.clone(),
        };
        let mut cancelled = None;
        let ended = {
            let mut running = mind.turn(prompt, &teller);
            loop {
                tokio::select! {
                    biased;
                    Some(said) = said.recv() => match self.hear(said, &turn, &mut acts) {
                        Act::Nothing => {}
                        Act::Cancels => {
                            switch.fire();
                            cancelled = Some((std::time::Instant::now(), tokio::time::Instant::now()));
                        }
                        Act::Steers(text) => self.steer(text, &turn),
                    },
                    ended = &mut running => break ended,
                }
            }
        };
        if let Some((real, ours)) = cancelled {
            // Beyond what the machine takes: the clock of a test that sets its own goes on when somebody waits.
            let waited = ours.elapsed().saturating_sub(real.elapsed());
            assert!(waited < Duration::from_secs(1), "a cancel waited {waited:?}");
        }
        // As a session does: what its tools still do is over, and told, before the turn is.
        loop {
            tokio::select! {
                biased;
                Some(said) = said.recv() => drop(self.hear(said, &turn, &mut acts)),
                () = teller.effects().over() => break,
            }
        }
        while let Ok(said) = said.try_recv() {
            self.hear(said, &turn, &mut acts);
        }
        self.mind = Some(mind);
        self.end(turn, ended.clone());
        ended
    }

    fn end(&self, turn: TurnId, ended: Ended) {
        let Ended { stop, usage, cost, meta, failure } = ended;
        for draft in self.memory.view().tip.turn.unwrap().end_what_is_open(stop) {
            self.memory.stamp(draft, Vec::new());
        }
        if let Some(failure) = failure {
            self.memory.stamp(Draft::agent(failure), Vec::new());
        }
        self.memory.stamp(Draft::agent(TurnEnded { turn, stop, usage, cost, meta }), Vec::new());
    }

    fn new_mind(&self, memory: &Memory) -> Box<dyn Mind> {
        let agent = Native::new("native", Arc::new(self.settings.clone()));
        let workspace = self.folder.path().to_str().unwrap().to_owned();
        agent.open(Place {
            session: SessionId::from("ses_test"),
            workspace,
            turns: 0,
            past: Arc::new(memory.clone()),
            family: None,
            depth: 0,
        })
    }

    fn queue(
        &self,
        turn: TurnId,
        message: tolka_facts::MessageId,
        content: Vec<Block>,
        context: Option<Json>,
        steers: Option<TurnId>,
    ) {
        let queued = PromptQueued { turn, message, content, key: None, agent: None, model: None, context, steers };
        self.memory.stamp(Draft::client(queued), Vec::new());
    }

    fn steer(&mut self, text: String, into: &TurnId) {
        let now = Time::from_millis(self.facts().len() as u64);
        let (turn, message) = (self.ids.turn(now), self.ids.message(now));
        let content = vec![Block::text(text)];
        self.queue(turn, message.clone(), content.clone(), None, Some(into.clone()));
        self.steering.push(Steered { message, content, context: None });
    }

    fn hear(&mut self, said: Said, turn: &TurnId, acts: &mut impl FnMut(&Fact) -> Act) -> Act {
        match said {
            Said::Told(draft) => acts(&self.memory.stamp(draft, Vec::new())),
            Said::ToldWith(draft, contents) => acts(&self.memory.stamp(draft, contents.whole)),
            Said::Permission(draft, _, answer) => {
                let fact = self.memory.stamp(draft, Vec::new());
                let act = acts(&fact);
                let Event::PermissionAsked(ask) = fact.event else { panic!("{fact:?}") };
                if self.person == Person::Sleeps {
                    self.unanswered.push(answer);
                    return act;
                }
                let allows = self.person != Person::Rejects;
                let option = ask.options.iter().find(|option| option.kind.allows() == allows).unwrap().id.clone();
                let (request, by) = (ask.request, "test".to_owned());
                let answered = PermissionAnswered { request, option: Some(option.clone()), by, reason: None };
                self.memory.stamp(Draft::client(answered), Vec::new());
                let chosen = Some(Chosen { option, reason: None });
                if let Person::Dawdles(time) = self.person {
                    tokio::spawn(async move {
                        tokio::time::sleep(time).await;
                        let _ = answer.send(chosen);
                    });
                } else {
                    let _ = answer.send(chosen);
                }
                act
            }
            Said::Question(draft, _, answer) => {
                let fact = self.memory.stamp(draft, Vec::new());
                let act = acts(&fact);
                let Event::QuestionAsked(ask) = fact.event else { panic!("{fact:?}") };
                let (request, answers, by) = (ask.request, Some(vec![vec!["yes".to_owned()]]), "test".to_owned());
                self.memory
                    .stamp(Draft::client(QuestionAnswered { request, answers: answers.clone(), by }), Vec::new());
                let _ = answer.send(answers);
                act
            }
            Said::Steering(reply) => {
                for queued in self.memory.view().tip.queue {
                    let steered = PromptSteered { turn: queued.prompt.turn, into: turn.clone() };
                    self.memory.stamp(Draft::tolka(steered), Vec::new());
                }
                let _ = reply.send(std::mem::take(&mut self.steering));
                Act::Nothing
            }
            Said::Settle(done) => {
                let _ = done.send(());
                Act::Nothing
            }
        }
    }

    /// What a new mind sends first, that remembers only the first `count` facts, with whatever they left open ended as a
    /// crash leaves it.
    pub(crate) async fn sent_after(&self, count: usize) -> super::script::Asked {
        let model = super::script::Script::new(Vec::new());
        let memory = self.memory.until(count);
        let mut settings = self.settings.clone();
        settings.models = vec![model.clone()];
        let mut hall = Hall {
            folder: tempfile::tempdir().unwrap(),
            memory,
            settings,
            person: Person::Allows,
            mode: None,
            title: "Named".to_owned(),
            model: None,
            mind: None,
            ids: Arc::new(Ids::seeded(2)),
            steering: Vec::new(),
            unanswered: Vec::new(),
        };
        if let Some(turn) = hall.memory.view().tip.turn {
            hall.end(turn.id, Ended::stopped(Stop::Interrupted));
        }
        hall.say(AGAIN).await;
        model.asked().remove(0)
    }
}

/// The prompt of a session that is taken up again.
pub(crate) const AGAIN: &str = "Go on.";

fn settings(models: Vec<Arc<dyn Model>>, folder: &Path) -> Settings {
    let allow = Rule { permission: "*".into(), pattern: "*".into(), leave: Leave::Allow };
    Settings {
        models,
        steps: 20,
        turn: Duration::from_secs(600),
        tries: 4,
        command: Duration::from_secs(120),
        rules: Rules(vec![allow]),
        grants: Arc::new(Grants::new(folder)),
        patience: Patience::default(),
        processes: Processes::new().0,
        shell: Arc::new(Shell::probe(Path::new(env!("CARGO_BIN_EXE_tolka-agent-keeper")))),
        checkpoints: None,
        titles: Titles::Prompt,
        mcp: None,
        compaction: Compaction::default(),
        instructions: None,
        web: Web::default(),
        subagents: Few::default(),
        shelf: None,
    }
}
