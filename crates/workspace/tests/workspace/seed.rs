//! A store that begins with what the workspace's own repository knows holds what the files hold, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tolka_workspace::checkpoint::Caps;
use tolka_workspace::{Checkpoints, Save};

use crate::house::{BUDGET, Entry, House, Tree, disk, git, session, text};

/// Everything but the repositories' own.
fn files(house: &House) -> Tree {
    let is_git = |path: &[u8]| path.split(|byte| *byte == b'/').any(|part| part == b".git");
    disk(&house.workspace).into_iter().filter(|(path, _)| !is_git(path)).collect()
}

fn own(house: &House) -> Tree {
    let all = disk(&house.workspace).into_iter();
    all.filter(|(path, _)| path.starts_with(b".git")).collect()
}

fn shell(folder: &Path, line: &str) {
    let mut command = Command::new("bash");
    command.args(["-ec", line]).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_AUTHOR_NAME", "P").env("GIT_AUTHOR_EMAIL", "p@x");
    command.env("GIT_COMMITTER_NAME", "P").env("GIT_COMMITTER_EMAIL", "p@x");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// As if all that has been done there was done a while ago: what has just been read is read again.
fn settle(house: &House) {
    shell(&house.workspace, "find . -path ./.git -prune -o -type f -exec touch -d '1 hour ago' {} +; sleep 1.1");
    shell(&house.workspace, "git update-index -q --refresh || true; sleep 0.1");
}

fn repository() -> House {
    let house = House::new();
    git(&house.workspace, &["init", "--quiet", "-b", "main"]);
    for n in 0..20 {
        house.write(format!("d{}/f{n}", n % 3), format!("file {n}\n"));
    }
    house.write("run.sh", "#!/bin/sh\n");
    shell(&house.workspace, "chmod +x run.sh; ln -s run.sh link; git add -A; git commit -qm first");
    house
}

/// How many files of objects the store shares with the repository.
fn shared(house: &House) -> usize {
    let mut folders = vec![house.store().join("objects")];
    let mut shared = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let found = entry.metadata().unwrap();
            match found.is_dir() {
                true => folders.push(entry.path()),
                false => shared += usize::from(found.nlink() > 1),
            }
        }
    }
    shared
}

#[tokio::test]
async fn what_the_repository_holds_is_not_stored_again() {
    for (how, expected) in [("true", 22), ("git gc -q --prune=now", 3)] {
        let house = repository();
        settle(&house);
        shell(&house.workspace, how);
        house.write("d1/new", "new");
        house.write("d0/f0", "changed");
        let before = own(&house);
        let saved = house.save().await;
        assert_eq!(house.snapshot(&saved.commit), files(&house));
        assert_eq!(saved.files, 23);
        // Single objects of unchanged files; or a pack with its two indices.
        assert!((expected - 1..=expected).contains(&shared(&house)), "{how}: {}", shared(&house));
        assert_eq!(own(&house), before);
        assert!(!house.store().join("objects/info/alternates").exists());
        house.check();
    }
}

/// A `git gc` has broken others' snapshots, for good.
#[tokio::test]
async fn the_repository_may_lose_its_objects() {
    for how in ["git gc -q --prune=now", "git gc -q; rm -r .git/objects", "rm -r .git"] {
        let mut house = repository();
        settle(&house);
        let first = house.save().await;
        let expected = files(&house);
        shell(&house.workspace, how);
        house.write("d0/f0", "changed");
        let second = house.save().await;
        house.reopen();
        let third = house.save().await;
        assert_eq!(house.snapshot(&first.commit), expected, "{how}");
        assert_eq!(house.snapshot(&second.commit), files(&house), "{how}");
        assert_eq!(house.tree(&second.commit), house.tree(&third.commit));
        house.check();
        house.git(&["gc", "--quiet", "--prune=now"]);
        assert_eq!(house.snapshot(&first.commit), expected, "{how}");
        house.check();
    }
}

/// What others took for unchanged, and so destroyed: the length is the same, and the time may be as well.
#[tokio::test]
async fn an_edit_of_the_same_size_is_seen_in_the_first_snapshot() {
    for (is_settled, keeps_time) in [(false, false), (false, true), (true, false), (true, true)] {
        let house = repository();
        let path = house.workspace.join("d0/f0");
        if is_settled {
            settle(&house);
        }
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "FILE 0\n").unwrap();
        if keeps_time {
            fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        }
        let saved = house.save().await;
        let content = house.snapshot(&saved.commit)[b"d0/f0".as_slice()].clone();
        assert_eq!(content, Entry::File(b"FILE 0\n".to_vec()), "settled {is_settled}, time kept {keeps_time}");
    }
}

/// Each is something that an index or its repository may say of files without their being so.
const ODD: &[&str] = &[
    "git update-index --assume-unchanged d0/f0; echo changed >d0/f0",
    "git update-index --skip-worktree d0/f0; echo changed >d0/f0; git update-index --skip-worktree d1/f1; rm d1/f1",
    "git sparse-checkout set --sparse-index d0; mkdir -p d1; echo back >d1/f1",
    "echo new >new; git add -N new",
    "git checkout -qb side; echo a >d0/f0; git commit -qam a; git checkout -q main; echo b >d0/f0; git commit -qam b; git merge -q side || true",
    "git init -q sub; echo s >sub/s; git -C sub add s; git -C sub commit -qm s; git add sub 2>/dev/null; git commit -qm sub",
    "git config core.autocrlf true; printf 'a\\r\\nb\\r\\n' >crlf; git add crlf 2>/dev/null; git commit -qm crlf",
    // As long as the file, and not the file.
    "git config filter.rot.clean 'tr a-z n-za-m'; echo 'rot* filter=rot' >.gitattributes; echo abc >rotten; git add -A; git commit -qm rot",
    "git config filter.rot.clean 'tr a-z n-za-m'; echo 'rot* filter=rot' >.git/info/attributes; echo abc >rotten; git add -A; git commit -qm rot",
    "git config filter.rot.clean 'tr a-z n-za-m'; mkdir x; echo '* filter=rot' >x/.gitattributes; echo abc >x/rotten; git add x/rotten; rm x/.gitattributes",
    "printf 'wide working-tree-encoding=UTF-16LE\\n' >d2/.gitattributes; printf '\\xf6\\x00' >d2/wide; git add -A; git commit -qm w",
    "git update-index --split-index; echo more >more; git add more",
    "git update-index --index-version 4; git update-index --untracked-cache",
    "git config core.fsmonitor true; git update-index --fsmonitor; echo changed >d0/f0",
    "git config core.fileMode false; chmod -x run.sh; git update-index -q --refresh || true",
    "git config core.symlinks false; rm link; printf run.sh >link; git update-index -q --refresh || true",
    "echo in >d0/index; head -c 300 .git/index >cut; mv cut .git/index",
    "printf garbage >.git/index",
    ": >.git/index.lock; echo changed >d0/f0",
    "mv d0 elsewhere; ln -s elsewhere d0",
    "rm d0/f0; mkdir d0/f0; echo x >d0/f0/x",
    "rm -r .git/objects/??",
    "mv .git ../own; git init -q --object-format=sha256; git add -A; git commit -qm sha",
    "mv .git ../own; echo 'gitdir: ../own' >.git; git -C . config core.worktree \"$PWD\"",
    "cp -r . ../origin; rm -rf .git; git clone -q --shared --no-checkout ../origin c; mv c/.git .; rm -r c; git reset -q",
];

#[test]
fn nothing_odd_gets_into_a_snapshot() {
    // They mostly wait.
    std::thread::scope(|scope| {
        for lines in ODD.chunks(4) {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    for line in lines {
                        is_not_fooled(line).await;
                    }
                });
            });
        }
    });
}

async fn is_not_fooled(line: &str) {
    let house = repository();
    settle(&house);
    shell(&house.workspace, line);
    settle_index(&house);
    let before = own(&house);
    let saved = house.save().await;
    assert_eq!(house.snapshot(&saved.commit), files(&house), "{line}");
    assert_eq!(own(&house), before, "{line}");
    let again = house.save().await;
    assert_eq!(house.tree(&again.commit), house.tree(&saved.commit), "{line}");
    house.check();
}

/// So that what is in the index is not doubted only because it is new.
fn settle_index(house: &House) {
    shell(&house.workspace, "sleep 1.1; [ ! -f .git/index ] || touch .git/index; sleep 0.05");
}

#[tokio::test]
async fn a_first_snapshot_has_the_modes_of_what_the_repository_knows() {
    let house = repository();
    shell(&house.workspace, "chmod 600 d0/f0; chmod 700 d1; git update-index -q --refresh");
    settle(&house);
    settle_index(&house);
    // One that is not as the index has it.
    shell(&house.workspace, "chmod 640 d0/f3");
    let commit = house.save().await.commit;
    let message = String::from_utf8(house.git(&["cat-file", "commit", &commit])).unwrap();
    let modes: Vec<&str> = message.lines().filter_map(|line| line.strip_prefix("Mode: ")).collect();
    assert_eq!(modes, ["600 d0/f0", "640 d0/f3", "700 d1/"]);
}

#[tokio::test]
async fn what_the_repository_tracked_when_the_store_was_made_is_saved_though_it_is_ignored() {
    let mut house = repository();
    house.write(".gitignore", "*.log\n");
    house.write("kept.log", "tracked");
    house.write("other.log", "not tracked");
    shell(&house.workspace, "git add .gitignore; git add -f kept.log; git commit -qm log");
    settle(&house);
    let content = |commit: &str| house.snapshot(commit).get(b"kept.log".as_slice()).cloned();
    let saved = house.save().await;
    assert_eq!(content(&saved.commit), Some(Entry::File(b"tracked".to_vec())));
    assert!(!house.snapshot(&saved.commit).contains_key(b"other.log".as_slice()));
    house.write("kept.log", "changed");
    assert_eq!(content(&house.save().await.commit), Some(Entry::File(b"changed".to_vec())));
    fs::remove_file(house.workspace.join("kept.log")).unwrap();
    assert_eq!(content(&house.save().await.commit), None);
    house.write("kept.log", "back");
    assert_eq!(content(&house.save().await.commit), Some(Entry::File(b"back".to_vec())));
    // Whatever the index remembers.
    house.reopen_with(Caps { largest_file: 1 << 20, ..Caps::default() });
    let commit = house.save().await.commit;
    assert_eq!(house.snapshot(&commit)[b"kept.log".as_slice()], Entry::File(b"back".to_vec()));
    fs::remove_file(house.workspace.join("kept.log")).unwrap();
    house.write("kept.log/in", "a folder");
    let saved = house.save().await;
    assert!(!house.snapshot(&saved.commit).keys().any(|path| path.starts_with(b"kept.log")));
    house.check();
}

#[tokio::test]
async fn from_another_file_system_what_the_tree_needs_is_copied() {
    let house = repository();
    settle(&house);
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else { return };
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(elsewhere.path()) == device(&house.workspace) {
        return;
    }
    let data = elsewhere.path().join("data");
    let saved = Checkpoints::new(&data).save(&house.workspace, &session(), Save::within(BUDGET, "x")).await.unwrap();
    shell(&house.workspace, "rm -rf .git");
    let store = fs::read_dir(data.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(packs(&store), 1);
    let count = text(git(&store, &["--git-dir", ".", "ls-tree", "-r", &saved.commit])).lines().count();
    assert_eq!(count, files(&house).len());
    assert_eq!(text(git(&store, &["--git-dir", ".", "fsck", "--strict", "--full", "--no-dangling"])), "");
    assert!(!store.join("objects/info/alternates").exists());
}

fn packs(store: &Path) -> usize {
    let names = fs::read_dir(store.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path: &PathBuf| path.extension().is_some_and(|extension| extension == "pack")).count()
}

#[derive(Debug, Clone)]
enum Step {
    Write(u8, u8),
    Remove(u8),
    Program(u8),
    Age(u8),
    Git(&'static str),
}

fn step() -> impl Strategy<Value = Step> {
    let lines =
        ["add -A", "commit -qam x", "update-index -q --refresh", "gc -q --prune=now", "rm -q --cached f1", "stash -q"];
    prop_oneof![
        5 => (0..6_u8, 0..3_u8).prop_map(|(file, content)| Step::Write(file, content)),
        1 => (0..6_u8).prop_map(Step::Remove),
        1 => (0..6_u8).prop_map(Step::Program),
        2 => (0..6_u8).prop_map(Step::Age),
        4 => prop::sample::select(lines.to_vec()).prop_map(Step::Git),
    ]
}

fn take(house: &House, step: &Step) {
    let path = |file: &u8| house.workspace.join(format!("f{file}"));
    match step {
        Step::Write(file, content) => fs::write(path(file), [*content]).unwrap(),
        Step::Remove(file) => drop(fs::remove_file(path(file))),
        Step::Program(file) => drop(Command::new("chmod").arg("+x").arg(path(file)).output().unwrap()),
        Step::Age(file) => {
            if let Ok(file) = fs::File::options().write(true).open(path(file)) {
                file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
            }
        }
        Step::Git(line) => shell(&house.workspace, &format!("git {line} >/dev/null 2>&1 || true")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_first_snapshot_is_the_files_whatever_the_index_says(
        before in prop::collection::vec(step(), 1..10),
        after in prop::collection::vec(step(), 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let house = House::new();
            git(&house.workspace, &["init", "--quiet"]);
            before.iter().for_each(|step| take(&house, step));
            shell(&house.workspace, "sleep 1.01; git update-index -q --refresh >/dev/null || true");
            after.iter().for_each(|step| take(&house, step));
            let expected: BTreeMap<_, _> = files(&house);
            let saved = house.save().await;
            assert_eq!(house.snapshot(&saved.commit), expected, "{before:?} {after:?}");
            house.check();
        });
    }
}

/// A person adds the line, or the agent; and it is their work that is in the file.
#[tokio::test]
async fn a_fork_saves_on_what_its_origin_saved_though_it_is_ignored() {
    let house = repository();
    shell(&house.workspace, "echo d0/f0 >.gitignore");
    let saved = house.save().await;
    let fork = house.data.join("forks/ses_2/project");
    house.checkpoints.check_out(&house.workspace, &saved.commit, &fork).await.unwrap();
    let save = Save::within(BUDGET, "in the fork");
    let again = house.checkpoints.save(&fork, &session(), save).await.unwrap();
    assert_eq!(again.files, saved.files);
}

#[tokio::test]
async fn what_the_repository_tracks_is_saved_on_when_a_rule_comes_to_ignore_it() {
    let mut house = repository();
    house.write("conf/a", "committed");
    house.write("made/b", "not tracked");
    shell(&house.workspace, "git add conf; git commit -qm conf");
    settle(&house);
    house.save().await;
    house.write(".gitignore", "conf/\nmade/\n");
    house.write("conf/a", "uncommitted work");
    let saved = house.save().await;
    let content = |house: &House, commit: &str| house.snapshot(commit).get(b"conf/a".as_slice()).cloned();
    assert_eq!(content(&house, &saved.commit), Some(Entry::File(b"uncommitted work".to_vec())));
    assert!(!house.snapshot(&saved.commit).contains_key(b"made/b".as_slice()));
    // Also when it was away, and for the next run.
    fs::remove_file(house.workspace.join("conf/a")).unwrap();
    assert_eq!(content(&house, &house.save().await.commit), None);
    house.reopen();
    house.write("conf/a", "back");
    let saved = house.save().await;
    assert_eq!(content(&house, &saved.commit), Some(Entry::File(b"back".to_vec())));
    house.check();
}
