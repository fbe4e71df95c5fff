//! The actor of one session: takes commands one at a time, runs one turn at a time, and is the only one
//! who appends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tolka_agent::{Agent, Ended, Mind, NoPast, Place, Prompt, Said};
use tolka_facts::event::{
    Failed, FailureKind, Model, PromptDropped, PromptQueued, SessionChanged, SessionDeleted, Stop,
};
use tolka_facts::{Blobs, Block, Draft, Event, Hash, Ids, Json, MessageId, RequestId, SessionId, Tip, TurnId};
use tolka_journal::{Journal, JournalError, Mark, Scope};

use crate::SessionError;
use crate::answer::Answer;
use crate::clerk::Clerk;
use crate::saving::{DeskOptions, Outcome, Saving, saved, started};
use crate::turn::{RunningTurn, end_turn};

/// Prompts that may wait. Each is kept in memory; a person queues a few, a script that queues thousands errs.
const QUEUE_LIMIT: usize = 100;
/// Longer than any name for a request that a client makes up.
const KEY_LIMIT: usize = 512;
/// A full disk is asked again this often; meanwhile the agent waits.
const RETRY: Duration = Duration::from_millis(500);
/// An actor without work is dropped after this long; making it again takes a few milliseconds.
const IDLE: Duration = Duration::from_secs(300);

pub(crate) type Reply<T> = oneshot::Sender<Result<T, SessionError>>;

/// Large ones are boxed: an idle session keeps room for 32 of them.
pub(crate) enum Command {
    Create(Box<Draft>, Reply<()>),
    Prompt(Box<PromptRequest>, Reply<Accepted>),
    DropPrompt(TurnId, Reply<()>),
    /// `true`: the queue goes as well.
    Cancel(bool, Reply<bool>),
    Answer(RequestId, Box<Answer>, String, Reply<()>),
    Change(Box<SessionChanged>, Reply<()>),
    Delete(Reply<()>),
    Note(Box<Draft>, Reply<()>),
    Tip(Reply<Tip>),
    Shutdown,
}

#[derive(Debug, Clone, Default)]
pub struct PromptRequest {
    pub content: Vec<Block>,
    /// The client's own name for the request; the same one twice is one turn.
    pub key: Option<String>,
    /// Some clients name their messages themselves; that is a key too.
    pub message: Option<MessageId>,
    pub agent: Option<String>,
    pub model: Option<Model>,
    pub context: Option<Json>,
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
}

pub(crate) struct Actor {
    pub(crate) session: SessionId,
    pub(crate) clerk: Clerk,
    /// `None`: it is not configured any more. The session can be read, and its prompts wait.
    pub(crate) agent: Option<Arc<dyn Agent>>,
    /// For the words of an error.
    pub(crate) known_agents: String,
    pub(crate) ids: Arc<Ids>,
    pub(crate) mind: Option<Box<dyn Mind>>,
    pub(crate) turn: Option<RunningTurn>,
    pub(crate) options: DeskOptions,
    /// For the prompt at the head of the queue, before its turn starts.
    pub(crate) saving: Option<Saving>,
    /// How that went, if the disk did not let the turn start: it is not saved again for every try.
    pub(crate) saved: Option<(TurnId, Outcome)>,
    /// A turn that the disk did not let start is tried again then.
    pub(crate) not_before: Instant,
}

impl Actor {
    /// Lives until the desk shuts down or `idle` agrees that nobody needs it any more.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<Command>, idle: impl Fn() -> bool) {
        let mut retry_at = Instant::now();
        let mut idle_at = Instant::now() + IDLE;
        while !self.clerk.is_broken() {
            self.end_lost_turn().await;
            self.stop_stale_save();
            self.start_next().await;
            let deadline = self.turn.as_ref().and_then(|turn| turn.deadline);
            let is_blocked = self.clerk.is_blocked();
            let is_free = self.turn.is_none() && self.saving.is_none() && !is_blocked;
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Shutdown) => return self.shut_down().await,
                    Some(command) => {
                        self.handle(command).await;
                        idle_at = Instant::now() + IDLE;
                    }
                    None => return,
                },
                said = next_said(&mut self.turn), if !is_blocked => {
                    retry_at = Instant::now() + RETRY;
                    match (said, &mut self.turn) {
                        (Some(said), Some(turn)) => self.clerk.hear(turn, said).await,
                        _ => self.finish().await,
                    }
                }
                answer = self.clerk.answer() => self.clerk.land(answer),
                outcome = saved(&mut self.saving) => {
                    let turn = self.saving.take().map(|saving| saving.turn);
                    if let Some(turn) = turn.filter(|turn| self.can_start() && self.is_next(turn)) {
                        self.start(turn, Some(outcome)).await;
                    }
                }
                () = sleep_until(retry_at), if is_blocked => {
                    retry_at = Instant::now() + RETRY;
                    self.clerk.append_or_keep(Vec::new()).await;
                }
                () = sleep_until(self.not_before), if self.can_start() => {}
                () = sleep_until(deadline.unwrap_or(idle_at)), if deadline.is_some() && !is_blocked => {
                    self.abandon(Stop::Cancelled).await;
                }
                () = sleep_until(idle_at), if is_free => {
                    if idle() {
                        return;
                    }
                    idle_at = Instant::now() + IDLE;
                }
            }
        }
    }

    /// A turn that is open and that nobody runs, as a crash leaves it, is over, and says so. Nothing it did is done
    /// again.
    async fn end_lost_turn(&mut self) {
        if self.turn.is_none() && !self.clerk.is_blocked() && !self.clerk.tip().is_idle() {
            let drafts = end_turn(self.clerk.tip(), Ended::stopped(Stop::Interrupted));
            self.clerk.append_or_keep(drafts).await;
        }
    }

    async fn shut_down(&mut self) {
        if self.turn.is_some() {
            self.abandon(Stop::Interrupted).await;
        }
    }

    async fn start_next(&mut self) {
        if !self.can_start() || Instant::now() < self.not_before {
            return;
        }
        let Some(queued) = self.clerk.tip().queue.front() else { return };
        let turn = queued.prompt.turn.clone();
        if let Some((turn, outcome)) = self.saved.take() {
            return self.start(turn, Some(outcome)).await;
        }
        self.saving = Saving::begin(&self.options, &self.clerk.tip().head, &queued.prompt);
        if self.saving.is_none() {
            self.start(turn, None).await;
        }
    }

    async fn start(&mut self, turn: TurnId, outcome: Option<Outcome>) {
        let (Some(queued), Some(agent)) = (self.clerk.tip().queue.front(), self.agent.clone()) else { return };
        let prompt = queued.prompt.clone();
        if let Some(Err(error)) = &outcome {
            tracing::warn!(session = %self.session, %error, "a turn starts without a checkpoint");
        }
        if let Err(error) = self.clerk.append(started(&turn, outcome.as_ref())).await {
            tracing::warn!(session = %self.session, %error, "a turn cannot start yet");
            self.not_before = Instant::now() + RETRY;
            self.saved = outcome.map(|outcome| (turn, outcome));
            return;
        }
        let mind = self.mind.take().unwrap_or_else(|| {
            let turns = self.clerk.tip().head.turns.saturating_sub(1);
            let workspace = self.clerk.tip().head.workspace.clone();
            let past = Arc::new(NoPast);
            agent.open(Place { session: self.session.clone(), workspace, turns, past })
        });
        let checkpoint = outcome.and_then(|outcome| outcome.ok()).map(|saved| saved.commit);
        let head = &self.clerk.tip().head;
        let (mode, title) = (prompt.agent.clone().or_else(|| head.mode.clone()), head.title.clone());
        let prompt = Prompt { checkpoint, mode, title, ..whole(self.clerk.journal().clone(), prompt).await };
        self.turn = Some(RunningTurn::start(mind, prompt, tolka_agent::teller(self.ids.clone())));
    }

    fn can_start(&self) -> bool {
        let tip = self.clerk.tip();
        let is_free = self.turn.is_none() && self.saving.is_none() && tip.is_idle() && !self.clerk.is_blocked();
        is_free && !tip.head.deleted && !tip.queue.is_empty() && self.agent.is_some()
    }

    fn is_next(&self, turn: &TurnId) -> bool {
        self.clerk.tip().queue.front().is_some_and(|queued| queued.prompt.turn == *turn)
    }

    /// A prompt that was dropped, or whose session was deleted, needs no snapshot any more.
    fn stop_stale_save(&mut self) {
        let is_deleted = self.clerk.tip().head.deleted;
        if self.saving.as_ref().is_some_and(|saving| is_deleted || !self.is_next(&saving.turn)) {
            self.saving = None;
        }
        if self.saved.as_ref().is_some_and(|(turn, _)| is_deleted || !self.is_next(turn)) {
            self.saved = None;
        }
    }

    /// The mind has said its last word; its task says how the turn ended.
    async fn finish(&mut self) {
        self.clerk.settle().await;
        if self.clerk.is_blocked() {
            // What has to be ended is known when its last words are durable.
            return;
        }
        let Some(turn) = self.turn.take() else { return };
        let was_cancelled = turn.deadline.is_some();
        let ended = match turn.task.await {
            Ok((mind, ended)) => {
                self.mind = Some(mind);
                ended
            }
            Err(error) => {
                tracing::error!(session = %self.session, %error, "an agent's task ended badly");
                Ended::failed(Failed {
                    kind: FailureKind::Agent,
                    message: "The agent stopped unexpectedly. Send the prompt again; if it happens again, see the log."
                        .to_owned(),
                    code: None,
                    retryable: true,
                    details: None,
                })
            }
        };
        let ended = if was_cancelled && ended.failure.is_some() { Ended::stopped(Stop::Cancelled) } else { ended };
        let drafts = end_turn(self.clerk.tip(), ended);
        self.clerk.append_or_keep(drafts).await;
    }

    /// Drops a mind that does not end by itself. It is made anew for the next turn.
    async fn abandon(&mut self, stop: Stop) {
        self.drop_turn().await;
        let drafts = end_turn(self.clerk.tip(), Ended::stopped(stop));
        self.clerk.append_or_keep(drafts).await;
    }

    /// Stops the mind, and keeps what it had said. It has really stopped when this returns: nothing happens after the
    /// turn's end is written.
    async fn drop_turn(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        turn.task.abort();
        let _ = (&mut turn.task).await;
        self.clerk.hear_out(&mut turn).await;
    }

    pub(crate) async fn append(&mut self, draft: Draft) -> Result<(), SessionError> {
        self.clerk.append(vec![draft]).await
    }

    async fn handle(&mut self, command: Command) {
        self.clerk.settle().await;
        match command {
            Command::Create(draft, reply) => answer(reply, self.append(*draft).await),
            Command::Prompt(request, reply) => answer(reply, self.prompt(*request).await),
            Command::DropPrompt(turn, reply) => answer(reply, self.drop_prompt(turn).await),
            Command::Cancel(queue_too, reply) => answer(reply, self.cancel(queue_too).await),
            Command::Answer(request, given, by, reply) => answer(reply, self.answer(&request, *given, by).await),
            Command::Change(change, reply) => answer(reply, self.append(Draft::client(*change)).await),
            Command::Delete(reply) => answer(reply, self.delete().await),
            Command::Note(draft, reply) => answer(reply, self.append(*draft).await),
            Command::Tip(reply) => answer(reply, Ok(self.clerk.tip().clone())),
            Command::Shutdown => {}
        }
    }

    async fn prompt(&mut self, request: PromptRequest) -> Result<Accepted, SessionError> {
        if self.clerk.tip().head.deleted {
            return Err(SessionError::NotFound(self.session.clone()));
        }
        if let Some(earlier) = same_request(self.clerk.journal().clone(), &self.session, &request).await? {
            return Ok(earlier);
        }
        if request.content.is_empty() {
            return Err(SessionError::EmptyPrompt);
        }
        if self.agent.is_none() {
            let name = self.clerk.tip().head.agent.clone();
            return Err(SessionError::UnknownAgent { name, known: self.known_agents.clone() });
        }
        if let Some(given) = request.key.as_ref().map(String::len).filter(|given| *given > KEY_LIMIT) {
            return Err(SessionError::LongKey { given, most: KEY_LIMIT });
        }
        if request.content.clone().iter_mut().flat_map(Block::bodies_mut).any(|body| body.blob().is_some()) {
            return Err(SessionError::Reference);
        }
        let waiting = self.clerk.tip().queue.len();
        if waiting >= QUEUE_LIMIT {
            return Err(SessionError::QueueFull { waiting });
        }
        let now = tolka_facts::Time::now();
        let turn = self.ids.turn(now);
        let message = request.message.unwrap_or_else(|| self.ids.message(now));
        let queued = PromptQueued {
            turn: turn.clone(),
            message: message.clone(),
            content: request.content,
            key: request.key,
            agent: request.agent,
            model: request.model,
            context: request.context,
            steers: None,
        };
        self.append(Draft::client(queued)).await?;
        let ahead = waiting + usize::from(self.turn.is_some());
        Ok(Accepted { turn, message, seq: self.clerk.tip().seq, ahead, repeated: false })
    }

    async fn drop_prompt(&mut self, turn: TurnId) -> Result<(), SessionError> {
        if !self.clerk.tip().queue.iter().any(|queued| queued.prompt.turn == turn) {
            return Err(SessionError::NotQueued(turn));
        }
        self.append(Draft::client(PromptDropped { turn })).await
    }

    async fn cancel(&mut self, queue_too: bool) -> Result<bool, SessionError> {
        let starting = self.saving.as_ref().map(|saving| saving.turn.clone()).filter(|turn| self.is_next(turn));
        if queue_too {
            let waiting = self.clerk.tip().queue.iter().map(|queued| queued.prompt.turn.clone());
            let waiting: Vec<TurnId> = waiting.filter(|turn| starting.as_ref() != Some(turn)).collect();
            for turn in waiting {
                self.append(Draft::client(PromptDropped { turn })).await?;
            }
        }
        if let Some(turn) = starting {
            return self.cancel_start(turn).await.map(|()| true);
        }
        let Some(turn) = &mut self.turn else { return Ok(false) };
        turn.cancel();
        let withdrawn = self.clerk.tip().turn.as_ref().map(|turn| turn.withdraw_asks("cancel")).unwrap_or_default();
        for draft in &withdrawn {
            match &draft.event {
                Event::PermissionAnswered(e) => turn.permission_answered(&e.request, None),
                Event::QuestionAnswered(e) => turn.question_answered(&e.request, None),
                _ => {}
            }
        }
        self.clerk.append_or_keep(withdrawn).await;
        Ok(true)
    }

    /// For clients a prompt whose snapshot is being taken is a turn that has begun: it ends like one.
    async fn cancel_start(&mut self, turn: TurnId) -> Result<(), SessionError> {
        self.clerk.append(started(&turn, None)).await?;
        self.saving = None;
        let drafts = end_turn(self.clerk.tip(), Ended::stopped(Stop::Cancelled));
        self.clerk.append_or_keep(drafts).await;
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), SessionError> {
        if self.clerk.tip().head.deleted {
            return Err(SessionError::NotFound(self.session.clone()));
        }
        self.drop_turn().await;
        let mut drafts = end_turn(self.clerk.tip(), Ended::stopped(Stop::Cancelled));
        drafts.push(Draft::client(SessionDeleted {}));
        match self.clerk.append(drafts.clone()).await {
            // What the agent told and the disk refused would keep a full disk full: whoever deletes wants it gone.
            Err(SessionError::Journal(JournalError::DiskFull { .. })) if self.clerk.is_blocked() => {
                self.clerk.drop_backlog();
                self.clerk.append(drafts).await
            }
            result => result,
        }
    }
}

/// The prompt as the client sent it: a mind knows no blobs.
async fn whole(journal: Arc<dyn Journal>, mut queued: PromptQueued) -> Prompt {
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
            let (turn, message) = (queued.turn.clone(), queued.message.clone());
            return Ok(Some(Accepted { turn, message, seq, ahead: 0, repeated: true }));
        }
    }
    Ok(None)
}

/// Pends while no turn runs, so that it can stand in a select.
async fn next_said(turn: &mut Option<RunningTurn>) -> Option<Said> {
    match turn {
        Some(turn) => turn.next().await,
        None => std::future::pending().await,
    }
}

/// Blobs of the journal, where blocking is fine.
struct JournalBlobs(Arc<dyn Journal>);

impl Blobs for JournalBlobs {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.0.blob(hash).ok().flatten()
    }
}

/// A client that went away in the meantime does not want the answer.
fn answer<T>(reply: Reply<T>, result: Result<T, SessionError>) {
    drop(reply.send(result));
}
