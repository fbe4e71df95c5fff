//! Two sessions in one folder at once.

use serde_json::json;
use tolka_scripted::{Answer, Beat, Call, When};

use super::stage::{Rewinds, Stage, bash, names, prompts, put, write};
use crate::native::stage::Talk;
use crate::server::until;

/// What the model does for whoever's prompt has this word.
fn rehearse(stage: &Stage, word: &str, calls: Vec<Call>) {
    let steps = calls.into_iter().map(|call| Answer::beats([Beat::Call(call)])).chain([Answer::text("Done.")]);
    let when = || When { user: Some(word.to_owned()), ..When::default() };
    stage.provider.add(steps.map(|answer| answer.when(when())));
}

#[test]
fn what_both_touched_is_kept_and_shown_and_the_other_is_told_what_moved() {
    let stage = Stage::set();
    let folder = stage.workspace();
    for name in ["mine", "theirs", "ours", "nobodys"] {
        put(&folder, name, "at first\n");
    }
    let server = stage.serve();
    let (mut one, mut two) = (Talk::begin(server.address), Talk::begin(server.address));
    // Both turns are open at once: each waits for the other to have begun.
    let waits =
        |own: &str, other: &str| format!("touch ignored-{own}; until test -e ignored-{other}; do sleep 0.02; done");
    put(&folder, ".gitignore", "ignored-*\n");
    rehearse(&stage, "alpha", vec![bash(&format!("{}; echo one > mine; echo one >> ours", waits("a", "b")))]);
    rehearse(&stage, "beta", vec![bash(&format!("{}; echo two > theirs; echo two >> ours", waits("b", "a")))]);
    one.prompt("alpha");
    two.prompt("beta");
    one.until_type("turn_ended");
    two.until_type("turn_ended");
    let (both, theirs) = (std::fs::read_to_string(folder.join("ours")).unwrap(), "two\n");
    assert!(both.contains("one") && both.contains("two"), "{both}");

    let first = prompts(&one)[0].clone();
    let preview = one.preview(&first, "both");
    let done = one.rewind(&first, "both");
    assert_eq!(preview["kept"], done["kept"]);
    let kept = names(&done["kept"]);
    assert!(kept.contains(&"ours") && !kept.contains(&"nobodys"), "{done}");
    assert_eq!(std::fs::read_to_string(folder.join("ours")).unwrap(), both, "a conflict is kept");
    assert_eq!(std::fs::read_to_string(folder.join("theirs")).unwrap(), theirs, "what is the other's stays");

    // A command is looked at file by file, so whose `mine` is may be known or not; it is never lost.
    let (mine, moved) = (std::fs::read_to_string(folder.join("mine")).unwrap(), names(&done["files"]));
    assert_eq!(mine == "at first\n", moved.contains(&"mine"), "{done}");

    // Told what to do, it goes back, and the other session's clients hear of it.
    let asked = json!({ "message": first, "what": "files", "overwrite": ["ours"] });
    let done = one.ask("rewind", &asked).expect(200);
    assert!(names(&done["files"]).contains(&"ours"), "{done}");
    assert_eq!(std::fs::read_to_string(folder.join("ours")).unwrap(), "at first\n");
    let told = two.until(|fact| fact["type"] == "files_moved" && fact["data"].to_string().contains("\"ours\""));
    assert_eq!(told["data"]["by"], one.session.as_str());

    // And it can be taken back.
    one.unrewind();
    assert_eq!(std::fs::read_to_string(folder.join("ours")).unwrap(), both);
}

/// A command takes its time, and meanwhile another session's tools write: each has its own.
#[test]
fn what_the_others_tools_write_while_a_command_runs_is_the_others() {
    let stage = Stage::set();
    let folder = stage.workspace();
    for name in ["mine", "theirs", "ours"] {
        put(&folder, name, "at first\n");
    }
    put(&folder, ".gitignore", "ignored-*\n");
    let server = stage.serve();
    let (mut one, mut two) = (Talk::begin(server.address), Talk::begin(server.address));
    // The command goes on when the other session is done.
    let command =
        "echo one > mine; echo one > ours; touch ignored-begun; until test -e ignored-done; do sleep 0.02; done";
    rehearse(&stage, "alpha", vec![bash(command)]);
    let read = |path: &str| Call::new("read", json!({ "filePath": path }));
    let calls = ["theirs", "ours"].map(|path| [read(path), write(path, "two\n")]).concat();
    rehearse(&stage, "beta", [calls, vec![write("new", "two\n")]].concat());
    one.prompt("alpha");
    until("the command to run", || folder.join("ignored-begun").exists().then_some(()));
    two.prompt("beta");
    two.until_type("turn_ended");
    put(&folder, "ignored-done", "");
    one.until_type("turn_ended");
    let told = |talk: &Talk| -> Vec<String> {
        let told = talk.told("file_changed").into_iter().map(|change| change["path"].as_str().unwrap().to_owned());
        let mut told: Vec<String> = told.map(|path| path.rsplit('/').next().unwrap().to_owned()).collect();
        told.sort_unstable();
        told
    };
    assert_eq!(
        (told(&one), told(&two)),
        (vec!["mine".into(), "ours".into()], vec!["new".into(), "ours".into(), "theirs".into()])
    );

    let kept = |done: &serde_json::Value| -> Vec<(String, String)> {
        let text = |entry: &serde_json::Value, name: &str| entry[name].as_str().unwrap().to_owned();
        let kept = done["kept"].as_array().unwrap().iter();
        kept.map(|entry| (text(entry, "path"), text(entry, "why"))).collect()
    };
    let pair = |path: &str, why: &str| (path.to_owned(), why.to_owned());
    let done = one.rewind(&prompts(&one)[0].clone(), "both");
    assert_eq!(names(&done["files"]), ["mine"], "{done}");
    assert_eq!(kept(&done), [pair("new", "not_ours"), pair("ours", "conflict"), pair("theirs", "not_ours")]);
    one.unrewind();
    let done = two.rewind(&prompts(&two)[0].clone(), "both");
    assert_eq!(names(&done["files"]), ["new", "theirs"], "{done}");
    assert_eq!(kept(&done), [pair("ours", "conflict")]);
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let expected = [Some("one\n"), Some("at first\n"), Some("two\n"), None].map(|text| text.map(str::to_owned));
    assert_eq!(["mine", "theirs", "ours", "new"].map(text), expected);
}

#[test]
fn a_restore_above_leaves_what_a_session_below_did() {
    let stage = Stage::set();
    let folder = stage.workspace();
    put(&folder, "app/main", "at first\n");
    put(&folder, "lib/main", "at first\n");
    let server = stage.serve();
    let mut above = Talk::begin(server.address);
    let body = json!({ "workspace": folder.join("lib") });
    let below = crate::http::post(server.address, "/v1/sessions", &body).expect(201);
    let mut below = Talk::take_up(server.address, below["id"].as_str().unwrap().to_owned());
    stage.turn(&mut above, vec![bash("echo above > app/main")]);
    stage.turn(&mut below, vec![bash("echo below > main; echo new > new")]);
    stage.turn(&mut above, vec![bash("echo again > app/main")]);
    let done = above.rewind(&prompts(&above)[0].clone(), "both");
    assert_eq!(names(&done["files"]), ["app/main"]);
    assert_eq!(std::fs::read_to_string(folder.join("app/main")).unwrap(), "at first\n");
    assert_eq!(std::fs::read_to_string(folder.join("lib/main")).unwrap(), "below\n");
    assert!(folder.join("lib/new").exists());
}

#[test]
fn what_a_person_edits_while_a_turn_runs_is_kept() {
    let stage = Stage::set();
    let folder = stage.workspace();
    for name in ["agents", "persons", "both"] {
        put(&folder, name, "at first\n");
    }
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    // Between two commands the agent waits for its model, and a person edits.
    let steps = [
        Answer::beats([Beat::Call(bash("echo agent > agents; echo agent > both; echo agent > new"))]),
        Answer::beats([Beat::Gate("edited".to_owned()), Beat::Text("Done.".to_owned())]),
    ];
    stage.provider.add(steps);
    talk.prompt("Go on.");
    talk.until(|fact| fact["type"] == "file_changed" && fact["data"]["path"].as_str().unwrap().ends_with("new"));
    talk.until(|fact| fact["type"] == "step_ended");
    put(&folder, "persons", "mine\n");
    put(&folder, "notes", "mine\n");
    stage.provider.open("edited");
    talk.until_type("turn_ended");

    let first = prompts(&talk)[0].clone();
    talk.ask("rewind", &json!({ "message": first, "preveiw": true })).expect(400);
    let done = talk.rewind(&first, "both");
    let (mut kept, mut went) = (names(&done["kept"]), names(&done["files"]));
    kept.sort_unstable();
    went.sort_unstable();
    assert_eq!((kept, went), (vec!["notes", "persons"], vec!["agents", "both", "new"]), "{done}");
    assert_eq!(std::fs::read_to_string(folder.join("persons")).unwrap(), "mine\n");
    assert_eq!(std::fs::read_to_string(folder.join("notes")).unwrap(), "mine\n");
    assert_eq!(std::fs::read_to_string(folder.join("agents")).unwrap(), "at first\n");
}
