//! The packets of document 001, for those who ask for them.

use serde_json::{Value, json};
use tolka_agent::Pace;

use crate::house::House;
use crate::reader::text_of;

async fn send(house: &House, session: &str) -> crate::house::Reply {
    house.post(&format!("/sessions/{session}/send-message?packets=steps"), json!({ "content": "Do it" })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_told_in_steps_and_resumed_in_steps() {
    let house = House::playing("opencode-rich", Pace::AtOnce).await;
    let session = house.session().await;
    let told = send(&house, &session).await;
    let packets = told.packets();
    assert_eq!(packets.last().unwrap()["type"], "done");
    assert_eq!(packets.iter().filter(|packet| packet["type"] == "done").count(), 1);
    for kind in ["tool_start", "tool_end", "output_start", "output_delta", "output_end"] {
        assert!(packets.iter().any(|packet| packet["type"] == kind), "{kind}");
    }
    let turn = told.header("tolka-turn").unwrap();
    let path = format!("/api/build/sessions/{session}/turns/{turn}/events?packets=steps");
    assert_eq!(told.header("content-location"), Some(path.as_str()));
    assert_eq!(house.get(&path).await.text(), told.text());
    let all = told.frames();
    for (read, frame) in all.iter().enumerate() {
        let rest = text_of(&all[read + 1..]);
        assert_eq!(house.get(&format!("{path}&skip={}", read + 1)).await.text(), rest);
        let stream = house.open("GET", &path, &[("Last-Event-ID", &frame.id)], None).await;
        assert_eq!(stream.whole().await.text(), rest);
    }
    assert_eq!(house.get(&format!("{path}&skip={}", all.len() + 1)).await.status, 410);
    let same = house.get(&path.replace("packets=steps", "profile=documented")).await.packets();
    assert_eq!(same.last().unwrap()["type"], "prompt_response", "the same turn in the other packets");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_session_is_told_in_the_first_documents_words() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let mut told = send(&house, "ses_none").await.packets();
    assert_eq!(told.len(), 1);
    assert!(told[0]["timestamp"].take().is_string());
    assert_eq!(told[0], json!({ "type": "error", "message": "Session not found", "code": -1, "timestamp": null }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_is_answered_as_the_first_document_has_it() {
    let house = House::playing("opencode-perm", Pace::AtOnce).await;
    let session = house.session().await;
    let path = format!("/sessions/{session}/send-message?packets=steps");
    let mut stream = house.open("POST", &path, &[], Some(json!({ "content": "Do it" }).to_string())).await;
    let asked = stream.packet_of("permission_request").await;
    let request = asked["request_id"].as_str().unwrap();
    let path = format!("/api/build/approvals/{request}/decision");
    let decide = |body: Value| house.post(&path, body);
    let answer = json!({ "type": "permission_response", "request_id": request, "approved": true, "reason": "Fine" });
    assert_eq!(decide(json!({ "request_id": "per_other", "approved": true })).await.status, 400);
    assert_eq!(decide(answer.clone()).await.json()["decision"], "APPROVED");
    assert_eq!(decide(answer).await.status, 409);
    assert_eq!(stream.packet_of("done").await["stop_reason"], "end_turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_dropped_from_the_queue_ends_in_steps_too() {
    let house = House::playing("opencode-rich", Pace::Recorded).await;
    let session = house.session().await;
    let mut first = house.prompt(&session, "First").await;
    first.packet().await.unwrap();
    let path = format!("/sessions/{session}/send-message?packets=steps");
    let second = house.open("POST", &path, &[], Some(json!({ "content": "Second" }).to_string())).await;
    let turn = second.header("tolka-turn").unwrap().to_owned();
    house.send("DELETE", &format!("/v1/sessions/{session}/queue/{turn}"), "").await;
    let told = second.whole().await.packets();
    assert_eq!((told.len(), &told[0]["type"], &told[0]["stop_reason"]), (1, &json!("done"), &json!("cancelled")));
}
