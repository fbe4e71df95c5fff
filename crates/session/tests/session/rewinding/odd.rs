//! Files that are not like others: names that are no text, modes that few files have, files that no snapshot holds.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tolka_facts::Event;
use tolka_facts::event::{FileOperation, KeptWhy};
use tolka_session::{Preview, What};

use super::{Studio, kept, paths, to};

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_no_text_goes_back_and_comes_again() {
    let odd = OsStr::from_bytes(b"odd/\xff \"name\"");
    for is_beside in [false, true] {
        let studio = Studio::new();
        let path = studio.workspace.join(Path::new(odd));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "before").unwrap();
        let session = studio.session().await;
        let accepted = studio.begin(&session, "wait").await;
        studio.world.waits.notified().await;
        fs::write(&path, "after").unwrap();
        studio.world.go.notify_one();
        studio.world.ended(&session, 1).await;
        let told = studio.seen(&session, |event| matches!(event, Event::FileChanged(_))).await;
        let Event::FileChanged(change) = &told.event else { unreachable!() };
        assert_eq!(change.path, format!("{}/\"odd/\\xff \\\"name\\\"\"", studio.workspace.display()));
        assert!(change.before.is_some() && change.after.is_some());

        let back = studio.rewind(&session, &accepted.message, What::Both).await.unwrap();
        assert_eq!((back.files.len(), fs::read(&path).unwrap().as_slice()), (1, b"before".as_slice()));
        let studio = if is_beside { studio.crash() } else { studio };
        let undone = studio.unrewind(&session).await.unwrap();
        assert_eq!((undone.kept, fs::read(&path).unwrap().as_slice()), (vec![], b"after".as_slice()));
    }
}

fn set_mode(studio: &Studio, path: &str, mode: u32) {
    fs::set_permissions(studio.workspace.join(path), fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(studio: &Studio, path: &str) -> u32 {
    fs::metadata(studio.workspace.join(path)).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_file_is_private_again_after_a_rewind_and_after_its_undo() {
    let studio = Studio::new();
    for path in ["deleted", "edited", "opened"] {
        studio.write(path, "0");
        set_mode(&studio, path, 0o600);
    }
    let session = studio.session().await;
    let accepted = studio.begin(&session, "rm deleted; edited=1; wait").await;
    studio.world.waits.notified().await;
    set_mode(&studio, "opened", 0o644);
    studio.write("made", "1");
    set_mode(&studio, "made", 0o400);
    studio.world.go.notify_one();
    studio.world.ended(&session, 1).await;
    let saved = studio.seen(&session, |event| matches!(event, Event::CheckpointSaved(_))).await;
    let Event::CheckpointSaved(saved) = &saved.event else { unreachable!() };
    let changed: Vec<_> =
        saved.changes.as_ref().unwrap().files.iter().map(|file| (file.path.as_str(), file.operation)).collect();
    use FileOperation::{Create, Delete, Update};
    assert_eq!(changed, [("deleted", Delete), ("edited", Update), ("made", Create), ("opened", Update)]);

    let back = studio.rewind(&session, &accepted.message, What::Both).await.unwrap();
    assert_eq!((paths(&back.files), back.kept), (vec!["deleted", "edited", "made", "opened"], vec![]));
    for path in ["deleted", "edited", "opened"] {
        assert_eq!(mode(&studio, path), 0o600, "{path}");
    }
    assert_eq!(studio.unrewind(&session).await.unwrap().kept, []);
    assert_eq!((mode(&studio, "made"), mode(&studio, "opened"), mode(&studio, "edited")), (0o400, 0o644, 0o600));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_turns_did_to_files_that_are_not_saved_is_listed_once() {
    let studio = Studio::new();
    studio.write(".gitignore", "*.log");
    for path in ["changed.log", "gone.log", "same.log", "quiet.log"] {
        studio.write(path, "0");
    }
    let session = studio.session().await;
    let first = studio.turn(&session, "tell made.log=1; tell a=1; tell same.log=1; tell gone by now.log=1").await;
    let deeds = "tell made.log=2; tell changed.log=2; tell rm gone.log; tell same.log=0; tell rm gone by now.log";
    studio.turn(&session, deeds).await;
    let Preview { files, kept: would_keep, .. } =
        studio.world.desk.preview_rewind(&session, &to(&first, What::Both)).await.unwrap();
    let expected = ["changed.log", "gone.log", "made.log"].map(|path| (path, KeptWhy::NotSaved));
    assert_eq!((paths(&files), kept(&would_keep)), (vec!["a"], expected.to_vec()));

    let done = studio.rewind(&session, &first, What::Both).await.unwrap();
    assert_eq!((done.files, &done.kept), (files, &would_keep));
    let fact = studio.seen(&session, |event| matches!(event, Event::Rewound(_))).await;
    let Event::Rewound(rewound) = &fact.event else { unreachable!() };
    assert_eq!(rewound.kept.len(), 3);
    assert_eq!((studio.tree()["made.log"].as_str(), studio.tree()["changed.log"].as_str()), ("2", "2"));
    assert_eq!(studio.unrewind(&session).await.unwrap().kept, [], "no turn came in between");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_says_what_is_done_where_a_turn_hid_files_itself() {
    let studio = Studio::new();
    for path in ["changed.log", "gone.log", "same.log", "seen"] {
        studio.write(path, "0");
    }
    let session = studio.session().await;
    let message = studio.turn(&session, ".gitignore=*.log; changed.log=1; rm gone.log; seen=1").await;
    let preview = studio.world.desk.preview_rewind(&session, &to(&message, What::Both)).await.unwrap();
    assert_eq!(kept(&preview.kept), [("changed.log", KeptWhy::NotSaved)]);
    let done = studio.rewind(&session, &message, What::Both).await.unwrap();
    assert_eq!((done.files, done.kept), (preview.files, preview.kept));
    let tree = studio.tree();
    assert_eq!(["changed.log", "gone.log", "same.log", "seen"].map(|path| tree[path].as_str()), ["1", "0", "0", "0"]);
}
