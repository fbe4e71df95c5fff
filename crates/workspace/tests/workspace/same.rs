//! A snapshot is a function of the workspace alone: a store that has seen every step on the way makes the same tree
//! as one that sees only the end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use tolka_workspace::{Checkpoints, Save};

use crate::house::{BUDGET, House, git, session, text};

#[derive(Debug, Clone)]
enum Step {
    Write(&'static str, u8),
    Link(&'static str, &'static str),
    Remove(&'static str),
    Ignore(&'static str, &'static str),
    Repository(&'static str),
}

const PATHS: &[&str] = &["a", "a/b", "a/b/c", "d", "d/e", "d/e/f", "a/g", "h"];

fn step() -> impl Strategy<Value = Step> {
    let path = || prop::sample::select(PATHS);
    let folder = || prop::sample::select(&["", "a", "a/b", "d"][..]);
    let rule = prop::sample::select(&["", "a\n", "b/\n", "*\n!*/\n!h\n", "e\n!e/f\n"][..]);
    prop_oneof![
        4 => (path(), 0..3_u8).prop_map(|(path, content)| Step::Write(path, content)),
        1 => (path(), prop::sample::select(&["h", "d", "a"][..])).prop_map(|(path, to)| Step::Link(path, to)),
        2 => path().prop_map(Step::Remove),
        1 => (folder(), rule).prop_map(|(folder, rule)| Step::Ignore(folder, rule)),
        1 => folder().prop_map(Step::Repository),
    ]
}

/// Whatever is in the way goes.
fn clear(path: &Path) {
    if path.is_symlink() || path.is_file() {
        fs::remove_file(path).unwrap();
    } else if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    }
}

fn make_room(root: &Path, path: &str) {
    let mut at = root.to_owned();
    for part in Path::new(path).parent().into_iter().flat_map(Path::components) {
        at.push(part);
        if at.is_symlink() || at.is_file() {
            clear(&at);
        }
        fs::create_dir_all(&at).unwrap();
    }
    clear(&root.join(path));
}

fn take(house: &House, step: &Step) {
    let root = &house.workspace;
    match step {
        Step::Write(path, content) => {
            make_room(root, path);
            fs::write(root.join(path), [*content]).unwrap();
        }
        Step::Link(path, to) => {
            make_room(root, path);
            symlink(root.join(to), root.join(path)).unwrap();
        }
        Step::Remove(path) => clear(&root.join(path)),
        Step::Ignore(folder, rule) => {
            if !root.join(folder).is_symlink() && root.join(folder).is_dir() {
                fs::write(root.join(folder).join(".gitignore"), rule).unwrap();
            }
        }
        Step::Repository(folder) => {
            let folder = root.join(folder);
            if !folder.is_symlink() && folder.is_dir() {
                git(&folder, &["init", "--quiet"]);
                git(&folder, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_depends_on_the_workspace_alone(rounds in prop::collection::vec(prop::collection::vec(step(), 1..6), 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let house = House::new();
            for steps in &rounds {
                steps.iter().for_each(|step| take(&house, step));
                let warm = house.save().await;
                let elsewhere = house.data.with_file_name("fresh");
                let fresh = Checkpoints::new(&elsewhere).save(&house.workspace, &session(), Save::within(BUDGET, "x")).await.unwrap();
                let store = fs::read_dir(elsewhere.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
                let tree = text(git(&store, &["--git-dir", ".", "rev-parse", &format!("{}^{{tree}}", fresh.commit)]));
                assert_eq!(house.tree(&warm.commit), tree, "{rounds:?}");
                assert_eq!(warm.files, fresh.files);
                assert!(house.snapshot(&warm.commit).len() as u64 == warm.files);
                fs::remove_dir_all(elsewhere).unwrap();
            }
        });
    }
}
