//! Who may read a file is given back with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use tolka_facts::event::{FileOperation, KeptWhy};
use tolka_workspace::checkpoint::Whose;

use crate::house::House;
use crate::rewinding::{done, kept, span};

impl House {
    fn close(&self, path: &str, mode: u32) {
        fs::set_permissions(self.workspace.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(&self, path: &str) -> u32 {
        fs::symlink_metadata(self.workspace.join(path)).unwrap().permissions().mode() & 0o777
    }
}

const MODES: [(&str, u32); 5] =
    [("secret", 0o600), ("read-only", 0o400), ("of the group", 0o640), ("tool", 0o700), ("in/deep/er", 0o600)];

fn closed() -> House {
    let house = House::new();
    for (path, mode) in MODES {
        house.write(path, "before");
        house.close(path, mode);
    }
    house.close("in/deep", 0o700);
    house.write("plain", "before");
    house
}

fn assert_closed(house: &House) {
    for (path, mode) in MODES {
        assert_eq!((house.read(path).as_str(), house.mode(path)), ("before", mode), "{path}");
    }
    assert_eq!(house.mode("in/deep"), 0o700, "a folder that had to be made again");
    assert!([0o644, 0o664].contains(&house.mode("plain")));
}

#[tokio::test]
async fn files_that_a_turn_deleted_come_back_for_those_they_were_for() {
    let house = closed();
    let target = house.commit().await;
    for (path, _) in MODES {
        house.remove(path);
    }
    fs::remove_dir_all(house.workspace.join("in")).unwrap();
    house.remove("plain");
    let restored = house.undo_all(&target).await;
    assert_eq!(restored.kept, []);
    assert_closed(&house);
}

#[tokio::test]
async fn files_that_a_turn_replaced_come_back_for_those_they_were_for_and_so_does_the_undo() {
    let house = closed();
    let target = house.commit().await;
    for (path, _) in MODES {
        house.remove(path);
        house.write(path, "after");
    }
    house.close("plain", 0o600);
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    let restored = house.carry_out(&plan).await;
    assert_eq!((restored.kept.as_slice(), restored.done.len()), ([].as_slice(), MODES.len() + 1));
    assert_closed(&house);
    assert_eq!(house.carry_out(&plan).await, restored, "a second try finds it done");

    house.undo_all(&now).await;
    for (path, _) in MODES {
        assert!([0o644, 0o664].contains(&house.mode(path)), "{path}");
    }
    assert_eq!(house.mode("plain"), 0o600);
}

#[tokio::test]
async fn a_mode_alone_is_told_and_goes_back_and_nothing_is_written_for_it() {
    let house = closed();
    let target = house.commit().await;
    house.close("secret", 0o644);
    house.close("plain", 0o640);
    let (secret, plain) = (house.written("secret"), house.written("plain"));
    let now = house.commit().await;
    let told = house.checkpoints.changes(&house.workspace, &target, &now).await.unwrap();
    let told: Vec<_> = told.iter().map(|c| (c.path.to_str().unwrap(), c.operation, c.added, c.removed)).collect();
    use FileOperation::Update;
    assert_eq!(told, [("plain", Update, 0, 0), ("secret", Update, 0, 0)]);
    let restored = house.undo_all(&target).await;
    assert_eq!(done(&restored), ["plain", "secret"]);
    assert_closed(&house);
    assert_eq!((house.written("secret"), house.written("plain")), (secret, plain));
}

#[tokio::test]
async fn what_a_person_closes_stays_closed() {
    let house = closed();
    let target = house.commit().await;
    house.write("plain", "after");
    let after = house.commit().await;
    house.close("plain", 0o600);
    let now = house.commit().await;
    let spans = vec![span(&target, &after, Whose::Ours), span(&after, &now, Whose::Others)];
    let plan = house.plan(spans).await;
    assert_eq!(kept(&plan.kept), [("plain".to_owned(), KeptWhy::Conflict)]);
    // And between the plan and the deed.
    house.close("plain", 0o644);
    let plan = house.plan(vec![span(&target, &after, Whose::Ours)]).await;
    house.close("plain", 0o600);
    assert_eq!(kept(&house.carry_out(&plan).await.kept), [("plain".to_owned(), KeptWhy::Moved)]);
    assert_eq!((house.read("plain").as_str(), house.mode("plain")), ("after", 0o600));
}

#[tokio::test]
async fn where_more_are_private_than_a_commit_names_no_file_comes_back_wider() {
    let house = House::new();
    let paths: Vec<String> = (0..1100).map(|n| format!("{n:04}")).collect();
    for path in &paths {
        house.write(path, "before");
        house.close(path, 0o600);
    }
    house.write("run.sh", "before");
    house.close("run.sh", 0o700);
    let target = house.commit().await;
    assert!(house.git(&["cat-file", "commit", &target]).len() < 64 << 10);
    paths.iter().for_each(|path| house.remove(path));
    house.remove("run.sh");
    assert_eq!(house.undo_all(&target).await.kept, []);
    assert!(paths.iter().all(|path| house.mode(path) == 0o600));
    assert_eq!(house.mode("run.sh"), 0o700);
}

#[tokio::test]
async fn the_files_of_a_fork_are_for_those_they_were_for() {
    let house = closed();
    let target = house.commit().await;
    let into = house.data.join("forked");
    house.checkpoints.check_out(&house.workspace, &target, &into).await.unwrap();
    for (path, mode) in MODES {
        assert_eq!(fs::metadata(into.join(path)).unwrap().permissions().mode() & 0o777, mode, "{path}");
    }
    assert_eq!(fs::metadata(into.join("in/deep")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn modes_that_change_after_a_look_are_seen_however_old_the_files_are() {
    let house = closed();
    house.write("from/secret", "before");
    house.close("from/secret", 0o600);
    // By then all of them are older than the second in which they are looked at.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let modes = async || {
        let commit = house.commit().await;
        let message = String::from_utf8(house.git(&["cat-file", "commit", &commit])).unwrap();
        let modes = message.lines().filter_map(|line| line.strip_prefix("Mode: "));
        modes.map(str::to_owned).collect::<Vec<String>>()
    };
    let first = modes().await;
    assert!(first.contains(&"600 from/secret".to_owned()) && first.len() == MODES.len() + 2, "{first:?}");
    assert_eq!(modes().await, first, "nothing has changed");
    house.close("plain", 0o640);
    house.close("secret", 0o644);
    let changed = modes().await;
    assert!(changed.contains(&"640 plain".to_owned()) && !changed.contains(&"600 secret".to_owned()), "{changed:?}");
    assert_eq!(modes().await, changed, "nothing has changed");
    // In the second in which it was looked at.
    house.close("plain", 0o600);
    let again = modes().await;
    assert!(again.contains(&"600 plain".to_owned()), "{again:?}");
    // What is in a folder does not change with it.
    fs::rename(house.workspace.join("from"), house.workspace.join("to")).unwrap();
    house.close("in", 0o711);
    let moved = modes().await;
    let has = |line: &str| moved.iter().any(|mode| mode == line);
    assert!(has("600 to/secret") && !has("600 from/secret") && has("711 in/"), "{moved:?}");
}
