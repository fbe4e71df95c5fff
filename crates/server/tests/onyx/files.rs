//! What an agent made, downloaded; and nothing else.

use serde_json::{Value, json};
use tolka_agent::Pace;

use crate::house::House;

/// A recording in which these paths are artifacts.
fn making(paths: &[&str]) -> String {
    let fact = |seq: usize, kind: &str, data: &str| {
        format!(r#"{{"v":1,"session":"ses_1","seq":{seq},"time":{seq},"cause":"agent","type":"{kind}","data":{data}}}"#)
    };
    let made = paths.iter().enumerate().map(|(n, path)| {
        let data = format!(r#"{{"id":"art_{n}","kind":"file","name":"a","path":"{path}","mime":"a/b","size":1}}"#);
        fact(n + 3, "artifact_saved", &data)
    });
    let queued = fact(1, "prompt_queued", r#"{"turn":"trn_1","message":"msg_1","content":[]}"#);
    let started = fact(2, "turn_started", r#"{"turn":"trn_1"}"#);
    let ended = fact(paths.len() + 3, "turn_ended", r#"{"turn":"trn_1","stop":"end_turn"}"#);
    [queued, started].into_iter().chain(made).chain([ended]).map(|line| line + "\n").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_are_downloads_and_never_pages() {
    let paths = [
        "outputs/web/",
        "outputs/large.txt",
        "outputs/none",
        "outputs/link",
        "outputs/alias",
        "all/",
        "outputs/../../secret",
    ];
    let house = House::with(making(&paths), Pace::AtOnce).await;
    let session = house.session().await;
    house.prompt(&session, "Make them").await.whole().await;
    let workspace = house.workspace();
    std::fs::create_dir_all(workspace.join("outputs/web")).unwrap();
    std::fs::write(workspace.join("outputs/web/index.html"), "<script>alert(1)</script>").unwrap();
    let large: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(workspace.join("outputs/large.txt"), &large).unwrap();
    std::fs::write(workspace.join("../secret"), "no").unwrap();
    std::fs::write(workspace.join(".env"), "KEY=1").unwrap();
    std::os::unix::fs::symlink("../../secret", workspace.join("outputs/link")).unwrap();
    // Links that stay in the workspace, and show what nobody made for others.
    std::os::unix::fs::symlink("../.env", workspace.join("outputs/alias")).unwrap();
    std::os::unix::fs::symlink("../../.env", workspace.join("outputs/web/env")).unwrap();
    std::os::unix::fs::symlink("index.html", workspace.join("outputs/web/home")).unwrap();
    std::os::unix::fs::symlink(".", workspace.join("all")).unwrap();
    let get = async |path: &str| house.get(&format!("/api/build/sessions/{session}/artifacts/{path}")).await;

    let page = get("outputs/web/index.html").await;
    assert_eq!((page.status, page.text().as_str()), (200, "<script>alert(1)</script>"));
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment; filename*=UTF-8''index.html"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(page.header(name), Some(value));
    }
    assert_eq!(get("outputs/web/home").await.text(), page.text());
    assert!(get("outputs/large.txt").await.text() == large);
    for (path, status) in [
        ("outputs/none", 404),
        ("outputs/web/", 400),
        ("outputs/web", 404),
        ("outputs/link", 403),
        ("outputs/alias", 403),
        ("outputs/web/env", 403),
        ("all/.env", 403),
        ("outputs/../../secret", 403),
        ("outputs/web/../../../secret", 403),
        // It is in the workspace, and nobody made it for others.
        (".env", 404),
        ("outputs/web/../../.env", 403),
        ("%2e%2e/secret", 404),
        ("%2Fetc%2Fpasswd", 404),
    ] {
        let refused = get(path).await;
        assert_eq!(refused.status, status, "{path}: {}", refused.text());
        assert!(refused.json()["detail"].is_string());
    }
    assert_eq!(house.get("/api/build/sessions/ses_none/artifacts/outputs/large.txt").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_in_a_packet_is_where_the_file_is() {
    let house = House::written(|workspace| {
        let inside = |path: &str| workspace.join(path).display().to_string();
        making(&["outputs/a.txt", &inside("outputs/b.txt"), &inside("web/"), "/etc/hostname"])
    })
    .await;
    let session = house.session().await;
    let workspace = house.workspace();
    std::fs::create_dir_all(workspace.join("outputs")).unwrap();
    std::fs::create_dir_all(workspace.join("web")).unwrap();
    for path in ["outputs/a.txt", "outputs/b.txt", "web/index.html"] {
        std::fs::write(workspace.join(path), path).unwrap();
    }
    let told = house.post(&format!("/sessions/{session}/send-message?packets=steps"), json!({ "content": "Go" })).await;
    let made = told.packets().into_iter().filter(|packet| packet["type"] == "artifact_created");
    let [a, b, web, outside] = made.map(|packet| packet["artifact"].clone()).collect::<Vec<_>>().try_into().unwrap();
    for (artifact, rest, content) in
        [(a, "", "outputs/a.txt"), (b, "", "outputs/b.txt"), (web, "index.html", "web/index.html")]
    {
        let address = artifact["download_url"].as_str().unwrap().to_owned() + rest;
        let file = house.get(&address).await;
        assert_eq!((file.status, file.text().as_str()), (200, content), "{address}");
    }
    assert_eq!((&outside["path"], &outside["download_url"]), (&json!("/etc/hostname"), &json!(null)));
    let listed = house.get(&format!("/api/build/sessions/{session}/artifacts")).await.json();
    let paths: Vec<&Value> = listed.as_array().unwrap().iter().map(|artifact| &artifact["path"]).collect();
    assert_eq!(paths, ["outputs/a.txt", "outputs/b.txt", "web/", "/etc/hostname"]);
    for path in ["%2Fetc%2Fhostname", "/etc/hostname"] {
        let refused = house.get(&format!("/api/build/sessions/{session}/artifacts/{path}")).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
    }
}
