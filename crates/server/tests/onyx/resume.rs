//! A stream may be cut anywhere: what comes after is what would have come.

use serde_json::json;
use tolka_agent::Pace;

use crate::house::House;
use crate::reader::{frames, text_of};

async fn events(house: &House, path: &str, position: Option<&str>) -> String {
    let header = position.map(|id| ("Last-Event-ID", id));
    let stream = house.open("GET", path, header.as_slice(), None).await;
    assert_eq!(stream.status, 200);
    stream.whole().await.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_after_any_of_its_frames() {
    for name in ["opencode-rich", "codex"] {
        let house = House::playing(name, Pace::AtOnce).await;
        let session = house.session().await;
        let told = house.prompt(&session, "Do it").await.whole().await;
        // A turn behind it, that must never be told here.
        house.prompt(&session, "And again").await.whole().await;
        let turn = told.header("tolka-turn").unwrap();
        let path = format!("/api/build/sessions/{session}/turns/{turn}/events");
        let all = told.frames();
        assert!(all.len() > 5);
        for (read, frame) in all.iter().enumerate() {
            let rest = text_of(&all[read + 1..]);
            assert_eq!(events(&house, &path, Some(&frame.id)).await, rest, "after {}", frame.id);
            assert_eq!(events(&house, &format!("{path}?after={}", frame.id), None).await, rest);
            assert_eq!(events(&house, &format!("{path}?skip={}", read + 1), None).await, rest);
        }
        assert_eq!(events(&house, &format!("{path}?skip=0"), None).await, told.text());
        assert_eq!(events(&house, told.header("content-location").unwrap(), None).await, told.text());
        // Today's client is told the same turn in its own words, frame for frame.
        let current = frames(&events(&house, &path, None).await);
        let ids = |frames: &[crate::reader::Frame]| frames.iter().map(|frame| frame.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&current), ids(&all));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_today_goes_on_after_any_of_its_frames() {
    let house = House::playing("opencode-rich", Pace::AtOnce).await;
    let session = house.session().await;
    let body = json!({ "content": "Do it", "client_request_id": "k" });
    let sent = house.post(&format!("/api/build/sessions/{session}/send-message"), body).await.json();
    let path = format!("/api/build/sessions/{session}/turns/{}/events", sent["turn_id"].as_str().unwrap());
    let told = events(&house, &path, None).await;
    let all = frames(&told);
    for (read, frame) in all.iter().enumerate() {
        assert_eq!(events(&house, &path, Some(&frame.id)).await, text_of(&all[read + 1..]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_taken_up_while_its_turn_runs() {
    let house = House::playing("opencode-rich", Pace::Times(10.0)).await;
    let session = house.session().await;
    let mut stream = house.prompt(&session, "Do it").await;
    let path = stream.header("content-location").unwrap().to_owned();
    let watcher = house.open("GET", &path, &[], None).await;
    let (mut told, mut cuts) = (Vec::new(), 0);
    // Reads some, goes away and comes back, until the turn is over.
    loop {
        let last = stream.packet().await.unwrap();
        let whole = String::from_utf8_lossy(&stream.bytes).rfind("\n\n").unwrap() + 2;
        told.extend(frames(std::str::from_utf8(&stream.bytes[..whole]).unwrap()));
        let end = told.last().unwrap();
        if last["type"] == "prompt_response" || end.text.contains("\"type\":\"prompt_response\"") {
            break;
        }
        cuts += 1;
        stream = house.open("GET", &path, &[("Last-Event-ID", &end.id)], None).await;
    }
    assert!(cuts > 2, "the turn was to be cut while it ran");
    assert_eq!(watcher.whole().await.text(), text_of(&told));
    assert_eq!(events(&house, &path, None).await, text_of(&told));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_the_server_left_is_told_as_interrupted() {
    let house = House::playing("opencode-rich", Pace::Recorded).await;
    let session = house.session().await;
    let mut stream = house.prompt(&session, "Do it").await;
    let path = stream.header("content-location").unwrap().to_owned();
    stream.packet().await.unwrap();
    let (house, had) = tokio::join!(house.restart(), stream.whole());
    let had = had.frames();
    let rest = events(&house, &path, Some(&had.last().unwrap().id)).await;
    let whole = frames(&events(&house, &path, None).await);
    assert_eq!(text_of(&had) + &rest, text_of(&whole));
    let end = whole.last().unwrap();
    assert!(end.text.contains("\"type\":\"error\"") && end.text.contains("The server stopped"), "{}", end.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_means_nothing_is_refused() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let session = house.session().await;
    let told = house.prompt(&session, "Do it").await.whole().await;
    let path = told.header("content-location").unwrap();
    let count = told.frames().len();
    for (query, status) in [
        ("after=x", 400),
        ("after=-1.0", 400),
        ("skip=x", 400),
        ("skip=-1", 400),
        ("profile=x", 400),
        ("packets=leaps", 400),
        ("after=99999.0", 410),
        (format!("skip={}", count + 1).as_str(), 410),
    ] {
        let path = path.replace("profile=documented", query);
        assert_eq!(house.get(&path).await.status, status, "{query}");
    }
}
