//! What goes wrong must be a failed checkpoint: never a wrong one, and never the end of all later ones.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tolka_workspace::checkpoint::Caps;
use tolka_workspace::{CheckpointError, Checkpoints, Save};

use crate::house::{BUDGET, Entry, House, session, text};

/// Takes git longer than any test waits: it has to read all of it.
const ENDLESS: u64 = 1 << 42;

fn endless() -> House {
    let house = House::with_caps(Caps { largest_file: u64::MAX, ..Caps::default() });
    fs::File::create(house.workspace.join("endless")).unwrap().set_len(ENDLESS).unwrap();
    house.write("a", "a");
    house
}

fn index_locks(house: &House) -> Vec<PathBuf> {
    let Ok(stores) = fs::read_dir(house.data.join("checkpoints")) else { return Vec::new() };
    let files = stores.flat_map(|store| fs::read_dir(store.unwrap().path()).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().ends_with(".lock")).collect()
}

#[tokio::test]
async fn a_file_that_git_cannot_store_fails_the_save_and_leaves_no_commit() {
    let house = House::new();
    house.write("a", "one");
    let first = house.save().await;
    // The object of `hello` cannot be written while its folder is a file, as on a disk that is full or damaged.
    let blocked = house.store().join("objects/b6");
    fs::write(&blocked, "in the way").unwrap();
    house.write("a", "hello");
    let error = house.try_save().await.unwrap_err();
    assert!(matches!(&error, CheckpointError::Git { .. }), "{error}");
    assert_eq!(house.refs(), std::slice::from_ref(&first.commit));
    // Another file does not make it pass with the old content of the first.
    house.write("b", "two");
    house.try_save().await.unwrap_err();
    assert_eq!(house.refs(), [first.commit]);

    fs::remove_file(blocked).unwrap();
    let saved = house.save().await;
    assert_eq!(house.snapshot(&saved.commit)[b"a".as_slice()], Entry::File(b"hello".to_vec()));
    house.check();
}

#[tokio::test]
async fn a_spent_budget_kills_git_and_the_next_save_is_whole() {
    let mut house = endless();
    let budget = Duration::from_millis(300);
    let error = house.checkpoints.save(&house.workspace, &session(), Save::within(budget, "x")).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Slow { .. }), "{error}");
    assert_eq!(running_gits(&house), 0);
    fs::remove_file(house.workspace.join("endless")).unwrap();
    assert_eq!(house.paths(&house.save().await.commit), ["a"]);
    house.reopen();
    assert_eq!(house.paths(&house.save().await.commit), ["a"]);
    house.check();
}

/// How many files the store knows already.
fn kept(house: &House) -> usize {
    let Ok(mut stores) = fs::read_dir(house.data.join("checkpoints")) else { return 0 };
    let Some(files) = stores.next().and_then(|store| fs::read_dir(store.unwrap().path()).ok()) else { return 0 };
    let is_index = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("index.") && !name.ends_with(".lock")
    };
    let Some(index) = files.map(|file| file.unwrap().path()).find(is_index) else { return 0 };
    // The last of three words in its header.
    fs::read(index).map_or(0, |index| u32::from_be_bytes(index[8..12].try_into().unwrap()) as usize)
}

/// Each save is stopped as soon as it has got further than the one before.
#[tokio::test]
async fn saves_that_are_stopped_keep_what_they_took_in_until_one_is_done() {
    const FILES: u64 = 4;
    const SIZE: u64 = 9 << 20;
    let house = House::new();
    for n in 0..FILES {
        // Two of them are more than git is given at once.
        fs::File::create(house.workspace.join(format!("f{n}"))).unwrap().set_len(SIZE + n).unwrap();
    }
    let mut stops = Vec::new();
    let saved = loop {
        let before = kept(&house);
        assert!(stops.last().is_none_or(|stop| before >= *stop), "{before} after {stops:?}");
        let further = async {
            while kept(&house) <= before {
                tokio::task::yield_now().await;
            }
            kept(&house)
        };
        tokio::select! {
            // First, so that the next step is not begun when this one is seen to be done.
            biased;
            now = further => stops.push(now),
            saved = house.try_save() => break saved.unwrap(),
        }
    };
    assert_eq!(stops.first(), Some(&1), "{stops:?}");
    assert_eq!(saved.files, FILES);
    let sizes = text(house.git(&["ls-tree", "-r", "--format=%(path) %(objectsize)", &saved.commit]));
    let expected = (0..FILES).map(|n| format!("f{n} {}", SIZE + n)).collect::<Vec<_>>();
    assert_eq!(sizes.lines().collect::<Vec<_>>(), expected);
}

/// A budget may be too small for what git is given at once when it goes well: it begins with little.
#[tokio::test]
async fn a_first_snapshot_gets_further_with_each_try_however_soon_it_is_stopped() {
    const FILES: usize = 1_500;
    let house = House::new();
    for n in 0..FILES {
        house.write(format!("f{n}"), "");
    }
    let mut stops = Vec::new();
    let saved = loop {
        let before = kept(&house);
        let further = async {
            while kept(&house) <= before {
                tokio::task::yield_now().await;
            }
            kept(&house)
        };
        tokio::select! {
            // First, so that the next step is not begun when this one is seen to be done.
            biased;
            now = further => stops.push(now),
            saved = house.try_save() => break saved.unwrap(),
        }
    };
    assert!(stops[0] <= 250 && stops.is_sorted(), "{stops:?}");
    assert!(stops.len() > 2, "{stops:?}");
    assert_eq!(saved.files, FILES as u64);
    house.check();
}

#[tokio::test]
async fn a_save_that_nobody_waits_for_ends_and_the_next_one_is_whole() {
    let house = endless();
    for _ in 0..3 {
        tokio::select! {
            saved = house.try_save() => panic!("{saved:?}"),
            // In the middle: git holds its index.
            () = async { while index_locks(&house).is_empty() { tokio::task::yield_now().await } } => {}
        }
    }
    fs::remove_file(house.workspace.join("endless")).unwrap();
    assert_eq!(house.paths(&house.save().await.commit), ["a"]);
    assert_eq!(running_gits(&house), 0);
    let objects = fs::read_dir(house.store().join("objects")).unwrap();
    let left =
        objects.map(|entry| entry.unwrap().file_name()).filter(|name| name.to_str().unwrap().starts_with("tmp_"));
    assert_eq!(left.count(), 0, "half of an object would lie there for ever");
    house.check();
}

/// Also the making of the store may be stopped, at any moment of it.
#[tokio::test]
async fn a_store_whose_making_was_stopped_is_made_again() {
    for micros in (0..6_000).step_by(500) {
        let house = House::new();
        house.write("a", "a");
        let _ = tokio::time::timeout(Duration::from_micros(micros), house.try_save()).await;
        let _ = house
            .checkpoints
            .save(&house.workspace, &session(), Save::within(Duration::from_micros(micros), "x"))
            .await;
        assert_eq!(house.paths(&house.save().await.commit), ["a"]);
        house.check();
    }
}

/// Processes of git that work in this house.
fn running_gits(house: &House) -> usize {
    let processes = fs::read_dir("/proc").into_iter().flatten().map(|entry| entry.unwrap().path());
    let in_house = |folder: PathBuf| fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd == house.workspace);
    processes.filter(|folder| in_house(folder.clone())).count()
}

#[tokio::test]
async fn what_a_killed_run_left_behind_blocks_nobody() {
    let mut house = House::new();
    house.write("a", "a");
    house.save().await;
    let left = |house: &House| {
        for entry in fs::read_dir(house.store()).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.file_name().unwrap().to_str().unwrap().starts_with("index.") {
                fs::write(entry.with_added_extension("lock"), "half").unwrap();
            }
        }
    };
    left(&house);
    house.write("b", "b");
    assert_eq!(house.save().await.files, 2);
    left(&house);
    house.reopen();
    house.write("c", "c");
    assert_eq!(house.save().await.files, 3);
    assert!(index_locks(&house).is_empty());
    house.check();
}

#[tokio::test]
async fn a_damaged_index_is_made_anew() {
    let mut house = House::new();
    house.write("a", "a");
    for garbage in ["", "garbage that is no index at all"] {
        house.save().await;
        for entry in fs::read_dir(house.store()).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.file_name().unwrap().to_str().unwrap().starts_with("index.") {
                fs::write(entry, garbage).unwrap();
            }
        }
        house.reopen();
        assert_eq!(house.paths(&house.save().await.commit), ["a"]);
    }
    house.check();
}

#[tokio::test]
async fn saves_at_once_come_one_after_another() {
    let house = House::new();
    for n in 0..50 {
        house.write(format!("f{n}"), format!("{n}"));
    }
    let (a, b, c, d) = tokio::join!(house.save(), house.save(), house.save(), house.save());
    let mut commits = vec![a.commit, b.commit, c.commit, d.commit];
    commits.sort();
    assert_eq!(house.refs(), commits);
    assert!(commits.iter().all(|commit| house.tree(commit) == house.tree(&commits[0])));
    house.check();
}

/// Those who wait together share the work, but nobody gets a snapshot from before he asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_save_among_many_still_sees_what_came_before_it() {
    let house = House::new();
    let others = async {
        loop {
            tokio::join!(house.save(), house.save(), house.save());
        }
    };
    let edits = async {
        for round in 0..20_u8 {
            house.write("file", [b'a' + round]);
            let commit = house.save().await.commit;
            assert_eq!(house.snapshot(&commit)[b"file".as_slice()], Entry::File(vec![b'a' + round]));
        }
    };
    tokio::select! {
        () = edits => {}
        () = others => {}
    }
    house.check();
}

#[tokio::test]
async fn two_workspaces_have_two_stores() {
    let house = House::new();
    house.write("one/a", "a");
    house.write("two/b", "b");
    let checkpoints = Checkpoints::new(&house.data);
    for name in ["one", "two"] {
        assert_eq!(
            checkpoints.save(&house.workspace.join(name), &session(), Save::within(BUDGET, "x")).await.unwrap().files,
            1
        );
    }
    assert_eq!(fs::read_dir(house.data.join("checkpoints")).unwrap().count(), 2);
}

#[tokio::test]
async fn pipes_and_sockets_are_no_content() {
    let house = House::new();
    house.write("a", "a");
    house.write("b", "b");
    let made = std::process::Command::new("mkfifo").arg(house.workspace.join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(house.workspace.join("socket")).unwrap();
    assert_eq!(house.paths(&house.save().await.commit), ["a", "b"]);
    fs::remove_file(house.workspace.join("a")).unwrap();
    let _another = std::os::unix::net::UnixListener::bind(house.workspace.join("a")).unwrap();
    assert_eq!(house.paths(&house.save().await.commit), ["b"]);
}

/// A file system that hangs holds every thread that touches it: here all that there are for such work are held.
#[test]
fn a_file_system_that_hangs_stops_neither_the_runtime_nor_the_clock() {
    let mut building = tokio::runtime::Builder::new_current_thread();
    let runtime = building.enable_all().max_blocking_threads(1).build().unwrap();
    let house = House::new();
    house.write("a", "a");
    let (release, held) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let hanging = tokio::task::spawn_blocking(move || held.recv());
        let budget = Duration::from_millis(50);
        let error = house.checkpoints.save(&house.workspace, &session(), Save::within(budget, "x")).await.unwrap_err();
        assert!(matches!(error, CheckpointError::Slow { .. }), "{error}");
        drop(release);
        hanging.await.unwrap().unwrap_err();
        assert_eq!(house.paths(&house.save().await.commit), ["a"]);
    });
}

/// A git that a killed Tolka left behind puts its index in place while the next one begins.
#[tokio::test(flavor = "multi_thread")]
async fn indices_that_come_and_go_while_a_store_is_opened_keep_nobody_from_saving() {
    let mut house = House::new();
    house.write("a", "one");
    let first = house.save().await;
    let store = house.store();
    let stop = Arc::new(AtomicBool::new(false));
    let restless: Vec<_> = (0..2)
        .map(|left| {
            let (store, stop) = (store.clone(), stop.clone());
            std::thread::spawn(move || {
                let (lock, index) = (store.join(format!("index.{left}.lock")), store.join(format!("index.{left}")));
                while !stop.load(Ordering::Relaxed) {
                    // Others may have removed it.
                    let _ = fs::write(&lock, "").and_then(|()| fs::rename(&lock, &index));
                    let _ = fs::remove_file(&index);
                }
            })
        })
        .collect();
    for _ in 0..30 {
        house.reopen();
        assert_eq!(house.tree(&house.save().await.commit), house.tree(&first.commit));
    }
    stop.store(true, Ordering::Relaxed);
    restless.into_iter().for_each(|thread| thread.join().unwrap());
}

#[tokio::test]
async fn an_object_that_is_gone_is_stored_again() {
    let house = House::new();
    house.write("a", "kept");
    house.write("b", "before");
    let first = house.save().await;
    let name = String::from_utf8(house.git(&["rev-parse", &format!("{}:a", first.commit)])).unwrap();
    let (folder, file) = name.trim().split_at(2);
    fs::remove_file(house.store().join("objects").join(folder).join(file)).unwrap();
    house.write("b", "after");
    let saved = house.save().await;
    assert_eq!(saved.files, 2);
    assert_eq!(house.git(&["cat-file", "blob", &format!("{}:a", saved.commit)]), b"kept");
    house.check();
}
