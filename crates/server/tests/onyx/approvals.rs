//! Permissions, asked on the stream and answered beside it.

use serde_json::{Value, json};
use tolka_agent::Pace;

use crate::house::{House, Stream};

/// A turn that waits for a person: its session, its stream, and the approval that it waits for.
async fn asked(house: &House) -> (String, Stream, String) {
    let session = house.session().await;
    let mut stream = house.prompt(&session, "Do it").await;
    let poke = stream.packet_of("approval_requested").await;
    assert_eq!(poke["session_id"], session.as_str());
    (session, stream, poke["approval_id"].as_str().unwrap().to_owned())
}

async fn decide(house: &House, approval: &str, decision: &str) -> (u16, Value) {
    let reply = house.post(&format!("/api/build/approvals/{approval}/decision"), json!({ "decision": decision })).await;
    (reply.status, reply.json())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_listed_and_decided_once() {
    let house = House::playing("opencode-perm", Pace::AtOnce).await;
    let (session, mut stream, approval) = asked(&house).await;
    let (_, mut other, other_approval) = asked(&house).await;
    let live = format!("/api/build/approvals/sessions/{session}/live");
    let items = house.get(&live).await.json();
    let [item] = items["items"].as_array().unwrap().as_slice() else { panic!("one approval waits: {items}") };
    assert_eq!(item["approval_id"], approval);
    assert_eq!((&item["decision"], &item["decided_at"]), (&Value::Null, &Value::Null));
    assert!(item["payload"].is_object() && item["created_at"].is_string());
    assert!(item["actions"][0]["display_name"].as_str().is_some_and(|name| !name.is_empty()));

    assert_eq!(decide(&house, &approval, "EXPIRED").await.0, 400);
    assert_eq!(decide(&house, "per_none", "APPROVED").await.0, 404);
    let (status, decided) = decide(&house, &approval, "APPROVED").await;
    assert_eq!((status, &decided["decision"]), (200, &json!("APPROVED")));
    assert!(decided["decided_at"].is_string());
    let (status, again) = decide(&house, &approval, "REJECTED").await;
    assert_eq!(status, 409);
    assert!(again["detail"].is_string());
    assert_eq!(stream.packet_of("prompt_response").await["stopReason"], "end_turn");
    assert_eq!(house.get(&live).await.json(), json!({ "items": [] }));

    // The other session still waits for its own.
    assert_eq!(decide(&house, &other_approval, "REJECTED").await.0, 200);
    let mut failed = false;
    while let Some(packet) = other.packet().await {
        failed |= packet["status"] == "failed";
    }
    assert!(failed, "a tool that was not allowed has failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_withdraws_what_was_asked() {
    let house = House::playing("opencode-perm", Pace::AtOnce).await;
    let (session, mut stream, approval) = asked(&house).await;
    house.post(&format!("/api/build/sessions/{session}/interrupt"), json!({})).await;
    assert_eq!(stream.packet_of("prompt_response").await["stopReason"], "cancelled");
    let items = house.get(&format!("/api/build/approvals/sessions/{session}/live")).await.json();
    assert_eq!(items, json!({ "items": [] }));
    assert_eq!(decide(&house, &approval, "APPROVED").await.0, 409);
}
