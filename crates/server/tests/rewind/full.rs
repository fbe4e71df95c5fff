//! A disk that is full in the middle of going back: every family says so in plain words, and nothing is changed.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::shop::{Shop, kept, ok};

/// More than anything else that is written here.
const LARGE: u64 = 24 << 20;

/// The kernel stops a write that is too long, as on a disk that is full; so the test is run where it does.
#[test]
fn a_full_disk_is_said_in_plain_words_by_every_family() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    fs::File::create(&large).unwrap().set_len(LARGE).unwrap();
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' XFSZ; ulimit -f 16384; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "full::where_the_disk_is_full", "--ignored", "--nocapture"]);
    let output = child.env("TMPDIR", folder.path()).env("TEST_LARGE", &large).output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && words.contains("1 passed"),
        "{words}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs inside a_full_disk_is_said_in_plain_words_by_every_family"]
async fn where_the_disk_is_full() {
    let shop = Shop::open().await;
    fs::rename(std::env::var("TEST_LARGE").unwrap(), shop.path("large")).unwrap();
    shop.put("note", "before\n");
    let session = shop.new_session().await;
    let (prompt, _) = shop.work(&session, &["run rm large"]).await;
    assert!(!shop.path("large").exists());
    let before = shop.before_prompts(&session).await.remove(0);
    let words = "The disk is full; nothing was changed. Make room and try again.";
    for (path, body, at) in [
        (format!("/v1/sessions/{session}/rewind"), json!({ "message": prompt }), "/error/message"),
        (format!("/api/dialogs/{session}/restore"), json!({ "checkpoint_id": before }), "/detail"),
        (format!("/session/{session}/revert"), json!({ "messageID": prompt }), "/data/message"),
    ] {
        let refused = shop.post(&path, body).await;
        assert_eq!((refused.status, refused.json().pointer(at)), (507, Some(&json!(words))), "{}", refused.text());
        assert!(!shop.path("large").exists());
    }
    // What fits is done, and what does not is named.
    shop.work(&session, &["write note after"]).await;
    let done = ok(&shop.post(&format!("/api/dialogs/{session}/restore"), json!({ "checkpoint_id": before })).await);
    assert_eq!((kept(&done), shop.text("note").as_deref()), (vec![("large", "no_room")], Some("before\n")));
}
