//! Diffs that git takes.

use std::fs;
use std::process::Command;

use tolka_workspace::diff::unified;

/// Applies it with git, and gives what is there then.
fn applied(path: &str, before: Option<&str>, diff: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    if let Some(before) = before {
        fs::write(&file, before).unwrap();
    }
    fs::write(dir.path().join("the.diff"), diff).unwrap();
    let git = Command::new("git").args(["apply", "the.diff"]).current_dir(dir.path()).output().unwrap();
    assert!(git.status.success(), "{}\n{diff}", String::from_utf8_lossy(&git.stderr));
    fs::read_to_string(&file).ok()
}

#[test]
fn git_applies_every_diff() {
    let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
    let changed =
        many.replace("line 7\n", "line seven\n").replace("line 50\n", "").replace("line 98\n", "line 98\nx\n");
    let cases = [
        (None, Some("a\nb\n")),
        (None, Some("a\nb")),
        (None, Some("")),
        (Some("a\nb\n"), None),
        (Some(""), None),
        (Some(""), Some("a\n")),
        (Some("a\n"), Some("")),
        (Some("a"), Some("a\n")),
        (Some("a\nb\n"), Some("a\nb")),
        (Some("a\r\nb\r\n"), Some("a\r\nc\r\n")),
        (Some("a\rb\n"), Some("a\rc\n")),
        (Some("--- a\n"), Some("+++ b\n")),
        (Some(many.as_str()), Some(changed.as_str())),
    ];
    for path in ["a.txt", "deep/in here/b.txt", "quote\"d", "ümlaut", "back\\slash", "new\nline"] {
        for (before, after) in cases {
            let diff = unified(path, before, after);
            assert_eq!(
                applied(path, before, &diff.text).as_deref(),
                after,
                "{path}: {before:?} {after:?}\n{}",
                diff.text
            );
        }
    }
}

#[test]
fn a_diff_reads_as_git_writes_it() {
    let diff = unified("a.txt", Some("one\ntwo\nthree"), Some("one\n2\nthree\n"));
    assert_eq!(
        diff.text,
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n\\ No newline at end of file\n+2\n+three\n"
    );
    assert_eq!((diff.added, diff.removed), (2, 2));
    assert!(unified("a", None, Some("x\n")).text.starts_with("--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n"));
    assert_eq!(unified("a", Some("x"), Some("x")).text, "");
    assert_eq!(unified("a", Some("x\0"), Some("y")).text, "Binary files a/a and b/a differ\n");
}
