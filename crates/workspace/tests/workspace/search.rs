//! Finding files and text.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tolka_workspace::search::{Found, Hit, Query, SearchError, glob, grep, list};

/// Files in the order of their age, the oldest first.
fn workspace(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (n, (path, text)) in files.iter().enumerate() {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(start + Duration::from_secs(n as u64)).unwrap();
    }
    dir
}

fn query<'a>(workspace: &'a Path, within: &'a str, pattern: &'a str) -> Query<'a> {
    Query { workspace, within, pattern, include: None, limit: 100, stop: Arc::new(AtomicBool::new(false)) }
}

fn globbed(workspace: &Path, within: &str, pattern: &str) -> Vec<String> {
    glob(&query(workspace, within, pattern)).unwrap().items
}

fn grepped(query: &Query<'_>) -> Vec<String> {
    let hits = grep(query).unwrap().items;
    hits.into_iter().map(|Hit { path, line, text }| format!("{path}:{line}:{text}")).collect()
}

#[test]
fn files_are_found_the_latest_first() {
    let dir = workspace(&[
        ("src/a.rs", ""),
        ("src/deep/b.rs", ""),
        ("c.rs", ""),
        ("d.txt", ""),
        (".github/e.yml", ""),
        ("build/f.rs", ""),
        (".gitignore", "build/\n"),
        (".git/g.rs", ""),
        ("src/.git/h.rs", ""),
    ]);
    let at = dir.path();
    assert_eq!(globbed(at, ".", "*.rs"), ["c.rs", "src/deep/b.rs", "src/a.rs"]);
    assert_eq!(globbed(at, ".", "src/*.rs"), ["src/a.rs"]);
    assert_eq!(globbed(at, "src", "**/*.rs"), ["src/deep/b.rs", "src/a.rs"]);
    assert_eq!(globbed(at, "src/deep", "*"), ["src/deep/b.rs"]);
    assert_eq!(globbed(at, ".", "*.{yml,txt}"), [".github/e.yml", "d.txt"]);
    assert_eq!(globbed(at, "build", "*"), ["build/f.rs"], "asked for by name");
    assert_eq!(globbed(at, ".", &format!("{}/src/**", at.display())), ["src/deep/b.rs", "src/a.rs"]);
    let two = glob(&Query { limit: 2, ..query(at, ".", "*.rs") }).unwrap();
    assert_eq!(two, Found { items: vec!["c.rs".to_owned(), "src/deep/b.rs".to_owned()], is_cut: true });
}

#[test]
fn lines_are_found_the_latest_file_first() {
    let dir = workspace(&[
        ("a.txt", "one\ntwo\n"),
        ("b/c.rs", "two\r\nthree\n\ntwo"),
        ("binary", "two\n\0two\n"),
        ("ignored.log", "two"),
        (".gitignore", "*.log\n"),
    ]);
    let at = dir.path();
    assert_eq!(grepped(&query(at, ".", "^t.o")), ["b/c.rs:1:two", "b/c.rs:4:two", "a.txt:2:two"]);
    assert_eq!(grepped(&query(at, "b", "two")), ["b/c.rs:1:two", "b/c.rs:4:two"]);
    assert_eq!(grepped(&query(at, "a.txt", "o")), ["a.txt:1:one", "a.txt:2:two"]);
    assert_eq!(grepped(&Query { include: Some("*.txt"), ..query(at, ".", "two") }), ["a.txt:2:two"]);
    assert_eq!(grepped(&Query { include: Some("b/**"), ..query(at, ".", "three") }), ["b/c.rs:2:three"]);
    let cut = grep(&Query { limit: 1, ..query(at, ".", "two") }).unwrap();
    assert_eq!((cut.items.len(), cut.is_cut), (1, true));
    assert!(!grep(&Query { limit: 3, ..query(at, ".", "two") }).unwrap().is_cut);
}

#[test]
fn a_folder_is_listed_by_name() {
    let dir = workspace(&[("b.txt", ""), ("a/c.txt", ""), ("a/d/e.txt", ""), ("out/x", ""), (".gitignore", "out\n")]);
    let at = dir.path();
    assert_eq!(list(at, ".", false, 10).unwrap().items, [".gitignore", "a/", "b.txt"]);
    assert_eq!(list(at, "a", false, 10).unwrap().items, ["c.txt", "d/"]);
    assert_eq!(list(at, "a", true, 10).unwrap().items, ["c.txt", "d/", "d/e.txt"]);
    assert!(list(at, ".", true, 2).unwrap().is_cut);
    assert_eq!(list(at, "b.txt", true, 2), Err(SearchError::IsFile("b.txt".to_owned())));
}

#[test]
fn nothing_outside_is_searched() {
    let outside = workspace(&[("secret", "two")]);
    let dir = workspace(&[("a", "one")]);
    let at = dir.path();
    symlink(outside.path(), at.join("out")).unwrap();
    symlink(outside.path().join("secret"), at.join("file")).unwrap();
    assert_eq!(grepped(&query(at, ".", "two")), [""; 0]);
    assert_eq!(globbed(at, ".", "secret"), [""; 0]);
    for within in ["out", "..", "/etc", "file", "out/secret", "a/../.."] {
        let error = grep(&query(at, within, "two")).unwrap_err();
        assert!(error.to_string().contains("out of the workspace"), "{within}: {error}");
    }
    assert!(glob(&query(at, ".", "/etc/*")).unwrap_err().to_string().contains("outside the workspace"));
    assert!(list(at, "none", false, 1).unwrap_err().to_string().contains("nothing is at none"));
}

#[test]
fn a_pattern_that_is_none_says_why() {
    let dir = workspace(&[]);
    let error = grep(&query(dir.path(), ".", "a(b")).unwrap_err().to_string();
    assert!(error.contains("unclosed group"), "{error}");
    let error = glob(&query(dir.path(), ".", "a{b")).unwrap_err().to_string();
    assert!(error.contains("unclosed alternate"), "{error}");
    let stopped = Query { stop: Arc::new(AtomicBool::new(true)), ..query(dir.path(), ".", "a") };
    assert_eq!(grep(&stopped), Err(SearchError::Stopped));
}

#[test]
fn many_hits_are_cut_and_long_lines_too() {
    let many = "hit\n".repeat(3000);
    let files: Vec<(String, &str)> = (0..20).map(|n| (format!("f{n:02}"), many.as_str())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let dir = workspace(&files);
    let found = grep(&Query { limit: 50, ..query(dir.path(), ".", "hit") }).unwrap();
    assert!(found.is_cut);
    assert!(found.items.iter().all(|hit| hit.path == "f19"), "the latest file only");
    assert_eq!(found.items.iter().map(|hit| hit.line).collect::<Vec<_>>(), (1..=50).collect::<Vec<_>>());
    fs::write(dir.path().join("long"), format!("needle{}\n", "ä".repeat(100_000))).unwrap();
    let hit = grep(&query(dir.path(), ".", "needle")).unwrap().items.remove(0);
    assert_eq!(hit.text.chars().count(), 2001);
    assert!(hit.text.ends_with("ä…"));
}
