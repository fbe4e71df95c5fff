//! The mind of one session: it remembers what was, chooses the model, and says how each turn ended.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use tolka_facts::event::{Failed, Model as ModelName, SessionChanged, Stop};
use tolka_facts::{Draft, NoBlobs, View};

use super::conversation::{Eyes, Recollection};
use super::model::{Model, ToolSpec};
use super::settings::{Settings, Titles};
use super::spent::{Bills, Spent};
use super::subagents::{Subagent, Subagents};
use super::title::{self, Named, Naming};
use super::tools::{Home, Scene, Tools};
use super::turn::{Halt, Stopped, Turn, Why, notice};
use super::{compaction, failure, instructions};
use crate::{BUILD, Ended, Gone, Mind, PLAN, Past, Place, Prompt, Running, Teller, UNNAMED, is_meant};

pub(super) struct NativeMind {
    pub(super) settings: Arc<Settings>,
    pub(super) tools: Tools,
    pub(super) workspace: PathBuf,
    place: Place,
    /// What the last turn began with, and what was made of it: the next one reads on from there.
    pub(super) known: Option<(View, Recollection)>,
    naming: Option<Naming>,
    /// What people were told of files that describe no subagent.
    problems: HashSet<String>,
}

impl NativeMind {
    pub(super) fn new(settings: Arc<Settings>, place: Place) -> Self {
        let workspace = PathBuf::from(&place.workspace);
        let tools = Tools::new(settings.clone(), place.session.clone(), workspace.clone());
        NativeMind { settings, tools, workspace, place, known: None, naming: None, problems: HashSet::new() }
    }
}

impl Mind for NativeMind {
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a> {
        Box::pin(async move {
            let mut halt = Halt::new(teller, self.settings.turn);
            let mut spent = Spent::default();
            let stopped = self.begin(&prompt, teller, &mut halt, &mut spent).await;
            // A session that no longer listens has ended the turn already.
            let (stop, failure) = match stopped.unwrap_or(Stopped::Halted(Why::Cancelled)) {
                Stopped::Done(stop) => (stop, None),
                Stopped::Failed(failure) => (Stop::Failed, Some(*failure)),
                Stopped::Halted(Why::Cancelled) => (Stop::Cancelled, None),
                Stopped::Halted(Why::TimeUp) => {
                    let minutes = self.settings.turn.as_secs().div_ceil(60);
                    let why = format!("A turn may take {minutes} minutes, and they are over. Send a prompt to go on.");
                    let _ = notice(teller, "The turn took too long", why).await;
                    (Stop::MaxTurnRequests, None)
                }
            };
            let (usage, cost) = (spent.usage, spent.cost);
            Ended { stop, usage, cost, meta: None, failure }
        })
    }
}

impl NativeMind {
    async fn begin(
        &mut self,
        prompt: &Prompt,
        teller: &Teller,
        halt: &mut Halt<'_>,
        spent: &mut Spent,
    ) -> Result<Stopped, Gone> {
        let since = SystemTime::now();
        let past = &self.place.past;
        let is_first = self.known.is_none();
        let (remembering, mut recollection) = match self.known.take() {
            Some((known, recollection)) => (past.go_on(known), recollection),
            None => (past.remember(), Recollection::new()),
        };
        let remembered = match halt.or(remembering).await {
            Ok(Ok(remembered)) => remembered,
            Ok(Err(error)) => return Ok(Stopped::Failed(Box::new(failure::no_past(&error)))),
            Err(why) => return Ok(Stopped::Halted(why)),
        };
        let head = &remembered.view.tip.head;
        spent.before = head.cost.as_ref().map_or(0.0, |cost| cost.amount);
        let model = match self.choose(prompt.model.as_ref(), head.model.as_ref()) {
            Ok(model) => model,
            Err(failure) => return Ok(Stopped::Failed(Box::new(failure))),
        };
        let is_news = is_first && prompt.model.is_none();
        if let Some(lost) = head.model.as_ref().filter(|usual| is_news && **usual != model.about().model) {
            let why = format!("{}/{} is not configured any more.", lost.provider, lost.id);
            notice(teller, "The session goes on with another model", why).await?;
        }
        let mode = prompt.mode.as_deref().filter(|mode| *mode == PLAN).unwrap_or(BUILD).to_owned();
        // A subagent's prompts are written by a model, and only a person has commands.
        let wishes = compaction::wanted(&prompt.content, &NoBlobs).filter(|_| self.place.depth == 0);
        if wishes.is_none() {
            self.name_session(prompt, &model, teller, spent).await?;
        }

        let eyes = Eyes::of(&*model);
        let (settings, workspace, running) = (self.settings.clone(), self.workspace.clone(), prompt.turn.clone());
        let today = instructions::today();
        let (of_mode, of_kind) = (mode.clone(), prompt.mode.clone().filter(|_| self.place.depth > 0));
        // Blobs and files are read here.
        let read = tokio::task::spawn_blocking(move || {
            let kinds = Subagents::of(&workspace);
            let kind = of_kind.and_then(|name| kinds.find(&name).cloned());
            let system = instructions::system(&settings, &workspace, &of_mode, kind.as_ref(), &today);
            let conversation = recollection.recall(&remembered.view, &*remembered.blobs, &running, eyes);
            (conversation, system.into(), (remembered.view, recollection), (kinds, kind))
        });
        let (conversation, system, known, (kinds, kind)) = match halt.or(read).await {
            Ok(Ok(read)) => read,
            // It fails only if the runtime is going down, and this task with it.
            Ok(Err(_)) => return Ok(Stopped::Halted(Why::Cancelled)),
            Err(why) => return Ok(Stopped::Halted(why)),
        };
        // Without its kind nobody knows what it may do. A person who prompts it may name a mode instead.
        let is_mode = |mode: &str| matches!(mode, BUILD | PLAN);
        if self.place.depth > 0 && kind.is_none() && !prompt.mode.as_deref().is_some_and(is_mode) {
            let failure = failure::unknown_kind(prompt.mode.as_deref().unwrap_or("?"), &kinds.names());
            return Ok(Stopped::Failed(Box::new(failure)));
        }
        let commands = known.0.commands.clone();
        self.known = Some(known);
        if let Err(why) = halt.or(self.tools.settled()).await {
            return Ok(Stopped::Halted(why));
        }
        self.tools.tell_servers(teller, &commands).await?;
        self.settle_in(kinds, kind, &model, teller).await?;
        let specs: Arc<[ToolSpec]> = self.tools.specs(&mode).into();
        let offered = Arc::new(specs.iter().map(|spec| spec.name.clone()).collect());
        let (checkpoint, cancel) = (prompt.checkpoint.clone(), halt.cancel());
        let scene = Scene { teller, mode, checkpoint, since, cancel };
        let turn = Turn {
            mind: self,
            teller,
            running: prompt.turn.clone(),
            model,
            conversation,
            system,
            specs,
            offered,
            scene,
            halt,
            spent,
            used: None,
            next_step: None,
            has_failed_to_compact: false,
        };
        match wishes {
            Some(wishes) => turn.compact_alone(wishes).await,
            None => turn.run(prompt).await,
        }
    }

    pub(super) fn past(&self) -> Arc<dyn Past> {
        self.place.past.clone()
    }

    /// What the turn's tools know of subagents, and of this session as one.
    async fn settle_in(
        &mut self,
        kinds: Subagents,
        kind: Option<Subagent>,
        model: &Arc<dyn Model>,
        teller: &Teller,
    ) -> Result<(), Gone> {
        let family = self.place.family.clone().filter(|_| self.place.depth < self.settings.subagents.depth);
        if family.is_some() {
            for problem in &kinds.problems {
                if self.problems.insert(problem.clone()) {
                    notice(teller, "A kind of subagent cannot be used", problem.clone()).await?;
                }
            }
        }
        self.tools.at_home(Home {
            family,
            kinds: Arc::new(kinds),
            allowed: kind.map(|kind| kind.tools).unwrap_or_default(),
            model: model.about().model.clone(),
            models: self.settings.models.iter().map(|model| model.about().model.clone()).collect(),
            is_child: self.place.depth > 0,
            at_once: self.settings.subagents.at_once as usize,
            bills: Bills::default(),
        });
        Ok(())
    }

    /// The model that the prompt names, else the session's, else the usual one.
    fn choose(&self, wanted: Option<&ModelName>, usual: Option<&ModelName>) -> Result<Arc<dyn Model>, Failed> {
        let models = &self.settings.models;
        let find = |wanted: &ModelName| models.iter().find(|model| is_meant(&model.about().model, wanted));
        let model = match wanted {
            Some(wanted) => find(wanted),
            None => usual.and_then(find).or(models.first()),
        };
        model.cloned().ok_or_else(|| {
            let known = models.iter().map(|m| format!("{}/{}", m.about().model.provider, m.about().model.id));
            failure::unknown_model(wanted.or(usual), &known.collect::<Vec<_>>())
        })
    }

    async fn name_session(
        &mut self,
        prompt: &Prompt,
        model: &Arc<dyn Model>,
        teller: &Teller,
        spent: &mut Spent,
    ) -> Result<(), Gone> {
        if let Some(naming) = self.naming.take_if(|naming| naming.meanwhile != prompt.title) {
            // A person was faster; what it used was used.
            if naming.is_ready() {
                spent.add(naming.named().await.used);
            }
        }
        self.tell_name(teller, spent).await?;
        if prompt.title != UNNAMED {
            return Ok(());
        }
        let Some(title) = title::from_prompt(&prompt.content) else { return Ok(()) };
        teller.tell(Draft::agent(named(title.clone()))).await?;
        if self.settings.titles == Titles::Model {
            self.naming = Some(Naming::begin(model.clone(), &prompt.content, title));
        }
        Ok(())
    }

    /// Tells the title that the model gave, if it has by now. The turn that tells it has used what it took: one that comes
    /// when no turn runs has to wait for the next.
    pub(super) async fn tell_name(&mut self, teller: &Teller, spent: &mut Spent) -> Result<(), Gone> {
        let Some(naming) = self.naming.take_if(|naming| naming.is_ready()) else { return Ok(()) };
        let Named { title, used } = naming.named().await;
        spent.add(used);
        match title {
            Some(title) => teller.tell(Draft::agent(named(title))).await,
            None => Ok(()),
        }
    }
}

fn named(title: String) -> SessionChanged {
    SessionChanged { title: Some(title), mode: None, model: None, agent: None, archived: None }
}
