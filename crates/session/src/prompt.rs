//! Prompts: taken, kept until their turn comes or the turn that runs takes them, and handed to minds whole.

use std::sync::Arc;

use tokio::sync::oneshot;
use tolka_agent::{Agent, Prompt, Steered};
use tolka_facts::event::{Model, PromptQueued, PromptSteered, SessionChanged};
use tolka_facts::{Block, Draft, Event, Json, MessageId, SessionId, TurnId};
use tolka_journal::{Journal, JournalError, Mark, Scope};

use crate::SessionError;
use crate::actor::Actor;
use crate::family::{TASK, parent_of};
use crate::past::JournalBlobs;
use crate::{picture, slash};

/// Prompts that may wait. Each is kept in memory; a person queues a few, a script that queues thousands errs.
const QUEUE_LIMIT: usize = 100;
/// Names that an error lists.
const LISTED: usize = 20;
/// Longer than any name for a request that a client makes up.
const KEY_LIMIT: usize = 512;

#[derive(Debug, Clone, Default)]
pub struct PromptRequest {
    pub content: Vec<Block>,
    /// The client's own name for the request; the same one twice is one turn.
    pub key: Option<String>,
    /// Some clients name their messages themselves; that is a key too.
    pub message: Option<MessageId>,
    /// A way of working, by the name that the agent gives it.
    pub agent: Option<String>,
    pub model: Option<Model>,
    pub context: Option<Json>,
    /// For the turn that runs, which is told of it between two steps. Without one it is a prompt like any other; and so it
    /// is if it names another way of working or another model than that turn has, which cannot change in the middle.
    pub steer: bool,
    /// A model wrote it: what would be a command, if a person had, is plain text.
    pub is_models: bool,
}

/// A prompt that is durable: it will run, now or when its turn comes, also after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub turn: TurnId,
    pub message: MessageId,
    /// Of the fact that queued it: a stream that starts after this tells the whole turn.
    pub seq: u64,
    /// How many are before it.
    pub ahead: usize,
    /// The same request had been taken before.
    pub repeated: bool,
    /// The turn that it is meant for, where it is to steer one.
    pub steers: Option<TurnId>,
}

/// How a turn works; `None` leaves it to the agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ways {
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<Model>,
}

impl Actor {
    /// The turn that runs, or the one that is about to, if it works as the request wants to be worked on.
    fn turn_to_steer(&self, agent: &dyn Agent, request: &PromptRequest) -> Option<TurnId> {
        let tip = self.clerk.tip();
        let (turn, ways) = match (&tip.turn, tip.queue.front()) {
            (Some(open), _) => (&open.id, self.turn.as_ref().map(|turn| turn.ways.clone()).unwrap_or_default()),
            (None, Some(next)) => (&next.prompt.turn, self.ways(agent, &next.prompt)),
            (None, None) => return None,
        };
        let usual_mode = || agent.modes().into_iter().next().map(|mode| mode.name);
        let is_mode = request.agent.as_ref().is_none_or(|mode| ways.mode.or_else(usual_mode).as_ref() == Some(mode));
        let is_model = request.model.as_ref().is_none_or(|model| ways.model.unwrap_or_else(|| agent.model()) == *model);
        (is_mode && is_model).then(|| turn.clone())
    }

    /// Hands the turn that runs the prompts that are meant for it. They are its own from then on, also after a crash.
    pub(crate) async fn steer(&mut self, reply: oneshot::Sender<Vec<Steered>>) {
        let _ = reply.send(self.take_steering().await);
    }

    async fn take_steering(&mut self) -> Vec<Steered> {
        let may_take = self.turn.as_ref().is_some_and(|turn| !turn.is_cancelled());
        let tip = self.clerk.tip();
        let Some(into) = tip.turn.as_ref().map(|turn| turn.id.clone()).filter(|_| may_take) else { return Vec::new() };
        let waiting = tip.queue.iter().map(|queued| &queued.prompt);
        let prompts: Vec<PromptQueued> =
            waiting.filter(|prompt| prompt.steers.as_ref() == Some(&into)).cloned().collect();
        if prompts.is_empty() {
            return Vec::new();
        }
        let taken =
            |prompt: &PromptQueued| Draft::agent(PromptSteered { turn: prompt.turn.clone(), into: into.clone() });
        if let Err(error) = self.clerk.append(prompts.iter().map(taken).collect()).await {
            tracing::warn!(session = %self.session, %error, "prompts for the turn that runs wait on");
            return Vec::new();
        }
        let mut steered = Vec::new();
        for prompt in prompts {
            let Prompt { message, content, context, .. } = whole(self.clerk.journal().clone(), prompt).await;
            steered.push(Steered { message, content, context });
        }
        steered
    }

    /// How a prompt's turn is to work: as the prompt says, else as the session does. What the agent no longer knows is
    /// left to it.
    pub(crate) fn ways(&self, agent: &dyn Agent, prompt: &PromptQueued) -> Ways {
        let head = &self.clerk.tip().head;
        let modes = agent.modes();
        let mut mode = [prompt.agent.as_ref(), head.mode.as_ref()].into_iter().flatten();
        let mut model = [prompt.model.as_ref(), head.model.as_ref()].into_iter().flatten();
        // A subagent's is its kind, which its mind knows by itself.
        let is_kind = |mode: &str| parent_of(head).is_some() && head.mode.as_deref() == Some(mode);
        let mode = mode.find(|mode| is_kind(mode) || modes.iter().any(|known| known.name == **mode)).cloned();
        Ways { mode, model: model.find_map(|model| agent.find_model(model)) }
    }

    pub(crate) async fn change(&mut self, mut change: SessionChanged) -> Result<(), SessionError> {
        if let Some(agent) = self.agent.clone() {
            self.check_mode(agent.as_ref(), change.mode.as_deref())?;
            change.model = known_model(agent.as_ref(), change.model)?;
        }
        self.note(Draft::client(change)).await
    }

    /// The agent may have told of a mode that it does not list.
    fn check_mode(&self, agent: &dyn Agent, mode: Option<&str>) -> Result<(), SessionError> {
        let is_current = self.clerk.tip().head.mode.as_deref() == mode;
        if is_current { Ok(()) } else { check_mode(agent, mode) }
    }

    pub(crate) async fn prompt(&mut self, mut request: PromptRequest) -> Result<Accepted, SessionError> {
        if self.clerk.tip().head.deleted {
            return Err(SessionError::NotFound(self.session.clone()));
        }
        if self.clerk.tip().is_copying {
            return Err(SessionError::Busy);
        }
        if !request.is_models && request.key.as_ref().is_some_and(|key| key.starts_with(TASK)) {
            return Err(SessionError::OwnKey(TASK));
        }
        if let Some(earlier) = same_request(self.clerk.journal().clone(), &self.session, &request).await? {
            return Ok(earlier);
        }
        if request.content.is_empty() {
            return Err(SessionError::EmptyPrompt);
        }
        let Some(agent) = self.agent.clone() else {
            let name = self.clerk.tip().head.agent.clone();
            return Err(SessionError::UnknownAgent { name, known: self.known_agents.clone() });
        };
        let workspace = self.clerk.tip().head.workspace.clone();
        if !request.is_models {
            slash::call(&agent, &workspace, &mut request).await;
        }
        self.check_mode(agent.as_ref(), request.agent.as_deref())?;
        request.model = known_model(agent.as_ref(), request.model)?;
        if let Some(given) = request.key.as_ref().map(String::len).filter(|given| *given > KEY_LIMIT) {
            return Err(SessionError::LongKey { given, most: KEY_LIMIT });
        }
        if request.content.clone().iter_mut().flat_map(Block::bodies_mut).any(|body| body.blob().is_some()) {
            return Err(SessionError::Reference);
        }
        request.content = picture::checked(request.content).await?;
        let waiting = self.clerk.tip().queue.len();
        if waiting >= QUEUE_LIMIT {
            return Err(SessionError::QueueFull { waiting });
        }
        let now = tolka_facts::Time::now();
        let turn = self.ids.turn(now);
        let steers = if request.steer { self.turn_to_steer(agent.as_ref(), &request) } else { None };
        let message = request.message.unwrap_or_else(|| self.ids.message(now));
        let queued = PromptQueued {
            turn: turn.clone(),
            message: message.clone(),
            content: request.content,
            key: request.key,
            agent: request.agent,
            model: request.model,
            context: request.context,
            steers: steers.clone(),
        };
        self.append(Draft::client(queued)).await?;
        let ahead = waiting + usize::from(self.turn.is_some());
        Ok(Accepted { turn, message, seq: self.clerk.tip().seq, ahead, repeated: false, steers })
    }
}

pub(crate) fn check_mode(agent: &dyn Agent, mode: Option<&str>) -> Result<(), SessionError> {
    let Some(mode) = mode else { return Ok(()) };
    let modes = agent.modes();
    if modes.iter().any(|known| known.name == mode) {
        return Ok(());
    }
    let known = listed(modes.into_iter().map(|mode| mode.name));
    Err(SessionError::UnknownMode { name: mode.to_owned(), agent: agent.name().to_owned(), known })
}

/// The model that is meant, by its whole name.
pub(crate) fn known_model(agent: &dyn Agent, model: Option<Model>) -> Result<Option<Model>, SessionError> {
    let Some(model) = model else { return Ok(None) };
    if let Some(known) = agent.find_model(&model) {
        return Ok(Some(known));
    }
    let name = |model: &Model| format!("{}/{}", model.provider, model.id);
    let known = listed(agent.models().iter().map(|known| name(&known.model)));
    Err(SessionError::UnknownModel { name: name(&model), agent: agent.name().to_owned(), known })
}

/// Enough of them to choose from.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown = names.take(LISTED).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown}, and {more} more") } else { shown }
}

/// The prompt as the client sent it: a mind knows no blobs.
pub(crate) async fn whole(journal: Arc<dyn Journal>, mut queued: PromptQueued) -> Prompt {
    let filled = tokio::task::spawn_blocking(move || {
        let blobs = JournalBlobs(journal);
        queued.content.iter_mut().flat_map(Block::bodies_mut).for_each(|body| body.fill(&blobs));
        let context = queued.context.map(|context| context.whole(&blobs).into_owned());
        let (turn, message, content, model) = (queued.turn, queued.message, queued.content, queued.model);
        Prompt { turn, message, content, context, model, ..Prompt::default() }
    });
    // It fails only if the runtime is going down, and this task with it.
    filled.await.unwrap_or_default()
}

/// The prompt that the same request became before.
async fn same_request(
    journal: Arc<dyn Journal>,
    session: &SessionId,
    request: &PromptRequest,
) -> Result<Option<Accepted>, JournalError> {
    let key = request.key.iter().map(|key| Mark::Key(key));
    for name in key.chain(request.message.iter().map(Mark::Message)) {
        let Some(seq) = journal.mark(session, &name.to_string()).await? else { continue };
        let page = journal.read(&Scope::Session(session.clone()), seq - 1, 1).await?;
        if let Some(Event::PromptQueued(queued)) = page.first().map(|entry| &entry.fact.event) {
            let (turn, message, steers) = (queued.turn.clone(), queued.message.clone(), queued.steers.clone());
            return Ok(Some(Accepted { turn, message, seq, ahead: 0, repeated: true, steers }));
        }
    }
    Ok(None)
}
