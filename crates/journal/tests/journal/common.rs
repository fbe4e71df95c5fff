use std::ops::RangeInclusive;
use std::sync::Arc;

use tolka_facts::event::TextAppended;
use tolka_facts::{Draft, Fact, Head, PartId, SessionId, Time};
use tolka_journal::{Append, Entry, Journal, JournalError, Scope, Sqlite, SqliteOptions};

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::from(format!("ses_{name}"))
}

pub(crate) fn scope(session: &SessionId) -> Scope {
    Scope::Session(session.clone())
}

pub(crate) fn fact(session: &SessionId, seq: u64, text: &str) -> Arc<Fact> {
    let event = TextAppended { part: PartId::from("prt_1"), text: text.to_owned() };
    Arc::new(Draft::agent(event).stamp(session.clone(), seq, Time::from_millis(seq)))
}

pub(crate) fn facts(session: &SessionId, seqs: RangeInclusive<u64>) -> Vec<Arc<Fact>> {
    seqs.map(|seq| fact(session, seq, &format!("{session} says {seq}"))).collect()
}

pub(crate) fn batch(session: &SessionId, seqs: RangeInclusive<u64>) -> Append {
    Append { facts: facts(session, seqs), ..Append::default() }
}

/// A batch that also tells what lists show.
pub(crate) fn told(session: &SessionId, seqs: RangeInclusive<u64>, head: Head) -> Append {
    Append { head: Some(head), ..batch(session, seqs) }
}

pub(crate) fn head(session: &SessionId, workspace: &str, updated: u64) -> Head {
    let updated = Time::from_millis(updated);
    Head {
        id: session.clone(),
        workspace: workspace.to_owned(),
        title: format!("on {session}"),
        updated,
        ..Head::default()
    }
}

pub(crate) fn deleted(head: Head) -> Head {
    Head { deleted: true, ..head }
}

/// Everything after a place, page by page.
pub(crate) async fn read_all(journal: &dyn Journal, scope: &Scope, after: u64) -> Result<Vec<Entry>, JournalError> {
    let mut all = Vec::new();
    let mut cursor = after;
    loop {
        let page = journal.read(scope, cursor, 100).await?;
        let Some(last) = page.last() else { return Ok(all) };
        cursor = last.place;
        all.extend(page);
    }
}

pub(crate) fn facts_of(entries: &[Entry]) -> Vec<Arc<Fact>> {
    entries.iter().map(|entry| Arc::clone(&entry.fact)).collect()
}

/// A live reader, as the server has them: memory first, then the disk, then the bell.
pub(crate) async fn follow(journal: &dyn Journal, scope: &Scope, after: u64, count: usize) -> Vec<Entry> {
    let mut bell = journal.watch(scope);
    let (mut seen, mut cursor) = (Vec::new(), after);
    loop {
        let head = *bell.borrow_and_update();
        loop {
            let page = match journal.recent(scope, cursor, 7) {
                Some(page) => page,
                None => journal.read(scope, cursor, 7).await.unwrap(),
            };
            let Some(last) = page.last() else { break };
            cursor = last.place;
            seen.extend(page);
        }
        assert!(cursor >= head, "the bell rang for {head}, and only {cursor} can be read");
        if seen.len() >= count {
            return seen;
        }
        bell.changed().await.unwrap();
    }
}

pub(crate) fn open(dir: &std::path::Path) -> Arc<Sqlite> {
    Sqlite::open(&SqliteOptions::new(dir)).unwrap()
}

/// The same numbers every time; good enough to choose where to hurt a file.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}
