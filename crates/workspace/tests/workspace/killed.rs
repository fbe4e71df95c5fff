//! A server that is killed, or whose disk is full, at any moment of a snapshot leaves a store that is sound.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tolka_workspace::{Checkpoints, Save};

use crate::house::{BUDGET, House, disk, git, session};

const WORKSPACE: &str = "TOLKA_TEST_WORKSPACE";
const DATA: &str = "TOLKA_TEST_DATA";

fn repository() -> House {
    let house = House::new();
    for n in 0..300 {
        house.write(format!("d{}/f{n}", n % 7), format!("file {n}\n"));
    }
    git(&house.workspace, &["init", "--quiet"]);
    git(&house.workspace, &["add", "--all"]);
    git(&house.workspace, &["commit", "--quiet", "-m", "x"]);
    house
}

/// Only the process itself, as it happens: a git that it has started goes on.
fn killed_after(house: &House, wait: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "killed::saves_for_ever", "--ignored"]).env(WORKSPACE, &house.workspace);
    child.env(DATA, &house.data).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
#[ignore = "runs inside a_kill_at_any_moment_leaves_a_sound_store, until it is killed"]
async fn saves_for_ever() {
    let (Some(workspace), Some(data)) = (std::env::var_os(WORKSPACE), std::env::var_os(DATA)) else { return };
    let (workspace, data) = (PathBuf::from(workspace), PathBuf::from(data));
    for round in 0..10_000_u32 {
        let checkpoints = Checkpoints::new(&data);
        let saved = checkpoints.save(&workspace, &session(), Save::within(BUDGET, "x")).await.unwrap();
        fs::write(workspace.join("changing"), format!("{round} {}", saved.commit)).unwrap();
        fs::write(workspace.join(format!("d{}/new", round % 7)), round.to_string()).unwrap();
        if round % 4 == 3 {
            // The next one makes a store anew, from the repository.
            checkpoints.forget(&workspace, &session()).await.unwrap();
        }
    }
}

/// The waits are spread over the time that a process takes for its start and some saves.
#[tokio::test]
async fn a_kill_at_any_moment_leaves_a_sound_store() {
    let mut house = repository();
    let own = disk(&house.workspace.join(".git"));
    let mut stores = 0;
    for round in 0..40_u64 {
        killed_after(&house, Duration::from_millis(10 + round * 9 % 350));
        if let Some(store) = stores_of(&house.data).first() {
            stores += 1;
            is_sound(store);
        }
        house.reopen();
        let saved = house.save().await;
        let mut expected = disk(&house.workspace);
        expected.retain(|path, _| !path.starts_with(b".git/"));
        assert_eq!(saved.files, expected.len() as u64, "after {round}");
        if let (0, [store]) = (round % 10, stores_of(&house.data).as_slice()) {
            let listed = git(store, &["--git-dir", ".", "ls-tree", "-r", "-z", "--name-only", &saved.commit]);
            let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
            assert!(paths.eq(expected.keys()), "after {round}");
        }
    }
    assert_eq!(disk(&house.workspace.join(".git")), own);
    // What was being made by the killed is made by nobody.
    house.checkpoints.forget(&house.workspace, &session()).await.unwrap();
    house.save().await;
    assert_eq!(fs::read_dir(house.data.join("checkpoints")).unwrap().count(), 1);
    assert!(stores > 10, "{stores} of 40 were killed late enough to be of interest");
    house.check();
}

/// Those that have their names: they are complete.
fn stores_of(data: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(data.join("checkpoints")) else { return Vec::new() };
    found.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_none()).collect()
}

fn is_sound(store: &Path) {
    let words = git(store, &["--git-dir", ".", "fsck", "--full", "--strict", "--no-dangling", "--no-progress"]);
    assert_eq!(String::from_utf8_lossy(&words), "");
}

/// Each try has a little more room than the one before, until one is done.
#[tokio::test]
async fn a_disk_that_is_full_gives_no_checkpoint_and_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |options: &str| {
        Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path()).output().unwrap()
    };
    let mounted = mount("size=16k");
    if !mounted.status.success() {
        eprintln!("skipped, no small disk can be had here: {}", String::from_utf8_lossy(&mounted.stderr));
        return;
    }
    let house = repository();
    house.write("large", vec![b'x'; 100_000].iter().enumerate().map(|(n, _)| (n * n % 251) as u8).collect::<Vec<_>>());
    let own = disk(&house.workspace.join(".git"));
    let filling = async {
        let checkpoints = Checkpoints::new(&folder.path().join("data"));
        let mut failed = 0;
        for size in (16..16_000).step_by(48) {
            assert!(mount(&format!("remount,size={size}k")).status.success());
            match checkpoints.save(&house.workspace, &session(), Save::within(BUDGET, "x")).await {
                Ok(saved) => return (failed, saved),
                Err(_) => failed += 1,
            }
            if let Some(store) = stores_of(&folder.path().join("data")).first() {
                is_sound(store);
            }
        }
        panic!("never done");
    };
    let (failed, saved) = filling.await;
    let store = stores_of(&folder.path().join("data")).remove(0);
    is_sound(&store);
    let listed = git(&store, &["--git-dir", ".", "ls-tree", "-r", &saved.commit]);
    assert!(Command::new("umount").arg("-l").arg(folder.path()).status().unwrap().success());
    assert_eq!(String::from_utf8_lossy(&listed).lines().count(), 301);
    assert!(failed > 1, "{failed}");
    assert_eq!(disk(&house.workspace.join(".git")), own);
}
