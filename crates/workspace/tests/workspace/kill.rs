//! A restore that is killed at any moment: every path is as before or as after, and the next try finishes it.
//!
//! `TOLKA_KILLS` says how often.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tolka_workspace::Checkpoints;
use tolka_workspace::checkpoint::{Plan, Whose};
use tolka_workspace::files::is_leftover;

use crate::house::{House, Tree, disk};
use crate::rewinding::{request, span};

/// So many that all are waited for together.
const MANY: usize = 700;
/// So few that each is waited for by itself.
const FEW: usize = 12;

async fn house_of(files: usize) -> (House, String, String) {
    let house = House::new();
    for n in 0..files {
        house.write(format!("d{}/f{n}", n % 9), format!("before {n}\n").repeat(50));
    }
    let target = house.commit().await;
    for n in 0..files {
        match n % 3 {
            0 => house.write(format!("d{}/f{n}", n % 9), format!("after {n}\n").repeat(60)),
            1 => house.remove(format!("d{}/f{n}", n % 9)),
            _ => house.write(format!("d{}/new/g{n}", n % 9), "new"),
        }
    }
    let now = house.commit().await;
    (house, target, now)
}

#[tokio::test]
async fn a_killed_restore_leaves_no_path_half_and_the_next_try_finishes_it() {
    let rounds: u32 = std::env::var("TOLKA_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(16);
    let mut cut = 0;
    for files in [MANY, FEW] {
        let (house, target, now) = house_of(files).await;
        let (before, after) = (disk(&house.workspace), house.snapshot(&target));
        let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
        let whole = run(&house, &target, &now, Duration::from_secs(60));
        assert_eq!(disk(&house.workspace), after);
        house.undo_all(&now).await;
        for round in 0..rounds / 2 {
            run(&house, &target, &now, whole * round / (rounds / 2));
            let found = disk(&house.workspace);
            assert_each_is_one_of(&found, &before, &after);
            cut += u32::from(found != before && found != after);
            finish(&house, &plan).await;
            assert_eq!(disk(&house.workspace), after, "round {round}");
            house.undo_all(&now).await;
            assert_eq!(disk(&house.workspace), before, "round {round}");
        }
        house.check();
    }
    assert!(cut > 0, "no kill came in the middle of a restore");
}

async fn finish(house: &House, plan: &Plan) {
    let restored = house.carry_out(plan).await;
    assert_eq!((&restored.done, restored.kept.len()), (&plan.steps, 0));
}

fn assert_each_is_one_of(found: &Tree, before: &Tree, after: &Tree) {
    for (path, entry) in found {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap();
        if !is_leftover(std::str::from_utf8(name).unwrap()) {
            let shown = String::from_utf8_lossy(path);
            assert!(Some(entry) == before.get(path) || Some(entry) == after.get(path), "{shown} is half");
        }
    }
    for path in before.keys().filter(|path| after.contains_key(*path)) {
        assert!(found.contains_key(path), "{} is gone", String::from_utf8_lossy(path));
    }
}

/// Restores in a process of its own, which is killed after `time`. How long it worked.
fn run(house: &House, target: &str, now: &str, time: Duration) -> Duration {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "kill::child", "--ignored", "--nocapture"]).stdout(Stdio::piped());
    child.env("TEST_DATA", &house.data).env("TEST_WORKSPACE", &house.workspace);
    let mut child = child.env("TEST_TARGET", target).env("TEST_NOW", now).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("planned")));
    let began = Instant::now();
    while began.elapsed() < time && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(200));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    began.elapsed()
}

#[tokio::test]
#[ignore = "runs inside a_killed_restore_leaves_no_path_half_and_the_next_try_finishes_it"]
async fn child() {
    let var = |name: &str| std::env::var(name).unwrap();
    let checkpoints = Checkpoints::new(Path::new(&var("TEST_DATA")));
    let workspace = var("TEST_WORKSPACE");
    let asked = request(vec![span(&var("TEST_TARGET"), &var("TEST_NOW"), Whose::Ours)]);
    let plan = checkpoints.plan(Path::new(&workspace), &asked).await.unwrap();
    println!("planned");
    checkpoints.restore(Path::new(&workspace), &plan).await.unwrap();
}
