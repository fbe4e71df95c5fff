//! A prompt that waits: there is nothing yet that could be taken back.

use std::process::Command;

use serde_json::{Value, json};

use crate::shop::{Shop, ok};

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_waits_for_its_checkpoint_is_said_to_wait() {
    let shop = Shop::open().await;
    let session = shop.new_session().await;
    shop.work(&session, &["write a.txt one"]).await;
    // Git wants to read the ignore file, and a pipe without a writer does not open.
    let pipe = shop.path(".gitignore");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let parts = json!([{ "type": "text", "text": "write a.txt two" }]);
    let sent = shop.post(&format!("/session/{session}/prompt_async"), json!({ "parts": parts })).await;
    assert_eq!(sent.status, 204);
    let queued = shop.facts_of(&session, "prompt_queued").await;
    let message = queued[1]["message"].as_str().unwrap();

    for preview in [true, false] {
        let body = json!({ "message": message, "preview": preview });
        let refused = shop.post(&format!("/v1/sessions/{session}/rewind"), body).await;
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert!(refused.json()["error"]["message"].as_str().unwrap().contains("waits for its checkpoint"));
    }
    for (route, body) in [
        (format!("/session/{session}/revert"), json!({ "messageID": message })),
        (format!("/api/session/{session}/revert/stage"), json!({ "messageID": message })),
    ] {
        let refused = shop.post(&route, body).await;
        assert_eq!((refused.status, &refused.json()["_tag"]), (409, &json!("SessionBusyError")), "{}", refused.text());
    }
    let started: Vec<Value> = shop.facts_of(&session, "turn_started").await;
    assert_eq!(started.len(), 1, "it waited all the time");

    // The writer stays: somebody may be on the way in.
    let writer = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    std::fs::remove_file(&pipe).unwrap();
    shop.work(&session, &["write b.txt three"]).await;
    drop(writer);
    let done = ok(&shop.post(&format!("/v1/sessions/{session}/rewind"), json!({ "message": message })).await);
    assert_eq!(done["messages"], 4, "{done}");
    assert_eq!(shop.text("a.txt").as_deref(), Some("one\n"));
}
