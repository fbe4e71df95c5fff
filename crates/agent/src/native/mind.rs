//! The mind of one session: it remembers, asks the model step after step, and says how the turn ended.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;
use tolka_facts::event::{
    Cost, Failed, Finish, Model as ModelName, Noticed, RetryScheduled, SessionChanged, Severity, Stop, Usage, UsageSet,
};
use tolka_facts::{Block, Draft, Json, NoBlobs};

use super::conversation::{Conversation, Eyes, rebuilt};
use super::halt::{Halt, Why};
use super::model::{Model, Request, ToolSpec};
use super::running::{Repeats, run_written};
use super::settings::{Settings, Titles};
use super::step::{Answer, Heard, Step};
use super::title::{self, Naming};
use super::tools::{Scene, Tools};
use super::{attachments, failure, instructions, prompted, retry};
use crate::{BUILD, Ended, Gone, Mind, ModelAbout, Place, Price, Prompt, Running, Teller, UNNAMED};

pub(super) struct NativeMind {
    settings: Arc<Settings>,
    tools: Tools,
    workspace: PathBuf,
    place: Place,
    naming: Option<Naming>,
}

impl NativeMind {
    pub(super) fn new(settings: Arc<Settings>, place: Place) -> Self {
        let workspace = PathBuf::from(&place.workspace);
        let tools = Tools::new(settings.clone(), place.session.clone(), workspace.clone());
        NativeMind { settings, tools, workspace, place, naming: None }
    }
}

impl Mind for NativeMind {
    fn turn<'a>(&'a mut self, prompt: Prompt, teller: &'a Teller) -> Running<'a> {
        Box::pin(async move {
            let mut halt = Halt::new(teller.cancel(), Instant::now() + self.settings.turn);
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

/// Why a turn is over.
enum Stopped {
    Done(Stop),
    Failed(Box<Failed>),
    Halted(Why),
}

/// What a turn has used so far.
#[derive(Debug, Default)]
struct Spent {
    usage: Option<Usage>,
    cost: Option<f64>,
    /// What the session had cost before.
    before: f64,
}

impl NativeMind {
    async fn begin(
        &mut self,
        prompt: &Prompt,
        teller: &Teller,
        halt: &mut Halt<'_>,
        spent: &mut Spent,
    ) -> Result<Stopped, Gone> {
        let remembered = match halt.or(self.place.past.remember()).await {
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
        let mode = prompt.mode.as_deref().filter(|mode| *mode == instructions::PLAN).unwrap_or(BUILD).to_owned();
        self.name_session(prompt, &model, teller).await?;

        let eyes = if model.about().sees_images { Eyes::Open } else { Eyes::Blind };
        let (settings, workspace, running) = (self.settings.clone(), self.workspace.clone(), prompt.turn.clone());
        let today = instructions::today();
        let of_mode = mode.clone();
        // Blobs and files are read here.
        let read = tokio::task::spawn_blocking(move || {
            let system = instructions::system(&settings, &workspace, &of_mode, &today);
            (rebuilt(&remembered.view, &*remembered.blobs, &running, eyes), system)
        });
        let (conversation, system) = match halt.or(read).await {
            Ok(Ok(read)) => read,
            // It fails only if the runtime is going down, and this task with it.
            Ok(Err(_)) => return Ok(Stopped::Halted(Why::Cancelled)),
            Err(why) => return Ok(Stopped::Halted(why)),
        };
        let specs = self.tools.specs(&mode);
        let offered = specs.iter().map(|spec| spec.name.clone()).collect();
        let scene = Scene { teller, mode, checkpoint: prompt.checkpoint.clone() };
        let turn = Turn { mind: self, teller, model, conversation, system, specs, offered, scene, halt, spent };
        turn.run(prompt).await
    }

    /// The model that the prompt names, else the session's, else the usual one.
    fn choose(&self, wanted: Option<&ModelName>, usual: Option<&ModelName>) -> Result<Arc<dyn Model>, Failed> {
        let models = &self.settings.models;
        let find = |wanted: &ModelName| models.iter().find(|model| model.about().model == *wanted);
        let known = || {
            models.iter().map(|m| format!("{}/{}", m.about().model.provider, m.about().model.id)).collect::<Vec<_>>()
        };
        match wanted {
            Some(wanted) => find(wanted).cloned().ok_or_else(|| failure::unknown_model(wanted, &known())),
            None => {
                let model = usual.and_then(find).or(models.first());
                let none = ModelName { provider: "none".to_owned(), id: "configured".to_owned() };
                model.cloned().ok_or_else(|| failure::unknown_model(usual.unwrap_or(&none), &known()))
            }
        }
    }

    async fn name_session(&mut self, prompt: &Prompt, model: &Arc<dyn Model>, teller: &Teller) -> Result<(), Gone> {
        if self.naming.as_ref().is_some_and(|naming| naming.meanwhile != prompt.title) {
            self.naming = None;
        }
        self.tell_name(teller).await?;
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

    /// Tells the title that the model gave, if it has by now.
    async fn tell_name(&mut self, teller: &Teller) -> Result<(), Gone> {
        let Some(naming) = self.naming.take_if(|naming| naming.is_ready()) else { return Ok(()) };
        match naming.title().await {
            Some(title) => teller.tell(Draft::agent(named(title))).await,
            None => Ok(()),
        }
    }
}

fn named(title: String) -> SessionChanged {
    SessionChanged { title: Some(title), mode: None, model: None, agent: None, archived: None }
}

async fn notice(teller: &Teller, title: &str, description: String) -> Result<(), Gone> {
    let (severity, title, description) = (Severity::Warning, title.to_owned(), Some(description));
    teller.tell(Draft::agent(Noticed { severity, title, description })).await
}

/// A turn that runs.
struct Turn<'a, 'h> {
    mind: &'a mut NativeMind,
    teller: &'a Teller,
    model: Arc<dyn Model>,
    conversation: Conversation,
    system: String,
    specs: Vec<ToolSpec>,
    /// The names of `specs`.
    offered: HashSet<String>,
    scene: Scene<'a>,
    halt: &'a mut Halt<'h>,
    spent: &'a mut Spent,
}

/// What is asked of the model once more, or why it is not.
enum Asked {
    Answered(Answer, Finish, Refused),
    Stopped(Stopped),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Yes,
    No,
}

impl Turn<'_, '_> {
    async fn run(mut self, prompt: &Prompt) -> Result<Stopped, Gone> {
        if let Err(why) = self.hear_person(&prompt.content, prompt.context.as_ref()).await? {
            return Ok(Stopped::Halted(why));
        }
        let mut repeats = Repeats::default();
        for _ in 0..self.mind.settings.steps {
            let (answer, finish, refused) = match self.ask().await? {
                Asked::Answered(answer, finish, refused) => (answer, finish, refused),
                Asked::Stopped(stopped) => return Ok(stopped),
            };
            self.conversation.answer(answer.outputs);
            self.mind.tell_name(self.teller).await?;
            if refused == Refused::Yes && answer.calls.is_empty() {
                return Ok(Stopped::Done(Stop::Refusal));
            }
            if !answer.calls.is_empty() {
                let ran = run_written(&self.mind.tools, &answer.calls, &self.scene, self.halt).await?;
                let outcomes = match ran {
                    Ok(outcomes) => outcomes,
                    Err(why) => return Ok(Stopped::Halted(why)),
                };
                let is_over = outcomes.iter().any(|(_, outcome)| outcome.ends_turn);
                let repeated = repeats.watch(&answer.calls, &outcomes);
                self.conversation.results(outcomes);
                if let Some(name) = repeated {
                    let why =
                        format!("`{name}` was called with the same input three times in a row and failed each time.");
                    notice(self.teller, "The agent is going round in circles", why).await?;
                    return Ok(Stopped::Done(Stop::MaxTurnRequests));
                }
                if is_over {
                    return Ok(Stopped::Done(Stop::EndTurn));
                }
            }
            let is_steered = match self.steered().await? {
                Ok(is_steered) => is_steered,
                Err(why) => return Ok(Stopped::Halted(why)),
            };
            if answer.calls.is_empty() && !is_steered {
                let stop = if finish == Finish::Length { Stop::MaxTokens } else { Stop::EndTurn };
                return Ok(Stopped::Done(stop));
            }
        }
        let why = format!("A turn may ask the model {} times. Send a prompt to go on.", self.mind.settings.steps);
        notice(self.teller, "The turn took too many steps", why).await?;
        Ok(Stopped::Done(Stop::MaxTurnRequests))
    }

    async fn hear_person(&mut self, content: &[Block], context: Option<&Json>) -> Result<Result<(), Why>, Gone> {
        self.conversation.user(prompted::inputs(content, context, &NoBlobs));
        let hands = (&self.mind.tools, &self.scene);
        attachments::attach(content, &self.mind.workspace, &mut self.conversation, hands, self.halt).await
    }

    /// Takes in what people have sent to this turn. Whether there was any.
    async fn steered(&mut self) -> Result<Result<bool, Why>, Gone> {
        let steered = self.teller.steering().await?;
        let is_any = !steered.is_empty();
        for prompt in steered {
            if let Err(why) = self.hear_person(&prompt.content, prompt.context.as_ref()).await? {
                return Ok(Err(why));
            }
        }
        Ok(Ok(is_any))
    }

    /// Asks until there is a whole answer, or it is in vain.
    async fn ask(&mut self) -> Result<Asked, Gone> {
        let name = self.model.about().model.clone();
        let tries = self.mind.settings.tries.max(1);
        let mut failed = 0;
        let mut open = None;
        loop {
            let mut step = match open.take() {
                Some(step) => step,
                None => Step::begin(self.teller, name.clone(), &self.offered).await?,
            };
            let pieces = self.model.ask(Request {
                system: self.system.clone(),
                messages: self.conversation.messages().to_vec(),
                tools: self.specs.clone(),
            });
            let error = match step.listen(pieces, &mut self.conversation, self.halt).await? {
                Heard::Ended { finish, is_refusal, usage } => {
                    let cost = usage.and_then(|usage| price(self.model.about(), usage));
                    let answer = step.end(finish, usage, cost).await?;
                    self.spend(usage, cost).await?;
                    let refused = if is_refusal { Refused::Yes } else { Refused::No };
                    return Ok(Asked::Answered(answer, finish, refused));
                }
                Heard::Halted(why) => {
                    step.give_up(Finish::Cancelled, "The turn ended before the model had written this call.").await?;
                    return Ok(Asked::Stopped(Stopped::Halted(why)));
                }
                Heard::Failed(error) => error,
            };
            failed += 1;
            let delay = retry::delay(&error, failed, tries);
            if step.is_silent() && delay.is_some() {
                open = Some(step);
            } else {
                step.give_up(Finish::Error, "The model's answer was cut off.").await?;
            }
            let Some(delay) = delay else {
                let failure = failure::of_model(&error, &name, failed);
                return Ok(Asked::Stopped(Stopped::Failed(Box::new(failure))));
            };
            let retry = RetryScheduled {
                attempt: u64::from(failed),
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                message: error.message,
                code: error.status.map(i64::from),
            };
            self.teller.tell(Draft::agent(retry)).await?;
            if let Err(why) = self.halt.or(tokio::time::sleep(delay)).await {
                if let Some(step) = open.take() {
                    step.give_up(Finish::Cancelled, "The turn ended.").await?;
                }
                return Ok(Asked::Stopped(Stopped::Halted(why)));
            }
        }
    }

    async fn spend(&mut self, usage: Option<Usage>, cost: Option<f64>) -> Result<(), Gone> {
        let Some(usage) = usage else { return Ok(()) };
        *self.spent.usage.get_or_insert_default() += usage;
        if let Some(cost) = cost {
            *self.spent.cost.get_or_insert_default() += cost;
        }
        let Some(size) = self.model.about().context else { return Ok(()) };
        let amount = self.spent.cost.map(|cost| cost + self.spent.before);
        let cost = amount.map(|amount| Cost { amount, currency: "USD".to_owned() });
        self.teller.tell(Draft::agent(UsageSet { used: usage.total(), size, cost })).await
    }
}

/// In US dollars. `None`: no price is known.
fn price(about: &ModelAbout, usage: Usage) -> Option<f64> {
    let Price { input, output, cache_read, cache_write } = about.price?;
    let millionths = usage.input as f64 * input
        + (usage.output + usage.reasoning) as f64 * output
        + usage.cache_read as f64 * cache_read
        + usage.cache_write as f64 * cache_write;
    Some(millionths / 1e6)
}
