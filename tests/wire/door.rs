//! Who is let in: not a foreign page, not by a foreign name, not without the right token.

use serde_json::json;

use crate::bad_input::{FAMILIES, Family, state};
use crate::http::{Connection, call, get, new_session, post, prompt};
use crate::recording::short_turn;
use crate::server::{House, recorded};
use crate::sse::Stream;

#[test]
fn foreign_pages_and_foreign_names_get_nothing() {
    let house = House::new();
    let server = house.serve(&["--agent", &house.plays(&short_turn()), "--pace", "max"]);
    let (address, session) = (server.address, new_session(server.address));
    let before = state(address);
    let foreign: [&[(&str, &str)]; 9] = [
        &[("Origin", "https://evil.example")],
        &[("Origin", "null")],
        &[("Origin", "http://localhost:1")],
        &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
        &[("Sec-Fetch-Site", "same-site")],
        // Rebinding: the name is theirs, the address is ours.
        &[("Host", "evil.example")],
        &[("Host", "evil.example:4096")],
        &[("Host", "127.0.0.1.evil.example")],
        &[("Host", "evil.example"), ("Origin", "http://evil.example")],
    ];
    for headers in foreign {
        for family in FAMILIES {
            let body = family.prompt().to_string();
            for (method, path, body) in [
                ("GET", family.sessions().to_owned(), ""),
                ("POST", family.prompts(&session), body.as_str()),
                ("DELETE", family.session(&session), ""),
            ] {
                let response = call(address, method, &path, headers, body.as_bytes());
                family.assert_refused(&response, 403, &format!("{method} {path} {headers:?}"));
                assert_eq!(response.header("access-control-allow-origin"), None);
            }
        }
        let preflight = [headers, &[("Access-Control-Request-Method", "POST")]].concat();
        assert_eq!(call(address, "OPTIONS", "/v1/sessions", &preflight, &[]).status, 403, "{headers:?}");
        let stream = call(address, "GET", "/event", headers, &[]);
        Family::OpenCode.assert_refused(&stream, 403, "a feed");
    }
    assert_eq!(state(address), before);

    let own = format!("http://{address}");
    let response = call(address, "GET", "/v1/sessions", &[("Origin", &own)], &[]);
    assert_eq!((response.status, response.header("access-control-allow-origin")), (200, Some(own.as_str())));
}

#[test]
fn names_and_origins_that_are_allowed_come_in() {
    let house = House::new();
    let allowed = ["--allow-host", "my-machine", "--allow-origin", "https://page.example"];
    let server = house.serve(&allowed);
    let ask = |headers: &[(&str, &str)]| call(server.address, "GET", "/v1/sessions", headers, &[]).status;
    assert_eq!(ask(&[("Host", "my-machine:4096")]), 200);
    assert_eq!(ask(&[("Origin", "https://page.example")]), 200);
    assert_eq!(ask(&[("Origin", "https://page.example.evil")]), 403);
    let preflight = [("Origin", "https://page.example"), ("Access-Control-Request-Method", "POST")];
    let answer = call(server.address, "OPTIONS", "/session", &preflight, &[]);
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://page.example"));
}

#[test]
fn a_wrong_token_or_one_with_too_little_scope_gets_nothing() {
    let house = House::new();
    let token = |name: &str, scope: &str| {
        let made = house.run(&["token", "add", name, "--scope", scope]);
        String::from_utf8(made.stdout).unwrap().trim_end().to_owned()
    };
    let (viewer, writer, owner) = (token("viewer", "view"), token("writer", "prompt"), token("owner", "admin"));
    let server = house.serve(&["--agent", &recorded("opencode-perm"), "--pace", "max"]);
    let address = server.address;
    let bearer = |token: &str| format!("Bearer {token}");
    let owner = bearer(&owner);
    let as_owner = [("Authorization", owner.as_str())];
    let made = call(address, "POST", "/v1/sessions", &as_owner, b"{}").expect(201);
    let session = made["id"].as_str().unwrap();
    let before = call(address, "GET", "/v1/sessions", &as_owner, &[]).expect(200);

    for family in FAMILIES {
        let body = family.prompt().to_string();
        for wrong in [
            None,
            Some("Bearer "),
            Some("Bearer nonsense"),
            Some("Basic !!!"),
            Some("Basic b3BlbmNvZGU6d3Jvbmc="),
            Some("Digest x"),
        ] {
            let headers: Vec<_> = wrong.iter().map(|value| ("Authorization", *value)).collect();
            for (method, path) in [("GET", family.sessions().to_owned()), ("POST", family.prompts(session))] {
                let response = call(address, method, &path, &headers, body.as_bytes());
                family.assert_refused(&response, 401, &format!("{path} with {wrong:?}"));
                assert!(response.header("www-authenticate").is_some());
            }
        }
        let viewer = bearer(&viewer);
        let as_viewer = [("Authorization", viewer.as_str())];
        assert_eq!(call(address, "GET", family.sessions(), &as_viewer, &[]).status, 200);
        let refused = call(address, "POST", &family.prompts(session), &as_viewer, body.as_bytes());
        family.assert_refused(&refused, 403, "a prompt by one who may only look");
        let writer = bearer(&writer);
        let refused = call(address, "DELETE", &family.session(session), &[("Authorization", writer.as_str())], &[]);
        family.assert_refused(&refused, 403, "a deletion by one who may only prompt");
    }
    assert_eq!(call(address, "GET", "/v1/sessions", &as_owner, &[]).expect(200), before);

    // Who prompts may not allow what the prompt asks for.
    let writer = bearer(&writer);
    let as_writer = [("Authorization", writer.as_str())];
    call(address, "POST", &Family::Tolka.prompts(session), &as_writer, br#"{"text":"go"}"#).expect(202);
    let asked = crate::server::until("a permission", || {
        let asked = call(address, "GET", "/permission", &as_owner, &[]).expect(200);
        asked[0]["id"].as_str().map(str::to_owned)
    });
    for (family, path, body) in [
        (Family::Tolka, format!("/v1/sessions/{session}/answers/{asked}"), json!({ "option": "once" })),
        (Family::Onyx, format!("/api/build/approvals/{asked}/decision"), json!({ "decision": "APPROVED" })),
        (Family::OpenCode, format!("/permission/{asked}/reply"), json!({ "reply": "once" })),
        (Family::OpenCode, format!("/session/{session}/permissions/{asked}"), json!({ "response": "once" })),
    ] {
        let refused = call(address, "POST", &path, &as_writer, body.to_string().as_bytes());
        family.assert_refused(&refused, 403, &path);
    }
    // A token that is taken back stops working at once.
    assert_eq!(call(address, "GET", "/v1/sessions", &as_writer, &[]).status, 200);
    assert_eq!(house.run(&["token", "revoke", "writer"]).status.code(), Some(0));
    assert_eq!(call(address, "GET", "/v1/sessions", &as_writer, &[]).status, 401);
    // Without any token left nobody comes in, rather than everybody.
    for name in ["viewer", "owner"] {
        assert_eq!(house.run(&["token", "revoke", name]).status.code(), Some(0));
    }
    assert_eq!(call(address, "GET", "/v1/sessions", &[], &[]).status, 401);
}

/// A stream is opened once and read for hours: it must not outlive its token.
#[test]
fn a_stream_is_cut_when_its_token_is_taken_back() {
    let house = House::new();
    let token = |name: &str, scope: &str| {
        let made = house.run(&["token", "add", name, "--scope", scope]);
        format!("Bearer {}", String::from_utf8(made.stdout).unwrap().trim_end())
    };
    let (viewer, owner) = (token("viewer", "view"), token("owner", "admin"));
    let server = house.serve(&["--agent", "demo"]);
    let (address, as_owner) = (server.address, [("Authorization", owner.as_str())]);
    let made = call(address, "POST", "/v1/sessions", &as_owner, b"{}").expect(201);
    let session = made["id"].as_str().unwrap();
    let path = format!("/v1/sessions/{session}/events");
    let as_viewer = [("Authorization", viewer.as_str())];
    let open = |headers| Stream::with(Connection::open(address).unwrap(), address, ("GET", &path), headers, &[]);
    let (mut viewed, mut owned) = (open(&as_viewer).unwrap(), open(&as_owner).unwrap());
    call(address, "POST", &format!("/v1/sessions/{session}/prompt"), &as_owner, br#"{"text":"go"}"#).expect(202);
    viewed.fact("text_appended");
    assert_eq!(house.run(&["token", "revoke", "viewer"]).status.code(), Some(0));
    while viewed.next().is_some() {}
    assert!(!viewed.ended_well, "it is cut");
    // The demo asks a person in the end; the stream of a good token gets there.
    owned.fact("permission_asked");
}

/// The first token locks the door behind those who are in, too; and the last one does not open it, ever.
#[test]
fn the_first_token_cuts_streams_without_one_and_an_empty_list_stays_locked() {
    let house = House::new();
    let server = house.serve(&["--agent", "demo"]);
    let (address, session) = (server.address, new_session(server.address));
    let mut stream = Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    prompt(address, &session);
    stream.fact("text_appended");
    assert_eq!(house.run(&["token", "add", "owner"]).status.code(), Some(0));
    while stream.next().is_some() {}
    assert_eq!(get(address, "/v1/sessions").status, 401);
    assert_eq!(house.run(&["token", "revoke", "owner"]).status.code(), Some(0));
    drop(server);
    let server = house.serve(&["--agent", "demo"]);
    assert_eq!(get(server.address, "/v1/sessions").status, 401);
}

#[test]
fn a_link_with_the_token_becomes_a_cookie() {
    let house = House::new();
    let server = house.serve(&["--token", "secret"]);
    let address = server.address;
    assert_eq!(get(address, "/").status, 401);
    assert_eq!(get(address, "/v1/sessions?token=secret").status, 401, "only the page's own link carries a token");
    let linked = get(address, "/?token=secret");
    assert_eq!((linked.status, linked.header("location")), (303, Some("./")));
    let cookie = linked.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(call(address, "GET", "/v1/sessions", &[("Cookie", cookie)], &[]).status, 200);
    // OpenCode's clients send it as the password of Basic: `opencode:secret`.
    let basic = ("Authorization", "Basic b3BlbmNvZGU6c2VjcmV0");
    assert_eq!(call(address, "GET", "/session", &[basic], &[]).status, 200);
}

#[test]
fn what_two_clients_send_at_once_is_both_done() {
    let house = House::new();
    let server = house.serve(&["--agent", &house.plays(&short_turn()), "--pace", "max"]);
    let (address, session) = (server.address, new_session(server.address));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let prompts: Vec<_> = (0..12)
            .map(|n| {
                let family = FAMILIES[n % 3];
                let mut body = family.prompt();
                if family == Family::Onyx {
                    body["client_request_id"] = json!(format!("request-{n}"));
                }
                let path = family.prompts(&session);
                scope.spawn(move || post(address, &path, &body).status)
            })
            .collect();
        prompts.into_iter().map(|prompt| prompt.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| matches!(status, 200 | 202 | 204)), "{statuses:?}");
    let last = prompt(address, &session);
    let mut facts = Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    let mut open = None;
    for ended in 1.. {
        let started = facts
            .find("a start or an end", |fact| matches!(fact["type"].as_str(), Some("turn_started" | "turn_ended")));
        // One turn at a time: what starts ends before another starts.
        assert_eq!(started["type"], "turn_started", "{started}");
        open.replace(started["data"]["turn"].clone());
        let over = facts
            .find("a start or an end", |fact| matches!(fact["type"].as_str(), Some("turn_started" | "turn_ended")));
        assert_eq!((&over["type"], Some(&over["data"]["turn"])), (&json!("turn_ended"), open.as_ref()));
        if over["data"]["turn"] == *last {
            assert_eq!(ended, 13);
            break;
        }
    }
}
