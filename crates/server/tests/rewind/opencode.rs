//! OpenCode's revert, unrevert, fork and diff.

use serde_json::{Value, json};

use crate::shop::{Shop, ok, some};

/// Two turns: the first makes `a.txt`, the second changes it and makes more by a command.
async fn two_turns(shop: &Shop) -> (String, [String; 2], [String; 2]) {
    let session = shop.new_session().await;
    let (first, answer) = shop.work(&session, &["write a.txt one"]).await;
    let (second, other) = shop.work(&session, &["write a.txt two", "run mkdir made && echo x > made/b.txt"]).await;
    (session, [first, second], [answer, other])
}

const FILES: [&str; 2] = ["a.txt", "made/b.txt"];

#[tokio::test(flavor = "multi_thread")]
async fn files_and_messages_go_back_and_come_again() {
    let shop = Shop::open().await;
    let (session, [first, second], [answer, other]) = two_turns(&shop).await;
    let all = [&first, &answer, &second, &other].map(String::clone);
    assert_eq!(shop.messages(&session).await, all);

    let reverted = shop.revert(&session, &second).await;
    assert_eq!((&reverted["id"], &reverted["revert"]["messageID"]), (&json!(session), &json!(second)));
    assert_eq!(shop.get(&format!("/session/{session}")).await.json(), reverted);
    assert_eq!(shop.texts(FILES), [some("one\n"), None]);
    assert!(!shop.path("made").exists(), "the folder was made by the turn");
    assert_eq!(shop.messages(&session).await, all, "a client of this family hides them itself, to bring them back");

    let back = shop.unrevert(&session).await;
    assert_eq!(back.get("revert"), None);
    assert_eq!(shop.texts(FILES), [some("two\n"), some("x\n")]);

    shop.revert(&session, &second).await;
    assert_eq!(shop.texts(FILES), [some("one\n"), None]);
    let (third, last) = shop.work(&session, &["write c.txt three"]).await;
    assert_eq!(shop.messages(&session).await, [first, answer, third, last], "what was hidden is gone now");
    assert_eq!(shop.get(&format!("/session/{session}")).await.json().get("revert"), None);
    assert_eq!(shop.unrevert(&session).await.get("revert"), None, "there is nothing to take back any more");
    assert_eq!(shop.texts(FILES), [some("one\n"), None]);
    let told = shop.facts_of(&session, "message_hidden").await;
    assert_eq!(told, [json!({ "message": second }), json!({ "message": other })]);
    for gone in [&second, &other] {
        let refused = shop.post(&format!("/session/{session}/revert"), json!({ "messageID": gone })).await;
        assert_eq!(refused.status, 404, "{}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_undo_redo_redo() {
    let shop = Shop::open().await;
    let (session, [first, second], _) = two_turns(&shop).await;
    let boundary = |session: &Value| session["revert"]["messageID"].clone();
    assert_eq!(boundary(&shop.revert(&session, &second).await), second.as_str());
    assert_eq!(shop.texts(FILES), [some("one\n"), None]);
    assert_eq!(boundary(&shop.revert(&session, &first).await), first.as_str());
    assert_eq!(shop.texts(FILES), [None, None]);
    // Redo is a revert to the next prompt, and at last an unrevert.
    assert_eq!(boundary(&shop.revert(&session, &second).await), second.as_str());
    assert_eq!(shop.texts(FILES), [some("one\n"), None]);
    assert_eq!(shop.unrevert(&session).await.get("revert"), None);
    assert_eq!(shop.texts(FILES), [some("two\n"), some("x\n")]);

    // Back at once, and forth to a prompt that no rewind stopped at.
    shop.revert(&session, &first).await;
    assert_eq!(shop.texts(FILES), [None, None]);
    assert_eq!(boundary(&shop.revert(&session, &second).await), second.as_str());
    assert_eq!(shop.texts(FILES), [some("one\n"), None]);
    let before = shop.facts(&session).await.len();
    shop.revert(&session, &second).await;
    assert_eq!(shop.facts(&session).await.len(), before, "it stands there already");
    shop.unrevert(&session).await;
    assert_eq!(shop.texts(FILES), [some("two\n"), some("x\n")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_what_a_revert_and_its_undo_kept() {
    let shop = Shop::open().await;
    let (session, [_, second], _) = two_turns(&shop).await;
    shop.put("mine.txt", "mine\n");
    let toasts = async || {
        let path = format!("/v1/sessions/{session}/events?dialect=opencode&format=json&limit=1000");
        let page = ok(&shop.get(&path).await);
        let frames = page["events"].as_array().unwrap().iter().map(|event| event["data"].clone());
        frames.filter(|frame| frame["type"] == "tui.toast.show").map(|frame| frame["properties"].clone()).collect()
    };
    shop.revert(&session, &second).await;
    assert_eq!(toasts().await, [] as [Value; 0], "what no turn touched is no news");
    shop.unrevert(&session).await;
    shop.put("a.txt", "mine\n");
    shop.revert(&session, &second).await;
    let kept = |message: &str| json!({ "title": "A file was kept", "message": message, "variant": "warning" });
    assert_eq!(toasts().await, [kept("a.txt (somebody else changed it too)")]);
    assert_eq!(shop.texts(FILES), [some("mine\n"), None]);
    shop.put("made/b.txt", "mine\n");
    shop.unrevert(&session).await;
    let told: Vec<Value> = toasts().await;
    assert_eq!(told[1..], [kept("made/b.txt (somebody else changed it too)")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_means_its_prompt() {
    let shop = Shop::open().await;
    let (session, [_, second], [_, other]) = two_turns(&shop).await;
    let reverted = shop.revert(&session, &other).await;
    assert_eq!(reverted["revert"]["messageID"], second.as_str());
    assert_eq!(shop.texts(FILES), [some("one\n"), None]);
    let before = shop.facts(&session).await.len();
    shop.revert(&session, &other).await;
    assert_eq!(shop.facts(&session).await.len(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_work_is_busy_until_it_is_aborted() {
    let shop = Shop::open().await;
    let (session, [_, second], _) = two_turns(&shop).await;
    shop.hold(&session, &["write late.txt late"]).await;
    for (route, body) in [
        (format!("/session/{session}/revert"), json!({ "messageID": second })),
        (format!("/api/session/{session}/revert/stage"), json!({ "messageID": second })),
    ] {
        let refused = shop.post(&route, body).await;
        assert_eq!(refused.status, 409, "{}", refused.text());
        let refused = refused.json();
        assert_eq!((&refused["_tag"], &refused["sessionID"]), (&json!("SessionBusyError"), &json!(session)));
        assert!(refused["message"].as_str().unwrap().starts_with(&format!("Session is busy: {session}")));
    }
    assert_eq!(shop.texts(["a.txt", "late.txt"]), [some("two\n"), some("late\n")]);
    // The terminal client aborts and then reverts, without looking in between.
    assert_eq!(ok(&shop.post(&format!("/session/{session}/abort"), json!({})).await), json!(true));
    let last = shop.messages(&session).await.into_iter().rev().nth(1).unwrap();
    shop.revert(&session, &last).await;
    assert_eq!(shop.texts(["a.txt", "late.txt"]), [some("two\n"), None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn diffs_are_of_a_turn_or_of_the_session() {
    let shop = Shop::open().await;
    let empty = shop.new_session().await;
    assert_eq!(shop.get(&format!("/session/{empty}/diff")).await.json(), json!([]));
    let (session, [first, second], [_, other]) = two_turns(&shop).await;
    let diff = async |query: &str| ok(&shop.get(&format!("/session/{session}/diff{query}")).await);
    let of = |file: &str, status: &str, added: u64, removed: u64| (file.to_owned(), status.to_owned(), added, removed);
    let stats = |diffs: &Value| {
        let text = |diff: &Value, field: &str| diff[field].as_str().unwrap().to_owned();
        let count = |diff: &Value, field: &str| diff[field].as_u64().unwrap();
        let each = |diff: &Value| {
            (text(diff, "file"), text(diff, "status"), count(diff, "additions"), count(diff, "deletions"))
        };
        diffs.as_array().unwrap().iter().map(each).collect::<Vec<_>>()
    };
    assert_eq!(stats(&diff("").await), [of("a.txt", "added", 1, 0), of("made/b.txt", "added", 1, 0)]);
    assert_eq!(stats(&diff(&format!("?messageID={first}")).await), [of("a.txt", "added", 1, 0)]);
    let turn = diff(&format!("?messageID={second}")).await;
    assert_eq!(stats(&turn), [of("a.txt", "modified", 1, 1), of("made/b.txt", "added", 1, 0)]);
    let patch = turn[0]["patch"].as_str().unwrap();
    assert!(patch.contains("\n-one\n+two\n"), "{patch}");
    assert_eq!(diff(&format!("?messageID={other}")).await, turn, "an answer is of the same turn");
    // All that is not as it was counts, as in the feed's `session.diff`.
    shop.put("theirs.txt", "by a person\n");
    let (third, _) = shop.work(&session, &["write c.txt three"]).await;
    let total = shop.facts_of(&session, "checkpoint_saved").await.pop().unwrap()["total"].clone();
    let counted: Vec<&str> =
        total["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    let told = stats(&diff("").await);
    assert_eq!(told.iter().map(|(file, ..)| file.as_str()).collect::<Vec<_>>(), counted);
    assert_eq!(counted, ["a.txt", "c.txt", "made/b.txt", "theirs.txt"]);
    shop.revert(&session, &third).await;
    std::fs::remove_file(shop.path("theirs.txt")).unwrap();
    shop.revert(&session, &first).await;
    assert_eq!(diff("").await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_a_session_of_its_own_in_the_same_folder() {
    let shop = Shop::open().await;
    let (session, [first, second], _) = two_turns(&shop).await;
    let fork = async |session: &str, body: Value| ok(&shop.post(&format!("/session/{session}/fork"), body).await);
    let whole = fork(&session, json!({})).await;
    let part = fork(&session, json!({ "messageID": second })).await;
    assert_eq!(whole["directory"], shop.get(&format!("/session/{session}")).await.json()["directory"]);
    let (whole, part) = (whole["id"].as_str().unwrap(), part["id"].as_str().unwrap());
    let (all, copied) = (shop.messages(&session).await, shop.messages(whole).await);
    assert_eq!((copied.len(), shop.messages(part).await.len()), (4, 2));
    assert!(copied.iter().all(|id| !all.contains(id)), "clients know messages by their ids alone");
    assert_eq!(shop.texts(FILES), [some("two\n"), some("x\n")], "the files stay as they are");
    let roots = shop.get("/session?roots=true").await.json();
    let listed = |id: &str| roots.as_array().unwrap().iter().any(|root| root["id"] == id);
    assert!(listed(whole) && listed(part), "a fork is nobody's child: {roots}");

    shop.work(part, &["write a.txt fork"]).await;
    assert_eq!(shop.messages(part).await.len(), 4);
    assert_eq!(shop.messages(&session).await, all);
    shop.revert(&session, &first).await;
    assert_eq!(shop.text("a.txt"), some("fork\n"), "the fork changed it after the session did");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boundary_of_the_newer_api_can_leave_the_files() {
    let shop = Shop::open().await;
    let (session, [_, second], _) = two_turns(&shop).await;
    let stage = format!("/api/session/{session}/revert/stage");
    let staged = ok(&shop.post(&stage, json!({ "messageID": second, "files": false })).await);
    assert_eq!(staged["data"]["messageID"], second.as_str());
    assert_eq!(shop.texts(FILES), [some("two\n"), some("x\n")]);
    ok(&shop.post(&stage, json!({ "messageID": second })).await);
    assert_eq!(shop.texts(FILES), [some("one\n"), None]);
    ok(&shop.post(&stage, json!({ "messageID": second, "files": false })).await);
    assert_eq!(shop.texts(FILES), [some("two\n"), some("x\n")]);
    let clear = format!("/api/session/{session}/revert/clear");
    for _ in 0..2 {
        assert_eq!(shop.post(&clear, json!({})).await.status, 204);
        assert_eq!(shop.get(&format!("/session/{session}")).await.json().get("revert"), None);
    }
    assert_eq!(shop.texts(FILES), [some("two\n"), some("x\n")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_client_should_send_changes_nothing() {
    let shop = Shop::open().await;
    let (session, [first, _], _) = two_turns(&shop).await;
    let elsewhere = shop.new_session().await;
    let (foreign, _) = shop.work(&elsewhere, &["hello"]).await;
    let facts = shop.facts(&session).await;
    let of = |route: &str| format!("/session/{session}/{route}");
    for (path, body, status, words) in [
        ("/session/bad/revert".to_owned(), json!({ "messageID": first }), 400, "starting with \"ses\""),
        ("/session/ses_nope/revert".to_owned(), json!({ "messageID": first }), 404, "Session not found"),
        ("/session/ses_nope/unrevert".to_owned(), json!({}), 404, "Session not found"),
        ("/session/ses_nope/fork".to_owned(), json!({}), 404, "Session not found"),
        ("/api/session/ses_nope/revert/stage".to_owned(), json!({ "messageID": first }), 404, "Session not found"),
        ("/api/session/ses_nope/revert/clear".to_owned(), json!({}), 404, "Session not found"),
        ("/api/session/ses_nope/revert/commit".to_owned(), json!({}), 404, "Session not found"),
        (format!("/api/session/{session}/revert/commit"), json!({}), 501, "the next prompt"),
        (format!("/api/session/{session}/revert/stage"), json!({ "messageID": first, "files": 1 }), 400, "files"),
        (of("revert"), json!({}), 400, "at [\"messageID\"]"),
        (of("revert"), json!({ "messageID": 7 }), 400, "messageID"),
        (of("revert"), json!({ "messageID": session }), 400, "at [\"messageID\"]"),
        (of("revert"), json!({ "messageID": "msg_nope" }), 404, "msg_nope"),
        (of("revert"), json!({ "messageID": foreign }), 404, &foreign),
        (of("revert"), json!({ "messageID": first, "partID": "x" }), 400, "at [\"partID\"]"),
        (of("revert"), json!({ "messageID": first, "partID": "prt_nope" }), 404, "Part not found: prt_nope"),
        (of("revert"), json!({ "messageID": "msg_nope", "partID": "prt_nope" }), 404, "msg_nope"),
        (of("fork"), json!({ "messageID": "msg_nope" }), 404, "msg_nope"),
        (of("fork"), json!({ "messageID": ["x"] }), 400, "messageID"),
    ] {
        let refused = shop.post(&path, body.clone()).await;
        let told = refused.json();
        let said = told["data"]["message"].as_str().unwrap_or_default();
        assert!(refused.status == status && said.contains(words), "{path} {body}: {} {told}", refused.status);
    }
    for (path, status) in [(of("diff?messageID=msg_nope"), 404), ("/session/ses_nope/diff".to_owned(), 404)] {
        assert_eq!(shop.get(&path).await.status, status, "{path}");
    }
    for body in ["[", "[]", "7"] {
        assert_eq!(shop.send("POST", &of("revert"), body).await.status, 400, "{body}");
        assert_eq!(shop.send("POST", &of("fork"), body).await.status, 400, "{body}");
    }
    assert_eq!(shop.unrevert(&session).await, shop.get(&format!("/session/{session}")).await.json());
    assert_eq!(shop.facts(&session).await, facts);
    assert_eq!(shop.texts(FILES), [some("two\n"), some("x\n")]);
}
