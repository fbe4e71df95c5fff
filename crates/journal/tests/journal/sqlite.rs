//! The journal that ships: it conforms, and opens and closes as it says.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use tolka_journal::{Append, Journal, JournalError, Scope, SessionQuery, Sqlite, SqliteOptions};

use crate::common::{batch, fact, open, read_all, scope, session};

fn reopener() -> impl FnMut() -> Arc<dyn Journal> + Send {
    let dir = tempfile::tempdir().unwrap();
    let mut last = None::<Arc<Sqlite>>;
    move || {
        if let Some(last) = last.take() {
            last.close();
        }
        let journal = open(dir.path());
        last = Some(Arc::clone(&journal));
        journal
    }
}

crate::conformance::conform!(reopener());

#[tokio::test]
async fn two_journals_have_two_epochs() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_ne!(open(a.path()).epoch(), open(b.path()).epoch());
}

#[tokio::test]
async fn the_folder_is_its_users_alone() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b");
    let journal = open(&deep);
    journal.append(batch(&session("a"), 1..=1)).await.unwrap();
    let mode = |path: &str| deep.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("."), 0o700);
    for file in ["journal.db", "journal.db-wal", "journal.db-shm", "lock"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
}

#[tokio::test]
async fn closing_writes_what_was_asked_for_and_refuses_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..400 {
        let (journal, session) = (Arc::clone(&journal), session(&n.to_string()));
        asked.spawn(async move { (session.clone(), journal.append(batch(&session, 1..=2)).await) });
    }
    let mut written = Vec::new();
    while let Some(done) = asked.join_next().await {
        match done.unwrap() {
            (session, Ok(())) => written.push(session),
            (_, Err(JournalError::Closed)) => {}
            (_, Err(other)) => panic!("{other}"),
        }
        if written.len() == 20 {
            journal.close();
        }
    }
    assert!(matches!(journal.append(batch(&session("x"), 1..=1)).await, Err(JournalError::Closed)));
    assert!(matches!(journal.read(&Scope::All, 0, 1).await, Err(JournalError::Closed)));
    assert!(matches!(journal.announce("x"), Err(JournalError::Closed)));
    assert!(!dir.path().join("journal.db-wal").exists(), "the log is folded in");

    // The folder is free while the closed journal still lives.
    let again = open(dir.path());
    for session in &written {
        assert_eq!(again.read(&scope(session), 0, 9).await.unwrap().len(), 2, "{session}");
    }
    let all = read_all(&*again, &Scope::All, 0).await.unwrap();
    assert_eq!(all.len(), 2 * again.sessions(SessionQuery::default()).await.unwrap().len());
}

#[tokio::test]
async fn a_newer_format_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let db = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let error = Sqlite::open(&SqliteOptions::new(dir.path())).unwrap_err();
    assert!(matches!(error, JournalError::TooNew { found: 99, known: 3, .. }), "{error}");
}

#[tokio::test]
async fn a_new_file_has_nothing_of_what_an_older_one_left() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (journal, a) = (open(old.path()), session("a"));
    journal.append(batch(&a, 1..=3)).await.unwrap();
    // Its file is gone, its log is not; and somebody was killed while making a new one.
    std::fs::copy(old.path().join("journal.db-wal"), new.path().join("journal.db-wal")).unwrap();
    std::fs::write(new.path().join("journal.db.new"), "half of a file").unwrap();
    let journal = open(new.path());
    assert_eq!(read_all(&*journal, &Scope::All, 0).await.unwrap(), []);
    journal.append(batch(&a, 1..=2)).await.unwrap();
    drop(journal);
    assert_eq!(read_all(&*open(new.path()), &scope(&a), 0).await.unwrap().len(), 2);
    assert!(!new.path().join("journal.db.new").exists());
}

#[tokio::test]
async fn an_append_that_nobody_waits_for_leaves_the_journal_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, a) = (open(dir.path()), session("a"));
    for n in 0..20 {
        let facts = vec![fact(&a, 1, &n.to_string())];
        // Polled once, then dropped: it may or may not come to be written.
        tokio::select! {
            biased;
            _ = journal.append(Append { facts, ..Append::default() }) => {}
            () = std::future::ready(()) => {}
        }
    }
    let head = read_all(&*journal, &scope(&a), 0).await.unwrap().len() as u64;
    let next = if head == 0 { 1 } else { 2 };
    // One of the abandoned may be written in between; then this one learns it.
    match journal.append(batch(&a, next..=next)).await {
        Ok(()) => {}
        Err(JournalError::Conflict { actual, .. }) => assert_eq!(actual, 1),
        Err(other) => panic!("{other}"),
    }
}
