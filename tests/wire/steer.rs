//! Steering a session: cancel, queue, answer, delete; each from every family that can.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::http::{call, get, new_session, post, prompt};
use crate::recording::{Score, endless_turn, short_turn};
use crate::server::{House, recorded};
use crate::sse::Stream;

fn facts(address: SocketAddr, session: &str) -> Stream {
    Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap()
}

#[test]
fn a_cancel_ends_the_turn_in_every_family() {
    let house = House::new();
    let agent = house.plays(&endless_turn());
    let server = house.serve(&["--agent", &agent]);
    let address = server.address;
    let cancels: [fn(&str) -> String; 3] = [
        |session| format!("/v1/sessions/{session}/cancel"),
        |session| format!("/api/build/sessions/{session}/interrupt"),
        |session| format!("/session/{session}/abort"),
    ];
    for cancel in cancels {
        let session = new_session(address);
        let turn = prompt(address, &session);
        let mut facts = facts(address, &session);
        facts.fact("tool_changed");
        post(address, &cancel(&session), &json!({})).expect(200);
        let tool = facts.fact("tool_changed");
        let ended = facts.fact("turn_ended");
        assert_eq!(tool["data"]["status"], "cancelled");
        assert_eq!(ended["data"], json!({ "turn": turn, "stop": "cancelled" }));
        // And it works on: nothing of the cancelled turn is in the way.
        prompt(address, &session);
        facts.fact("turn_started");
    }
}

#[test]
fn a_cancel_ends_a_turn_that_talks_without_a_pause() {
    let house = House::new();
    let mut score = Score::new();
    score.turn(1, |score| {
        for _ in 0..50_000 {
            score.wait(10);
            score.fact("text_appended", &json!({ "part": "prt_a", "text": "word " }));
        }
    });
    let agent = house.plays(&score.text());
    let server = house.serve(&["--agent", &agent, "--pace", "max"]);
    let session = new_session(server.address);
    prompt(server.address, &session);
    let mut facts = facts(server.address, &session);
    facts.fact("text_appended");
    post(server.address, &format!("/v1/sessions/{session}/cancel"), &json!({})).expect(200);
    assert_eq!(facts.fact("turn_ended")["data"]["stop"], "cancelled");
}

#[test]
fn prompts_wait_for_each_other_and_can_be_dropped() {
    let house = House::new();
    let agent = house.plays(&endless_turn());
    let server = house.serve(&["--agent", &agent]);
    let (address, session) = (server.address, new_session(server.address));
    let path = format!("/v1/sessions/{session}/prompt");
    let first = prompt(address, &session);
    facts(address, &session).fact("turn_started");
    // Two at once, from two families: both are taken, neither runs.
    let (second, third) = std::thread::scope(|scope| {
        let second = scope.spawn(|| post(address, &path, &json!({ "text": "two", "key": "k" })).expect(202));
        let body = json!({ "content": "three", "client_request_id": "k3" });
        let path = format!("/api/build/sessions/{session}/send-message");
        let third = scope.spawn(move || post(address, &path, &body).expect(200));
        (second.join().unwrap(), third.join().unwrap())
    });
    assert_eq!(third["status"], "QUEUED");
    let mut waiting = [&second["turn"], &third["turn_id"]].map(|turn| turn.as_str().unwrap().to_owned());
    waiting.sort();
    let queue = || get(address, &format!("/v1/sessions/{session}/queue")).expect(200);
    let turns = |queue: &Value| {
        let turns = queue["waiting"].as_array().unwrap().iter();
        turns.map(|waiting| waiting["turn"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let queued = queue();
    assert_eq!(queued["running"]["turn"], first);
    let mut listed = turns(&queued);
    listed.sort();
    assert_eq!(listed, waiting);

    // The same key is the same turn, however often it is sent.
    let again = post(address, &path, &json!({ "text": "two", "key": "k" })).expect(202);
    assert_eq!((&again["turn"], &again["repeated"]), (&second["turn"], &json!(true)));
    assert_eq!(turns(&queue()).len(), 2);

    let dropped = second["turn"].as_str().unwrap();
    let drop_it = || call(address, "DELETE", &format!("/v1/sessions/{session}/queue/{dropped}"), &[], &[]);
    drop_it().expect(204);
    drop_it().expect(404);
    assert_eq!(turns(&queue()), [third["turn_id"].as_str().unwrap()]);
    // What was dropped stays so when its request comes again: the client learns of its turn, and none runs.
    assert_eq!(post(address, &path, &json!({ "text": "two", "key": "k" })).expect(202)["turn"], second["turn"]);

    post(address, &format!("/v1/sessions/{session}/cancel"), &json!({ "queue": true })).expect(200);
    facts(address, &session).fact("turn_ended");
    assert_eq!(queue(), json!({ "running": null, "waiting": [] }));
}

#[test]
fn the_first_answer_to_a_permission_wins() {
    let house = House::new();
    let server = house.serve(&["--agent", &recorded("opencode-perm"), "--pace", "max"]);
    let address = server.address;
    for round in 0..3 {
        let session = new_session(address);
        prompt(address, &session);
        let mut facts = facts(address, &session);
        let ask = facts.fact("permission_asked")["data"]["request"].as_str().unwrap().to_owned();
        let answers = [
            (format!("/v1/sessions/{session}/answers/{ask}"), json!({ "option": "once" })),
            (format!("/api/build/approvals/{ask}/decision"), json!({ "decision": "APPROVED" })),
            (format!("/permission/{ask}/reply"), json!({ "reply": "once" })),
        ];
        // Each family is first once, then all come late.
        let statuses = (0..4).map(|at| {
            let (path, body) = &answers[(round + at) % 3];
            post(address, path, body).status
        });
        let statuses: Vec<u16> = statuses.collect();
        assert!(matches!(statuses[0], 200 | 204), "{statuses:?}");
        assert!(statuses[1..].iter().all(|status| matches!(status, 404 | 409)), "{statuses:?}");
        let answered = facts.fact("permission_answered");
        assert_eq!(answered["data"]["option"], "once");
        assert_eq!(facts.fact("turn_ended")["data"]["stop"], "end_turn");
    }
}

#[test]
fn one_of_many_answers_at_once_wins() {
    let house = House::new();
    let server = house.serve(&["--agent", &recorded("opencode-perm"), "--pace", "max"]);
    let (address, session) = (server.address, new_session(server.address));
    prompt(address, &session);
    let mut facts = facts(address, &session);
    let ask = facts.fact("permission_asked")["data"]["request"].as_str().unwrap().to_owned();
    let path = format!("/v1/sessions/{session}/answers/{ask}");
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let answer = |option| post(address, &path, &json!({ "option": option })).status;
        let answers =
            ["once", "always", "reject", "once", "always", "reject"].map(|option| scope.spawn(move || answer(option)));
        answers.map(|answer| answer.join().unwrap()).to_vec()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 5, "{statuses:?}");
}

#[test]
fn a_deleted_session_is_gone_and_a_purged_one_frees_its_room() {
    let house = House::new();
    let mut score = Score::new();
    let output = "x".repeat(100_000);
    score.turn(1, |score| {
        score.fact(
            "tool_changed",
            &json!({ "call": "c", "name": "bash", "title": "b", "status": "completed", "output": output }),
        );
    });
    let agent = house.plays(&score.text());
    let server = house.serve(&["--agent", &agent, "--pace", "max"]);
    let address = server.address;
    let (session, other) = (new_session(address), new_session(address));
    for session in [&session, &other] {
        prompt(address, session);
        facts(address, session).fact("turn_ended");
    }
    let mut watching = facts(address, &session);
    watching.fact("turn_ended");
    call(address, "DELETE", &format!("/v1/sessions/{session}"), &[], &[]).expect(204);
    watching.fact("session_deleted");
    for path in
        [format!("/v1/sessions/{session}"), format!("/session/{session}"), format!("/api/build/sessions/{session}")]
    {
        get(address, &path).expect(404);
    }
    post(address, &format!("/v1/sessions/{session}/prompt"), &json!({ "text": "still there?" })).expect(404);

    let purge = |session: &str| call(address, "DELETE", &format!("/v1/sessions/{session}?purge=true"), &[], &[]);
    let freed = purge(&session).expect(200)["purged"].clone();
    assert!(freed["facts"].as_u64().unwrap() >= 5, "{freed}");
    // The other session has the same output: it is one blob, and still needed.
    assert_eq!(freed["blobs"], 0, "{freed}");
    assert!(watching.next_told().is_none(), "nothing is told of a purged session");
    let freed = purge(&other).expect(200)["purged"].clone();
    assert_eq!(freed["blobs"], 1, "{freed}");
    assert!(freed["bytes"].as_u64().unwrap() >= 100_000, "{freed}");
    assert_eq!(get(address, "/v1/sessions").expect(200)["sessions"], json!([]));
}

#[test]
fn a_session_survives_the_agent_that_made_it() {
    let house = House::new();
    let agent = house.plays(&short_turn());
    let session = {
        let server = house.serve(&["--agent", &agent, "--pace", "max"]);
        let session = new_session(server.address);
        prompt(server.address, &session);
        facts(server.address, &session).fact("turn_ended");
        session
    };
    let server = house.serve(&[]);
    let view = get(server.address, &format!("/v1/sessions/{session}/view")).expect(200);
    assert_eq!(view["messages"].as_array().unwrap().len(), 2, "{view}");
}
