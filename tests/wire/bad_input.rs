//! What no client should send, sent to every family: each answers in its own shape, and nothing changes.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::http::{Response, call, get, new_session, post, prompt};
use crate::recording::short_turn;
use crate::server::{House, Server};
use crate::sse::Stream;

/// Whose routes, and so whose errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Tolka,
    Onyx,
    OpenCode,
}

pub(crate) const FAMILIES: [Family; 3] = [Family::Tolka, Family::Onyx, Family::OpenCode];

impl Family {
    pub(crate) fn prompts(self, session: &str) -> String {
        match self {
            Family::Tolka => format!("/v1/sessions/{session}/prompt"),
            Family::Onyx => format!("/api/build/sessions/{session}/send-message"),
            Family::OpenCode => format!("/session/{session}/prompt_async"),
        }
    }

    pub(crate) fn session(self, session: &str) -> String {
        match self {
            Family::Tolka => format!("/v1/sessions/{session}"),
            Family::Onyx => format!("/api/build/sessions/{session}"),
            Family::OpenCode => format!("/session/{session}"),
        }
    }

    pub(crate) fn sessions(self) -> &'static str {
        match self {
            Family::Tolka => "/v1/sessions",
            Family::Onyx => "/api/build/sessions",
            Family::OpenCode => "/session",
        }
    }

    /// A prompt that is fine.
    pub(crate) fn prompt(self) -> Value {
        match self {
            Family::Tolka => json!({ "text": "Go on." }),
            Family::Onyx => json!({ "content": "Go on.", "client_request_id": "request-1" }),
            Family::OpenCode => json!({ "parts": [{ "type": "text", "text": "Go on." }] }),
        }
    }

    /// The words of an error, which must be in this family's shape.
    pub(crate) fn problem(self, response: &Response) -> String {
        assert_eq!(response.header("content-type"), Some("application/json"), "{self:?} {response:?}");
        let body = response.json();
        let message = match self {
            Family::Tolka => {
                assert!(body["error"]["code"].is_string(), "{body}");
                &body["error"]["message"]
            }
            Family::Onyx => {
                assert!(body["error_code"].is_string(), "{body}");
                &body["detail"]
            }
            Family::OpenCode => {
                assert!(body["name"].is_string(), "{body}");
                &body["data"]["message"]
            }
        };
        message.as_str().filter(|words| !words.is_empty()).unwrap_or_else(|| panic!("{body} says nothing")).to_owned()
    }

    pub(crate) fn assert_refused(self, response: &Response, status: u16, what: &str) {
        assert_eq!(response.status, status, "{self:?}: {what}: {}", String::from_utf8_lossy(&response.body));
        self.problem(response);
    }
}

/// Everything that lists show of every session.
pub(crate) fn state(address: SocketAddr) -> Value {
    json!([get(address, "/v1/sessions").expect(200), get(address, "/session").expect(200)])
}

/// A server with one session that has had a turn.
fn lived_in(house: &House) -> (Server, String) {
    let agent = house.plays(&short_turn());
    let server = house.serve(&["--agent", &agent, "--pace", "max"]);
    let session = new_session(server.address);
    prompt(server.address, &session);
    Stream::open(server.address, &format!("/v1/sessions/{session}/events"), None).unwrap().fact("turn_ended");
    (server, session)
}

#[test]
fn bodies_that_are_no_prompts_are_refused() {
    let house = House::new();
    let (server, session) = lived_in(&house);
    let address = server.address;
    let before = state(address);
    let deep = "[".repeat(100_000);
    let bodies: [(&str, &[u8]); 9] = [
        ("malformed", br#"{"text": "#),
        ("words", b"hello"),
        ("a list", b"[]"),
        ("a number", b"7"),
        ("null", b"null"),
        ("broken UTF-8", b"{\"text\":\"\xff\xfe\",\"content\":\"\xff\",\"parts\":[]}"),
        ("half a surrogate", br#"{"text":"\ud800","content":"\ud800","parts":[{"type":"text","text":"\ud800"}]}"#),
        ("nested too deep", deep.as_bytes()),
        ("nothing", b""),
    ];
    for family in FAMILIES {
        for (what, body) in bodies {
            let response = call(address, "POST", &family.prompts(&session), &[], body);
            family.assert_refused(&response, 400, what);
        }
    }
    let wrong = [
        (Family::Tolka, json!({ "text": 5 })),
        (Family::Tolka, json!({ "text": "" })),
        (Family::Tolka, json!({ "content": "a string" })),
        (Family::Tolka, json!({ "content": [{ "type": "hologram" }] })),
        (Family::Tolka, json!({ "text": "a", "content": [] })),
        (Family::Tolka, json!({ "text": "a", "key": 7 })),
        (Family::Tolka, json!({ "text": "a", "model": "gpt" })),
        (Family::Onyx, json!({ "content": 5 })),
        (Family::Onyx, json!({ "content": " " })),
        (Family::Onyx, json!({ "content": "a", "client_request_id": 7 })),
        (Family::Onyx, json!({ "content": "a", "attachments": [{ "name": "n", "path": "/etc/passwd" }] })),
        (Family::OpenCode, json!({ "parts": "text" })),
        (Family::OpenCode, json!({ "parts": [] })),
        (Family::OpenCode, json!({ "parts": [{ "type": "hologram" }] })),
        (Family::OpenCode, json!({ "parts": [{ "type": "text", "text": 5 }] })),
        (Family::OpenCode, json!({ "parts": [{ "type": "text", "text": "a" }], "messageID": 7 })),
        (Family::OpenCode, json!({ "parts": [{ "type": "text", "text": "a" }], "agent": ["build"] })),
    ];
    for (family, body) in wrong {
        family.assert_refused(&post(address, &family.prompts(&session), &body), 400, &body.to_string());
    }
    assert_eq!(state(address), before);
}

#[test]
fn sessions_that_are_none_cannot_be_prompted_changed_or_made() {
    let house = House::new();
    let (server, session) = lived_in(&house);
    let address = server.address;
    let before = state(address);
    for family in FAMILIES {
        for (method, path) in [
            ("GET", family.session("ses_nobody")),
            ("DELETE", family.session("ses_nobody")),
            ("POST", family.prompts("ses_nobody")),
        ] {
            let response = call(address, method, &path, &[], family.prompt().to_string().as_bytes());
            family.assert_refused(&response, 404, &path);
        }
    }
    // The server's own journal is nobody's session, whatever is asked of it.
    for (method, path) in [
        ("GET", "/v1/sessions/srv_tolka"),
        ("GET", "/v1/sessions/srv_tolka/events"),
        ("POST", "/v1/sessions/srv_tolka/prompt"),
        ("DELETE", "/v1/sessions/srv_tolka"),
        ("DELETE", "/v1/sessions/srv_tolka?purge=true"),
    ] {
        let response = call(address, method, path, &[], br#"{"text":"hi"}"#);
        Family::Tolka.assert_refused(&response, 404, path);
    }
    // Document 000's client reads its errors from the stream that it expects.
    let mut told = call(address, "POST", &Family::Onyx.prompts("ses_nobody"), &[], br#"{"content":"hi"}"#);
    assert_eq!((told.status, told.header("content-type")), (200, Some("text/event-stream; charset=utf-8")));
    let packet = crate::sse::data(&std::mem::take(&mut told.body));
    assert_eq!((&packet["type"], &packet["message"]), (&json!("error"), &json!("Session not found")));

    let outside = json!({ "workspace": "/etc" });
    Family::Tolka.assert_refused(&post(address, "/v1/sessions", &outside), 403, "a folder outside");
    Family::Tolka.assert_refused(&post(address, "/v1/sessions", &json!({ "agent": "nobody" })), 400, "no agent");
    Family::Tolka.assert_refused(&post(address, "/v1/sessions", &json!({ "title": 7 })), 400, "a title");
    Family::OpenCode.assert_refused(&post(address, "/session?directory=/etc", &json!({})), 400, "a folder outside");
    Family::OpenCode.assert_refused(&post(address, "/session", &json!({ "parentID": "ses_nobody" })), 404, "no parent");
    Family::Onyx.assert_refused(&post(address, "/api/build/sessions", &json!({ "name": ["x"] })), 400, "a name");
    let changes = [json!({ "title": 7 }), json!({ "archived": "yes" }), json!({})];
    for change in changes {
        let response = call(address, "PATCH", &Family::Tolka.session(&session), &[], change.to_string().as_bytes());
        Family::Tolka.assert_refused(&response, 400, &change.to_string());
    }
    let response = call(address, "PUT", &format!("/api/build/sessions/{session}/name"), &[], br#"{"name":7}"#);
    Family::Onyx.assert_refused(&response, 400, "a name that is a number");
    let response = call(address, "PATCH", &Family::OpenCode.session(&session), &[], br#"{"title":7}"#);
    Family::OpenCode.assert_refused(&response, 400, "a title that is a number");
    assert_eq!(state(address), before);
}

#[test]
fn answers_to_nothing_are_refused() {
    let house = House::new();
    let (server, session) = lived_in(&house);
    let address = server.address;
    let before = state(address);
    let answers = [
        (Family::Tolka, format!("/v1/sessions/{session}/answers/per_none"), json!({ "option": "once" }), 404),
        (Family::Tolka, format!("/v1/sessions/{session}/answers/per_none"), json!({ "option": 1 }), 400),
        (Family::Tolka, format!("/v1/sessions/{session}/answers/per_none"), json!({}), 400),
        (Family::Onyx, "/api/build/approvals/per_none/decision".into(), json!({ "decision": "APPROVED" }), 404),
        (Family::Onyx, "/api/build/approvals/per_none/decision".into(), json!({ "decision": "MAYBE" }), 400),
        (Family::OpenCode, "/permission/per_none/reply".into(), json!({ "reply": "once" }), 404),
        (Family::OpenCode, "/permission/per_none/reply".into(), json!({ "reply": "maybe" }), 400),
        (Family::OpenCode, "/question/que_none/reply".into(), json!({ "answers": [["x"]] }), 404),
        (Family::OpenCode, "/question/que_none/reply".into(), json!({ "answers": "x" }), 400),
    ];
    for (family, path, body, status) in answers {
        family.assert_refused(&post(address, &path, &body), status, &path);
    }
    assert_eq!(state(address), before);
}

#[test]
fn positions_that_cannot_be_honoured_are_told() {
    let house = House::new();
    let (server, session) = lived_in(&house);
    let address = server.address;
    let before = state(address);
    let turn = get(address, &format!("/v1/sessions/{session}/view")).expect(200)["messages"][0]["turn"].clone();
    let of_turn = format!("/api/build/sessions/{session}/turns/{}/events", turn.as_str().unwrap());
    let streams = [(Family::Tolka, format!("/v1/sessions/{session}/events")), (Family::Onyx, of_turn)];
    for (family, path) in &streams {
        for (position, status) in
            [("999999.0", 410), ("999999", 410), ("x", 400), ("-1", 400), ("1.2.3", 400), ("99999999999999999999", 400)]
        {
            let by_header = call(address, "GET", path, &[("Last-Event-ID", position)], &[]);
            family.assert_refused(&by_header, status, position);
            family.assert_refused(&get(address, &format!("{path}?after={position}")), status, position);
        }
    }
    for cursor in ["0123456789abcdef.1.0", "garbage", "5"] {
        let refused = call(address, "GET", "/v1/events", &[("Last-Event-ID", cursor)], &[]);
        Family::Tolka.assert_refused(&refused, 410, cursor);
        // A feed of OpenCode's lets its client in all the same: it starts at now.
        for feed in ["/event", "/global/event"] {
            let mut stream = Stream::open(address, feed, Some(cursor)).unwrap();
            new_session(address);
            let first = stream.next_told().unwrap();
            let text = String::from_utf8(first).unwrap();
            assert!(text.contains("session.created"), "{feed} after {cursor}: {text}");
        }
    }
    let unknown_turn = format!("/v1/sessions/{session}/events?turn=trn_none");
    Family::Tolka.assert_refused(&get(address, &unknown_turn), 404, "no such turn");
    let unknown_dialect = format!("/v1/sessions/{session}/events?dialect=klingon");
    Family::Tolka.assert_refused(&get(address, &unknown_dialect), 400, "no such dialect");
    Family::Tolka.assert_refused(&get(address, &format!("/v1/sessions/{session}/view?at=999")), 410, "a view of later");
    let unchanged =
        |state: &Value| state[0]["sessions"].as_array().unwrap().iter().find(|s| s["id"] == *session).cloned();
    assert_eq!(unchanged(&state(address)), unchanged(&before));
}

#[test]
fn paths_and_queries_that_mean_nothing_are_told_in_each_shape() {
    let house = House::new();
    let (server, session) = lived_in(&house);
    let address = server.address;
    let before = state(address);
    for (family, path, status) in [
        (Family::Tolka, "/v1/nothing".to_owned(), 404),
        (Family::Onyx, "/api/build/nothing".to_owned(), 404),
        (Family::OpenCode, "/nothing".to_owned(), 404),
        (Family::Tolka, "/v1/sessions/%ff".to_owned(), 400),
        (Family::Onyx, "/api/build/sessions/%ff".to_owned(), 400),
        (Family::OpenCode, "/session/%ff".to_owned(), 400),
        (Family::Tolka, "/v1/sessions?limit=many".to_owned(), 400),
        (Family::Tolka, "/v1/events?wait=long".to_owned(), 400),
        (Family::Tolka, format!("/v1/sessions/{session}/view?at=now"), 400),
        (Family::Tolka, format!("/v1/sessions/{session}/events?skip=-1"), 400),
        (Family::OpenCode, "/session?limit=many".to_owned(), 400),
        (Family::OpenCode, "/event?profile=klingon".to_owned(), 400),
        (Family::Onyx, format!("/api/build/sessions/{session}/turns/trn_none/events"), 404),
        (Family::Tolka, "/v1/blobs/xyz".to_owned(), 404),
        (Family::Tolka, "/v1/blobs/../../../etc/passwd".to_owned(), 404),
    ] {
        family.assert_refused(&get(address, &path), status, &path);
    }
    assert_eq!(state(address), before);
}
