//! The actor's hold on the journal: drafts go in, facts come out, and the tip is always the state after
//! the last fact that is durable.

use std::sync::Arc;
use std::task::Poll;

use tolka_agent::Room;
use tolka_facts::{Draft, Event, Fact, Hash, SessionId, Time, Tip};
use tolka_journal::{Append, Journal, JournalError, Kept, Mark, Pending, Scope, TIP};

use crate::told::Told;

/// A stream is taken up from a kept state; folding 512 facts takes a millisecond or so.
const KEEP_EVERY: u64 = 512;
const PAGE: usize = 512;

pub(crate) struct Ledger {
    journal: Arc<dyn Journal>,
    pub(crate) session: SessionId,
    /// After the last fact that is durable.
    pub(crate) tip: Tip,
    /// After the last fact that was stamped; dropped at idle moments. Every fact is folded into both: a copy of the tip
    /// for every append would cost in proportion to what is open, and with one tip a refusal could not be taken back.
    ahead: Option<Box<Tip>>,
    /// The append that is with the journal; never more than one.
    writing: Option<Batch>,
    kept: u64,
    kept_idle: u64,
    /// Where a state was last found too large to keep; weighing it again at every append would cost more than it saves.
    weighed: u64,
    /// Bytes journalled since a state was kept: a state that is larger than that waits, so that states
    /// never take more room than facts.
    since_kept: usize,
    /// The same since an idle one was kept.
    since_idle: usize,
}

/// What was told, stamped: on its way to the journal, or ready to go when the one before it is durable.
pub(crate) struct Batch {
    facts: Vec<Arc<Fact>>,
    /// Once more, in case they come back.
    blobs: Vec<(Hash, Vec<u8>)>,
    room: Vec<Room>,
    answer: Pending<'static, ()>,
    bytes: usize,
    tells_head: bool,
    /// With a state of the session; whether it is idle.
    keeps: Option<bool>,
}

impl Batch {
    pub(crate) fn take_back(self) -> Told {
        // The journal's hold on the facts.
        drop(self.answer);
        let draft = |fact: Fact| Draft { cause: fact.cause, event: fact.event, raw: fact.raw };
        let drafts = self.facts.into_iter().map(|fact| draft(Arc::unwrap_or_clone(fact))).collect();
        Told { drafts, blobs: self.blobs, room: self.room }
    }
}

impl Ledger {
    pub(crate) fn new(journal: Arc<dyn Journal>, session: SessionId) -> Self {
        Ledger {
            journal,
            session,
            tip: Tip::default(),
            ahead: None,
            writing: None,
            kept: 0,
            kept_idle: 0,
            weighed: 0,
            since_kept: 0,
            since_idle: 0,
        }
    }

    /// The session as its facts left it. A session without facts has a tip at 0.
    pub(crate) async fn load(journal: Arc<dyn Journal>, session: SessionId) -> Result<Self, JournalError> {
        let mut ledger = Ledger::new(journal, session);
        if let Some(kept) = ledger.journal.kept(&ledger.session, TIP, u64::MAX, false).await? {
            // A state of another version is no loss: the facts are still there.
            ledger.tip = serde_json::from_slice(&kept.state).unwrap_or_default();
            ledger.kept = ledger.tip.seq;
            ledger.kept_idle = if kept.idle { ledger.tip.seq } else { 0 };
        }
        let scope = Scope::Session(ledger.session.clone());
        loop {
            let page = ledger.journal.read(&scope, ledger.tip.seq, PAGE).await?;
            if page.is_empty() {
                return Ok(ledger);
            }
            page.iter().for_each(|entry| ledger.tip.apply(&entry.fact));
        }
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Makes what was told durable, all or none. On an error nothing has changed, and it comes back.
    pub(crate) async fn append(&mut self, told: Told) -> Result<(), (Box<Told>, JournalError)> {
        if told.is_empty() {
            return Ok(());
        }
        let batch = self.prepare(told);
        self.send(batch).await;
        let answer = self.answer().await;
        self.land(answer)
    }

    /// Stamps what was told, after all that was stamped before, and writes it out.
    pub(crate) fn prepare(&mut self, told: Told) -> Batch {
        let (now, Told { drafts, blobs, room }) = (Time::now(), told);
        self.stamp(drafts.into_iter().map(|draft| (now, draft)), blobs, room)
    }

    /// Makes copies of facts durable, all or none, with the times that they had. What they hold in blobs is there.
    pub(crate) async fn copy(&mut self, facts: Vec<(Time, Draft)>) -> Result<(), JournalError> {
        let batch = self.stamp(facts.into_iter(), Vec::new(), Vec::new());
        self.send(batch).await;
        let answer = self.answer().await;
        self.land(answer).map_err(|(_, error)| error)
    }

    fn stamp(
        &mut self,
        drafts: impl ExactSizeIterator<Item = (Time, Draft)>,
        blobs: Vec<(Hash, Vec<u8>)>,
        room: Vec<Room>,
    ) -> Batch {
        let tip = self.ahead.get_or_insert_with(|| Box::new(self.tip.clone()));
        let (mut facts, mut marks, mut bytes) = (Vec::with_capacity(drafts.len()), Vec::new(), 0);
        for (time, draft) in drafts {
            // No fact is earlier than the one before it, whatever the machine's clock does.
            let fact = draft.stamp(self.session.clone(), tip.seq + 1, time.max(tip.time));
            tip.apply(&fact);
            marks.extend(Mark::of(&fact, tip).map(|mark| (mark.to_string(), fact.seq)));
            bytes += estimated_size(&fact);
            facts.push(Arc::new(fact));
        }
        // Lists need it only when it changed, and most facts are words. The one before may have told another.
        let tells_head = tip.head != self.tip.head || self.writing.as_ref().is_some_and(|before| before.tells_head);
        let head = tells_head.then(|| tip.head.clone());
        let state = self.state_to_keep(bytes);
        let keeps = state.as_ref().map(|kept| kept.idle);
        let append = Append { facts: facts.clone(), blobs: blobs.clone(), marks, head, tip: state };
        let answer = self.journal.append(append);
        Batch { facts, blobs, room, answer, bytes, tells_head, keeps }
    }

    /// Hands a batch to the journal. The one before it must have landed.
    pub(crate) async fn send(&mut self, batch: Batch) {
        debug_assert!(self.writing.is_none(), "one append at a time");
        let answer = &mut self.writing.insert(batch).answer;
        // Polled once, so that it is written while the actor does something else.
        let mut first = None;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                first = Some(answer);
            }
            Poll::Ready(())
        })
        .await;
        if let Some(given) = first {
            *answer = Box::pin(std::future::ready(given));
        }
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// The journal's answer, for [`Ledger::land`]. Pends while nothing is written, so that it can stand in a select.
    pub(crate) async fn answer(&mut self) -> Result<(), JournalError> {
        match &mut self.writing {
            Some(batch) => batch.answer.as_mut().await,
            None => std::future::pending().await,
        }
    }

    /// Folds what became durable, or gives back what was refused. A batch that was prepared meanwhile is void then.
    pub(crate) fn land(&mut self, answer: Result<(), JournalError>) -> Result<(), (Box<Told>, JournalError)> {
        let Some(batch) = self.writing.take() else { return Ok(()) };
        if let Err(error) = answer {
            self.ahead = None;
            return Err((Box::new(batch.take_back()), error));
        }
        batch.facts.iter().for_each(|fact| self.tip.apply(fact));
        self.since_kept += batch.bytes;
        self.since_idle += batch.bytes;
        if let Some(idle) = batch.keeps {
            self.kept = self.tip.seq;
            self.since_kept = 0;
            if idle {
                self.kept_idle = self.tip.seq;
                self.since_idle = 0;
            }
        }
        if self.tip.is_idle() && self.ahead.as_ref().is_some_and(|ahead| ahead.seq == self.tip.seq) {
            self.ahead = None;
        }
        Ok(())
    }

    /// Two kinds of states are due in turn: any, for the session itself, and idle ones, which every dialect can be taken up
    /// from. A turn's end has an idle one whenever enough came since the last, whatever was kept inside the turn.
    fn state_to_keep(&mut self, bytes: usize) -> Option<Kept> {
        let tip = self.ahead.as_ref()?;
        let idle = tip.is_idle();
        let idle_is_due = idle && tip.seq - self.kept_idle >= KEEP_EVERY;
        let is_due = tip.seq - self.kept >= KEEP_EVERY && tip.seq - self.weighed >= KEEP_EVERY;
        if !is_due && !idle_is_due {
            return None;
        }
        self.weighed = tip.seq;
        let since_kept = bytes + if idle_is_due { self.since_idle } else { self.since_kept };
        if tip.open_bytes() > since_kept {
            return None;
        }
        let state = serde_json::to_vec(tip).ok()?;
        (state.len() <= since_kept).then_some(Kept { seq: tip.seq, idle, state })
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("session", &self.session).field("seq", &self.tip.seq).finish_non_exhaustive()
    }
}

/// Good enough to weigh a state against; the journal knows the true size.
fn estimated_size(fact: &Fact) -> usize {
    let text = match &fact.event {
        Event::TextAppended(e) => e.text.len(),
        Event::ThoughtAppended(e) => e.text.len(),
        Event::OutputAppended(e) => e.text.len(),
        _ => 512,
    };
    160 + text + fact.raw.as_ref().map_or(0, |raw| raw.get().len())
}

#[cfg(test)]
mod tests;
