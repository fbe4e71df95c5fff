//! Prompts that come while a turn runs.

use std::time::Duration;

use serde_json::json;
use tolka_agent::Pace;

use crate::house::House;
use crate::reader::place;

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_waits_is_told_its_own_turn_and_nothing_else() {
    let house = House::playing("opencode-rich", Pace::Times(20.0)).await;
    let session = house.session().await;
    let mut first = house.prompt(&session, "First").await;
    first.packet().await.unwrap();
    let second = house.prompt(&session, "Second").await;
    let body = json!({ "content": "Third", "client_request_id": "k" });
    let third = house.post(&format!("/api/build/sessions/{session}/send-message"), body).await.json();
    assert_eq!((&third["status"], &third["turn_index"]), (&json!("QUEUED"), &json!(2)));
    let path = format!("/api/build/sessions/{session}/turns/{}/events", third["turn_id"].as_str().unwrap());
    let third = house.open("GET", &path, &[], None).await;
    let (first, second, third) = tokio::join!(first.whole(), second.whole(), third.whole());
    for told in [&first, &second, &third] {
        let packets = told.packets();
        let ends = packets.iter().filter(|packet| packet["type"] == "prompt_response").count();
        assert_eq!((ends, &packets.last().unwrap()["stopReason"]), (1, &json!("end_turn")));
    }
    let span = |frames: &[crate::reader::Frame]| (place(&frames[0]), place(frames.last().unwrap()));
    let spans = [&first, &second, &third].map(|told| span(&told.frames()));
    assert!(spans[0].1 < spans[1].0 && spans[1].1 < spans[2].0, "{spans:?}");
    let path = second.header("content-location").unwrap();
    assert_eq!(house.get(path).await.text(), second.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_dropped_ends_its_stream() {
    let house = House::playing("opencode-rich", Pace::Recorded).await;
    let session = house.session().await;
    let mut first = house.prompt(&session, "First").await;
    first.packet().await.unwrap();
    let second = house.prompt(&session, "Second").await;
    let turn = second.header("tolka-turn").unwrap().to_owned();
    let dropped = house.send("DELETE", &format!("/v1/sessions/{session}/queue/{turn}"), "").await;
    assert_eq!(dropped.status, 204);
    let told = second.whole().await;
    let packets = told.packets();
    assert_eq!((packets.len(), &packets[0]["stopReason"]), (1, &json!("cancelled")));
    let path = format!("/api/build/sessions/{session}/turns/{turn}/events");
    assert_eq!(house.get(&path).await.text(), told.text());
    let again = house.open("GET", &path, &[("Last-Event-ID", &told.frames()[0].id)], None).await;
    assert_eq!(again.whole().await.text(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_ends_the_streams_of_those_who_wait() {
    let house = House::playing("opencode-rich", Pace::Recorded).await;
    let session = house.session().await;
    let mut first = house.prompt(&session, "First").await;
    first.packet().await.unwrap();
    let second = house.prompt(&session, "Second").await;
    assert_eq!(house.send("DELETE", &format!("/api/build/sessions/{session}"), "").await.status, 204);
    let (first, second) = tokio::join!(first.whole(), second.whole());
    for told in [first, second] {
        assert_eq!(told.packets().last().unwrap()["stopReason"], "cancelled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_while_it_waits_leaves_nothing_behind() {
    let house = House::playing("opencode-perm", Pace::AtOnce).await;
    let session = house.session().await;
    let mut first = house.prompt(&session, "First").await;
    first.packet_of("approval_requested").await;
    let second = house.prompt(&session, "Second").await;
    let is_open =
        async |readers: u32| house.get("/metrics").await.text().contains(&format!("\ntolka_readers {readers}\n"));
    assert!(is_open(2).await);
    drop(second);
    let left = async { while !is_open(1).await {} };
    tokio::time::timeout(Duration::from_secs(60), left).await.expect("its stream is dropped with it");
    // The prompt was taken, and keeps its place.
    let queue = house.get(&format!("/v1/sessions/{session}/queue")).await.json();
    assert_eq!(queue["waiting"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_whose_stream_has_no_room_is_not_taken() {
    let house = House::for_readers(1, "opencode-perm", Pace::AtOnce).await;
    let session = house.session().await;
    let mut first = house.prompt(&session, "First").await;
    first.packet_of("approval_requested").await;
    let refused = house.post(&format!("/sessions/{session}/send-message"), json!({ "content": "Second" })).await;
    assert_eq!(refused.status, 429);
    let queue = house.get(&format!("/v1/sessions/{session}/queue")).await.json();
    assert_eq!(queue["waiting"], json!([]));
}

/// Waits for what a proxy would wait for: ten seconds of silence.
#[tokio::test(flavor = "multi_thread")]
async fn silence_is_broken_for_those_who_wait_and_for_those_who_are_asked() {
    let house = House::playing("opencode-perm", Pace::AtOnce).await;
    let session = house.session().await;
    let mut asked = house.prompt(&session, "First").await;
    asked.packet_of("approval_requested").await;
    let mut waits = house.prompt(&session, "Second").await;
    tokio::join!(asked.until("\n\n: keepalive\n\n"), waits.until(": keepalive\n\n"));
    assert_eq!(waits.bytes, b": keepalive\n\n");
}
