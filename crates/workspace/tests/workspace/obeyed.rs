//! What git obeys, and who changed it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tolka_workspace::obeyed::{Moved, Obeyed, is_named, is_quiet};

use crate::house::git;

fn repository() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    fs::create_dir_all(path.join(".git/hooks")).unwrap();
    (folder, path)
}

fn changed(workspace: &Path, line: &str) -> Vec<String> {
    let before = Obeyed::at(workspace);
    assert!(Command::new("bash").args(["-c", line]).current_dir(workspace).status().unwrap().success(), "{line}");
    let changes = before.changes();
    changes.iter().map(|path| path.strip_prefix(workspace).unwrap_or(path).to_str().unwrap().to_owned()).collect()
}

#[test]
fn whatever_git_obeys_is_told_when_it_changes() {
    for (line, expected) in [
        ("git config core.fsmonitor evil", &[".git/config"][..]),
        ("echo x >.git/hooks/pre-commit", &[".git/hooks/pre-commit"]),
        ("echo x >.git/config.worktree; echo ../evil >.git/commondir", &[".git/commondir", ".git/config.worktree"]),
        ("rm -r .git/hooks; ln -s ../hooks .git/hooks", &[".git/hooks"]),
        ("mkfifo fifo; mv fifo .git/config", &[".git/config"]),
        ("rm -r .git; echo gitdir: evil >.git", &[".git"]),
        ("mv .git away; cp -r away .git; echo [x] >>.git/config", &[".git/config"]),
        // What git does all day is none of it, nor is what is the same again.
        ("touch .git/config; echo x >file; git add file; git -c user.name=p -c user.email=p@x commit -qm x", &[]),
        ("mv .git/config x; sleep 0.02; cp x .git/config; rm x", &[]),
    ] {
        let (_folder, path) = repository();
        assert_eq!(changed(&path, line), expected, "{line}");
    }
}

fn shell(folder: &Path, line: &str) {
    assert!(Command::new("bash").args(["-c", line]).current_dir(folder).status().unwrap().success(), "{line}");
}

/// Not only where people usually have it.
#[test]
fn what_git_obeys_is_found_wherever_it_is_and_put_back() {
    for (setting, line, expected) in [
        (
            "rm -r .git; git init -q --separate-git-dir=.bare .; mkdir -p .bare/hooks",
            "echo >>.bare/config; echo x >.bare/hooks/pre-commit; echo gitdir: x >.git",
            &[".bare/config", ".bare/hooks/pre-commit", ".git"][..],
        ),
        (
            "git init -q --bare .git/modules/a/b; git init -q --bare .git/modules/a/b/modules/c",
            "echo >>.git/modules/a/b/config; echo >>.git/modules/a/b/modules/c/config",
            &[".git/modules/a/b/config", ".git/modules/a/b/modules/c/config"],
        ),
        (
            "git config core.hooksPath .husky; mkdir .husky; echo a >.husky/pre-commit",
            "echo x >.husky/pre-commit; echo x >.husky/pre-push",
            &[".husky/pre-commit", ".husky/pre-push"],
        ),
        ("git config core.hooksPath ./hooks/../made", "mkdir made; echo x >made/pre-push", &["made"]),
        (
            "git config include.path ../team; printf '[includeIf \"gitdir:/\"]\npath = more/x' >team; mkdir more",
            "echo >>team; echo x >more/x",
            &["more/x", "team"],
        ),
        (
            "git init -q a/sub; git -C a/sub config core.hooksPath own; mkdir a/sub/own",
            "git -C a/sub config core.fsmonitor evil; echo x >a/sub/own/pre-push",
            &["a/sub/.git/config", "a/sub/own/pre-push"],
        ),
        ("git init -q --bare x", "echo >>x/config; echo x >x/commondir", &["x/commondir", "x/config"]),
        // What is gone is not obeyed.
        ("git init -q a/sub; git init -q --bare x", "rm -r a x", &[]),
    ] {
        let (_folder, path) = repository();
        shell(&path, setting);
        let before = Obeyed::at(&path);
        shell(&path, line);
        let after = before.again();
        let changed = before.differences(&after);
        let told: Vec<_> =
            changed.iter().map(|path_of| path_of.strip_prefix(&path).unwrap().to_str().unwrap()).collect();
        assert_eq!(told, expected, "{setting}");
        assert_eq!(before.put_back(&after, &changed), [] as [PathBuf; 0], "{setting}");
        assert_eq!(before.changes(), [] as [PathBuf; 0], "{setting}");
    }
}

#[test]
fn files_of_the_work_tree_that_git_obeys_are_known() {
    let (_folder, path) = repository();
    shell(&path, "git config core.hooksPath .husky; git config include.path ../team; git init -q sub");
    shell(&path, "git -C sub config core.hooksPath own");
    let is = |name: &str| is_named(&path, Path::new(name));
    for name in [".husky", ".husky/pre-commit", ".husky/new/deep", "team", "sub/own/x"] {
        assert!(is(name), "{name}");
    }
    for name in ["a", "husky", "own/x", "sub/x", "teams", "sub/.husky/x", ".git/config", "sub/.git/config"] {
        assert!(!is(name), "{name}");
    }
    // A folder that was made useless may be made whole again.
    shell(&path, "rm -r .git; git init -q --separate-git-dir=.bare .");
    assert!(!is(".bare/config"), "nobody writes there at all");
    shell(&path, "rm .bare/HEAD");
    assert!(is(".bare/config"));
}

#[test]
fn git_is_quiet_only_where_all_that_it_obeys_is_known() {
    for (line, folder, is) in [
        ("true", ".", true),
        ("git remote add origin x; git config core.hooksPath .husky; mkdir -p a/b", "a/b", true),
        ("git config core.fsmonitor evil", ".", false),
        ("git config alias.x evil", ".", false),
        ("git config include.path ../team", ".", false),
        ("git config filter.x.clean evil", ".", false),
        ("git config diff.x.textconv evil", ".", false),
        ("git config remote.origin.promisor true", ".", false),
        ("echo broken >.git/config", ".", false),
        ("echo '[core] fsmonitor = evil' >.git/config.worktree", ".", false),
        ("echo x >.git/commondir", ".", false),
        ("rm .git/HEAD", ".", false),
        ("git init -q sub; mkdir sub/deep", "sub/deep", false),
        ("git init -q --bare x; mkdir x/deep", "x/deep", false),
        ("mkdir x; echo gitdir: ../y >x/.git", "x", false),
        ("rm -r .git; git init -q --separate-git-dir=.bare .", ".", true),
        ("rm -r .git; git init -q --separate-git-dir=.bare .; git config core.fsmonitor evil", ".", false),
        (
            "git init -q sub; git -C sub -c user.name=p -c user.email=p@x commit -qm x --allow-empty; git add sub",
            ".",
            false,
        ),
        ("echo x >a; git add a", ".", true),
        ("rm -r .git", ".", true),
        ("mv .git ../", ".", false),
    ] {
        let folder_of = tempfile::tempdir().unwrap();
        let path = folder_of.path().canonicalize().unwrap().join("work");
        fs::create_dir(&path).unwrap();
        git(&path, &["init", "-q", "-b", "main"]);
        shell(&path, line);
        assert_eq!(is_quiet(&path, &path.join(folder)), is, "{line}");
    }
}

#[test]
fn a_repository_that_was_moved_is_brought_home() {
    for (line, to) in [
        ("mv .git .git-old", ".git-old"),
        ("mkdir a; mv .git a/b", "a/b"),
        ("mv .git away; mkdir .git; echo evil >.git/config", "away"),
        ("mv .git away; ln -s away .git", "away"),
        ("mv .git away; echo gitdir: evil >.git", "away"),
    ] {
        let (_folder, path) = repository();
        git(&path, &["-c", "user.name=p", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", "first"]);
        let before = Obeyed::at(&path);
        assert_eq!(before.moved(), [], "{line}");
        shell(&path, line);
        let moved = before.moved();
        assert_eq!(moved, [Moved { repository: path.join(".git"), to: Some(path.join(to)) }], "{line}");
        before.bring_home(&moved[0]).unwrap();
        assert_eq!((before.moved(), before.changes()), (Vec::new(), Vec::new()), "{line}");
        git(&path, &["log", "-1"]);
    }
    let (_folder, path) = repository();
    let before = Obeyed::at(&path);
    fs::remove_dir_all(path.join(".git")).unwrap();
    let moved = before.moved();
    assert_eq!(moved, [Moved { repository: path.join(".git"), to: None }]);
    assert!(before.bring_home(&moved[0]).is_err());
}

#[test]
fn a_hook_that_can_be_run_by_now_has_changed() {
    let (_folder, path) = repository();
    let hook = path.join(".git/hooks/pre-commit");
    fs::write(&hook, "echo x").unwrap();
    assert_eq!(changed(&path, "chmod 755 .git/hooks/pre-commit"), [".git/hooks/pre-commit"]);
    assert_ne!(fs::metadata(hook).unwrap().permissions().mode() & 0o111, 0);
}

#[test]
fn a_repository_that_was_not_there_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(changed(folder.path(), "git init -q; git config core.fsmonitor evil"), [".git"]);
    let other = tempfile::tempdir().unwrap();
    symlink(folder.path().join(".git"), other.path().join(".git")).unwrap();
    assert_eq!(changed(other.path(), "true"), [] as [&str; 0]);
}

#[test]
fn a_worktree_obeys_the_repository_that_it_shares() {
    let (_folder, path) = repository();
    git(&path, &["-c", "user.name=p", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", "first"]);
    let tree = path.join("tree");
    git(&path, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    let told = changed(&tree, "git config core.fsmonitor evil");
    assert_eq!(told, [path.join(".git/config").to_str().unwrap()]);
}

#[test]
fn what_was_there_is_put_back_and_what_came_instead_can_be_too() {
    for line in [
        "git config core.fsmonitor evil",
        "echo evil >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "echo evil >.git/hooks/known; echo ../evil >.git/commondir",
        "rm .git/hooks/known",
        "chmod -x .git/hooks/known",
        "rm -r .git/hooks; ln -s ../evil .git/hooks",
        "rm .git/config; mkdir .git/config; touch .git/config/x",
        "ln -sf /etc/passwd .git/config",
    ] {
        let (_folder, path) = repository();
        let known = path.join(".git/hooks/known");
        fs::write(&known, "known").unwrap();
        fs::set_permissions(&known, fs::Permissions::from_mode(0o755)).unwrap();
        let before = Obeyed::at(&path);
        assert!(Command::new("bash").args(["-c", line]).current_dir(&path).status().unwrap().success(), "{line}");
        let after = before.again();
        let changed = before.differences(&after);
        assert!(!changed.is_empty(), "{line}");
        assert_eq!(before.put_back(&after, &changed), [] as [PathBuf; 0], "{line}");
        assert_eq!(before.changes(), [] as [PathBuf; 0], "{line}");
        // A folder in the place of a file is nothing that git obeys, and stays away.
        if !line.contains("mkdir") {
            assert_eq!(after.put_back(&before, &changed), [] as [PathBuf; 0], "{line}");
            assert_eq!(after.changes(), [] as [PathBuf; 0], "{line}");
        }
    }
}

#[test]
fn a_whole_repository_is_never_removed_and_a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let before = Obeyed::at(folder.path());
    git(folder.path(), &["init", "-q"]);
    let own = folder.path().join(".git");
    assert_eq!(before.put_back(&before.again(), &before.changes()), std::slice::from_ref(&own));
    assert!(own.join("HEAD").exists());

    let (_folder, path) = repository();
    let before = Obeyed::at(&path);
    let config = path.join(".git/config");
    fs::rename(path.join(".git"), path.join("away")).unwrap();
    symlink("away", path.join(".git")).unwrap();
    fs::write(&config, "evil").unwrap();
    let config = std::slice::from_ref(&config);
    assert_eq!(before.put_back(&before.again(), config), config);
    assert_eq!(fs::read_to_string(&config[0]).unwrap(), "evil");
}

#[test]
fn what_took_the_place_of_a_repository_is_taken_away() {
    for line in ["mv .git away; ln -s away .git", "mv .git away; echo gitdir: evil >.git"] {
        let (_folder, path) = repository();
        let before = Obeyed::at(&path);
        assert!(Command::new("bash").args(["-c", line]).current_dir(&path).status().unwrap().success(), "{line}");
        let own = path.join(".git");
        let after = before.again();
        let changed = before.differences(&after);
        assert_eq!(changed, std::slice::from_ref(&own), "{line}");
        assert_eq!(before.put_back(&after, &changed), changed, "{line}: the repository itself is not back");
        assert!(own.symlink_metadata().is_err() && path.join("away/HEAD").exists(), "{line}");
    }
}

/// Between a look and what is done about it, somebody else may be at work there.
#[test]
fn what_somebody_changed_since_the_look_stays() {
    let (_folder, path) = repository();
    let at = |name: &str| path.join(".git").join(name);
    fs::remove_dir_all(at("hooks")).unwrap();
    let before = Obeyed::at(&path);
    fs::write(at("config"), "evil").unwrap();
    fs::create_dir(at("hooks")).unwrap();
    fs::write(at("hooks/pre-commit"), "evil").unwrap();
    fs::write(at("commondir"), "evil").unwrap();
    let after = before.again();
    let changed = before.differences(&after);
    assert_eq!(changed, [at("commondir"), at("config"), at("hooks")]);
    // The person, in another terminal.
    fs::write(at("config"), "mine").unwrap();
    fs::write(at("hooks/pre-push"), "mine").unwrap();
    assert_eq!(before.put_back(&after, &changed), [at("config"), at("hooks")]);
    assert!(!at("commondir").exists() && !at("hooks/pre-commit").exists());
    for mine in ["config", "hooks/pre-push"] {
        assert_eq!(fs::read_to_string(at(mine)).unwrap(), "mine");
    }
    // To let the change stand is no reason to write over it either.
    fs::write(at("commondir"), "mine").unwrap();
    assert_eq!(after.put_back(&before, &changed), changed);
    for mine in ["config", "hooks/pre-push", "commondir"] {
        assert_eq!(fs::read_to_string(at(mine)).unwrap(), "mine");
    }
    let names = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let is_ours = |name: std::ffi::OsString| name.to_string_lossy().contains("tolka");
    assert!(!names(at("")).chain(names(at("hooks"))).any(is_ours), "nothing of ours is left");
}

#[test]
fn a_private_file_is_private_when_it_is_back() {
    let (_folder, path) = repository();
    let config = path.join(".git/config");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
    let before = Obeyed::at(&path);
    fs::remove_file(&config).unwrap();
    fs::write(&config, "evil").unwrap();
    let after = before.again();
    assert_eq!(before.put_back(&after, &before.differences(&after)), [] as [PathBuf; 0]);
    assert_eq!(fs::metadata(config).unwrap().permissions().mode() & 0o777, 0o600);
}

/// A process that swaps folders for links, as fast as it can, while things are looked at and put back.
#[test]
fn a_folder_that_is_swapped_for_a_link_leads_nowhere() {
    let (_folder, path) = repository();
    let outside = tempfile::tempdir().unwrap();
    let kept = |name: &str| outside.path().join(name);
    for name in ["config", "hooks-x"] {
        fs::write(kept(name), "kept").unwrap();
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (own, away) = (path.join(".git"), path.join("away"));
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(&own, &away).unwrap();
                symlink(outside.path(), &own).unwrap();
                fs::remove_file(&own).unwrap();
                fs::rename(&away, &own).unwrap();
            }
        });
        for round in 0..300 {
            let before = Obeyed::at(&path);
            // Whichever of the two it meets.
            let _ = fs::write(path.join("away/config"), format!("evil {round}"));
            let after = before.again();
            let changed = [path.join(".git/config")];
            before.put_back(&after, &changed);
            after.put_back(&before, &changed);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    for name in ["config", "hooks-x"] {
        assert_eq!(fs::read_to_string(kept(name)).unwrap(), "kept");
    }
    let names: Vec<_> = fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
