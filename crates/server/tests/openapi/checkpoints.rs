//! Checkpoints, rewind and fork, with a real desk and real git.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tolka_session::DeskOptions;
use tolka_workspace::Checkpoints;

use super::{House, Shapes, document, until_asked};

/// A session in a folder of its own, beside the server's data.
struct Room {
    house: House,
    session: String,
    workspace: PathBuf,
}

impl Room {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Some(Arc::new(Checkpoints::new(&folder.path().join("data"))));
        let house = House::on(folder, DeskOptions { checkpoints, ..DeskOptions::default() }).await;
        let workspace = house.folder.path().canonicalize().unwrap().join("work");
        fs::create_dir(&workspace).unwrap();
        fs::write(workspace.join("kept.txt"), "before\n").unwrap();
        let (_, made) =
            house.ask("post", "/v1/sessions", Some(json!({ "workspace": workspace, "title": "Room" }))).await;
        let session = made["id"].as_str().unwrap().to_owned();
        Room { house, session, workspace }
    }

    /// The answer, which has the shape that the document promises.
    async fn ask(&self, method: &str, rest: &str, body: Option<Value>) -> (u16, Value) {
        let path = format!("/v1/sessions/{}/{rest}", self.session);
        let (status, answer) = self.house.ask(method, &path, body).await;
        let route = format!("/v1/sessions/{{id}}/{}", rest.split('?').next().unwrap());
        Shapes(document()).check_answer(method, &route, status, &answer);
        (status, answer)
    }

    /// A turn in which files change: the agent waits for leave meanwhile. Its prompt.
    async fn turn(&self, change: impl FnOnce()) -> String {
        let (_, accepted) = self.ask("post", "prompt", Some(json!({ "text": "go" }))).await;
        let after = accepted["position"].as_str().unwrap();
        until_asked(&self.house, &format!("/v1/sessions/{}/events?after={after}", self.session)).await;
        change();
        self.ask("post", "cancel", None).await;
        loop {
            let (_, queue) = self.ask("get", "queue", None).await;
            if queue["running"].is_null() {
                return accepted["message"].as_str().unwrap().to_owned();
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_a_session_from_a_point_in_place_or_with_files_of_its_own() {
    let room = Room::open().await;
    let message = room.turn(|| fs::write(room.workspace.join("made.txt"), "by a turn\n").unwrap()).await;
    let (status, fork) = room.ask("post", "fork", None).await;
    assert_eq!((status, &fork["title"], &fork["turns"]), (201, &json!("Room (fork #1)"), &json!(1)));
    assert_eq!((&fork["parent"]["session"], &fork["workspace"]), (&json!(room.session), &json!(room.workspace)));

    let request = json!({ "before": message, "workspace": "own", "title": "Anew" });
    let (status, own) = room.ask("post", "fork", Some(request)).await;
    assert_eq!((status, &own["title"], &own["turns"]), (201, &json!("Anew"), &json!(0)));
    let folder = PathBuf::from(own["workspace"].as_str().unwrap());
    assert_eq!(fs::read_to_string(folder.join("kept.txt")).unwrap(), "before\n");
    assert!(!folder.join("made.txt").exists() && room.workspace.join("made.txt").exists());
    // Others may work there too, and nowhere else in the data folder.
    let (status, _) = room.house.ask("post", "/v1/sessions", Some(json!({ "workspace": folder }))).await;
    assert_eq!(status, 201);

    for (body, status, words) in [
        (json!({ "workspace": "/elsewhere" }), 400, "`workspace` is in_place or own."),
        (json!({ "workspace": 1 }), 400, "`workspace` must be a string."),
        (json!({ "before": "msg_none" }), 404, "no message msg_none is in this session"),
    ] {
        let (answered, answer) = room.ask("post", "fork", Some(body)).await;
        assert_eq!((answered, &answer["error"]["message"]), (status, &json!(words)));
    }
    room.house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_refused_in_words() {
    let room = Room::open().await;
    let diff = "Give one of `message`, `from` (a checkpoint; with or without `to`), and `since` (approval or session).";
    let rewind = "Give one of `message` (of a prompt or an answer, to go back to before it) and `checkpoint`.";
    let overwrite = "`overwrite` is true, false, or a list of paths.";
    for (method, rest, body, words) in [
        ("get", "checkpoints?limit=0", json!({}), "`limit` is a number from 1 to 1000."),
        ("get", "checkpoints?before=now", json!({}), "`before` is a number from 0 on."),
        ("get", "diff?to=x", json!({}), diff),
        ("get", "diff?message=x&from=y", json!({}), diff),
        ("get", "diff?since=monday", json!({}), diff),
        ("post", "rewind", json!({}), rewind),
        ("post", "rewind", json!({ "message": "m", "checkpoint": "c" }), rewind),
        ("post", "rewind", json!({ "message": "m", "what": "all" }), "`what` is files, conversation or both."),
        ("post", "rewind", json!({ "message": "m", "preview": 1 }), "`preview` must be true or false."),
        ("post", "rewind", json!({ "message": "m", "overwrite": "a" }), overwrite),
        ("post", "rewind", json!({ "message": "m", "overwrite": ["a", 1] }), overwrite),
        ("post", "unrewind", json!({ "overwrite": 7 }), overwrite),
        ("post", "approve", json!({ "message": 7 }), "`message` must be a string."),
    ] {
        let (status, answer) = room.ask(method, rest, Some(body)).await;
        assert_eq!((status, &answer["error"]["message"]), (400, &json!(words)), "{rest}");
    }
    for (method, rest) in
        [("get", "checkpoints"), ("get", "diff"), ("post", "reset"), ("post", "unrewind"), ("post", "fork")]
    {
        let (status, _) = room.house.ask(method, &format!("/v1/sessions/ses_none/{rest}"), None).await;
        assert_eq!(status, 404, "{rest}");
    }
    room.house.close().await;
}
