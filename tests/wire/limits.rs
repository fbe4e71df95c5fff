//! HTTP at its edges: too much, too slow, too many at once, and what every server must get right.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::bad_input::{FAMILIES, Family, state};
use crate::http::{Connection, call, get, new_session, prompt, request, try_call};
use crate::recording::short_turn;
use crate::server::House;
use crate::sse::Stream;

#[test]
fn huge_bodies_are_refused_and_large_ones_are_not() {
    let house = House::new();
    let server = house.serve(&["--agent", &house.plays(&short_turn()), "--pace", "max"]);
    let (address, session) = (server.address, new_session(server.address));
    let before = state(address);
    let huge = "x".repeat(33 * 1024 * 1024);
    for family in FAMILIES {
        let body = family.prompt().to_string().replace("Go on.", &huge);
        let response = call(address, "POST", &family.prompts(&session), &[], body.as_bytes());
        family.assert_refused(&response, 413, "33 MiB");
        // The same without saying so first.
        let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let chunked = [("Transfer-Encoding", "chunked")];
        let response = call(address, "POST", &family.prompts(&session), &chunked, chunk.as_bytes());
        family.assert_refused(&response, 413, "33 MiB in one chunk");
    }
    assert_eq!(state(address), before);
    for family in FAMILIES {
        let body = family.prompt().to_string().replace("Go on.", &huge[..4 * 1024 * 1024]);
        let response = call(address, "POST", &family.prompts(&session), &[], body.as_bytes());
        assert!(matches!(response.status, 200 | 202 | 204), "{family:?}: {}", response.status);
    }
    let mut facts = Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    for _ in FAMILIES {
        facts.fact("turn_ended");
    }
}

#[test]
fn headers_that_are_too_large_or_too_many_are_refused() {
    let house = House::new();
    let server = house.serve(&[]);
    let address = server.address;
    let large = "x".repeat(64 * 1024);
    assert_eq!(call(address, "GET", "/v1/sessions", &[("X-Large", &large)], &[]).status, 431);
    let many: Vec<(String, String)> = (0..100).map(|n| (format!("X-{n}"), "x".to_owned())).collect();
    let many: Vec<_> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(call(address, "GET", "/v1/sessions", &many, &[]).status, 431);
    let long = format!("/v1/sessions?after={}", "x".repeat(64 * 1024));
    let status = try_call(address, "GET", &long, &[], &[]).unwrap().status;
    assert!(matches!(status, 414 | 431), "{status}");
    get(address, "/v1/sessions").expect(200);
}

#[test]
fn methods_that_a_route_does_not_take_are_told_in_each_shape() {
    let house = House::new();
    let server = house.serve(&[]);
    let (address, session) = (server.address, new_session(server.address));
    let before = state(address);
    for family in FAMILIES {
        for (method, path) in [
            ("PUT", family.sessions().to_owned()),
            ("GET", family.prompts(&session)),
            ("TRACE", family.session(&session)),
        ] {
            let response = call(address, method, &path, &[], &[]);
            family.assert_refused(&response, 405, &format!("{method} {path}"));
            assert!(response.header("allow").is_some(), "{method} {path}");
        }
        let head = call(address, "HEAD", family.sessions(), &[], &[]);
        assert_eq!((head.status, head.body.len()), (200, 0));
        let length = get(address, family.sessions()).body.len().to_string();
        assert_eq!(head.header("content-length"), Some(length.as_str()));
    }
    assert_eq!(state(address), before);
}

#[test]
fn one_connection_takes_many_requests_also_ahead_of_their_answers() {
    let house = House::new();
    let server = house.serve(&[]);
    let (address, session) = (server.address, new_session(server.address));
    let mut connection = Connection::open(address).unwrap();
    let paths =
        ["/healthz".to_owned(), format!("/v1/sessions/{session}"), "/v1/nothing".into(), format!("/session/{session}")];
    let ahead: Vec<u8> = paths.iter().flat_map(|path| request(address, "GET", path, &[], &[])).collect();
    connection.send(&ahead).unwrap();
    let statuses: Vec<u16> = paths.iter().map(|_| connection.response("GET").unwrap().status).collect();
    assert_eq!(statuses, [200, 200, 404, 200]);
    for _ in 0..3 {
        // A request that fails does not spoil the connection for the next.
        let bad = request(address, "POST", &format!("/v1/sessions/{session}/prompt"), &[], b"{");
        connection.send(&bad).unwrap();
        assert_eq!(connection.response("POST").unwrap().status, 400);
        connection.send(&request(address, "GET", "/healthz", &[], &[])).unwrap();
        assert_eq!(connection.response("GET").unwrap().body, b"ok\n");
    }
}

#[test]
fn what_is_no_http_is_no_request() {
    let house = House::new();
    let server = house.serve(&[]);
    let address = server.address;
    new_session(address);
    let before = state(address);
    let host = format!("Host: {address}\r\n");
    let smuggled = format!(
        "POST /v1/sessions HTTP/1.1\r\n{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nDELE"
    );
    let twice = format!("POST /v1/sessions HTTP/1.1\r\n{host}Content-Length: 2\r\nContent-Length: 30\r\n\r\n{{}}");
    let nonsense: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost : x\r\n\r\n",
        twice.as_bytes(),
        b"GET /v1/sessions HTTP/9.9\r\n\r\n",
    ];
    for bytes in nonsense {
        let mut connection = Connection::open(address).unwrap();
        connection.send(bytes).unwrap();
        let shown = String::from_utf8_lossy(bytes);
        // An answer or a closed door, but no welcome.
        if let Ok(response) = connection.response("GET") {
            assert!(response.status >= 400, "{shown}: {response:?}");
        }
    }
    // Two lengths: whichever is believed, the rest is not taken for another request.
    let mut connection = Connection::open(address).unwrap();
    connection.send(smuggled.as_bytes()).unwrap();
    if connection.response("POST").is_ok_and(|response| response.status < 400) {
        assert!(connection.response("DELETE").is_err(), "a request was smuggled in");
    } else {
        assert_eq!(state(address), before);
    }
    // Without a name to answer to, nobody knows whom it is for.
    let mut connection = Connection::open(address).unwrap();
    connection.send(b"GET /v1/sessions HTTP/1.1\r\n\r\n").unwrap();
    assert!(connection.response("GET").unwrap().status >= 400);
}

/// Takes half a minute, for that is how long a client may take; nothing else waits for it.
#[test]
fn clients_that_send_slowly_are_let_go_and_hold_nobody_up() {
    let house = House::new();
    let server = house.serve(&[]);
    let (address, session) = (server.address, new_session(server.address));
    let before = state(address);
    std::thread::scope(|scope| {
        let slow_head = scope.spawn(move || {
            let mut connection = Connection::open(address).unwrap();
            connection.send(b"GET /v1/sessions HTTP/1.1\r\nHo").unwrap();
            let began = Instant::now();
            let answer = connection.response("GET");
            (answer.map(|answer| answer.status).ok(), began.elapsed())
        });
        let slow_bodies = FAMILIES.map(|family| {
            let path = family.prompts(&session);
            scope.spawn(move || {
                let mut connection = Connection::open(address).unwrap();
                let body = family.prompt().to_string();
                let whole = request(address, "POST", &path, &[], body.as_bytes());
                connection.send(&whole[..whole.len() - 5]).unwrap();
                (family, connection.response("POST"))
            })
        });
        // Meanwhile everybody else is served.
        let began = Instant::now();
        for _ in 0..50 {
            get(address, "/v1/sessions").expect(200);
        }
        assert!(began.elapsed() < Duration::from_secs(30), "slow clients slow others: {:?}", began.elapsed());
        let (answer, took) = slow_head.join().unwrap();
        assert!(answer.is_none_or(|status| status == 408), "{answer:?}");
        assert!(took < Duration::from_secs(60), "a head that never ends was waited for {took:?}");
        for slow in slow_bodies {
            let (family, response) = slow.join().unwrap();
            family.assert_refused(&response.unwrap(), 408, "a slow body");
        }
    });
    assert_eq!(state(address), before);
}

#[test]
fn no_more_streams_are_opened_than_are_allowed() {
    let house = House::new();
    let server = house.serve(&["--max-readers", "2"]);
    let (address, session) = (server.address, new_session(server.address));
    let path = format!("/v1/sessions/{session}/events");
    let mut open = vec![Stream::open(address, &path, None).unwrap(), Stream::open(address, "/event", None).unwrap()];
    open.iter_mut().for_each(|stream| drop(stream.next()));
    for (family, path) in
        [(Family::Tolka, path.as_str()), (Family::OpenCode, "/event"), (Family::OpenCode, "/global/event")]
    {
        family.assert_refused(&get(address, path), 429, path);
    }
    let refused =
        call(address, "POST", &Family::Onyx.prompts(&session), &[], json!({ "content": "hi" }).to_string().as_bytes());
    Family::Onyx.assert_refused(&refused, 429, "a prompt whose stream has no place");
    assert_eq!(get(address, &Family::Tolka.session(&session)).expect(200)["turns"], 0, "it ran nevertheless");
    drop(open.pop());
    crate::server::until("a free place", || try_call(address, "GET", "/v1/events?format=json", &[], &[]).ok());
    crate::server::until("a free place", || {
        let mut connection = Connection::open(address).unwrap();
        connection.send(&request(address, "GET", &path, &[], &[])).unwrap();
        (connection.head().unwrap().0 == 200).then_some(())
    });
}

#[test]
fn streams_say_that_they_must_not_be_held_up_on_their_way() {
    let house = House::new();
    let server = house.serve(&["--agent", &house.plays(&short_turn()), "--pace", "max"]);
    let (address, session) = (server.address, new_session(server.address));
    let turn = prompt(address, &session);
    let of_turn = format!("/api/build/sessions/{session}/turns/{turn}/events");
    for path in [format!("/v1/sessions/{session}/events"), "/event".into(), "/global/event".into(), of_turn] {
        let stream = Stream::open(address, &path, None).unwrap();
        let header =
            |name: &str| stream.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(header("content-type"), Some("text/event-stream; charset=utf-8"), "{path}");
        assert_eq!(header("cache-control"), Some("no-cache, no-transform"), "{path}");
        assert_eq!((header("x-accel-buffering"), header("content-encoding")), (Some("no"), None), "{path}");
        if path.contains(&session) {
            assert_eq!(header("tolka-session"), Some(session.as_str()), "{path}");
        }
    }
}
