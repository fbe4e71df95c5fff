//! Purging beside the trait's promises: space comes back, others are not held up, a crash is made good.

use tolka_facts::Hash;
use tolka_journal::{Append, Journal, Scope};

use crate::common::{batch, deleted, fact, facts, facts_of, head, open, read_all, scope, session, told};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_gets_smaller_and_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, big, small) = (open(dir.path()), session("big"), session("small"));
    let text = "x".repeat(2000);
    for round in 0..10 {
        let facts = (1..=500).map(|n| fact(&big, round * 500 + n, &text)).collect();
        let content = vec![round as u8; 500_000];
        let blobs = vec![(Hash::of(&content), content)];
        journal.append(Append { facts, blobs, ..Append::default() }).await.unwrap();
        journal.append(batch(&small, round + 1..=round + 1)).await.unwrap();
    }
    journal.append(told(&big, 5001..=5001, deleted(head(&big, "", 1)))).await.unwrap();
    let size = || dir.path().join("journal.db").metadata().unwrap().len();
    let before = size();
    assert!(before > 10_000_000);

    let (purged, ()) = tokio::join!(journal.purge(&big), async {
        for seq in 11..=20 {
            journal.append(batch(&small, seq..=seq)).await.unwrap();
            let all = read_all(&*journal, &Scope::All, 0).await.unwrap();
            let of_big = all.iter().filter(|entry| entry.fact.session == big).count();
            assert!(of_big == 0 || of_big == 5001, "{of_big} facts of a session that is being purged");
        }
    });
    let purged = purged.unwrap();
    assert_eq!((purged.facts, purged.blobs), (5001, 10));
    // A reader may have been in the way of the last checkpoint; closing makes it.
    journal.close();
    assert!(size() < before / 10, "{} of {before} bytes are left", size());
    let journal = open(dir.path());
    assert_eq!(facts_of(&read_all(&*journal, &scope(&small), 0).await.unwrap()), facts(&small, 1..=20));
}

#[tokio::test]
async fn the_file_gets_smaller_at_once_when_nobody_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, a) = (open(dir.path()), session("a"));
    let text = "x".repeat(2000);
    let facts = (1..=2000).map(|seq| fact(&a, seq, &text)).collect();
    journal.append(Append { facts, head: Some(deleted(head(&a, "", 1))), ..Append::default() }).await.unwrap();
    journal.purge(&a).await.unwrap();
    assert!(dir.path().join("journal.db").metadata().unwrap().len() < 200_000);
}

#[tokio::test]
async fn a_purge_cut_short_goes_on_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, a, b) = (open(dir.path()), session("a"), session("b"));
    journal.append(told(&a, 1..=9, deleted(head(&a, "", 1)))).await.unwrap();
    journal.append(told(&b, 1..=1, deleted(head(&b, "", 1)))).await.unwrap();
    journal.close();
    // As a process leaves it that died after the first step of a purge.
    let db = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
    db.execute_batch(
        "INSERT INTO purging SELECT num FROM sessions WHERE id = 'ses_a'; DELETE FROM sessions WHERE id = 'ses_a'",
    )
    .unwrap();
    let facts = || db.query_row("SELECT count(*) FROM facts", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(facts(), 10);

    let journal = open(dir.path());
    assert_eq!(journal.read(&scope(&a), 0, 9).await.unwrap(), []);
    // Purges are done in order: when this one is, the other was.
    assert_eq!(journal.purge(&b).await.unwrap().facts, 1);
    assert_eq!(facts(), 0);
}
