use hyper::StatusCode;
use serde_json::{Value, json};

use crate::host::{Host, Told};
use crate::prompts::text;

fn kinds(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.data["type"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_greets_without_an_id_and_tells_with_one() {
    let host = Host::start().await;
    let mut feed = host.listen("/event", &[]).await;
    let hello = feed.next().await.unwrap();
    assert_eq!(
        (hello.id, &hello.data["type"], &hello.data["properties"]),
        (None, &json!("server.connected"), &json!({}))
    );
    assert!(hello.data["id"].as_str().unwrap().starts_with("evt_"));
    host.new_session().await;
    let created = feed.next().await.unwrap();
    assert_eq!(created.data["type"], "session.created");
    assert!(created.id.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_goes_on_where_its_reader_left_off_also_after_a_restart() {
    let host = Host::start().await;
    let id = host.new_session().await;
    let mut whole = host.listen("/event", &[]).await;
    host.post(&format!("/session/{id}/message"), text("hello")).await;
    let whole: Vec<(Option<String>, Value)> =
        whole.until("session.idle").await.into_iter().skip(1).map(|told| (told.id, told.data)).collect();
    let host = host.restart().await;
    for (at, (left_off, _)) in whole.iter().enumerate().take(whole.len() - 1) {
        let left_off = left_off.as_deref().unwrap();
        let mut rest = host.listen("/event", &[("last-event-id", left_off)]).await;
        let rest: Vec<_> =
            rest.until("session.idle").await.into_iter().skip(1).map(|told| (told.id, told.data)).collect();
        assert_eq!(rest, whole[at + 1..], "after {left_off}");
    }
    // What means nothing here starts at now: the first thing told is what happens next.
    for cursor in ["nonsense", "other.1.0", &whole[0].0.clone().unwrap().replace('.', ".9999")] {
        let mut feed = host.listen(&format!("/event?after={cursor}"), &[]).await;
        feed.next().await;
        host.new_session().await;
        assert_eq!(feed.next().await.unwrap().data["type"], "session.created");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_tell_text_in_their_own_way() {
    let host = Host::start().await;
    let id = host.new_session().await;
    let mut told = Vec::new();
    let mut feeds = Vec::new();
    for path in ["/event", "/event?profile=current", "/event?profile=documented"] {
        feeds.push(host.listen(path, &[]).await);
    }
    host.post(&format!("/session/{id}/message"), text("hello")).await;
    for feed in &mut feeds {
        told.push(feed.until("session.idle").await);
    }
    let has_delta_events = |told: &[Told]| kinds(told).contains(&"message.part.delta");
    let has_deltas = |told: &[Told]| {
        told.iter()
            .any(|told| told.data["properties"].get("part").is_some() && told.data["properties"]["delta"].is_string())
    };
    assert_eq!(
        told.iter().map(|told| (has_delta_events(told), has_deltas(told))).collect::<Vec<_>>(),
        [(true, true), (true, false), (false, true)]
    );
    let (status, error) = host.get("/event?profile=other").await;
    assert_eq!((status, &error["name"]), (StatusCode::BAD_REQUEST, &json!("BadRequest")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_global_feed_says_where_each_event_belongs() {
    let host = Host::start().await;
    let inner = host.workspace("inner");
    let mut global = host.listen(&format!("/global/event?directory={inner}"), &[]).await;
    let mut narrow = host.listen("/event", &[("x-opencode-directory", &inner)]).await;
    host.new_session().await;
    let (_, made) = host.post(&format!("/session?directory={inner}"), json!({})).await;
    assert_eq!(global.next().await.unwrap().data["payload"]["type"], "server.connected");
    let (outer, deeper) = (global.next().await.unwrap().data, global.next().await.unwrap().data);
    assert_eq!((&outer["directory"], &deeper["directory"]), (&json!(host.workspace("")), &json!(inner)));
    assert_eq!(deeper["project"], made["projectID"]);
    assert_eq!(deeper["payload"]["properties"]["info"]["id"], made["id"]);
    narrow.next().await;
    assert_eq!(narrow.next().await.unwrap().data["properties"]["info"]["id"], made["id"]);
}
