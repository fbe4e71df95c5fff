//! How AgentSmithy's own server lost people's work, number by number (how long a snapshot takes is measured elsewhere):
//! what its clients do then, and what they find here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::shop::{Shop, kept, some};

fn git(shop: &Shop, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=me", "-c", "user.email=me@example.invalid"]).args(arguments);
    let done = command.current_dir(shop.workspace()).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

async fn before(shop: &Shop, session: &str, prompt: usize) -> Value {
    shop.before_prompts(session).await.remove(prompt)
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_1_an_edit_of_the_same_size_is_not_taken_for_what_was_committed() {
    let shop = Shop::open().await;
    shop.put("mine.txt", "AAAA");
    git(&shop, &["init", "-q"]);
    git(&shop, &["add", "-A"]);
    git(&shop, &["commit", "-qm", "first"]);
    let committed = fs::metadata(shop.path("mine.txt")).unwrap().modified().unwrap();
    shop.put("mine.txt", "BBBB");
    // Even if nothing but the bytes tells them apart.
    fs::File::options().write(true).open(shop.path("mine.txt")).unwrap().set_modified(committed).unwrap();
    let session = shop.new_session().await;
    shop.work(&session, &["write mine.txt CCCC"]).await;
    shop.restore(&session, &before(&shop, &session, 0).await).await;
    assert_eq!(shop.text("mine.txt"), some("BBBB"));
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_2_what_a_person_changed_after_the_agent_is_what_is_saved() {
    let shop = Shop::open().await;
    let session = shop.new_session().await;
    shop.work(&session, &["write a.txt v1"]).await;
    shop.put("a.txt", "v2\n");
    shop.work(&session, &["write a.txt v3"]).await;
    let done = shop.restore(&session, &before(&shop, &session, 1).await).await;
    assert_eq!((shop.text("a.txt"), kept(&done)), (some("v2\n"), vec![]));
    let done = shop.restore(&session, &before(&shop, &session, 0).await).await;
    assert_eq!((shop.text("a.txt"), kept(&done)), (some("v2\n"), vec![("a.txt", "conflict")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_3_files_made_by_commands_go_and_those_of_people_stay() {
    let shop = Shop::open().await;
    shop.put("deep/mine.txt", "mine\n");
    let session = shop.new_session().await;
    shop.work(&session, &["run mkdir -p out/deep && echo x > out/deep/a.o && echo y > deep/b.o && rm deep/mine.txt"])
        .await;
    shop.put("later.txt", "later\n");
    shop.put("out/notes.txt", "notes\n");
    let done = shop.restore(&session, &before(&shop, &session, 0).await).await;
    assert_eq!(shop.texts(["out/deep/a.o", "deep/b.o", "deep/mine.txt"]), [None, None, some("mine\n")]);
    assert_eq!(shop.texts(["later.txt", "out/notes.txt"]), [some("later\n"), some("notes\n")]);
    assert_eq!(kept(&done), [("later.txt", "not_ours"), ("out/notes.txt", "not_ours")]);
    assert!(!shop.path("out/deep").exists(), "the agent's folder went with its last file");
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_4_what_was_there_before_a_restore_comes_back() {
    let shop = Shop::open().await;
    let session = shop.new_session().await;
    shop.work(&session, &["write a.txt one", "write gone.txt x"]).await;
    shop.work(&session, &["write a.txt two", "run rm gone.txt"]).await;
    shop.put("mine.txt", "mine\n");
    let done = shop.restore(&session, &before(&shop, &session, 0).await).await;
    assert_eq!(shop.texts(["a.txt", "gone.txt", "mine.txt"]), [None, None, some("mine\n")]);
    shop.put("mine.txt", "more\n");
    shop.restore(&session, &done["pre_restore_checkpoint"]).await;
    assert_eq!(shop.texts(["a.txt", "gone.txt", "mine.txt"]), [some("two\n"), None, some("more\n")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_5_what_a_reset_took_away_can_be_restored() {
    let shop = Shop::open().await;
    let session = shop.new_session().await;
    shop.work(&session, &["write a.txt one", "run echo x > made.txt"]).await;
    let reset = shop.tell(&session, "reset", serde_json::json!({})).await;
    assert_eq!(shop.texts(["a.txt", "made.txt"]), [None, None]);
    shop.restore(&session, &reset["pre_reset_checkpoint"]).await;
    assert_eq!(shop.texts(["a.txt", "made.txt"]), [some("one\n"), some("x\n")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_6_repositories_and_empty_folders_are_left_alone() {
    let shop = Shop::open().await;
    shop.put("mine.txt", "mine\n");
    git(&shop, &["init", "-q"]);
    git(&shop, &["add", "-A"]);
    git(&shop, &["commit", "-qm", "first"]);
    git(&shop, &["pack-refs", "--all"]);
    fs::create_dir_all(shop.path("empty/inner")).unwrap();
    let inside = |shop: &Shop| {
        let mut find = Command::new("find");
        find.args([".git", "-printf", "%p %y %m %T@ %s\n"]).current_dir(shop.workspace());
        let listed = String::from_utf8(find.output().unwrap().stdout).unwrap();
        let mut lines: Vec<String> = listed.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let untouched = inside(&shop);
    let session = shop.new_session().await;
    shop.work(&session, &["write a.txt one", "run mkdir made && echo x > made/b.txt"]).await;
    shop.restore(&session, &before(&shop, &session, 0).await).await;
    assert_eq!(inside(&shop), untouched);
    assert!(shop.path("empty/inner").is_dir() && !shop.path("made").exists() && !shop.path("a.txt").exists());
    assert_eq!(git(&shop, &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_7_modes_and_links_are_exact_and_nothing_is_written_through_a_link() {
    let shop = Shop::open().await;
    shop.put("tool.sh", "#!/bin/sh\n");
    fs::set_permissions(shop.path("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("theirs.txt"), "theirs\n").unwrap();
    symlink("tool.sh", shop.path("link")).unwrap();
    shop.put("plain.txt", "plain\n");
    let session = shop.new_session().await;
    let swap = format!("run rm plain.txt && ln -s {}/theirs.txt plain.txt", outside.path().display());
    shop.work(&session, &["run chmod 644 tool.sh && rm link && echo file > link", &swap]).await;
    shop.restore(&session, &before(&shop, &session, 0).await).await;
    assert_eq!(fs::metadata(shop.path("tool.sh")).unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(fs::read_link(shop.path("link")).unwrap().as_os_str(), "tool.sh");
    assert!(shop.path("plain.txt").symlink_metadata().unwrap().is_file());
    assert_eq!(shop.text("plain.txt"), some("plain\n"));
    assert_eq!(fs::read_to_string(outside.path().join("theirs.txt")).unwrap(), "theirs\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_8_a_link_to_nothing_spoils_no_checkpoint() {
    let shop = Shop::open().await;
    symlink("nowhere", shop.path("dangling")).unwrap();
    let session = shop.new_session().await;
    shop.work(&session, &["write a.txt one", "run rm dangling"]).await;
    let checkpoint = before(&shop, &session, 0).await;
    assert!(checkpoint.is_string());
    let history = shop.ask(&session, "history").await;
    assert_eq!(history["events"][0]["checkpoint"], checkpoint);
    shop.restore(&session, &checkpoint).await;
    assert_eq!(fs::read_link(shop.path("dangling")).unwrap().as_os_str(), "nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_9_files_that_stay_keep_their_times() {
    let shop = Shop::open().await;
    shop.put("kept.txt", "kept\n");
    let long_ago = SystemTime::now() - Duration::from_secs(100_000);
    fs::File::options().write(true).open(shop.path("kept.txt")).unwrap().set_modified(long_ago).unwrap();
    let times = |shop: &Shop| fs::metadata(shop.path("kept.txt")).unwrap().modified().unwrap();
    let untouched = times(&shop);
    let session = shop.new_session().await;
    shop.work(&session, &["write a.txt one"]).await;
    shop.restore(&session, &before(&shop, &session, 0).await).await;
    assert_eq!((shop.text("a.txt"), times(&shop)), (None, untouched));
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_10_what_is_ignored_is_neither_saved_nor_touched() {
    let shop = Shop::open().await;
    shop.put(".gitignore", "node_modules/\n*.log\n");
    shop.put("node_modules/deep/x.js", "x\n");
    shop.put("web/.gitignore", "dist/\n");
    let session = shop.new_session().await;
    let made = "run mkdir -p web/dist && echo y > web/dist/y.js && echo z > node_modules/z.js && echo l > a.log";
    shop.work(&session, &[made, "write Cargo.lock lock", "write src/bin/main.rs main"]).await;
    let changed = shop.ask(&session, "session").await["changed_files"].clone();
    let paths: Vec<&str> = changed.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["Cargo.lock", "src/bin/main.rs"], "only what people ignore is ignored");
    let done = shop.restore(&session, &before(&shop, &session, 0).await).await;
    assert_eq!(kept(&done), []);
    assert_eq!(shop.texts(["Cargo.lock", "src/bin/main.rs"]), [None, None]);
    let ignored = ["node_modules/deep/x.js", "node_modules/z.js", "web/dist/y.js", "a.log"];
    assert_eq!(shop.texts(ignored), [some("x\n"), some("z\n"), some("y\n"), some("l\n")]);
}
