//! What a dialog was, read back: messages page by page, and what came of each call.

use serde_json::{Value, json};
use tolka_agent::Pace;

use crate::agent::Obedient;
use crate::chat::{chat, dialog, message};
use crate::house::House;
use crate::skeleton::{events, said};

async fn page(house: &House, dialog: &str, query: &str) -> Value {
    let answer = house.get(&format!("/api/dialogs/{dialog}/history{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_says_what_was_streamed() {
    let house = House::playing("opencode-rich", Pace::AtOnce).await;
    let told = events(&chat(&house, &message("Do it")).await.whole().await.bytes);
    let dialog = told[0]["dialog_id"].as_str().unwrap();
    let history = page(&house, dialog, "?limit=100").await;
    assert_eq!(history["dialog_id"], dialog);
    let kept = history["events"].as_array().unwrap();
    assert_eq!(history["total_events"], kept.len());
    assert_eq!(kept[0], json!({ "type": "user", "content": "Do it", "idx": history["first_idx"] }));
    assert_eq!(said(kept), said(&told));
    let named = |events: &[Value]| -> Vec<Value> {
        let calls = events.iter().filter(|event| event["type"] == "tool_call");
        calls.map(|event| json!([event["name"], event["args"]])).collect()
    };
    assert!(!named(kept).is_empty());
    assert_eq!(named(kept), named(&told));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_paged_from_its_end_as_the_client_scrolls() {
    let house = House::of(Obedient::ungated()).await;
    let one = dialog(&house).await;
    let empty = json!({
        "dialog_id": one, "events": [], "total_events": 0, "has_more": false, "first_idx": 0, "last_idx": 0,
    });
    assert_eq!(page(&house, &one, "").await, empty);
    for text in ["a", "b", "c"] {
        chat(&house, &message(text)).await.whole().await;
    }
    // The VS Code client asks for the latest page, then for what is before the first index that it has.
    let (mut read, mut before) = (Vec::new(), None);
    loop {
        let query = before.map_or("?limit=4".to_owned(), |before: u64| format!("?limit=4&before={before}"));
        let page = page(&house, &one, &query).await;
        let events = page["events"].as_array().unwrap().clone();
        let indices: Vec<u64> = events.iter().map(|event| event["idx"].as_u64().unwrap()).collect();
        assert_eq!(
            (page["first_idx"].as_u64(), page["last_idx"].as_u64()),
            (indices.first().copied(), indices.last().copied())
        );
        read.splice(0..0, events);
        before = page["first_idx"].as_u64();
        if page["has_more"] == false {
            break;
        }
    }
    let texts: Vec<&str> = read.iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["a", "a", "b", "b", "c", "c"]);
    for (path, status) in [
        (format!("/api/dialogs/{one}/history?limit=x"), 422),
        (format!("/api/dialogs/{one}/history?before=-1"), 422),
        ("/api/dialogs/nope/history".to_owned(), 404),
        ("/api/dialogs/nope/tool-results".to_owned(), 404),
        (format!("/api/dialogs/{one}/tool-results/nope"), 404),
    ] {
        let refused = house.get(&path).await;
        assert_eq!(refused.status, status, "{path}");
        assert!(refused.json()["detail"].is_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_of_the_history_has_a_result() {
    let house = House::playing("opencode-rich", Pace::AtOnce).await;
    let told = chat(&house, &message("Do it")).await.whole().await;
    let dialog = told.header("tolka-session").unwrap();
    let history = page(&house, dialog, "?limit=100").await;
    let results = house.get(&format!("/api/dialogs/{dialog}/tool-results")).await.json();
    let results = results.as_array().unwrap();
    let mut calls = 0;
    for call in history["events"].as_array().unwrap().iter().filter(|event| event["type"] == "tool_call") {
        calls += 1;
        let id = call["id"].as_str().unwrap();
        let listed = results.iter().find(|result| result["tool_call_id"] == id).unwrap();
        let whole = house.get(&format!("/api/dialogs/{dialog}/tool-results/{id}")).await.json();
        assert_eq!((&whole["tool_name"], &whole["args"]), (&call["name"], &call["args"]));
        assert_eq!((&listed["tool_name"], &listed["timestamp"]), (&whole["tool_name"], &whole["timestamp"]));
        let kind = whole["result"]["type"].as_str().unwrap();
        assert_eq!(listed["error"].is_string(), kind.ends_with("_error"), "{whole}");
        let size = whole["result"].to_string().len();
        assert_eq!(whole["metadata"], json!({ "size_bytes": size, "summary": listed["summary"] }));
        assert_eq!(listed["size_bytes"], size);
    }
    assert!(calls > 2);
    assert_eq!(results.len(), calls);
}
