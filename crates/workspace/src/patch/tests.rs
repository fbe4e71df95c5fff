use super::*;

fn parsed(text: &str) -> Vec<FilePatch> {
    Patch::parse(text).unwrap().files
}

fn refused(text: &str) -> String {
    Patch::parse(text).unwrap_err().to_string()
}

fn hunk(old: &[&str], new: &[&str]) -> Hunk {
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    Hunk { old: own(old), new: own(new), ..Hunk::default() }
}

fn update(path: &str, hunks: Vec<Hunk>) -> FilePatch {
    FilePatch::Update { path: path.to_owned(), to: None, hunks }
}

const WHOLE: &str = "*** Begin Patch
*** Add File: new/a.txt
+one
+
+two
*** Delete File: old.txt
*** Update File: b.py
*** Move to: c.py
@@ class A:
@@   def f(self):
 x

-y
+z
@@
-p
+q
*** End of File

*** Update File: d.txt
-only
+this
*** End Patch";

#[test]
fn a_begin_patch_is_read() {
    let files = vec![
        FilePatch::Add { path: "new/a.txt".to_owned(), content: "one\n\ntwo\n".to_owned() },
        FilePatch::Delete { path: "old.txt".to_owned() },
        FilePatch::Update {
            path: "b.py".to_owned(),
            to: Some("c.py".to_owned()),
            hunks: vec![
                Hunk {
                    near: vec!["class A:".to_owned(), "def f(self):".to_owned()],
                    ..hunk(&["x", "", "y"], &["x", "", "z"])
                },
                Hunk { is_last: true, ..hunk(&["p"], &["q"]) },
            ],
        },
        update("d.txt", vec![hunk(&["only"], &["this"])]),
    ];
    assert_eq!(parsed(WHOLE), files);
    for around in [
        format!("Here it is:\n{WHOLE}\n"),
        format!("```diff\n{WHOLE}\n```\n"),
        format!("apply_patch <<'EOF'\n{WHOLE}\nEOF\n"),
        format!("```bash\napply_patch <<EOF\n{WHOLE}\nEOF\n```"),
    ] {
        assert_eq!(parsed(&around), files, "{around}");
    }
    assert_eq!(parsed(&WHOLE.replace('\n', "\r\n"))[2..], files[2..]);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (text, problem) in [
        ("", "neither `*** Begin Patch` nor"),
        ("hello\n", "neither `*** Begin Patch` nor"),
        ("*** Begin Patch\n*** End Patch\n", "it changes no file"),
        ("*** Begin Patch\n*** Add File: a\n+x\n", "`*** End Patch` is missing"),
        (
            "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
            "line 3 of it: every line of a new file starts with `+`",
        ),
        ("*** Begin Patch\n*** Add File:\n+x\n*** End Patch", "line 2 of it: the path is missing"),
        ("*** Begin Patch\n*** Rename File: a\n*** End Patch", "line 2 of it: expected `*** Add File: `"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "line 2 of it: it changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n@@\n*** End Patch", "line 3 of it: no lines follow `@@`"),
        ("*** Begin Patch\n*** Update File: a\nx\n*** End Patch", "line 3 of it: a line of a change starts with"),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", "line 3 of it: nothing can follow"),
        ("--- a/x\n+++ b/x\n", "line 1 of it: no `@@` follows"),
        ("--- a/x\n@@ -1 +1 @@\n-a\n+b\n", "line 1 of it: a file needs its `--- ` and `+++ ` lines"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n*b\n", "line 5 of it: a line of a diff starts with"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "line 2 of it: it is of a binary file"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "line 1 of it: it changes nothing but the mode"),
    ] {
        let error = refused(text);
        assert!(error.contains(problem), "{text}\n{error}");
    }
}

#[test]
fn a_unified_diff_is_read() {
    let text = "diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@ fn x()
 one
--- two
+++ 2
 three
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1,2 @@
+x
+y
\\ No newline at end of file
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/was b/is
similarity index 100%
rename from was
rename to is
diff --git a/empty one b/empty one
new file mode 100644
";
    let files = vec![
        update("a.txt", vec![Hunk { line: Some(1), ..hunk(&["one", "-- two", "three"], &["one", "++ 2", "three"]) }]),
        FilePatch::Add { path: "new".to_owned(), content: "x\ny".to_owned() },
        FilePatch::Delete { path: "gone".to_owned() },
        FilePatch::Update { path: "was".to_owned(), to: Some("is".to_owned()), hunks: Vec::new() },
        FilePatch::Add { path: "empty one".to_owned(), content: String::new() },
    ];
    assert_eq!(parsed(text), files);
    assert_eq!(parsed(&format!("```diff\n{text}```\n")), files);
    let plain = "--- x.txt\t2024-01-01\n+++ x.txt\t2024-01-02\n@@ @@\n-a\n+b\n--- y\n+++ y\n@@ -1 +1 @@\n-c\n+d\n";
    let second = Hunk { line: Some(1), ..hunk(&["c"], &["d"]) };
    assert_eq!(parsed(plain), [update("x.txt", vec![hunk(&["a"], &["b"])]), update("y", vec![second])]);
    let quoted = "--- \"a/\\303\\274 \\\"q\\\"\"\n+++ \"b/\\303\\274 \\\"q\\\"\"\n@@ @@\n-a\n+b\n";
    assert_eq!(parsed(quoted), [update("ü \"q\"", vec![hunk(&["a"], &["b"])])]);
}

#[test]
fn hunks_go_where_their_lines_stand() {
    let text = "a\nb\nc\nd\n";
    assert_eq!(apply(text, &[hunk(&["b"], &["x", "y"]), hunk(&["d"], &[])]).unwrap(), "a\nx\ny\nc\n");
    assert_eq!(apply(text, &[hunk(&["d"], &["e"]), hunk(&["a"], &["f"])]).unwrap(), "f\nb\nc\ne\n", "out of order");
    let wrong = Hunk { line: Some(77), ..hunk(&["c"], &["x"]) };
    assert_eq!(apply(text, &[wrong]).unwrap(), "a\nb\nx\nd\n");
    assert_eq!(apply(text, &[hunk(&["c", ""], &["x", ""])]).unwrap(), "a\nb\nx\nd\n", "an empty line too many");
    assert_eq!(apply("  a \r\n  b\r\n", &[hunk(&["a", "b"], &["a", "c"])]).unwrap(), "  a \r\n  c\r\n");
    assert_eq!(apply("\u{feff}a\n", &[hunk(&["a"], &["b"])]).unwrap(), "\u{feff}b\n");
}

#[test]
fn a_hunk_that_fits_in_two_places_is_refused() {
    let text = "def a():\n    go()\ndef b():\n    go()\n";
    let go = || hunk(&["    go()"], &["    stay()"]);
    let error = apply(text, &[go()]).unwrap_err().to_string();
    assert!(error.contains("change 1 of 1: it fits in 2 places (at lines 2, 4)"), "{error}");
    let near = Hunk { near: vec!["def b():".to_owned()], ..go() };
    assert_eq!(apply(text, &[near]).unwrap(), "def a():\n    go()\ndef b():\n    stay()\n");
    let near = Hunk { near: vec!["def a():".to_owned()], ..go() };
    assert_eq!(apply(text, &[near]).unwrap(), "def a():\n    stay()\ndef b():\n    go()\n");
    let told = Hunk { line: Some(4), ..go() };
    assert_eq!(apply(text, &[told]).unwrap(), "def a():\n    go()\ndef b():\n    stay()\n");
    let last = Hunk { is_last: true, ..go() };
    assert_eq!(apply(text, &[last]).unwrap(), "def a():\n    go()\ndef b():\n    stay()\n");
    assert_eq!(
        apply(text, &[go(), go()]),
        Err(PatchError(
            "change 1 of 2: it fits in 2 places (at lines 2, 4); add lines around it until it fits in one".to_owned()
        ))
    );
    let error = apply("a\nsome line\n", &[hunk(&["some line", "not there"], &[])]).unwrap_err().to_string();
    assert!(
        error.contains("lines from `some line` on are not in the file; the most similar place is around line 2"),
        "{error}"
    );
}

#[test]
fn lines_alone_are_put_where_the_patch_says_or_at_the_end() {
    let add = || hunk(&[], &["x"]);
    assert_eq!(apply("a\nb\n", &[add()]).unwrap(), "a\nb\nx\n");
    assert_eq!(apply("a\nb", &[add()]).unwrap(), "a\nb\nx");
    assert_eq!(apply("", &[add()]).unwrap(), "x\n");
    assert_eq!(apply("a\nb\n", &[Hunk { line: Some(1), ..add() }]).unwrap(), "a\nx\nb\n");
    assert_eq!(apply("a\nb\n", &[Hunk { line: Some(0), ..add() }]).unwrap(), "x\na\nb\n");
    assert_eq!(apply("a\n b\nc\n", &[Hunk { near: vec!["b".to_owned()], ..add() }]).unwrap(), "a\n b\nx\nc\n");
    assert!(apply("a\n", &[Hunk { near: vec!["b".to_owned()], ..add() }]).is_err());
}

#[test]
fn the_last_line_end_is_kept_unless_the_diff_says_so() {
    assert_eq!(apply("a\nb", &[hunk(&["b"], &["c"])]).unwrap(), "a\nc");
    assert_eq!(apply("a\nb", &[hunk(&["a"], &["c"])]).unwrap(), "c\nb");
    let ends = |last_end| Hunk { last_end, is_last: true, ..hunk(&["b"], &["b"]) };
    assert_eq!(apply("a\nb", &[ends(LastEnd::Added)]).unwrap(), "a\nb\n");
    assert_eq!(apply("a\r\nb\r\n", &[ends(LastEnd::Removed)]).unwrap(), "a\r\nb");
}
