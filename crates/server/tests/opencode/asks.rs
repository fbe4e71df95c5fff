use hyper::StatusCode;
use serde_json::json;

use crate::host::{Feed, Host};
use crate::prompts::text;

async fn asked(host: &Host, words: &str, kind: &str) -> (String, String, Feed) {
    let id = host.new_session().await;
    let mut feed = host.listen("/event", &[]).await;
    host.post(&format!("/session/{id}/prompt_async"), text(words)).await;
    let told = feed.until(kind).await;
    let request = told.last().unwrap().data["properties"]["id"].as_str().unwrap().to_owned();
    (id, request, feed)
}

async fn said(host: &Host, session: &str) -> String {
    let (_, all) = host.get(&format!("/session/{session}/message")).await;
    all[1]["parts"][1]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_is_listed_as_it_was_told_and_answered_once() {
    let host = Host::start().await;
    let (session, request, mut feed) = asked(&host, "may I", "permission.asked").await;
    let (_, listed) = host.get("/permission").await;
    assert_eq!(listed[0]["id"], request.as_str());
    assert_eq!((&listed[0]["sessionID"], &listed[0]["patterns"]), (&json!(session), &json!(["ls *"])));
    assert_eq!(host.get("/question").await.1, json!([]));

    let reply = format!("/permission/{request}/reply");
    assert_eq!(host.post(&reply, json!({ "reply": "perhaps" })).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(host.post(&format!("/question/{request}/reject"), json!({})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(host.post(&reply, json!({ "reply": "reject", "message": "no" })).await, (StatusCode::OK, json!(true)));
    let told = feed.until("session.idle").await;
    let replied = told.iter().find(|told| told.data["type"] == "permission.replied").unwrap();
    assert_eq!(replied.data["properties"]["reply"], "reject");
    assert_eq!(said(&host, &session).await, "Some(\"no\")");
    let (status, error) = host.post(&reply, json!({ "reply": "once" })).await;
    assert_eq!((status, &error["name"]), (StatusCode::NOT_FOUND, &json!("NotFoundError")));
    assert_eq!(host.get("/permission").await.1, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_way_to_answer_a_permission_works_too() {
    let host = Host::start().await;
    let (session, request, mut feed) = asked(&host, "may I", "permission.updated").await;
    let path = format!("/session/{session}/permissions/{request}");
    assert_eq!(host.post(&path, json!({ "response": "always" })).await, (StatusCode::OK, json!(true)));
    feed.until("session.idle").await;
    assert_eq!(said(&host, &session).await, "Some(\"yes\")");
    assert_eq!(host.post(&path, json!({ "response": "once" })).await.0, StatusCode::CONFLICT);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_or_rejected() {
    let host = Host::start().await;
    let (session, request, mut feed) = asked(&host, "which", "question.asked").await;
    assert_eq!(host.get("/question").await.1[0]["questions"][0]["header"], "Colour");
    let old = format!("/session/{session}/permissions/{request}");
    assert_eq!(host.post(&old, json!({ "response": "once" })).await.0, StatusCode::NOT_FOUND);
    let reply = format!("/question/{request}/reply");
    assert_eq!(host.post(&reply, json!({ "answers": "Red" })).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(host.post(&reply, json!({ "answers": [] })).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(host.post(&reply, json!({ "answers": [["Red"]] })).await, (StatusCode::OK, json!(true)));
    feed.until("session.idle").await;
    assert_eq!(said(&host, &session).await, "Some([[\"Red\"]])");

    let (session, request, mut feed) = asked(&host, "which", "question.asked").await;
    assert_eq!(host.post(&format!("/question/{request}/reject"), json!({})).await, (StatusCode::OK, json!(true)));
    feed.until("session.idle").await;
    assert_eq!(said(&host, &session).await, "None");
}
