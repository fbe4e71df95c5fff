//! Which stores there are, and what pruning takes from them: never what is needed, never what was saved meanwhile.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use tolka_facts::SessionId;
use tolka_workspace::checkpoint::{Policy, Pruned, Snapshot};
use tolka_workspace::{Save, Saved};

use crate::house::{BUDGET, Entry, House, git};
use crate::refusing::assert_passed;

const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
const BOUNDLESS: u64 = u64::MAX;

/// All that is not needed goes.
const NOW: Policy = Policy { keep_for: Duration::ZERO, most_bytes: BOUNDLESS };

fn no_more_than(most_bytes: u64) -> Policy {
    Policy { keep_for: FOR_EVER, most_bytes }
}

async fn save_for(house: &House, session: &str, words: &str) -> Saved {
    let session = SessionId::from(session);
    house.checkpoints.save(&house.workspace, &session, Save::within(BUDGET, words)).await.unwrap()
}

async fn prune(house: &House, policy: Policy, needed: &[&Saved]) -> Pruned {
    let needed: HashSet<&str> = needed.iter().map(|saved| saved.commit.as_str()).collect();
    house.checkpoints.prune(&policy, &move |it: &Snapshot| needed.contains(it.commit.as_str())).await.unwrap()
}

/// What a seed would not compress to nothing.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..bytes.div_ceil(8)).flat_map(|_| next()).take(bytes).collect()
}

fn on_disk(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.path(), entry.metadata().unwrap()))
        .map(|(path, found)| found.blocks() * 512 + if found.is_dir() { on_disk(&path) } else { 0 })
        .sum()
}

#[tokio::test]
async fn stores_tell_whose_they_are_and_what_is_in_them() {
    let mut house = House::new();
    assert_eq!(house.checkpoints.stores().await.unwrap(), []);
    assert!(!house.data.exists(), "looking makes nothing");
    house.write("file", "one");
    let first = save_for(&house, "ses_b", "Before: the first").await;
    house.write("file", "two");
    let second = save_for(&house, "ses_a", "Before: a|b\0 \"c\" über\nmore").await;
    house.reopen();
    let stores = house.checkpoints.stores().await.unwrap();
    let [store] = stores.as_slice() else { panic!("{stores:?}") };
    assert_eq!(store.workspace, house.workspace.canonicalize().unwrap());
    assert!(!store.is_orphan);
    assert_eq!(store.bytes, on_disk(&house.store()));
    let told: Vec<_> =
        store.snapshots.iter().map(|it| (it.commit.as_str(), it.session.as_str(), it.words.as_str())).collect();
    let words = "Before: a|b \"c\" über more";
    let expected = [(first.commit.as_str(), "ses_b", "Before: the first"), (second.commit.as_str(), "ses_a", words)];
    assert_eq!(told, expected);
    assert!(store.snapshots[0].taken < store.snapshots[1].taken);

    fs::remove_dir_all(&house.workspace).unwrap();
    assert!(house.checkpoints.stores().await.unwrap()[0].is_orphan);
}

#[tokio::test]
async fn what_is_too_old_goes_and_what_is_needed_stays() {
    for is_packed in [false, true] {
        let mut house = House::new();
        let mut saves = Vec::new();
        for n in 0..6 {
            house.write("file", noise(n, 40_000));
            house.write("same", "in all of them");
            saves.push(save_for(&house, "ses_a", &format!("Before: {n}")).await);
        }
        if is_packed {
            house.git(&["gc", "--quiet", "--prune=now"]);
            house.reopen();
        }
        let untouched = prune(&house, Policy { keep_for: FOR_EVER, most_bytes: BOUNDLESS }, &[]).await;
        assert_eq!(untouched, Pruned::default());
        let before = on_disk(&house.store());
        let needed = [&saves[1], &saves[5]];
        let commits: HashSet<String> = needed.iter().map(|it| it.commit.clone()).collect();
        let is_needed = move |it: &Snapshot| commits.contains(&it.commit);
        let expected = house.checkpoints.prunable(&NOW, &is_needed).await.unwrap();
        assert_eq!(on_disk(&house.store()), before, "asking removes nothing");
        let pruned = prune(&house, NOW, &needed).await;
        assert_eq!((pruned.snapshots, expected.snapshots), (4, 4));
        assert_eq!(pruned.bytes, before - on_disk(&house.store()));
        assert!(pruned.bytes > 120_000, "{pruned:?}");
        assert!(expected.bytes.abs_diff(pruned.bytes) < 60_000, "{expected:?} was said, {pruned:?} it was");
        let mut left = vec![saves[1].commit.clone(), saves[5].commit.clone()];
        left.sort();
        assert_eq!(house.refs(), left);
        assert_eq!(house.snapshot(&saves[1].commit)[b"file".as_slice()], Entry::File(noise(1, 40_000)));
        house.check();
        house.write("file", noise(0, 40_000));
        let again = save_for(&house, "ses_a", "again").await;
        assert_eq!(house.snapshot(&again.commit)[b"file".as_slice()], Entry::File(noise(0, 40_000)));
        house.check();
    }
}

#[tokio::test]
async fn a_store_in_which_nothing_is_left_goes_and_an_orphan_goes_by_age() {
    let mut house = House::new();
    house.write("file", "x");
    let saved = save_for(&house, "ses_a", "x").await;
    house.reopen();
    fs::remove_dir_all(&house.workspace).unwrap();
    assert_eq!(prune(&house, no_more_than(BOUNDLESS), &[]).await, Pruned::default(), "it is not old");
    assert_eq!(prune(&house, NOW, &[&saved]).await, Pruned::default(), "it is needed");
    assert_eq!(prune(&house, NOW, &[]).await.snapshots, 1);
    assert_eq!(fs::read_dir(house.data.join("checkpoints")).unwrap().count(), 0);
    assert_eq!(house.checkpoints.stores().await.unwrap(), []);
}

/// Each turn writes a new large file over the old one.
#[tokio::test]
async fn many_turns_with_much_churn_stay_within_the_size() {
    const MOST: u64 = 3 << 20;
    const PIECE: usize = 300_000;
    let house = House::new();
    for n in 0..20 {
        house.write(format!("src/small{n}"), format!("{n}"));
    }
    let base = save_for(&house, "ses_a", "base").await;
    let mut last = base.clone();
    let mut highest = 0;
    for turn in 0..40 {
        house.write("build.log", noise(turn, PIECE));
        last = save_for(&house, "ses_a", &format!("Before: {turn}")).await;
        prune(&house, no_more_than(MOST), &[&base]).await;
        highest = highest.max(on_disk(&house.store()));
        assert!(highest <= MOST, "{highest} after turn {turn}");
    }
    assert!(highest > MOST / 2, "no more goes than has to: {highest}");
    let refs = house.refs();
    assert!(refs.contains(&base.commit) && refs.contains(&last.commit), "{refs:?}");
    assert!(refs.len() > 4, "{refs:?}");
    let stores = house.checkpoints.stores().await.unwrap();
    let words: Vec<&str> = stores[0].snapshots.iter().map(|it| it.words.as_str()).collect();
    let latest: Vec<String> = (41 - words.len()..40).map(|turn| format!("Before: {turn}")).collect();
    assert_eq!(words[0], "base");
    assert_eq!(words[1..], latest, "the oldest went");
    house.check();
}

#[tokio::test]
async fn what_is_needed_stays_though_it_is_too_much() {
    let house = House::new();
    house.write("file", noise(1, 200_000));
    let first = save_for(&house, "ses_a", "x").await;
    house.write("file", noise(2, 200_000));
    let second = save_for(&house, "ses_a", "x").await;
    let pruned = prune(&house, no_more_than(1000), &[&first, &second]).await;
    assert_eq!(pruned.snapshots, 0);
    assert_eq!(house.refs().len(), 2);
    house.check();
}

/// As those that seeding links from the workspace's own repository: with all of its history.
#[tokio::test]
async fn packs_go_when_little_in_them_is_needed() {
    let mut house = House::new();
    house.write("kept", noise(0, 30_000));
    let kept = save_for(&house, "ses_a", "kept").await;
    for n in 1..20 {
        house.write("churn", noise(n, 30_000));
        save_for(&house, "ses_a", "churn").await;
    }
    fs::remove_file(house.workspace.join("churn")).unwrap();
    save_for(&house, "ses_a", "churn").await;
    house.git(&["gc", "--quiet", "--prune=now"]);
    let pack = |house: &House| {
        let files = fs::read_dir(house.store().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|it| it == "pack"))
            .map(|path| fs::metadata(path).unwrap().len())
            .collect::<Vec<_>>()
    };
    // Half of one, which a killed git left.
    fs::write(house.store().join("objects/pack/tmp_pack_x1Y2z3"), noise(7, 50_000)).unwrap();
    fs::write(house.store().join("objects/pack/pack-1234.pack"), noise(8, 50_000)).unwrap();
    house.reopen();
    assert!(pack(&house).iter().sum::<u64>() > 600_000);
    prune(&house, NOW, &[&kept]).await;
    let packs = pack(&house);
    assert!(packs.len() == 1 && packs[0] < 40_000, "{packs:?}");
    assert!(on_disk(&house.store()) < 120_000);
    assert_eq!(house.snapshot(&kept.commit)[b"kept".as_slice()], Entry::File(noise(0, 30_000)));
    house.check();
    // One in which nothing is needed goes whole.
    fs::remove_file(house.workspace.join("kept")).unwrap();
    house.write("other", "x");
    let other = save_for(&house, "ses_a", "other").await;
    prune(&house, NOW, &[&other]).await;
    assert!(pack(&house).is_empty());
    house.check();
}

/// The kernel stops a write that is too long, as on a disk that is nearly full; so the test is run where it can be told to.
#[test]
fn making_room_needs_little_room() {
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "space::where_little_can_be_written", "--ignored"]);
    assert_passed(&child.output().unwrap());
}

#[tokio::test]
#[ignore = "runs inside making_room_needs_little_room"]
async fn where_little_can_be_written() {
    let mut house = House::new();
    house.write("kept", noise(0, 30_000));
    let kept = save_for(&house, "ses_a", "kept").await;
    for n in 1..20 {
        house.write("churn", noise(n, 30_000));
        save_for(&house, "ses_a", "churn").await;
        // In one pack, or in many.
        if n < 10 {
            house.git(&["repack", "-a", "-d", "--quiet"]);
        }
    }
    house.write("churn", "");
    save_for(&house, "ses_a", "churn").await;
    house.reopen();
    let before = on_disk(&house.store());
    assert!(before > 600_000);
    // Of what is there a tenth is needed, and no more may be written in one piece.
    let little = Rlimit { current: Some(60_000), maximum: None };
    setrlimit(Resource::Fsize, little).unwrap();
    fs::write(house.data.join("long"), noise(1, 60_001)).unwrap_err();
    prune(&house, NOW, &[&kept]).await;
    let after = on_disk(&house.store());
    assert!(after < before / 3, "{before} {after}");
    assert_eq!(house.snapshot(&kept.commit)[b"kept".as_slice()], Entry::File(noise(0, 30_000)));
    house.check();
}

#[tokio::test]
async fn locks_that_killed_gits_left_hold_nothing_up() {
    let mut house = House::new();
    house.write("file", "one");
    let first = save_for(&house, "ses_a", "x").await;
    house.write("file", "two");
    let second = save_for(&house, "ses_a", "x").await;
    house.git(&["pack-refs", "--all"]);
    for lock in ["packed-refs.lock".to_owned(), format!("refs/tolka/ses_a/{}.lock", first.commit)] {
        let path = house.store().join(lock);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let checkpoints = house.data.join("checkpoints");
    let (name, left) = (house.store(), ["gone", "new-1-2"]);
    house.reopen();
    for left in left {
        let folder = name.with_added_extension(left);
        fs::create_dir(&folder).unwrap();
        git(&folder, &["init", "--quiet", "--bare"]);
    }
    prune(&house, NOW, &[&second]).await;
    assert_eq!(fs::read_dir(checkpoints).unwrap().count(), 1);
    assert_eq!(house.refs(), [second.commit]);
    house.check();
}

/// Stopped at any moment, and met by saves at any moment.
#[tokio::test(flavor = "multi_thread")]
async fn pruning_that_is_stopped_or_met_by_a_save_leaves_a_sound_store() {
    let house = House::new();
    house.write("base", noise(0, 10_000));
    let base = save_for(&house, "ses_base", "base").await;
    let needed = [&base];
    for round in 0..40_u64 {
        for n in 0..3 {
            house.write(format!("d/{n}"), noise(round * 3 + n, 20_000));
            save_for(&house, "ses_a", "x").await;
        }
        if round % 4 == 0 {
            house.git(&["repack", "-a", "-d", "-q"]);
        }
        let stopped = tokio::time::timeout(Duration::from_micros(round * 1_500), prune(&house, NOW, &needed));
        if round % 2 == 0 {
            let _ = stopped.await;
            house.check();
        } else {
            house.write("d/0", noise(round + 1000, 20_000));
            let (_, saved) = tokio::join!(stopped, save_for(&house, "ses_b", "beside"));
            let is_there = house.refs().contains(&saved.commit);
            assert!(
                !is_there
                    || house.snapshot(&saved.commit)[b"d/0".as_slice()] == Entry::File(noise(round + 1000, 20_000))
            );
            house.check();
        }
        assert_eq!(house.snapshot(&base.commit)[b"base".as_slice()], Entry::File(noise(0, 10_000)));
    }
    prune(&house, NOW, &[&base]).await;
    assert_eq!(house.refs(), [base.commit]);
    house.check();
}
