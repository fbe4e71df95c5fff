//! Processes that go on beside turns: seen and ended over `/v1`, and gone with the session and with the server, whatever
//! ends that.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tolka_scripted::{Answer, Script};

use super::kill::runs;
use super::stage::{Stage, Talk, Wire};
use crate::http::{Response, call, get};
use crate::server::until;

fn delete(address: SocketAddr, path: &str) -> Response {
    call(address, "DELETE", path, &[], b"")
}

/// A stage whose agent starts one process, and a talk in which it runs.
fn started(stage: &Stage, address: SocketAddr) -> (Talk, String) {
    let mut talk = Talk::begin(address);
    talk.prompt("Start the server.");
    let asked = talk.until_type("permission_asked");
    talk.answer(&asked, &json!({ "option": "once" }));
    let process = talk.until_type("process_started")["data"]["process"].as_str().unwrap().to_owned();
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    let requests = stage.provider.requests();
    assert!(requests.last().unwrap().body.to_string().contains(&process), "the model knows what it is called");
    (talk, process)
}

fn stage(mark: &str) -> Stage {
    let command = format!("echo begun; setsid sleep {mark} & sleep {mark}");
    let call = json!({ "command": command, "description": "Serves for ever", "run_in_background": true });
    Stage::set(Wire::OpenAi, Script::of([Answer::call("bash", call), Answer::text("It runs.")]))
}

fn mark(which: u32) -> String {
    format!("7{which}{:09}", std::process::id())
}

#[test]
fn a_process_outlasts_its_turn_and_is_ended_by_a_person() {
    let mark = mark(1);
    let stage = stage(&mark);
    let server = stage.serve();
    let (mut talk, process) = started(&stage, server.address);
    assert!(runs(&mark));
    let path = format!("/v1/sessions/{}/processes", talk.session);
    let listed = get(server.address, &path).expect(200);
    let one = &listed["processes"][0];
    assert_eq!((&one["process"], &one["running"]), (&json!(process), &json!(true)), "{listed}");
    // On a busy machine its turn may be over before it has said a word.
    let log = until("its first words", || {
        let log = get(server.address, &format!("{path}/{process}/log")).expect(200);
        (log["next"] != 0).then_some(log)
    });
    assert_eq!((&log["text"], &log["next"]), (&json!("begun\n"), &json!(6)), "{log}");
    let log = get(server.address, &format!("{path}/{process}/log?from=6")).expect(200);
    assert_eq!(log["text"], "");
    get(server.address, &format!("{path}/{process}/log?from=x")).expect(400);
    get(server.address, &format!("{path}/p0/log")).expect(404);
    delete(server.address, &format!("{path}/p0")).expect(404);

    delete(server.address, &format!("{path}/{process}")).expect(204);
    assert!(!runs(&mark), "it is gone when that is answered");
    let ended = talk.until_type("process_ended");
    assert_eq!((&ended["data"]["process"], &ended["data"]["by"]), (&json!(process), &json!("client")));
    let listed = get(server.address, &path).expect(200);
    assert_eq!(listed["processes"][0]["ended"]["by"], "client", "{listed}");
}

#[test]
fn a_process_ends_with_its_session() {
    let mark = mark(2);
    let stage = stage(&mark);
    let server = stage.serve();
    let (mut talk, process) = started(&stage, server.address);
    delete(server.address, &format!("/v1/sessions/{}", talk.session)).expect(204);
    let ended = talk.until_type("process_ended");
    assert_eq!((&ended["data"]["process"], &ended["data"]["by"]), (&json!(process), &json!("delete")));
    until("the process to go", || (!runs(&mark)).then_some(()));
}

#[test]
fn a_process_ends_with_the_server_and_the_next_one_says_so() {
    let mark = mark(3);
    let stage = stage(&mark);
    let server = stage.serve();
    let (talk, process) = started(&stage, server.address);
    server.kill();
    until("the process to go", || (!runs(&mark)).then_some(()));
    let server = stage.serve();
    // Nobody asks for the session but for its facts.
    let mut talk = Talk::take_up(server.address, talk.session);
    let ended = talk.until_type("process_ended");
    assert_eq!((&ended["data"]["process"], &ended["data"]["by"]), (&json!(process), &json!("restart")));
    let ends = talk.facts.iter().filter(|fact: &&Value| fact["type"] == "process_ended").count();
    assert_eq!(ends, 1);
}

#[test]
fn a_process_ends_when_the_server_is_told_to_stop() {
    let mark = mark(4);
    let stage = stage(&mark);
    let mut server = stage.serve();
    let (talk, _) = started(&stage, server.address);
    server.terminate();
    assert!(server.wait().success());
    assert!(!runs(&mark), "it is gone before the server is");
    let server = stage.serve();
    let mut talk = Talk::take_up(server.address, talk.session);
    assert_eq!(talk.until_type("process_ended")["data"]["by"], "stop");
}

/// Nobody who watches the parent would see it.
#[test]
fn a_process_of_a_subagent_ends_with_its_task() {
    let mark = mark(5);
    let command = format!("echo begun; sleep {mark}");
    let task = json!({ "description": "Start it", "prompt": "Start the server.", "subagent_type": "general" });
    let start = json!({ "command": command, "description": "Serves for ever", "run_in_background": true });
    let stage = Stage::set(
        Wire::OpenAi,
        Script::of([
            Answer::call("task", task),
            Answer::call("bash", start),
            Answer::text("It runs."),
            Answer::text("The subagent is done."),
        ]),
    );
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Have the server started.");
    let asked = talk.until_type("permission_asked");
    talk.answer(&asked, &json!({ "option": "once" }));
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    assert!(!runs(&mark), "it is gone when its parent goes on");
    let said = stage.provider.requests().last().unwrap().body.to_string();
    assert!(said.contains("1 of its processes ran in the background"), "{said}");
    let children = get(server.address, &format!("/v1/sessions?parent={}", talk.session)).expect(200);
    let child = children["sessions"][0]["id"].as_str().unwrap_or_else(|| panic!("{children}")).to_owned();
    let mut child = Talk::take_up(server.address, child);
    assert_eq!(child.until_type("process_ended")["data"]["by"], "task");
}
