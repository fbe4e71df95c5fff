//! Sessions, and the questions that Onyx's frontend asks on every page.

use serde_json::{Value, json};
use tolka_agent::Pace;

use crate::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_made_listed_named_and_deleted() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let of = |id: &str, rest: &str| format!("/api/build/sessions/{id}{rest}");
    let made = house.post("/api/build/sessions", json!({ "name": null, "headless": false })).await.json();
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["sandbox"]["status"], "running");
    assert_eq!(made["session_loaded_in_sandbox"], true, "anything else, and the frontend waits for a restore");
    assert_eq!((&made["name"], &made["status"]), (&Value::Null, &json!("active")));
    let older = json!({
        "name": "Mine", "demo_data_enabled": true, "user_work_area": null, "user_level": null,
        "llm_provider_type": "anthropic", "llm_model_name": "m",
    });
    let older = house.post("/sessions", older).await.json();
    assert_ne!(older["id"], id, "an empty session is not handed out twice");
    assert_eq!((&older["name"], &older["agent_model"]), (&json!("Mine"), &made["agent_model"]), "nobody here has `m`");

    let ids = |list: Value| {
        let sessions = list["sessions"].as_array().unwrap().clone();
        sessions.into_iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(house.get("/sessions").await.json()).len(), 2);
    assert_eq!(house.get(&of(id, "")).await.json(), made);
    assert_eq!(house.post(&of(id, "/restore"), json!({})).await.json(), made);

    let check = house.get(&of(id, "/pre-provisioned-check")).await.json();
    assert_eq!(check, json!({ "valid": true, "session_id": id }));
    house.prompt(id, "  \nFix the parser\nIt drops a line").await.whole().await;
    let check = house.get(&of(id, "/pre-provisioned-check")).await.json();
    assert_eq!(check, json!({ "valid": false, "session_id": null }));
    let named = house.post(&of(id, "/generate-name"), json!({})).await.json();
    assert_eq!(named, json!({ "name": "Fix the parser" }));
    let renamed = house.send("PUT", &of(id, "/name"), r#"{"name":"Parser"}"#).await.json();
    assert_eq!((&renamed["name"], renamed.get("session_loaded_in_sandbox")), (&json!("Parser"), None));
    assert_eq!(house.send("PUT", &of(id, "/name"), r#"{"name":null}"#).await.json()["name"], "Fix the parser");

    assert_eq!(house.send("DELETE", &of(id, ""), "").await.status, 204);
    assert_eq!(house.send("DELETE", &of(id, ""), "").await.status, 404);
    for rest in ["", "/messages", "/artifacts", "/sandbox-status", "/turns/active"] {
        assert_eq!(house.get(&of(id, rest)).await.status, 404, "{rest}");
    }
    assert_eq!(ids(house.get("/api/build/sessions").await.json()), [older["id"].as_str().unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tolka_has_not_is_the_empty_shape() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let id = house.session().await;
    let get = async |rest: &str| house.get(&format!("/api/build/{rest}")).await;
    assert_eq!(get(&format!("sessions/{id}/artifacts")).await.json(), json!([]));
    assert_eq!(get(&format!("sessions/{id}/messages")).await.json(), json!({ "messages": [] }));
    assert_eq!(get(&format!("sessions/{id}/sandbox-status")).await.json(), json!({ "status": "running" }));
    assert_eq!(get(&format!("sessions/{id}/webapp-info")).await.json()["has_webapp"], false);
    assert_eq!(get(&format!("sessions/{id}/scheduled-run-context")).await.status, 404);
    assert_eq!(get(&format!("approvals/sessions/{id}/live")).await.json(), json!({ "items": [] }));
    assert_eq!(get("limit").await.json()["is_limited"], false);
    assert_eq!(get("connectors").await.json(), json!({ "connectors": [] }));
    let path = format!("/api/build/sessions/{id}/generate-suggestions");
    let asked = json!({ "user_message": "a", "assistant_message": "b" });
    assert_eq!(house.post(&path, asked).await.json(), json!({ "suggestions": [] }));
    let none = get("nothing").await;
    assert_eq!((none.status, none.json()["detail"].is_string()), (404, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_are_listed_as_they_were_told() {
    // The built-in demo makes one, after it was allowed to commit.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/recordings/tolka/demo.jsonl");
    let house = House::with(std::fs::read_to_string(script).unwrap(), Pace::AtOnce).await;
    let id = house.session().await;
    let mut stream = house.prompt(&id, "Make a page").await;
    let approval = stream.packet_of("approval_requested").await["approval_id"].clone();
    let path = format!("/api/build/approvals/{}/decision", approval.as_str().unwrap());
    assert_eq!(house.post(&path, json!({ "decision": "APPROVED" })).await.status, 200);
    let told = stream.packet_of("artifact_created").await;
    stream.packet_of("prompt_response").await;
    let listed = house.get(&format!("/api/build/sessions/{id}/artifacts")).await.json();
    let [artifact] = listed.as_array().unwrap().as_slice() else { panic!("one artifact: {listed}") };
    for field in ["id", "type", "name", "path", "preview_url"] {
        assert_eq!(artifact[field], told["artifact"][field], "{field}");
    }
    assert_eq!((&artifact["session_id"], &artifact["created_at"]), (&json!(id), &told["timestamp"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_session_makes_none() {
    let house = House::playing("codex", Pace::AtOnce).await;
    for body in [r#"{"name":7}"#, r#"{"headless":"no"}"#, r#"{"llm_model_name":[]}"#, "[]", "{"] {
        let refused = house.send("POST", "/sessions", body).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.json()["detail"].is_string());
    }
    assert_eq!(house.get("/sessions").await.json(), json!({ "sessions": [] }));
}
