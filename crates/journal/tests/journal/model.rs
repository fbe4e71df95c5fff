//! Random sequences of everything, against a journal that is a few maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tolka_facts::{Fact, Hash, SessionId};
use tolka_journal::{Append, Journal, JournalError, Kept, Scope, Sqlite};

use crate::common::{deleted, fact, facts_of, head, open, read_all, scope, session};

#[derive(Debug, Clone)]
enum Op {
    /// `late`: how far behind the session's head the writer thinks it is.
    Append {
        who: u8,
        count: u64,
        late: u64,
        mark: u8,
        blob: u8,
    },
    Keep {
        who: u8,
        seq: u64,
        idle: bool,
    },
    Delete {
        who: u8,
    },
    Purge {
        who: u8,
    },
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..3u8;
    prop_oneof![
        6 => (who.clone(), 1..40u64, prop_oneof![9 => Just(0), 1 => 1..3u64], 0..4u8, 0..4u8)
            .prop_map(|(who, count, late, mark, blob)| Op::Append { who, count, late, mark, blob }),
        2 => (who.clone(), 0..100u64, any::<bool>()).prop_map(|(who, seq, idle)| Op::Keep { who, seq, idle }),
        1 => who.clone().prop_map(|who| Op::Delete { who }),
        1 => who.prop_map(|who| Op::Purge { who }),
        1 => Just(Op::Reopen),
    ]
}

#[derive(Debug, Default)]
struct Told {
    facts: Vec<Arc<Fact>>,
    marks: BTreeMap<String, u64>,
    states: BTreeMap<u64, Kept>,
    blobs: Vec<u8>,
    deleted: bool,
}

#[derive(Debug, Default)]
struct Model {
    sessions: BTreeMap<SessionId, Told>,
    feed: Vec<Arc<Fact>>,
    made: u64,
}

fn content(blob: u8) -> Vec<u8> {
    vec![blob; 5000 * usize::from(blob)]
}

impl Model {
    /// Does the same to both, and finds the same verdict.
    async fn apply(&mut self, journal: &dyn Journal, op: &Op) {
        let name = |who: &u8| session(&who.to_string());
        match op {
            Op::Append { who, count, late, mark, blob } => {
                let id = name(who);
                let (was, deleted) =
                    self.sessions.get(&id).map_or((0, false), |told| (told.facts.len() as u64, told.deleted));
                let first = was.saturating_sub(*late) + 1;
                self.append(journal, &id, first..first + count, *mark, *blob, deleted).await;
            }
            Op::Delete { who } => {
                let id = name(who);
                if let Some(told) = self.sessions.get(&id) {
                    let next = told.facts.len() as u64 + 1;
                    self.append(journal, &id, next..next + 1, 0, 0, true).await;
                }
            }
            Op::Keep { who, seq, idle } => {
                let kept = Kept { seq: *seq, idle: *idle, state: seq.to_le_bytes().to_vec() };
                match (self.sessions.get_mut(&name(who)), journal.keep(&name(who), "x", kept.clone()).await) {
                    (Some(told), Ok(())) => drop(told.states.insert(*seq, kept)),
                    (None, Err(JournalError::NoSession { .. })) => {}
                    (told, result) => panic!("{result:?} for {told:?}"),
                }
            }
            Op::Purge { who } => {
                let id = name(who);
                match (self.sessions.get(&id), journal.purge(&id).await) {
                    (Some(told), Ok(purged)) if told.deleted => {
                        assert_eq!(purged.facts, told.facts.len() as u64);
                        self.feed.retain(|fact| fact.session != id);
                        self.sessions.remove(&id);
                    }
                    (Some(told), Err(JournalError::NotDeleted { .. })) if !told.deleted => {}
                    (None, Err(JournalError::NoSession { .. })) => {}
                    (told, result) => panic!("{result:?} for {told:?}"),
                }
            }
            Op::Reopen => {}
        }
    }

    async fn append(
        &mut self,
        journal: &dyn Journal,
        id: &SessionId,
        seqs: std::ops::Range<u64>,
        mark: u8,
        blob: u8,
        gone: bool,
    ) {
        let first = seqs.start;
        let facts: Vec<_> = seqs
            .map(|seq| {
                self.made += 1;
                fact(id, seq, &self.made.to_string())
            })
            .collect();
        let marks: Vec<_> = (0..mark).map(|n| (format!("m{n}"), first)).collect();
        let blobs = (0..blob).map(|n| (Hash::of(&content(n)), content(n))).collect();
        let plain = head(id, "/w", self.made);
        let head = Some(if gone { deleted(plain) } else { plain });
        let result =
            journal.append(Append { facts: facts.clone(), blobs, marks: marks.clone(), head, tip: None }).await;
        let was = self.sessions.get(id).map_or(0, |told| told.facts.len() as u64);
        if first != was + 1 {
            assert!(matches!(result, Err(JournalError::Conflict { actual, .. }) if actual == was), "{result:?}");
            return;
        }
        result.unwrap();
        let told = self.sessions.entry(id.clone()).or_default();
        told.facts.extend(facts.iter().cloned());
        for (name, seq) in marks {
            told.marks.entry(name).or_insert(seq);
        }
        told.blobs.extend(0..blob);
        told.deleted = gone;
        self.feed.extend(facts);
    }

    async fn compare(&self, journal: &dyn Journal) {
        for id in (0..3).map(|who: u8| session(&who.to_string())) {
            let nobody = Told::default();
            let told = self.sessions.get(&id).unwrap_or(&nobody);
            let last = told.facts.len() as u64;
            assert_eq!(facts_of(&read_all(journal, &scope(&id), 0).await.unwrap()), told.facts);
            assert_eq!(journal.session(&id).await.unwrap().map_or(0, |row| row.seq), last);
            assert_eq!(*journal.watch(&scope(&id)).borrow(), last);
            if let Some(recent) = journal.recent(&scope(&id), last.saturating_sub(5), 9) {
                assert_eq!(facts_of(&recent), told.facts[last.saturating_sub(5) as usize..]);
            }
            for name in ["m0", "m1", "m2"] {
                assert_eq!(journal.mark(&id, name).await.unwrap(), told.marks.get(name).copied());
            }
            for (seq, idle) in [(50, false), (50, true), (99, false)] {
                let kept = told.states.range(..=seq).rev().map(|(_, kept)| kept).find(|kept| kept.idle || !idle);
                assert_eq!(journal.kept(&id, "x", seq, idle).await.unwrap().as_ref(), kept);
            }
        }
        let feed = read_all(journal, &Scope::All, 0).await.unwrap();
        assert!(feed.is_sorted_by(|a, b| a.place < b.place));
        assert_eq!(facts_of(&feed), self.feed);
        for blob in 0..4 {
            let wanted = self.sessions.values().any(|told| told.blobs.contains(&blob));
            assert_eq!(journal.blob(&Hash::of(&content(blob))).unwrap(), wanted.then(|| content(blob)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn does_what_a_few_maps_would_do(ops in proptest::collection::vec(op(), 1..40)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let mut journal = open(dir.path());
            let mut model = Model::default();
            for (n, op) in ops.iter().enumerate() {
                if matches!(op, Op::Reopen) {
                    Sqlite::close(&journal);
                    journal = open(dir.path());
                }
                model.apply(&*journal, op).await;
                if n % 8 == 7 || n + 1 == ops.len() || matches!(op, Op::Reopen | Op::Purge { .. }) {
                    model.compare(&*journal).await;
                }
            }
        });
    }
}
