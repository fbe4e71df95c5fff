use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, SemaphorePermit, watch};
use tokio::time::{Instant, timeout};
use tolka_journal::Journal;

use super::budget::{Budget, Gate, LIMIT};
use super::own::Own;
use super::tongue::Tongue;
use super::{Channel, Cursor};

/// How long those who find no room wait before clients are asked to make some, and again after that.
const PATIENCE: Duration = Duration::from_secs(1);
/// A client that has taken nothing for this long stands still.
const STILL: Duration = Duration::from_secs(3);

/// The tongues in use; cheap to clone.
#[derive(Clone)]
pub(crate) struct Tongues(Arc<Shared>);

struct Shared {
    journal: Arc<dyn Journal>,
    budget: Arc<Budget>,
    gather: Duration,
    /// When memory is short: connections that have not moved since this moment should go.
    pressure: watch::Sender<Option<Instant>>,
    /// Rung when somebody waits for room.
    short: Notify,
    /// A std mutex: held for a look-up, never over an await, nor while a tongue is dropped.
    open: Mutex<HashMap<Arc<Channel>, Weak<Tongue>>>,
}

impl Tongues {
    /// `gather`: how long a channel gathers what follows a first fact. Zero: every fact is told at once.
    pub(crate) fn new(journal: Arc<dyn Journal>, gather: Duration) -> Self {
        Tongues::within(LIMIT, journal, gather)
    }

    pub(super) fn within(limit: usize, journal: Arc<dyn Journal>, gather: Duration) -> Self {
        Tongues(Arc::new(Shared {
            journal,
            budget: Budget::new(limit),
            gather,
            pressure: watch::Sender::new(None),
            short: Notify::new(),
            open: Mutex::default(),
        }))
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.0.budget
    }

    pub(super) fn gather(&self) -> Duration {
        self.0.gather
    }

    /// Bytes that streams hold now: what the budget bounds, and what channels remember of open turns.
    pub(crate) fn memory(&self) -> usize {
        self.budget().used() + self.all_open().iter().map(|tongue| tongue.remembered()).sum::<usize>()
    }

    /// Set to a moment when memory is short: a connection whose client has taken nothing since then is cut off, and comes
    /// back at its position when it can.
    pub(crate) fn pressure(&self) -> watch::Receiver<Option<Instant>> {
        self.0.pressure.subscribe()
    }

    pub(super) fn join(&self, channel: &Arc<Channel>) -> Arc<Tongue> {
        // Before the lock: it may look at the disk.
        let start = *self.journal().watch(&channel.scope()).borrow();
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.get(channel).and_then(Weak::upgrade);
        if let Some(tongue) = &found
            && !tongue.has_ended()
        {
            return tongue.clone();
        }
        let tongue = Tongue::start(self, channel, start);
        open.insert(channel.clone(), Arc::downgrade(&tongue));
        drop(open);
        // This may have been its last reader, and a tongue that goes takes the lock.
        drop(found);
        tongue
    }

    /// Whether a reader at this cursor can share what the channel tells.
    pub(super) fn log_has(&self, channel: &Channel, cursor: Cursor) -> bool {
        let open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.get(channel).and_then(Weak::upgrade);
        // A tongue that goes takes the lock.
        drop(open);
        found.is_some_and(|tongue| tongue.log_has(cursor))
    }

    /// Called by a tongue that is gone. Another may have taken its place.
    pub(super) fn forget(&self, channel: &Channel) {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(channel).is_some_and(|tongue| tongue.strong_count() == 0) {
            open.remove(channel);
        }
    }

    /// The turn of a reader that is behind. If there is no room, what it holds goes: those who wait for room must not be
    /// the ones who take it.
    pub(super) async fn turn_behind(&self, own: &mut Option<Box<Own>>) -> Option<SemaphorePermit<'_>> {
        let short = self.0.short.notified();
        let turn = self.turn(&self.budget().behind);
        tokio::pin!(turn);
        tokio::select! {
            biased;
            turn = &mut turn => return turn,
            () = short => *own = None,
        }
        turn.await
    }

    /// A turn to encode, as soon as there is room. If there is none, logs are cut back to their shares, and should that not
    /// be enough, clients that stand still are cut off.
    pub(super) async fn turn<'a>(&'a self, gate: &'a Gate) -> Option<SemaphorePermit<'a>> {
        let turn = gate.turn().await;
        while !self.budget().has_room(gate) {
            self.0.short.notify_waiters();
            self.trim();
            if timeout(PATIENCE, self.budget().room(gate)).await.is_err() {
                let now = Instant::now();
                let asked = self.0.pressure.send_replace(now.checked_sub(STILL));
                // While a shortage lasts somebody asks after each PATIENCE; it is told of once.
                if asked.is_none_or(|before| now - before > STILL + 2 * PATIENCE) {
                    let bytes = self.budget().used();
                    tracing::warn!(bytes, "streams have no room; clients that stand still are cut off");
                }
            }
        }
        turn
    }

    fn all_open(&self) -> Vec<Arc<Tongue>> {
        let open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().filter_map(Weak::upgrade).collect()
    }

    fn trim(&self) {
        let long_ago = Instant::now().checked_sub(PATIENCE);
        for tongue in self.all_open() {
            if long_ago.is_some_and(|long_ago| tongue.told_at() < long_ago) {
                tongue.trim(self.budget().share());
            }
        }
    }

    #[cfg(test)]
    pub(super) fn channels(&self) -> usize {
        self.0.open.lock().unwrap().len()
    }
}

impl std::fmt::Debug for Tongues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tongues")
    }
}
