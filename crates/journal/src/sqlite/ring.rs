//! The last facts of a scope, in memory: what nearly every reader of a live session asks for.
//!
//! A ring knows everything after its floor and nothing at or before it; that is what lets it say "nothing new"
//! without asking the disk, and keeps it from telling a gap.

use std::collections::VecDeque;

use tolka_facts::{Fact, SessionId};

use crate::Entry;

/// The bodies in one page take no more than this, unless a single one does.
const PAGE_BYTES: usize = 1024 * 1024;

/// What a fact takes beside its text: itself, its entries in two rings, the allocator's share of its strings.
const ENVELOPE: usize = size_of::<Fact>() + 160;

/// How much of a page is left. Memory and disk cut pages by the same rule.
#[derive(Debug)]
pub(super) struct Room {
    facts: usize,
    bytes: usize,
    first: bool,
}

impl Room {
    pub(super) fn new(limit: usize) -> Self {
        Room { facts: limit, bytes: PAGE_BYTES, first: true }
    }

    pub(super) fn takes(&mut self, size: usize) -> bool {
        if self.facts == 0 || (size > self.bytes && !self.first) {
            return false;
        }
        self.facts -= 1;
        self.bytes = self.bytes.saturating_sub(size);
        self.first = false;
        true
    }
}

#[derive(Debug)]
struct Held {
    entry: Entry,
    size: usize,
}

#[derive(Debug)]
pub(super) struct Ring {
    floor: u64,
    head: u64,
    held: VecDeque<Held>,
    cost: usize,
}

impl Ring {
    /// Empty, at the end of its scope.
    pub(super) fn at(head: u64) -> Self {
        Ring { floor: head, head, held: VecDeque::new(), cost: 0 }
    }

    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn push(&mut self, entry: Entry, size: usize) {
        self.head = entry.place;
        self.cost += size + ENVELOPE;
        self.held.push_back(Held { entry, size });
    }

    pub(super) fn trim(&mut self, facts: usize, cost: usize) {
        while self.held.len() > facts || self.cost > cost {
            let Some(oldest) = self.held.pop_front() else { break };
            self.cost -= oldest.size + ENVELOPE;
            self.floor = oldest.entry.place;
        }
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        self.held.retain(|held| held.entry.fact.session != *session);
        self.cost = self.held.iter().map(|held| held.size + ENVELOPE).sum();
    }

    /// `None`: the disk knows, this does not.
    pub(super) fn page(&self, after: u64, limit: usize) -> Option<Vec<Entry>> {
        if after < self.floor {
            return None;
        }
        let mut room = Room::new(limit);
        let start = self.held.partition_point(|held| held.entry.place <= after);
        Some(self.held.range(start..).take_while(|held| room.takes(held.size)).map(|held| held.entry.clone()).collect())
    }
}
