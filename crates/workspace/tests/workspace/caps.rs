//! What a snapshot leaves out, and how it says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tolka_workspace::checkpoint::{Caps, CheckpointError, LeftOut, LeftOutWhy, Save};

use crate::house::{BUDGET, Entry, House, session, text};
use crate::refusing::passes_as_nobody;

fn small() -> Caps {
    Caps { largest_file: 10, ..Caps::default() }
}

fn too_large(path: &str, size: u64) -> LeftOut {
    LeftOut { path: path.into(), size, why: LeftOutWhy::TooLarge }
}

#[tokio::test]
async fn a_file_that_is_too_large_is_left_out_and_named() {
    let house = House::with_caps(small());
    house.write("fits", [1; 10]);
    house.write("large", [2; 11]);
    house.write("new\nline %25", [3; 12]);
    let saved = house.save().await;
    assert_eq!(saved.left_out, [too_large("large", 11), too_large("new\nline %25", 12)]);
    assert_eq!((house.paths(&saved.commit), saved.files), (vec!["fits".to_owned()], 1));
    let message = text(house.git(&["log", "-1", "--format=%b", &saved.commit]));
    assert!(message.ends_with("Left-Out: too-large 11 large\nLeft-Out: too-large 12 new%0Aline%20%2525"), "{message}");
    // Neither is it forgotten by a save that finds nothing new.
    assert_eq!(house.save().await.left_out, saved.left_out);
    house.write("large", [2; 9]);
    let again = house.save().await;
    assert_eq!(again.left_out, [too_large("new\nline %25", 12)]);
    assert_eq!(house.paths(&again.commit), ["fits", "large"]);
    house.check();
}

#[tokio::test]
async fn a_file_that_grew_too_large_is_not_there_as_it_was() {
    let house = House::with_caps(small());
    house.write("file", "small");
    assert_eq!(house.save().await.files, 1);
    house.write("file", "too large by now");
    let saved = house.save().await;
    assert_eq!((house.paths(&saved.commit), saved.left_out), (vec![], vec![too_large("file", 16)]));
}

#[tokio::test]
async fn an_ignored_file_is_not_said_to_be_left_out() {
    let house = House::with_caps(small());
    house.write("file", "small");
    house.save().await;
    house.write("file", "too large by now");
    house.write(".gitignore", "file\n");
    assert_eq!(house.save().await.left_out, []);
}

#[tokio::test]
async fn other_caps_hold_for_files_that_were_saved_under_the_old_ones() {
    let mut house = House::new();
    house.write("file", "of some size");
    assert_eq!(house.save().await.files, 1);
    house.reopen_with(small());
    assert_eq!(house.save().await.left_out, [too_large("file", 12)]);
    house.reopen_with(Caps::default());
    assert_eq!(house.save().await.files, 1);
}

#[tokio::test]
async fn a_workspace_of_too_many_files_gets_no_checkpoint_and_a_hint() {
    let house = House::with_caps(Caps { most_files: 3, ..Caps::default() });
    for n in 0..3 {
        house.write(format!("f{n}"), "x");
    }
    let saved = house.save().await;
    house.write("one more", "x");
    let error = house.try_save().await.unwrap_err();
    assert!(matches!(error, CheckpointError::TooMany { files: 4, most: 3 }), "{error}");
    assert!(error.to_string().contains(".gitignore"), "{error}");
    assert_eq!(house.refs(), [saved.commit]);
    // A changed file is no new one.
    house.write(".gitignore", "one more\nf2\n.gitignore\n");
    house.write("f0", "changed");
    assert_eq!(house.save().await.files, 2);
}

#[tokio::test]
async fn an_unchanged_workspace_may_have_the_commit_that_it_had() {
    let house = House::with_caps(small());
    house.write("a", "a");
    let first = house.save().await;
    let save_as = |same: String, session: &'static str| {
        let (house, session) = (&house, tolka_facts::SessionId::from(session));
        async move {
            let save = Save { same_as: Some(&same), ..Save::within(BUDGET, "x") };
            house.checkpoints.save(&house.workspace, &session, save).await.unwrap()
        }
    };
    assert_eq!(save_as(first.commit.clone(), "ses_1").await, first);
    assert_eq!(save_as(first.commit.clone(), "ses_2").await, first);
    assert_eq!(house.refs(), [first.commit.clone(), first.commit.clone()]);
    // Held for the other session too.
    house.checkpoints.forget(&house.workspace, &session()).await.unwrap();
    assert_eq!(house.refs(), std::slice::from_ref(&first.commit));

    // A file that only one of them knows to be there makes them differ, though their trees do not.
    house.write("large", "too large for this");
    let second = save_as(first.commit.clone(), "ses_2").await;
    assert_ne!(second.commit, first.commit);
    assert_eq!(house.tree(&second.commit), house.tree(&first.commit));
    house.write("a", "b");
    let third = save_as(second.commit.clone(), "ses_2").await;
    assert_ne!(third.commit, second.commit);
    for unknown in ["", "--all", "0123456789012345678901234567890123456789", third.commit.get(..7).unwrap()] {
        assert_ne!(save_as(unknown.to_owned(), "ses_2").await.commit, third.commit);
    }
    house.check();
}

/// A dropped save takes back only the ref that it made.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_save_leaves_the_ref_of_the_commit_that_it_would_have_answered() {
    let house = House::new();
    house.write("a", "a");
    let first = house.save().await;
    let session = session();
    for micros in (0..20_000).step_by(1_000) {
        let save = Save { same_as: Some(&first.commit), ..Save::within(BUDGET, "x") };
        let saving = house.checkpoints.save(&house.workspace, &session, save);
        let _ = tokio::time::timeout(std::time::Duration::from_micros(micros), saving).await;
    }
    house.save().await;
    assert!(house.refs().contains(&first.commit));
}

/// Root may read everything, so the test is run by somebody who may not.
#[test]
fn what_cannot_be_read_is_left_out() {
    passes_as_nobody("caps::where_some_cannot_be_read");
}

#[tokio::test]
#[ignore = "runs inside what_cannot_be_read_is_left_out"]
async fn where_some_cannot_be_read() {
    let house = House::new();
    house.write("a file", "x");
    house.write("another", "y");
    house.write("folder/x", "z");
    let close = |path: &str, mode| {
        fs::set_permissions(house.workspace.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    // Nobody goes into a folder that is ignored, and so nobody finds what is closed there.
    house.write(".gitignore", "node_modules/\n.gitignore\n");
    house.write("node_modules/closed/x", "x");
    close("node_modules/closed", 0);
    // Whether it has been saved before or not.
    for _ in 0..2 {
        for (path, modes, named, size) in [
            ("another", [0o200, 0o644], "another", 1),
            ("folder", [0, 0o755], "folder", 0),
            // Its names can be read, and what they stand for cannot.
            ("folder", [0o444, 0o755], "folder/x", 0),
        ] {
            // Changed meanwhile: what was saved before is not what it holds.
            house.write(named.strip_suffix("folder").map_or(named, |_| "folder/x"), "w");
            close(path, modes[0]);
            let saved = house.save().await;
            let again = house.save().await;
            close(path, modes[1]);
            let left = LeftOut { path: PathBuf::from(named), size, why: LeftOutWhy::Unreadable };
            assert_eq!((&saved.left_out, &again.left_out), (&vec![left.clone()], &vec![left]));
            assert_eq!((saved.files, again.files), (2, 2));
            assert!(house.snapshot(&saved.commit).keys().all(|path| !Path::new(named).ends_with(text(path.clone()))));
        }
        let saved = house.save().await;
        assert_eq!((saved.files, saved.left_out), (3, vec![]));
        assert_eq!(house.snapshot(&saved.commit)[b"another".as_slice()], Entry::File(b"w".to_vec()));
    }
    house.check();
    close("node_modules/closed", 0o755);
}
