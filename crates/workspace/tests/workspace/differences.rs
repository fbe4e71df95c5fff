//! What differs between two snapshots, with its text.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tolka_facts::event::FileOperation;
use tolka_workspace::CheckpointError;
use tolka_workspace::checkpoint::FileChange;

use crate::house::{House, disk, git};

fn change(path: &str, operation: FileOperation, added: u64, removed: u64) -> FileChange {
    FileChange { path: path.into(), operation, added, removed, is_binary: false }
}

#[tokio::test]
async fn changes_are_told_with_their_lines() {
    let house = House::new();
    house.write("same", "same\n");
    house.write("edited", "one\ntwo\nthree\n");
    house.write("moved", "moved as it is\n");
    house.write("gone", "a\nb\n");
    house.write("mode", "x\n");
    house.write("link", "was a file\n");
    let from = house.commit().await;
    house.write("edited", "one\n2\nthree\nfour\n");
    house.write("new/empty", "");
    fs::rename(house.workspace.join("moved"), house.workspace.join("there")).unwrap();
    house.remove("gone");
    fs::set_permissions(house.workspace.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    house.remove("link");
    symlink("edited", house.workspace.join("link")).unwrap();
    house.write("binary", [0, 1, 2, 10, 3]);
    let to = house.commit().await;

    use FileOperation::{Create, Delete, Update};
    let expected = vec![
        FileChange { is_binary: true, ..change("binary", Create, 0, 0) },
        change("edited", Update, 2, 1),
        change("gone", Delete, 0, 2),
        change("link", Update, 1, 1),
        change("mode", Update, 0, 0),
        change("moved", Delete, 0, 1),
        change("new/empty", Create, 0, 0),
        change("there", Create, 1, 0),
    ];
    assert_eq!(house.checkpoints.changes(&house.workspace, &from, &to).await.unwrap(), expected);
    assert_eq!(house.checkpoints.changes(&house.workspace, &to, &to).await.unwrap(), []);
    let back = house.checkpoints.changes(&house.workspace, &to, &from).await.unwrap();
    assert_eq!(back[1], change("edited", Update, 1, 2));
}

#[tokio::test]
async fn odd_names_are_told_exactly() {
    let house = House::new();
    let from = house.commit().await;
    let names: [&[u8]; 9] =
        [b"tab\there", b":colon", b"new\nline", b"quote\"'", b"\xff\xfe", b"dir \xff/in", b"-", b"*", b"back\\slash"];
    for name in names {
        house.write(Path::new(OsStr::from_bytes(name)), "x\n");
    }
    let to = house.commit().await;
    let mut expected: Vec<PathBuf> = names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
    let mut told: Vec<PathBuf> = Vec::new();
    for change in house.checkpoints.changes(&house.workspace, &from, &to).await.unwrap() {
        assert_eq!((change.added, change.removed), (1, 0), "{change:?}");
        told.push(change.path);
    }
    expected.sort();
    told.sort();
    assert_eq!(told, expected);
    let wanted = [PathBuf::from("*"), PathBuf::from(":colon")];
    let diffs = house.checkpoints.diffs(&house.workspace, &from, &to, Some(&wanted)).await.unwrap();
    assert_eq!(diffs.iter().map(|diff| diff.change.path.to_str().unwrap()).collect::<Vec<_>>(), ["*", ":colon"]);
}

#[tokio::test]
async fn diffs_have_texts_and_say_why_not() {
    let house = House::new();
    house.write("a", "one\ntwo\n");
    house.write("large", "x".repeat((8 << 20) + 1));
    house.write("latin", b"caf\xe9\n");
    let from = house.commit().await;
    house.write("a", "one\n2\n");
    house.write("large", "small");
    house.write("latin", b"caf\xe8\n");
    house.write("binary", [0, 1]);
    house.write("empty", "");
    let to = house.commit().await;
    let diffs = house.checkpoints.diffs(&house.workspace, &from, &to, None).await.unwrap();
    let of = |path: &str| diffs.iter().find(|diff| diff.change.path == Path::new(path)).unwrap();
    assert_eq!(of("a").patch.as_deref(), Some("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
    assert_eq!(of("a").before.as_deref(), Some("one\ntwo\n"));
    let large = of("large");
    assert_eq!((large.is_too_large, &large.patch, &large.before), (true, &None, &None));
    for path in ["binary", "latin"] {
        let diff = of(path);
        assert_eq!((diff.change.is_binary, diff.is_too_large, &diff.patch), (true, false, &None), "{path}");
    }
    assert_eq!(of("empty").before, None);
    assert!(of("empty").patch.as_deref().unwrap().contains("new file mode"));
}

#[tokio::test]
async fn diffs_show_modes_and_links_as_git_does() {
    let house = House::new();
    let set = |path: &str, mode| {
        fs::set_permissions(house.workspace.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    house.write("both", "one\n");
    house.write("mode", "x\n");
    house.write("binary", [0, 1, 2]);
    house.write("private", "x\n");
    house.write("kind", "a file\n");
    house.write("gone.sh", "#!\n");
    set("gone.sh", 0o755);
    symlink("old", house.workspace.join("moved")).unwrap();
    let from = house.commit().await;
    house.write("both", "two\n");
    for path in ["both", "mode", "binary"] {
        set(path, 0o755);
    }
    set("private", 0o600);
    for path in ["kind", "gone.sh", "moved"] {
        house.remove(path);
    }
    symlink("target", house.workspace.join("kind")).unwrap();
    symlink("new", house.workspace.join("moved")).unwrap();
    symlink("nowhere", house.workspace.join("link")).unwrap();
    house.write("new.sh", "");
    set("new.sh", 0o755);
    let to = house.commit().await;
    let diffs = house.checkpoints.diffs(&house.workspace, &from, &to, None).await.unwrap();
    let of = |path: &str| {
        let found = diffs.iter().find(|diff| diff.change.path == Path::new(path));
        found.unwrap().patch.clone().unwrap_or_default()
    };
    let modes = "old mode 100644\nnew mode 100755\n";
    for path in ["mode", "binary"] {
        assert_eq!(of(path), format!("diff --git a/{path} b/{path}\n{modes}"));
    }
    assert_eq!(
        of("both"),
        format!("diff --git a/both b/both\n{modes}--- a/both\n+++ b/both\n@@ -1 +1 @@\n-one\n+two\n")
    );
    assert_eq!(of("private"), "", "git has no word for it");
    assert!(
        of("link").starts_with("diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n"),
        "{}",
        of("link")
    );
    assert!(of("moved").contains(" 120000\n--- a/moved\n+++ b/moved\n"), "{}", of("moved"));
    assert!(of("kind").contains("deleted file mode 100644\n") && of("kind").contains("new file mode 120000\n"));

    // Stock git makes one of the other.
    let copy = house.data.join("copy");
    house.checkpoints.check_out(&house.workspace, &from, &copy).await.unwrap();
    let patch = house.data.join("patch");
    let whole: String = diffs.iter().map(|diff| diff.patch.clone().unwrap()).collect();
    fs::write(&patch, whole).unwrap();
    git(&copy, &["apply", patch.to_str().unwrap()]);
    assert_eq!(disk(&copy), disk(&house.workspace));
}

#[tokio::test]
async fn what_no_snapshot_is_called_is_unknown() {
    let house = House::new();
    house.write("a", "a");
    let commit = house.commit().await;
    let none = "0123456789012345678901234567890123456789";
    for bad in ["HEAD", "--output=x", "", none] {
        for (from, to) in [(bad, commit.as_str()), (commit.as_str(), bad)] {
            let error = house.checkpoints.changes(&house.workspace, from, to).await.unwrap_err();
            assert!(matches!(&error, CheckpointError::Unknown { commit } if commit == bad), "{bad}: {error}");
        }
    }
    // A tree is none, though git could compare it.
    let tree = house.tree(&commit);
    let error = house.checkpoints.share(&house.workspace, &"ses_2".into(), &[none.to_owned()]).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Unknown { .. }), "{error} {tree}");
}
