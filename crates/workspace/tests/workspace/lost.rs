//! How others lost people's work: each of these is somebody's story, at the level of plans and restores.

use std::fs;

use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_workspace::checkpoint::{Caps, PlanRequest, Whose};
use tolka_workspace::{CheckpointError, Checkpoints};

use crate::house::{House, disk};
use crate::rewinding::{done, kept, request, span, steps};

/// AgentSmithy, failure 2: what the agent wrote was taken for what is there.
#[tokio::test]
async fn the_users_edit_of_the_agents_file_is_what_is_saved() {
    let house = House::new();
    let start = house.commit().await;
    house.write("a", "v1");
    let turn = house.commit().await;
    house.write("a", "v2");
    let target = house.commit().await;
    house.write("a", "v3");
    let now = house.commit().await;
    let all =
        vec![span(&start, &turn, Whose::Ours), span(&turn, &target, Whose::Others), span(&target, &now, Whose::Ours)];
    let plan = house.plan(all[2..].to_vec()).await;
    house.carry_out(&plan).await;
    assert_eq!(house.read("a"), "v2");
    let plan = house.plan(all).await;
    assert_eq!(kept(&plan.kept), [("a".into(), KeptWhy::Conflict)]);
}

/// AgentSmithy, failure 3, and copilot-cli #1675: what turns made goes, by commands too; what the user made stays.
#[tokio::test]
async fn new_files_of_turns_go_and_the_users_output_stays() {
    let house = House::new();
    house.write("a", "a");
    house.write(".gitignore", "ignored/\n");
    house.write("ignored/output", "x".repeat(10_000));
    let target = house.commit().await;
    house.write("by/a/command", "x");
    let turn = house.commit().await;
    for n in 0..50 {
        house.write(format!("output/{n}"), "hours of work");
    }
    let idle = house.commit().await;
    house.write("by/another", "x");
    let now = house.commit().await;
    let plan = house
        .plan(vec![
            span(&target, &turn, Whose::Ours),
            span(&turn, &idle, Whose::Others),
            span(&idle, &now, Whose::Ours),
        ])
        .await;
    let restored = house.carry_out(&plan).await;
    assert_eq!(done(&restored), ["by/a/command", "by/another"]);
    assert!(!house.has("by"));
    assert_eq!(restored.kept.len(), 50);
    assert_eq!(fs::read_dir(house.workspace.join("output")).unwrap().count(), 50);
    assert!(house.has("ignored/output"));
}

/// AgentSmithy, failure 4: nothing was saved before a restore.
#[tokio::test]
async fn a_restore_can_be_undone_and_done_again() {
    let house = House::new();
    house.write("a", "one");
    let target = house.commit().await;
    house.write("a", "two");
    house.write("b", "two");
    let before = house.commit().await;
    let (first, last) = (house.snapshot(&target), disk(&house.workspace));
    for _ in 0..3 {
        house.undo_all(&target).await;
        assert_eq!(disk(&house.workspace), first);
        house.undo_all(&before).await;
        assert_eq!(disk(&house.workspace), last);
    }
}

/// gemini-cli #13331: a restore of an empty or small snapshot deleted nearly everything.
#[tokio::test]
async fn an_empty_snapshot_deletes_nothing_of_the_users() {
    let house = House::new();
    let target = house.commit().await;
    for n in 0..30 {
        house.write(format!("d{}/f{n}", n % 3), "the user's");
    }
    let idle = house.commit().await;
    house.write("agent", "x");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &idle, Whose::Others), span(&idle, &now, Whose::Ours)]).await;
    assert_eq!(steps(&plan), ["agent"]);
    assert_eq!(house.carry_out(&plan).await.kept.len(), 30);
    assert_eq!(disk(&house.workspace).len(), 30);
}

/// opencode #26893: after a snapshot that failed, an older one was restored. Here the gap is known as one.
#[tokio::test]
async fn across_a_snapshot_that_is_missing_nothing_is_taken_for_ours() {
    let house = House::new();
    house.write("told", "before");
    house.write("untold", "before");
    let target = house.commit().await;
    house.write("told", "agent");
    // Two days of the user's, with no snapshot in between.
    house.write("untold", "two days of work");
    house.write("new", "two days of work");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &now, crate::rewinding::both(&["told"], &[]))]).await;
    assert_eq!(steps(&plan), ["told"]);
    assert_eq!(kept(&plan.kept), [("new".into(), KeptWhy::Conflict), ("untold".into(), KeptWhy::Conflict)]);
}

/// opencode #49732: a restore of the whole tree from a stale baseline.
#[tokio::test]
async fn a_restore_is_of_what_turns_changed_and_never_of_the_whole_tree() {
    let house = House::new();
    for name in ["a", "b", "c"] {
        house.write(name, "stale");
    }
    let target = house.commit().await;
    for name in ["a", "b"] {
        house.write(name, "the user's, later");
    }
    house.remove("c");
    let idle = house.commit().await;
    house.write("d", "agent");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &idle, Whose::Others), span(&idle, &now, Whose::Ours)]).await;
    house.carry_out(&plan).await;
    assert_eq!(house.read("a"), "the user's, later");
    assert!(!house.has("c") && !house.has("d"));
}

/// opencode #3176: a revert in one folder of a monorepo destroyed work in another.
#[tokio::test]
async fn a_restore_in_one_folder_does_nothing_in_another() {
    let house = House::new();
    house.write("one/a", "before");
    house.write("two/b", "before");
    let one = house.workspace.join("one");
    let save = || async {
        let save = tolka_workspace::Save::within(crate::house::BUDGET, "x");
        house.checkpoints.save(&one, &crate::house::session(), save).await.unwrap().commit
    };
    let target = save().await;
    house.write("one/a", "after");
    house.write("two/b", "somebody's work");
    house.write("two/c", "somebody's work");
    let now = save().await;
    let plan = house.checkpoints.plan(&one, &request(vec![span(&target, &now, Whose::Ours)])).await.unwrap();
    house.checkpoints.restore(&one, &plan).await.unwrap();
    assert_eq!((house.read("one/a").as_str(), house.read("two/b").as_str()), ("before", "somebody's work"));
    assert!(house.has("two/c"));
    // Nor does another folder know the snapshot.
    let error = house.checkpoints.plan(&house.workspace, &request(vec![span(&target, &now, Whose::Ours)])).await;
    assert!(matches!(error, Err(CheckpointError::Unknown { .. })), "{error:?}");
}

#[tokio::test]
async fn what_is_left_out_of_a_snapshot_is_never_touched() {
    let mut house = House::new();
    house.checkpoints = Checkpoints::with_caps(&house.data, Caps { largest_file: 100, ..Caps::default() });
    let large = "x".repeat(101);
    for name in ["shrunk", "grown", "folder/large"] {
        house.write(name, &large);
    }
    house.write("grown", "small");
    let target = house.commit().await;
    house.write("shrunk", "small");
    house.write("grown", &large);
    fs::remove_dir_all(house.workspace.join("folder")).unwrap();
    house.write("folder", "a file");
    let now = house.commit().await;
    let spans = vec![span(&target, &now, Whose::Ours)];
    let plan = house.plan_of(&PlanRequest { overwrite: Overwrite::All, ..request(spans) }).await;
    assert_eq!(steps(&plan), [""; 0]);
    let not_saved = ["folder", "grown", "shrunk"].map(|name| (name.to_owned(), KeptWhy::NotSaved));
    assert_eq!(kept(&plan.kept), not_saved);
}

/// The agent cut a file of the user's that no snapshot holds.
#[tokio::test]
async fn a_file_that_was_too_large_between_is_a_conflict() {
    let mut house = House::new();
    house.checkpoints = Checkpoints::with_caps(&house.data, Caps { largest_file: 100, ..Caps::default() });
    house.write("a", "a");
    let target = house.commit().await;
    house.write("large", "x".repeat(101));
    let idle = house.commit().await;
    house.write("large", "cut");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &idle, Whose::Others), span(&idle, &now, Whose::Ours)]).await;
    assert_eq!(kept(&plan.kept), [("large".into(), KeptWhy::Conflict)]);
}
