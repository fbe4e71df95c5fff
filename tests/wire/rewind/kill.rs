//! SIGKILL at any moment of a snapshot or a restore: the folder is as before or as after, the store is sound, and it goes on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::stage::{Rewinds, Stage, bash, prompts, put, take_up};
use super::tree::{Tree, assert_same, differences, repository};
use crate::http::try_call;
use crate::kill::{Chance, number};
use crate::native::stage::Talk;
use crate::server::free_port;

const FILES: usize = 400;

/// A person's repository, and a server that is killed there.
struct Peril {
    kills: u64,
    chance: Chance,
    stage: Stage,
    folder: PathBuf,
    /// All that is in their `.git`.
    own: Tree,
    /// The same for every server, so that clients find it.
    port: u16,
}

impl Peril {
    fn staged(kills: u64) -> Self {
        let seed = number("TOLKA_SEED", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
        let kills = number("TOLKA_KILLS", kills);
        println!("{kills} kills, TOLKA_SEED={seed}");
        let stage = Stage::set();
        let folder = stage.workspace();
        (0..FILES).for_each(|n| put(&folder, format!("{}/{n}", n % 20), &format!("file {n}\n")));
        stage.commit_all();
        let own = repository(&folder);
        Peril { kills, chance: Chance(seed), stage, folder, own, port: free_port() }
    }
}

#[test]
fn a_kill_in_a_restore_leaves_the_folder_as_before_or_as_after() {
    let Peril { kills, mut chance, stage, folder, own, port } = Peril::staged(25);
    let mut server = stage.serve_at(port);
    let mut talk = Talk::begin(server.address);
    let before = stage.tree();
    stage.turn(
        &mut talk,
        vec![bash(
            "for f in */*; do echo changed >> $f; done; mkdir new; for n in $(seq 200); do echo $n > new/$n; done",
        )],
    );
    let after = stage.tree();
    assert!(differences(&before, &after).len() >= FILES + 200);
    let first = prompts(&talk)[0].clone();
    let (mut done, mut not_done, mut cut) = (0, 0, 0);
    let mut is_back = false;
    // As long as one takes here, when nobody cuts it off.
    let began = Instant::now();
    talk.rewind(&first, "both");
    let longest = u64::try_from(began.elapsed().as_millis()).unwrap() + 50;
    talk.unrewind();
    for _ in 0..kills {
        let (path, body) = match is_back {
            false => ("rewind", json!({ "message": first, "what": "both" })),
            true => ("unrewind", json!({})),
        };
        let (address, path) = (server.address, format!("/v1/sessions/{}/{path}", talk.session));
        let asking = std::thread::spawn(move || {
            try_call(address, "POST", &path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
        });
        // It takes most of its time before it touches anything.
        std::thread::sleep(Duration::from_millis(chance.below(longest)));
        server.kill();
        let answered = asking.join().unwrap().is_ok_and(|answer| answer.status == 200);
        let left = stage.tree();
        cut += usize::from(left != before && left != after);
        server = stage.serve_at(port);
        talk = take_up(&server, talk.session);
        let is = stage.tree();
        let went = is == if is_back { before.clone() } else { after.clone() };
        let (went, expected) = match went {
            true => (false, &is),
            false => (true, if is_back { &after } else { &before }),
        };
        assert_same(&is, expected, "neither as before nor as after");
        assert!(went || !answered, "what was answered is done");
        is_back ^= went;
        if went {
            done += 1;
        } else {
            not_done += 1;
        }
        assert_same(&repository(&folder), &own, "the person's repository");
    }
    stage.check_stores();
    let resumed = talk.told("rewind_started").len();
    println!(
        "{done} were finished, {not_done} had not begun; {cut} were cut off in the middle and finished at the next start"
    );
    assert!(cut > 0 && resumed >= done, "no kill hit a restore; the moments are chosen badly");
    // It goes on.
    if is_back {
        talk.unrewind();
    }
    assert_same(&stage.tree(), &after, "in the end");
    stage.turn(&mut talk, vec![bash("echo more > more")]);
    assert!(folder.join("more").exists());
}

#[test]
fn a_kill_in_a_snapshot_leaves_a_sound_store() {
    let Peril { kills, mut chance, stage, folder, own, port } = Peril::staged(15);
    let mut session = None;
    for n in 0..kills {
        (0..50).for_each(|f| put(&folder, format!("round/{f}"), &format!("{n} {f}\n")));
        let server = stage.serve_at(port);
        let talk = match session.take() {
            Some(session) => Talk::take_up(server.address, session),
            None => Talk::begin(server.address),
        };
        stage.rehearse(vec![bash("echo by the agent > agent")]);
        talk.prompt("Go on.");
        std::thread::sleep(Duration::from_millis(chance.below(250)));
        server.kill();
        session = Some(talk.session);
        assert_same(&repository(&folder), &own, "the person's repository");
    }
    let server = stage.serve_at(port);
    let mut talk = take_up(&server, session.unwrap());
    stage.check_stores();
    stage.turn(&mut talk, vec![bash("echo at last > agent")]);
    let started = talk.told("turn_started").last().unwrap()["checkpoint"].clone();
    assert!(started.is_string(), "a checkpoint comes as ever");
}
