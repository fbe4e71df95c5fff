//! The diffs of `file_edit` given to the real `git apply`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use tolka_facts::event::ToolChanged;
use tolka_facts::{Json, Location, ToolContent, ToolStatus};

use crate::{Session, WORKSPACE, change};

/// An empty folder of its own, gone when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("tolka-apply-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn apply(diff: &str, folder: &Path) -> Result<(), String> {
    let mut git = Command::new("git");
    // Nobody's settings: what they say of line ends would change the outcome.
    git.args(["apply", "--whitespace=nowarn", "-"]).current_dir(folder).stdin(Stdio::piped()).stderr(Stdio::piped());
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CEILING_DIRECTORIES", "/");
    let mut child = git.spawn().unwrap();
    child.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    done.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&done.stderr).into_owned())
}

fn diff_of(path: &str, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let mut session = Session::in_turn();
    session.file(path, before, after);
    let edit = session.packets().pop().unwrap();
    assert_eq!(edit["type"], "file_edit");
    edit["diff"].as_str().map(str::to_owned)
}

/// Makes the file as it was, applies the diff, and looks at what is there then.
fn holds(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let diff = diff_of(path, before, after).unwrap_or_else(|| panic!("{path:?} has no diff"));
    let folder = Folder::new();
    let file = folder.0.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    if let Some(before) = before {
        fs::write(&file, before).unwrap();
    }
    apply(&diff, &folder.0).unwrap_or_else(|error| panic!("{path:?}: {error}\n{diff}"));
    assert_eq!(fs::read_to_string(&file).ok().as_deref(), after, "{path:?}:\n{diff}");
    assert!(crate::judged(told(&diff).as_bytes()).is_empty(), "the law refuses what git takes:\n{diff}");
    diff
}

fn told(diff: &str) -> String {
    let packets = [
        serde_json::json!({"type": "user", "content": "", "dialog_id": "d"}),
        serde_json::json!({"type": "file_edit", "file": "/f", "diff": diff, "dialog_id": "d"}),
        serde_json::json!({"type": "done", "done": true, "dialog_id": "d"}),
    ];
    packets.iter().map(|packet| format!("data: {packet}\n\n")).collect()
}

#[test]
fn a_change_is_written_as_people_know_it() {
    let lines: Vec<String> = (1..=20).map(|n| format!("line {n}\n")).collect();
    let before = lines.concat();
    let after = before.replace("line 3\n", "line three\n").replace("line 18\n", "");
    let diff = holds("src/a.py", Some(&before), Some(&after));
    let expected = "\
--- a/src/a.py
+++ b/src/a.py
@@ -1,6 +1,6 @@
 line 1
 line 2
-line 3
+line three
 line 4
 line 5
 line 6
@@ -15,6 +15,5 @@
 line 15
 line 16
 line 17
-line 18
 line 19
 line 20
";
    assert_eq!(diff, expected);
}

#[test]
fn files_come_and_go() {
    assert_eq!(holds("new.txt", None, Some("a\n")), "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+a\n");
    assert_eq!(holds("old.txt", Some("a\nb\n"), None), "--- a/old.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n");
    assert_eq!(holds("empty.txt", None, Some("")), "diff --git a/empty.txt b/empty.txt\nnew file mode 100644\n");
    assert_eq!(holds("gone.txt", Some(""), None), "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n");
    holds("filled.txt", Some(""), Some("a\n"));
    holds("emptied.txt", Some("a\n"), Some(""));
    holds("deep/in/a/new/folder.txt", None, Some("a\n"));
}

#[test]
fn ends_of_files_and_lines_are_kept() {
    holds("a", Some("x"), Some("y"));
    holds("a", Some("x\n"), Some("x"));
    holds("a", Some("x"), Some("x\n"));
    holds("a", Some("1\n2\n3\n4\nx"), Some("one\n2\n3\n4\nx"));
    holds("a", None, Some("x"));
    holds("a", Some("x"), None);
    holds("a", Some("1\r\n2\r\n3\r\n"), Some("1\r\ntwo\r\n3\r\n"));
    holds("a", Some("1\r\n2\r\n"), Some("1\n2\r\n"));
    holds("a", Some("a\rb\rc\n"), Some("a\rB\rc\n"));
    holds("a", Some("\u{c}x\u{85}y\u{2028}z\n"), Some("\u{c}x\u{85}Y\u{2028}z\n"));
    holds("a", Some("-- a\n++ b\n@@ -1 +1 @@\n"), Some("--- a\n+++ b\n@@ -1 +1 @@\n\\ x\n"));
}

#[test]
fn odd_names_are_read_by_git() {
    let names = [
        "a b.txt",
        "two  spaces and a folder/f g",
        "quote\"d.txt",
        "back\\slash",
        "tab\there",
        "new\nline",
        "grüße/日本.txt",
        "\u{1}control",
        "'single'",
        "ends in space ",
        "at 2024-01-01 00:00:00.000000000 +0000",
        "a/b/a",
        "dev/null",
        "-x",
    ];
    for name in names {
        holds(name, Some("a\n"), Some("b\n"));
        holds(name, None, Some("a\n"));
        holds(name, None, Some(""));
        holds(name, Some("a\n"), None);
        holds(name, Some(""), None);
    }
}

#[test]
fn a_file_is_named_from_its_workspace_on() {
    let absolute = format!("{WORKSPACE}/src/a.py");
    assert!(diff_of(&absolute, Some("a\n"), Some("b\n")).unwrap().starts_with("--- a/src/a.py\n+++ b/src/a.py\n"));
    assert!(diff_of("/etc/motd", Some("a\n"), Some("b\n")).unwrap().starts_with("--- a/etc/motd\n+++ b/etc/motd\n"));
}

#[test]
fn what_cannot_be_shown_has_no_diff() {
    assert_eq!(diff_of("a", Some("a\0\n"), Some("b\n")), None);
    assert_eq!(diff_of("a", Some("same\n"), Some("same\n")), None);
    let long = "x".repeat(600 * 1024);
    assert_eq!(diff_of("a", Some(&long), Some(&format!("{long}y"))), None);
}

/// Every line differs, or every line moved: the work is bounded, and what comes out can be applied.
#[test]
fn hard_texts_are_done_soon() {
    let lines = |n: usize, word: &str| (0..n).map(|n| format!("{word} {n}\n")).collect::<String>();
    let reversed = |text: &str| text.split_inclusive('\n').rev().collect::<String>();
    holds("a", Some(&lines(20_000, "old")), Some(&lines(20_000, "new")));
    let moved = lines(20_000, "line");
    holds("a", Some(&moved), Some(&reversed(&moved)));
    let small = lines(3_900, "line");
    holds("a", Some(&small), Some(&reversed(&small)));
    let few: String = (0..3_900).map(|n| format!("{}\n", n * 7 % 13)).collect();
    let other: String = (0..3_900).map(|n| format!("{}\n", n * 5 % 13)).collect();
    holds("a", Some(&few), Some(&other));
}

/// An agent that shows only the lines that it replaced: where they stand is not known, so there is no diff but the one
/// that the tool itself made.
#[test]
fn a_piece_of_a_file_is_no_diff() {
    let input = r#"{"file_path":"a.py","old_string":"a","new_string":"b"}"#;
    let told = |olds: &[&str], line: Option<u64>, output: Option<Json>| -> Vec<Option<String>> {
        let piece = |old: &&str| ToolContent::Diff { path: "a.py".into(), old: Some((*old).into()), new: "b\n".into() };
        let mut session = Session::in_turn();
        session.call("c", "edit", input);
        session.tell(ToolChanged {
            status: Some(ToolStatus::Completed),
            content: Some(olds.iter().map(piece).collect()),
            locations: Some(vec![Location { path: "a.py".into(), line }]),
            output,
            ..change("c")
        });
        let edits = session.packets().into_iter().filter(|packet| packet["type"] == "file_edit");
        edits.map(|edit| edit["diff"].as_str().map(str::to_owned)).collect()
    };
    let whole = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(told(&["a\n"], None, None), [Some(whole.to_owned())]);
    assert_eq!(told(&["a"], None, None), [None], "what it was asked to replace");
    assert_eq!(told(&["x"], Some(7), None), [None], "a hunk");
    assert_eq!(told(&["x\n", "y\n"], None, None), [None], "several hunks");
    let own = "Index: /home/me/project/a.py\n=====\n--- /home/me/project/a.py\n+++ /home/me/project/a.py\n@@ -7,1 +7,1 @@\n-a\n+b\n";
    let output = Json::of(&serde_json::json!({"output": "Done.", "metadata": {"diff": own}}));
    assert_eq!(told(&["a"], None, Some(output)), [Some(whole.replace("-1 +1", "-7,1 +7,1"))], "the tool's own");
}

/// Reading the call anew for each of its edits would take minutes.
#[test]
fn a_call_may_have_thousands_of_edits() {
    const EDITS: usize = 5_000;
    for files in [1, EDITS] {
        let path = |n: usize| format!("{}.py", n % files);
        let replacements: Vec<_> =
            (0..EDITS).map(|n| serde_json::json!({"old_string": format!("a{n}"), "new_string": "b"})).collect();
        let piece = |n| ToolContent::Diff { path: path(n), old: Some(format!("a{n}").into()), new: "b".into() };
        let place = |n| Location { path: path(n), line: Some(n as u64) };
        let mut session = Session::in_turn();
        session.call("c", "edit", &serde_json::json!({"file_path": "0.py", "edits": replacements}).to_string());
        session.tell(ToolChanged {
            status: Some(ToolStatus::Completed),
            content: Some((0..EDITS).map(piece).collect()),
            locations: Some((0..EDITS).map(place).collect()),
            ..change("c")
        });
        let told: Vec<_> = session.packets().into_iter().filter(|packet| packet["type"] == "file_edit").collect();
        let expected: Vec<_> = (0..files)
            .map(|n| serde_json::json!({"type": "file_edit", "file": format!("{WORKSPACE}/{n}.py"), "dialog_id": "ses_1"}))
            .collect();
        assert_eq!(told, expected);
    }
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c", "", " ", "+", "-", "--- a", "@@ -1 +1 @@", "\\ x", "d\r"]).prop_map(str::to_owned),
        1 => "[a-zé\r\t ]{0,8}",
    ];
    (prop::collection::vec(line, 0..40), any::<bool>()).prop_map(|(lines, has_end)| {
        let text = lines.join("\n");
        if has_end && !text.is_empty() { text + "\n" } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn git_makes_exactly_the_new_text(before in prop::option::of(text()), after in prop::option::of(text())) {
        prop_assume!(before != after);
        holds("some folder/file.txt", before.as_deref(), after.as_deref());
    }
}
