//! Sessions that work in one folder.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tolka_facts::event::{Changes, FileOperation, FileStat, KeptWhy, Parent, ParentKind, Rewound, SessionCreated};
use tolka_facts::{Draft, Event, SessionId, Time, Tip};
use tolka_journal::{Append, Journal};
use tolka_session::{Place, What};

use super::crash::append;
use super::{Studio, files, kept};

#[tokio::test(flavor = "multi_thread")]
async fn files_that_two_sessions_touched_at_once_are_conflicts() {
    let studio = Studio::new();
    studio.write("ours", "0");
    studio.write("both", "0");
    let (one, two) = (studio.session().await, studio.session().await);
    let first = studio.begin(&one, "tell ours=1; tell both=1; wait").await;
    studio.world.waits.notified().await;
    studio.turn(&two, "tell theirs=2; tell both=2; quiet=2").await;
    studio.world.go.notify_one();
    studio.world.ended(&one, 1).await;
    for (session, other) in [(&one, &two), (&two, &one)] {
        let fact = studio.seen(session, |event| matches!(event, Event::CheckpointSaved(_))).await;
        let Event::CheckpointSaved(saved) = &fact.event else { unreachable!() };
        assert_eq!(saved.beside, std::slice::from_ref(other));
    }
    let untold = |event: &Event| matches!(event, Event::FileChanged(change) if change.path.ends_with("quiet"));
    assert!(!studio.events(&one).await.iter().any(untold), "nobody knows whose it is");

    let rewinding = studio.rewind(&one, &first.message, What::Both).await.unwrap();
    let expected = [("both", KeptWhy::Conflict), ("quiet", KeptWhy::Conflict), ("theirs", KeptWhy::NotOurs)];
    assert_eq!(kept(&rewinding.kept), expected);
    assert_eq!(studio.tree(), files(&[("ours", "0"), ("both", "2"), ("quiet", "2"), ("theirs", "2")]));
    let fact = studio.seen(&two, |event| matches!(event, Event::FilesMoved(_))).await;
    let Event::FilesMoved(moved) = &fact.event else { unreachable!() };
    let told: Vec<_> = moved.changes.files.iter().map(|file| (file.path.as_str(), file.operation)).collect();
    assert_eq!((&moved.by, told), (&one, vec![("ours", FileOperation::Update)]));
    assert!(!studio.events(&one).await.iter().any(|event| matches!(event, Event::FilesMoved(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_goes_its_way_while_another_session_works() {
    let studio = Studio::new();
    let (one, two) = (studio.session().await, studio.session().await);
    let message = studio.turn(&one, "a=1; b=1").await;
    studio.begin(&two, "tell b=2; tell c=2; wait").await;
    studio.world.waits.notified().await;
    let rewinding = studio.rewind(&one, &message, What::Both).await.unwrap();
    assert_eq!(kept(&rewinding.kept), [("b", KeptWhy::Conflict), ("c", KeptWhy::NotOurs)]);
    assert_eq!(studio.tree(), files(&[("b", "2"), ("c", "2")]));
    studio.world.go.notify_one();
    studio.world.ended(&two, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_a_folder_inside_hears_of_its_own_files() {
    let studio = Studio::new();
    let inside = studio.workspace.join("sub");
    fs::create_dir_all(&inside).unwrap();
    let elsewhere = studio.world.folder.path().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let (outer, inner) = (studio.session().await, studio.session_in(&inside).await);
    let other = studio.session_in(&elsewhere).await;
    let message = studio.turn(&outer, "a=1; sub/b=1").await;
    studio.rewind(&outer, &message, What::Files).await.unwrap();
    let fact = studio.seen(&inner, |event| matches!(event, Event::FilesMoved(_))).await;
    let Event::FilesMoved(moved) = &fact.event else { unreachable!() };
    let told: Vec<_> = moved.changes.files.iter().map(|file| (file.path.as_str(), file.operation)).collect();
    assert_eq!(told, [("b", FileOperation::Delete)]);
    assert!(!studio.events(&other).await.iter().any(|event| matches!(event, Event::FilesMoved(_))));
}

/// A session of this folder as the journal has it, whose last fact is so old.
async fn left(studio: &Studio, name: &str, parent: Option<Parent>, age: Duration) -> SessionId {
    let (session, workspace) = (SessionId::from(name), studio.workspace.to_str().unwrap().to_owned());
    let (agent, title) = ("puppet".to_owned(), name.to_owned());
    let created = SessionCreated { workspace, agent, title, mode: None, model: None, parent };
    let time = Time::from_micros(Time::now().micros() - age.as_micros() as u64);
    let fact = Draft::client(created).stamp(session.clone(), 1, time);
    let mut tip = Tip::default();
    tip.apply(&fact);
    let append = Append { facts: vec![Arc::new(fact)], head: Some(tip.head), ..Append::default() };
    studio.world.journal.append(append).await.unwrap();
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_nobody_uses_are_not_woken_and_a_half_fork_is_not_written_into() {
    let studio = Studio::new();
    let one = studio.session().await;
    let message = studio.turn(&one, "a=1").await;
    let hours = |hours: u64| Duration::from_secs(hours * 60 * 60);
    let parent = Some(Parent { session: one.clone(), kind: ParentKind::Fork, at: Some(1), call: None });
    let half = left(&studio, "ses_half", parent, hours(0)).await;
    let attended = left(&studio, "ses_attended", None, hours(48)).await;
    let live = left(&studio, "ses_live", None, hours(47)).await;
    let old = left(&studio, "ses_old", None, hours(25)).await;
    let used = left(&studio, "ses_used", None, hours(23)).await;
    let desk = &studio.world.desk;
    let _attends = [desk.attend(Place::Session(attended.clone())), desk.attend(Place::Everywhere)];
    desk.tip(&live).await.unwrap();
    studio.rewind(&one, &message, What::Both).await.unwrap();
    // They are told from the one that changed last to the one that changed first.
    let is_told = |event: &Event| matches!(event, Event::FilesMoved(moved) if moved.by == one);
    for session in [&used, &live, &attended] {
        studio.seen(session, is_told).await;
    }
    assert_eq!((studio.events(&old).await.len(), studio.events(&half).await.len()), (1, 1));
}

/// A restore that is done and told in its own session, and a kill before anybody else heard of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_was_told_before_a_kill_is_told_at_the_next_start_and_once() {
    let studio = Studio::new();
    let inside = studio.workspace.join("sub");
    fs::create_dir_all(&inside).unwrap();
    let (one, two, inner) = (studio.session().await, studio.session().await, studio.session_in(&inside).await);
    studio.turn(&one, "a=1; sub/b=1").await;
    let file = |path: &str| FileStat {
        path: path.to_owned(),
        operation: FileOperation::Delete,
        added: 0,
        removed: 1,
        told: false,
    };
    let changes = Changes { files: vec![file("a"), file("sub/b")], count: 2, added: 0, removed: 2 };
    let rewound = Rewound {
        checkpoint: Some("c".repeat(40)),
        message: None,
        files: vec!["a".to_owned(), "sub/b".to_owned()],
        before: None,
        after: Some("d".repeat(40)),
        from: None,
        kept: vec![],
        changes: Some(changes.clone()),
        total: None,
        resets: false,
    };
    append(&studio, &one, vec![rewound.into()]).await;
    let mut studio = studio.crash();
    let told = |events: &[Event]| -> Vec<Changes> {
        let moved = events.iter().filter_map(|event| match event {
            Event::FilesMoved(moved) => Some(moved.changes.clone()),
            _ => None,
        });
        moved.collect()
    };
    for _ in 0..2 {
        studio.world.desk.recover().await.unwrap();
        assert_eq!(told(&studio.events(&two).await), std::slice::from_ref(&changes));
        let [of_inner] = &told(&studio.events(&inner).await)[..] else { panic!("once") };
        assert_eq!(of_inner.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(told(&studio.events(&one).await), []);
        studio = studio.crash();
        let late = studio.session().await;
        assert_eq!(told(&studio.events(&late).await), []);
    }
}
