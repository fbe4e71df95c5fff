//! A session that is purged takes its snapshots along, and those of nobody else.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use tolka_facts::SessionId;
use tolka_workspace::{Save, Saved};

use crate::house::{BUDGET, Entry, House};

async fn save_for(house: &House, session: &str) -> Saved {
    house.checkpoints.save(&house.workspace, &SessionId::from(session), Save::within(BUDGET, "x")).await.unwrap()
}

async fn forget(house: &House, session: &str) {
    house.checkpoints.forget(&house.workspace, &SessionId::from(session)).await.unwrap();
}

fn is_there(house: &House, object: &str) -> bool {
    let mut git = Command::new("git");
    git.arg("--git-dir").arg(house.store()).args(["cat-file", "-e", object]);
    git.output().unwrap().status.success()
}

/// The second name is none that git would take for a ref.
#[tokio::test]
async fn the_snapshots_of_one_session_go_and_those_of_the_other_stay() {
    for (name, is_packed) in [("ses_a", false), ("..a/b c.lock", false), ("ses_a", true)] {
        let mut house = House::new();
        house.write("file", "only in the first");
        let first = save_for(&house, name).await;
        let blob = crate::house::text(house.git(&["rev-parse", &format!("{}:file", first.commit)]));
        house.write("file", "in both");
        let (second, other) = (save_for(&house, name).await, save_for(&house, "ses_ab").await);
        house.write("file", "only in the other");
        let last = save_for(&house, "ses_ab").await;
        if is_packed {
            house.git(&["gc", "--quiet", "--prune=now"]);
            house.reopen();
        }

        forget(&house, name).await;

        for gone in [&first.commit, &second.commit, &blob] {
            assert!(!is_there(&house, gone), "{name}: {gone}");
        }
        let mut left = vec![other.commit.clone(), last.commit.clone()];
        left.sort();
        assert_eq!(house.refs(), left);
        let content = |saved: &Saved| house.snapshot(&saved.commit)[b"file".as_slice()].clone();
        assert_eq!(content(&other), Entry::File(b"in both".to_vec()));
        assert_eq!(content(&last), Entry::File(b"only in the other".to_vec()));
        house.check();
        let again = save_for(&house, name).await;
        assert_eq!(house.tree(&again.commit), house.tree(&last.commit));
        house.check();
    }
}

#[tokio::test]
async fn the_last_session_of_a_workspace_leaves_nothing() {
    let house = House::new();
    forget(&house, "ses_a").await;
    assert!(!house.data.exists(), "nothing is made for it");
    house.write("file", "x");
    save_for(&house, "ses_a").await;
    forget(&house, "ses_a").await;
    assert_eq!(fs::read_dir(house.data.join("checkpoints")).unwrap().count(), 0);
    assert_eq!(save_for(&house, "ses_b").await.files, 1);
    house.check();
}

#[tokio::test]
async fn a_workspace_that_is_gone_does_not_keep_them() {
    let mut house = House::new();
    house.write("file", "x");
    let (first, other) = (save_for(&house, "ses_a").await, save_for(&house, "ses_b").await);
    house.reopen();
    fs::remove_dir_all(&house.workspace).unwrap();
    forget(&house, "ses_a").await;
    assert!(!is_there(&house, &first.commit));
    assert_eq!(house.refs(), [other.commit]);
    house.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_of_others_go_on_meanwhile() {
    let house = House::new();
    for round in 0..10 {
        house.write("file", format!("{round}"));
        save_for(&house, "ses_a").await;
        let (saved, ()) = tokio::join!(save_for(&house, "ses_b"), forget(&house, "ses_a"));
        assert_eq!(house.snapshot(&saved.commit)[b"file".as_slice()], Entry::File(format!("{round}").into_bytes()));
        house.check();
    }
    assert_eq!(house.refs().len(), 10);
}

/// Stopped at any moment, also between its last step and the one who asked for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_was_stopped_leaves_no_ref() {
    let house = House::new();
    house.write("file", "x");
    let mut kept = vec![house.save().await.commit];
    for micros in (0..40_000).step_by(500) {
        if let Ok(saved) = tokio::time::timeout(Duration::from_micros(micros), house.try_save()).await {
            kept.push(saved.unwrap().commit);
        }
    }
    kept.push(house.save().await.commit);
    kept.sort();
    let deadline = Instant::now() + Duration::from_secs(60);
    while house.refs() != kept {
        assert!(Instant::now() < deadline, "{:?} should be {kept:?}", house.refs());
        tokio::task::yield_now().await;
    }
    house.check();
}
