//! Random trees, and random edits by an agent, a user and another session, with plans, restores and undos in between.
//!
//! `TOLKA_CASES` says how many. What is expected is worked out from the snapshots, read by stock git, and from the disk.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_workspace::Checkpoints;
use tolka_workspace::checkpoint::{Caps, Plan, PlanRequest, Restored, Span, Whose};

use crate::house::{Entry, House, Tree, disk, git};
use crate::rewinding::{request, span};

/// Larger files are in no snapshot.
const LARGEST: u64 = 64;

const PATHS: &[&[u8]] = &[
    b"a",
    b"a/in",
    b"b",
    b"dir/x",
    b"dir/y",
    b"dir/sub/z",
    b"dir/sub",
    b"hidden/x",
    b"x.log",
    b"dir/x.log",
    b"nested/f",
    b"nested/deep/f",
    b"new\nline \"quoted\"",
    b"not utf-8 \xff",
    b"-rf",
];

const RULES: &[&[u8]] = &[b".gitignore", b"dir/.gitignore"];
const RULE_TEXTS: &[&str] = &["", "*.log\n", "/hidden/\n", "*\n!.gitignore\n!b\n", "!x.log\nsub\n"];

#[derive(Debug, Clone)]
enum Edit {
    Write(usize, String),
    Large(usize),
    Program(usize),
    Link(usize),
    Remove(usize),
    Rules(usize, usize),
}

#[derive(Debug, Clone, Copy)]
enum Who {
    Agent,
    User,
    /// Another session beside the agent; this many of the changed paths are told, in turn by either.
    Beside(usize),
}

#[derive(Debug, Clone)]
struct Stretch {
    who: Who,
    edits: Vec<Edit>,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let path = 0..PATHS.len();
    let edit = prop_oneof![
        6 => (path.clone(), "[a-c]{0,3}\n?").prop_map(|(path, text)| Edit::Write(path, text)),
        1 => path.clone().prop_map(Edit::Large),
        1 => path.clone().prop_map(Edit::Program),
        1 => path.clone().prop_map(Edit::Link),
        3 => path.prop_map(Edit::Remove),
        1 => (0..RULES.len(), 0..RULE_TEXTS.len()).prop_map(|(path, text)| Edit::Rules(path, text)),
    ];
    prop::collection::vec(edit, 0..6)
}

fn stretches() -> impl Strategy<Value = Vec<Stretch>> {
    let who = prop_oneof![3 => Just(Who::Agent), 2 => Just(Who::User), 1 => (0_usize..6).prop_map(Who::Beside)];
    prop::collection::vec((who, edits()).prop_map(|(who, edits)| Stretch { who, edits }), 1..5)
}

#[test]
fn every_restore_gives_back_what_it_promised_and_destroys_nothing_else() {
    let cases = std::env::var("TOLKA_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    let config = ProptestConfig { cases, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() };
    let story = (edits(), stretches(), edits(), any::<bool>());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tried = TestRunner::new(config).run(&story, |(start, stretches, late, overwrites)| {
        runtime.block_on(tell(&start, &stretches, &late, overwrites));
        Ok(())
    });
    if let Err(error) = tried {
        panic!("{error}");
    }
}

async fn tell(start: &[Edit], stretches: &[Stretch], late: &[Edit], overwrites: bool) {
    let mut house = House::new();
    house.checkpoints = Checkpoints::with_caps(&house.data, Caps { largest_file: LARGEST, ..Caps::default() });
    for folder in ["", "nested"] {
        fs::create_dir_all(house.workspace.join(folder)).unwrap();
        git(&house.workspace.join(folder), &["init", "--quiet"]);
    }
    apply(&house, start);
    // Git takes no repository without a commit, and does not let a path be left out that rules hide.
    let (inner, aside) = (house.workspace.join("nested/.git"), house.workspace.with_file_name("aside"));
    fs::rename(&inner, &aside).unwrap();
    git(&house.workspace, &["add", "--all"]);
    git(&house.workspace, &["rm", "-r", "--quiet", "--cached", "--ignore-unmatch", "nested"]);
    fs::rename(&aside, &inner).unwrap();
    git(&house.workspace, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
    let repository = repositories(&house);

    let mut story = Story { commits: vec![save(&house).await], spans: Vec::new() };
    for stretch in stretches {
        apply(&house, &stretch.edits);
        let status = git(&house.workspace, &["--no-optional-locks", "status", "--porcelain", "-z"]);
        story.go_on(&house, stretch.who).await;
        assert_eq!(git(&house.workspace, &["--no-optional-locks", "status", "--porcelain", "-z"]), status);
    }
    let overwrite = if overwrites { Overwrite::All } else { Overwrite::Nothing };
    let asked = PlanRequest { overwrite, ..request(story.spans.clone()) };
    let plan = house.plan_of(&asked).await;
    story.judge(&house, &plan, overwrites);
    let before = disk(&house.workspace);
    let restored = carry_out(&house, &plan).await;
    // Between the plan and the restore nobody came: only what no snapshot shows may stand in the way.
    for kept in &restored.kept[plan.kept.len()..] {
        assert!(matches!(kept.why, KeptWhy::NotSaved | KeptWhy::Moved), "{kept:?}");
    }
    let now = plan.now.clone();

    // The undo of it gives all back,
    let after = save(&house).await.0;
    let undo = house
        .plan_of(&PlanRequest { overwrite: Overwrite::Nothing, ..request(vec![span(&now, &after, Whose::Ours)]) })
        .await;
    carry_out(&house, &undo).await;
    let mut lasting = differing(&before, &disk(&house.workspace));
    // but for what is hidden by the rules that it goes back to: it may have been there then.
    let hidden: HashSet<&Path> = undo.kept.iter().map(|kept| kept.path.as_path()).collect();
    assert!(undo.kept.iter().all(|kept| matches!(kept.why, KeptWhy::NotSaved | KeptWhy::Conflict)), "{undo:?}");
    lasting.retain(|path| !hidden.contains(path.as_path()));
    assert!(lasting.is_empty(), "{lasting:?} after the undo of {plan:?}");

    // Whoever comes between the plan and the restore keeps what is theirs.
    apply(&house, late);
    carry_out(&house, &plan).await;
    assert!(repositories(&house) == repository, "the person's repositories are as they were");
    house.check();
    // A fork may have a store of its own from then on.
    let (into, snapshot) = (house.data.join("fork"), house.snapshot(&now));
    house.checkpoints.check_out(&house.workspace, &now, &into).await.unwrap();
    assert_eq!(disk(&into), snapshot);
}

/// A commit, and what is not in it.
async fn save(house: &House) -> (String, BTreeSet<PathBuf>) {
    let saved = house.save().await;
    (saved.commit, saved.left_out.into_iter().map(|left_out| left_out.path).collect())
}

/// What is done is as the target has it and was saved before; nothing else changed by a byte.
async fn carry_out(house: &House, plan: &Plan) -> Restored {
    let (target, now) = (house.snapshot(&plan.target), house.snapshot(&plan.now));
    let before = disk(&house.workspace);
    let restored = house.carry_out(plan).await;
    let after = disk(&house.workspace);
    let done: HashSet<&[u8]> = restored.done.iter().map(|step| step.path.as_os_str().as_bytes()).collect();
    assert_eq!(restored.done.len() + restored.kept.len(), plan.steps.len() + plan.kept.len());
    for path in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let (was, is) = (before.get(path), after.get(path));
        let shown = String::from_utf8_lossy(path);
        if done.contains(path.as_slice()) {
            assert_eq!(is, target.get(path), "{shown} is as it was promised");
            assert!(was == is || was == now.get(path), "{shown} was saved before it was destroyed");
        } else {
            assert_eq!(was, is, "{shown} is kept");
        }
    }
    restored
}

struct Story {
    commits: Vec<(String, BTreeSet<PathBuf>)>,
    spans: Vec<Span>,
}

impl Story {
    async fn go_on(&mut self, house: &House, who: Who) {
        let from = self.commits.last().unwrap().0.clone();
        self.commits.push(save(house).await);
        let to = &self.commits.last().unwrap().0;
        let whose = match who {
            Who::Agent => Whose::Ours,
            Who::User => Whose::Others,
            Who::Beside(told) => {
                let changed = differing(&house.snapshot(&from), &house.snapshot(to));
                let side = |which: usize| {
                    let of = changed.iter().enumerate().filter(|(n, _)| *n < told && (n % 2 == which || *n == 4));
                    of.map(|(_, path)| path.clone()).collect()
                };
                Whose::Both { ours: side(0), theirs: side(1) }
            }
        };
        self.spans.push(span(&from, to, whose));
    }

    /// Every path that differs is in the plan once; no step is anybody else's; and where nothing is hidden, left out or in
    /// the way, the verdict is what the spans say.
    fn judge(&self, house: &House, plan: &Plan, overwrites: bool) {
        let trees: Vec<Tree> = self.commits.iter().map(|(commit, _)| house.snapshot(commit)).collect();
        let differ = differing(&trees[0], &trees[trees.len() - 1]);
        let mut verdicts: BTreeMap<&Path, Option<KeptWhy>> = BTreeMap::new();
        verdicts.extend(plan.steps.iter().map(|step| (step.path.as_path(), None)));
        verdicts.extend(plan.kept.iter().map(|kept| (kept.path.as_path(), Some(kept.why))));
        assert_eq!(verdicts.len(), plan.steps.len() + plan.kept.len(), "each path once");
        assert!(
            verdicts.keys().copied().eq(differ.iter().map(PathBuf::as_path).collect::<BTreeSet<_>>()),
            "all of them"
        );
        let rules = |tree: &Tree| RULES.iter().map(|path| tree.get(*path).cloned()).collect::<Vec<_>>();
        let is_hiding = trees.windows(2).any(|pair| rules(&pair[0]) != rules(&pair[1]));
        for path in &differ {
            let (ours, theirs) = self.touched(&trees, path);
            let expected = match (ours, theirs) {
                (true, false) => None,
                (false, true) => Some(KeptWhy::NotOurs),
                _ if overwrites => None,
                _ => Some(KeptWhy::Conflict),
            };
            let found = verdicts[path.as_path()];
            assert!(found.is_some() || expected.is_none(), "{} goes, and is not ours", path.display());
            let is_apart = |other: &&PathBuf| other == &path || !(other.starts_with(path) || path.starts_with(other));
            let left_out = self.commits.iter().flat_map(|(_, left_out)| left_out);
            let is_left_out = left_out.into_iter().any(|other| other.starts_with(path) || path.starts_with(other));
            if !is_hiding && !is_left_out && differ.iter().all(|other| is_apart(&other)) {
                assert_eq!(found, expected, "{}", path.display());
            }
        }
    }

    fn touched(&self, trees: &[Tree], path: &Path) -> (bool, bool) {
        let bytes = path.as_os_str().as_bytes();
        let mut touched = (false, false);
        for (span, pair) in self.spans.iter().zip(trees.windows(2)) {
            if pair[0].get(bytes) == pair[1].get(bytes) {
                continue;
            }
            let (ours, theirs) = match &span.whose {
                Whose::Ours => (true, false),
                Whose::Others => (false, true),
                Whose::Both { ours, theirs } if ours.contains(path) != theirs.contains(path) => {
                    (ours.contains(path), theirs.contains(path))
                }
                Whose::Both { .. } => (true, true),
                Whose::Anybodys { .. } | Whose::Restored { .. } => unreachable!("no story has one"),
            };
            touched = (touched.0 || ours, touched.1 || theirs);
        }
        touched
    }
}

fn differing(from: &Tree, to: &Tree) -> Vec<PathBuf> {
    let paths: BTreeSet<&Vec<u8>> = from.keys().chain(to.keys()).collect();
    let differ = paths.into_iter().filter(|path| from.get(*path) != to.get(*path));
    differ.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// Every byte of the person's own repositories.
fn repositories(house: &House) -> [BTreeMap<Vec<u8>, Entry>; 2] {
    [".git", "nested/.git"].map(|folder| disk(&house.workspace.join(folder)))
}

fn apply(house: &House, edits: &[Edit]) {
    for edit in edits {
        match edit {
            Edit::Write(path, text) => put(house, PATHS[*path], text),
            Edit::Large(path) => put(house, PATHS[*path], &"large ".repeat(20)),
            Edit::Program(path) => {
                put(house, PATHS[*path], "#!");
                fs::set_permissions(full(house, PATHS[*path]), fs::Permissions::from_mode(0o755)).unwrap();
            }
            Edit::Link(path) => {
                clear(house, PATHS[*path]);
                symlink("../b", full(house, PATHS[*path])).unwrap();
            }
            Edit::Remove(path) => remove(&full(house, PATHS[*path])),
            Edit::Rules(path, text) => put(house, RULES[*path], RULE_TEXTS[*text]),
        }
    }
}

fn full(house: &House, path: &[u8]) -> PathBuf {
    house.workspace.join(OsStr::from_bytes(path))
}

fn put(house: &House, path: &[u8], text: &str) {
    clear(house, path);
    fs::write(full(house, path), text).unwrap();
}

/// Nothing is at the path, and its folder is there.
fn clear(house: &House, path: &[u8]) {
    let path = full(house, path);
    remove(&path);
    let folder = path.parent().unwrap();
    for above in folder.ancestors().take_while(|above| **above != house.workspace) {
        if above.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(above).unwrap();
        }
    }
    fs::create_dir_all(folder).unwrap();
}

fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}
