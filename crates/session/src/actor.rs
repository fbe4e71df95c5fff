//! The actor of one session: takes commands one at a time, runs one turn at a time, and is the only one
//! who appends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tolka_agent::{Agent, Ended, Mind, Place, Prompt, Said};
use tolka_facts::event::{
    Failed, FailureKind, Model, PromptDropped, PromptQueued, SessionChanged, SessionDeleted, Stop, TurnStarted,
};
use tolka_facts::{Block, Draft, Event, Ids, Json, MessageId, RequestId, SessionId, Tip, TurnId};
use tolka_journal::{JournalError, Scope};

use crate::SessionError;
use crate::answer::Answer;
use crate::ledger::Ledger;
use crate::turn::{RunningTurn, end_turn, withdraw_asks};

/// Prompts that may wait. Each is kept in memory; a person queues a few, a script that queues thousands errs.
const QUEUE_LIMIT: usize = 100;
/// A group commit of the journal takes about as many.
const BATCH: usize = 256;
/// A full disk is asked again this often; meanwhile the agent waits.
const RETRY: Duration = Duration::from_millis(500);
/// An actor without work is dropped after this long; making it again takes a few milliseconds.
const IDLE: Duration = Duration::from_secs(300);

pub(crate) type Reply<T> = oneshot::Sender<Result<T, SessionError>>;

pub(crate) enum Command {
    Create(Draft, Reply<()>),
    Prompt(PromptRequest, Reply<Accepted>),
    DropPrompt(TurnId, Reply<()>),
    /// `true`: the queue goes as well.
    Cancel(bool, Reply<bool>),
    Answer(RequestId, Answer, String, Reply<()>),
    Change(SessionChanged, Reply<()>),
    Delete(Reply<()>),
    Note(Draft, Reply<()>),
    Tip(Reply<Tip>),
    Shutdown(oneshot::Sender<()>),
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
    pub(crate) ledger: Ledger,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) mind: Option<Box<dyn Mind>>,
    pub(crate) turn: Option<RunningTurn>,
    /// Told by the agent and refused by the disk; they go first when it has room again.
    pub(crate) backlog: Vec<Draft>,
}

impl Actor {
    /// Lives until the desk shuts down or `idle` agrees that nobody needs it any more.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<Command>, idle: impl Fn() -> bool) {
        self.recover().await;
        let mut retry_at = Instant::now();
        let mut idle_at = Instant::now() + IDLE;
        loop {
            self.start_next().await;
            let deadline = self.turn.as_ref().and_then(|turn| turn.deadline);
            let is_blocked = !self.backlog.is_empty();
            let is_free = self.turn.is_none() && !is_blocked;
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Shutdown(done)) => {
                        self.shut_down().await;
                        let _ = done.send(());
                        return;
                    }
                    Some(command) => {
                        self.handle(command).await;
                        idle_at = Instant::now() + IDLE;
                    }
                    None => return,
                },
                said = next_said(&mut self.turn), if !is_blocked => {
                    retry_at = Instant::now() + RETRY;
                    match said {
                        Some(said) => self.hear(said).await,
                        None => self.finish().await,
                    }
                }
                () = sleep_until(retry_at), if is_blocked => {
                    retry_at = Instant::now() + RETRY;
                    let backlog = std::mem::take(&mut self.backlog);
                    self.append_or_keep(backlog).await;
                }
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

    /// After a crash: the turn that was open is over, and says so. Nothing it did is done again.
    async fn recover(&mut self) {
        let drafts = end_turn(&self.ledger.tip, Ended::stopped(Stop::Interrupted));
        self.append_or_keep(drafts).await;
    }

    async fn shut_down(&mut self) {
        if self.turn.is_some() {
            self.abandon(Stop::Interrupted).await;
        }
    }

    async fn start_next(&mut self) {
        if self.turn.is_some() || !self.backlog.is_empty() || self.ledger.tip.head.deleted {
            return;
        }
        let Some(queued) = self.ledger.tip.queue.front() else { return };
        let (id, prompt) = (queued.prompt.turn.clone(), queued.prompt.clone());
        let started = Draft::tolka(TurnStarted { turn: id, checkpoint: None });
        if let Err((_, error)) = self.ledger.append(vec![started]).await {
            tracing::warn!(session = %self.session, %error, "a turn cannot start yet");
            tokio::time::sleep(RETRY).await;
            return;
        }
        let mind = self.mind.take().unwrap_or_else(|| {
            let turns = self.ledger.tip.head.turns.saturating_sub(1);
            let workspace = self.ledger.tip.head.workspace.clone();
            self.agent.open(Place { session: self.session.clone(), workspace, turns })
        });
        let prompt = Prompt { content: prompt.content, context: prompt.context, model: prompt.model };
        self.turn = Some(RunningTurn::start(mind, prompt, tolka_agent::teller(self.ids.clone())));
    }

    /// Takes what was said and whatever else is ready, so that a burst is one commit.
    async fn hear(&mut self, said: Said) {
        let Some(turn) = &mut self.turn else { return };
        let (mut drafts, mut settled) = (Vec::new(), Vec::new());
        turn.take(said, &mut drafts, &mut settled);
        while drafts.len() < BATCH
            && let Ok(said) = turn.said.try_recv()
        {
            turn.take(said, &mut drafts, &mut settled);
        }
        self.append_or_keep(drafts).await;
        if self.backlog.is_empty() {
            for done in settled {
                let _ = done.send(());
            }
        }
        // Otherwise those who wait are let go without an answer: what they told is not durable.
    }

    /// The mind has said its last word; its task says how the turn ended.
    async fn finish(&mut self) {
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
        let drafts = end_turn(&self.ledger.tip, ended);
        self.append_or_keep(drafts).await;
    }

    /// Drops a mind that does not end by itself. It is made anew for the next turn.
    async fn abandon(&mut self, stop: Stop) {
        let Some(mut turn) = self.turn.take() else { return };
        turn.task.abort();
        let (mut drafts, mut settled) = (Vec::new(), Vec::new());
        while let Ok(said) = turn.said.try_recv() {
            turn.take(said, &mut drafts, &mut settled);
        }
        self.append_or_keep(drafts).await;
        let drafts = end_turn(&self.ledger.tip, Ended::stopped(stop));
        self.append_or_keep(drafts).await;
    }

    async fn append_or_keep(&mut self, drafts: Vec<Draft>) {
        if !self.backlog.is_empty() {
            self.backlog.extend(drafts);
            return;
        }
        if let Err((drafts, error)) = self.ledger.append(drafts).await {
            tracing::error!(session = %self.session, %error, "facts wait for the disk");
            self.backlog = drafts;
        }
    }

    pub(crate) async fn append(&mut self, draft: Draft) -> Result<(), SessionError> {
        self.ledger.append(vec![draft]).await.map_err(|(_, error)| error.into())
    }

    async fn handle(&mut self, command: Command) {
        match command {
            Command::Create(draft, reply) => answer(reply, self.append(draft).await),
            Command::Prompt(request, reply) => answer(reply, self.prompt(request).await),
            Command::DropPrompt(turn, reply) => answer(reply, self.drop_prompt(turn).await),
            Command::Cancel(queue_too, reply) => answer(reply, self.cancel(queue_too).await),
            Command::Answer(request, given, by, reply) => answer(reply, self.answer(&request, given, by).await),
            Command::Change(change, reply) => answer(reply, self.append(Draft::client(change)).await),
            Command::Delete(reply) => answer(reply, self.delete().await),
            Command::Note(draft, reply) => answer(reply, self.append(draft).await),
            Command::Tip(reply) => answer(reply, Ok(self.ledger.tip.clone())),
            Command::Shutdown(done) => drop(done),
        }
    }

    async fn prompt(&mut self, request: PromptRequest) -> Result<Accepted, SessionError> {
        if self.ledger.tip.head.deleted {
            return Err(SessionError::NotFound(self.session.clone()));
        }
        if let Some(earlier) = self.same_request(&request).await? {
            return Ok(earlier);
        }
        if request.content.is_empty() {
            return Err(SessionError::EmptyPrompt);
        }
        let waiting = self.ledger.tip.queue.len();
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
        };
        self.append(Draft::client(queued)).await?;
        let ahead = waiting + usize::from(self.turn.is_some());
        Ok(Accepted { turn, message, seq: self.ledger.tip.seq, ahead, repeated: false })
    }

    async fn same_request(&self, request: &PromptRequest) -> Result<Option<Accepted>, JournalError> {
        let key = request.key.iter().map(|key| format!("key:{key}"));
        let names = key.chain(request.message.iter().map(|message| format!("message:{message}")));
        for name in names {
            let Some(seq) = self.ledger.journal().mark(&self.session, &name).await? else { continue };
            let page = self.ledger.journal().read(&Scope::Session(self.session.clone()), seq - 1, 1).await?;
            if let Some(Event::PromptQueued(queued)) = page.first().map(|entry| &entry.fact.event) {
                let (turn, message) = (queued.turn.clone(), queued.message.clone());
                return Ok(Some(Accepted { turn, message, seq, ahead: 0, repeated: true }));
            }
        }
        Ok(None)
    }

    async fn drop_prompt(&mut self, turn: TurnId) -> Result<(), SessionError> {
        if !self.ledger.tip.queue.iter().any(|queued| queued.prompt.turn == turn) {
            return Err(SessionError::NotQueued(turn));
        }
        self.append(Draft::client(PromptDropped { turn })).await
    }

    async fn cancel(&mut self, queue_too: bool) -> Result<bool, SessionError> {
        if queue_too {
            let waiting: Vec<TurnId> = self.ledger.tip.queue.iter().map(|queued| queued.prompt.turn.clone()).collect();
            for turn in waiting {
                self.append(Draft::client(PromptDropped { turn })).await?;
            }
        }
        let Some(turn) = &mut self.turn else { return Ok(false) };
        turn.cancel();
        let withdrawn = withdraw_asks(&self.ledger.tip, "cancel");
        for draft in &withdrawn {
            match &draft.event {
                Event::PermissionAnswered(e) => turn.permission_answered(&e.request, None),
                Event::QuestionAnswered(e) => turn.question_answered(&e.request, None),
                _ => {}
            }
        }
        self.append_or_keep(withdrawn).await;
        Ok(true)
    }

    async fn delete(&mut self) -> Result<(), SessionError> {
        if self.ledger.tip.head.deleted {
            return Err(SessionError::NotFound(self.session.clone()));
        }
        if self.turn.is_some() {
            self.abandon(Stop::Cancelled).await;
        }
        self.append(Draft::client(SessionDeleted {})).await
    }
}

/// Pends while no turn runs, so that it can stand in a select.
async fn next_said(turn: &mut Option<RunningTurn>) -> Option<Said> {
    match turn {
        Some(turn) => turn.said.recv().await,
        None => std::future::pending().await,
    }
}

/// A client that went away in the meantime does not want the answer.
fn answer<T>(reply: Reply<T>, result: Result<T, SessionError>) {
    drop(reply.send(result));
}
