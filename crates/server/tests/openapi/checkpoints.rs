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

#[tokio::test(flavor = "multi_thread")]
async fn old_checkpoints_go_only_when_it_is_said_which() {
    let room = Room::open().await;
    for n in 0..3 {
        room.turn(|| fs::write(room.workspace.join("made.txt"), format!("by turn {n}\n")).unwrap()).await;
    }
    let prune = async |body: Value| {
        let (status, answer) = room.house.ask("post", "/v1/checkpoints/prune", Some(body)).await;
        Shapes(document()).check_answer("post", "/v1/checkpoints/prune", status, &answer);
        (status, answer)
    };
    let which = "Say what may go: `older_than` (seconds), `most_bytes` (of one workspace's store), or both.";
    for (body, words) in [
        (json!({}), which),
        (json!({ "older_than": null, "preview": true }), which),
        (json!({ "older_than": "7d" }), "`older_than` must be a number from 0 on."),
        (json!({ "older_than": -1 }), "`older_than` must be a number from 0 on."),
        (json!({ "most_bytes": 1.5 }), "`most_bytes` must be a number from 0 on."),
        (json!({ "most_bytes": 1, "preview": "yes" }), "`preview` must be true or false."),
    ] {
        let (status, answer) = prune(body).await;
        assert_eq!((status, &answer["error"]["message"]), (400, &json!(words)));
    }
    let (_, would) = prune(json!({ "older_than": 0, "preview": true })).await;
    assert_eq!(
        (&would["checkpoints"], &would["preview"]),
        (&json!(4), &json!(true)),
        "all but the first and the last: {would}"
    );
    let (_, stays) = prune(json!({ "older_than": u64::MAX, "most_bytes": 0 })).await;
    assert_eq!(stays["checkpoints"], 0, "the session is in use");
    let (_, went) = prune(json!({ "older_than": 0 })).await;
    assert_eq!((&went["checkpoints"], &went["preview"]), (&json!(4), &json!(false)), "{went}");
    let (_, listed) = room.ask("get", "checkpoints", None).await;
    let points = listed["checkpoints"].as_array().unwrap();
    let middle = points[points.len() / 2]["checkpoint"].clone();
    let (status, gone) = room.ask("post", "rewind", Some(json!({ "checkpoint": middle }))).await;
    let words = gone["error"]["message"].as_str().unwrap();
    assert!(status == 409 && words.contains("removed with other old ones to save room"), "{status} {gone}");
    room.house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_conversation_go_back_and_come_again() {
    let room = Room::open().await;
    let (made, kept) = (room.workspace.join("made.txt"), room.workspace.join("kept.txt"));
    let message = room
        .turn(|| {
            fs::write(&made, "by a turn\n").unwrap();
            fs::write(&kept, "by a turn too\n").unwrap();
        })
        .await;
    let (_, listed) = room.ask("get", "checkpoints", None).await;
    let kinds: Vec<&Value> = listed["checkpoints"].as_array().unwrap().iter().map(|point| &point["kind"]).collect();
    assert_eq!(kinds, ["after_turn", "before_turn"], "{listed}");
    assert_eq!(listed["checkpoints"][1]["message"], json!(message));
    let (_, page) = room.ask("get", "checkpoints?limit=1", None).await;
    let (_, rest) = room.ask("get", &format!("checkpoints?limit=1&before={}", page["before"]), None).await;
    assert_eq!((&rest["checkpoints"][0], &rest["before"]), (&listed["checkpoints"][1], &Value::Null));

    let (_, diff) = room.ask("get", &format!("diff?message={message}"), None).await;
    let files: Vec<&Value> = diff["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(files, ["kept.txt", "made.txt"], "{diff}");
    assert!(diff["files"][1]["patch"].as_str().unwrap().contains("+by a turn"), "{diff}");
    let before = listed["checkpoints"][1]["checkpoint"].as_str().unwrap();
    assert_eq!(room.ask("get", &format!("diff?from={before}"), None).await.1["files"], diff["files"]);
    for query in ["diff", "diff?since=approval"] {
        assert_eq!(room.ask("get", query, None).await.1["files"].as_array().unwrap().len(), 2, "{query}");
    }

    // The person goes on with one of them.
    fs::write(&kept, "by a person\n").unwrap();
    let request = json!({ "message": message, "preview": true });
    let (status, preview) = room.ask("post", "rewind", Some(request)).await;
    assert_eq!((status, &preview["preview"]), (200, &json!(true)));
    assert_eq!(preview["files"], json!([{ "path": "made.txt", "operation": "delete", "added": 0, "removed": 1 }]));
    assert_eq!((&preview["kept"][0]["path"], &preview["kept"][0]["why"]), (&json!("kept.txt"), &json!("conflict")));
    assert!(made.exists() && preview["messages"].as_u64().unwrap() > 0, "{preview}");
    let (_, done) = room.ask("post", "rewind", Some(json!({ "message": message }))).await;
    for name in ["files", "kept", "messages", "checkpoint", "message"] {
        assert_eq!(done[name], preview[name], "{name}");
    }
    assert!(!made.exists());
    assert_eq!(fs::read_to_string(&kept).unwrap(), "by a person\n");
    let position: u64 = done["position"].as_str().unwrap().parse().unwrap();
    let other = room.ask("post", "unrewind", Some(json!({ "rewind": position - 1 }))).await;
    assert!(other.0 == 409 && !made.exists(), "it is not the one that is meant: {}", other.1);
    let (status, undone) = room.ask("post", "unrewind", Some(json!({ "rewind": done["position"] }))).await;
    assert_eq!(undone["messages"], done["messages"]);
    assert!(undone["position"].as_str().unwrap().parse::<u64>().unwrap() > position);
    assert_eq!((status, fs::read_to_string(&made).unwrap().as_str()), (200, "by a turn\n"));
    assert_eq!(room.ask("post", "unrewind", None).await.0, 409, "there is nothing more");

    let (_, approval) = room.ask("post", "approve", Some(json!({ "message": "fine" }))).await;
    assert_eq!(approval["settled"], json!(1));
    room.turn(|| fs::write(&made, "again\n").unwrap()).await;
    let (_, reset) = room.ask("post", "reset", None).await;
    assert_eq!(reset["files"][0]["path"], json!("made.txt"), "{reset}");
    assert_eq!(fs::read_to_string(&made).unwrap(), "by a turn\n");
    room.ask("post", "rewind", Some(json!({ "message": message, "overwrite": ["kept.txt"], "what": "files" }))).await;
    assert_eq!((fs::read_to_string(&kept).unwrap().as_str(), made.exists()), ("before\n", false));
    room.ask("get", "view", None).await;
    room.house.close().await;
}
