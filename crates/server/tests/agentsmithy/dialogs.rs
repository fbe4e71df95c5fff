//! Dialogs: made, listed, chosen, named, deleted; and which is current, also after a restart.

use serde_json::{Value, json};

use crate::agent::Obedient;
use crate::chat::{chat, message};
use crate::house::House;

async fn make(house: &House, body: Value) -> String {
    let made = house.post("/api/dialogs", body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    made.json()["id"].as_str().unwrap().to_owned()
}

fn ids(listed: &Value) -> Vec<&str> {
    listed["dialogs"].as_array().unwrap().iter().map(|dialog| dialog["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_are_made_listed_and_read() {
    let house = House::of(Obedient::ungated()).await;
    assert_eq!(house.get("/api/dialogs").await.json(), json!({ "dialogs": [] }));
    assert_eq!(house.get("/api/dialogs/current").await.json(), json!({}));
    let named = make(&house, json!({ "title": "Named" })).await;
    let unnamed = make(&house, json!({ "set_current": false })).await;
    let mut shown = house.get(&format!("/api/dialogs/{named}")).await.json();
    for time in ["created_at", "updated_at"] {
        let time = shown[time].take();
        assert!(time.as_str().is_some_and(|time| time.len() == 32 && time.ends_with("+00:00")), "{time}");
    }
    assert_eq!(shown, json!({ "id": named, "title": "Named", "created_at": null, "updated_at": null }));
    let listed = house.get("/api/dialogs").await.json();
    assert_eq!(ids(&listed), [unnamed.as_str(), named.as_str()], "the latest changed first");
    assert_eq!(listed["current_dialog_id"], named);
    assert_eq!(listed["dialogs"][0].get("title"), None);
    assert_eq!(listed["dialogs"][1], house.get(&format!("/api/dialogs/{named}")).await.json());

    chat(&house, &message("hi")).await.whole().await;
    let of = async |query: &str| house.get(&format!("/api/dialogs?{query}")).await.json();
    assert_eq!(ids(&of("").await), [named.as_str(), unnamed.as_str()]);
    assert_eq!(ids(&of("sort=created_at").await), [unnamed.as_str(), named.as_str()]);
    assert_eq!(ids(&of("sort=created_at&order=asc").await), [named.as_str(), unnamed.as_str()]);
    assert_eq!(ids(&of("limit=1").await), [named.as_str()]);
    assert_eq!(ids(&of("limit=1&offset=1").await), [unnamed.as_str()]);
    assert_eq!(ids(&of("offset=2").await), [] as [&str; 0]);
    for query in ["sort=title", "order=up", "limit=-1", "offset=x"] {
        assert_eq!(house.get(&format!("/api/dialogs?{query}")).await.status, 422, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_is_renamed() {
    let house = House::of(Obedient::ungated()).await;
    let id = make(&house, json!({})).await;
    let path = format!("/api/dialogs/{id}");
    let renamed = house.send("PATCH", &path, r#"{"title":" Better "}"#).await.json();
    assert_eq!((&renamed["ok"], &renamed["title"]), (&json!(true), &json!("Better")));
    assert_eq!(house.get(&path).await.json()["title"], "Better");
    assert_eq!(house.send("PATCH", &path, "{}").await.json()["title"], "Better");
    for (path, body, status) in [
        (path.as_str(), r#"{"title":7}"#, 422),
        (path.as_str(), "[", 400),
        ("/api/dialogs/nope", r#"{"title":"x"}"#, 404),
    ] {
        let refused = house.send("PATCH", path, body).await;
        assert_eq!(refused.status, status, "{body}");
        assert!(refused.json()["detail"].is_string());
    }
    assert_eq!(ids(&house.get("/api/dialogs").await.json()), [id.as_str()], "nothing was made by naming it");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_dialog_is_current() {
    let house = House::of(Obedient::ungated()).await;
    let (one, two) = (make(&house, json!({})).await, make(&house, json!({})).await);
    let current = async |house: &House| house.get("/api/dialogs/current").await.json();
    let shown = current(&house).await;
    assert_eq!((&shown["id"], &shown["meta"]["id"]), (&json!(two), &json!(two)));
    let chosen = house.send("PATCH", &format!("/api/dialogs/current?id={one}"), "").await;
    assert_eq!((chosen.status, chosen.json()), (200, json!({ "ok": true })));
    assert_eq!(current(&house).await["id"], one);
    assert_eq!(house.send("PATCH", "/api/dialogs/current?id=nope", "").await.status, 404);
    assert_eq!(house.send("PATCH", "/api/dialogs/current", "").await.status, 422);
    let house = house.restart().await;
    assert_eq!(current(&house).await["id"], one, "a restart changes nothing");
    let told = chat(&house, &message("hi")).await.whole().await;
    assert_eq!(told.header("tolka-session"), Some(one.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_current_dialog_gone_the_newest_other_is_current() {
    let house = House::of(Obedient::ungated()).await;
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(make(&house, json!({})).await);
    }
    let delete = async |house: &House, id: &str| house.send("DELETE", &format!("/api/dialogs/{id}"), "").await;
    let current = async |house: &House| house.get("/api/dialogs/current").await.json()["id"].clone();
    assert_eq!(delete(&house, &made[0]).await.json(), json!({ "ok": true }));
    assert_eq!(current(&house).await, made[3].as_str(), "another one was deleted");
    let again = delete(&house, &made[0]).await;
    assert_eq!(again.status, 404);
    assert!(again.json()["detail"].as_str().unwrap().contains("GET /api/dialogs"));
    assert_eq!(delete(&house, &made[3]).await.status, 200);
    assert_eq!(current(&house).await, made[2].as_str());
    // Somebody of another family deletes it.
    assert_eq!(house.send("DELETE", &format!("/v1/sessions/{}", made[2]), "").await.status, 204);
    let house = house.restart().await;
    assert_eq!(current(&house).await, made[1].as_str());
    assert_eq!(delete(&house, &made[1]).await.status, 200);
    assert_eq!(house.get("/api/dialogs/current").await.json(), json!({}));
    assert_eq!(house.get("/api/dialogs").await.json(), json!({ "dialogs": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_is_deleted_with_its_turn() {
    let (agent, _gate) = Obedient::gated();
    let house = House::of(agent).await;
    let mut stream = chat(&house, &message("hold")).await;
    stream.until("held").await;
    let id = stream.header("tolka-session").unwrap().to_owned();
    let waiting = chat(&house, &message("next")).await;
    assert_eq!(house.send("DELETE", &format!("/api/dialogs/{id}"), "").await.status, 200);
    for told in [stream.whole().await, waiting.whole().await] {
        assert_eq!(crate::skeleton::events(&told.bytes).last().unwrap()["type"], "done");
    }
    assert_eq!(house.get(&format!("/api/dialogs/{id}")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_says_that_it_is_ready() {
    let house = House::of(Obedient::ungated()).await;
    let mut health = house.get("/health").await.json();
    assert!(health["port"].take().as_u64().is_some_and(|port| port > 0));
    let expected = json!({
        "status": "ok",
        "service": "agentsmithy-server",
        "server_status": "ready",
        "port": null,
        "pid": std::process::id(),
        "server_error": null,
        "config_valid": true,
        "config_errors": [],
    });
    assert_eq!(health, expected);
}
