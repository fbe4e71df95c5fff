//! Which paths go back, and which stay.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_facts::{BlobRef, Hash};
use tolka_workspace::checkpoint::{Content, PlanRequest, Whose, Wrote};

use crate::house::House;
use crate::rewinding::{both, kept, request, span, steps};

#[tokio::test]
async fn what_both_changed_is_a_conflict_and_can_be_overwritten_if_said() {
    let house = House::new();
    for name in ["ours", "theirs", "both", "both too"] {
        house.write(name, "before");
    }
    let target = house.commit().await;
    for name in ["ours", "both", "both too"] {
        house.write(name, "agent");
    }
    let middle = house.commit().await;
    for name in ["theirs", "both", "both too"] {
        house.write(name, "user");
    }
    let now = house.commit().await;
    let spans = vec![span(&target, &middle, Whose::Ours), span(&middle, &now, Whose::Others)];
    let plan = house.plan(spans.clone()).await;
    assert_eq!(steps(&plan), ["ours"]);
    use KeptWhy::{Conflict, NotOurs};
    let conflict = |name: &str| (name.to_owned(), Conflict);
    assert_eq!(kept(&plan.kept), [conflict("both"), conflict("both too"), ("theirs".into(), NotOurs)]);
    let these = Overwrite::These(vec!["both".into(), "theirs".into(), "nothing".into()]);
    let plan = house.plan_of(&PlanRequest { overwrite: these, ..request(spans.clone()) }).await;
    assert_eq!(steps(&plan), ["both", "ours"]);
    assert_eq!(kept(&plan.kept), [conflict("both too"), ("theirs".into(), NotOurs)]);
    let plan = house.plan_of(&PlanRequest { overwrite: Overwrite::All, ..request(spans) }).await;
    assert_eq!(steps(&plan), ["both", "both too", "ours"]);
    assert_eq!(kept(&plan.kept), [("theirs".into(), NotOurs)]);
}

#[tokio::test]
async fn beside_others_a_path_is_theirs_who_told_of_it() {
    let house = House::new();
    let target = house.commit().await;
    for name in ["ours", "theirs", "both", "neither"] {
        house.write(name, "x");
    }
    let now = house.commit().await;
    let whose = both(&["ours", "both"], &["theirs", "both"]);
    let plan = house.plan(vec![span(&target, &now, whose)]).await;
    assert_eq!(steps(&plan), ["ours"]);
    use KeptWhy::{Conflict, NotOurs};
    let expected = [("both".into(), Conflict), ("neither".into(), Conflict), ("theirs".into(), NotOurs)];
    assert_eq!(kept(&plan.kept), expected);
}

#[tokio::test]
async fn what_no_span_tells_of_is_a_conflict() {
    let house = House::new();
    house.write("a", "before");
    let target = house.commit().await;
    house.write("a", "somehow");
    let now = house.commit().await;
    let plan =
        house.plan_of(&PlanRequest { spans: Vec::new(), ..request(vec![span(&target, &now, Whose::Ours)]) }).await;
    assert_eq!(kept(&plan.kept), [("a".into(), KeptWhy::Conflict)]);
}

/// cline #14367: the rules went back first, and what they had hidden was cleaned away.
#[tokio::test]
async fn what_the_targets_rules_hid_is_never_deleted() {
    let house = House::new();
    house.write(".gitignore", "/data/\n*.env\n");
    house.write("data/precious", "the user's");
    house.write("sub/.gitignore", "!ours.env\n");
    house.write("a.env", "the user's");
    let target = house.commit().await;
    house.write(".gitignore", "");
    house.write("new", "x");
    house.write("sub/ours.env", "x");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    assert_eq!(steps(&plan), [".gitignore", "new", "sub/ours.env"]);
    assert_eq!(kept(&plan.kept), [("a.env".into(), KeptWhy::NotSaved), ("data/precious".into(), KeptWhy::NotSaved)]);
    house.carry_out(&plan).await;
    assert_eq!(house.read("data/precious"), "the user's");
    assert_eq!(house.read(".gitignore"), "/data/\n*.env\n");
}

/// The agent hid a folder, the user put a file there, the agent showed it again.
#[tokio::test]
async fn what_came_into_sight_may_be_anybodys() {
    let house = House::new();
    house.write("out/file", "before");
    let target = house.commit().await;
    house.write(".gitignore", "out/\n");
    let hidden = house.commit().await;
    house.write("out/file", "the user's");
    house.write("out/new", "the user's");
    let idle = house.commit().await;
    house.remove(".gitignore");
    let now = house.commit().await;
    let spans =
        vec![span(&target, &hidden, Whose::Ours), span(&hidden, &idle, Whose::Others), span(&idle, &now, Whose::Ours)];
    let plan = house.plan(spans).await;
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(kept(&plan.kept), [("out/file".into(), KeptWhy::Conflict), ("out/new".into(), KeptWhy::Conflict)]);
}

#[tokio::test]
async fn a_file_that_only_went_out_of_sight_is_not_overwritten() {
    let house = House::new();
    house.write("same", "before");
    house.write("edited", "before");
    house.write("deleted", "before");
    let target = house.commit().await;
    house.write(".gitignore", "same\nedited\ndeleted\n");
    house.remove("deleted");
    let middle = house.commit().await;
    house.write("edited", "the user's");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &middle, Whose::Ours), span(&middle, &now, Whose::Others)]).await;
    assert_eq!(steps(&plan), [".gitignore", "deleted", "edited", "same"]);
    let restored = house.carry_out(&plan).await;
    assert_eq!(kept(&restored.kept), [("edited".into(), KeptWhy::NotSaved)]);
    assert_eq!((house.read("edited").as_str(), house.read("deleted").as_str()), ("the user's", "before"));
}

#[tokio::test]
async fn a_file_does_not_return_over_a_folder_with_the_users_files() {
    let house = House::new();
    house.write("a", "a file");
    let target = house.commit().await;
    house.remove("a");
    house.write("a/agent", "x");
    let middle = house.commit().await;
    house.write("a/deep/user", "x");
    let now = house.commit().await;
    let spans = vec![span(&target, &middle, Whose::Ours), span(&middle, &now, Whose::Others)];
    for overwrite in [Overwrite::Nothing, Overwrite::All] {
        let plan = house.plan_of(&PlanRequest { overwrite, ..request(spans.clone()) }).await;
        assert_eq!(steps(&plan), ["a/agent"]);
        assert_eq!(kept(&plan.kept), [("a".into(), KeptWhy::Conflict), ("a/deep/user".into(), KeptWhy::NotOurs)]);
    }
}

#[tokio::test]
async fn a_folder_does_not_return_over_the_users_file() {
    let house = House::new();
    house.write("a/b/c", "x");
    house.write("a/d", "x");
    let target = house.commit().await;
    fs::remove_dir_all(house.workspace.join("a/b")).unwrap();
    house.remove("a/d");
    let middle = house.commit().await;
    symlink("elsewhere", house.workspace.join("a/b")).unwrap();
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &middle, Whose::Ours), span(&middle, &now, Whose::Others)]).await;
    assert_eq!(steps(&plan), ["a/d"]);
    assert_eq!(kept(&plan.kept), [("a/b".into(), KeptWhy::NotOurs), ("a/b/c".into(), KeptWhy::Conflict)]);
}

/// Names that sort between a file and what is beneath a folder of that name.
#[tokio::test]
async fn a_clash_is_seen_between_names_that_look_alike() {
    let house = House::new();
    house.write("a", "a file");
    let target = house.commit().await;
    house.remove("a");
    house.write("a-b", "x");
    house.write("a.c", "x");
    let middle = house.commit().await;
    house.write("a/user", "x");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &middle, Whose::Ours), span(&middle, &now, Whose::Others)]).await;
    assert_eq!(steps(&plan), ["a-b", "a.c"]);
    assert_eq!(kept(&plan.kept), [("a".into(), KeptWhy::Conflict), ("a/user".into(), KeptWhy::NotOurs)]);
}

#[tokio::test]
async fn where_anybody_may_have_worked_only_what_was_and_is_as_told_goes_back() {
    let house = House::new();
    let content = |words: &str| Content::Holds(BlobRef { hash: Hash::of(words.as_bytes()), size: words.len() as u64 });
    for path in ["edited", "edited after", "edited before", "gone", "mode", "unknown"] {
        house.write(path, "0");
    }
    let target = house.commit().await;
    for path in ["edited", "edited before", "made", "mode", "unknown", "both", "link"] {
        house.write(path, "1");
    }
    house.write("edited after", "x");
    house.remove("gone");
    house.remove("link");
    symlink("1", house.workspace.join("link")).unwrap();
    fs::set_permissions(house.workspace.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    let now = house.commit().await;
    let wrote = |was: Content, is: Content| Wrote { was, is };
    let told = [
        ("edited", wrote(content("0"), content("1"))),
        ("edited after", wrote(content("0"), content("1"))),
        ("edited before", wrote(content("x"), content("1"))),
        ("made", wrote(Content::Nothing, content("1"))),
        ("gone", wrote(content("0"), Content::Nothing)),
        ("mode", wrote(content("0"), content("1"))),
        ("unknown", wrote(content("0"), Content::Unknown)),
        ("both", wrote(Content::Nothing, content("1"))),
        ("link", wrote(Content::Nothing, content("1"))),
    ];
    let wrote = told.into_iter().map(|(path, wrote)| (path.into(), wrote)).collect();
    let whose = Whose::Anybodys { wrote, theirs: ["both".into()].into() };
    let plan = house.plan(vec![span(&target, &now, whose)]).await;
    assert_eq!(steps(&plan), ["edited", "gone", "made"]);
    let conflicts = ["both", "edited after", "edited before", "link", "mode", "unknown"];
    assert_eq!(kept(&plan.kept), conflicts.map(|path| (path.to_owned(), KeptWhy::Conflict)));
}

#[tokio::test]
async fn of_a_restore_only_what_it_left_as_it_should_be_is_its_own() {
    let house = House::new();
    for path in ["a", "b", "c", "d"] {
        house.write(path, "old");
    }
    let old = house.commit().await;
    for path in ["a", "b", "c", "d"] {
        house.write(path, "new");
    }
    let before = house.commit().await;
    // It was cut off, and a person came before it was finished.
    house.write("a", "old");
    house.write("b", "a person's");
    house.write("c", "old");
    house.write("d", "old");
    let now = house.commit().await;
    for (files, goes) in [(None, vec!["a", "c"]), (Some(["a".into(), "b".into()].into()), vec!["a"])] {
        let whose = Whose::Restored { target: old.clone(), files, theirs: ["d".into()].into() };
        let plan = house.plan(vec![span(&before, &now, whose)]).await;
        assert_eq!(steps(&plan), goes);
        assert!(kept(&plan.kept).contains(&("b".to_owned(), KeptWhy::Conflict)), "{:?}", plan.kept);
    }
}
