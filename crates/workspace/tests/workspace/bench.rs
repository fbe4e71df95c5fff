//! What a snapshot costs: `cargo test -p tolka-workspace --test workspace bench -- --ignored --nocapture`

use std::sync::Arc;
use std::time::Instant;

use tolka_workspace::checkpoint::Whose;
use tolka_workspace::{Checkpoints, Save};

use crate::house::{BUDGET, House, session};
use crate::rewinding::span;

#[tokio::test]
#[ignore = "prints figures; it judges nothing"]
async fn bench() {
    for files in [0, 20, 2_000, 20_000, 200_000] {
        let house = House::new();
        for n in 0..files {
            house.write(format!("d{}/f{n}", n / 100), format!("file {n}\n").repeat(40));
        }
        for what in ["first", "unchanged", "unchanged", "one edit", "unchanged"] {
            if what == "one edit" {
                house.write("d0/f0", "edited");
            }
            let began = Instant::now();
            house.save().await;
            println!("{files} files, {what}: {:?}", began.elapsed());
        }
    }
    let house = House::new();
    house.write("a", "a");
    for many in [1_usize, 10, 100] {
        let began = Instant::now();
        at_once(&house, many).await;
        println!("{many} saves at once, of 1 files,: {:?}", began.elapsed());
    }
}

async fn at_once(house: &House, many: usize) {
    let checkpoints = Arc::new(Checkpoints::new(&house.data));
    let mut saves = tokio::task::JoinSet::new();
    for _ in 0..many {
        let (checkpoints, workspace) = (checkpoints.clone(), house.workspace.clone());
        saves.spawn(async move { checkpoints.save(&workspace, &session(), Save::within(BUDGET, "x")).await.unwrap() });
    }
    saves.join_all().await;
}

/// Beside git, which neither compares nor waits for the disk.
#[tokio::test]
#[ignore = "prints figures; it judges nothing"]
async fn bench_of_restores() {
    for files in [2_000, 20_000] {
        let house = House::new();
        let write =
            |n: usize, what: &str| house.write(format!("d{}/f{n}", n / 100), format!("{what} {n}\n").repeat(40));
        (0..files).for_each(|n| write(n, "before"));
        let target = house.commit().await;
        for changed in [10, files] {
            (0..changed).for_each(|n| write(n, "after"));
            let now = house.commit().await;
            let began = Instant::now();
            let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
            println!("{files} files, a plan for {changed}: {:?}", began.elapsed());
            let began = Instant::now();
            assert_eq!(house.carry_out(&plan).await.done.len(), changed);
            println!("{files} files, a restore of {changed}: {:?}", began.elapsed());
        }
        let store = house.store();
        let (index, tree) = (house.data.join("index"), house.workspace.join("by-git"));
        std::fs::create_dir(&tree).unwrap();
        let git = |args: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.env("GIT_DIR", &store).env("GIT_INDEX_FILE", &index).env("GIT_WORK_TREE", &tree).current_dir(&tree);
            assert!(git.args(args).status().unwrap().success());
        };
        git(&["read-tree", &target]);
        for what in ["new", "over others"] {
            let began = Instant::now();
            git(&["checkout-index", "--all", "--force"]);
            println!("{files} files, git checkout-index, {what}: {:?}", began.elapsed());
            let mut touched = std::process::Command::new("find");
            touched.arg(&tree).args([
                "-type",
                "f",
                "-exec",
                "sh",
                "-c",
                "for f; do echo x >> \"$f\"; done",
                "sh",
                "{}",
                "+",
            ]);
            assert!(touched.status().unwrap().success());
        }
        let began = Instant::now();
        house.checkpoints.check_out(&house.workspace, &target, &house.data.join("fork")).await.unwrap();
        println!("{files} files, checked out: {:?}", began.elapsed());
    }
}
