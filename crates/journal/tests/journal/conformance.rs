//! What every journal must do. Each function gets `open`, which opens the same journal again, closing it first
//! where it is open; `conform!` makes a test of each of them for a backend.

use std::collections::BTreeMap;
use std::sync::Arc;

use tolka_facts::event::{Parent, ParentKind};
use tolka_facts::{CallId, Hash, Head, MessageId, RequestId, TurnId};
use tolka_journal::{
    Append, Entry, Journal, JournalError, Kept, Kin, Mark, MarkKind, Scope, SessionQuery, Standing, TIP,
};

use crate::common::{batch, deleted, fact, facts, facts_of, follow, head, read_all, scope, session, told};

pub(crate) type Open<'a> = &'a mut (dyn FnMut() -> Arc<dyn Journal> + Send);

macro_rules! conform {
    ($open:expr) => {
        $crate::conformance::conform! { $open;
            append_and_read
            compare_and_set
            two_writers_race_and_one_wins
            a_bad_batch_harms_nobody_beside_it
            follow_from_any_cursor_while_appending
            the_feed_ascends_and_survives
            the_first_value_of_a_watch_is_right
            marks_stay_where_they_were_first_set
            marks_of_the_last_move
            a_mark_of_any_session_is_known
            marks_are_listed_by_kind_the_latest_first
            states_are_kept
            blobs_come_with_their_facts
            sessions_are_listed_latest_first
            sessions_are_paged_whatever_happens_between
            sessions_are_found_by_their_titles
            sessions_are_listed_by_their_kin
            memory_says_what_the_disk_says
            big_batches
            pages_are_cut_by_bytes
            purging_removes_a_deleted_session_whole
            the_epoch_names_the_journal
        }
    };
    ($open:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let mut open = $open;
            let test = $crate::conformance::$name(&mut open);
            tokio::time::timeout(std::time::Duration::from_secs(120), test).await.expect("it hangs");
        }
    )*};
}
pub(crate) use conform;

pub(crate) async fn append_and_read(open: Open<'_>) {
    let (journal, a) = (open(), session("a"));
    assert_eq!(journal.read(&scope(&a), 0, 10).await.unwrap(), []);
    assert_eq!(journal.session(&a).await.unwrap(), None);
    journal.append(Append::default()).await.unwrap();
    journal.append(batch(&a, 1..=1)).await.unwrap();
    journal.append(told(&a, 2..=5, head(&a, "/w", 9))).await.unwrap();
    journal.append(batch(&a, 6..=6)).await.unwrap();

    let mut journal = journal;
    for reopened in [false, true] {
        if reopened {
            journal = open();
        }
        let all = journal.read(&scope(&a), 0, 10).await.unwrap();
        assert_eq!(facts_of(&all), facts(&a, 1..=6));
        assert!(all.iter().all(|entry| entry.place == entry.fact.seq));
        assert_eq!(journal.read(&scope(&a), 2, 3).await.unwrap(), all[2..5]);
        assert_eq!(journal.read(&scope(&a), 6, 3).await.unwrap(), []);
        assert_eq!(journal.read(&scope(&a), u64::MAX, 3).await.unwrap(), []);
        assert_eq!(journal.read(&scope(&a), 0, 0).await.unwrap(), []);
        let row = journal.session(&a).await.unwrap().unwrap();
        assert_eq!((row.head, row.seq), (head(&a, "/w", 9), 6));
    }
}

pub(crate) async fn compare_and_set(open: Open<'_>) {
    let (journal, a, b) = (open(), session("a"), session("b"));
    let conflict = |result: Result<(), JournalError>| match result {
        Err(JournalError::Conflict { expected, actual, .. }) => (expected, actual),
        other => panic!("{other:?}"),
    };
    assert_eq!(conflict(journal.append(batch(&a, 2..=2)).await), (1, 0));
    journal.append(batch(&a, 1..=3)).await.unwrap();
    assert_eq!(conflict(journal.append(batch(&a, 3..=4)).await), (2, 3));
    assert_eq!(conflict(journal.append(batch(&a, 5..=5)).await), (4, 3));
    let journal = open();
    assert_eq!(conflict(journal.append(batch(&a, 1..=1)).await), (0, 3));

    let gap = Append { facts: vec![fact(&a, 4, "x"), fact(&a, 6, "y")], ..Append::default() };
    conflict(journal.append(gap).await);
    for malformed in [
        Append { facts: vec![fact(&a, 4, "x"), fact(&b, 5, "y")], ..Append::default() },
        Append { facts: vec![fact(&b, 0, "x")], ..Append::default() },
        Append { marks: vec![("m".into(), 1)], ..Append::default() },
    ] {
        let result = journal.append(malformed).await;
        assert!(matches!(result, Err(JournalError::Malformed { .. })), "{result:?}");
    }
    assert_eq!(facts_of(&read_all(&*journal, &Scope::All, 0).await.unwrap()), facts(&a, 1..=3));
    journal.append(batch(&a, 4..=4)).await.unwrap();
}

pub(crate) async fn two_writers_race_and_one_wins(open: Open<'_>) {
    let (journal, a) = (open(), session("a"));
    for seq in 1..=40 {
        let racers: Vec<_> = ["left", "right", "third"]
            .map(|who| {
                let (journal, facts) = (Arc::clone(&journal), vec![fact(&a, seq, who)]);
                tokio::spawn(async move { journal.append(Append { facts, ..Append::default() }).await.map(|()| who) })
            })
            .into();
        let mut winners = Vec::new();
        for racer in racers {
            match racer.await.unwrap() {
                Ok(who) => winners.push(who),
                Err(JournalError::Conflict { actual, .. }) => assert_eq!(actual, seq),
                Err(other) => panic!("{other}"),
            }
        }
        let [winner] = winners[..] else { panic!("{winners:?} won {seq}") };
        let last = journal.read(&scope(&a), seq - 1, 10).await.unwrap();
        assert_eq!(facts_of(&last), [fact(&a, seq, winner)]);
    }
}

pub(crate) async fn a_bad_batch_harms_nobody_beside_it(open: Open<'_>) {
    let journal = open();
    let bad = session("bad");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..50 {
        let (journal, good, bad) = (Arc::clone(&journal), session(&format!("{n}")), bad.clone());
        tasks.spawn(async move {
            let (good, bad) = tokio::join!(journal.append(batch(&good, 1..=3)), journal.append(batch(&bad, 7..=9)));
            good.unwrap();
            assert!(matches!(bad, Err(JournalError::Conflict { .. })));
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let journal = open();
    assert_eq!(journal.sessions(SessionQuery::default()).await.unwrap().len(), 50);
    assert_eq!(journal.session(&bad).await.unwrap(), None);
    assert_eq!(read_all(&*journal, &Scope::All, 0).await.unwrap().len(), 150);
}

pub(crate) async fn follow_from_any_cursor_while_appending(open: Open<'_>) {
    const LAST: u64 = 600;
    let (journal, a) = (open(), session("a"));
    journal.append(batch(&a, 1..=100)).await.unwrap();
    let journal = {
        drop(journal);
        open()
    };
    let readers: Vec<_> = [0, 1, 50, 99, 100, 101, 350]
        .map(|after| {
            let (journal, scope) = (Arc::clone(&journal), scope(&a));
            tokio::spawn(async move { (after, follow(&*journal, &scope, after, (LAST - after) as usize).await) })
        })
        .into();
    let mut seq = 101;
    while seq <= LAST {
        let last = (seq + seq % 7).min(LAST);
        journal.append(batch(&a, seq..=last)).await.unwrap();
        seq = last + 1;
    }
    for reader in readers {
        let (after, seen) = reader.await.unwrap();
        assert_eq!(facts_of(&seen), facts(&a, after + 1..=LAST));
    }
}

pub(crate) async fn the_feed_ascends_and_survives(open: Open<'_>) {
    let journal = open();
    let mut bell = journal.watch(&Scope::All);
    assert_eq!(*bell.borrow_and_update(), 0);
    let follower = {
        let journal = Arc::clone(&journal);
        tokio::spawn(async move { follow(&*journal, &Scope::All, 0, 300).await })
    };
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..10 {
        let (journal, session) = (Arc::clone(&journal), session(&format!("{n}")));
        writers.spawn(async move {
            for seq in (1..=30).step_by(3) {
                journal.append(batch(&session, seq..=seq + 2)).await.unwrap();
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    let live = follower.await.unwrap();
    assert!(live.is_sorted_by(|a, b| a.place < b.place));
    let mut by_session = BTreeMap::<_, Vec<_>>::new();
    live.iter().for_each(|entry| by_session.entry(entry.fact.session.clone()).or_default().push(entry.fact.clone()));
    assert_eq!(by_session.len(), 10);
    by_session.iter().for_each(|(session, told)| assert_eq!(*told, facts(session, 1..=30)));

    let place = live[299].place;
    assert_eq!(*bell.borrow_and_update(), place);
    let journal = {
        drop(journal);
        open()
    };
    assert_eq!(read_all(&*journal, &Scope::All, 0).await.unwrap(), live);
    assert_eq!(read_all(&*journal, &Scope::All, live[100].place).await.unwrap(), live[101..]);
    assert_eq!(*journal.watch(&Scope::All).borrow(), place);
    assert_eq!(journal.recent(&Scope::All, place, 9), Some(vec![]));
    journal.append(batch(&session("0"), 31..=31)).await.unwrap();
    let next = journal.read(&Scope::All, place, 9).await.unwrap();
    assert_eq!(facts_of(&next), facts(&session("0"), 31..=31));
    assert!(next[0].place > place);
}

pub(crate) async fn the_first_value_of_a_watch_is_right(open: Open<'_>) {
    let (journal, a) = (open(), session("a"));
    let mut early = journal.watch(&scope(&a));
    assert_eq!(*early.borrow(), 0);
    journal.append(batch(&a, 1..=4)).await.unwrap();
    early.changed().await.unwrap();
    assert_eq!(*early.borrow_and_update(), 4);
    assert_eq!(*journal.watch(&scope(&a)).borrow(), 4);
    drop((journal, early));

    let journal = open();
    let mut bell = journal.watch(&scope(&a));
    assert_eq!(*bell.borrow(), 4);
    assert!(!bell.has_changed().unwrap());
    assert_eq!(journal.recent(&scope(&a), 4, 9), Some(vec![]), "a watched session's head is known");
    journal.append(batch(&a, 5..=5)).await.unwrap();
    assert_eq!(*bell.borrow_and_update(), 5, "published before it is answered");
}

fn named(marks: &[(Mark<'_>, u64)]) -> Vec<(String, u64)> {
    marks.iter().map(|(mark, seq)| (mark.to_string(), *seq)).collect()
}

pub(crate) async fn marks_of_the_last_move(open: Open<'_>) {
    let (journal, a, call) = (open(), session("a"), CallId::from("c"));
    let (message, turn) = (MessageId::from("m"), TurnId::from("t"));
    let moving = [Mark::Chosen, Mark::CallEnd(&call)];
    // One that is named like a kind that moves is still of its own.
    let staying = [Mark::Hidden(&message), Mark::Prompt(&turn), Mark::Artifact("p"), Mark::Key("call:c")];
    let marked = |append: Append, seqs: &[u64]| {
        let all = moving.iter().chain(&staying).flat_map(|mark| seqs.iter().map(|seq| (*mark, *seq)));
        Append { marks: named(&all.collect::<Vec<_>>()), ..append }
    };
    let stand = async |journal: &dyn Journal, moved: u64| {
        for (marks, seq) in [(&moving[..], moved), (&staying[..], 1)] {
            for mark in marks {
                assert_eq!(journal.mark(&a, &mark.to_string()).await.unwrap(), Some(seq), "{mark}");
            }
        }
        let ends = journal.marks(&a, MarkKind::CallEnd, u64::MAX, 9).await.unwrap();
        assert_eq!(ends, [moved], "calls alone, and only where they ended last");
    };
    journal.append(marked(batch(&a, 1..=3), &[1, 3])).await.unwrap();
    stand(&*journal, 3).await;
    journal.append(batch(&a, 4..=4)).await.unwrap();
    journal.append(marked(batch(&a, 5..=6), &[6])).await.unwrap();
    assert!(journal.append(marked(batch(&a, 6..=6), &[6])).await.is_err());
    stand(&*open(), 6).await;
}

pub(crate) async fn a_mark_of_any_session_is_known(open: Open<'_>) {
    let (journal, a, b) = (open(), session("a"), session("b"));
    let (one, other) = (RequestId::from("one"), RequestId::from("other"));
    journal.append(Append { marks: named(&[(Mark::Ask(&one), 1)]), ..batch(&a, 1..=1) }).await.unwrap();
    let answered = named(&[(Mark::Answer(&one), 1)]);
    journal.append(Append { marks: answered, ..told(&b, 1..=2, deleted(head(&b, "", 1))) }).await.unwrap();
    let is_marked = async |journal: &dyn Journal, mark: Mark<'_>| journal.is_marked(&mark.to_string()).await.unwrap();
    let journal = open();
    for mark in [Mark::Ask(&one), Mark::Answer(&one)] {
        assert!(is_marked(&*journal, mark).await, "{mark}");
    }
    for mark in [Mark::Ask(&other), Mark::Answer(&other), Mark::Key("one"), Mark::Chosen] {
        assert!(!is_marked(&*journal, mark).await, "{mark}");
    }
    journal.purge(&b).await.unwrap();
    assert!(!is_marked(&*journal, Mark::Answer(&one)).await, "its session is gone");
    assert!(is_marked(&*journal, Mark::Ask(&one)).await);
}

pub(crate) async fn marks_stay_where_they_were_first_set(open: Open<'_>) {
    let (journal, a, b) = (open(), session("a"), session("b"));
    let marked = |append: Append, marks: &[(&str, u64)]| Append {
        marks: marks.iter().map(|(name, seq)| ((*name).to_owned(), *seq)).collect(),
        ..append
    };
    journal.append(marked(batch(&a, 1..=3), &[("turn", 2), ("key", 3)])).await.unwrap();
    journal.append(marked(batch(&b, 1..=1), &[("turn", 1)])).await.unwrap();
    journal.append(marked(batch(&a, 4..=4), &[("key", 4), ("end", 4)])).await.unwrap();
    assert!(journal.append(marked(batch(&a, 4..=4), &[("lost", 4)])).await.is_err());
    let journal = open();
    for (session, name, seq) in [
        (&a, "turn", Some(2)),
        (&a, "key", Some(3)),
        (&a, "end", Some(4)),
        (&a, "lost", None),
        (&b, "turn", Some(1)),
        (&b, "key", None),
        (&session("none"), "turn", None),
    ] {
        assert_eq!(journal.mark(session, name).await.unwrap(), seq, "{session} {name}");
    }
}

pub(crate) async fn marks_are_listed_by_kind_the_latest_first(open: Open<'_>) {
    let (journal, a, b) = (open(), session("a"), session("b"));
    let [w, x, y] = ["w", "x", "y:z"].map(TurnId::from);
    let marks = named(&[
        (Mark::TurnStart(&x), 2),
        (Mark::TurnEnd(&x), 3),
        (Mark::TurnStart(&y), 4),
        (Mark::Artifact("turn:q"), 5),
        (Mark::Save(5), 5),
        (Mark::Commands(5), 5),
        (Mark::TurnEnd(&y), 6),
        (Mark::Artifact("turn:q"), 7),
        (Mark::Save(7), 7),
        (Mark::Commands(8), 8),
        (Mark::TurnStart(&w), 9),
    ]);
    journal.append(Append { marks, ..batch(&a, 1..=9) }).await.unwrap();
    journal.append(Append { marks: named(&[(Mark::TurnStart(&x), 1)]), ..batch(&b, 1..=1) }).await.unwrap();
    let journal = open();
    for (session, kind, before, limit, expected) in [
        (&a, MarkKind::TurnStart, u64::MAX, 9, vec![9, 4, 2]),
        (&a, MarkKind::TurnStart, 9, 1, vec![4]),
        (&a, MarkKind::TurnStart, 2, 9, vec![]),
        (&a, MarkKind::TurnEnd, u64::MAX, 9, vec![6, 3]),
        (&a, MarkKind::Artifact, u64::MAX, 9, vec![5]),
        (&a, MarkKind::Save, u64::MAX, 9, vec![7, 5]),
        (&a, MarkKind::Save, 7, 9, vec![5]),
        (&a, MarkKind::Commands, u64::MAX, 1, vec![8]),
        (&a, MarkKind::Commands, 8, 1, vec![5]),
        (&a, MarkKind::Chosen, u64::MAX, 9, vec![]),
        (&a, MarkKind::Prompt, u64::MAX, 9, vec![]),
        (&b, MarkKind::TurnStart, u64::MAX, 9, vec![1]),
        (&session("none"), MarkKind::TurnStart, u64::MAX, 9, vec![]),
    ] {
        assert_eq!(journal.marks(session, kind, before, limit).await.unwrap(), expected, "{session} {kind:?} {before}");
    }
}

pub(crate) async fn states_are_kept(open: Open<'_>) {
    let (journal, a) = (open(), session("a"));
    let kept = |seq, idle, state: &str| Kept { seq, idle, state: state.as_bytes().to_vec() };
    let tip = Append { tip: Some(kept(3, true, "tip")), ..batch(&a, 1..=9) };
    journal.append(tip).await.unwrap();
    for state in [kept(2, true, "two"), kept(8, false, "eight"), kept(5, false, "old"), kept(5, false, "five")] {
        journal.keep(&a, "onyx", state).await.unwrap();
    }
    let nobody = journal.keep(&session("none"), "onyx", kept(1, true, "")).await;
    assert!(matches!(nobody, Err(JournalError::NoSession { .. })));
    let journal = open();
    for (name, seq, idle, expected) in [
        ("onyx", 1, false, None),
        ("onyx", 2, false, Some(kept(2, true, "two"))),
        ("onyx", 7, false, Some(kept(5, false, "five"))),
        ("onyx", u64::MAX, false, Some(kept(8, false, "eight"))),
        ("onyx", 9, true, Some(kept(2, true, "two"))),
        ("acp", 9, false, None),
        (TIP, 9, true, Some(kept(3, true, "tip"))),
    ] {
        assert_eq!(journal.kept(&a, name, seq, idle).await.unwrap(), expected, "{name} {seq} {idle}");
    }
}

pub(crate) async fn blobs_come_with_their_facts(open: Open<'_>) {
    let (journal, a, b) = (open(), session("a"), session("b"));
    let (one, two) = (vec![1; 100_000], b"two".to_vec());
    let lost = b"lost".to_vec();
    let with = |append: Append, contents: &[&Vec<u8>]| Append {
        blobs: contents.iter().map(|content| (Hash::of(content), (*content).clone())).collect(),
        ..append
    };
    journal.append(with(batch(&a, 1..=1), &[&one, &two])).await.unwrap();
    journal.append(with(batch(&b, 1..=1), &[&one])).await.unwrap();
    assert!(journal.append(with(batch(&a, 1..=1), &[&lost])).await.is_err());
    let journal = open();
    assert_eq!(journal.blob(&Hash::of(&one)).unwrap(), Some(one));
    assert_eq!(journal.blob(&Hash::of(&two)).unwrap(), Some(two));
    assert_eq!(journal.blob(&Hash::of(&lost)).unwrap(), None);
}

pub(crate) async fn sessions_are_listed_latest_first(open: Open<'_>) {
    let journal = open();
    for (n, workspace, updated) in [(1, "/x", 10), (2, "/y", 30), (3, "/x", 20), (4, "/x", 20), (5, "/y", 5)] {
        let session = session(&format!("{n}"));
        journal.append(told(&session, 1..=n, head(&session, workspace, updated))).await.unwrap();
    }
    let gone = session("5");
    journal.append(told(&gone, 6..=6, deleted(head(&gone, "/y", 40)))).await.unwrap();
    let untold = session("6");
    journal.append(batch(&untold, 1..=1)).await.unwrap();
    let journal = open();
    let list = async |query: SessionQuery| -> Vec<_> {
        let rows = journal.sessions(query).await.unwrap();
        rows.iter().map(|row| (row.head.id.as_str()[4..].parse::<u64>().unwrap(), row.seq)).collect()
    };
    let all = SessionQuery::default();
    assert_eq!(list(all.clone()).await, [(2, 2), (4, 4), (3, 3), (1, 1), (6, 1)]);
    assert_eq!(list(SessionQuery { deleted: true, limit: 2, ..all.clone() }).await, [(5, 6), (2, 2)]);
    assert_eq!(list(SessionQuery { workspace: Some("/x".into()), ..all.clone() }).await, [(4, 4), (3, 3), (1, 1)]);
    assert_eq!(list(SessionQuery { workspace: Some("/z".into()), ..all.clone() }).await, []);
    let since = tolka_facts::Time::from_millis(20);
    assert_eq!(list(SessionQuery { since, ..all.clone() }).await, [(2, 2), (4, 4), (3, 3)]);
    let folders = journal.workspaces().await.unwrap();
    let folders: Vec<_> = folders.iter().map(|folder| (folder.path.as_str(), folder.updated.millis())).collect();
    assert_eq!(folders, [("/x", 20), ("/y", 40)], "also of one in which another session is deleted");
}

pub(crate) async fn sessions_are_paged_whatever_happens_between(open: Open<'_>) {
    let journal = open();
    // Two changed at once.
    for (name, updated) in [("a", 10), ("b", 20), ("c", 20), ("d", 30), ("e", 40), ("f", 50)] {
        let session = session(name);
        journal.append(told(&session, 1..=1, head(&session, "/x", updated))).await.unwrap();
    }
    let page = async |after: Option<Standing>, limit: usize| -> (Vec<String>, Option<Standing>) {
        let rows = journal.sessions(SessionQuery { limit, after, ..SessionQuery::default() }).await.unwrap();
        let names = rows.iter().map(|row| row.head.id.as_str()[4..].to_owned());
        (names.collect(), rows.last().map(|row| row.standing))
    };
    let (names, first) = page(None, 2).await;
    assert_eq!(names, ["f", "e"]);
    assert_eq!(first.unwrap().to_string().parse(), Ok(first.unwrap()));

    // The last one of a page is changed; its place in the list stays where the page ended.
    let touched = session("e");
    journal.append(told(&touched, 2..=2, head(&touched, "/x", 60))).await.unwrap();
    let (names, second) = page(first, 2).await;
    assert_eq!(names, ["d", "c"]);

    let gone = session("c");
    journal.append(told(&gone, 2..=2, deleted(head(&gone, "/x", 70)))).await.unwrap();
    journal.purge(&gone).await.unwrap();
    let (names, third) = page(second, 2).await;
    assert_eq!(names, ["b", "a"]);
    assert_eq!(page(third, 2).await, (Vec::new(), None));
    assert_eq!(page(None, 9).await.0, ["e", "f", "d", "b", "a"]);
}

pub(crate) async fn sessions_are_found_by_their_titles(open: Open<'_>) {
    let journal = open();
    for (n, title) in ["Ärger im Parser", "a lexer", "parsers", "PARSE it"].into_iter().enumerate() {
        let session = session(&n.to_string());
        let head = Head { title: title.to_owned(), ..head(&session, "/x", n as u64) };
        journal.append(told(&session, 1..=1, head)).await.unwrap();
    }
    let journal = open();
    let list = async |words: &str, limit: usize| -> Vec<_> {
        let query = SessionQuery { titled: Some(words.to_owned()), limit, ..SessionQuery::default() };
        journal.sessions(query).await.unwrap().into_iter().map(|row| row.head.title).collect()
    };
    assert_eq!(list("Parse", 0).await, ["PARSE it", "parsers", "Ärger im Parser"]);
    assert_eq!(list("ärger", 0).await, ["Ärger im Parser"]);
    assert_eq!(list("e", 3).await, ["PARSE it", "parsers", "a lexer"], "those left out are not counted");
    assert_eq!(list("", 0).await.len(), 4);
    assert_eq!(list("none", 1).await, [""; 0]);
}

pub(crate) async fn sessions_are_listed_by_their_kin(open: Open<'_>) {
    let journal = open();
    let parent = |kind| Some(Parent { session: session("root"), kind, at: None, call: None });
    for (name, parent) in
        [("root", None), ("fork", parent(ParentKind::Fork)), ("sub", parent(ParentKind::Subagent)), ("other", None)]
    {
        let session = session(name);
        let head = Head { parent, archived: name == "other", ..head(&session, "/", 1) };
        journal.append(told(&session, 1..=1, head)).await.unwrap();
    }
    let journal = open();
    let list = async |kin: Kin, unarchived: bool| -> Vec<_> {
        let query = SessionQuery { kin, unarchived, ..SessionQuery::default() };
        journal.sessions(query).await.unwrap().into_iter().map(|row| row.head.id.as_str()[4..].to_owned()).collect()
    };
    assert_eq!(list(Kin::All, false).await, ["other", "sub", "fork", "root"]);
    assert_eq!(list(Kin::All, true).await, ["sub", "fork", "root"]);
    assert_eq!(list(Kin::Roots, false).await, ["other", "root"]);
    assert_eq!(list(Kin::NoSubagents, true).await, ["fork", "root"]);
    assert_eq!(list(Kin::ChildrenOf(session("root")), false).await, ["sub", "fork"]);
    assert_eq!(list(Kin::ChildrenOf(session("fork")), false).await, [""; 0]);
}

pub(crate) async fn memory_says_what_the_disk_says(open: Open<'_>) {
    let journal = open();
    for round in 0..30 {
        for name in ["a", "b", "c"] {
            journal.append(batch(&session(name), round * 60 + 1..=round * 60 + 60)).await.unwrap();
        }
    }
    let mut answered = 0;
    for scope in [Scope::All, scope(&session("a")), scope(&session("c"))] {
        let all = read_all(&*journal, &scope, 0).await.unwrap();
        for at in (0..all.len()).step_by(97).chain(all.len() - 3..all.len()) {
            for limit in [0, 1, 50, 5000] {
                if let Some(page) = journal.recent(&scope, all[at].place, limit) {
                    assert_eq!(page, journal.read(&scope, all[at].place, limit).await.unwrap());
                    answered += 1;
                }
            }
        }
        assert_eq!(journal.recent(&scope, all[all.len() - 1].place, 9), Some(vec![]));
        assert_eq!(journal.recent(&scope, 0, 9), None, "memory is bounded");
    }
    assert!(answered > 50);
}

pub(crate) async fn big_batches(open: Open<'_>) {
    let (journal, a) = (open(), session("a"));
    journal.append(batch(&a, 1..=20_000)).await.unwrap();
    journal.append(batch(&a, 20_001..=20_001)).await.unwrap();
    let journal = open();
    assert_eq!(*journal.watch(&scope(&a)).borrow(), 20_001);
    let mut last = 0;
    while let Some(entry) = journal.read(&scope(&a), last, 4096).await.unwrap().last() {
        last = entry.place;
    }
    assert_eq!(last, 20_001);
}

pub(crate) async fn pages_are_cut_by_bytes(open: Open<'_>) {
    let (journal, a) = (open(), session("a"));
    let long = "x".repeat(400_000);
    let huge = "y".repeat(3_000_000);
    let facts: Vec<_> = (1..=9).map(|seq| fact(&a, seq, if seq == 5 { &huge } else { &long })).collect();
    journal.append(Append { facts, ..Append::default() }).await.unwrap();
    let seqs = |page: &[Entry]| page.iter().map(|entry| entry.fact.seq).collect::<Vec<_>>();
    for scope in [scope(&a), Scope::All] {
        let mut pages = Vec::new();
        let mut after = 0;
        loop {
            let page = journal.read(&scope, after, 100).await.unwrap();
            let Some(last) = page.last() else { break };
            after = last.place;
            pages.push(seqs(&page));
        }
        assert_eq!(pages, [vec![1, 2], vec![3, 4], vec![5], vec![6, 7], vec![8, 9]]);
    }
}

pub(crate) async fn purging_removes_a_deleted_session_whole(open: Open<'_>) {
    let (journal, a, b) = (open(), session("a"), session("b"));
    let (own, shared) = (b"own".repeat(50), b"shared".repeat(50));
    let blobs = |contents: &[&Vec<u8>]| contents.iter().map(|c| (Hash::of(c), (*c).clone())).collect();
    let kept = Kept { seq: 1, idle: true, state: vec![1] };
    let full = Append {
        blobs: blobs(&[&own, &shared]),
        marks: vec![("m".into(), 1)],
        tip: Some(kept),
        ..told(&a, 1..=3000, head(&a, "/w", 1))
    };
    journal.append(full).await.unwrap();
    journal.append(Append { blobs: blobs(&[&shared]), ..told(&b, 1..=5, head(&b, "/w", 2)) }).await.unwrap();

    let unknown = journal.purge(&session("none")).await;
    assert!(matches!(unknown, Err(JournalError::NoSession { .. })));
    let alive = journal.purge(&a).await;
    assert!(matches!(alive, Err(JournalError::NotDeleted { .. })));
    journal.append(told(&a, 3001..=3001, deleted(head(&a, "/w", 3)))).await.unwrap();
    let place = *journal.watch(&Scope::All).borrow();

    let mut bell = journal.watch(&scope(&a));
    let purged = journal.purge(&a).await.unwrap();
    assert_eq!((purged.facts, purged.blobs), (3001, 1));
    assert!(purged.bytes > own.len() as u64 + 3001 * 100);
    assert!(bell.changed().await.is_err(), "its watchers see the end");
    assert_eq!(journal.recent(&Scope::All, place - 1, 9), Some(vec![]));
    let mut journal = journal;
    for reopened in [false, true] {
        if reopened {
            journal = open();
        }
        assert_eq!(journal.read(&scope(&a), 0, 9).await.unwrap(), []);
        assert_eq!(journal.session(&a).await.unwrap(), None);
        assert_eq!(journal.mark(&a, "m").await.unwrap(), None);
        assert_eq!(journal.kept(&a, TIP, 9, false).await.unwrap(), None);
        assert_eq!(journal.blob(&Hash::of(&own)).unwrap(), None);
        assert_eq!(journal.blob(&Hash::of(&shared)).unwrap(), Some(shared.clone()));
        assert_eq!(facts_of(&read_all(&*journal, &Scope::All, 0).await.unwrap()), facts(&b, 1..=5));
        assert_eq!(*journal.watch(&Scope::All).borrow(), place, "a place is never given out twice");
        assert!(matches!(journal.purge(&a).await, Err(JournalError::NoSession { .. })));
    }
}

pub(crate) async fn the_epoch_names_the_journal(open: Open<'_>) {
    let epoch = open().epoch().to_owned();
    assert!(epoch.len() >= 16 && epoch.chars().all(|c| c.is_ascii_hexdigit()), "{epoch}");
    assert_eq!(open().epoch(), epoch);
}
