//! Chats at once: in one dialog one after the other, in two beside each other.

use serde_json::{Value, json};

use crate::agent::Obedient;
use crate::chat::{chat, dialog};
use crate::house::House;
use crate::skeleton::{events, said};

fn in_dialog(dialog: &str, text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }], "dialog_id": dialog })
}

#[tokio::test(flavor = "multi_thread")]
async fn two_chats_in_one_dialog_come_one_after_the_other() {
    let (agent, gate) = Obedient::gated();
    let house = House::of(agent).await;
    let one = dialog(&house).await;
    let mut first = chat(&house, &in_dialog(&one, "hold 1")).await;
    first.until("held").await;
    let second = chat(&house, &in_dialog(&one, "hold 2")).await;
    assert_eq!(second.status, 200, "a message that waits is not refused");
    let mut whole = in_dialog(&one, "third");
    whole["stream"] = json!(false);
    let third = house.post("/api/chat", whole);
    gate.send_replace(true);
    let (first, second, third) = tokio::join!(first.whole(), second.whole(), third);
    for (told, text) in [(&first, "hold 1"), (&second, "hold 2")] {
        let events = events(&told.bytes);
        assert_eq!((&events[0]["type"], &events[0]["content"]), (&json!("user"), &json!(text)));
        assert_eq!(said(&events), format!("{text}: held{text}: let go"));
        assert_eq!(events.iter().filter(|event| event["type"] == "done").count(), 1);
    }
    assert_eq!(third.json()["content"], "third");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_chats_in_two_dialogs_run_beside_each_other() {
    let (agent, gate) = Obedient::gated();
    let house = House::of(agent).await;
    let (one, two) = (dialog(&house).await, dialog(&house).await);
    let mut first = chat(&house, &in_dialog(&one, "hold 1")).await;
    let mut second = chat(&house, &in_dialog(&two, "hold 2")).await;
    // Both have begun while neither may end.
    first.until("hold 1: held").await;
    second.until("hold 2: held").await;
    gate.send_replace(true);
    let (first, second) = tokio::join!(first.whole(), second.whole());
    for (told, dialog, text) in [(first, one, "hold 1"), (second, two, "hold 2")] {
        let events = events(&told.bytes);
        assert!(events.iter().all(|event| event["dialog_id"] == dialog.as_str()), "nothing crosses over");
        assert_eq!(said(&events), format!("{text}: held{text}: let go"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_dropped_from_the_queue_ends_its_stream_with_words() {
    let (agent, _gate) = Obedient::gated();
    let house = House::of(agent).await;
    let one = dialog(&house).await;
    let mut first = chat(&house, &in_dialog(&one, "hold")).await;
    first.until("held").await;
    let second = chat(&house, &in_dialog(&one, "second")).await;
    let turn = second.header("tolka-turn").unwrap().to_owned();
    let dropped = house.send("DELETE", &format!("/v1/sessions/{one}/queue/{turn}"), "").await;
    assert_eq!(dropped.status, 204);
    let told = events(&second.whole().await.bytes);
    let [error, done] = told.as_slice() else { panic!("{told:?}") };
    assert!(error["error"].as_str().unwrap().contains("dropped from the queue"), "{error}");
    assert_eq!(done, &json!({ "type": "done", "done": true, "dialog_id": one }));
}
