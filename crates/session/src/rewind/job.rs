//! What an actor does beside its commands when it is asked to go back, or to agree to what was done: one thing at a time,
//! while no turn runs. Prompts that come meanwhile wait in the queue.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;
use tolka_facts::event::{Approved, CheckpointSaved, Moment, Overwrite};
use tolka_facts::{Draft, MessageId, Tip};
use tolka_journal::MarkKind;
use tolka_workspace::Saved;

use super::prepare::{Prepared, Study, prepare};
use super::restoring::{Attempt, Restoring};
use super::work::Done;
use super::{Approval, RewindRequest, Rewinding, Undo, What};
use crate::SessionError;
use crate::actor::{Actor, Reply, answer};

/// How long a server that stops waits for a restore. One that takes longer is finished at the next start.
const STOPPING: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    To(RewindRequest),
    /// Some are taken back.
    Back(Undo, Overwrite),
    /// The conversation is hidden from this message on, and from nowhere else.
    Boundary(MessageId, What),
    Reset,
}

pub(super) type Beside<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Fallible<T> = Beside<Result<T, SessionError>>;

pub(crate) enum Job {
    Preparing(Fallible<Box<Prepared>>, Reply<Rewinding>),
    Restoring(Box<Restoring>),
    Approving(Option<String>, Fallible<(Saved, u64)>, Reply<Approval>),
}

pub(crate) enum Progress {
    Prepared(Result<Box<Prepared>, SessionError>),
    Restored(Attempt),
    Saved(Result<(Saved, u64), SessionError>),
}

/// Pends while there is no job, so that it can stand in a select.
pub(crate) async fn progress(job: &mut Option<Job>) -> Progress {
    match job {
        Some(Job::Preparing(work, _)) => Progress::Prepared(work.await),
        Some(Job::Restoring(restoring)) => Progress::Restored(restoring.work.as_mut().await),
        Some(Job::Approving(_, work, _)) => Progress::Saved(work.await),
        None => std::future::pending().await,
    }
}

impl Actor {
    /// Whether somebody may ask for a job now.
    fn may_go_back(&self) -> Result<Tip, SessionError> {
        let tip = self.clerk.tip();
        if tip.head.deleted {
            return Err(SessionError::NotFound(self.session.clone()));
        }
        let is_free = self.is_at_rest() && !tip.head.busy && !self.clerk.is_blocked();
        if is_free { Ok(tip.clone()) } else { Err(SessionError::Busy) }
    }

    pub(crate) fn rewind(&mut self, order: Order, reply: Reply<Rewinding>) {
        let tip = match self.may_go_back() {
            Ok(tip) => tip,
            Err(error) => return answer(reply, Err(error)),
        };
        let (journal, options, grounds) = (self.clerk.journal().clone(), self.options.clone(), self.grounds.clone());
        let work = Box::pin(async move {
            let study = Study::of(journal, &options, &tip.head).await;
            prepare(study, grounds, tip, order).await.map(Box::new)
        });
        self.job = Some(Job::Preparing(work, reply));
    }

    pub(crate) fn approve(&mut self, words: Option<String>, reply: Reply<Approval>) {
        let tip = match self.may_go_back() {
            Ok(tip) => tip,
            Err(error) => return answer(reply, Err(error)),
        };
        let (journal, options) = (self.clerk.journal().clone(), self.options.clone());
        let work = Box::pin(async move {
            let study = Study::of(journal, &options, &tip.head).await;
            let saved = study.save("Approved").await?;
            let since = tip.base.as_ref().map_or(0, |base| base.seq + 1);
            let points = study.history.marks(MarkKind::Point, since, u64::MAX).await?.len() as u64;
            Ok((saved, points))
        });
        self.job = Some(Job::Approving(words, work, reply));
    }

    pub(crate) async fn advance(&mut self, progress: Progress) {
        match (self.job.take(), progress) {
            (Some(Job::Preparing(_, reply)), Progress::Prepared(Ok(prepared))) => self.begin(*prepared, reply).await,
            (Some(Job::Preparing(_, reply)), Progress::Prepared(Err(error))) => answer(reply, Err(error)),
            (Some(Job::Restoring(restoring)), Progress::Restored(attempt)) => self.attempted(restoring, attempt).await,
            (Some(Job::Approving(words, _, reply)), Progress::Saved(saved)) => {
                let approval = self.approved(words, saved).await;
                answer(reply, approval);
            }
            // Each kind of work has its own kind of result.
            (job, _) => self.job = job,
        }
    }

    /// Writes down what will be done, and does it. If it cannot be written down, nothing is touched.
    async fn begin(&mut self, prepared: Prepared, reply: Reply<Rewinding>) {
        let Prepared { study, stay, started, files } = prepared;
        let begins = Draft::client(started.clone());
        let Some((saved, plan)) = files else {
            let done = Done::default();
            let drafts = vec![begins, done.fact(&started)];
            let told = self.clerk.append(drafts).await;
            let seq = self.clerk.tip().seq;
            if told.is_ok() {
                self.mind = None;
            }
            return answer(reply, told.map(|()| done.answer(started, seq)));
        };
        let before =
            CheckpointSaved { moment: Some(Moment::BeforeRewind), ..CheckpointSaved::of(saved.commit, saved.files) };
        if let Err(error) = self.clerk.append(vec![Draft::tolka(before), begins]).await {
            return answer(reply, Err(error));
        }
        let restoring = Restoring::begin((study, stay, plan), started, self.clerk.tip(), reply);
        self.job = Some(Job::Restoring(Box::new(restoring)));
    }

    async fn approved(
        &mut self,
        words: Option<String>,
        saved: Result<(Saved, u64), SessionError>,
    ) -> Result<Approval, SessionError> {
        let (saved, points) = saved?;
        let approved = Approved { checkpoint: saved.commit.clone(), message: words };
        self.append(Draft::client(approved)).await?;
        let settled = self.clerk.tip().base.as_ref().map_or(0, |base| base.settled);
        Ok(Approval { checkpoint: saved.commit, points, settled })
    }

    /// Before the server goes: a restore is not left in its middle.
    pub(crate) async fn end_job(&mut self) {
        if matches!(self.job, Some(Job::Restoring(..))) {
            match timeout(STOPPING, progress(&mut self.job)).await {
                Ok(done) => self.advance(done).await,
                Err(_) => tracing::warn!(session = %self.session, "a restore is finished at the next start"),
            }
        }
        self.job = None;
    }
}
