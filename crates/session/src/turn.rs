//! A turn that runs: the mind in its own task, what it says on its way to the journal, and those it asked.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tolka_agent::{CancelSwitch, Chosen, Effects, Ended, Mind, Patience, Prompt, Said, Teller};
use tolka_facts::event::{Stop, TurnEnded};
use tolka_facts::{Cause, Draft, Event, RequestId, Tip};

use crate::prompt::Ways;
use crate::saving::Work;
use crate::told::Told;

/// How long a mind may take to end after a cancel before it is dropped. A cancel must end within a second.
pub(crate) const GRACE: Duration = Duration::from_millis(700);

/// How long a turn that has ended waits for what its tools are still doing. A keeper takes 200 ms to end a command that
/// does not want to end, and some more in a sandbox; a file is written sooner. What hangs in the kernel is not waited for.
const LASTING: Duration = Duration::from_millis(1_500);

pub(crate) struct RunningTurn {
    /// The mind comes back with the turn's end, ready for the next one.
    pub(crate) task: JoinHandle<(Box<dyn Mind>, Ended)>,
    pub(crate) said: mpsc::Receiver<Said>,
    /// Closes when the mind has ended its turn.
    ended: oneshot::Receiver<()>,
    has_ended: bool,
    /// What its tools do to the world, which may last longer than the mind itself.
    effects: Effects,
    /// Until then that is waited for, once the mind has ended.
    lasting: Option<Instant>,
    switch: CancelSwitch,
    /// When patience ends, once the turn was cancelled.
    pub(crate) deadline: Option<Instant>,
    asked: HashMap<RequestId, Asked>,
    /// What was taken back when the turn was cancelled. A subagent's may be answered at the same time, and that is no news.
    withdrawn: HashSet<RequestId>,
    /// Prompts are looked for when all that was said before is written.
    held: Option<Said>,
    pub(crate) ways: Ways,
    /// `None` where no snapshots are wanted.
    pub(crate) work: Option<Work>,
    /// Files that it told it had changed.
    pub(crate) changed: HashSet<String>,
}

struct Asked {
    since: Instant,
    patience: Patience,
    waiting: Waiting,
}

enum Waiting {
    Permission(oneshot::Sender<Option<Chosen>>),
    Question(oneshot::Sender<Option<Vec<Vec<String>>>>),
}

impl RunningTurn {
    pub(crate) fn start(
        mut mind: Box<dyn Mind>,
        prompt: Prompt,
        ways: Ways,
        work: Option<Work>,
        (teller, said, switch): (Teller, mpsc::Receiver<Said>, CancelSwitch),
    ) -> Self {
        let (end, ended) = oneshot::channel::<()>();
        let effects = teller.effects().clone();
        let task = tokio::spawn(async move {
            let how = mind.turn(prompt, &teller).await;
            drop(end);
            (mind, how)
        });
        RunningTurn {
            task,
            said,
            ended,
            has_ended: false,
            effects,
            lasting: None,
            switch,
            deadline: None,
            asked: HashMap::new(),
            withdrawn: HashSet::new(),
            held: None,
            ways,
            work,
            changed: HashSet::new(),
        }
    }

    /// What the mind says next; `None` when it has ended and nothing it said is left. Its end is what counts, not the
    /// end of its line: it may have left a teller with somebody, and that must not keep its turn open.
    pub(crate) async fn next(&mut self) -> Option<Said> {
        if self.held.is_some() {
            return self.held.take();
        }
        if !self.has_ended {
            tokio::select! {
                biased;
                said = self.said.recv() => {
                    if said.is_some() {
                        return said;
                    }
                }
                // An error is an end too: the mind panicked.
                _ = &mut self.ended => {}
            }
            self.has_ended = true;
        }
        self.last_word().await
    }

    /// What is said when the mind has ended, or was stopped; `None` when nothing is left and nothing happens any more.
    /// Whatever its tools still do is told before the end of the turn.
    pub(crate) async fn last_word(&mut self) -> Option<Said> {
        let until = *self.lasting.get_or_insert_with(|| Instant::now() + LASTING);
        tokio::select! {
            biased;
            // Not for a line that is closed: what is done may have nothing to say.
            Some(said) = self.said.recv() => return Some(said),
            () = self.effects.over() => {}
            () = sleep_until(until) => tracing::warn!("a turn ends while something that it began is still under way"),
        }
        self.said.try_recv().ok()
    }

    /// What can be written together with what came before it, if it is there.
    pub(crate) fn try_more(&mut self) -> Option<Said> {
        let said = if self.held.is_none() { self.said.try_recv().ok() } else { None };
        self.hold_back(said)
    }

    /// The same when it comes; pends where nothing more does.
    pub(crate) async fn more(&mut self) -> Said {
        if self.held.is_none() {
            let said = self.said.recv().await;
            if let Some(said) = self.hold_back(said) {
                return said;
            }
        }
        std::future::pending().await
    }

    fn hold_back(&mut self, said: Option<Said>) -> Option<Said> {
        if matches!(said, Some(Said::Steering(_))) {
            self.held = said;
            return None;
        }
        said
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// What waits for a person, since when, and how long it should.
    pub(crate) fn asking(&self) -> impl Iterator<Item = (&RequestId, Instant, &Patience)> {
        self.asked.iter().map(|(request, asked)| (request, asked.since, &asked.patience))
    }

    /// Its mind hears that nobody chose.
    pub(crate) fn forget(&mut self, request: &RequestId) {
        self.asked.remove(request);
    }

    fn ask(&mut self, request: &RequestId, patience: Patience, waiting: Waiting) {
        self.asked.insert(request.clone(), Asked { since: Instant::now(), patience, waiting });
    }

    pub(crate) fn cancel(&mut self) {
        self.switch.fire();
        self.deadline.get_or_insert(Instant::now() + GRACE);
    }

    /// Splits what was said into drafts to append and those who wait for the appending.
    pub(crate) fn take(&mut self, said: Said, told: &mut Told, settled: &mut Vec<oneshot::Sender<()>>) {
        match said {
            Said::Told(Draft { event: Event::PermissionAnswered(e), .. }) if self.withdrawn.contains(&e.request) => {}
            Said::Told(Draft { event: Event::QuestionAnswered(e), .. }) if self.withdrawn.contains(&e.request) => {}
            Said::Told(draft) => {
                self.note_change(&draft);
                told.push(draft);
            }
            Said::ToldWith(draft, contents) => {
                self.note_change(&draft);
                told.push_with(draft, contents);
            }
            Said::Permission(draft, patience, answer) => {
                if let Event::PermissionAsked(ask) = &draft.event {
                    self.ask(&ask.request, patience, Waiting::Permission(answer));
                }
                told.push(draft);
            }
            Said::Question(draft, patience, answer) => {
                if let Event::QuestionAsked(ask) = &draft.event {
                    self.ask(&ask.request, patience, Waiting::Question(answer));
                }
                told.push(draft);
            }
            // Of a turn that was stopped: it takes no prompts any more.
            Said::Steering(reply) => drop(reply),
            Said::Settle(done) => settled.push(done),
        }
    }

    fn note_change(&mut self, draft: &Draft) {
        if let Event::FileChanged(change) = &draft.event
            && self.work.is_some()
        {
            self.changed.insert(change.path.clone());
        }
    }

    /// Nobody will answer it any more.
    pub(crate) fn withdrawn(&mut self, request: &RequestId) {
        self.forget(request);
        self.withdrawn.insert(request.clone());
    }

    /// Hands a durable answer to the mind that waits for it; one that no longer waits is past caring.
    pub(crate) fn permission_answered(&mut self, request: &RequestId, chosen: Option<Chosen>) {
        if let Some(Asked { waiting: Waiting::Permission(waiting), .. }) = self.asked.remove(request) {
            let _ = waiting.send(chosen);
        }
    }

    pub(crate) fn question_answered(&mut self, request: &RequestId, answers: Option<Vec<Vec<String>>>) {
        if let Some(Asked { waiting: Waiting::Question(waiting), .. }) = self.asked.remove(request) {
            let _ = waiting.send(answers);
        }
    }
}

/// All that must be said for the open turn to be over.
pub(crate) fn end_turn(tip: &Tip, ended: Ended) -> Vec<Draft> {
    let Some(turn) = &tip.turn else { return Vec::new() };
    let mut drafts = turn.end_what_is_open(ended.stop);
    drafts.extend(ended.failure.map(Draft::agent));
    let cause = if ended.stop == Stop::Interrupted { Cause::Tolka } else { Cause::Agent };
    let (stop, usage, cost, meta) = (ended.stop, ended.usage, ended.cost, ended.meta);
    drafts.push(Draft::new(cause, TurnEnded { turn: turn.id.clone(), stop, usage, cost, meta }));
    drafts
}
