use hyper::StatusCode;
use serde_json::json;

use crate::host::Host;
use crate::prompts::text;

#[tokio::test(flavor = "multi_thread")]
async fn what_attach_asks_at_its_start_is_answered() {
    let host = Host::start().await;
    for (path, expected) in [
        ("/command", json!([])),
        ("/skill", json!([])),
        ("/lsp", json!([])),
        ("/formatter", json!([])),
        ("/mcp", json!({})),
        ("/provider/auth", json!({})),
        ("/experimental/resource", json!({})),
        ("/experimental/workspace", json!([])),
        ("/experimental/workspace/status", json!([])),
        ("/experimental/tool/ids", json!([])),
        ("/experimental/capabilities", json!({ "backgroundSubagents": false })),
        ("/experimental/console", json!({ "consoleManagedProviders": [], "switchableOrgCount": 0 })),
        ("/global/config", json!({ "$schema": "https://opencode.ai/config.json" })),
        ("/session", json!([])),
        ("/session/status", json!({})),
    ] {
        assert_eq!(host.get(path).await, (StatusCode::OK, expected), "{path}");
    }
    let (_, health) = host.get("/global/health").await;
    assert_eq!((&health["healthy"], health["version"].is_string()), (&json!(true), true));
    let logged = host.post("/log", json!({ "service": "test", "level": "info", "message": "a\nb" })).await;
    assert_eq!(logged, (StatusCode::OK, json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_those_of_the_agents_and_a_session_has_one_of_them() {
    let host = Host::start().await;
    let (_, listed) = host.get("/provider").await;
    assert_eq!(listed["connected"], json!(["obedient"]));
    assert_eq!(listed["default"], json!({ "obedient": "first-model" }));
    let models: Vec<&String> = listed["all"][0]["models"].as_object().unwrap().keys().collect();
    assert_eq!(models, ["first-model", "second-model"]);
    assert_eq!(host.get("/config/providers").await.1["providers"], listed["all"]);
    assert_eq!(host.get("/config").await.1["model"], "obedient/first-model");
    let (_, agents) = host.get("/agent").await;
    assert_eq!((agents.as_array().unwrap().len(), &agents[0]["name"]), (1, &json!("build")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_a_folder() {
    let host = Host::start().await;
    let inner = host.workspace("inner");
    std::fs::create_dir(format!("{inner}/.git")).unwrap();
    std::fs::write(format!("{inner}/.git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
    let (_, made) = host.post(&format!("/session?directory={inner}"), json!({})).await;
    let (_, current) = host.get(&format!("/project/current?directory={inner}")).await;
    assert_eq!((&current["id"], &current["vcs"]), (&made["projectID"], &json!("git")));
    assert_eq!(current["worktree"], inner.as_str());
    assert_eq!(host.get("/project").await.1.as_array().unwrap().len(), 2);
    let path = format!("/project/{}/directories", made["projectID"].as_str().unwrap());
    assert_eq!(host.get(&path).await.1, json!([{ "directory": inner }]));
    assert_eq!(host.get("/project/nope/directories").await.0, StatusCode::NOT_FOUND);
    assert_eq!(host.get(&format!("/vcs?directory={inner}")).await.1, json!({ "branch": "feature/x" }));
    assert_eq!(host.get("/vcs").await.1, json!({}));
    assert_eq!(host.get(&format!("/path?directory={inner}")).await.1["directory"], inner.as_str());
    assert_eq!(host.get("/path?directory=/").await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_a_list_of_todos() {
    let host = Host::start().await;
    let path = format!("/session/{}", host.new_session().await);
    host.post(&format!("{path}/message"), text("plan")).await;
    let todo = json!([{ "content": "Look", "status": "in_progress", "priority": "high" }]);
    assert_eq!(host.get(&format!("{path}/todo")).await, (StatusCode::OK, todo));
    assert_eq!(host.get(&format!("{path}/diff")).await, (StatusCode::OK, json!([])));
}
