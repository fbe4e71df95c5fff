//! Patches done to files, whole or not at all, and those that git makes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tolka_workspace::files::Files;
use tolka_workspace::patch::{Change, Patch, PatchError, carry_out};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// As the tool does it.
fn apply(patch: &Patch, files: &Files) -> Result<Vec<Change>, PatchError> {
    let changes = patch.plan(files)?;
    carry_out(files, &changes)?;
    Ok(changes)
}

#[test]
fn a_patch_of_several_files_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    fs::write(at.join("a"), "one\r\ntwo\r\n").unwrap();
    fs::write(at.join("b"), "b\n").unwrap();
    fs::write(at.join("run.sh"), "echo\n").unwrap();
    fs::set_permissions(at.join("run.sh"), Permissions::from_mode(0o755)).unwrap();
    let patch = Patch::parse(
        "*** Begin Patch\n*** Update File: a\n one\n-two\n+2\n*** Delete File: b\n*** Add File: in/c\n+c\n\
         *** Update File: run.sh\n*** Move to: bin/run.sh\n-echo\n+echo 2\n*** Update File: in/c\n-c\n+d\n*** End Patch\n",
    );
    let changes = apply(&patch.unwrap(), &Files::open(at).unwrap()).unwrap();
    assert_eq!(fs::read(at.join("a")).unwrap(), b"one\r\n2\r\n");
    assert!(!at.join("b").exists() && !at.join("run.sh").exists());
    assert_eq!(fs::read(at.join("in/c")).unwrap(), b"d\n");
    assert_eq!(fs::read(at.join("bin/run.sh")).unwrap(), b"echo 2\n");
    assert_eq!(mode(&at.join("bin/run.sh")), 0o755, "what is moved keeps its mode");
    let paths: Vec<_> = changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["a", "b", "in/c", "run.sh", "bin/run.sh"]);
    assert_eq!(
        changes[4],
        Change {
            path: "bin/run.sh".to_owned(),
            before: None,
            after: Some(b"echo 2\n".to_vec()),
            from: Some("run.sh".to_owned())
        }
    );
}

#[test]
fn a_patch_that_cannot_be_done_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    fs::write(at.join("a"), "one\n").unwrap();
    fs::write(at.join("gone"), "gone\n").unwrap();
    fs::create_dir(at.join(".git")).unwrap();
    fs::write(at.join(".git/config"), "theirs\n").unwrap();
    fs::set_permissions(at.join("gone"), Permissions::from_mode(0o700)).unwrap();
    let files = Files::open(at).unwrap();
    let start = "*** Begin Patch\n*** Update File: a\n-one\n+two\n*** Delete File: gone\n*** Add File: new/b\n+b\n";
    let long = format!("*** Add File: {}\n+x\n", "x".repeat(300));
    for (rest, problem) in [
        ("*** Update File: none\n-x\n+y\n", "none: it is not there"),
        ("*** Update File: a\n-x\n+y\n", "a: change 1 of 1: its lines from `x` on are not in the file"),
        ("*** Delete File: none\n", "none: it is not there"),
        ("*** Add File: a\n+x\n", "a: it is there already"),
        ("*** Add File: ../x\n+x\n", "`..` may lead out of the workspace"),
        ("*** Add File: /etc/x\n+x\n", "leads out of the workspace"),
        // These fail when the others are written already.
        (
            "*** Add File: .git/hooks/x\n+x\n",
            "which is the person's own; use git through a command instead; nothing was changed",
        ),
        (&long, "File name too long"),
        ("*** Delete File: .git/config\n", "use git through a command instead; nothing was changed"),
    ] {
        let error = apply(&Patch::parse(&format!("{start}{rest}*** End Patch")).unwrap(), &files).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        let mut names: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.retain(|name| name != "new");
        assert_eq!(names, [".git", "a", "gone"]);
        assert!(!at.join("new/b").exists());
        assert_eq!(fs::read(at.join("a")).unwrap(), b"one\n");
        assert_eq!((fs::read(at.join("gone")).unwrap(), mode(&at.join("gone"))), (b"gone\n".to_vec(), 0o700));
    }
}

fn git(at: &Path, args: &[&str]) -> Vec<u8> {
    let out = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"])
        .args(args)
        .current_dir(at)
        .output()
        .unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

#[test]
fn what_git_tells_as_a_diff_is_done_as_git_does_it() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    fs::create_dir_all(new.join("in a")).unwrap();
    let many: String = (0..200).map(|n| format!("line {}\n", n % 50)).collect();
    let write = |name: &str, text: &str| fs::write(new.join(name), text).unwrap();
    git(&new, &["init", "-q"]);
    write("many", &many);
    write("crlf", "a\r\nb\r\nc\r\n");
    write("no end", "a\nb");
    write("gone", "x\n");
    write("moved", &many);
    write("in a/ü", "x\n");
    git(&new, &["add", "."]);
    git(&new, &["commit", "-qm", "1"]);
    git(dir.path(), &["clone", "-q", "new", "old"]);
    write("many", &many.replacen("line 7\n", "line seven\n", 3).replace("line 30\n", "--- x\n+++ y\n"));
    write("crlf", "a\r\nx\r\ny\r\nc\r\n");
    write("no end", "a\nb\n");
    write("in a/ü", "y");
    write("empty", "");
    fs::remove_file(new.join("gone")).unwrap();
    fs::rename(new.join("moved"), new.join("in a/moved")).unwrap();
    write("in a/moved", &many.replace("line 3\n", ""));
    git(&new, &["add", "."]);
    let diff = String::from_utf8(git(&new, &["diff", "--cached", "-M"])).unwrap();
    assert!(diff.contains("rename to"), "{diff}");
    apply(&Patch::parse(&diff).unwrap(), &Files::open(&old).unwrap()).unwrap();
    git(&old, &["add", "."]);
    assert_eq!(git(&old, &["write-tree"]), git(&new, &["write-tree"]));
}
