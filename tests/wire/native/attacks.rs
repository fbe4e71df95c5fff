//! A model that tries to get out: every way fails, says why to the model and to people, and changes nothing outside.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use tolka_scripted::{Answer, Beat, Call, Script};

use super::stage::{Stage, Talk, Wire};

/// What is tried, and a word of what is said to it.
fn attempts(outside: &Path) -> Vec<(&'static str, Value, &'static str)> {
    let outside = |name: &str| outside.join(name).display().to_string();
    vec![
        ("write", json!({ "filePath": "../secret.txt", "content": "x" }), "out of the workspace"),
        ("write", json!({ "filePath": "sub/../../secret.txt", "content": "x" }), "out of the workspace"),
        ("write", json!({ "filePath": outside("secret.txt"), "content": "x" }), "out of the workspace"),
        ("write", json!({ "filePath": "link/secret.txt", "content": "x" }), "out of the workspace"),
        ("write", json!({ "filePath": "file-link", "content": "x" }), "out of the workspace"),
        ("edit", json!({ "filePath": "file-link", "oldString": "secret", "newString": "x" }), "out of the workspace"),
        ("delete", json!({ "filePath": "link/secret.txt" }), "out of the workspace"),
        (
            "apply_patch",
            json!({ "patchText": "*** Begin Patch\n*** Add File: ../new.txt\n+x\n*** End Patch\n" }),
            "out of the workspace",
        ),
        ("write", json!({ "filePath": ".git/hooks/pre-commit", "content": "x" }), ".git"),
        ("edit", json!({ "filePath": ".git/config", "oldString": "core", "newString": "x" }), ".git"),
        ("delete", json!({ "filePath": ".git/HEAD" }), ".git"),
        ("write", json!({ "filePath": ".GIT/config", "content": "x" }), ".git"),
        ("read", json!({ "filePath": "pipe" }), "neither a file nor a folder"),
        ("write", json!({ "filePath": "pipe", "content": "x" }), "neither a file nor a folder"),
        ("write", json!({ "filePath": "two\nlines.txt", "content": "x" }), "line"),
        ("write", json!({ "filePath": "nul\u{0}.txt", "content": "x" }), "nul"),
        ("list", json!({ "path": ".." }), "out of the workspace"),
        ("glob", json!({ "pattern": "*", "path": "/" }), "out of the workspace"),
        ("grep", json!({ "pattern": "secret", "path": "link" }), "out of the workspace"),
        ("artifact", json!({ "path": "../secret.txt" }), "out of the workspace"),
    ]
}

fn lay_out(stage: &Stage) {
    let (workspace, outside) = (stage.house.workspace(), stage.house.data().with_file_name("outside"));
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.txt"), "secret\n").unwrap();
    std::fs::write(outside.with_file_name("secret.txt"), "secret\n").unwrap();
    std::fs::create_dir_all(workspace.join("sub")).unwrap();
    std::fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
    std::fs::write(workspace.join(".git/config"), "[core]\n").unwrap();
    std::fs::write(workspace.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    symlink(&outside, workspace.join("link")).unwrap();
    symlink(outside.join("secret.txt"), workspace.join("file-link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, workspace.join("pipe"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .unwrap();
}

#[test]
fn every_way_out_fails_and_says_why() {
    let stage = Stage::set(Wire::OpenAi, Script::default());
    lay_out(&stage);
    let outside = stage.house.data().with_file_name("outside");
    let attempts = attempts(&outside);
    for (name, input, _) in &attempts {
        stage.provider.add([Answer::beats([Beat::Call(Call::new(name, input.clone()))])]);
    }
    stage.provider.add([Answer::text("I give up.")]);
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Get out.");
    // Whoever is asked says no, with a reason: the turn goes on.
    loop {
        let fact = talk.next().clone();
        match fact["type"].as_str().unwrap() {
            "permission_asked" => talk.answer(&fact, &json!({ "option": "reject", "reason": "It leads out." })),
            "turn_ended" => break,
            _ => {}
        }
    }
    assert_eq!(talk.said(), "I give up.");
    let ends: Vec<&Value> = talk.told("tool_changed").into_iter().filter(|c| !c["error"].is_null()).collect();
    let errors: Vec<&str> = ends.iter().map(|end| end["error"].as_str().unwrap()).collect();
    assert_eq!(errors.len(), attempts.len(), "{errors:#?}");
    for ((name, input, why), error) in attempts.iter().zip(&errors) {
        assert!(error.to_lowercase().contains(why), "{name} {input}: {error}");
    }
    assert_eq!(talk.told("file_changed"), Vec::<&Value>::new());
    for secret in [outside.join("secret.txt"), outside.with_file_name("secret.txt")] {
        assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret\n");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    let workspace = stage.house.workspace();
    assert_eq!(std::fs::read_to_string(workspace.join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(std::fs::read_dir(workspace.join(".git/hooks")).unwrap().count(), 0);
    assert!(!outside.with_file_name("new.txt").exists());
    let sent = stage.provider.requests().last().unwrap().body.to_string();
    assert!(sent.contains("leads out of the workspace"), "the model is told why");
}
