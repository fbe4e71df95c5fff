//! The points of a session, and what is between them.

use tolka_facts::MessageId;
use tolka_session::{Between, PointKind, SessionError, What};
use tolka_workspace::checkpoint::FileDiff;

use super::{Studio, to};

fn names(diffs: &[FileDiff]) -> Vec<&str> {
    diffs.iter().map(|diff| diff.change.path.to_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn points_are_listed_from_the_latest_on_and_paged() {
    let studio = Studio::new();
    let session = studio.session().await;
    let desk = &studio.world.desk;
    let first = studio.turn(&session, "a=1").await;
    studio.rewind(&session, &first, What::Both).await.unwrap();
    desk.approve(&session, Some("so".into())).await.unwrap();
    let all = desk.points(&session, u64::MAX, 100).await.unwrap();
    let kinds: Vec<&PointKind> = all.iter().map(|point| &point.kind).collect();
    let [
        PointKind::Approved { words: Some(words) },
        PointKind::AfterRewind,
        PointKind::BeforeRewind,
        PointKind::AfterTurn { turn },
        PointKind::BeforeTurn { turn: same, message, words: asked },
    ] = kinds.as_slice()
    else {
        panic!("{kinds:?}")
    };
    assert_eq!((words.as_str(), turn, message, asked.as_str()), ("so", same, &first, "do: a=1"));
    assert_eq!(all[3].changes.as_ref().map(|changes| changes.count), Some(1));
    let mut paged = Vec::new();
    while let Some(point) = desk
        .points(&session, paged.last().map_or(u64::MAX, |last: &tolka_session::Point| last.seq), 2)
        .await
        .unwrap()
        .into_iter()
        .next()
    {
        paged.push(point);
    }
    assert_eq!(paged, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_are_of_a_turn_of_the_session_or_between_two_points() {
    let studio = Studio::new();
    studio.write("a", "0");
    let session = studio.session().await;
    let desk = &studio.world.desk;
    let first = studio.turn(&session, "a=1").await;
    studio.write("mine", "m");
    let second = studio.turn(&session, "b=1").await;
    let of = |message: &MessageId| desk.differences(&session, Between::Message(message.clone()));
    let diff = of(&first).await.unwrap();
    assert!(diff[0].patch.as_ref().unwrap().contains("-0\n+1\n"), "{diff:?}");
    assert_eq!((names(&diff), names(&of(&second).await.unwrap())), (vec!["a"], vec!["b"]));
    assert_eq!(names(&desk.differences(&session, Between::Session).await.unwrap()), ["a", "b"]);
    let points = desk.points(&session, u64::MAX, 10).await.unwrap();
    let oldest = points.last().unwrap().checkpoint.clone();
    let now = Between::Checkpoints(oldest.clone(), None);
    assert_eq!(names(&desk.differences(&session, now).await.unwrap()), ["a", "b", "mine"]);
    let two = Between::Checkpoints(oldest.clone(), Some(points[2].checkpoint.clone()));
    assert_eq!(names(&desk.differences(&session, two).await.unwrap()), ["a"]);
    let unknown = Between::Checkpoints(oldest, Some("0".repeat(40)));
    assert!(matches!(desk.differences(&session, unknown).await, Err(SessionError::NoSuchCheckpoint(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_turn_that_runs_has_changed_can_be_seen() {
    let studio = Studio::new();
    let session = studio.session().await;
    let desk = &studio.world.desk;
    let accepted = studio.begin(&session, "tell a=1; wait").await;
    studio.world.waits.notified().await;
    let of_turn = desk.differences(&session, Between::Message(accepted.message)).await.unwrap();
    let of_session = desk.differences(&session, Between::Session).await.unwrap();
    assert_eq!((names(&of_turn), names(&of_session)), (vec!["a"], vec!["a"]));
    studio.world.go.notify_one();
    studio.world.ended(&session, 1).await;
}

/// As many refs as all of the data folder's stores hold.
fn refs(studio: &Studio) -> usize {
    let data = studio.world.folder.path().join("data");
    let mut folders = vec![data];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                count += usize::from(path.components().any(|part| part.as_os_str() == "tolka"));
            }
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_leave_no_snapshots_behind() {
    let studio = Studio::new();
    let session = studio.session().await;
    let desk = &studio.world.desk;
    let message = studio.turn(&session, "a=1").await;
    let before = refs(&studio);
    assert!(before > 0);
    for look in 0..50 {
        studio.write("mine", &look.to_string());
        let preview = desk.preview_rewind(&session, &to(&message, What::Both)).await.unwrap();
        assert_eq!(preview.files.len(), 1);
        let changed = desk.differences(&session, Between::Session).await.unwrap();
        assert_eq!(names(&changed), ["a"]);
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while refs(&studio) > before {
        assert!(std::time::Instant::now() < deadline, "{} of {before}", refs(&studio));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // One of a workspace that is as a fact has it is that fact's.
    std::fs::remove_file(studio.workspace.join("mine")).unwrap();
    desk.preview_rewind(&session, &to(&message, What::Both)).await.unwrap();
    studio.rewind(&session, &message, What::Both).await.unwrap();
    studio.unrewind(&session).await.unwrap();
    assert_eq!(studio.tree(), super::files(&[("a", "1")]));
}
