//! How turns end: by themselves, cancelled, or found open after a crash. The workspace is saved first, where there is time.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;
use tolka_agent::Ended;
use tolka_facts::event::{Failed, FailureKind, Stop};
use tolka_facts::{Draft, Event};
use tolka_journal::Scope;
use tolka_workspace::checkpoint::LeftOut;

use crate::actor::Actor;
use crate::closing::{Closed, Closing, Course};
use crate::saving::{Store, Work, left_out};
use crate::turn::end_turn;

/// What the snapshot after a turn has when people want it to be over.
pub(crate) const PARTING: Duration = Duration::from_millis(100);
/// What it has when the server stops. Without it the next start could not tell the turn's work from a person's.
pub(crate) const STOPPING: Duration = Duration::from_secs(3);

impl Actor {
    /// A turn that is open and that nobody runs, as a crash leaves it, is over, and says so. Nothing it did is done
    /// again.
    pub(crate) async fn end_lost_turn(&mut self) {
        // In a fork that is being made the turn goes on with the next page.
        let is_open = !self.clerk.tip().is_idle() && !self.clerk.tip().is_copying;
        if !self.is_at_rest() || self.clerk.is_blocked() || !is_open {
            return;
        }
        let work = self.lost_work().await;
        self.wind_up(work, HashSet::new(), &Course::Lost, Ended::stopped(Stop::Interrupted)).await;
    }

    /// What the open turn began with, if somebody else ran it.
    async fn lost_work(&mut self) -> Option<Work> {
        let tip = self.clerk.tip();
        let first = tip.turn.as_ref()?.first_seq;
        let head = tip.head.clone();
        let store = Store::of(&self.options, &head).await?;
        let scope = Scope::Session(self.session.clone());
        let page = self.clerk.journal().read(&scope, first - 1, 1).await.ok()?;
        let Event::TurnStarted(started) = &page.first()?.fact.event else { return None };
        let stay = self.grounds.enter(&self.session, store.parent.as_ref(), store.folder.canonical.clone());
        Some(Work { store, stay, before: started.checkpoint.clone() })
    }

    /// The mind has said its last word; its task says how the turn ended.
    pub(crate) async fn finish(&mut self) {
        self.clerk.settle().await;
        if self.clerk.is_blocked() {
            // What has to be ended is known when its last words are durable.
            return;
        }
        let Some(turn) = self.turn.take() else { return };
        let course = turn.deadline.map_or(Course::Ended, |deadline| Course::Cancelled(deadline + PARTING));
        let was_cancelled = turn.deadline.is_some();
        let (work, changed) = (turn.work, turn.changed);
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
        self.wind_up(work, changed, &course, ended).await;
    }

    /// The turn's work is done. It ends at once, or when the workspace is saved.
    async fn wind_up(&mut self, work: Option<Work>, changed: HashSet<String>, course: &Course, ended: Ended) {
        let tip = self.clerk.tip();
        let base = tip.base.as_ref().map(|base| base.checkpoint.clone());
        let closing = match (&tip.turn, work) {
            (Some(turn), Some(work)) => {
                let tells = self.agent.as_ref().is_some_and(|agent| agent.tells_changes());
                Closing::begin(&turn.id, work, base, &changed, course, tells, ended)
            }
            _ => Err(Box::new(ended)),
        };
        match closing {
            Ok(closing) => self.closing = Some(closing),
            Err(ended) => self.clerk.append_or_keep(end_turn(self.clerk.tip(), *ended)).await,
        }
    }

    /// Tells what the turn changed, and that it is over.
    pub(crate) async fn close(&mut self, closed: Closed) {
        let Some(closing) = self.closing.take() else { return };
        let Closed { mut told, left_out } = closed;
        told.push_all(self.left_out(&left_out));
        told.push_all(end_turn(self.clerk.tip(), closing.ended));
        self.clerk.tell(told).await;
    }

    /// Ends a turn that is being closed, with what is known by then.
    pub(crate) async fn close_soon(&mut self, until: Instant) {
        if let Some(closing) = &mut self.closing {
            closing.hurry(until);
            let closed = closing.done().await;
            self.close(closed).await;
        }
    }

    /// Says which files no snapshot holds, if that is news.
    pub(crate) fn left_out(&mut self, files: &[LeftOut]) -> Vec<Draft> {
        if self.left_out == files {
            return Vec::new();
        }
        self.left_out = files.to_vec();
        if files.is_empty() { Vec::new() } else { vec![left_out(files)] }
    }

    /// Drops a mind that does not end by itself. It is made anew for the next turn.
    pub(crate) async fn abandon(&mut self, stop: Stop, parting: Duration) {
        let (work, changed) = self.drop_turn().await;
        let course = Course::Cancelled(Instant::now() + parting);
        self.wind_up(work, changed, &course, Ended::stopped(stop)).await;
    }

    /// Stops the mind, and keeps what it had said. It has really stopped when this returns, with what its tools were doing,
    /// and that is told too: nothing happens after the turn's end is written.
    pub(crate) async fn drop_turn(&mut self) -> (Option<Work>, HashSet<String>) {
        let Some(mut turn) = self.turn.take() else { return (None, HashSet::new()) };
        turn.task.abort();
        let _ = (&mut turn.task).await;
        self.clerk.hear_out(&mut turn).await;
        (turn.work, turn.changed)
    }
}
