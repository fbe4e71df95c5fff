//! What is live: the last facts of the sessions that move, and the bells of those that are watched.
//!
//! The writer publishes here after its commit and before it answers, so nothing stands here that a crash could
//! lose. Bells ring after the facts are in place and outside the lock: whoever wakes finds them. A session that
//! nobody watches and that has not moved for long leaves no trace.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;
use tolka_facts::{Fact, SessionId};

use super::ring::Ring;
use crate::{Entry, Scope};

/// A reader of one session that is further behind than this reads pages from the disk anyway.
const SESSION_FACTS: usize = 1024;
const SESSION_BYTES: usize = 1024 * 1024;
/// The feed moves as fast as all sessions together.
const FEED_FACTS: usize = 4096;
const FEED_BYTES: usize = 4 * 1024 * 1024;
/// More sessions than a machine can run agents at once. All of them together hold this much at most, however many there
/// are; a session that rests gives way first, and its readers find the rest on the disk.
const SESSIONS: usize = 256;
const SESSIONS_BYTES: usize = 16 * 1024 * 1024;

/// A batch that has become durable.
#[derive(Debug)]
pub(super) struct Published<'a> {
    pub(super) facts: &'a [Arc<Fact>],
    /// Of each body, in bytes.
    pub(super) sizes: Vec<usize>,
    /// Where the first fact stands in the feed; the others follow.
    pub(super) first_place: u64,
}

#[derive(Debug)]
pub(super) struct Live {
    /// Readers by far outnumber the writer, and each of them comes after each fact. A `std` lock: it is held
    /// to copy a few pointers, never over an await or the disk.
    state: RwLock<State>,
    feed_bell: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    feed: Ring,
    sessions: HashMap<SessionId, Session>,
    /// Sessions whose ring holds facts, the one that has not moved for longest first.
    moved: BTreeMap<u64, SessionId>,
    clock: u64,
    bytes: usize,
    /// How many sessions the last sweep left.
    swept: usize,
}

#[derive(Debug, Default)]
struct Session {
    /// `None` until its head is known: somebody is asking the disk.
    ring: Option<Ring>,
    bell: Option<watch::Sender<u64>>,
    /// Its key in [`State::moved`].
    moved: u64,
}

impl Session {
    fn is_watched(&self) -> bool {
        self.bell.as_ref().is_some_and(|bell| !bell.is_closed())
    }
}

impl Live {
    pub(super) fn new(last_place: u64) -> Self {
        let state = State {
            feed: Ring::at(last_place),
            sessions: HashMap::new(),
            moved: BTreeMap::new(),
            clock: 0,
            bytes: 0,
            swept: 0,
        };
        Live { state: RwLock::new(state), feed_bell: watch::Sender::new(last_place) }
    }

    pub(super) fn publish<'a>(&self, group: impl IntoIterator<Item = Published<'a>>) {
        let mut bells = Vec::new();
        let mut state = self.write();
        for batch in group {
            bells.extend(state.publish(&batch));
        }
        let place = state.feed.head();
        drop(state);
        for (bell, seq) in bells {
            ring(&bell, seq);
        }
        ring(&self.feed_bell, place);
    }

    pub(super) fn recent(&self, scope: &Scope, after: u64, limit: usize) -> Option<Vec<Entry>> {
        let state = self.read();
        match scope {
            Scope::All => state.feed.page(after, limit),
            Scope::Session(session) => state.sessions.get(session)?.ring.as_ref()?.page(after, limit),
        }
    }

    pub(super) fn watch_feed(&self) -> watch::Receiver<u64> {
        self.feed_bell.subscribe()
    }

    /// `durable` asks the disk for the session's head. The bell hangs before the question is put, so that an append
    /// which the answer misses has rung it. Without an answer the head stays unknown, and memory says nothing.
    pub(super) fn watch_session(
        &self,
        session: &SessionId,
        durable: impl FnOnce() -> Option<u64>,
    ) -> watch::Receiver<u64> {
        let (known, mut listener) = self.write().hang_bell(session);
        if known {
            return listener;
        }
        if let Some(head) = durable()
            && let Some(session) = self.write().sessions.get_mut(session)
        {
            let head = session.ring.get_or_insert_with(|| Ring::at(head)).head();
            session.bell.iter().for_each(|bell| ring(bell, head));
        }
        listener.mark_unchanged();
        listener
    }

    /// A purged session: its watchers see the end.
    pub(super) fn forget(&self, session: &SessionId) {
        let mut state = self.write();
        state.feed.forget(session);
        if let Some(session) = state.sessions.remove(session) {
            state.moved.remove(&session.moved);
            state.bytes -= session.ring.map_or(0, |ring| ring.cost());
        }
    }

    /// No code that runs under this lock can panic half way, so a poisoned one is as good as any.
    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Heads only rise; a bell that somebody else has rung for a later one stays there.
fn ring(bell: &watch::Sender<u64>, head: u64) {
    bell.send_if_modified(|value| {
        let rises = head > *value;
        *value = head.max(*value);
        rises
    });
}

impl State {
    fn publish(&mut self, batch: &Published<'_>) -> Option<(watch::Sender<u64>, u64)> {
        let first = batch.facts.first()?;
        let session = self.sessions.entry(first.session.clone()).or_default();
        let ring = session.ring.get_or_insert_with(|| Ring::at(first.seq - 1));
        let cost = ring.cost();
        if ring.head() != first.seq - 1 {
            // A watcher read a head from the disk that was durable and not yet published.
            *ring = Ring::at(first.seq - 1);
        }
        for (n, (fact, size)) in (0..).zip(batch.facts.iter().zip(&batch.sizes)) {
            ring.push(Entry { place: fact.seq, fact: Arc::clone(fact) }, *size);
            self.feed.push(Entry { place: batch.first_place + n, fact: Arc::clone(fact) }, *size);
        }
        ring.trim(SESSION_FACTS, SESSION_BYTES);
        self.feed.trim(FEED_FACTS, FEED_BYTES);
        self.bytes = self.bytes - cost + ring.cost();
        let head = ring.head();
        if !session.is_watched() {
            session.bell = None;
        }
        let bell = session.bell.clone().map(|bell| (bell, head));

        self.moved.remove(&session.moved);
        self.clock += 1;
        session.moved = self.clock;
        self.moved.insert(self.clock, first.session.clone());
        while (self.moved.len() > SESSIONS || self.bytes > SESSIONS_BYTES) && self.evict() {}
        bell
    }

    /// Forgets the facts of the session that has not moved for longest; its head is kept while somebody watches.
    /// `false`: there is none.
    fn evict(&mut self) -> bool {
        let Some((_, id)) = self.moved.pop_first() else { return false };
        let Some(session) = self.sessions.get_mut(&id) else { return true };
        if let Some(ring) = &mut session.ring {
            self.bytes -= ring.cost();
            *ring = Ring::at(ring.head());
        }
        if !session.is_watched() {
            self.sessions.remove(&id);
        }
        true
    }

    /// Whether the listener's value is already right.
    fn hang_bell(&mut self, id: &SessionId) -> (bool, watch::Receiver<u64>) {
        self.sweep();
        let session = self.sessions.entry(id.clone()).or_default();
        let bell = session.bell.get_or_insert_with(|| watch::Sender::new(0));
        if let Some(known) = &session.ring {
            ring(bell, known.head());
        }
        (session.ring.is_some(), bell.subscribe())
    }

    /// Drops the bells that nobody hears any more, whenever they may have become half of all.
    fn sweep(&mut self) {
        if self.sessions.len() > 2 * self.swept + SESSIONS {
            self.sessions.retain(|_, session| {
                session.is_watched() || session.ring.as_ref().is_some_and(|ring| !ring.is_empty())
            });
            self.swept = self.sessions.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tolka_facts::event::TextAppended;
    use tolka_facts::{Draft, PartId, Time};

    fn publish(live: &Live, session: &str, seqs: std::ops::RangeInclusive<u64>, size: usize) {
        let event = TextAppended { part: PartId::from("prt_1"), text: String::new() };
        let stamp = |seq| Draft::agent(event.clone()).stamp(session.into(), seq, Time::default());
        let facts: Vec<_> = seqs.map(|seq| Arc::new(stamp(seq))).collect();
        let first_place = live.read().feed.head() + 1;
        live.publish([Published { facts: &facts, sizes: vec![size; facts.len()], first_place }]);
    }

    fn recent(live: &Live, session: &str, after: u64) -> Option<Vec<u64>> {
        let page = live.recent(&Scope::Session(session.into()), after, 9999)?;
        Some(page.iter().map(|entry| entry.place).collect())
    }

    #[test]
    fn a_head_that_was_read_before_it_was_published_leaves_no_gap() {
        let live = Live::new(0);
        let bell = live.watch_session(&"a".into(), || Some(2));
        publish(&live, "a", 1..=1, 9);
        publish(&live, "a", 2..=2, 9);
        assert_eq!(recent(&live, "a", 0), Some(vec![1, 2]));
        assert_eq!(*bell.borrow(), 2);
    }

    #[test]
    fn an_unknown_head_is_not_taken_for_none() {
        let live = Live::new(0);
        let mut bell = live.watch_session(&"a".into(), || None);
        assert_eq!(recent(&live, "a", 0), None);
        publish(&live, "a", 8..=8, 9);
        assert_eq!(*bell.borrow_and_update(), 8);
        assert_eq!((recent(&live, "a", 6), recent(&live, "a", 7)), (None, Some(vec![8])));
    }

    #[test]
    fn memory_is_bounded_by_sessions_and_bytes() {
        let live = Live::new(0);
        let _bell = live.watch_session(&"s0".into(), || Some(0));
        for n in 0..2 * SESSIONS {
            publish(&live, &format!("s{n}"), 1..=2, 9);
        }
        // The watched one is still known to be at its head, without its facts.
        assert_eq!(live.read().sessions.len(), SESSIONS + 1);
        assert_eq!((recent(&live, "s0", 1), recent(&live, "s0", 2)), (None, Some(vec![])));
        assert_eq!(recent(&live, "s1", 2), None);
        for n in 0..SESSIONS {
            publish(&live, &format!("t{n}"), 1..=3, SESSION_BYTES / 3);
        }
        let state = live.read();
        let held: usize = state.sessions.values().filter_map(|session| session.ring.as_ref()).map(Ring::cost).sum();
        assert_eq!(held, state.bytes);
        assert!(state.bytes <= SESSIONS_BYTES && state.feed.cost() <= FEED_BYTES);
    }

    #[test]
    fn bells_that_nobody_hears_are_taken_down() {
        let live = Live::new(0);
        for n in 0..10 * SESSIONS {
            drop(live.watch_session(&format!("s{n}").into(), || Some(5)));
        }
        assert!(live.read().sessions.len() <= SESSIONS + 1);
    }
}
