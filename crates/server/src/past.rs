//! Pages of the past: some turns of a session, found by its marks, so that what a page takes does not grow with the
//! session.
//!
//! A page starts at an idle moment, where an earlier turn ended, and takes along what was told between that turn and its
//! first: prompts, notices. What is open there stands in its [`Tip`]: a prompt that waited for its turn through earlier
//! pages is in the tip's queue, and in no fact of this page. Since a turn is on one page, what later facts do to what is on
//! a page is little: a prompt that still waits at its end may be dropped later, so it belongs to the page of its turn or to
//! the last one; and a message may be hidden later, for good or by a rewind: see [`hidden`] and [`hidden_from`].

use std::collections::HashSet;

use tolka_facts::{Fact, MessageId, SessionId, Tip, View};
use tolka_journal::{Journal, JournalError, Mark, MarkKind, Scope, tip_at};

const READ: u64 = 512;

/// How far back a page goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    pub(crate) turns: usize,
    /// Fewer turns if they have more facts than this. A single turn that has more is cut, so that the page starts inside
    /// of it.
    pub(crate) facts: u64,
}

impl Reach {
    /// So many turns, whatever their size.
    pub(crate) fn turns(turns: usize) -> Self {
        Reach { turns, facts: u64::MAX }
    }
}

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) session: SessionId,
    /// The session before the page's first fact. Its `seq` is where the page before this one ends.
    pub(crate) tip: Tip,
    /// The page's last fact.
    pub(crate) to: u64,
}

impl Page {
    /// The last turns up to a fact: the end of the session, or where a later page starts.
    pub(crate) async fn back_from(
        journal: &dyn Journal,
        session: &SessionId,
        to: u64,
        reach: Reach,
    ) -> Result<Self, JournalError> {
        let from = start(journal, session, to, reach).await?;
        let tip = tip_at(journal, session, from).await?;
        Ok(Page { session: session.clone(), tip, to })
    }

    /// Whether there is something before it.
    pub(crate) fn has_more(&self) -> bool {
        self.tip.seq > 0
    }

    /// Its facts in their order; no more than a few hundred are in memory.
    pub(crate) async fn each(&self, journal: &dyn Journal, mut each: impl FnMut(&Fact)) -> Result<(), JournalError> {
        let (scope, mut at) = (Scope::Session(self.session.clone()), self.tip.seq);
        while at < self.to {
            let wanted = usize::try_from(READ.min(self.to - at)).unwrap_or_default();
            let page = journal.read(&scope, at, wanted).await?;
            let Some(last) = page.last() else { break };
            at = last.place;
            page.iter().for_each(|entry| each(&entry.fact));
        }
        Ok(())
    }

    /// What it shows, as it stands at a later place: the end of the session, or any other that is looked back from.
    pub(crate) async fn view(&self, journal: &dyn Journal, end: u64) -> Result<View, JournalError> {
        let mut view = View::since(self.tip.clone());
        self.each(journal, |fact| view.apply(fact)).await?;
        if self.to < end {
            view.forget_waiting();
            let hidden = hidden(journal, &self.session, self.to, end, view.ids()).await?;
            view.hide(&hidden);
            view.rewind(hidden_from(journal, &self.session, end).await?);
        }
        Ok(view)
    }
}

/// The place before the page's first fact.
async fn start(journal: &dyn Journal, session: &SessionId, to: u64, reach: Reach) -> Result<u64, JournalError> {
    let turns = reach.turns.max(1);
    let starts = journal.marks(session, MarkKind::TurnStart, to.saturating_add(1), turns).await?;
    // A turn ends before the next one starts, so these reach as far back.
    let ends = journal.marks(session, MarkKind::TurnEnd, to.saturating_add(1), turns.saturating_add(1)).await?;
    let before = |start: u64| ends.iter().copied().find(|end| *end < start).unwrap_or(0);
    let mut idle: Vec<u64> = starts.into_iter().map(before).collect();
    if idle.len() < turns {
        // Fewer turns than that: all there is, also in a session that has had none.
        idle.push(0);
    }
    let earliest = to.saturating_sub(reach.facts.max(1));
    Ok(idle.into_iter().filter(|from| *from >= earliest).min().unwrap_or(earliest))
}

/// Those of some messages that were hidden by a fact after one place, up to another.
pub(crate) async fn hidden(
    journal: &dyn Journal,
    session: &SessionId,
    after: u64,
    to: u64,
    messages: impl IntoIterator<Item = &MessageId>,
) -> Result<HashSet<MessageId>, JournalError> {
    let mut found = HashSet::new();
    // Hiding is rare: most often this is the only question.
    let last = journal.marks(session, MarkKind::Hidden, to.saturating_add(1), 1).await?;
    if last.first().is_none_or(|last| *last <= after) {
        return Ok(found);
    }
    for message in messages {
        let hidden = journal.mark(session, &Mark::Hidden(message).to_string()).await?;
        if hidden.is_some_and(|seq| seq > after && seq <= to) {
            found.insert(message.clone());
        }
    }
    Ok(found)
}

/// Where the first turn started that rewinds hide at a place, see [`Tip::hidden_from`].
pub(crate) async fn hidden_from(
    journal: &dyn Journal,
    session: &SessionId,
    at: u64,
) -> Result<Option<u64>, JournalError> {
    // Rewinds are rare as well, and to have a tip may take reading facts.
    if journal.marks(session, MarkKind::Rewound, at.saturating_add(1), 1).await?.is_empty() {
        return Ok(None);
    }
    Ok(tip_at(journal, session, at).await?.hidden_from())
}

#[cfg(test)]
pub(crate) mod tests;
