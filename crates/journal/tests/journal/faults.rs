//! Processes that die, folders that are taken, disks that are full.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use tolka_facts::{Hash, SessionId};
use tolka_journal::{Append, Journal, JournalError, Owner, Scope, Sqlite, SqliteOptions};

use crate::common::{Dice, batch, deleted, fact, facts_of, follow, head, open, read_all, scope, session, told};

const ROLE: &str = "TOLKA_TEST_ROLE";
const FOLDER: &str = "TOLKA_TEST_FOLDER";

/// This test binary again, in a role; see [`child`].
fn spawn(role: &str, folder: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::child", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// Not a test: what the other process does when one of the tests below starts it.
#[test]
fn child() {
    let (Ok(role), Some(folder)) = (std::env::var(ROLE), std::env::var_os(FOLDER)) else { return };
    let folder = PathBuf::from(folder);
    match role.as_str() {
        "holds" => {
            let journal =
                Sqlite::open(&SqliteOptions { owner: "starting".into(), ..SqliteOptions::new(folder) }).unwrap();
            journal.announce("http://127.0.0.1:4096").unwrap();
            println!("\nready");
            // Until the parent is gone, should it not kill us.
            let _ = std::io::stdin().read(&mut [0]);
        }
        "writes" => tokio::runtime::Runtime::new().unwrap().block_on(write_for_ever(&folder)),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_folder_in_use_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = || match Sqlite::open(&SqliteOptions::new(dir.path())) {
        Err(JournalError::InUse { owner, .. }) => owner,
        other => panic!("{other:?}"),
    };
    let journal = Sqlite::open(&SqliteOptions { owner: "a test".into(), ..SqliteOptions::new(dir.path()) }).unwrap();
    assert_eq!(refusal(), format!("process {} (a test)", std::process::id()));
    drop(journal);
    assert_eq!(Sqlite::owner_of(dir.path()).unwrap(), None);
    assert_eq!(Sqlite::owner_of(&dir.path().join("none")).unwrap(), None);

    let (mut child, mut lines) = spawn("holds", dir.path());
    assert!(lines.any(|line| line.unwrap() == "ready"));
    let owner = Owner { pid: child.id(), text: "http://127.0.0.1:4096".into() };
    assert_eq!(Sqlite::owner_of(dir.path()).unwrap(), Some(owner.clone()));
    assert_eq!(refusal(), owner.to_string());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(Sqlite::owner_of(dir.path()).unwrap(), None, "what a dead process said counts for nothing");
    open(dir.path()).append(batch(&session("a"), 1..=1)).await.unwrap();
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (file, folder) = (dir.path().join("file"), dir.path().join("folder"));
    std::fs::write(&file, "a note").unwrap();
    std::fs::create_dir_all(folder.join("journal.db")).unwrap();
    for path in [&file, &file.join("below"), &folder] {
        let Err(error) = Sqlite::open(&SqliteOptions::new(path)) else { panic!("{path:?} was opened") };
        let (told, path) = (error.to_string(), path.display());
        assert!(told.starts_with(&format!("the data folder {path} cannot be used: ")), "{told}");
        assert!(told.ends_with("; make it writable or choose another with --data"), "{told}");
    }
    let asked = Sqlite::owner_of(&file).unwrap_err().to_string();
    assert!(asked.starts_with(&format!("the data folder {} cannot be used: ", file.display())), "{asked}");
}

/// A batch of `count` facts says so in each of them, so that half a batch can be told.
fn numbered(session: &SessionId, first: u64, count: u64) -> Append {
    let facts = (0..count).map(|n| fact(session, first + n, &format!("{n} of {count}"))).collect();
    Append { facts, ..Append::default() }
}

/// Tells on stdout what was acknowledged and what a reader has seen.
async fn write_for_ever(folder: &Path) {
    let journal = open(folder);
    let mut tasks = tokio::task::JoinSet::new();
    for name in ["a", "b", "c"] {
        let (session, writer, reader) = (session(name), Arc::clone(&journal), Arc::clone(&journal));
        let scope = scope(&session);
        let head = *journal.watch(&scope).borrow();
        tasks.spawn(async move {
            let mut dice = Dice(head);
            let mut last = head;
            loop {
                let count = 1 + dice.roll(20);
                writer.append(numbered(&session, last + 1, count)).await.unwrap();
                last += count;
                println!("\nack {session} {last}");
            }
        });
        tasks.spawn(async move {
            let mut last = head;
            loop {
                last = follow(&*reader, &scope, last, 1).await.last().unwrap().place;
                println!("\nsaw ses_{name} {last}");
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(23);
    let mut told = BTreeMap::<String, u64>::new();
    for round in 0..15 {
        let (mut child, mut lines) = spawn("writes", dir.path());
        let mut read = |lines: &mut dyn Iterator<Item = std::io::Result<String>>| {
            for line in lines {
                // The last line of a killed process may be half a line.
                let line = line.unwrap();
                if let [what @ ("ack" | "saw"), session, seq] = line.split(' ').collect::<Vec<_>>()[..]
                    && let Ok(seq) = seq.parse::<u64>()
                {
                    let last = told.entry(format!("{what} {session}")).or_default();
                    *last = seq.max(*last);
                }
            }
        };
        read(&mut lines.by_ref().take(20 + dice.roll(600) as usize));
        child.kill().unwrap();
        read(&mut lines);
        child.wait().unwrap();

        let journal = open(dir.path());
        for (who, last) in &told {
            let session = SessionId::from(&who[4..]);
            let found = read_all(&*journal, &scope(&session), 0).await.unwrap();
            assert!(found.len() as u64 >= *last, "round {round}: {who} {last}, and {} are there", found.len());
            let mut rest = &facts_of(&found)[..];
            while let [first, ..] = rest {
                let json = String::from_utf8(first.to_json()).unwrap();
                let count = json.split("0 of ").nth(1).and_then(|s| s.split('"').next()).unwrap().parse().unwrap();
                let batch = numbered(&session, first.seq, count).facts;
                let stored = rest.get(..batch.len()).expect("half a batch");
                assert!(stored.iter().zip(&batch).all(|(a, b)| a.event == b.event && a.seq == b.seq));
                rest = &rest[batch.len()..];
            }
        }
    }
    assert_eq!(told.len(), 6, "{told:?}");
}

#[tokio::test]
async fn a_quota_is_a_full_disk_until_something_is_purged() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions { max_bytes: Some(1_000_000), ..SqliteOptions::new(dir.path()) };
    let journal = Sqlite::open(&options).unwrap();
    let (old, new, text) = (session("old"), session("new"), "x".repeat(10_000));
    let facts = (1..=40).map(|seq| fact(&old, seq, &text)).collect();
    journal.append(Append { facts, head: Some(deleted(head(&old, "", 1))), ..Append::default() }).await.unwrap();
    let one = |seq| Append { facts: vec![fact(&new, seq, &text)], ..Append::default() };
    let mut last = 0;
    let error = loop {
        match journal.append(one(last + 1)).await {
            Ok(()) => last += 1,
            Err(error) => break error,
        }
        assert!(last < 100);
    };
    assert!(matches!(error, JournalError::DiskFull { .. }), "{error}");
    assert_eq!(*journal.watch(&scope(&new)).borrow(), last, "nothing of it is visible");
    assert_eq!(journal.recent(&scope(&new), last, 9), Some(vec![]));
    assert_eq!(read_all(&*journal, &scope(&new), 0).await.unwrap().len() as u64, last);

    assert_eq!(journal.purge(&old).await.unwrap().facts, 40);
    journal.append(one(last + 1)).await.unwrap();
}

#[tokio::test]
async fn what_does_not_fit_harms_nobody_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions { max_bytes: Some(2_000_000), ..SqliteOptions::new(dir.path()) };
    let journal = Sqlite::open(&options).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..60 {
        let (journal, session) = (Arc::clone(&journal), session(&n.to_string()));
        tasks.spawn(async move {
            let content = if n % 10 == 0 { vec![1; 3_000_000] } else { vec![n; 10] };
            let blobs = vec![(Hash::of(&content), content)];
            (n, journal.append(Append { blobs, ..batch(&session, 1..=2) }).await)
        });
    }
    while let Some(done) = tasks.join_next().await {
        match done.unwrap() {
            (n, Ok(())) => assert_ne!(n % 10, 0),
            (n, Err(JournalError::DiskFull { .. })) => assert_eq!(n % 10, 0),
            (n, Err(other)) => panic!("{n}: {other}"),
        }
    }
    assert_eq!(read_all(&*journal, &Scope::All, 0).await.unwrap().len(), 54 * 2);
}

/// A disk of its own, as small as asked for.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount(size: &str) -> Result<Disk, String> {
        let dir = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path())
            .output();
        match mount {
            Ok(output) if output.status.success() => Ok(Disk(dir)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_survived() {
    let disk = match Disk::mount("3m") {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped, for want of a disk to fill: {reason}"),
    };
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![1; 1_500_000]).unwrap();
    let folder = disk.0.path().join("data");
    let (journal, a, text) = (open(&folder), session("a"), "x".repeat(20_000));
    journal.append(told(&a, 1..=1, head(&a, "/w", 1))).await.unwrap();
    let one = |seq| Append { facts: vec![fact(&a, seq, &text)], ..Append::default() };
    let mut last = 1;
    let mut failures = 0;
    // Several times: the first failure must not spoil the log for the next.
    while failures < 5 {
        match journal.append(one(last + 1)).await {
            Ok(()) => last += 1,
            Err(JournalError::DiskFull { .. }) => failures += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(last < 500);
    }
    assert_eq!(read_all(&*journal, &scope(&a), 0).await.unwrap().len() as u64, last);
    std::fs::remove_file(&ballast).unwrap();
    for _ in 0..10 {
        journal.append(one(last + 1)).await.unwrap();
        last += 1;
    }
    journal.close();
    let journal = open(&folder);
    assert_eq!(read_all(&*journal, &scope(&a), 0).await.unwrap().len() as u64, last);
    journal.close();
}
