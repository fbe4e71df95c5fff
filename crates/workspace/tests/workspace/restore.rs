//! A restore gives back what it promised, and touches nothing else.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use tolka_facts::event::{FileOperation, KeptWhy};
use tolka_workspace::checkpoint::Whose;

use crate::house::{House, disk, git, session};
use crate::rewinding::{done, kept, span, steps};

fn set_mode(house: &House, path: &str, mode: u32) {
    fs::set_permissions(house.workspace.join(path), fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn everything_a_turn_did_is_taken_back_exactly() {
    let house = House::new();
    house.write("edited", "before");
    house.write("deleted/deep", "before");
    house.write("run.sh", "#!/bin/sh\n");
    set_mode(&house, "run.sh", 0o755);
    house.write("plain", "x");
    house.write("empty", "");
    symlink("edited", house.workspace.join("link")).unwrap();
    symlink("/nowhere", house.workspace.join("dangling")).unwrap();
    house.write("kind", "a file");
    house.write("file then folder", "a file");
    house.write("folder then file/x", "x");
    house.write(Path::new(OsStr::from_bytes(b"odd \xff\n\"name")), "before");
    let before = disk(&house.workspace);
    let target = house.commit().await;

    house.write("edited", "after");
    fs::remove_dir_all(house.workspace.join("deleted")).unwrap();
    set_mode(&house, "run.sh", 0o644);
    set_mode(&house, "plain", 0o755);
    house.write("empty", "no more");
    for link in ["link", "dangling"] {
        house.remove(link);
    }
    symlink("plain", house.workspace.join("link")).unwrap();
    house.write("dangling", "a file");
    house.remove("kind");
    symlink("plain", house.workspace.join("kind")).unwrap();
    house.remove("file then folder");
    house.write("file then folder/in/it", "x");
    fs::remove_dir_all(house.workspace.join("folder then file")).unwrap();
    house.write("folder then file", "a file");
    house.write(Path::new(OsStr::from_bytes(b"odd \xff\n\"name")), "after");
    house.write("new/er/file", "x");
    house.write("program", "x");
    set_mode(&house, "program", 0o700);
    let after = disk(&house.workspace);
    let now = house.commit().await;

    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    let restored = house.carry_out(&plan).await;

    assert_eq!(disk(&house.workspace), before);
    assert_eq!(restored.done, plan.steps);
    assert_eq!(restored.kept, []);
    assert!(!house.has("new"), "a folder that is empty by this is gone");
    // And the undo of it.
    let undone = house.undo_all(&now).await;
    assert_eq!(undone.kept, []);
    assert_eq!(disk(&house.workspace), after);
    house.check();
}

#[tokio::test]
async fn steps_say_what_the_restore_does() {
    let house = House::new();
    house.write("gone", "a\nb\n");
    house.write("edited", "a\nb\n");
    let target = house.commit().await;
    house.remove("gone");
    house.write("edited", "a\n");
    house.write("new", "a\n");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    let told: Vec<_> =
        plan.steps.iter().map(|step| (step.path.to_str().unwrap(), step.operation, step.added, step.removed)).collect();
    use FileOperation::{Create, Delete, Update};
    assert_eq!(told, [("edited", Update, 1, 0), ("gone", Create, 2, 0), ("new", Delete, 0, 1)]);
}

/// AgentSmithy, failure 9; zed #59099.
#[tokio::test]
async fn what_does_not_differ_is_not_written() {
    let house = House::new();
    house.write("same", "same");
    house.write("mode", "x");
    house.write("edited", "before");
    let target = house.commit().await;
    let (same, mode) = (house.written("same"), house.written("mode"));
    house.write("edited", "after");
    set_mode(&house, "mode", 0o755);
    house.undo_all(&target).await;
    assert_eq!(house.read("edited"), "before");
    assert_eq!(house.written("same"), same);
    assert_eq!(house.written("mode"), mode, "only its mode changed");
    assert_eq!(fs::metadata(house.workspace.join("mode")).unwrap().permissions().mode() & 0o111, 0);
}

/// AgentSmithy, failure 6.
#[tokio::test]
async fn empty_folders_stay_and_git_is_not_touched() {
    let house = House::new();
    git(&house.workspace, &["init", "--quiet"]);
    house.write("a", "a");
    git(&house.workspace, &["add", "--all"]);
    git(&house.workspace, &["commit", "--quiet", "-m", "x"]);
    git(&house.workspace, &["pack-refs", "--all"]);
    fs::create_dir_all(house.workspace.join("empty/on/purpose")).unwrap();
    // The clock of files goes on in steps.
    let made = Instant::now();
    while made.elapsed() < Duration::from_millis(30) {
        std::thread::yield_now();
    }
    let target = house.commit().await;
    house.write("a", "after");
    house.write("made/by/agent", "x");
    fs::create_dir_all(house.workspace.join("made/empty")).unwrap();
    house.write("empty/agent/file", "x");
    house.write("empty/on/purpose/file", "x");
    let repository = disk(&house.workspace.join(".git"));
    house.undo_all(&target).await;
    assert!(house.has("empty/on/purpose") && !house.has("empty/on/purpose/file"));
    assert!(!house.has("empty/agent"));
    assert!(!house.has("made/by"));
    assert!(house.has("made/empty"), "nobody knows whose it is");
    assert!(house.has(".git/refs"));
    assert_eq!(disk(&house.workspace.join(".git")), repository);
    assert_eq!(git(&house.workspace, &["status", "--porcelain"]), b"");
}

/// AgentSmithy, failure 7.
#[tokio::test]
async fn a_restore_never_writes_through_links() {
    let house = House::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    fs::create_dir(outside.path().join("dir")).unwrap();
    house.write("file", "before");
    house.write("dir/file", "before");
    let target = house.commit().await;
    house.remove("file");
    symlink(outside.path().join("file"), house.workspace.join("file")).unwrap();
    fs::remove_dir_all(house.workspace.join("dir")).unwrap();
    symlink(outside.path().join("dir"), house.workspace.join("dir")).unwrap();
    let restored = house.undo_all(&target).await;
    assert_eq!(restored.kept, []);
    assert_eq!((house.read("file").as_str(), house.read("dir/file").as_str()), ("before", "before"));
    assert!(house.workspace.join("dir").symlink_metadata().unwrap().is_dir());
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "outside");
    assert_eq!(fs::read_dir(outside.path().join("dir")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_folder_that_became_a_link_after_the_snapshot_leads_nowhere() {
    let house = House::new();
    let outside = tempfile::tempdir().unwrap();
    house.write("dir/a", "before");
    house.write("dir/b", "before");
    let target = house.commit().await;
    house.write("dir/a", "after");
    house.remove("dir/b");
    house.write("dir/new", "new");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    fs::rename(house.workspace.join("dir"), outside.path().join("dir")).unwrap();
    symlink(outside.path().join("dir"), house.workspace.join("dir")).unwrap();
    let before = disk(outside.path());
    let restored = house.carry_out(&plan).await;
    assert_eq!(kept(&restored.kept), [("dir/a".into(), KeptWhy::Moved), ("dir/b".into(), KeptWhy::Moved)]);
    assert_eq!(disk(outside.path()), before);
}

#[tokio::test]
async fn what_moved_since_the_snapshot_is_kept() {
    let house = House::new();
    for name in ["edited", "deleted", "touched", "mode", "replaced"] {
        house.write(name, "before");
    }
    let target = house.commit().await;
    for name in ["edited", "touched", "created", "mode", "replaced"] {
        house.write(name, "by the agent");
    }
    house.remove("deleted");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    house.write("edited", "by the user");
    house.write("deleted", "by the user");
    house.write("created", "by the user");
    // Neither a new time nor another file with the same content is a change.
    house.write("touched", "by the agent");
    fs::copy(house.workspace.join("replaced"), house.workspace.join("copy")).unwrap();
    fs::rename(house.workspace.join("copy"), house.workspace.join("replaced")).unwrap();
    set_mode(&house, "mode", 0o755);
    let restored = house.carry_out(&plan).await;
    let moved = ["created", "deleted", "edited", "mode"].map(|name| (name.to_owned(), KeptWhy::Moved));
    assert_eq!(kept(&restored.kept), moved);
    assert_eq!(done(&restored), ["replaced", "touched"]);
    for name in ["created", "deleted", "edited"] {
        assert_eq!(house.read(name), "by the user", "{name}");
    }
    assert_eq!(house.read("touched"), "before");
}

#[tokio::test]
async fn carried_out_again_it_is_done() {
    let house = House::new();
    house.write("a", "before");
    house.write("gone/b", "before");
    let target = house.commit().await;
    house.write("a", "after");
    house.remove("gone/b");
    house.write("new/c", "after");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    let first = house.carry_out(&plan).await;
    let written = house.written("a");
    assert_eq!(house.plan(vec![span(&target, &now, Whose::Ours)]).await, plan);
    assert_eq!(house.carry_out(&plan).await, first);
    assert_eq!(house.written("a"), written);
}

#[tokio::test]
async fn modes_that_no_snapshot_has_are_kept() {
    let house = House::new();
    house.write("private", "before");
    set_mode(&house, "private", 0o600);
    house.write("shared", "before");
    set_mode(&house, "shared", 0o664);
    let target = house.commit().await;
    house.write("private", "after");
    house.write("shared", "after");
    set_mode(&house, "shared", 0o775);
    house.undo_all(&target).await;
    let mode = |name: &str| fs::metadata(house.workspace.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("private"), mode("shared")), (0o600, 0o664));
}

#[tokio::test]
async fn many_files_go_back_at_once_and_nothing_is_left() {
    let house = House::new();
    for n in 0..1_500 {
        house.write(format!("d{}/f{n}", n % 40), format!("before {n}\n"));
    }
    let target = house.commit().await;
    let before = disk(&house.workspace);
    for n in 0..1_500 {
        match n % 3 {
            0 => house.write(format!("d{}/f{n}", n % 40), format!("after {n}\n")),
            1 => house.remove(format!("d{}/f{n}", n % 40)),
            _ => house.write(format!("d{}/new/g{n}", n % 40), "new"),
        }
    }
    let restored = house.undo_all(&target).await;
    assert_eq!(restored.done.len(), 1_500);
    assert_eq!(disk(&house.workspace), before);
}

#[tokio::test]
async fn a_snapshot_is_checked_out_into_a_folder_of_its_own() {
    let house = House::new();
    house.write("a", "a");
    house.write("run.sh", "x");
    set_mode(&house, "run.sh", 0o755);
    symlink("a", house.workspace.join("link")).unwrap();
    house.write(".gitattributes", "* text eol=crlf\n");
    house.write("deep/er/new\nline", "x\n");
    let saved = house.save().await;
    let expected = disk(&house.workspace);
    let elsewhere = tempfile::tempdir().unwrap();
    let into = elsewhere.path().join("fork");
    // A try that was killed left this.
    fs::create_dir_all(elsewhere.path().join(".fork.tolka-unfinished/files/old")).unwrap();
    let count = house.checkpoints.check_out(&house.workspace, &saved.commit, &into).await.unwrap();
    assert_eq!(count, saved.files);
    assert_eq!(disk(elsewhere.path()).len(), expected.len(), "nothing is left beside it");
    assert_eq!(disk(&into), expected);
    let error = house.checkpoints.check_out(&house.workspace, &saved.commit, &into).await.unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    assert_eq!(disk(&into), expected);
    let empty = elsewhere.path().join("empty");
    fs::create_dir(&empty).unwrap();
    house.checkpoints.check_out(&house.workspace, &saved.commit, &empty).await.unwrap();
    assert_eq!(disk(&empty), expected);
}

#[tokio::test]
async fn a_shared_snapshot_outlives_its_session() {
    let house = House::new();
    house.write("a", "a");
    let commit = house.commit().await;
    house.write("a", "b");
    house.commit().await;
    house.checkpoints.share(&house.workspace, &"ses_2".into(), std::slice::from_ref(&commit)).await.unwrap();
    house.checkpoints.forget(&house.workspace, &session()).await.unwrap();
    assert_eq!(house.refs(), std::slice::from_ref(&commit));
    assert_eq!(house.paths(&commit), ["a"]);
    house.check();
}

#[tokio::test]
async fn a_plan_for_a_few_files_leaves_the_rest_alone() {
    let house = House::new();
    house.write("a", "before");
    house.write("b", "before");
    let target = house.commit().await;
    house.write("a", "agent");
    let middle = house.commit().await;
    house.write("b", "user");
    house.write("new", "user");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &middle, Whose::Ours), span(&middle, &now, Whose::Others)]).await;
    assert_eq!(steps(&plan), ["a"]);
    let restored = house.carry_out(&plan).await;
    assert_eq!(kept(&restored.kept), [("b".into(), KeptWhy::NotOurs), ("new".into(), KeptWhy::NotOurs)]);
    assert_eq!(
        (house.read("a").as_str(), house.read("b").as_str(), house.read("new").as_str()),
        ("before", "user", "user")
    );
}
