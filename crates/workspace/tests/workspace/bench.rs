//! What a snapshot costs: `cargo test -p tolka-workspace --test workspace bench -- --ignored --nocapture`

use std::sync::Arc;
use std::time::Instant;

use tolka_workspace::{Checkpoints, Save};

use crate::house::{BUDGET, House, session};

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
