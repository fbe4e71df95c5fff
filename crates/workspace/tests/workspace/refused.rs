//! Where no snapshot is taken, and the words for it.

use std::fs;
use std::path::Path;
use std::process::Command;

use tolka_workspace::{CheckpointError, Checkpoints, Save};

use crate::house::{BUDGET, House, session};

async fn refusal(house: &House, workspace: &Path) -> CheckpointError {
    house.checkpoints.save(workspace, &session(), Save::within(BUDGET, "x")).await.unwrap_err()
}

#[tokio::test]
async fn the_root_and_the_home_folder_are_too_wide() {
    let house = House::new();
    let home = std::env::var_os("HOME").unwrap();
    for wide in [Path::new("/"), Path::new("/usr/.."), Path::new(&home)] {
        let error = refusal(&house, wide).await;
        assert!(matches!(error, CheckpointError::TooWide { .. }), "{error}");
        assert!(error.to_string().ends_with("open a folder inside it instead"));
    }
}

#[tokio::test]
async fn a_workspace_that_is_not_there_or_no_folder_is_an_error() {
    let house = House::new();
    house.write("file", "x");
    for wrong in ["missing", "file"] {
        let error = refusal(&house, &house.workspace.join(wrong)).await;
        assert!(matches!(error, CheckpointError::NoWorkspace { .. }), "{error}");
    }
    assert!(!house.data.exists(), "nothing is made for it");
}

#[tokio::test]
async fn the_data_folder_is_never_saved() {
    let house = House::new();
    house.write("a", "a");
    for odd in ["data", "with [odd]* \\name?", "deep/er"] {
        // No ignore file can bring it back.
        house.write(".gitignore", "!*\n!data/\n!data/**\n");
        let data = house.workspace.join(odd);
        let checkpoints = Checkpoints::new(&data);
        let first = checkpoints.save(&house.workspace, &session(), Save::within(BUDGET, "x")).await.unwrap();
        fs::write(data.join("journal"), "ours").unwrap();
        let second = checkpoints.save(&house.workspace, &session(), Save::within(BUDGET, "x")).await.unwrap();
        assert_eq!((first.files, second.files), (2, 2), "{odd}");
        fs::remove_dir_all(data).unwrap();
    }
    let error = Checkpoints::new(&house.workspace)
        .save(&house.workspace, &session(), Save::within(BUDGET, "x"))
        .await
        .unwrap_err();
    assert!(matches!(error, CheckpointError::OwnData { .. }), "{error}");
}

/// In a process of its own, since its PATH is what is tested.
#[test]
fn without_git_the_error_says_so() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "refused::where_no_git_is", "--ignored"]).env("PATH", "/nonexistent");
    let output = child.output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && words.contains("1 passed"), "{words}");
}

#[tokio::test]
#[ignore = "runs inside without_git_the_error_says_so"]
async fn where_no_git_is() {
    let house = House::new();
    let error = house.try_save().await.unwrap_err();
    assert_eq!(error.to_string(), "git was not found; install it, or put it on the PATH of the server");
}
