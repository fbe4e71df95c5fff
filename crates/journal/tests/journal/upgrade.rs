//! Files of older formats: what they lack is made of what they have.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tolka_facts::event::{Parent, ParentKind, SessionChosen};
use tolka_facts::{Draft, Event, Fact, Head, SessionId, Tip};
use tolka_journal::{
    Append, Journal, JournalError, Kept, Kin, Mark, MarkKind, SessionQuery, Sqlite, SqliteOptions, TIP,
};

use crate::common::{head, open, read_all, scope, session, told};

/// One or more facts of every kind that sessions have.
const ALL: &str = include_str!("../../../../tests/data/facts/v1.jsonl");

/// As the version before the third format left a file that the present one wrote.
fn as_second_format(dir: &Path) -> Connection {
    let db = Connection::open(dir.join("journal.db")).unwrap();
    db.execute_batch(
        "DELETE FROM marks WHERE name GLOB 'point:*' OR name GLOB 'checkpoint:*';
         UPDATE states SET name = 'tip.2', state = CAST(json_remove(CAST(state AS TEXT), '$.base') AS BLOB);
         PRAGMA user_version = 2",
    )
    .unwrap();
    for (num, state) in states(&db) {
        db.execute("UPDATE states SET crc = ?2 WHERE num = ?1", (num, crc32fast::hash(&state))).unwrap();
    }
    db
}

fn states(db: &Connection) -> Vec<(i64, Vec<u8>)> {
    let mut select = db.prepare("SELECT num, state FROM states ORDER BY num").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// As the version before the second format did.
fn as_first_format(dir: &Path) -> Connection {
    let db = as_second_format(dir);
    for index in ["sessions_open", "sessions_by_parent", "marks_by_kind"] {
        db.execute_batch(&format!("DROP INDEX {index}")).unwrap();
    }
    for column in ["open", "archived", "parent", "subagent"] {
        db.execute_batch(&format!("ALTER TABLE sessions DROP COLUMN {column}")).unwrap();
    }
    for unknown in ["step", "asked", "save", "commands", "hidden", "rewound"] {
        db.execute_batch(&format!("DELETE FROM marks WHERE name GLOB '{unknown}:*'")).unwrap();
    }
    db.execute_batch(
        "UPDATE marks SET name = 'last:' || name WHERE name GLOB 'call:*';
         UPDATE marks SET name = 'last:chosen' WHERE name = 'chosen:';
         PRAGMA user_version = 1",
    )
    .unwrap();
    db
}

/// A session in which everything happens, some of it again and again; longer than what is read at once.
async fn write_all(journal: &dyn Journal, session: &SessionId) {
    let mut facts: Vec<Fact> = ALL.lines().map(|line| Fact::from_json(line.as_bytes()).unwrap()).collect();
    let chosen = SessionChosen { session: Some(session.clone()) };
    facts.push(Draft::client(chosen).stamp(session.clone(), 0, facts[0].time));
    let ends = |fact: &&Fact| matches!(fact.event, Event::TurnEnded(_));
    // While a turn is open calls end.
    let (ended, inside): (Vec<&Fact>, Vec<&Fact>) = facts.iter().partition(ends);
    let mut tip = Tip::default();
    while tip.seq < 1200 {
        let mut append = Append::default();
        for fact in inside.iter().chain(&ended) {
            let draft = Draft { cause: fact.cause, event: fact.event.clone(), raw: None };
            let fact = draft.stamp(session.clone(), tip.seq + 1, fact.time);
            tip.apply(&fact);
            append.marks.extend(Mark::of(&fact, &tip).map(|mark| (mark.to_string(), fact.seq)));
            append.facts.push(Arc::new(fact));
        }
        append.head = Some(tip.head.clone());
        append.tip = Some(Kept { seq: tip.seq, idle: tip.is_idle(), state: serde_json::to_vec(&tip).unwrap() });
        journal.append(append).await.unwrap();
    }
}

fn marks(db: &Connection) -> Vec<(i64, String, i64)> {
    let mut select = db.prepare("SELECT session, name, seq FROM marks ORDER BY session, name").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Two sessions as the present format has them.
async fn write_file(dir: &Path) -> Connection {
    let journal = open(dir);
    for name in ["a", "b"] {
        write_all(&*journal, &session(name)).await;
    }
    journal.close();
    Connection::open(dir.join("journal.db")).unwrap()
}

/// The same as the first format had them, and the marks that they had in the present one.
async fn old_file(dir: &Path) -> (Connection, Vec<(i64, String, i64)>) {
    let fresh = marks(&write_file(dir).await);
    let old = as_first_format(dir);
    assert!(marks(&old).len() < fresh.len());
    (old, fresh)
}

#[tokio::test]
async fn all_marks_are_set_as_if_they_always_had_been() {
    let dir = tempfile::tempdir().unwrap();
    let (db, fresh) = old_file(dir.path()).await;
    for kind in [
        "prompt:",
        "message:",
        "step:",
        "key:",
        "turn:",
        "end:",
        "asked:",
        "answered:",
        "call:",
        "artifact:",
        "save:",
        "commands:",
        "hidden:",
        "rewound:",
        "point:",
        "checkpoint:",
        "chosen:",
    ] {
        assert!(fresh.iter().any(|(_, name, _)| name.starts_with(kind)), "no mark {kind}");
    }
    let journal = open(dir.path());
    assert_eq!(marks(&db), fresh);
    assert!(!journal.marks(&session("b"), MarkKind::CallEnd, u64::MAX, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn from_the_second_format_come_points_and_what_changes_are_counted_from() {
    let dir = tempfile::tempdir().unwrap();
    let db = write_file(dir.path()).await;
    let (fresh, tips) = (marks(&db), states(&db));
    let tip: Tip = serde_json::from_slice(&tips[0].1).unwrap();
    assert!(tip.base.is_some());
    drop(as_second_format(dir.path()));
    assert!(marks(&db).len() < fresh.len());
    assert_ne!(states(&db), tips);
    let journal = open(dir.path());
    assert_eq!((marks(&db), states(&db)), (fresh, tips));
    let kept = journal.kept(&session("b"), TIP, tip.seq, false).await.unwrap().unwrap();
    assert_eq!(kept.seq, tip.seq);
    assert!(!journal.marks(&session("b"), MarkKind::Point, u64::MAX, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_upgrade_of_the_second_format_cut_short_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = marks(&write_file(dir.path()).await);
    cut_short(&as_second_format(dir.path()), dir.path(), "checkpoint:", (2, &fresh));
}

#[tokio::test]
async fn an_upgrade_cut_short_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let (db, fresh) = old_file(dir.path()).await;
    cut_short(&db, dir.path(), "rewound:", (1, &fresh));
}

/// At the first mark of a kind in the second session.
fn cut_short(db: &Connection, dir: &Path, at: &str, (format, fresh): (u32, &[(i64, String, i64)])) {
    let before = (marks(db), states(db));
    db.execute_batch(&format!(
        "CREATE TRIGGER cut BEFORE INSERT ON marks WHEN NEW.session = 2 AND NEW.name GLOB '{at}*'
         BEGIN SELECT RAISE(ABORT, 'cut'); END"
    ))
    .unwrap();
    let error = Sqlite::open(&SqliteOptions::new(dir)).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!((found, (marks(db), states(db))), (format, before));
    db.execute_batch("DROP TRIGGER cut").unwrap();
    open(dir).close();
    assert_eq!(marks(db), fresh);
}

#[tokio::test]
async fn a_damaged_session_keeps_its_marks_and_others_from_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (db, fresh) = old_file(dir.path()).await;
    db.execute_batch("UPDATE facts SET body = x'00' WHERE session = 1 AND seq = 1000").unwrap();
    let before = marks(&db);
    let journal = open(dir.path());
    let after = marks(&db);
    assert!(after.len() < fresh.len());
    assert!(fresh.iter().filter(|mark| mark.0 == 2 || mark.2 < 1000).all(|mark| after.contains(mark)));
    for (whose, name, seq) in before {
        let name = match name.strip_prefix("last:") {
            Some("chosen") => "chosen:".to_owned(),
            Some(call) => call.to_owned(),
            None => name,
        };
        assert!(after.contains(&(whose, name.clone(), seq)), "{name} at {seq}");
    }
    assert!(read_all(&*journal, &scope(&session("a")), 0).await.is_err());
}

#[tokio::test]
async fn what_lists_go_by_is_in_the_heads() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, a) = (open(dir.path()), session("a"));
    journal.append(told(&a, 1..=2, head(&a, "/", 1))).await.unwrap();
    let (child, put_away) = (session("child"), session("old"));
    let parent = Some(Parent { session: a.clone(), kind: ParentKind::Subagent, at: None, call: None });
    journal.append(told(&child, 1..=1, Head { parent, ..head(&child, "/", 3) })).await.unwrap();
    journal
        .append(told(&put_away, 1..=1, Head { archived: true, busy: true, ..head(&put_away, "/", 4) }))
        .await
        .unwrap();
    journal.close();
    drop(journal);
    drop(as_first_format(dir.path()));
    let (journal, opened) = (open(dir.path()), SessionQuery { open: true, ..SessionQuery::default() });
    assert_eq!(journal.sessions(opened.clone()).await.unwrap().len(), 1, "its head says so");
    let listed = async |query: SessionQuery| -> Vec<_> {
        journal.sessions(query).await.unwrap().into_iter().map(|row| row.head.id).collect()
    };
    let all = SessionQuery::default();
    assert_eq!(
        listed(SessionQuery { kin: Kin::ChildrenOf(a.clone()), ..all.clone() }).await,
        std::slice::from_ref(&child)
    );
    assert_eq!(listed(SessionQuery { kin: Kin::NoSubagents, ..all.clone() }).await, [put_away.clone(), a.clone()]);
    assert_eq!(listed(SessionQuery { unarchived: true, ..all }).await, [child, a.clone()]);
    journal.append(told(&a, 3..=3, head(&a, "/", 2))).await.unwrap();
    journal.append(told(&put_away, 2..=2, head(&put_away, "/", 5))).await.unwrap();
    assert_eq!(journal.sessions(opened).await.unwrap(), []);
    assert_eq!(read_all(&*journal, &scope(&a), 0).await.unwrap().len(), 3);
}
