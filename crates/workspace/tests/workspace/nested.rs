//! Repositories inside the workspace: their files are files, and never a mere reference to a commit.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::house::{Entry, House, git};
use crate::refusing::passes_as_nobody;

fn repository(house: &House, path: &str) {
    let folder = house.workspace.join(path);
    fs::create_dir_all(&folder).unwrap();
    git(&folder, &["init", "--quiet"]);
}

fn commit(house: &House, path: &str) {
    let folder = house.workspace.join(path);
    git(&folder, &["add", "--all"]);
    git(&folder, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
}

#[tokio::test]
async fn files_of_nested_repositories_are_saved_as_files() {
    let house = House::new();
    house.write(".gitignore", "*.o\n");
    repository(&house, "with");
    house.write("with/.gitignore", "own\n");
    house.write("with/own", "no");
    house.write("with/a.o", "no");
    house.write("with/a", "yes");
    commit(&house, "with");
    repository(&house, "without");
    house.write("without/a", "yes");
    repository(&house, "empty");
    repository(&house, "with/in/ner");
    house.write("with/in/ner/most/a", "yes");
    repository(&house, "with/in/ner/most");
    // A submodule or a second work tree has a file there.
    house.write("module/.git", "gitdir: ../somewhere\n");
    house.write("module/a", "yes");

    let saved = house.save().await;

    let expected = [".gitignore", "module/a", "with/.gitignore", "with/a", "with/in/ner/most/a", "without/a"];
    assert_eq!(house.paths(&saved.commit), expected);
    assert_eq!(saved.files, expected.len() as u64);
    house.write("with/in/ner/most/a", "new");
    fs::remove_file(house.workspace.join("without/a")).unwrap();
    let saved = house.save().await;
    let snapshot = house.snapshot(&saved.commit);
    assert_eq!(snapshot[b"with/in/ner/most/a".as_slice()], Entry::File(b"new".to_vec()));
    assert!(!snapshot.contains_key(b"without/a".as_slice()));
    house.check();
}

#[tokio::test]
async fn a_file_may_become_a_repository_and_a_repository_a_file() {
    let house = House::new();
    house.write("x", "a file");
    house.write("y/a", "a");
    commit_of(&house, "y");
    assert_eq!(house.paths(&house.save().await.commit), ["x", "y/a"]);
    fs::remove_file(house.workspace.join("x")).unwrap();
    fs::remove_dir_all(house.workspace.join("y")).unwrap();
    house.write("x/a", "a");
    commit_of(&house, "x");
    house.write("y", "a file");
    assert_eq!(house.paths(&house.save().await.commit), ["x/a", "y"]);
}

fn commit_of(house: &House, path: &str) {
    repository(house, path);
    commit(house, path);
}

#[tokio::test]
async fn a_folder_that_becomes_a_repository_between_saves_stays_files() {
    let house = House::new();
    house.write("lib/a", "a");
    house.save().await;
    commit_of(&house, "lib");
    house.write("lib/b", "b");
    assert_eq!(house.paths(&house.save().await.commit), ["lib/a", "lib/b"]);
}

/// Root may go in everywhere, so the test is run by somebody who may not.
#[test]
fn nobody_looks_for_repositories_in_an_ignored_folder() {
    passes_as_nobody("nested::where_an_ignored_folder_is_closed");
}

#[tokio::test]
#[ignore = "runs inside nobody_looks_for_repositories_in_an_ignored_folder"]
async fn where_an_ignored_folder_is_closed() {
    let house = House::new();
    house.write(".gitignore", "node_modules/\n");
    house.write("node_modules/lib/a", "a");
    commit_of(&house, "node_modules/lib");
    house.write("src/node_modules/lib/a", "a");
    commit_of(&house, "src/node_modules/lib");
    let ignored = ["node_modules", "src/node_modules"].map(|path| house.workspace.join(path));
    let close =
        |mode| ignored.iter().for_each(|path| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap());
    // Whoever goes into a closed folder, or looks for a `.git` there, finds that it cannot, and says so.
    close(0);
    for _ in 0..2 {
        let saved = house.save().await;
        assert_eq!((house.paths(&saved.commit), saved.left_out), (vec![".gitignore".to_owned()], vec![]));
    }
    // Of one that is not ignored it is said.
    house.write(".gitignore", "");
    assert_eq!(house.save().await.left_out.len(), 2);
    close(0o755);
}
