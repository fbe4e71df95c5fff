//! One message, one turn: streamed to the letter of the document, or as one answer.

use serde_json::{Value, json};
use tolka_agent::Pace;

use crate::agent::Obedient;
use crate::house::{House, Stream};
use crate::skeleton::{events, pieces, said};

pub(crate) fn message(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

/// A chat as the document's client sends it; its stream.
pub(crate) async fn chat(house: &House, body: &Value) -> Stream {
    house.open("POST", "/api/chat", &[("Accept", "text/event-stream")], Some(body.to_string())).await
}

pub(crate) async fn dialog(house: &House) -> String {
    house.post("/api/dialogs", json!({})).await.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documents_skeleton_reads_every_event() {
    for name in ["opencode-rich", "codex"] {
        let house = House::playing(name, Pace::AtOnce).await;
        let stream = chat(&house, &message("Do it")).await;
        assert_eq!(stream.status, 200);
        assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        let told = stream.whole().await;
        assert!(!told.bytes.contains(&b'\r'));
        let pieces = pieces(&told.bytes);
        assert!(pieces.iter().all(|piece| piece.lines().count() == 2 && piece.starts_with("data: {")), "{name}");
        let events = events(&told.bytes);
        assert_eq!(events.len(), pieces.len());
        assert_eq!((&events[0]["type"], &events[0]["content"]), (&json!("user"), &json!("Do it")));
        let dialog = told.header("tolka-session").unwrap();
        assert!(events.iter().all(|event| event["dialog_id"] == dialog));
        assert_eq!(events.last().unwrap(), &json!({ "type": "done", "done": true, "dialog_id": dialog }));
        assert_eq!(events.iter().filter(|event| event["type"] == "done").count(), 1);
        assert!(!said(&events).is_empty(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_dialog_the_current_one_is_used_or_a_new_one_made() {
    let house = House::of(Obedient::ungated()).await;
    let first = chat(&house, &message("one")).await.whole().await;
    let made = first.header("tolka-session").unwrap();
    assert_eq!(house.get("/api/dialogs/current").await.json()["id"], made);
    let second = chat(&house, &message("two")).await.whole().await;
    assert_eq!(second.header("tolka-session"), Some(made));
    let beside = house.post("/api/dialogs", json!({ "set_current": false })).await.json();
    let mut named = message("three");
    named["dialog_id"] = beside["id"].clone();
    let third = chat(&house, &named).await.whole().await;
    assert_eq!(third.header("tolka-session"), beside["id"].as_str());
    assert_eq!(said(&events(&third.bytes)), "three");
    assert_eq!(house.get("/api/dialogs/current").await.json()["id"], made, "a message chooses no dialog");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_messages_that_come_at_once_share_one_dialog() {
    let house = House::of(Obedient::ungated()).await;
    let (body, told) = (message("hi"), async |body| chat(&house, body).await.whole().await);
    let all = tokio::join!(told(&body), told(&body), told(&body), told(&body), told(&body), told(&body));
    let all = [all.0, all.1, all.2, all.3, all.4, all.5];
    let listed = house.get("/api/dialogs").await.json();
    let [dialog] = listed["dialogs"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!(listed["current_dialog_id"], dialog["id"]);
    assert!(all.iter().all(|told| told.header("tolka-session") == dialog["id"].as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_is_what_the_stream_would_have_said() {
    let house = House::playing("opencode-rich", Pace::AtOnce).await;
    let streamed = chat(&house, &message("Do it")).await.whole().await;
    let dialog = streamed.header("tolka-session").unwrap();
    let mut body = message("Do it");
    body["stream"] = json!(false);
    let whole = house.post("/api/chat", body).await;
    let turn = whole.header("tolka-turn").unwrap();
    let place = format!("/api/chat?dialog_id={dialog}&turn={turn}");
    assert_eq!((whole.header("tolka-session"), whole.header("content-location")), (Some(dialog), Some(place.as_str())));
    let streamed = events(&streamed.bytes);
    let segments: Vec<String> = streamed.split(|event| event["type"] == "chat_end").map(said).collect();
    assert!(segments.len() > 2, "segments that could be glued together");
    let content = segments.join("\n\n").trim_end().to_owned();
    let metadata = json!({ "turn": turn, "stop_reason": "end_turn" });
    let expected = json!({ "content": content, "done": true, "dialog_id": dialog, "metadata": metadata });
    assert_eq!(whole.json(), expected);
    let again = events(&house.get(&place).await.bytes);
    assert_eq!(said(&again), said(&streamed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_says_that_its_turn_was_cancelled() {
    let (agent, _gate) = Obedient::gated();
    let house = House::of(agent).await;
    let dialog = dialog(&house).await;
    let mut body = message("hold");
    body["stream"] = json!(false);
    let cancel = async {
        let mut watched = house.open("GET", &format!("/v1/sessions/{dialog}/events"), &[], None).await;
        watched.until("held").await;
        house.post(&format!("/v1/sessions/{dialog}/cancel"), json!({})).await
    };
    let (whole, cancelled) = tokio::join!(house.post("/api/chat", body), cancel);
    assert_eq!((whole.status, cancelled.json()), (200, json!({ "cancelled": true })));
    assert_eq!(whole.json()["metadata"]["stop_reason"], "cancelled");
    assert_eq!(whole.json()["content"], "hold: held");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_fails_is_an_error_in_both_forms() {
    let house = House::of(Obedient::ungated()).await;
    let told = events(&chat(&house, &message("fail")).await.whole().await.bytes);
    let dialog = told[0]["dialog_id"].clone();
    let [.., error, done] = told.as_slice() else { panic!("{told:?}") };
    let words = "The model is not in the mood";
    assert_eq!(error, &json!({ "type": "error", "error": words, "dialog_id": dialog }));
    assert_eq!(done, &json!({ "type": "done", "done": true, "dialog_id": dialog }));
    assert_eq!(said(&told), "oh");
    let mut body = message("fail");
    body["stream"] = json!(false);
    let refused = house.post("/api/chat", body).await;
    assert_eq!((refused.status, refused.json()), (500, json!({ "detail": words })));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editors_context_reaches_the_agent_whole() {
    let house = House::of(Obedient::ungated()).await;
    // Larger than a fact may be, so that it is kept beside the facts.
    let content = "def old():\n    return 'å'\n".repeat(100_000);
    let context = json!({
        "current_file": { "path": "src/example.py", "language": "python", "content": content, "selection": "x" },
        "open_files": [{ "path": "b.py", "content": "" }],
        "anything": { "else": 1.50 },
    });
    let mut body = message("context");
    body["context"] = context.clone();
    let told = chat(&house, &body).await.whole().await;
    let events = events(&told.bytes);
    assert_eq!(serde_json::from_str::<Value>(&said(&events)).unwrap(), context);
    assert_eq!(events[0]["content"], "context", "the context is the agent's, not a part of the message");
    assert_eq!(said(&self::events(&chat(&house, &message("context")).await.whole().await.bytes)), "none");
}
