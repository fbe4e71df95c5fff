use hyper::{Method, StatusCode};
use serde_json::json;

use crate::host::Host;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_made_listed_changed_and_deleted() {
    let host = Host::start().await;
    let (status, made) = host.post("/session", json!({ "title": "Mine", "agent": "build" })).await;
    assert_eq!(
        (status, &made["title"], &made["directory"]),
        (StatusCode::OK, &json!("Mine"), &json!(host.workspace("")))
    );
    assert_eq!(made["model"], json!({ "id": "first-model", "providerID": "obedient" }));
    let id = made["id"].as_str().unwrap();
    let path = format!("/session/{id}");
    assert_eq!(host.get(&path).await, (StatusCode::OK, made.clone()));

    let (_, child) = host.post("/session", json!({ "parentID": id })).await;
    assert_eq!(host.get(&format!("{path}/children")).await.1, json!([child]));
    assert_eq!(host.get("/session?roots=true").await.1, json!([made]));
    assert_eq!(host.get("/session?limit=1").await.1.as_array().unwrap().len(), 1);
    assert_eq!(host.get("/session?search=mIn").await.1, json!([made]));
    assert_eq!(host.get("/session?start=99999999999999").await.1, json!([]));

    let (_, changed) = host.call(Method::PATCH, &path, r#"{"title":"Ours","time":{"archived":1794702342312}}"#).await;
    assert_eq!(changed["title"], "Ours");
    assert!(changed["time"]["archived"].is_number());
    let (_, back) = host.call(Method::PATCH, &path, r#"{"time":{"archived":0}}"#).await;
    assert_eq!((&back["title"], back["time"].get("archived")), (&json!("Ours"), None));

    assert_eq!(host.call(Method::DELETE, &path, "").await, (StatusCode::OK, json!(true)));
    let gone = json!({ "name": "NotFoundError", "data": { "message": format!("Session not found: {id}") } });
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::PATCH, path.clone()),
        (Method::GET, format!("{path}/message")),
        (Method::GET, format!("{path}/todo")),
        (Method::GET, format!("{path}/diff")),
        (Method::POST, format!("{path}/abort")),
        (Method::POST, format!("{path}/message")),
    ] {
        assert_eq!(
            host.call(method.clone(), &path, "").await,
            (StatusCode::NOT_FOUND, gone.clone()),
            "{method} {path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_stay_inside_the_workspace() {
    let host = Host::start().await;
    let inner = host.workspace("inner");
    let (_, made) = host.post(&format!("/session?directory={inner}"), json!({})).await;
    assert_eq!(made["directory"], inner.as_str());
    let encoded = inner.replace('/', "%2F");
    let response = host.send(Method::POST, "/session", &[("x-opencode-directory", &encoded)], "{}").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(host.get(&format!("/session?directory={inner}")).await.1.as_array().unwrap().len(), 2);
    assert_eq!(host.get(&format!("/session?directory={}", host.workspace(""))).await.1, json!([]));

    std::os::unix::fs::symlink("/", format!("{inner}/out")).unwrap();
    for outside in ["/", "/etc", &format!("{inner}/../../workspace-not"), &format!("{inner}/out"), "/no/such/folder"] {
        let (status, error) = host.post(&format!("/session?directory={outside}"), json!({})).await;
        assert_eq!((status, &error["name"]), (StatusCode::BAD_REQUEST, &json!("BadRequest")), "{outside}");
        assert_eq!(host.get(&format!("/session?directory={outside}")).await, (StatusCode::OK, json!([])));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_chooses_the_agent_that_brings_it() {
    let host = Host::start().await;
    let second = json!({ "model": { "providerID": "obedient", "id": "second-model" } });
    let (_, made) = host.post("/session", second).await;
    assert_eq!(made["model"]["id"], "second-model");
    let message = format!("/session/{}/message", made["id"].as_str().unwrap());
    let prompt = |model: &str| {
        let parts = json!([{ "type": "text", "text": "hi" }]);
        json!({ "model": { "providerID": "obedient", "modelID": model }, "parts": parts })
    };
    let (status, error) = host.post(&message, prompt("first-model")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(error["data"]["message"].as_str().unwrap().contains("start a new one"));
    let (status, answer) = host.post(&message, prompt("some-other-model")).await;
    assert_eq!((status, &answer["info"]["modelID"]), (StatusCode::OK, &json!("second-model")));

    let (status, error) = host.post("/session", json!({ "agent": "plan" })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["data"]["message"], "Agent not found: \"plan\". Available agents: build");
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_another_kind_are_bad_requests() {
    let host = Host::start().await;
    for path in ["/session/bad", "/session/bad/message", "/session/srv_tolka"] {
        let (status, error) = host.get(path).await;
        assert_eq!((status, &error["name"]), (StatusCode::BAD_REQUEST, &json!("BadRequest")), "{path}");
    }
    let (status, error) = host.get("/session/ses_nope").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(error, json!({ "name": "NotFoundError", "data": { "message": "Session not found: ses_nope" } }));
}
