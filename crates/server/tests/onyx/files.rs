//! What an agent made, downloaded; and nothing else.

use tolka_agent::Pace;

use crate::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_workspace_are_downloads_and_never_pages() {
    let house = House::playing("codex", Pace::AtOnce).await;
    let session = house.session().await;
    let workspace = house.workspace();
    std::fs::create_dir_all(workspace.join("outputs/web")).unwrap();
    std::fs::write(workspace.join("outputs/web/index.html"), "<script>alert(1)</script>").unwrap();
    let large: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(workspace.join("outputs/large.txt"), &large).unwrap();
    std::fs::write(workspace.join("../secret"), "no").unwrap();
    std::os::unix::fs::symlink("../../secret", workspace.join("outputs/link")).unwrap();
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
    assert!(get("outputs/large.txt").await.text() == large);
    for (path, status) in [
        ("outputs/none", 404),
        ("outputs/web/", 400),
        ("outputs/web", 400),
        ("outputs/link", 403),
        ("outputs/../../secret", 403),
        ("%2e%2e/secret", 403),
        ("%2Fetc%2Fpasswd", 403),
    ] {
        let refused = get(path).await;
        assert_eq!(refused.status, status, "{path}: {}", refused.text());
        assert!(refused.json()["detail"].is_string());
    }
    assert_eq!(house.get("/api/build/sessions/ses_none/artifacts/outputs/large.txt").await.status, 404);
}
