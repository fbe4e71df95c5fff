//! One bound on the memory that streams take: all encoded bytes that are alive are counted here, whoever holds them.
//!
//! A log keeps some, a client that stands still pins some, a reader that is behind makes some of its own. Near the
//! limit those who encode wait for each other and for room; what they tell is in the journal and can wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// What a server gives to streams. Enough for 1,000 clients that stand still, each in the middle of a write of its own.
pub(super) const LIMIT: usize = 64 * 1024 * 1024;
/// About what one write should be.
pub(crate) const WRITE: usize = 64 * 1024;
/// A write when room is scarce: as much as a connection takes before it wants to flush.
const SMALL_WRITE: usize = 16 * 1024;
/// What a channel keeps for readers that are a little behind; further back they read the journal.
const KEPT: usize = 1024 * 1024;
/// So many encode at once: as many as have use for the processors while others wait for the disk. What a fact becomes is
/// known only when it is encoded, so this is also how many facts the limit can be overrun by.
const ENCODERS: usize = 4;

#[derive(Debug)]
pub(crate) struct Budget {
    /// In one order with the bell of `relief`: who finds no room hears of what is given back after.
    used: AtomicUsize,
    limit: usize,
    channels: AtomicUsize,
    /// Channels' tasks. They have the last quarter for themselves, so that readers that are behind never keep those at
    /// the head waiting.
    pub(super) live: Gate,
    pub(super) behind: Gate,
    /// Rung when `used` falls below a ceiling.
    relief: Notify,
}

/// Where those who want to encode wait for their turn, in the order they came.
#[derive(Debug)]
pub(super) struct Gate {
    turns: Semaphore,
    /// Nobody starts while more than this is used.
    ceiling: usize,
}

impl Gate {
    fn new(ceiling: usize) -> Self {
        Gate { turns: Semaphore::new(ENCODERS), ceiling }
    }

    /// `None` only of a gate that is closed, and nobody closes one.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }
}

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Budget {
            used: AtomicUsize::new(0),
            limit,
            channels: AtomicUsize::new(0),
            live: Gate::new(limit),
            behind: Gate::new(limit / 4 * 3),
            relief: Notify::new(),
        })
    }

    /// Bytes that streams hold now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    pub(super) fn has_room(&self, gate: &Gate) -> bool {
        self.used() < gate.ceiling
    }

    /// Waits until there is room.
    pub(super) async fn room(&self, gate: &Gate) {
        loop {
            let relief = self.relief.notified();
            if self.has_room(gate) {
                return;
            }
            relief.await;
        }
    }

    /// What a reader that is behind should encode at a time.
    pub(super) fn write(&self) -> usize {
        if self.used() < self.limit / 4 { WRITE } else { SMALL_WRITE }
    }

    /// What each channel may keep: all of them together a quarter. With many channels it is less than a write, and can be:
    /// the newest chunk stays until the next, and a write for each of a thousand channels would be the whole limit.
    pub(super) fn share(&self) -> usize {
        KEPT.min(self.limit / 4 / self.channels.load(Ordering::Relaxed).max(1))
    }

    pub(super) fn channel_opened(&self) {
        self.channels.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn channel_closed(&self) {
        self.channels.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts `bytes`, and `beside` for what is kept with them, until the last slice of them is gone.
    pub(super) fn count(self: &Arc<Self>, bytes: Vec<u8>, beside: usize) -> Bytes {
        let bytes = bytes.into_boxed_slice();
        let held = self.hold(bytes.len() + beside);
        Bytes::from_owner(Counted { bytes, _held: held })
    }

    pub(super) fn hold(self: &Arc<Self>, weight: usize) -> Held {
        self.used.fetch_add(weight, Ordering::SeqCst);
        Held { weight, budget: self.clone() }
    }

    fn give_back(&self, weight: usize) {
        let before = self.used.fetch_sub(weight, Ordering::SeqCst);
        let fell_below = |gate: &Gate| before >= gate.ceiling && before - weight < gate.ceiling;
        if fell_below(&self.live) || fell_below(&self.behind) {
            self.relief.notify_waiters();
        }
    }
}

/// Memory that is counted as long as this lives.
#[derive(Debug)]
pub(super) struct Held {
    weight: usize,
    budget: Arc<Budget>,
}

impl Held {
    pub(super) fn set(&mut self, weight: usize) {
        *self = self.budget.hold(weight);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(self.weight);
    }
}

struct Counted {
    bytes: Box<[u8]>,
    _held: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_their_last_slice_is_gone() {
        let budget = Budget::new(LIMIT);
        let bytes = budget.count(vec![0; 1000], 24);
        let slice = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(budget.used(), 1024);
        drop(slice);
        assert_eq!(budget.used(), 0);
        let mut held = budget.hold(5);
        held.set(7);
        assert_eq!(budget.used(), 7);
        drop(held);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn room_is_found_when_enough_was_given_back() {
        let budget = Budget::new(4000);
        let (first, second) = (budget.hold(2500), budget.hold(1500));
        assert!(!budget.has_room(&budget.live) && !budget.has_room(&budget.behind));
        let live = tokio::spawn({
            let budget = budget.clone();
            async move { budget.room(&budget.live).await }
        });
        tokio::task::yield_now().await;
        drop(second);
        live.await.unwrap();
        assert!(budget.has_room(&budget.behind));
        drop(first);
        assert_eq!(budget.share(), 1000);
        budget.channel_opened();
        budget.channel_opened();
        assert_eq!(budget.share(), 500);
    }
}
