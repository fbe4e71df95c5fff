//! A restore from when it is written down until it is told. It is tried until it is done: files that were written and not
//! told would be taken for somebody else's. Whoever cancels, or deletes the session, gives it up once it has failed; then
//! what was done of it is told.

use std::time::Duration;

use tokio::time::sleep;
use tolka_facts::event::{RewindFailed, RewindStarted};
use tolka_facts::{Draft, Tip};
use tolka_workspace::checkpoint::Plan;

use super::job::{Beside, Job};
use super::notes::Moved;
use super::prepare::Study;
use super::work::{Done, Setback, give_up, restore, resume};
use super::{History, Rewinding};
use crate::SessionError;
use crate::actor::{Actor, RETRY, Reply, answer};
use crate::grounds::Stay;
use crate::saving::warning;

/// The longest wait between two tries.
const PAUSE: Duration = Duration::from_secs(30);

pub(crate) struct Restoring {
    started: RewindStarted,
    pub(super) work: Beside<Attempt>,
    /// Nobody waits for one that a crash left.
    reply: Option<Reply<Rewinding>>,
    failures: u32,
    /// Why the last try failed.
    last: Option<SessionError>,
    /// Those who want the session gone, which it is when this is over.
    deleting: Vec<Reply<()>>,
}

/// How a try went.
pub(crate) struct Attempt {
    outcome: Result<Done, Setback>,
    history: History,
}

enum Try {
    /// After a wait.
    Again(Duration),
    GiveUp(SessionError),
}

impl Restoring {
    /// Of a plan that was just made and written down.
    pub(super) fn begin(
        (study, stay, plan): (Study, Stay, Plan),
        started: RewindStarted,
        tip: &Tip,
        reply: Reply<Rewinding>,
    ) -> Self {
        let base = base(tip);
        let work = Box::pin(async move {
            let outcome = restore(&study, &plan, base.as_deref()).await;
            drop(stay);
            Attempt { outcome, history: study.history }
        });
        Restoring { started, work, reply: Some(reply), failures: 0, last: None, deleting: Vec::new() }
    }
}

impl Actor {
    /// Takes up a restore that nobody carries out, as a crash leaves it.
    pub(crate) fn resume_rewind(&mut self) {
        let tip = self.clerk.tip();
        let is_free = self.is_at_rest() && !self.clerk.is_blocked() && !tip.head.deleted && !tip.is_copying;
        let Some(started) = tip.rewinding.clone().filter(|_| is_free) else { return };
        let work = self.attempt(started.clone(), Try::Again(Duration::ZERO));
        let restoring = Restoring { started, work, reply: None, failures: 0, last: None, deleting: Vec::new() };
        self.job = Some(Job::Restoring(Box::new(restoring)));
    }

    fn attempt(&self, started: RewindStarted, what: Try) -> Beside<Attempt> {
        let (journal, options, grounds) = (self.clerk.journal().clone(), self.options.clone(), self.grounds.clone());
        let (head, base) = (self.clerk.tip().head.clone(), base(self.clerk.tip()));
        Box::pin(async move {
            if let Try::Again(pause) = what {
                sleep(pause).await;
            }
            let study = Study::of(journal, &options, &head).await;
            let stay = grounds.enter(&head.id, None, study.history.folder.canonical.clone());
            let outcome = match what {
                Try::Again(_) => resume(&study, &started, base.as_deref()).await,
                Try::GiveUp(why) => give_up(&study, &started, why).await,
            };
            drop(stay);
            Attempt { outcome, history: study.history }
        })
    }

    pub(super) async fn attempted(&mut self, mut restoring: Box<Restoring>, attempt: Attempt) {
        let Attempt { outcome, history } = attempt;
        match outcome {
            Ok(done) => self.finish_rewind(restoring, done, history).await,
            Err(Setback::Unfinished(error)) => {
                tracing::warn!(session = %self.session, %error, "a restore is not finished yet");
                restoring.failures += 1;
                restoring.last = Some(error.clone());
                let what = match restoring.deleting.is_empty() {
                    true => Try::Again(pause(restoring.failures)),
                    false => Try::GiveUp(error),
                };
                restoring.work = self.attempt(restoring.started.clone(), what);
                self.job = Some(Job::Restoring(restoring));
            }
            Err(Setback::Untouched(error)) => {
                let message = format!("Nothing was restored: {error}.");
                self.fail_rewind(restoring, message, error).await;
            }
            Err(Setback::Lost(error)) => {
                let message = format!("What was restored cannot be known or taken back: {error}.");
                self.fail_rewind(restoring, message, SessionError::HalfDone(error.to_string())).await;
            }
        }
    }

    async fn finish_rewind(&mut self, restoring: Box<Restoring>, done: Done, history: History) {
        let Restoring { started, reply, deleting, .. } = *restoring;
        if started.message.is_some() || started.undoes.is_some() {
            // It reads its past again.
            self.mind = None;
        }
        let expected = self.clerk.tip().seq + 1;
        let mut drafts = vec![done.fact(&started)];
        drafts.extend(done.is_unknown.then(|| {
            let words =
                "Some files are as they were at the checkpoint, others may not be. Look at them, or undo the rewind.";
            warning("A restore was given up", words.to_owned())
        }));
        self.clerk.append_or_keep(drafts).await;
        // A desk that shuts down tells nobody any more.
        let _ = self
            .desk
            .spawn_task(self.desk.clone().tell_neighbours(Moved::by(history, done.restored.done.clone()), None));
        let rewinding = done.answer(started, expected);
        reply.into_iter().for_each(|reply| answer(reply, Ok(rewinding.clone())));
        self.delete_for(deleting).await;
    }

    async fn fail_rewind(&mut self, restoring: Box<Restoring>, message: String, error: SessionError) {
        let Restoring { reply, deleting, .. } = *restoring;
        self.clerk.append_or_keep(vec![Draft::tolka(RewindFailed { message })]).await;
        reply.into_iter().for_each(|reply| answer(reply, Err(error.clone())));
        self.delete_for(deleting).await;
    }

    /// Ends a restore that has failed before; whether there was one.
    pub(crate) fn give_up_restore(&mut self) -> bool {
        let Some(Job::Restoring(restoring)) = &self.job else { return false };
        let Some(why) = restoring.last.clone() else { return false };
        let work = self.attempt(restoring.started.clone(), Try::GiveUp(why));
        if let Some(Job::Restoring(restoring)) = &mut self.job {
            // A try that runs ends after the file that it is at.
            restoring.work = work;
        }
        true
    }

    /// The session goes at once, or when its restore is over: nobody could finish it afterwards.
    pub(crate) async fn delete_in_time(&mut self, reply: Reply<()>) {
        let Some(Job::Restoring(restoring)) = &mut self.job else { return answer(reply, self.delete().await) };
        restoring.deleting.push(reply);
        // What waits for room on the disk would hold it up.
        self.clerk.drop_backlog();
        self.give_up_restore();
    }

    async fn delete_for(&mut self, asked: Vec<Reply<()>>) {
        for reply in asked {
            answer(reply, self.delete().await);
        }
    }
}

fn pause(failures: u32) -> Duration {
    PAUSE.min(RETRY.saturating_mul(1 << failures.min(8).saturating_sub(1)))
}

fn base(tip: &Tip) -> Option<String> {
    tip.base.as_ref().map(|base| base.checkpoint.clone())
}
