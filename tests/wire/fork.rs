//! Forks that are cut off: by a SIGKILL at any moment, or by a disk that is full.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{get, new_session, post, prompt, try_call};
use crate::recording::short_turn;
use crate::server::{House, until};
use crate::sse::Stream;

const FILES: usize = 1500;

fn fill(workspace: &Path) {
    for n in 0..FILES {
        let folder = workspace.join(format!("folder{}", n % 10));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("file{n}")), format!("{n}\n").repeat(50)).unwrap();
    }
}

/// A session with a turn in it.
fn session(address: SocketAddr) -> String {
    let session = new_session(address);
    let mut facts = Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    prompt(address, &session);
    facts.fact("turn_ended");
    session
}

fn sessions(address: SocketAddr) -> Vec<Value> {
    get(address, "/v1/sessions?limit=100").expect(200)["sessions"].as_array().unwrap().clone()
}

/// The folders that forks have.
fn folders(house: &House) -> Vec<PathBuf> {
    let entries = fs::read_dir(house.data().join("forks")).into_iter().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn count(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
}

/// What there is are whole forks, each with its folder if it has one of its own, and no other folders.
fn assert_whole(house: &House, address: SocketAddr, parent: &str) -> usize {
    let forks: Vec<Value> = sessions(address).into_iter().filter(|it| it["id"] != parent).collect();
    let mut own = Vec::new();
    for fork in &forks {
        assert_eq!((&fork["parent"]["session"], &fork["turns"]), (&json!(parent), &json!(1)), "{fork}");
        let workspace = PathBuf::from(fork["workspace"].as_str().unwrap());
        if workspace != house.workspace().canonicalize().unwrap() {
            assert_eq!(count(&workspace), FILES, "{fork}");
            own.push(workspace.parent().unwrap().to_owned());
        }
    }
    own.sort();
    let real = |folder: PathBuf| folder.canonicalize().unwrap();
    assert_eq!(folders(house).into_iter().map(real).collect::<Vec<_>>(), own);
    forks.len()
}

#[test]
fn a_server_that_is_killed_while_it_forks_leaves_no_half_fork_and_no_folder() {
    for workspace in ["in_place", "own"] {
        let house = House::new();
        fill(&house.workspace());
        let agent = house.plays(&short_turn());
        let serve = || house.serve(&["--agent", &agent, "--pace", "max"]);
        let mut server = serve();
        let parent = session(server.address);
        let path = format!("/v1/sessions/{parent}/fork");
        let mut cut = 0;
        for round in 0..6_u64 {
            let (address, path, before) = (server.address, path.clone(), folders(&house));
            let body = json!({ "workspace": workspace }).to_string();
            let asking = thread::spawn(move || try_call(address, "POST", &path, &[], body.as_bytes()));
            if workspace == "own" {
                // From when there is a folder on, at some moment of the copying.
                until("the fork's folder", || (folders(&house).len() > before.len()).then_some(()));
            }
            thread::sleep(Duration::from_millis(round * if workspace == "own" { 12 } else { 4 }));
            server.kill();
            cut += u32::from(asking.join().unwrap().is_err());
            server = serve();
            until("the end of recovery", || sessions(server.address).iter().all(|it| it["busy"] != true).then_some(()));
            until("half forks to go", || (sessions(server.address).len() > folders(&house).len()).then_some(()));
            assert_whole(&house, server.address, &parent);
        }
        assert!(cut > 0, "{workspace}: every fork was done before the kill");
        let before = assert_whole(&house, server.address, &parent);
        post(server.address, &path, &json!({ "workspace": workspace })).expect(201);
        assert_eq!(assert_whole(&house, server.address, &parent), before + 1, "the next one works");
    }
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_fork_is_told_and_nothing_is_left() {
    let house = House::new();
    fs::create_dir(house.data()).unwrap();
    let mount = |options: &str| {
        Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(house.data()).output().unwrap()
    };
    let mounted = mount("size=64m");
    if !mounted.status.success() {
        eprintln!("skipped, no small disk can be had here: {}", String::from_utf8_lossy(&mounted.stderr));
        return;
    }
    let _unmounts = Unmounts(house.data());
    // Nothing that git could make smaller.
    let noise: Vec<u8> = (0..1_000_000_u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u8).collect();
    for n in 0..6 {
        fs::write(house.workspace().join(format!("file{n}")), &noise[n * 1000..]).unwrap();
    }
    let agent = house.plays(&short_turn());
    let server = house.serve(&["--agent", &agent, "--pace", "max"]);
    let parent = session(server.address);
    let path = format!("/v1/sessions/{parent}/fork");
    let used = Command::new("du").arg("-sk").arg(house.data()).output().unwrap();
    let used = String::from_utf8(used.stdout).unwrap();
    let used: u64 = used.split_whitespace().next().unwrap().parse().unwrap();
    // The rest of the disk goes to somebody else, but for a part of what the copy needs.
    assert!(mount(&format!("remount,size={}k", used + 3000)).status.success());

    let refused = post(server.address, &path, &json!({ "workspace": "own" }));
    let words = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(refused.status >= 500 && words.contains("see that the disk has room"), "{} {words}", refused.status);
    assert_eq!(folders(&house), [""; 0].map(PathBuf::from), "its files went");
    let is_alone = || sessions(server.address).iter().all(|it| it["id"] == json!(parent));
    assert!(is_alone(), "and so did the session: {:?}", sessions(server.address));

    assert!(mount("remount,size=64m").status.success());
    let forked = post(server.address, &path, &json!({ "workspace": "own" })).expect(201);
    let folder = PathBuf::from(forked["workspace"].as_str().unwrap());
    assert_eq!((count(&folder), fs::read(folder.join("file0")).unwrap().len()), (6, 1_000_000));
    drop(server);
}

struct Unmounts(PathBuf);

impl Drop for Unmounts {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
