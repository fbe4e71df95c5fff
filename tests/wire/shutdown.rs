//! How a server comes up, who may have a second one, and how it goes down.

use serde_json::json;

use crate::http::{get, new_session, post, prompt};
use crate::recording::{endless_turn, short_turn};
use crate::server::House;
use crate::sse::{Stream, data};

#[test]
fn the_first_line_is_the_url_and_it_answers() {
    let house = House::new();
    let server = house.serve(&[]);
    assert_eq!(server.first_line, format!("http://{}", server.address));
    assert_ne!(server.address.port(), 0);
    assert_eq!(get(server.address, "/healthz").body, b"ok\n");
}

#[test]
fn off_loopback_without_a_token_it_does_not_start() {
    let house = House::new();
    let refused = house.run(&["serve", "--host", "0.0.0.0", "--port", "0"]);
    let problem = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stdout.is_empty());
    assert!(problem.contains("no token is set") && problem.contains("tolka token add"), "{problem}");
}

#[test]
fn a_second_server_on_the_same_data_says_who_has_it() {
    let house = House::new();
    let server = house.serve(&[]);
    let second = house.run(&["serve", "--port", "0"]);
    let problem = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(problem.contains(&server.pid().to_string()) && problem.contains(&server.first_line), "{problem}");
    // The first did not notice.
    get(server.address, "/v1/sessions").expect(200);
}

#[test]
fn a_port_that_is_taken_is_an_error_with_a_way_out() {
    let (house, other) = (House::new(), House::new());
    let server = house.serve(&[]);
    let refused = other.run(&["serve", "--port", &server.address.port().to_string()]);
    let problem = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(problem.contains("--port 0"), "{problem}");
}

#[test]
fn told_to_stop_it_ends_turn_streams_cuts_feeds_and_interrupts_turns() {
    let house = House::new();
    let agent = house.plays(&endless_turn());
    let mut server = house.serve(&["--agent", &agent]);
    let (address, session) = (server.address, new_session(server.address));
    let mut feeds = ["/event", "/global/event", "/v1/events"].map(|path| Stream::open(address, path, None).unwrap());
    let mut facts = Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    let turn = prompt(address, &session);
    facts.fact("tool_changed");
    let path = format!("/api/build/sessions/{session}/turns/{turn}/events");
    let mut telling = Stream::open(address, &path, None).unwrap();
    telling.find("the tool's start", |packet| packet["type"] == "tool_call_start");

    server.terminate();
    let last = std::iter::from_fn(|| telling.next_told()).last().map(|event| data(&event));
    assert!(telling.ended_well, "the turn's stream was cut; the last was {last:?}");
    assert_eq!(last.map(|last| last["type"].clone()), Some(json!("error")), "the turn's end is told");
    for feed in feeds.iter_mut().chain([&mut facts]) {
        while feed.next().is_some() {}
        assert!(!feed.ended_well, "a feed ended as if all were told; its client would never come back");
    }
    assert_eq!(server.wait().code(), Some(0));

    let server = house.serve(&["--agent", &agent]);
    let mut facts = Stream::open(server.address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    assert_eq!(facts.fact("turn_ended")["data"], json!({ "turn": turn, "stop": "interrupted" }));
    let path = format!("/api/build/sessions/{session}/turns/{turn}/events");
    let mut telling = Stream::open(server.address, &path, None).unwrap();
    let last = std::iter::from_fn(|| telling.next_told()).last().map(|event| data(&event)).unwrap();
    assert_eq!(last["type"], "error");
    assert!(telling.ended_well);
}

#[test]
fn a_queue_goes_on_after_a_restart() {
    let house = House::new();
    let agent = house.plays(&endless_turn());
    let mut server = house.serve(&["--agent", &agent]);
    let session = new_session(server.address);
    prompt(server.address, &session);
    let waiting = prompt(server.address, &session);
    server.terminate();
    server.wait();
    // Another recording under the same name: what waits is done at once.
    house.plays(&short_turn());
    let server = house.serve(&["--agent", &agent, "--pace", "max"]);
    let mut facts = Stream::open(server.address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    let ended = facts.find("its end", |fact| fact["type"] == "turn_ended" && fact["data"]["turn"] == *waiting);
    assert_eq!(ended["data"]["stop"], "end_turn");
}

#[test]
fn a_request_that_waits_is_answered_when_the_server_stops() {
    let house = House::new();
    let agent = house.plays(&endless_turn());
    let mut server = house.serve(&["--agent", &agent]);
    let (address, session) = (server.address, new_session(server.address));
    let mut facts = Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    std::thread::scope(|scope| {
        let path = format!("/session/{session}/message");
        let body = json!({ "parts": [{ "type": "text", "text": "wait" }] });
        let waiting = scope.spawn(move || post(address, &path, &body));
        facts.fact("tool_changed");
        server.terminate();
        let message = waiting.join().unwrap().expect(200);
        assert_eq!(message["info"]["error"]["name"], "MessageAbortedError", "{message}");
    });
    assert_eq!(server.wait().code(), Some(0));
}
