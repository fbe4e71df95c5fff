//! A file with wrong bytes in it: damage is named, the rest is read, nothing is made up and nothing panics.

use std::fs;
use std::sync::Arc;

use tolka_facts::{Hash, SessionId};
use tolka_journal::{Append, Journal, JournalError, Kept, Scope, SessionQuery, Sqlite, SqliteOptions};

use crate::common::{Dice, batch, facts, facts_of, head, open, read_all, scope, session, told};

fn is_damage<T: std::fmt::Debug>(result: Result<T, JournalError>, says: &str) {
    match result {
        Err(JournalError::Damaged { detail, .. }) => assert!(detail.contains(says), "{detail}"),
        other => panic!("{other:?}"),
    }
}

fn change(dir: &std::path::Path, sql: &str) {
    let db = rusqlite::Connection::open(dir.join("journal.db")).unwrap();
    assert_eq!(db.execute(sql, []).unwrap(), 1);
}

/// Changes the last byte of a column.
fn flip(dir: &std::path::Path, table: &str, column: &str, row: &str) {
    let flipped = format!("CAST(substr({column}, 1, length({column}) - 1) || x'7c' AS BLOB)");
    change(dir, &format!("UPDATE {table} SET {column} = {flipped} WHERE {row}"));
}

#[tokio::test]
async fn a_flipped_bit_is_told_by_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, a, b) = (open(dir.path()), session("a"), session("b"));
    let blob = b"content".to_vec();
    let blobs = vec![(Hash::of(&blob), blob.clone())];
    journal.append(Append { blobs, ..told(&a, 1..=9, head(&a, "/w", 1)) }).await.unwrap();
    journal.append(told(&b, 1..=9, head(&b, "/w", 2))).await.unwrap();
    for seq in [3, 6] {
        journal.keep(&b, "onyx", Kept { seq, idle: true, state: vec![seq as u8; 9] }).await.unwrap();
    }
    journal.close();
    flip(dir.path(), "facts", "body", "session = 1 AND seq = 5");
    flip(dir.path(), "blobs", "content", "true");
    flip(dir.path(), "states", "state", "seq = 6");
    let journal = open(dir.path());
    is_damage(journal.read(&scope(&a), 0, 9).await, "session ses_a, fact 5");
    is_damage(journal.read(&Scope::All, 0, 99).await, "session ses_a, fact 5");
    assert_eq!(facts_of(&journal.read(&scope(&a), 5, 9).await.unwrap()), facts(&a, 6..=9));
    assert_eq!(facts_of(&journal.read(&scope(&a), 0, 4).await.unwrap()), facts(&a, 1..=4));
    assert_eq!(facts_of(&journal.read(&scope(&b), 0, 9).await.unwrap()), facts(&b, 1..=9));
    is_damage(journal.blob(&Hash::of(&blob)), Hash::of(&blob).as_str());
    assert_eq!(journal.kept(&b, "onyx", 9, false).await.unwrap().unwrap().seq, 3, "an older state will do");
    journal.append(batch(&a, 10..=10)).await.unwrap();

    journal.close();
    flip(dir.path(), "sessions", "head", "num = 2");
    let journal = open(dir.path());
    is_damage(journal.session(&b).await, "session ses_b");
    assert_eq!(journal.session(&a).await.unwrap().unwrap().seq, 10);
}

#[tokio::test]
async fn a_damaged_head_does_not_end_a_list() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    for n in 1..=5 {
        let session = session(&n.to_string());
        journal.append(told(&session, 1..=1, head(&session, "/w", n))).await.unwrap();
    }
    journal.close();
    flip(dir.path(), "sessions", "head", "num = 4");
    let journal = open(dir.path());
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let rows = journal.sessions(SessionQuery { limit: 2, after, ..SessionQuery::default() }).await.unwrap();
        let Some(last) = rows.last() else { break };
        after = Some(last.standing);
        pages.push(rows.into_iter().map(|row| row.head.id).collect::<Vec<_>>());
    }
    assert_eq!(pages, [[session("5"), session("3")], [session("2"), session("1")]]);
}

#[tokio::test]
async fn a_lost_fact_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, a, b) = (open(dir.path()), session("a"), session("b"));
    journal.append(told(&a, 1..=9, head(&a, "/w", 1))).await.unwrap();
    journal.append(told(&b, 1..=9, head(&b, "/w", 1))).await.unwrap();
    journal.close();
    change(dir.path(), "DELETE FROM facts WHERE session = 1 AND seq = 4");
    change(dir.path(), "DELETE FROM facts WHERE session = 2 AND seq = 9");
    let journal = open(dir.path());
    is_damage(journal.read(&scope(&a), 0, 9).await, "session ses_a, fact 4 is missing");
    is_damage(journal.read(&scope(&b), 0, 9).await, "session ses_b, fact 9 is missing");
    is_damage(journal.append(batch(&b, 9..=9)).await, "session ses_b");
    assert_eq!(facts_of(&journal.read(&scope(&b), 0, 8).await.unwrap()), facts(&b, 1..=8));
}

#[tokio::test]
async fn a_file_of_something_else_is_called_damaged() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("journal.db"), "not a database at all, ".repeat(999)).unwrap();
    is_damage(Sqlite::open(&SqliteOptions::new(dir.path())), "not a database");
}

const SESSIONS: u64 = 24;

/// Opens the file and reads all that it can. Gives how many sessions were whole.
async fn survey(dir: &std::path::Path, sessions: &[SessionId], what: &str) -> usize {
    let damaged = |error: &JournalError| assert!(matches!(error, JournalError::Damaged { .. }), "{what}: {error}");
    let journal = match Sqlite::open(&SqliteOptions::new(dir)) {
        Ok(journal) => journal,
        Err(error) => {
            damaged(&error);
            return 0;
        }
    };
    let mut whole = 0;
    for session in sessions {
        match read_all(&*journal, &scope(session), 0).await {
            Ok(found) if found.is_empty() => {
                let row = journal.session(session).await;
                assert!(!matches!(row, Ok(Some(_))), "{what}: {session} is there without its facts");
            }
            Ok(found) => {
                assert_eq!(facts_of(&found), facts(session, 1..=40), "{what}");
                whole += 1;
            }
            Err(error) => damaged(&error),
        }
        if let Err(error) = journal.append(batch(session, 41..=41)).await {
            let refused = matches!(error, JournalError::Damaged { .. } | JournalError::Conflict { .. });
            assert!(refused, "{what}: {error}");
        }
    }
    match read_all(&*journal, &Scope::All, 0).await {
        Ok(found) => found.iter().for_each(|entry| {
            assert_eq!(facts(&entry.fact.session, entry.fact.seq..=entry.fact.seq), [Arc::clone(&entry.fact)]);
        }),
        Err(error) => damaged(&error),
    }
    if let Err(error) = journal.sessions(SessionQuery::default()).await {
        damaged(&error);
    }
    whole
}

#[tokio::test]
async fn overwritten_bytes_never_become_facts() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let sessions: Vec<_> = (0..SESSIONS).map(|n| session(&format!("{n:02}"))).collect();
    for start in (1..=40).step_by(4) {
        for session in &sessions {
            journal.append(told(session, start..=start + 3, head(session, "/w", start))).await.unwrap();
        }
    }
    journal.close();
    let sound = fs::read(dir.path().join("journal.db")).unwrap();
    let mut dice = Dice(17);
    let (mut whole, mut tries) = (0, 0);
    for n in 0..60 {
        let mut bytes = sound.clone();
        let length = [1, 16, 512, 4096][n % 4];
        // Page borders, where the headers are, as often as anywhere.
        let at = dice.roll(bytes.len() as u64 - 4096) as usize & if n % 3 == 0 { !4095 } else { !0 };
        for byte in &mut bytes[at..at + length] {
            *byte = if length == 1 { *byte ^ (1 << dice.roll(8)) } else { dice.roll(256) as u8 };
        }
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("journal.db"), &bytes).unwrap();
        whole += survey(copy.path(), &sessions, &format!("{length} bytes at {at}")).await;
        tries += sessions.len();
    }
    println!("{whole} of {tries} sessions were read");
    assert!(whole > tries / 4, "only {whole} of {tries} sessions were read; the rest should not suffer so");
}
