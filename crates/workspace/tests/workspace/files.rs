//! Reading and writing files of a workspace.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;
use tolka_workspace::FolderError;
use tolka_workspace::files::{FileError, Files, is_leftover};

const MOST: u64 = 1024 * 1024;

fn workspace() -> (TempDir, Files) {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::open(dir.path()).unwrap();
    (dir, files)
}

/// Names of all that is in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_written_read_and_removed() {
    let (dir, files) = workspace();
    files.write("src/deep/a.rs", b"one", None).unwrap();
    assert_eq!(files.read("src/deep/a.rs", MOST).unwrap(), b"one");
    files.write("src/deep/a.rs", b"two", Some(b"one")).unwrap();
    assert_eq!(fs::read(dir.path().join("src/deep/a.rs")).unwrap(), b"two");
    files.remove("src/deep/a.rs", b"two").unwrap();
    assert!(matches!(files.read("src/deep/a.rs", MOST), Err(FileError::Folder(FolderError::NotFound { .. }))));
    assert_eq!(names(&dir.path().join("src/deep")), [""; 0]);
}

#[test]
fn a_path_may_be_relative_or_absolute_and_inside_by_any_name_of_the_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link, other) = (dir.path().join("real"), dir.path().join("link"), dir.path().join("other"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    symlink(&real, &other).unwrap();
    let files = Files::open(&link).unwrap();
    for root in [&real, &link, &other] {
        assert_eq!(files.relative(root.join("a/b").to_str().unwrap()).unwrap(), "a/b", "{}", root.display());
        assert_eq!(files.relative(root.to_str().unwrap()).unwrap(), ".");
    }
    for (given, expected) in [("./a//b/", "a/b"), (".", "."), ("", "."), ("a/./b", "a/b"), ("ä b", "ä b")] {
        assert_eq!(files.relative(given).unwrap(), expected, "{given}");
    }
}

#[test]
fn what_somebody_else_did_meanwhile_is_left_alone() {
    let (dir, files) = workspace();
    fs::write(dir.path().join("a"), "theirs").unwrap();
    assert!(matches!(files.write("a", b"ours", None), Err(FileError::Exists { .. })));
    for before in [&b"old"[..], b"theirs and more", b"their", b""] {
        let error = files.write("a", b"ours", Some(before)).unwrap_err();
        assert_eq!(error.to_string(), "a was changed or removed by somebody else meanwhile; read it again");
        assert!(matches!(files.remove("a", before), Err(FileError::Changed { .. })));
    }
    assert!(matches!(files.write("b", b"ours", Some(b"old")), Err(FileError::Changed { .. })));
    assert!(matches!(files.write("c/b", b"ours", Some(b"old")), Err(FileError::Folder(FolderError::NotFound { .. }))));
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"theirs");
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn mode_and_owner_stay() {
    let (dir, files) = workspace();
    let path = dir.path().join("run.sh");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&path, Some(12345), Some(54321)).unwrap();
    }
    files.write("run.sh", b"new", Some(b"old")).unwrap();
    let about = fs::metadata(&path).unwrap();
    assert_eq!(about.mode() & 0o7777, 0o750);
    if is_root {
        assert_eq!((about.uid(), about.gid()), (12345, 54321));
    }
}

#[test]
fn a_write_that_fails_leaves_nothing() {
    let (dir, files) = workspace();
    fs::create_dir(dir.path().join("folder")).unwrap();
    assert!(matches!(files.write("folder", b"x", None), Err(FileError::Folder(FolderError::IsFolder { .. }))));
    let long = "x".repeat(300);
    let error = files.write(&format!("new/folders/{long}"), b"x", None).unwrap_err();
    assert!(error.to_string().contains("File name too long"), "{error}");
    assert_eq!(names(dir.path()), ["folder"], "folders made for it are gone");
    assert!(!is_leftover("folder"));
}
