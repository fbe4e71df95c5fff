//! What changed between two looks, and what was there before.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use tolka_facts::event::FileOperation;
use tolka_workspace::CheckpointError;
use tolka_workspace::changes::{Changed, Look};

use crate::house::House;

fn told(before: &Look, workspace: &Path) -> Vec<(String, FileOperation)> {
    let changes = before.changes(&Look::at(workspace));
    changes.into_iter().map(|Changed { path, operation }| (path, operation)).collect()
}

#[test]
fn every_change_is_told_and_nothing_else() {
    use FileOperation::{Create, Delete, Update};
    let house = House::new();
    for path in ["a", "b/c", "b/d", "e", "mode", "same", ".hidden/x", "ignored/x", "x.log", "link-target"] {
        house.write(path, path);
    }
    house.write(".gitignore", "ignored/\n*.log\n");
    house.write(".git/config", "mine");
    symlink("link-target", house.workspace.join("link")).unwrap();
    symlink("/", house.workspace.join("root")).unwrap();
    let before = Look::at(&house.workspace);
    assert!(!before.is_partial());
    assert_eq!(told(&before, &house.workspace), []);
    let way = house.data.with_file_name("way");
    symlink(&house.workspace, &way).unwrap();
    assert_eq!(told(&before, &way), []);

    house.write("a", "A");
    fs::remove_file(house.workspace.join("b/c")).unwrap();
    fs::rename(house.workspace.join("e"), house.workspace.join("E")).unwrap();
    fs::set_permissions(house.workspace.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    for path in [".hidden/y", "ignored/y", "y.log", ".git/index", "b/new\nline"] {
        house.write(path, path);
    }
    fs::remove_file(house.workspace.join("link")).unwrap();
    symlink("same", house.workspace.join("link")).unwrap();
    let expected = [
        (".hidden/y", Create),
        ("E", Create),
        ("a", Update),
        ("b/c", Delete),
        ("b/new\nline", Create),
        ("e", Delete),
        ("link", Update),
        ("mode", Update),
    ];
    assert_eq!(told(&before, &house.workspace), expected.map(|(path, operation)| (path.to_owned(), operation)));
}

#[test]
fn what_it_is_told_to_look_for_is_seen_though_it_is_ignored() {
    use FileOperation::{Create, Delete, Update};
    let house = House::new();
    house.write(".gitignore", "*.log\n");
    for path in ["a.log", "gone.log", "same.log", "other.log", "b"] {
        house.write(path, path);
    }
    let also = ["a.log", "gone.log", "same.log", "new.log", "b", "a.log"].map(Into::into);
    let before = Look::also_at(&house.workspace, &also);
    for path in ["a.log", "other.log", "new.log", "b"] {
        house.write(path, "changed");
    }
    fs::remove_file(house.workspace.join("gone.log")).unwrap();
    let changes = before.changes(&Look::also_at(&house.workspace, &also));
    let told: Vec<_> = changes.iter().map(|changed| (changed.path.as_str(), changed.operation)).collect();
    assert_eq!(told, [("a.log", Update), ("b", Update), ("gone.log", Delete), ("new.log", Create)]);
}

/// What comes into sight, or goes out of it, has not come or gone.
#[test]
fn other_rules_of_what_is_ignored_make_and_delete_nothing() {
    use FileOperation::{Create, Delete, Update};
    let house = House::new();
    house.write(".gitignore", "old.log\nmoved/\n");
    for path in ["old.log", "kept", "secret", "also", "gone", "moved/in", "dir/in"] {
        house.write(path, path);
    }
    std::thread::sleep(Duration::from_millis(30));
    let before = Look::at(&house.workspace);
    house.write(".gitignore", "secret\nalso\ngone\n");
    house.write("also", "changed");
    house.write("new.log", "new");
    fs::remove_file(house.workspace.join("gone")).unwrap();
    fs::rename(house.workspace.join("moved"), house.workspace.join("shown")).unwrap();
    fs::rename(house.workspace.join("dir"), house.workspace.join("folder")).unwrap();
    let expected = [
        (".gitignore", Update),
        ("also", Update),
        ("dir/in", Delete),
        ("folder/in", Create),
        ("gone", Delete),
        ("new.log", Create),
        ("shown/in", Create),
    ];
    assert_eq!(told(&before, &house.workspace), expected.map(|(path, operation)| (path.to_owned(), operation)));
}

#[tokio::test]
async fn what_a_killed_write_left_is_neither_seen_nor_saved() {
    let house = House::new();
    house.write("a", "a");
    let before = Look::at(&house.workspace);
    house.write(".tolka-0123456789abcdef.part", "half");
    house.write("deep/.tolka-0123456789abcdef.part", "half");
    assert_eq!(told(&before, &house.workspace), []);
    let saved = house.save().await;
    let paths = ["a", ".tolka-0123456789abcdef.part", "deep/.tolka-0123456789abcdef.part"].map(str::to_owned);
    let read = house.checkpoints.contents(&house.workspace, &saved.commit, &paths).await.unwrap();
    assert_eq!(read, [Some(b"a".to_vec()), None, None]);
}

#[test]
fn a_file_is_older_than_what_came_after_it() {
    let house = House::new();
    house.write("a", "a");
    std::thread::sleep(Duration::from_millis(30));
    let between = std::time::SystemTime::now();
    std::thread::sleep(Duration::from_millis(30));
    house.write("b", "b");
    let look = Look::at(&house.workspace);
    assert_eq!(["a", "b", "none"].map(|path| look.is_older(path, between)), [true, false, false]);
}

#[test]
fn a_file_written_twice_in_one_moment_is_told() {
    let house = House::new();
    for round in 0..20 {
        house.write("a", format!("{round:02}"));
        let before = Look::at(&house.workspace);
        house.write("a", format!("{:02}", round + 50));
        assert_eq!(told(&before, &house.workspace), [("a".to_owned(), FileOperation::Update)]);
    }
}

#[test]
#[ignore = "prints figures; it judges nothing"]
fn many_files_are_looked_at_quickly() {
    let house = House::new();
    for name in 0..20_000 {
        house.write(format!("{}/{}", name % 200, name), "x");
    }
    Look::at(&house.workspace);
    let best = (0..5).map(|_| {
        let began = Instant::now();
        let look = Look::at(&house.workspace);
        assert!(look.changes(&look).is_empty());
        began.elapsed()
    });
    let best = best.min().unwrap();
    println!("20,000 files in {best:?}");
}

#[tokio::test]
async fn what_was_there_before_can_be_read() {
    let house = House::new();
    let names =
        ["plain", "with space", "new\nline", "tab\t\"quote\"", ":(glob)*", "*", "-l", "d/e/f", "dänisch", "d/*"];
    for name in names {
        house.write(name, format!("content of {name}"));
    }
    house.write("binary", [0, 10, 255, 10]);
    house.write("empty", "");
    house.write("large", vec![b'x'; (8 << 20) + 1]);
    symlink("plain", house.workspace.join("link")).unwrap();
    let saved = house.save().await;
    for name in names {
        house.write(name, "changed since");
    }
    let mut paths = names.map(str::to_owned).to_vec();
    paths.extend(["binary", "empty", "plain", "large", "link", "none", "d", "d/", "", "..", "/"].map(str::to_owned));
    let read = house.checkpoints.contents(&house.workspace, &saved.commit, &paths).await.unwrap();
    let mut expected = names.map(|name| Some(format!("content of {name}").into_bytes())).to_vec();
    expected.extend([Some(vec![0, 10, 255, 10]), Some(Vec::new()), Some(b"content of plain".to_vec())]);
    expected.resize(paths.len(), None);
    assert_eq!(read, expected);
}

#[tokio::test]
async fn many_contents_come_in_their_order() {
    let house = House::new();
    let paths: Vec<String> = (0..3000).map(|name| format!("{}/{}-{name}", name % 7, "n".repeat(40))).collect();
    for path in &paths {
        house.write(path, path);
    }
    let saved = house.save().await;
    let read = house.checkpoints.contents(&house.workspace, &saved.commit, &paths).await.unwrap();
    assert!(read.iter().zip(&paths).all(|(content, path)| content.as_deref() == Some(path.as_bytes())));
}

#[tokio::test]
async fn an_unknown_snapshot_is_an_error_and_not_an_empty_one() {
    let house = House::new();
    house.write("a", "a");
    let paths = ["a".to_owned()];
    let nowhere = "0123456789012345678901234567890123456789";
    let contents = |commit| house.checkpoints.contents(&house.workspace, commit, &paths);
    assert!(matches!(contents(nowhere).await, Err(CheckpointError::Unknown { .. })));
    house.save().await;
    assert!(matches!(contents(nowhere).await, Err(CheckpointError::Git { .. })));
    assert!(matches!(contents("--help").await, Err(CheckpointError::Unknown { .. })));
}
