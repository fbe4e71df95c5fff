//! The actor of one session: takes commands one at a time, runs one turn at a time, and is the only one
//! who appends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tolka_agent::{Agent, Ended, Mind, Place, Prompt, Said};
use tolka_facts::event::{MessageHidden, PromptDropped, SessionChanged, SessionDeleted, Stop};
use tolka_facts::{Draft, Event, Ids, RequestId, SessionId, Tip, TurnId};
use tolka_journal::JournalError;
use tolka_workspace::checkpoint::LeftOut;

use crate::answer::Answer;
use crate::attendance::Ear;
use crate::clerk::Clerk;
use crate::closing::{Closing, closed};
use crate::ending::{PARTING, STOPPING};
use crate::fork::Copied;
use crate::grounds::Grounds;
use crate::past::SessionPast;
use crate::processes;
use crate::prompt::{Accepted, PromptRequest, Ways, whole};
use crate::rewind::{Approval, History, Job, Order, Rewinding, progress};
use crate::saving::{Begun, DeskOptions, Saving, saved, started};
use crate::turn::{GRACE, RunningTurn, end_turn};
use crate::{Desk, SessionError};

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
    Rewind(Box<Order>, Reply<Rewinding>),
    Approve(Option<String>, Reply<Approval>),
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
    pub(crate) saved: Option<(TurnId, Begun)>,
    /// Of the turn that has ended its work.
    pub(crate) closing: Option<Closing>,
    /// The files that people were last told are in no snapshot.
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) grounds: Arc<Grounds>,
    /// A rewind or an approval that is under way.
    pub(crate) job: Option<Job>,
    /// To tell other sessions.
    pub(crate) desk: Desk,
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
        self.drop_orphans().await;
        let mut retry_at = Instant::now();
        let mut idle_at = Instant::now() + IDLE;
        self.end_lost_processes().await;
        while !self.clerk.is_broken() {
            self.end_lost_turn().await;
            self.resume_rewind();
            self.stop_stale_save();
            self.start_next().await;
            let deadline = self.turn.as_ref().and_then(|turn| turn.deadline);
            let is_blocked = self.clerk.is_blocked();
            let is_free = self.is_at_rest() && !is_blocked;
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
                begun = saved(&mut self.saving) => {
                    let turn = self.saving.take().map(|saving| saving.turn);
                    if let Some(turn) = turn.filter(|turn| self.can_start() && self.is_next(turn)) {
                        self.start(turn, Some(begun)).await;
                    }
                }
                closed = closed(&mut self.closing), if !is_blocked => self.close(closed).await,
                done = progress(&mut self.job), if !is_blocked => self.advance(done).await,
                () = sleep_until(retry_at), if is_blocked => {
                    retry_at = Instant::now() + RETRY;
                    self.clerk.append_or_keep(Vec::new()).await;
                }
                () = sleep_until(self.not_before), if self.can_start() => {}
                () = sleep_until(deadline.unwrap_or(idle_at)), if deadline.is_some() && !is_blocked => {
                    self.abandon(Stop::Cancelled, PARTING).await;
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

    /// Nothing runs, and nothing is being saved or restored.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.turn.is_none() && self.saving.is_none() && self.closing.is_none() && self.job.is_none()
    }

    async fn shut_down(&mut self) {
        if self.turn.is_some() {
            self.abandon(Stop::Interrupted, STOPPING).await;
        }
        self.close_soon(Instant::now() + STOPPING).await;
        self.end_job().await;
        let ended = processes::ended(self.clerk.tip(), "stop", |_| true);
        self.clerk.append_or_keep(ended).await;
    }

    async fn start_next(&mut self) {
        if !self.can_start() || Instant::now() < self.not_before {
            return;
        }
        let Some(queued) = self.clerk.tip().queue.front() else { return };
        let turn = queued.prompt.turn.clone();
        if let Some((turn, begun)) = self.saved.take() {
            return self.start(turn, Some(begun)).await;
        }
        self.saving = Saving::begin(&self.options, self.grounds.clone(), &self.clerk.tip().head, &queued.prompt).await;
        if self.saving.is_none() {
            self.start(turn, None).await;
        }
    }

    async fn start(&mut self, turn: TurnId, begun: Option<Begun>) {
        let (Some(queued), Some(agent)) = (self.clerk.tip().queue.front(), self.agent.clone()) else { return };
        let prompt = queued.prompt.clone();
        let outcome = begun.as_ref().map(|begun| &begun.outcome);
        if let Some(Err(error)) = outcome {
            tracing::warn!(session = %self.session, %error, "a turn starts without a checkpoint");
        }
        if let Err(error) = self.begin_turn(started(&turn, outcome)).await {
            tracing::warn!(session = %self.session, %error, "a turn cannot start yet");
            self.not_before = Instant::now() + RETRY;
            self.saved = begun.map(|begun| (turn, begun));
            return;
        }
        if let Some(Ok(saved)) = outcome {
            let notice = self.left_out(&saved.left_out);
            self.clerk.append_or_keep(notice).await;
        }
        let work = begun.map(|begun| begun.work);
        let mind = match self.mind.take() {
            Some(mind) => mind,
            None => self.open_mind(agent.as_ref()).await,
        };
        let checkpoint = work.as_ref().and_then(|work| work.before.clone());
        let ways = self.ways(agent.as_ref(), &prompt);
        let title = self.clerk.tip().head.title.clone();
        let Ways { mode, model } = ways.clone();
        let prompt = Prompt { checkpoint, mode, model, title, ..whole(self.clerk.journal().clone(), prompt).await };
        self.turn = Some(RunningTurn::start(mind, prompt, ways, work, tolka_agent::teller(self.ids.clone())));
    }

    async fn open_mind(&mut self, agent: &dyn Agent) -> Box<dyn Mind> {
        let turns = self.clerk.tip().head.turns.saturating_sub(1);
        let workspace = self.clerk.tip().head.workspace.clone();
        let past = Arc::new(SessionPast::new(self.clerk.journal().clone(), self.session.clone()));
        let (family, depth) = self.family().await;
        agent.open(Place { session: self.session.clone(), workspace, turns, past, family, depth })
    }

    /// What a rewind took back is hidden for good when a turn starts.
    async fn begin_turn(&mut self, started: Vec<Draft>) -> Result<(), SessionError> {
        let mut drafts: Vec<Draft> = Vec::new();
        let tip = self.clerk.tip();
        if let Some(from) = tip.hidden_from() {
            let history = History::of(self.clerk.journal().clone(), &tip.head);
            let messages = history.messages(from, tip.seq).await?;
            drafts.extend(messages.into_iter().map(|message| Draft::tolka(MessageHidden { message })));
        }
        drafts.extend(started);
        self.clerk.append(drafts).await
    }

    fn can_start(&self) -> bool {
        let tip = self.clerk.tip();
        let is_free = self.is_at_rest() && !tip.head.busy && !self.clerk.is_blocked();
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
            Command::Delete(reply) => self.delete_in_time(reply).await,
            Command::Note(draft, reply) => answer(reply, self.note(*draft).await),
            Command::Rewind(order, reply) => self.rewind(*order, reply),
            Command::Approve(words, reply) => self.approve(words, reply),
            Command::Tip(reply) => answer(reply, Ok(self.clerk.tip().clone())),
            Command::Shutdown => {}
        }
    }

    /// Nothing comes between the facts that are copied into a fork.
    pub(crate) async fn note(&mut self, draft: Draft) -> Result<(), SessionError> {
        let tip = self.clerk.tip();
        if tip.is_copying {
            return Err(SessionError::Busy);
        }
        if tip.head.deleted || processes::is_known_end(tip, &draft.event) {
            return Ok(());
        }
        self.append(draft).await
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
        if let Some(closing) = &mut self.closing {
            closing.hurry(Instant::now() + GRACE);
            return Ok(true);
        }
        let Some(turn) = &mut self.turn else { return Ok(self.give_up_restore()) };
        turn.cancel();
        let withdrawn = self.clerk.tip().turn.as_ref().map(|turn| turn.withdraw_asks("cancel")).unwrap_or_default();
        for draft in &withdrawn {
            match &draft.event {
                Event::PermissionAnswered(e) => turn.withdrawn(&e.request),
                Event::QuestionAnswered(e) => turn.withdrawn(&e.request),
                _ => {}
            }
        }
        self.clerk.append_or_keep(withdrawn).await;
        Ok(true)
    }

    /// For clients a prompt whose snapshot is being taken is a turn that has begun: it ends like one.
    async fn cancel_start(&mut self, turn: TurnId) -> Result<(), SessionError> {
        self.begin_turn(started(&turn, None)).await?;
        self.saving = None;
        let drafts = end_turn(self.clerk.tip(), Ended::stopped(Stop::Cancelled));
        self.clerk.append_or_keep(drafts).await;
        Ok(())
    }

    pub(crate) async fn delete(&mut self) -> Result<(), SessionError> {
        if self.clerk.tip().head.deleted {
            return Err(SessionError::NotFound(self.session.clone()));
        }
        self.drop_turn().await;
        self.closing = None;
        self.job = None;
        let mut drafts = end_turn(self.clerk.tip(), Ended::stopped(Stop::Cancelled));
        drafts.extend(processes::ended(self.clerk.tip(), "delete", |_| true));
        drafts.push(Draft::client(SessionDeleted {}));
        let deleted = match self.clerk.append(drafts.clone()).await {
            // What the agent told and the disk refused would keep a full disk full: whoever deletes wants it gone.
            Err(SessionError::Journal(JournalError::DiskFull { .. })) if self.clerk.is_blocked() => {
                self.clerk.drop_backlog();
                self.clerk.append(drafts).await
            }
            result => result,
        };
        // Not before: a session that could not be deleted has its processes.
        if let Some(agent) = self.agent.as_ref().filter(|_| deleted.is_ok()) {
            agent.forget(&self.session);
        }
        deleted
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
pub(crate) fn answer<T>(reply: Reply<T>, result: Result<T, SessionError>) {
    drop(reply.send(result));
}
