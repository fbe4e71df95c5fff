//! What no client should send: the right status, words that say what to do, and nothing changed.

use serde_json::{Value, json};
use tolka_agent::Pace;

use crate::agent::Obedient;
use crate::chat::{chat, message};
use crate::house::House;
use crate::skeleton::events;

/// The words of a refusal, which the document's client must read although it does not look at the status.
async fn refused_stream(house: &House, body: &Value, status: u16) -> String {
    let refused = chat(house, body).await.whole().await;
    assert_eq!(refused.status, status, "{body}: {}", refused.text());
    assert_eq!(refused.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let told = events(&refused.bytes);
    let [error, done] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((&error["type"], &done["type"], &done["done"]), (&json!("error"), &json!("done"), &json!(true)));
    let current = house.get("/api/dialogs/current").await.json()["id"].clone();
    let dialog = body["dialog_id"].as_str().or(current.as_str()).unwrap_or_default();
    assert_eq!((&error["dialog_id"], &done["dialog_id"]), (&json!(dialog), &json!(dialog)));
    error["error"].as_str().unwrap().to_owned()
}

async fn refused_json(house: &House, mut body: Value, status: u16) -> String {
    body["stream"] = json!(false);
    let refused = house.post("/api/chat", body).await;
    assert_eq!(refused.status, status, "{}", refused.text());
    refused.json()["detail"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_a_message_is_refused() {
    let house = House::of(Obedient::ungated()).await;
    for (messages, status) in [
        (json!([]), 400),
        (json!([{ "role": "assistant", "content": "hi" }]), 400),
        (json!([{ "role": "user", "content": "" }]), 400),
        (json!([{ "role": "user", "content": 7 }]), 422),
        (json!([{ "content": "hi" }]), 422),
        (json!("hi"), 422),
        (Value::Null, 422),
    ] {
        let body = json!({ "messages": messages });
        let words = refused_stream(&house, &body, status).await;
        assert_eq!(words, refused_json(&house, body, status).await);
        assert_eq!(words.starts_with("No user message found."), status == 400, "{words}");
    }
    for (field, value) in [("context", json!("x")), ("dialog_id", json!(7))] {
        let mut body = message("hi");
        body[field] = value;
        let words = refused_stream(&house, &body, 422).await;
        assert!(words.contains(&format!("`{field}`")), "{words}");
    }
    for body in ["", "{", "[]", "\"hi\"", "\u{0}"] {
        let refused = house.send("POST", "/api/chat", body).await;
        assert!(matches!(refused.status, 400 | 422), "{body}: {}", refused.status);
        assert_eq!(events(&refused.bytes).len(), 2);
        assert!(events(&refused.bytes).iter().all(|event| event["dialog_id"] == ""), "{}", refused.text());
    }
    assert_eq!(house.get("/api/dialogs").await.json(), json!({ "dialogs": [] }), "no dialog was made");
    crate::chat::dialog(&house).await;
    refused_stream(&house, &json!({}), 422).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_dialog_is_refused_with_what_to_do() {
    let house = House::of(Obedient::ungated()).await;
    for id in ["01J", "srv_tolka", ""] {
        let mut body = message("hi");
        body["dialog_id"] = json!(id);
        let words = refused_stream(&house, &body, 404).await;
        assert!(words.contains("POST /api/dialogs") && words.contains("leave `dialog_id` out"), "{words}");
        assert_eq!(words, refused_json(&house, body, 404).await);
    }
    let deleted = house.post("/api/dialogs", json!({})).await.json();
    house.send("DELETE", &format!("/api/dialogs/{}", deleted["id"].as_str().unwrap()), "").await;
    let mut body = message("hi");
    body["dialog_id"] = deleted["id"].clone();
    refused_stream(&house, &body, 404).await;
    assert_eq!(house.get("/api/dialogs").await.json(), json!({ "dialogs": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_beyond_the_limit_is_refused_whole() {
    let house = House::of(Obedient::ungated()).await;
    let mut body = message("context");
    body["context"] = json!({ "current_file": { "content": "x".repeat(33 * 1024 * 1024) } });
    let words = refused_stream(&house, &body, 413).await;
    assert!(words.contains("larger than"), "{words}");
    assert_eq!(house.get("/api/dialogs").await.json(), json!({ "dialogs": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_stream_is_refused_whose_turn_runs_nevertheless() {
    let house = House::for_readers(1, "opencode-rich", Pace::Recorded).await;
    let open = chat(&house, &message("Do it")).await;
    refused_stream(&house, &message("And this"), 429).await;
    let dialog = open.header("tolka-session").unwrap();
    let queue = house.get(&format!("/v1/sessions/{dialog}/queue")).await.json();
    assert_eq!(queue["waiting"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_says_so() {
    let house = House::of(Obedient::ungated()).await;
    let dialog = crate::chat::dialog(&house).await;
    for (method, path, status) in [
        ("PUT", "/api/config".to_owned(), 501),
        ("POST", "/api/config/rename".to_owned(), 501),
        ("GET", "/api/nothing".to_owned(), 404),
        ("PUT", "/api/chat".to_owned(), 405),
        ("GET", "/api/dialogs/nope".to_owned(), 404),
        ("GET", "/api/chat?turn=trn_1".to_owned(), 404),
        ("GET", format!("/api/chat?dialog_id={dialog}"), 404),
        ("GET", format!("/api/chat?dialog_id={dialog}&turn=trn_1"), 404),
        ("GET", format!("/api/chat?dialog_id={dialog}&turn=trn_1&skip=x"), 422),
    ] {
        let refused = house.send(method, &path, "{}").await;
        assert_eq!(refused.status, status, "{method} {path}: {}", refused.text());
        let detail = refused.json();
        assert!(detail["detail"].as_str().is_some_and(|words| !words.is_empty()), "{detail}");
    }
}
