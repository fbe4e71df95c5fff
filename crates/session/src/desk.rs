mod removal;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tolka_agent::{Agent, Agents};
use tolka_facts::event::{Model, Parent, SessionChanged, SessionChosen, SessionCreated};
use tolka_facts::{Draft, Event, Ids, RequestId, SessionId, Time, Tip, TurnId};
use tolka_journal::{Journal, Mark, Scope, SessionQuery};

pub use removal::Purge;

use crate::SessionError;
use crate::actor::{Actor, Command, Reply};
use crate::answer::Answer;
use crate::attendance::{Attendance, Ear, Place, Room};
use crate::clerk::Clerk;
use crate::grounds::Grounds;
use crate::ledger::Ledger;
use crate::prompt::{Accepted, PromptRequest, check_mode, known_model};
use crate::saving::DeskOptions;

/// Commands that may wait for one actor. Each sender waits for its answer, so this bounds callers, not work.
const COMMANDS: usize = 64;

/// What a session is called until somebody names it.
pub const UNNAMED: &str = tolka_agent::UNNAMED;

/// All live sessions.
#[derive(Clone)]
pub struct Desk(Arc<Inner>);

struct Inner {
    journal: Arc<dyn Journal>,
    agents: Agents,
    ids: Arc<Ids>,
    options: DeskOptions,
    room: Arc<Room>,
    grounds: Arc<Grounds>,
    /// A std mutex: it is held for a look-up, never over an await.
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    actors: HashMap<SessionId, mpsc::Sender<Command>>,
    /// Forks that are being made.
    copying: HashSet<SessionId>,
    /// Owns the actors' tasks, and others; shutting down waits for them.
    tasks: JoinSet<()>,
    closed: bool,
    /// Workspaces of sessions that are about to be made.
    entered: Vec<PathBuf>,
    /// Folders of forks that are going.
    leaving: Vec<PathBuf>,
}

impl Live {
    /// A way to the actor, unless it has ended: then it is made again.
    fn open(&self, session: &SessionId) -> Option<mpsc::Sender<Command>> {
        self.actors.get(session).filter(|commands| !commands.is_closed()).cloned()
    }
}

#[derive(Debug, Clone, Default)]
pub struct NewSession {
    pub workspace: String,
    /// `None`: the server's first.
    pub agent: Option<String>,
    pub title: Option<String>,
    pub mode: Option<String>,
    pub model: Option<Model>,
    pub parent: Option<Parent>,
}

impl Desk {
    pub fn new(journal: Arc<dyn Journal>, agents: Agents, ids: Arc<Ids>) -> Self {
        Desk::with_options(journal, agents, ids, DeskOptions::default())
    }

    pub fn with_options(journal: Arc<dyn Journal>, agents: Agents, ids: Arc<Ids>, options: DeskOptions) -> Self {
        let (room, grounds) = (Room::new(), Arc::default());
        Desk(Arc::new(Inner { journal, agents, ids, options, room, grounds, live: Mutex::default() }))
    }

    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    pub fn agents(&self) -> &Agents {
        &self.0.agents
    }

    pub(crate) fn options(&self) -> &DeskOptions {
        &self.0.options
    }

    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.0.room
    }

    pub(crate) fn grounds(&self) -> &Grounds {
        &self.0.grounds
    }

    pub(crate) fn new_session_id(&self) -> SessionId {
        self.0.ids.session(Time::now())
    }

    /// Takes up what a crash left: open turns end as interrupted, queues go on, forks that were not finished go, and
    /// sessions hear which files a restore moved beside them.
    pub async fn recover(&self) -> Result<usize, SessionError> {
        let rows = self.0.journal.sessions(SessionQuery { open: true, ..SessionQuery::default() }).await?;
        let mut recovered = 0;
        for row in rows.iter().filter(|row| row.head.busy || row.head.queued > 0 || row.head.processes > 0) {
            match self.tip(&row.head.id).await {
                Ok(tip) if tip.is_copying && !self.live().copying.contains(&row.head.id) => {
                    self.discard(&row.head.id).await;
                }
                Ok(_) => recovered += 1,
                Err(error) => tracing::error!(session = %row.head.id, %error, "a session could not be taken up"),
            }
        }
        let desk = self.clone();
        // Nobody waits for it: a git that outlived a killed server may still write there.
        self.spawn_task(async move {
            if let Err(error) = desk.sweep_forks().await {
                tracing::warn!(%error, "folders of forks that are gone may be left");
            }
        })?;
        if let Err(error) = self.tell_what_was_not_told().await {
            tracing::warn!(%error, "sessions may not know that a restore moved files");
        }
        Ok(recovered)
    }

    pub async fn create(&self, new: NewSession) -> Result<Tip, SessionError> {
        let agent = self.agent(new.agent.as_deref())?;
        check_mode(agent.as_ref(), new.mode.as_deref())?;
        let model = known_model(agent.as_ref(), new.model)?;
        let created = SessionCreated {
            workspace: new.workspace,
            agent: agent.name().to_owned(),
            title: new.title.unwrap_or_else(|| UNNAMED.to_owned()),
            mode: new.mode,
            model: Some(model.unwrap_or_else(|| agent.model())),
            parent: new.parent,
        };
        self.begin(Draft::client(created)).await
    }

    /// A session from its first fact.
    pub(crate) async fn begin(&self, created: Draft) -> Result<Tip, SessionError> {
        let Event::SessionCreated(new) = &created.event else { return Err(SessionError::EmptyPrompt) };
        let agent = self.agent(Some(&new.agent))?;
        let _entered = self.enter(Path::new(&new.workspace))?;
        let id = self.new_session_id();
        let ledger = Ledger::new(self.0.journal.clone(), id.clone());
        let commands = self.spawn(&id, ledger, Some(agent))?;
        call(&commands, |reply| Command::Create(Box::new(created), reply)).await?;
        call(&commands, Command::Tip).await
    }

    pub async fn prompt(&self, session: &SessionId, request: PromptRequest) -> Result<Accepted, SessionError> {
        self.call(session, |reply| Command::Prompt(Box::new(request), reply)).await
    }

    pub async fn drop_prompt(&self, session: &SessionId, turn: TurnId) -> Result<(), SessionError> {
        self.call(session, |reply| Command::DropPrompt(turn, reply)).await
    }

    /// Whether a turn was running. It ends within a second, and with it what its subagents do.
    pub async fn cancel(&self, session: &SessionId, queue_too: bool) -> Result<bool, SessionError> {
        self.call(session, |reply| Command::Cancel(queue_too, reply)).await
    }

    pub async fn answer(
        &self,
        session: &SessionId,
        request: RequestId,
        answer: Answer,
        by: String,
    ) -> Result<(), SessionError> {
        let asker = self.asker(session, &request).await?;
        self.call(&asker, |reply| Command::Answer(request, Box::new(answer), by, reply)).await
    }

    /// Somebody who could answer looks on, for as long as what is given is held: requests wait longer then.
    pub fn attend(&self, place: Place) -> Attendance {
        self.0.room.attend(place)
    }

    pub async fn change(&self, session: &SessionId, change: SessionChanged) -> Result<(), SessionError> {
        self.call(session, |reply| Command::Change(Box::new(change), reply)).await
    }

    /// The state after the last durable fact.
    pub async fn tip(&self, session: &SessionId) -> Result<Tip, SessionError> {
        let tip = self.call(session, Command::Tip).await?;
        if tip.head.deleted { Err(SessionError::NotFound(session.clone())) } else { Ok(tip) }
    }

    /// A fact of a session that no turn tells: it may come at any time.
    pub async fn tell(&self, session: &SessionId, draft: Draft) -> Result<(), SessionError> {
        self.call(session, |reply| Command::Note(Box::new(draft), reply)).await
    }

    /// A fact about the server itself.
    pub async fn note(&self, event: impl Into<Event>) -> Result<(), SessionError> {
        let (draft, server) = (Draft::tolka(event), SessionId::server());
        let commands = self.open(&server).await?;
        call(&commands, |reply| Command::Note(Box::new(draft), reply)).await
    }

    /// Makes a session the current one of those clients that have one, or none.
    pub async fn choose(&self, session: Option<SessionId>) -> Result<(), SessionError> {
        let (draft, server) = (Draft::client(SessionChosen { session }), SessionId::server());
        let commands = self.open(&server).await?;
        call(&commands, |reply| Command::Note(Box::new(draft), reply)).await
    }

    /// The session that was last chosen. It may be deleted by now.
    pub async fn chosen(&self) -> Result<Option<SessionId>, SessionError> {
        let (journal, server) = (self.journal(), SessionId::server());
        let Some(seq) = journal.mark(&server, &Mark::Chosen.to_string()).await? else { return Ok(None) };
        let page = journal.read(&Scope::Session(server), seq - 1, 1).await?;
        Ok(match page.first().map(|entry| &entry.fact.event) {
            Some(Event::SessionChosen(chosen)) => chosen.session.clone(),
            _ => None,
        })
    }

    /// Ends every turn as interrupted, and waits until all is written.
    pub async fn shut_down(&self) {
        let (actors, mut tasks) = {
            let mut live = self.live();
            live.closed = true;
            (std::mem::take(&mut live.actors), std::mem::take(&mut live.tasks))
        };
        for commands in actors.into_values() {
            // An actor that has ended by itself needs no telling.
            let _ = commands.send(Command::Shutdown).await;
        }
        while tasks.join_next().await.is_some() {}
    }

    pub(crate) async fn call<T>(
        &self,
        session: &SessionId,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, SessionError> {
        // The server's own journal is nobody's session.
        if session.is_server() {
            return Err(SessionError::NotFound(session.clone()));
        }
        let commands = self.open(session).await?;
        call(&commands, command).await
    }

    pub(crate) fn is_live(&self, session: &SessionId) -> bool {
        self.live().open(session).is_some()
    }

    /// Whether somebody looks at this session, and not only at all that there are.
    pub(crate) fn is_attended(&self, session: &SessionId) -> bool {
        self.0.room.has(&Place::Session(session.clone()))
    }

    async fn open(&self, session: &SessionId) -> Result<mpsc::Sender<Command>, SessionError> {
        if let Some(commands) = self.live().open(session) {
            return Ok(commands);
        }
        let ledger = Ledger::load(self.0.journal.clone(), session.clone()).await?;
        if ledger.tip.seq == 0 && !session.is_server() {
            return Err(SessionError::NotFound(session.clone()));
        }
        // An agent that is no longer configured must not make a session unreadable; its prompts wait until it is.
        let agent = self.agent(Some(&ledger.tip.head.agent)).ok();
        self.spawn(session, ledger, agent)
    }

    /// The actor of a fork that is about to be made.
    pub(crate) fn spawn_copy(&self, id: &SessionId, agent: &str) -> Result<mpsc::Sender<Command>, SessionError> {
        self.spawn(id, Ledger::new(self.0.journal.clone(), id.clone()), self.agent(Some(agent)).ok())
    }

    /// Says that a fork is being made, for as long as what is given is held.
    pub(crate) fn copies(&self, id: &SessionId) -> Copying {
        self.live().copying.insert(id.clone());
        Copying { desk: self.clone(), id: id.clone() }
    }

    /// Keeps the folder of a fork where a session is about to be made, until it is told. Refused where it is going.
    pub(crate) fn enter(&self, workspace: &Path) -> Result<Entered, SessionError> {
        let mut live = self.live();
        if live.leaving.iter().any(|folder| workspace.starts_with(folder)) {
            return Err(SessionError::FolderGoes(workspace.display().to_string()));
        }
        live.entered.push(workspace.to_owned());
        Ok(Entered { desk: self.clone(), workspace: workspace.to_owned() })
    }

    /// Nobody gets into a folder from now on; `None` if somebody does already.
    pub(crate) fn leave(&self, folder: &Path) -> Option<Leaving> {
        let mut live = self.live();
        if live.entered.iter().any(|workspace| workspace.starts_with(folder)) {
            return None;
        }
        live.leaving.push(folder.to_owned());
        Some(Leaving { desk: self.clone(), folder: folder.to_owned() })
    }

    /// Work that goes on if nobody waits for it; shutting down does.
    pub(crate) fn spawn_task(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), SessionError> {
        let mut live = self.live();
        if live.closed {
            return Err(SessionError::ShuttingDown);
        }
        while live.tasks.try_join_next().is_some() {}
        live.tasks.spawn(work);
        Ok(())
    }

    /// Two may load the same session at once; the first to come here makes the actor.
    fn spawn(
        &self,
        session: &SessionId,
        ledger: Ledger,
        agent: Option<Arc<dyn Agent>>,
    ) -> Result<mpsc::Sender<Command>, SessionError> {
        let mut live = self.live();
        if live.closed {
            return Err(SessionError::ShuttingDown);
        }
        if let Some(commands) = live.open(session) {
            return Ok(commands);
        }
        let (commands, inbox) = mpsc::channel(COMMANDS);
        live.actors.insert(session.clone(), commands.clone());
        let actor = Actor {
            session: session.clone(),
            clerk: Clerk::new(ledger),
            agent,
            ids: self.0.ids.clone(),
            known_agents: self.agent_names(),
            mind: None,
            turn: None,
            options: self.0.options.clone(),
            saving: None,
            saved: None,
            closing: None,
            left_out: Vec::new(),
            grounds: self.0.grounds.clone(),
            job: None,
            desk: self.clone(),
            not_before: Instant::now(),
            ear: Ear::new(self.0.room.clone(), session.clone()),
            alone_since: None,
            patient_until: Instant::now(),
        };
        while live.tasks.try_join_next().is_some() {}
        let (desk, id) = (self.clone(), session.clone());
        live.tasks.spawn(actor.run(inbox, move || desk.let_go(&id)));
        Ok(commands)
    }

    /// Whether the actor may end: nobody else holds a way to it, and nobody can get one from now on.
    fn let_go(&self, session: &SessionId) -> bool {
        let mut live = self.live();
        let is_unused = live.actors.get(session).is_none_or(|commands| commands.strong_count() == 1);
        if is_unused {
            live.actors.remove(session);
        }
        is_unused
    }

    fn agent(&self, name: Option<&str>) -> Result<Arc<dyn Agent>, SessionError> {
        let agents = &self.0.agents;
        let found = match name {
            Some(name) => agents.iter().find(|agent| agent.name() == name),
            None => agents.first(),
        };
        found.cloned().ok_or_else(|| SessionError::UnknownAgent {
            name: name.unwrap_or_default().to_owned(),
            known: self.agent_names(),
        })
    }

    fn agent_names(&self) -> String {
        self.0.agents.iter().map(|agent| agent.name()).collect::<Vec<_>>().join(", ")
    }

    fn live(&self) -> std::sync::MutexGuard<'_, Live> {
        // Nothing panics while holding it; a poisoned lock would still guard sound data.
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fork that is being made.
pub(crate) struct Copying {
    desk: Desk,
    id: SessionId,
}

impl Drop for Copying {
    fn drop(&mut self) {
        self.desk.live().copying.remove(&self.id);
    }
}

/// A session is about to be made in this folder.
pub(crate) struct Entered {
    desk: Desk,
    workspace: PathBuf,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let entered = &mut self.desk.live().entered;
        if let Some(at) = entered.iter().position(|workspace| *workspace == self.workspace) {
            entered.swap_remove(at);
        }
    }
}

/// This folder is about to go.
pub(crate) struct Leaving {
    desk: Desk,
    folder: PathBuf,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.desk.live().leaving.retain(|folder| *folder != self.folder);
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("live", &self.live().actors.len()).finish_non_exhaustive()
    }
}

pub(crate) async fn call<T>(
    commands: &mpsc::Sender<Command>,
    command: impl FnOnce(Reply<T>) -> Command,
) -> Result<T, SessionError> {
    let (reply, answer) = oneshot::channel();
    commands.send(command(reply)).await.map_err(|_| SessionError::ShuttingDown)?;
    answer.await.unwrap_or(Err(SessionError::ShuttingDown))
}
