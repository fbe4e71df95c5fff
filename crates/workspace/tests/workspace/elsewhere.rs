//! How snapshots of others have failed people. What is not here has its test beside its like: same-size edits, links,
//! programs and dangling links in `checkpoint` and `seed`, unreadable files and caps in `caps`, a failed step of git in
//! `faults`, nested repositories in `nested`, the home folder in `refused`.

use std::fs;
use std::time::Duration;

use tolka_workspace::{CheckpointError, Save};

use crate::house::{Entry, House, disk, git, session};

/// An index that was fed by the agent's tools won over the file that the person had edited since.
#[tokio::test]
async fn the_file_wins_over_what_was_remembered_of_it() {
    let house = House::new();
    git(&house.workspace, &["init", "--quiet"]);
    for content in ["v1", "v2", "v1", "v3"] {
        house.write("file", content);
        git(&house.workspace, &["add", "file"]);
        house.save().await;
        house.write("file", "by hand");
        let saved = house.save().await;
        assert_eq!(house.snapshot(&saved.commit)[b"file".as_slice()], Entry::File(b"by hand".to_vec()));
        // Neither does the person's own index say what is saved.
        fs::remove_file(house.workspace.join("file")).unwrap();
        assert!(house.snapshot(&house.save().await.commit).is_empty());
    }
}

/// Without a word there were no checkpoints where there was no repository.
#[tokio::test]
async fn a_folder_needs_no_repository() {
    let house = House::new();
    house.write("notes.txt", "mine");
    assert_eq!(house.paths(&house.save().await.commit), ["notes.txt"]);
    assert_eq!(disk(&house.workspace).len(), 1, "and gets none");
}

/// Thousands of files that git did not know kept people from their first answer. That a turn does not wait for longer
/// than its budget, whatever git does, is shown where turns are.
#[tokio::test]
async fn thousands_of_untracked_files_are_saved_however_short_the_first_budgets_are() {
    for is_repository in [false, true] {
        let house = House::new();
        if is_repository {
            git(&house.workspace, &["init", "--quiet"]);
        }
        house.write(".gitignore", "/node_modules/\n");
        for n in 0..6_031 {
            house.write(format!("out/{}/{n}", n % 40), n.to_string());
            house.write(format!("node_modules/{}/{n}", n % 40), "x");
        }
        let session = session();
        let save = |budget| house.checkpoints.save(&house.workspace, &session, Save::within(budget, "x"));
        // A prompt that has waited for its budget goes on, and the next one finds more of the work done, however slow
        // the machine is.
        let mut budget = Duration::from_millis(100);
        let saved = loop {
            match save(budget).await {
                Err(CheckpointError::Slow { .. }) => budget *= 2,
                saved => break saved.unwrap(),
            }
        };
        assert_eq!(saved.files, 6_032);
    }
}
