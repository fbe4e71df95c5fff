//! What was taken back and may come again, and what changes are counted from.
//!
//! Each rewind says anew what is hidden, so the last one that hides anything decides: one to a later prompt shows again
//! what lies before that. Taken back, it leaves the decision to the one before it. Rewinds of files alone decide nothing.

use serde::{Deserialize, Serialize};

use super::Tip;
use crate::event::{Approved, Changes, Rewound, Unrewound};
use crate::{MessageId, Time};

/// So many can be taken back one after the other.
const REWINDS: usize = 32;

/// A rewind that can be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Rewind {
    /// Of its [`Rewound`](crate::event::Rewound) fact.
    pub seq: u64,
    /// `None`: the files stayed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint: Option<String>,
    /// The files before it; taking it back restores them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<String>,
    /// `None`: the conversation stayed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<MessageId>,
    /// Turns that started at this place or later, and before `seq`, are taken back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Base {
    pub checkpoint: String,
    /// The fact that named it.
    pub seq: u64,
    /// When it was approved; `None` if nothing was yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approved: Option<Time>,
    /// How often work was approved or reset.
    pub settled: u64,
}

impl Rewind {
    /// Where the first turn started that it hides. `None`: it hides nothing.
    pub fn hidden_from(&self) -> Option<u64> {
        self.from.filter(|_| self.message.is_some())
    }

    fn hides(&self) -> bool {
        self.hidden_from().is_some()
    }
}

impl Tip {
    /// Where the first turn started that is taken back and may come again: all from there on are hidden, until the rewind
    /// is taken back or the next turn starts.
    pub fn hidden_from(&self) -> Option<u64> {
        self.deciding().and_then(Rewind::hidden_from)
    }

    /// Whether the turn that started at this place is hidden by a rewind.
    pub fn hides(&self, started: u64) -> bool {
        self.hidden_from().is_some_and(|from| from <= started)
    }

    pub(super) fn deciding(&self) -> Option<&Rewind> {
        self.rewinds.iter().rev().find(|rewind| rewind.hides()).or(self.buried.as_ref())
    }

    pub(super) fn rewound(&mut self, e: &Rewound) {
        self.rewinding = None;
        self.counted(e.total.as_ref());
        if self.rewinds.len() == REWINDS {
            let first = self.rewinds.remove(0);
            self.buried = Some(first).filter(Rewind::hides).or_else(|| self.buried.take());
        }
        self.rewinds.push(Rewind {
            seq: self.seq,
            checkpoint: e.checkpoint.clone(),
            before: e.before.clone(),
            message: e.message.clone(),
            from: e.from,
        });
        if e.resets
            && let Some(base) = &mut self.base
        {
            base.settled += 1;
        }
        self.head.updated = self.time;
    }

    pub(super) fn unrewound(&mut self, e: &Unrewound) {
        // All from that one on.
        match self.rewinding.take().and_then(|started| started.undoes) {
            Some(first) => self.rewinds.retain(|rewind| rewind.seq < first),
            None => drop(self.rewinds.pop()),
        }
        self.counted(e.total.as_ref());
        self.head.updated = self.time;
    }

    /// A turn starts: what was taken back stays so.
    pub(super) fn settle(&mut self) {
        self.has_settled = self.deciding().is_some();
        self.rewinds.clear();
        self.buried = None;
    }

    pub(super) fn approved(&mut self, e: &Approved) {
        let settled = self.base.take().map_or(0, |base| base.settled) + 1;
        let (checkpoint, seq) = (e.checkpoint.clone(), self.seq);
        self.base = Some(Base { checkpoint, seq, approved: Some(self.time), settled });
        self.counted(Some(&Changes::default()));
    }

    /// The first snapshot is what changes are counted from.
    pub(super) fn begin_from(&mut self, checkpoint: &str) {
        let (checkpoint, seq) = (checkpoint.to_owned(), self.seq);
        self.base.get_or_insert(Base { checkpoint, seq, approved: None, settled: 0 });
    }

    /// A snapshot knows what changed; what was told of it one by one does not add up to more.
    pub(super) fn counted(&mut self, total: Option<&Changes>) {
        if let Some(total) = total {
            let head = &mut self.head;
            (head.files, head.added, head.removed) = (total.count, total.added, total.removed);
        }
    }
}
