//! Prompts of both generations, and how turns end.

use serde_json::{Value, json};
use tolka_agent::Pace;

use crate::house::{House, recording};

fn said(packets: &[Value]) -> String {
    let chunks = packets.iter().filter(|packet| packet["type"] == "agent_message_chunk");
    chunks.map(|packet| packet["content"]["text"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documents_client_gets_its_turn_as_the_answer() {
    let house = House::playing("opencode-rich", Pace::AtOnce).await;
    let session = house.session().await;
    let stream = house.prompt(&session, "Do it").await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    assert_eq!(stream.header("tolka-session"), Some(session.as_str()));
    assert!(stream.header("tolka-turn").unwrap().starts_with("trn_"));
    let told = stream.whole().await;
    let packets = told.packets();
    assert_eq!(packets.len(), told.frames().len(), "every frame is a packet to this client");
    assert_eq!(packets.last().unwrap()["type"], "prompt_response");
    assert_eq!(packets.last().unwrap()["stopReason"], "end_turn");
    let ends = packets.iter().filter(|packet| packet["type"] == "prompt_response" || packet["type"] == "error");
    assert_eq!(ends.count(), 1);
    for packet in &packets {
        assert!(packet["timestamp"].is_string(), "{packet}");
        if packet["type"] != "prompt_response" {
            assert_eq!(packet["_meta"], Value::Null, "the documents have no words in _meta: {packet}");
        }
    }
    let starts = packets.iter().filter(|packet| packet["type"] == "tool_call_start").count();
    let is_end = |packet: &&Value| packet["status"] == "completed" || packet["status"] == "failed";
    assert!(starts > 0);
    assert_eq!(packets.iter().filter(is_end).count(), starts);
    assert!(!said(&packets).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_is_under_the_released_path() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let session = house.session().await;
    let path = format!("/api/build/sessions/{session}/send-message");
    let told = house.post(&path, json!({ "content": "Do it" })).await;
    assert_eq!(told.packets().last().unwrap()["type"], "prompt_response");
}

#[tokio::test(flavor = "multi_thread")]
async fn todays_client_gets_one_turn_for_one_key() {
    let house = House::playing("opencode-rich", Pace::AtOnce).await;
    let session = house.session().await;
    let path = format!("/api/build/sessions/{session}/send-message");
    let body = json!({ "content": "Do it", "client_request_id": "key-1", "attachments": [] });
    let (first, at_once) = tokio::join!(house.post(&path, body.clone()), house.post(&path, body.clone()));
    let (first, at_once) = (first.json(), at_once.json());
    assert_eq!(first["turn_id"], at_once["turn_id"]);
    assert_eq!((&first["session_id"], &first["turn_index"]), (&json!(session), &json!(0)));
    let turn = first["turn_id"].as_str().unwrap();
    let events = format!("/api/build/sessions/{session}/turns/{turn}/events");
    let told = house.get(&events).await;
    let packets = told.packets();
    assert_eq!(packets.last().unwrap()["type"], "prompt_response");
    let named = packets.iter().filter(|packet| packet["_meta"]["toolName"].is_string());
    assert!(named.count() > 0, "today's client looks for the tool's name in _meta");

    let again = house.post(&path, body).await.json();
    assert_eq!(
        again,
        json!({
            "turn_id": turn, "session_id": session, "status": "SUCCEEDED", "turn_index": 0, "skills_stale": false,
        })
    );
    let rows = house.get(&format!("/api/build/sessions/{session}/messages")).await.json();
    let users = rows["messages"].as_array().unwrap().iter().filter(|row| row["type"] == "user").count();
    assert_eq!(users, 1);

    let other = house.post(&path, json!({ "content": "And this", "client_request_id": "key-2" })).await.json();
    assert_eq!(other["turn_index"], 1);
    assert_ne!(other["turn_id"], turn);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_session_says_what_was_streamed() {
    let house = House::playing("opencode-rich", Pace::AtOnce).await;
    let session = house.session().await;
    let packets = house.prompt(&session, "Do it").await.whole().await.packets();
    let rows = house.get(&format!("/api/build/sessions/{session}/messages")).await.json();
    let rows = rows["messages"].as_array().unwrap();
    assert_eq!(rows[0]["type"], "user");
    assert_eq!(rows[0]["message_metadata"]["content"]["text"], "Do it");
    assert!(rows.iter().all(|row| row["turn_index"] == 0 && row["session_id"] == session.as_str()));
    let stored: String = rows
        .iter()
        .filter(|row| row["message_metadata"]["type"] == "agent_message")
        .map(|row| row["message_metadata"]["content"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(stored, said(&packets));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_can_be_interrupted() {
    let house = House::playing("opencode-rich", Pace::Recorded).await;
    let session = house.session().await;
    let of = |rest: &str| format!("/api/build/sessions/{session}/{rest}");
    assert_eq!(house.get(&of("turns/active")).await.json(), Value::Null);
    let mut stream = house.prompt(&session, "Do it").await;
    stream.packet().await.unwrap();
    let active = house.get(&of("turns/active")).await.json();
    assert_eq!((&active["status"], &active["turn_index"]), (&json!("RUNNING"), &json!(0)));
    assert_eq!(active["turn_id"], stream.header("tolka-turn").unwrap());
    assert_eq!(house.post(&of("interrupt"), json!({})).await.json(), json!({ "interrupted": true }));
    let end = stream.packet_of("prompt_response").await;
    assert_eq!(end["stopReason"], "cancelled");
    assert_eq!(stream.packet().await, None);
    assert_eq!(house.get(&of("turns/active")).await.json(), Value::Null);
    assert_eq!(house.post(&of("interrupt"), json!({})).await.json(), json!({ "interrupted": false }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_fails_tells_its_packets_and_then_the_error() {
    // A recording that breaks off: the agent is gone in the middle of its turn.
    let whole = recording("opencode-rich");
    let until_its_end: Vec<&str> = whole.lines().take_while(|line| !line.contains("stopReason")).collect();
    let house = House::with(until_its_end.join("\n"), Pace::AtOnce).await;
    let session = house.session().await;
    let told = house.prompt(&session, "Do it").await.whole().await;
    let packets = told.packets();
    assert!(packets.len() > 1);
    let error = packets.last().unwrap();
    assert_eq!(error["type"], "error");
    assert!(error["message"].is_string() && error["code"].is_null(), "{error}");
    let path = format!("/api/build/sessions/{session}/turns/{}/events", told.header("tolka-turn").unwrap());
    assert_eq!(house.get(&format!("{path}?profile=documented")).await.text(), told.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_session_is_told_as_each_client_expects_it() {
    let house = House::playing("codex", Pace::AtOnce).await;
    for path in ["/sessions/ses_none/send-message", "/api/build/sessions/srv_tolka/send-message"] {
        let told = house.post(path, json!({ "content": "Do it" })).await;
        assert_eq!((told.status, told.packets().len()), (200, 1));
        let mut error = told.packets().remove(0);
        assert!(error["timestamp"].take().is_string());
        let expected = json!({
            "type": "error", "timestamp": null, "message": "Session not found", "code": null, "details": null,
        });
        assert_eq!(error, expected);
        let refused = house.post(path, json!({ "content": "Do it", "client_request_id": "k" })).await;
        assert_eq!((refused.status, refused.json()["detail"].as_str()), (404, Some("Session not found")));
    }
    let none = house.get("/api/build/sessions/ses_none/turns/trn_none/events").await;
    assert_eq!(none.status, 404);
    let session = house.session().await;
    let none = house.get(&format!("/api/build/sessions/{session}/turns/trn_none/events")).await;
    assert_eq!((none.status, none.json()["detail"].as_str()), (404, Some("Turn not found")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_message_changes_nothing() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let session = house.session().await;
    let path = format!("/sessions/{session}/send-message");
    for body in [
        "",
        "{",
        "[]",
        r#""hi""#,
        "{}",
        r#"{"content":null}"#,
        r#"{"content":""}"#,
        r#"{"content":7}"#,
        r#"{"content":"hi","client_request_id":7}"#,
        r#"{"content":"hi","client_request_id":""}"#,
        r#"{"content":"hi","model":{"id":"m"}}"#,
        r#"{"content":"hi","attachments":[{"name":"a","path":"../a"}]}"#,
    ] {
        let refused = house.send("POST", &path, body).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text());
        assert!(refused.json()["detail"].is_string());
    }
    let unknown = house.post(&format!("{path}?packets=leaps"), json!({ "content": "hi" })).await;
    assert_eq!(unknown.status, 400);
    let rows = house.get(&format!("/api/build/sessions/{session}/messages")).await.json();
    assert_eq!(rows, json!({ "messages": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_come_back_with_their_message() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let session = house.session().await;
    let attachment = json!({ "name": "a.png", "path": "attachments/a.png", "mime_type": "image/png" });
    let body = json!({ "content": "Look", "client_request_id": "k", "attachments": [attachment], "model": "m" });
    let sent = house.post(&format!("/api/build/sessions/{session}/send-message"), body).await;
    assert_eq!(sent.status, 200);
    let rows = house.get(&format!("/api/build/sessions/{session}/messages")).await.json();
    assert_eq!(rows["messages"][0]["message_metadata"]["attachments"], json!([attachment]));
}
