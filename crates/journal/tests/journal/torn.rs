//! A log that ends anywhere: what was committed before the cut is there, what was not is gone, whole batches both.

use std::fs;
use std::path::Path;

use tolka_facts::SessionId;
use tolka_journal::Journal;

use crate::common::{Dice, batch, facts, facts_of, open, read_all, scope, session};

/// How far each session was when the log had a length.
struct Commit {
    log: u64,
    heads: [u64; 2],
}

struct Written {
    db: Vec<u8>,
    log: Vec<u8>,
    commits: Vec<Commit>,
    sessions: [SessionId; 2],
}

/// Some sixty commits, none of them folded into the file yet.
async fn write() -> Written {
    let dir = tempfile::tempdir().unwrap();
    let (db, log) = (dir.path().join("journal.db"), dir.path().join("journal.db-wal"));
    let journal = open(dir.path());
    let sessions = [session("a"), session("b")];
    let mut heads = [0, 0];
    let mut commits = vec![Commit { log: log.metadata().unwrap().len(), heads }];
    let mut dice = Dice(7);
    for n in 0..60 {
        let which = n % 2;
        let last = heads[which] + 1 + dice.roll(12);
        journal.append(batch(&sessions[which], heads[which] + 1..=last)).await.unwrap();
        heads[which] = last;
        commits.push(Commit { log: log.metadata().unwrap().len(), heads });
    }
    assert!(commits.is_sorted_by(|a, b| a.log < b.log), "the log was folded in; write less");
    Written { db: fs::read(db).unwrap(), log: fs::read(log).unwrap(), commits, sessions }
}

impl Written {
    /// Opens what a crash would have left, and compares it with the last commit that is whole up to `at`.
    async fn check(&self, at: u64, log: &[u8], folder: &Path) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("journal.db"), &self.db).unwrap();
        fs::write(folder.join("journal.db-wal"), log).unwrap();
        let journal = open(folder);
        let heads = self.commits.iter().rfind(|commit| commit.log <= at).map_or([0, 0], |commit| commit.heads);
        for (session, head) in self.sessions.iter().zip(heads) {
            let found = read_all(&*journal, &scope(session), 0).await.unwrap();
            assert_eq!(facts_of(&found), facts(session, 1..=head), "cut at {at}");
            journal.append(batch(session, head + 1..=head + 3)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_log_that_was_cut_ends_at_a_commit() {
    let written = write().await;
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(11);
    let length = written.log.len() as u64;
    let mut cuts = vec![0, 1, 31, 32, 33, length];
    for commit in written.commits.iter().step_by(5) {
        cuts.extend([commit.log.saturating_sub(1), commit.log, commit.log + 1]);
    }
    cuts.extend((0..30).map(|_| dice.roll(length)));
    for cut in cuts.into_iter().filter(|cut| *cut <= length) {
        written.check(cut, &written.log[..cut as usize], &folder.path().join("torn")).await;
    }
}

#[tokio::test]
async fn a_log_that_was_garbled_ends_before_the_damage() {
    let written = write().await;
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(13);
    for _ in 0..40 {
        let mut log = written.log.clone();
        let at = dice.roll(log.len() as u64 - 512) as usize;
        log[at..at + 512].iter_mut().for_each(|byte| *byte = !*byte);
        // One kind of disk leaves zeros behind the damage, the other what was meant to be there.
        if dice.roll(2) == 0 {
            log[at + 512..].fill(0);
        }
        written.check(at as u64, &log, &folder.path().join("torn")).await;
    }
}
