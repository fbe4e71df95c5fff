//! AgentSmithy's checkpoints: listed, restored, approved, reset.

use serde_json::{Value, json};

use crate::shop::{Shop, kept, ok, some};

async fn dialog(shop: &Shop) -> String {
    ok(&shop.post("/api/dialogs", json!({})).await)["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_checkpoint_is_listed_and_can_be_restored() {
    let shop = Shop::open().await;
    let dialog = dialog(&shop).await;
    let none = json!({ "dialog_id": dialog, "checkpoints": [], "initial_checkpoint": null });
    assert_eq!(shop.ask(&dialog, "checkpoints").await, none);
    shop.work(&dialog, &["write a.txt one"]).await;
    let long = format!("write a.txt two{}", "o".repeat(60));
    shop.work(&dialog, &[&long]).await;
    let before = shop.before_prompts(&dialog).await;
    let listed = shop.ask(&dialog, "checkpoints").await;
    let of = |listed: &Value, at: usize| listed["checkpoints"][at].clone();
    assert_eq!(listed["initial_checkpoint"], before[0]);
    assert_eq!(of(&listed, 0), json!({ "commit_id": before[0], "message": "Before user message: write a.txt one..." }));
    let second = listed["checkpoints"].as_array().unwrap().iter().find(|point| point["commit_id"] == before[1]);
    assert!(second.unwrap()["message"].as_str().unwrap().len() < 80, "{second:?}");

    let done = shop.restore(&dialog, &before[1]).await;
    assert_eq!((&done["restored_to"], kept(&done)), (&before[1], vec![]));
    assert_eq!(done["files"], json!([{ "path": "a.txt", "status": "modified" }]));
    assert_eq!(shop.text("a.txt"), some("one\n"));
    let done = shop.restore(&dialog, &before[0]).await;
    assert_eq!(done["files"], json!([{ "path": "a.txt", "status": "deleted" }]));
    assert_eq!(shop.text("a.txt"), None);
    // Back to before the restore, and to what each restore left: all of it was saved.
    let undone = shop.restore(&dialog, &done["pre_restore_checkpoint"]).await;
    assert_eq!(shop.text("a.txt"), some("one\n"));
    shop.restore(&dialog, &done["new_checkpoint"]).await;
    assert_eq!(shop.text("a.txt"), None);
    shop.restore(&dialog, &undone["new_checkpoint"]).await;
    assert_eq!(shop.text("a.txt"), some("one\n"));
    let points = shop.ask(&dialog, "checkpoints").await["checkpoints"].as_array().unwrap().clone();
    for point in points {
        shop.restore(&dialog, &point["commit_id"]).await;
    }
    assert_eq!(shop.messages(&dialog).await.len(), 4, "the conversation stays");
    let history = shop.ask(&dialog, "history").await;
    let users: Vec<&Value> =
        history["events"].as_array().unwrap().iter().filter(|event| event["type"] == "user").collect();
    assert_eq!(users.iter().map(|user| &user["checkpoint"]).collect::<Vec<_>>(), before.iter().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_is_approved_or_reset() {
    let shop = Shop::open().await;
    let dialog = dialog(&shop).await;
    shop.put("mine.txt", "mine\n");
    let nothing = json!({ "active_session": null, "session_ref": null, "has_unapproved": false,
        "last_approved_at": null, "changed_files": [] });
    assert_eq!(shop.ask(&dialog, "session").await, nothing);
    shop.work(&dialog, &["write a.txt one", "write mine.txt theirs", r"run printf '\000\001' > b.bin"]).await;
    let status = shop.ask(&dialog, "session").await;
    assert_eq!(
        (&status["active_session"], &status["session_ref"], &status["has_unapproved"], &status["last_approved_at"]),
        (&json!("session_1"), &json!("refs/heads/session_1"), &json!(true), &Value::Null)
    );
    let mut changed = status["changed_files"].as_array().unwrap().clone();
    let diffs: Vec<Value> = changed.iter_mut().map(|file| file["diff"].take()).collect();
    assert!(diffs[0].as_str().unwrap().contains("+one") && diffs[1].is_null(), "{diffs:?}");
    assert!(diffs[2].as_str().unwrap().contains("-mine\n+theirs"), "{diffs:?}");
    let file = |path: &str, status: &str, counts: [u64; 2], base: Value, is_binary: bool| {
        json!({ "path": path, "status": status, "additions": counts[0], "deletions": counts[1], "diff": null,
            "base_content": base, "is_binary": is_binary, "is_too_large": false })
    };
    let expected = [
        file("a.txt", "added", [1, 0], Value::Null, false),
        file("b.bin", "added", [0, 0], Value::Null, true),
        file("mine.txt", "modified", [1, 1], json!("mine\n"), false),
    ];
    assert_eq!(changed, expected);

    let approved = shop.tell(&dialog, "approve", json!({ "message": "Good" })).await;
    assert_eq!(approved["new_session"], "session_2");
    assert!(approved["commits_approved"].as_u64().unwrap() > 0, "{approved}");
    let status = shop.ask(&dialog, "session").await;
    assert_eq!((&status["has_unapproved"], &status["changed_files"]), (&json!(false), &json!([])));
    assert!(status["last_approved_at"].as_str().unwrap().ends_with("+00:00"));

    shop.work(&dialog, &["write a.txt two", "run echo x > made.txt && rm b.bin"]).await;
    assert_eq!(shop.ask(&dialog, "session").await["active_session"], "session_2");
    let reset = shop.tell(&dialog, "reset", json!({})).await;
    assert_eq!((&reset["reset_to"], &reset["new_session"]), (&approved["approved_commit"], &json!("session_3")));
    assert_eq!(shop.texts(["a.txt", "made.txt", "mine.txt"]), [some("one\n"), None, some("theirs\n")]);
    assert_eq!(std::fs::read(shop.path("b.bin")).unwrap(), [0, 1]);
    assert_eq!(shop.ask(&dialog, "session").await["has_unapproved"], false);
    assert_eq!(shop.messages(&dialog).await.len(), 4, "the conversation stays");

    let again = shop.tell(&dialog, "reset", json!({})).await;
    assert_eq!(again["files"], json!([]), "nothing was left to take back");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_one_piece_names_its_checkpoint() {
    let shop = Shop::open().await;
    let body = json!({ "messages": [{ "role": "user", "content": "write a.txt one" }], "stream": false });
    let answer = ok(&shop.post("/api/chat", body.clone()).await);
    let dialog = answer["dialog_id"].as_str().unwrap();
    let before = shop.before_prompts(dialog).await;
    assert_eq!(answer["metadata"]["checkpoint"], before[0]);
    assert_eq!(answer["metadata"]["session"], "session_1");
    shop.tell(dialog, "approve", json!({})).await;
    let answer = ok(&shop.post("/api/chat", body).await);
    assert_eq!(answer["metadata"]["session"], "session_2");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_client_should_send_changes_nothing() {
    let shop = Shop::open().await;
    let (dialog, other) = (dialog(&shop).await, dialog(&shop).await);
    shop.work(&dialog, &["write a.txt one"]).await;
    shop.put("b.txt", "two\n");
    shop.work(&other, &["hello"]).await;
    let foreign = shop.before_prompts(&other).await.remove(0);
    let facts = shop.facts(&dialog).await;
    let of = |route: &str| format!("/api/dialogs/{dialog}/{route}");
    for (path, body, status, words) in [
        ("/api/dialogs/nope/restore".to_owned(), json!({ "checkpoint_id": "x" }), 404, "Dialog not found"),
        ("/api/dialogs/nope/approve".to_owned(), json!({}), 404, "Dialog not found"),
        ("/api/dialogs/nope/reset".to_owned(), json!({}), 404, "Dialog not found"),
        (of("restore"), json!({}), 422, "`checkpoint_id` is missing"),
        (of("restore"), json!({ "checkpoint_id": 7 }), 422, "`checkpoint_id` must be a string"),
        (of("restore"), json!({ "checkpoint_id": "" }), 404, "/checkpoints lists"),
        (of("restore"), json!({ "checkpoint_id": "0".repeat(40) }), 404, "/checkpoints lists"),
        (of("restore"), json!({ "checkpoint_id": "--all" }), 404, "/checkpoints lists"),
        (of("restore"), json!({ "checkpoint_id": "x".repeat(1_000_000) }), 404, "/checkpoints lists"),
        (of("restore"), json!({ "checkpoint_id": foreign }), 404, "/checkpoints lists"),
        (of("approve"), json!({ "message": 7 }), 422, "`message` must be a string"),
        (of("approve"), json!({ "message": "x".repeat(10_001) }), 422, "`message` may have"),
    ] {
        let refused = shop.post(&path, body.clone()).await;
        let told = refused.text();
        let said = refused.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(
            refused.status == status && said.contains(words) && said.len() < 400,
            "{path}: {} {told}",
            refused.status
        );
    }
    for route in ["checkpoints", "session"] {
        let refused = shop.get(&format!("/api/dialogs/nope/{route}")).await;
        assert_eq!((refused.status, refused.json()["detail"].is_string()), (404, true), "{route}");
        assert_eq!(shop.post(&of(route), json!({})).await.status, 405);
    }
    for route in ["restore", "approve", "reset"] {
        let refused = shop.send("POST", &of(route), "[").await;
        assert_eq!((refused.status, refused.json()["detail"].is_string()), (400, true), "{route}");
        assert_eq!(shop.get(&of(route)).await.status, 405);
    }
    assert_eq!(shop.facts(&dialog).await, facts);
    assert_eq!(shop.texts(["a.txt", "b.txt"]), [some("one\n"), some("two\n")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_turn_runs_nothing_is_restored() {
    let shop = Shop::open().await;
    let dialog = dialog(&shop).await;
    shop.work(&dialog, &["write a.txt one"]).await;
    let before = shop.before_prompts(&dialog).await.remove(0);
    shop.hold(&dialog, &["write a.txt two"]).await;
    for (route, body) in [("restore", json!({ "checkpoint_id": before })), ("reset", json!({}))] {
        let refused = shop.post(&format!("/api/dialogs/{dialog}/{route}"), body).await;
        assert_eq!(refused.status, 409, "{route}: {}", refused.text());
        assert!(refused.json()["detail"].as_str().unwrap().contains("wait for its end"), "{}", refused.text());
    }
    assert_eq!(shop.text("a.txt"), some("two\n"));
    let status = shop.ask(&dialog, "session").await;
    assert_eq!(status["changed_files"][0]["path"], "a.txt", "what has changed so far can be read meanwhile");
    shop.gate.send_replace(true);
}
