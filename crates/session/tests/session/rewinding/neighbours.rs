//! Sessions that work in one folder.

use std::fs;

use tolka_facts::Event;
use tolka_facts::event::{FileOperation, KeptWhy};
use tolka_session::What;

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
