//! The actor of one session: takes commands one at a time, runs one turn at a time, and is the only one
//! who appends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tolka_agent::{Agent, Ended, Mind, Place, Prompt, Said};
use tolka_facts::event::{Failed, FailureKind, PromptDropped, SessionChanged, SessionDeleted, Stop};
use tolka_facts::{Draft, Event, Ids, RequestId, SessionId, Tip, TurnId};
use tolka_journal::JournalError;

use crate::SessionError;
use crate::answer::Answer;
use crate::attendance::Ear;
use crate::clerk::Clerk;
use crate::fork::Copied;
use crate::past::SessionPast;
use crate::prompt::{Accepted, PromptRequest, Ways, whole};
use crate::saving::{DeskOptions, Outcome, Saving, saved, started};
use crate::turn::{RunningTurn, end_turn};

/// A full disk is asked again this often; meanwhile the agent waits.
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// An actor without work is dropped after this long; making it again takes a few milliseconds.
const IDLE: Duration = Duration::from_secs(300);

pub(crate) type Reply<T> = oneshot::Sender<Result<T, SessionError>>;

/// Large ones are boxed: an idle session keeps room for 32 of them.
pub(crate) enum Command {
    Create(Box<Draft>, Reply<()>),
    Copy(Vec<Copied>, Reply<()>),
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
    /// Hears who is there to answer.
    pub(crate) ear: Ear,
    /// Since when nobody is; `None` while somebody is, or nobody looked.
    pub(crate) alone_since: Option<Instant>,
    /// What nobody answered is not decided before; the disk did not let it be.
    pub(crate) patient_until: Instant,
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
            let patience_ends = self.patience_ends();
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
                        (Some(Said::Steering(reply)), Some(_)) => self.steer(reply).await,
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
                () = sleep_until(patience_ends.unwrap_or(idle_at)), if patience_ends.is_some() && !is_blocked => {
                    self.lose_patience().await;
                }
                () = self.ear.rings(), if patience_ends.is_some() => {}
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
        // In a fork that is being made the turn goes on with the next page.
        let is_open = !self.clerk.tip().is_idle() && !self.clerk.tip().is_copying;
        if self.turn.is_none() && !self.clerk.is_blocked() && is_open {
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
            let past = Arc::new(SessionPast::new(self.clerk.journal().clone(), self.session.clone()));
            agent.open(Place { session: self.session.clone(), workspace, turns, past })
        });
        let checkpoint = outcome.and_then(|outcome| outcome.ok()).map(|saved| saved.commit);
        let ways = self.ways(agent.as_ref(), &prompt);
        let title = self.clerk.tip().head.title.clone();
        let Ways { mode, model } = ways.clone();
        let prompt = Prompt { checkpoint, mode, model, title, ..whole(self.clerk.journal().clone(), prompt).await };
        self.turn = Some(RunningTurn::start(mind, prompt, ways, tolka_agent::teller(self.ids.clone())));
    }

    fn can_start(&self) -> bool {
        let tip = self.clerk.tip();
        let is_free = self.turn.is_none() && self.saving.is_none() && tip.is_idle() && !self.clerk.is_blocked();
        is_free && !tip.head.deleted && !tip.is_copying && !tip.queue.is_empty() && self.agent.is_some()
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

    /// Stops the mind, and keeps what it had said. It has really stopped when this returns, with what its tools were doing,
    /// and that is told too: nothing happens after the turn's end is written.
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
            Command::Copy(facts, reply) => answer(reply, self.copy(facts).await),
            Command::Prompt(request, reply) => answer(reply, self.prompt(*request).await),
            Command::DropPrompt(turn, reply) => answer(reply, self.drop_prompt(turn).await),
            Command::Cancel(queue_too, reply) => answer(reply, self.cancel(queue_too).await),
            Command::Answer(request, given, by, reply) => answer(reply, self.answer(&request, *given, by).await),
            Command::Change(change, reply) => answer(reply, self.change(*change).await),
            Command::Delete(reply) => answer(reply, self.delete().await),
            Command::Note(draft, reply) => answer(reply, self.append(*draft).await),
            Command::Tip(reply) => answer(reply, Ok(self.clerk.tip().clone())),
            Command::Shutdown => {}
        }
    }

    async fn copy(&mut self, facts: Vec<Copied>) -> Result<(), SessionError> {
        if self.clerk.tip().head.deleted {
            return Err(SessionError::NotFound(self.session.clone()));
        }
        self.clerk.copy(facts).await
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

/// Pends while no turn runs, so that it can stand in a select.
async fn next_said(turn: &mut Option<RunningTurn>) -> Option<Said> {
    match turn {
        Some(turn) => turn.next().await,
        None => std::future::pending().await,
    }
}

/// A client that went away in the meantime does not want the answer.
fn answer<T>(reply: Reply<T>, result: Result<T, SessionError>) {
    drop(reply.send(result));
}
