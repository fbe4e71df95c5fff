//! What has to be known before anything is touched: the workspace as it is, whose changes stand in it, and the plan.

use std::collections::HashSet;
use std::sync::Arc;

use tolka_facts::event::{KeptWhy, Overwrite, RewindStarted};
use tolka_facts::{Head, Time, Tip};
use tolka_journal::{Journal, MarkKind};
use tolka_workspace::Saved;
use tolka_workspace::checkpoint::{Kept, Plan, PlanRequest, Span};

use super::boundary::{Step, undone};
use super::chain::{Company, Kind, Moment, is_certain, spans};
use super::goal::Goal;
use super::history::History;
use super::{Order, RewindRequest, Target, What};
use crate::grounds::{Grounds, Stay};
use crate::saving::{DeskOptions, Store};
use crate::{Desk, SessionError};

/// A session's snapshots, and what is known of the time between them.
pub(crate) struct Study {
    pub(crate) history: History,
    /// `None` where no snapshots are wanted.
    pub(crate) store: Option<Store>,
}

/// A rewind that can begin.
pub(crate) struct Prepared {
    pub(crate) study: Study,
    pub(crate) stay: Stay,
    pub(crate) started: RewindStarted,
    /// With the workspace as it is, where files go back.
    pub(crate) files: Option<(Saved, Plan)>,
}

impl Desk {
    pub(crate) async fn study(&self, tip: &Tip) -> Study {
        Study::of(self.journal().clone(), self.options(), &tip.head).await
    }
}

impl Study {
    pub(crate) async fn of(journal: Arc<dyn Journal>, options: &DeskOptions, head: &Head) -> Self {
        let store = Store::of(options, head).await;
        let folder = match &store {
            Some(store) => store.folder.clone(),
            None => crate::grounds::Folder::find(&head.workspace).await,
        };
        Study { history: History { journal, session: head.id.clone(), folder }, store }
    }

    pub(crate) fn store(&self) -> Result<&Store, SessionError> {
        self.store.as_ref().ok_or(SessionError::CheckpointsOff)
    }

    /// The workspace as it is.
    pub(crate) async fn save(&self, words: &str) -> Result<Saved, SessionError> {
        let last = self.last_commit().await?;
        self.store()?.save(words, last.as_deref()).await.map_err(checkpoint_error)
    }

    /// The snapshot that was named last.
    pub(crate) async fn last_commit(&self) -> Result<Option<String>, SessionError> {
        let History { journal, session, .. } = &self.history;
        let points = journal.marks(session, MarkKind::Point, u64::MAX, 1).await?;
        let Some(seq) = points.first() else { return Ok(None) };
        Ok(self.history.moments(*seq).await?.pop().and_then(|moment| moment.commit))
    }

    /// What a restore from `now` to `target` may do. It comes out the same for a restore that was cut off.
    /// `since`: where the first turn that is taken back began, where that is known better than by the target.
    pub(crate) async fn plan(
        &self,
        (target, now): (&str, &str),
        overwrite: Overwrite,
        since: Option<u64>,
    ) -> Result<Plan, SessionError> {
        let mut plan = self.plan_in(target, now, overwrite, false).await?;
        let unsaved = self.unsaved(&plan, since).await?;
        plan.kept.extend(unsaved.into_iter().map(|path| Kept { path, why: KeptWhy::NotSaved }));
        Ok(plan)
    }

    /// The same in the middle of a turn, for a look.
    pub(crate) async fn plan_in(
        &self,
        target: &str,
        now: &str,
        overwrite: Overwrite,
        is_in_turn: bool,
    ) -> Result<Plan, SessionError> {
        let store = self.store()?;
        let spans = self.spans(target, now, is_in_turn).await?;
        let request = PlanRequest { target: target.to_owned(), now: now.to_owned(), spans, overwrite };
        store.checkpoints.plan(&store.folder.named, &request).await.map_err(checkpoint_error)
    }

    /// The snapshots of this workspace that are there.
    pub(crate) async fn held(&self) -> Result<HashSet<String>, SessionError> {
        let store = self.store()?;
        store.checkpoints.held(&store.folder.named).await.map_err(checkpoint_error)
    }

    async fn spans(&self, target: &str, now: &str, is_in_turn: bool) -> Result<Vec<Span>, SessionError> {
        let from = self.history.named(target).await?;
        let held = self.held().await?;
        if !held.contains(target) {
            return Err(pruned("the conversation alone can go back"));
        }
        let mut moments = self.history.moments(from).await?;
        // What comes behind the snapshot of now is no part of the way to it.
        let is_now = |moment: &Moment| moment.kind == Kind::Rest && moment.commit.as_deref() == Some(now);
        match moments.iter().rposition(is_now) {
            Some(at) => moments.truncate(at + 1),
            None => moments.push(self.now(now, is_in_turn)),
        }
        // One that was pruned is as one that failed.
        for moment in &mut moments {
            moment.commit = moment.commit.take().filter(|commit| commit == now || held.contains(commit));
            if let Kind::Restored { target, .. } = &mut moment.kind {
                *target = target.take().filter(|commit| held.contains(commit));
            }
        }
        self.history.look_up(&mut moments).await?;
        let since = moments.first().map_or(Time::default(), |first| first.time);
        let foreign = if is_certain(&moments) { Vec::new() } else { self.history.foreign(since).await? };
        Ok(spans(&moments, &foreign))
    }

    /// The moment that this is asked at. A turn that runs may have others beside it: what it told is its own.
    fn now(&self, commit: &str, is_in_turn: bool) -> Moment {
        let running = Kind::Ended { told: HashSet::new(), company: Company::Sessions };
        let kind = if is_in_turn { running } else { Kind::Rest };
        Moment { seq: u64::MAX, time: Time::now(), commit: Some(commit.to_owned()), kind }
    }
}

/// All that comes before the first touch. An error changes nothing.
pub(crate) async fn prepare(
    study: Study,
    grounds: Arc<Grounds>,
    tip: Tip,
    order: Order,
) -> Result<Prepared, SessionError> {
    let stay = grounds.enter(&study.history.session, None, study.history.folder.canonical.clone());
    let (mut started, since) = intent(&study, &tip, order).await?;
    let Some(target) = started.checkpoint.clone() else {
        return Ok(Prepared { study, stay, started, files: None });
    };
    let now = study.save("Before going back").await?;
    let plan = study.plan((&target, &now.commit), started.overwrite.clone(), since).await?;
    started.before = Some(now.commit.clone());
    Ok(Prepared { study, stay, started, files: Some((now, plan)) })
}

/// What is written down, and from where on turns are taken back.
async fn intent(study: &Study, tip: &Tip, order: Order) -> Result<(RewindStarted, Option<u64>), SessionError> {
    let nothing = RewindStarted {
        checkpoint: None,
        message: None,
        before: None,
        from: None,
        overwrite: Overwrite::Nothing,
        undoes: None,
        resets: false,
    };
    let (request, resets) = match order {
        Order::Back(undo, overwrite) => {
            let (undoes, checkpoint) = undone(tip, undo)?;
            return Ok((RewindStarted { checkpoint, overwrite, undoes: Some(undoes), ..nothing }, Some(undoes)));
        }
        Order::Boundary(message, what) => {
            return Ok(match study.history.step_to(tip, message, what).await? {
                Step::Back(undoes, checkpoint) => {
                    (RewindStarted { checkpoint, undoes: Some(undoes), ..nothing }, Some(undoes))
                }
                Step::To(Goal { checkpoint, message, from, since }) => {
                    (RewindStarted { checkpoint, message, from, ..nothing }, Some(since))
                }
            });
        }
        Order::To(request) => (request, false),
        Order::Reset => {
            let (to, what, overwrite) = (Target::Base, What::Files, Overwrite::Nothing);
            (RewindRequest { to, what, overwrite }, true)
        }
    };
    let goal = study.history.goal(tip, &request).await?;
    let (checkpoint, message, from) = (goal.checkpoint, goal.message, goal.from);
    let started = RewindStarted { checkpoint, message, from, overwrite: request.overwrite, resets, ..nothing };
    Ok((started, Some(goal.since)))
}

pub(crate) fn pruned(instead: &str) -> SessionError {
    SessionError::NoCheckpoint(format!("it was removed with other old ones to save room; {instead}"))
}

pub(crate) fn checkpoint_error(error: tolka_workspace::CheckpointError) -> SessionError {
    SessionError::Checkpoint(Arc::new(error))
}
