//! Tools in a real folder, with a listener in place of a session: it keeps what is told, and answers what is asked.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use tolka_agent::native::model::Input;
use tolka_agent::native::permission::{Grants, Leave, Rule, Rules};
use tolka_agent::native::processes::{News, Processes};
use tolka_agent::native::settings::{Compaction, Few, Settings, Titles};
use tolka_agent::native::tools::{Call, Outcome, Scene, Tools};
use tolka_agent::native::web::Web;
use tolka_agent::{Chosen, Effects, Patience, Said, teller};
use tolka_facts::event::{FileChanged, PermissionAsked, QuestionAsked, ToolChanged};
use tolka_facts::{Blobs, CallId, Event, Hash, Ids, SessionId, Time, Tool, ToolStatus};
use tolka_mcp::Hub;
use tolka_workspace::command::{Level, Network, Shell};
use tolka_workspace::{Checkpoints, Save};

/// What was told, and what was told with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub(crate) events: Vec<Event>,
    pub(crate) blobs: HashMap<Hash, Vec<u8>>,
    /// How many events had been told at each wait for the disk.
    pub(crate) settled: Vec<usize>,
}

impl Blobs for Told {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.blobs.get(hash).cloned()
    }
}

/// What the person does who is asked.
#[derive(Debug, Clone)]
pub(crate) enum Person {
    Chooses(&'static str, Option<&'static str>),
    IsAway,
    Answers(Vec<Vec<String>>),
    Cancels,
}

pub(crate) struct Hall {
    _folder: TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) tools: Tools,
    settings: Arc<Settings>,
    pub(crate) told: Arc<Mutex<Told>>,
    pub(crate) person: Person,
    pub(crate) mode: String,
    pub(crate) checkpoint: Option<String>,
    /// When the turn began; `None`: with each call.
    pub(crate) since: Option<SystemTime>,
    pub(crate) checkpoints: Arc<Checkpoints>,
    /// Cancels the turn at the first fact that this likes.
    pub(crate) cancel_at: Option<fn(&Event) -> bool>,
    /// What happens before a question is answered.
    pub(crate) when_asked: Option<Arc<dyn Fn() + Send + Sync>>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) news: News,
    ids: Arc<Ids>,
    calls: usize,
}

pub(crate) fn rule(permission: &str, pattern: &str, leave: Leave) -> Rule {
    Rule { permission: permission.to_owned(), pattern: pattern.to_owned(), leave }
}

const KEEPER: &str = env!("CARGO_BIN_EXE_tolka-agent-keeper");

impl Hall {
    pub(crate) fn open() -> Self {
        Hall::with(Rules::default())
    }

    pub(crate) fn allowing(permission: &str) -> Self {
        Hall::with(Rules::with([rule(permission, "*", Leave::Allow)]))
    }

    pub(crate) fn with(rules: Rules) -> Self {
        Hall::hiding(rules, |_| Vec::new())
    }

    /// At one level of sandbox, if this machine has it.
    pub(crate) fn under(level: Level, rules: Rules) -> Option<Self> {
        let shell = Shell::at(Path::new(KEEPER), level).inspect_err(|error| println!("skipped: {error}")).ok()?;
        Some(Hall::built(rules, |_| shell, Web::default(), None))
    }

    /// With a network for its commands, if this machine has a sandbox that holds them to it.
    pub(crate) fn reaching(network: Network, rules: Rules) -> Option<Self> {
        let shell = Shell::probe(Path::new(KEEPER));
        let is_held = shell.level() != Level::None;
        let shell = shell.reaching(network).inspect_err(|error| println!("skipped: {error}")).ok()?;
        is_held.then(|| Hall::built(rules, |_| shell, Web::default(), None))
    }

    /// What is hidden is told from the folder that workspace and data are in.
    pub(crate) fn hiding(rules: Rules, hidden: impl Fn(&Path) -> Vec<PathBuf>) -> Self {
        Hall::made(rules, hidden, Web::default())
    }

    /// With leave for all of the web that can be reached.
    pub(crate) fn on_the_web(web: Web) -> Self {
        let all = |permission| rule(permission, "*", Leave::Allow);
        Hall::made(Rules::with([all("webfetch"), all("websearch")]), |_| Vec::new(), web)
    }

    pub(crate) fn made(rules: Rules, hidden: impl Fn(&Path) -> Vec<PathBuf>, web: Web) -> Self {
        Hall::built(rules, |root| Shell::probe(Path::new(KEEPER)).hiding(hidden(root)), web, None)
    }

    /// With MCP servers.
    pub(crate) fn served(hub: Arc<Hub>) -> Self {
        Hall::built(Rules::default(), |_| Shell::probe(Path::new(KEEPER)), Web::default(), Some(hub))
    }

    /// Another session of the same folder.
    pub(crate) fn another_session(&mut self) {
        self.tools = Tools::new(self.settings.clone(), SessionId::from("ses_other"), self.workspace.clone());
    }

    fn built(rules: Rules, shell: impl FnOnce(&Path) -> Shell, web: Web, mcp: Option<Arc<Hub>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (workspace, data) = (root.join("place"), root.join("data"));
        std::fs::create_dir(&workspace).unwrap();
        let checkpoints = Arc::new(Checkpoints::new(&data));
        let shell = shell(&root);
        let (processes, news) = Processes::new();
        let settings = Settings {
            models: Vec::new(),
            steps: 1,
            turn: Duration::from_secs(60),
            tries: 1,
            command: Duration::from_secs(120),
            rules,
            grants: Arc::new(Grants::new(&data)),
            patience: Patience::default(),
            shell: Arc::new(shell),
            processes: processes.clone(),
            checkpoints: Some(checkpoints.clone()),
            titles: Titles::Prompt,
            mcp,
            compaction: Compaction::default(),
            instructions: None,
            web,
            subagents: Few::default(),
            shelf: None,
        };
        let settings = Arc::new(settings);
        let tools = Tools::new(settings.clone(), SessionId::from("ses_test"), workspace.clone());
        Hall {
            _folder: folder,
            workspace,
            data,
            tools,
            settings,
            told: Arc::default(),
            person: Person::Chooses("once", None),
            mode: "build".to_owned(),
            checkpoint: None,
            since: None,
            checkpoints,
            cancel_at: None,
            when_asked: None,
            processes,
            news,
            ids: Arc::new(Ids::seeded(1)),
            calls: 0,
        }
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.workspace.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.workspace.join(path)).unwrap()
    }

    pub(crate) fn absolute(&self, path: &str) -> String {
        self.workspace.join(path).to_str().unwrap().to_owned()
    }

    pub(crate) async fn save(&mut self) {
        let session = SessionId::from("ses_test");
        let saved = self
            .checkpoints
            .save(&self.workspace, &session, Save::within(Duration::from_secs(30), "before"))
            .await
            .unwrap();
        self.checkpoint = Some(saved.commit);
        self.since = Some(SystemTime::now());
    }

    /// One call. What it gave is the same when it is read back from the facts.
    pub(crate) async fn call(&mut self, name: &str, input: Value) -> Ended {
        self.calls(&[(name, input)]).await.remove(0)
    }

    pub(crate) async fn calls(&mut self, calls: &[(&str, Value)]) -> Vec<Ended> {
        let calls: Vec<Call> = calls
            .iter()
            .map(|(name, input)| {
                self.calls += 1;
                Call {
                    id: CallId::from(format!("call_{}", self.calls)),
                    name: (*name).to_owned(),
                    input: input.clone().into(),
                }
            })
            .collect();
        let (teller, mut said, switch) = teller(self.ids.clone());
        let (told, person, cancel_at) = (self.told.clone(), self.person.clone(), self.cancel_at);
        let when_asked = self.when_asked.clone();
        let listener = tokio::spawn(async move {
            let mut waiting = Vec::new();
            while let Some(said) = said.recv().await {
                let mut told = told.lock().unwrap();
                let draft = match &said {
                    Said::Told(draft) | Said::ToldWith(draft, _) => Some(draft),
                    Said::Permission(draft, ..) | Said::Question(draft, ..) => Some(draft),
                    Said::Steering(_) | Said::Settle(_) => None,
                };
                if let Some(draft) = draft {
                    let mut draft = draft.clone();
                    if cancel_at.is_some_and(|is_it| is_it(&draft.event)) {
                        switch.fire();
                    }
                    let blobs = &mut told.blobs;
                    draft.spill(&mut |content| drop(blobs.insert(Hash::of(content), content.to_vec())));
                    told.events.push(draft.event);
                }
                match said {
                    Said::ToldWith(_, contents) => {
                        told.blobs.extend(contents.whole.into_iter().map(|content| (Hash::of(&content), content)));
                    }
                    Said::Permission(_, _, answer) => match &person {
                        Person::Chooses(option, reason) => {
                            let chosen = Chosen { option: (*option).to_owned(), reason: reason.map(str::to_owned) };
                            let _ = answer.send(Some(chosen));
                        }
                        Person::IsAway | Person::Answers(_) => drop(answer.send(None)),
                        Person::Cancels => {
                            switch.fire();
                            waiting.push(answer);
                        }
                    },
                    Said::Question(_, _, answer) => {
                        when_asked.iter().for_each(|happens| happens());
                        let answers = match &person {
                            Person::Answers(answers) => Some(answers.clone()),
                            Person::Chooses(..) | Person::IsAway | Person::Cancels => None,
                        };
                        let _ = answer.send(answers);
                    }
                    Said::Settle(done) => {
                        let count = told.events.len();
                        told.settled.push(count);
                        let _ = done.send(());
                    }
                    Said::Steering(answer) => drop(answer.send(Vec::new())),
                    Said::Told(_) => {}
                }
            }
            drop(switch);
        });
        let scene = Scene {
            teller: &teller,
            mode: self.mode.clone(),
            checkpoint: self.checkpoint.clone(),
            since: self.since.unwrap_or_else(SystemTime::now),
            cancel: teller.cancel().clone(),
        };
        let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
        let names: Vec<_> = calls.iter().map(|call| call.name.clone()).collect();
        let run = tokio::time::timeout(Duration::from_secs(60), self.tools.run(calls, &scene));
        let outcomes = run.await.expect("the calls end").unwrap();
        drop(scene);
        drop(teller);
        listener.await.unwrap();
        let told = self.told();
        let ended = ids.into_iter().zip(names).zip(outcomes).map(|((id, name), outcome)| {
            let tool = told.tool(&id, &name);
            assert_eq!(Tools::recalled(&tool, &told), outcome, "recalled as it was");
            Ended { tool, outcome, blobs: told.clone() }
        });
        ended.collect()
    }

    /// A call that is dropped as soon as this is so, and what it was still doing then.
    pub(crate) async fn dropped(&mut self, name: &str, input: Value, is_so: impl Fn() -> bool) -> Effects {
        self.dropped_or_at(name, input, |_| false, is_so).await
    }

    /// A call that is dropped when it has told this, before that is on the disk.
    pub(crate) async fn dropped_at(&mut self, name: &str, input: Value, at: fn(&Event) -> bool) -> Effects {
        self.dropped_or_at(name, input, at, || false).await
    }

    async fn dropped_or_at(
        &mut self,
        name: &str,
        input: Value,
        at: fn(&Event) -> bool,
        is_so: impl Fn() -> bool,
    ) -> Effects {
        let (teller, mut said, _switch) = teller(self.ids.clone());
        let is_told = Arc::new(AtomicBool::new(false));
        let heard = is_told.clone();
        let listener = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Some(said) = said.recv().await {
                match said {
                    Said::Told(draft) if at(&draft.event) => heard.store(true, Ordering::Relaxed),
                    Said::Settle(done) if heard.load(Ordering::Relaxed) => held.push(done),
                    Said::Settle(done) => drop(done.send(())),
                    _ => {}
                }
            }
        });
        let (mode, cancel) = (self.mode.clone(), teller.cancel().clone());
        let scene = Scene { teller: &teller, mode, checkpoint: None, since: SystemTime::now(), cancel };
        let call = Call { id: CallId::from("call_dropped"), name: name.to_owned(), input: input.into() };
        let until = async {
            while !is_so() && !is_told.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            outcomes = self.tools.run(vec![call], &scene) => panic!("it ended: {outcomes:?}"),
            () = until => {}
        }
        let effects = teller.effects().clone();
        drop(scene);
        drop(teller);
        tokio::spawn(listener);
        effects
    }

    pub(crate) fn told(&self) -> Told {
        self.told.lock().unwrap().clone()
    }

    pub(crate) fn asked(&self) -> Vec<PermissionAsked> {
        self.told().of(|event| match event {
            Event::PermissionAsked(asked) => Some(asked.clone()),
            _ => None,
        })
    }

    pub(crate) fn changed(&self) -> Vec<FileChanged> {
        self.told().of(|event| match event {
            Event::FileChanged(changed) => Some(changed.clone()),
            _ => None,
        })
    }

    pub(crate) fn questions(&self) -> Vec<QuestionAsked> {
        self.told().of(|event| match event {
            Event::QuestionAsked(asked) => Some(asked.clone()),
            _ => None,
        })
    }
}

impl Told {
    pub(crate) fn of<T>(&self, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.events.iter().filter_map(pick).collect()
    }

    pub(crate) fn changes(&self, id: &CallId) -> Vec<ToolChanged> {
        self.of(|event| match event {
            Event::ToolChanged(change) if change.call == *id => Some(change.clone()),
            _ => None,
        })
    }

    fn tool(&self, id: &CallId, name: &str) -> Tool {
        let mut tool = Tool { call: id.clone(), name: Some(name.to_owned()), ..Tool::default() };
        self.changes(id).iter().for_each(|change| tool.merge(change, Time::from_millis(1)));
        tool
    }
}

/// A call that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) tool: Tool,
    pub(crate) outcome: Outcome,
    blobs: Told,
}

impl Ended {
    pub(crate) fn output(&self) -> Value {
        self.tool.output.as_ref().map_or(json!(null), |output| output.whole(&self.blobs).value())
    }

    pub(crate) fn error(&self) -> String {
        self.tool.error.as_ref().map(|error| error.text(&self.blobs).into_owned()).unwrap_or_default()
    }

    /// What the model is sent, if that is text alone.
    pub(crate) fn said(&self) -> String {
        match self.outcome.content.as_slice() {
            [Input::Text(text)] => text.clone(),
            other => panic!("not one text: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn went_well(&self) -> &Self {
        assert_eq!((self.tool.status, self.outcome.is_error), (ToolStatus::Completed, false), "{}", self.error());
        self
    }

    #[track_caller]
    pub(crate) fn failed(&self, words: &str) {
        assert_eq!((self.tool.status, self.outcome.is_error), (ToolStatus::Failed, true));
        assert!(self.error().contains(words), "{}", self.error());
        assert_eq!(self.said(), self.error());
    }
}
