//! The snapshot after a turn.

use std::fs;

use tolka_facts::event::{Changes, FileOperation, Moment, Stop};
use tolka_facts::{Cause, Event};
use tolka_journal::Journal;
use tolka_session::SessionError;

use super::Studio;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_turn_changed_is_told_before_its_end_and_once() {
    let studio = Studio::new();
    studio.write("old", "one");
    let session = studio.session().await;
    studio.turn(&session, "old=two; tell new=1; sub/quiet=2").await;
    let facts = studio.world.facts(&session).await;
    let end = facts.iter().position(|fact| matches!(fact.event, Event::TurnEnded(_))).unwrap();
    let Event::CheckpointSaved(saved) = &facts[end - 1].event else { panic!("{facts:#?}") };
    assert_eq!((saved.moment, saved.files, saved.beside.len()), (Some(Moment::AfterTurn), 3, 0));
    let changes = saved.changes.as_ref().unwrap();
    let stats: Vec<(&str, FileOperation, u64, u64, bool)> = changes
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.operation, file.added, file.removed, file.told))
        .collect();
    let expected = [
        ("new", FileOperation::Create, 1, 0, true),
        ("old", FileOperation::Update, 1, 1, true),
        ("sub/quiet", FileOperation::Create, 1, 0, true),
    ];
    assert_eq!(stats, expected);
    assert_eq!((changes.count, changes.added, changes.removed), (3, 3, 1));
    assert_eq!(saved.total.as_ref().map(|total| total.count), Some(3));

    let told: Vec<_> = facts
        .iter()
        .filter_map(|fact| match &fact.event {
            Event::FileChanged(change) => Some((fact.cause, change)),
            _ => None,
        })
        .collect();
    let name = |path: &str| studio.workspace.join(path).to_str().unwrap().to_owned();
    let who: Vec<(Cause, &str)> = told.iter().map(|(cause, change)| (*cause, change.path.as_str())).collect();
    let expected = [(Cause::Agent, name("new")), (Cause::Tolka, name("old")), (Cause::Tolka, name("sub/quiet"))];
    assert_eq!(who, expected.each_ref().map(|(cause, path)| (*cause, path.as_str())));
    let old = told[1].1;
    let diff = old.diff.as_ref().unwrap().head();
    assert!(diff.contains("-one\n+two\n") && diff.contains("--- a/old"), "{diff}");
    let blob =
        |side: &Option<tolka_facts::BlobRef>| studio.world.journal.blob(&side.as_ref().unwrap().hash).unwrap().unwrap();
    assert_eq!((blob(&old.before), blob(&old.after)), (b"one\n".to_vec(), b"two\n".to_vec()));
}

/// Lists of files that git did not know once made a session's log grow by gigabytes.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_changed_files_a_fact_names_few_and_counts_all() {
    let studio = Studio::new();
    for n in 0..1000 {
        studio.write(&format!("users-output/{n}"), "x");
    }
    let session = studio.session().await;
    let deeds: Vec<String> = (0..700).map(|n| format!("made/{n}=x")).collect();
    studio.turn(&session, &deeds.join(";")).await;
    let facts = studio.world.facts(&session).await;
    let saved = facts.iter().find_map(|fact| match &fact.event {
        Event::CheckpointSaved(saved) => saved.changes.as_ref(),
        _ => None,
    });
    let changes = saved.unwrap();
    assert_eq!((changes.files.len(), changes.count, changes.added), (500, 700, 700));
    let told = serde_json::to_string(&facts).unwrap();
    assert!(!told.contains("users-output"), "what did not change is named nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_changed_nothing_says_so() {
    let studio = Studio::new();
    let session = studio.session().await;
    studio.turn(&session, "").await;
    let events = studio.events(&session).await;
    let saved = events.iter().find_map(|event| match event {
        Event::CheckpointSaved(saved) => Some(saved),
        _ => None,
    });
    assert_eq!(saved.unwrap().changes, Some(Changes::default()));
    assert!(!events.iter().any(|event| matches!(event, Event::FileChanged(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_snapshot_after_a_turn_is_said_and_the_turn_ends() {
    let studio = Studio::new();
    let session = studio.session().await;
    studio.begin(&session, "a=hello; wait").await;
    studio.world.waits.notified().await;
    // What is in `a` cannot be written while the folder of its object is a file.
    let checkpoints = studio.world.folder.path().join("data/checkpoints");
    let store = fs::read_dir(checkpoints).unwrap().next().unwrap().unwrap().path();
    fs::write(store.join("objects/ce"), "in the way").unwrap();
    studio.world.go.notify_one();
    assert_eq!(studio.world.ended(&session, 1).await, [Stop::EndTurn]);
    let events = studio.events(&session).await;
    let at = events.iter().position(|event| matches!(event, Event::TurnEnded(_))).unwrap();
    let Event::Noticed(notice) = &events[at - 1] else { panic!("{events:#?}") };
    assert_eq!(notice.title, "No checkpoint was saved after the turn");
    assert!(!events.iter().any(|event| matches!(event, Event::CheckpointSaved(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_hangs_does_not_hold_up_a_cancel_nor_commands() {
    let studio = Studio::new();
    let session = studio.session().await;
    studio.begin(&session, "wait").await;
    studio.world.waits.notified().await;
    stall(&studio);
    studio.world.go.notify_one();
    // It has ended its work and is being saved: everybody is answered, and it is still a turn.
    let desk = &studio.world.desk;
    assert!(matches!(desk.reset(&session).await, Err(SessionError::Busy)));
    assert!(!desk.tip(&session).await.unwrap().is_idle());
    // Its time is a minute, and nobody waits for that long.
    assert!(desk.cancel(&session, false).await.unwrap());
    studio.world.ended(&session, 1).await;
    let events = studio.events(&session).await;
    assert!(!events.iter().any(|event| matches!(event, Event::CheckpointSaved(_))));
    let notice = events.iter().find_map(|event| match event {
        Event::Noticed(notice) => Some(notice),
        _ => None,
    });
    assert_eq!(notice.unwrap().title, "No checkpoint was saved after the turn");
}

/// Snapshots wait from now on: git wants to read the ignore file, and a pipe without a writer does not open.
pub(super) fn stall(studio: &Studio) {
    let pipe = studio.workspace.join(".gitignore");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
}

/// Whoever waits goes on, and whoever comes finds no pipe.
pub(super) fn go_on(studio: &Studio) {
    let pipe = studio.workspace.join(".gitignore");
    let writer = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    fs::remove_file(pipe).unwrap();
    // Somebody may be on the way in.
    Box::leak(Box::new(writer));
}
