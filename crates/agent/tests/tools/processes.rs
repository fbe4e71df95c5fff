//! Commands that go on beside the work.

use std::time::{Duration, Instant};

use serde_json::json;
use tolka_facts::Event;

use crate::hall::Hall;

fn background(command: &str) -> serde_json::Value {
    json!({ "command": command, "description": "Go on", "run_in_background": true })
}

/// Reads what a process printed until a word is there.
async fn read_until(hall: &mut Hall, process: &str, word: &str) -> String {
    let mut all = String::new();
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        all += &hall.call("processes", json!({ "action": "output", "process": process })).await.went_well().said();
        if all.contains(word) {
            return all;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{word} is not in {all}");
}

fn started(hall: &Hall) -> Vec<(String, String)> {
    hall.told().of(|event| match event {
        Event::ProcessStarted(told) => Some((told.process.clone(), told.command.clone())),
        _ => None,
    })
}

#[tokio::test]
async fn a_process_goes_on_and_is_read_and_ended() {
    let mut hall = Hall::allowing("bash");
    let line = "echo begun; until [ -e go ]; do sleep 0.05; done; echo went on; sleep 600";
    let ended = hall.call("bash", background(line)).await;
    let [(process, command)] = started(&hall).try_into().unwrap();
    assert_eq!(command, line);
    // The first look is after a second, and on a busy machine it may not have begun by then.
    if !ended.went_well().said().starts_with("begun\n[process p") {
        assert!(ended.said().starts_with("[process p"), "{}", ended.said());
        read_until(&mut hall, &process, "begun").await;
    }
    assert!(ended.said().contains(&process) && ended.said().contains("running"), "{}", ended.said());
    // Other work goes on meanwhile.
    hall.call("bash", json!({ "command": "touch go", "description": "Go" })).await.went_well();
    let said = read_until(&mut hall, &process, "went on").await;
    assert!(!said.contains("begun"), "what was read is not told again: {said}");
    let listed = hall.call("processes", json!({ "action": "list" })).await;
    assert!(listed.went_well().said().contains(&format!("{process}  running")), "{}", listed.said());
    let killed = hall.call("processes", json!({ "action": "kill", "process": process })).await;
    assert_eq!(killed.went_well().said(), format!("{process} was ended."));
    let killed = hall.call("processes", json!({ "action": "kill", "process": process })).await;
    assert_eq!(killed.went_well().said(), format!("{process} had ended by itself."));
    let listed = hall.call("processes", json!({ "action": "list" })).await;
    assert!(listed.said().contains("ended by agent"), "{}", listed.said());
    hall.call("processes", json!({ "action": "kill", "process": "p0" })).await.failed("no process is called `p0`");
    hall.call("processes", json!({ "action": "dance" })).await.failed("`action` is `list`, `output` or `kill`");
}

#[tokio::test]
async fn one_that_cannot_start_says_so_at_once() {
    let mut hall = Hall::allowing("bash");
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let ended = hall.call("bash", background("echo no such port >&2; exit 7")).await;
        let said = ended.went_well().said();
        // A machine that is too busy to start it within a second is given another chance.
        if said.contains("running") && Instant::now() < until {
            let [.., (process, _)] = &started(&hall)[..] else { panic!("{said}") };
            let process = process.clone();
            read_until(&mut hall, &process, "ended with exit code 7").await;
            continue;
        }
        assert!(said.contains("no such port\n[process p"), "{said}");
        return assert!(said.contains("ended with exit code 7"), "{said}");
    }
}

#[tokio::test]
async fn a_port_that_it_listens_on_is_found() {
    let mut hall = Hall::allowing("bash");
    let line = "python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); \
                print(s.getsockname()[1],flush=True); time.sleep(600)' || echo none";
    let ended = hall.call("bash", background(line)).await;
    let [(process, _)] = started(&hall).try_into().unwrap();
    let mut said = ended.went_well().said();
    if !said.starts_with(|c: char| c.is_ascii_digit()) && !said.starts_with("none") {
        said = read_until(&mut hall, &process, "\n").await;
    }
    let port = said.lines().next().unwrap().to_owned();
    if port == "none" {
        println!("skipped: there is no python3");
        return;
    }
    let listed = hall.call("processes", json!({ "action": "list" })).await;
    assert!(listed.went_well().said().contains(&format!("listens on port {port}")), "{port}: {}", listed.said());
}

#[tokio::test]
async fn not_too_many_run_at_once_and_leave_is_asked_for() {
    let mut hall = Hall::allowing("bash");
    for _ in 0..8 {
        hall.call("bash", background("sleep 600")).await.went_well();
    }
    hall.call("bash", background("sleep 600")).await.failed("8 processes run in this session already");
    let mut other = Hall::open();
    other.call("bash", background("sleep 600")).await.went_well();
    assert_eq!(other.asked().len(), 1);
}
