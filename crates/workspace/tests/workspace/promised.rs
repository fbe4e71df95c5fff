//! What a look promises is what a restore does, also where snapshots do not say all.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Command;

use tolka_facts::event::KeptWhy;
use tolka_workspace::checkpoint::Whose;

use crate::house::House;
use crate::rewinding::{done, kept, span};

fn not_saved(paths: &[&str]) -> Vec<(String, KeptWhy)> {
    paths.iter().map(|path| ((*path).to_owned(), KeptWhy::NotSaved)).collect()
}

#[tokio::test]
async fn what_a_turn_hid_by_its_own_rules_is_kept_or_comes_back_as_promised() {
    let house = House::new();
    for path in ["out/changed", "out/same", "out/gone", "seen"] {
        house.write(path, "before");
    }
    let target = house.commit().await;
    house.write(".gitignore", "out/\n");
    house.write("out/changed", "after");
    house.write("seen", "after");
    house.remove("out/gone");
    let now = house.commit().await;
    let plan = house.plan(vec![span(&target, &now, Whose::Ours)]).await;
    let restored = house.carry_out(&plan).await;
    assert_eq!(kept(&restored.kept), not_saved(&["out/changed"]));
    assert_eq!((house.read("out/gone").as_str(), house.read("out/changed").as_str()), ("before", "after"));
    let undone = house.undo_all(&now).await;
    assert_eq!(house.read("seen"), "after");
    assert!(["out/changed", "out/same", "out/gone"].iter().all(|path| house.has(path)), "{undone:?}");
}

#[tokio::test]
async fn a_file_with_several_names_goes_back_under_each() {
    let house = House::new();
    for path in ["one", "two", "deep/three", "other"] {
        house.write(path, "before");
    }
    let target = house.commit().await;
    house.write("one", "after");
    for name in ["two", "deep/three"] {
        house.remove(name);
        fs::hard_link(house.workspace.join("one"), house.workspace.join(name)).unwrap();
    }
    fs::hard_link(house.workspace.join("one"), house.workspace.join("new")).unwrap();
    let outside = house.data.join("outside");
    fs::hard_link(house.workspace.join("one"), &outside).unwrap();
    let now = house.commit().await;
    let restored = house.undo_all(&target).await;
    assert_eq!((done(&restored).len(), restored.kept), (4, vec![]));
    assert!(["one", "two", "deep/three"].iter().all(|name| house.read(name) == "before") && !house.has("new"));
    assert_eq!(fs::read_to_string(outside).unwrap(), "after", "nothing is written through a link");
    assert_eq!(house.undo_all(&now).await.kept, []);
    assert!(["one", "two", "deep/three", "new"].iter().all(|name| house.read(name) == "after"));
}

#[tokio::test]
async fn pipes_and_sockets_in_the_way_stay_and_are_named() {
    let house = House::new();
    for path in ["pipe", "socket", "folder/in", "plain"] {
        house.write(path, "before");
    }
    let target = house.commit().await;
    for path in ["pipe", "socket", "folder/in", "plain"] {
        house.remove(path);
    }
    fs::remove_dir(house.workspace.join("folder")).unwrap();
    for pipe in ["pipe", "folder"] {
        assert!(Command::new("mkfifo").arg(house.workspace.join(pipe)).status().unwrap().success());
    }
    let _socket = UnixListener::bind(house.workspace.join("socket")).unwrap();
    let restored = house.undo_all(&target).await;
    assert_eq!(done(&restored), ["plain"]);
    let mut expected = not_saved(&["pipe", "socket"]);
    expected.insert(0, ("folder/in".to_owned(), KeptWhy::Moved));
    assert_eq!(kept(&restored.kept), expected);
}
