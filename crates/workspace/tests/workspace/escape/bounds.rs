//! What a command uses up, with control groups and without.

use std::fs;
use std::path::Path;

use tolka_workspace::command::{Bound, Limits, Shell};

use super::shells;
use crate::command::{all_end, hear, job, nap};

/// Each level, as the machine counts and as keepers do.
fn all(limits: Limits) -> Vec<Shell> {
    let mut all = Vec::new();
    for shell in shells() {
        let again = Shell::at(Path::new(env!("CARGO_BIN_EXE_tolka-keeper")), shell.level()).unwrap();
        all.push(shell.limited_to(limits));
        all.push(again.limited_to(limits).without_groups());
    }
    all
}

fn usual() -> Limits {
    Limits { disk_left: 0, ..Limits::default() }
}

#[tokio::test]
async fn a_bomb_of_processes_goes_out() {
    for shell in all(Limits { processes: 60, ..usual() }) {
        let workspace = tempfile::tempdir().unwrap();
        let nap = nap();
        // It stops by itself at 500, should nothing else stop it.
        let line = format!(
            "for i in $(seq 500); do sleep {nap} & echo $i >count || break; done 2>/dev/null; sleep 0.3; echo survived"
        );
        let (_, exit) = hear(&mut shell.start(&job(workspace.path(), &line)).unwrap()).await;
        let (level, groups) = (shell.level(), shell.has_groups());
        assert!(exit.over.contains(&Bound::Processes), "{level:?}, groups {groups}: {exit:?}");
        all_end(&nap).await;
    }
}

#[tokio::test]
async fn a_command_that_takes_all_memory_is_ended() {
    for shell in all(Limits { memory: 96 << 20, ..usual() }) {
        let workspace = tempfile::tempdir().unwrap();
        // All of it is one line, which `tail` has to keep; it ends by itself at 400 MB.
        let line = "head -c 400000000 /dev/zero | tail -n 1 | wc -c; exit ${PIPESTATUS[1]}";
        let (said, exit) = hear(&mut shell.start(&job(workspace.path(), line)).unwrap()).await;
        let (level, groups) = (shell.level(), shell.has_groups());
        assert!(!said.contains("400000000"), "{level:?}, groups {groups}: {said}");
        assert_ne!(exit.code, Some(0), "{level:?}, groups {groups}");
    }
}

#[tokio::test]
async fn a_file_has_a_largest_size() {
    for shell in all(Limits { file_size: 1 << 20, ..usual() }) {
        let workspace = tempfile::tempdir().unwrap();
        let line = "head -c 8000000 /dev/zero >large";
        let (_, exit) = hear(&mut shell.start(&job(workspace.path(), line)).unwrap()).await;
        assert_eq!(exit.over, [Bound::FileSize], "{:?}: {exit:?}", shell.level());
        assert_eq!(fs::metadata(workspace.path().join("large")).unwrap().len(), 1 << 20);
    }
}

#[tokio::test]
async fn a_disk_is_not_filled_to_its_end() {
    // A disk that nobody else fills meanwhile.
    let Ok(workspace) = tempfile::tempdir_in("/dev/shm") else { return };
    let free = rustix::fs::statvfs(workspace.path()).map(|found| found.f_bavail * found.f_frsize).unwrap();
    let room = 64 << 20;
    for shell in all(Limits { disk_left: free - room, ..usual() }) {
        // It ends by itself at 256 MB.
        let line = "for i in $(seq 64); do head -c 4194304 /dev/zero >file$i; sleep 0.05; done";
        let (_, exit) = hear(&mut shell.start(&job(workspace.path(), line)).unwrap()).await;
        assert_eq!(exit.over, [Bound::Disk], "{:?}: {exit:?}", shell.level());
        let files = fs::read_dir(workspace.path()).unwrap().count();
        assert!((16..64).contains(&files), "{files}");
        for file in fs::read_dir(workspace.path()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
}

#[tokio::test]
async fn a_bound_has_words_and_ordinary_commands_do_not_meet_it() {
    let limits = Limits::default();
    for bound in [Bound::Processes, Bound::Memory, Bound::FileSize, Bound::Disk] {
        assert!(bound.words(&limits).len() > 20);
    }
    for shell in all(limits) {
        let workspace = tempfile::tempdir().unwrap();
        let line = "for i in 1 2 3; do sleep 0.2 & done; wait; ulimit -c";
        let (said, exit) = hear(&mut shell.start(&job(workspace.path(), line)).unwrap()).await;
        assert_eq!((said.as_str(), exit), ("0\n", crate::command::code(0)), "{:?}", shell.level());
    }
}
