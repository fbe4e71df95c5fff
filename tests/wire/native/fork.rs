//! The native agent in a fork: it knows what was said up to there and no more, and works where the fork does.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tolka_scripted::{Answer, Script};

use super::stage::{Stage, Talk, Wire};
use crate::http::{get, post};

/// Prompts of a session, the first one first.
fn prompts(talk: &Talk) -> Vec<String> {
    talk.told("prompt_queued").iter().map(|prompt| prompt["message"].as_str().unwrap().to_owned()).collect()
}

fn fork(talk: &Talk, body: &Value) -> (Talk, PathBuf) {
    let forked = post(talk.address, &format!("/v1/sessions/{}/fork", talk.session), body).expect(201);
    let session = forked["id"].as_str().unwrap().to_owned();
    let workspace = PathBuf::from(forked["workspace"].as_str().unwrap());
    let mut fork = Talk::take_up(talk.address, session);
    fork.until_type("session_forked");
    (fork, workspace)
}

#[test]
fn the_model_is_sent_the_conversation_up_to_the_fork_and_no_more() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let write = Answer::call("write", json!({ "filePath": "seven.txt", "content": "7\n" }));
        let answers =
            [write, Answer::text("Seven it is."), Answer::text("Eight it is."), Answer::text("It was seven.")];
        let stage = Stage::set(wire, Script::of(answers));
        let server = stage.serve();
        let mut talk = Talk::begin(server.address);
        for words in ["Take down seven.", "Now think of eight."] {
            talk.prompt(words);
            talk.until_type("turn_ended");
        }
        let second = prompts(&talk).remove(1);
        let (mut fork, _) = fork(&talk, &json!({ "before": second }));
        fork.prompt("Which number was it?");
        assert_eq!(fork.until_type("turn_ended")["data"]["stop"], "end_turn");
        let requests = stage.provider.requests();
        assert!(requests.iter().all(|request| request.refused.is_none()), "{requests:?}");
        let sent = requests.last().unwrap().body["messages"].to_string();
        let order =
            ["Take down seven.", "seven.txt", "Seven it is.", "Which number was it?"].map(|words| sent.find(words));
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} {sent}");
        assert!(!sent.to_lowercase().contains("eight"), "{sent}");
        assert!(fork.said().ends_with("It was seven."), "{}", fork.said());
        // The parent knows nothing of it.
        assert!(
            !talk
                .in_dialect(server.address, "tolka".parse().unwrap())
                .iter()
                .any(|fact| { fact.to_string().contains("Which number") })
        );
    }
}

#[test]
fn commands_of_a_fork_with_a_folder_of_its_own_work_there_and_see_nothing_else_of_ours() {
    let stage = Stage::set(Wire::OpenAi, Script::of([Answer::text("Hello.")]));
    fs::write(stage.house.workspace().join("shared.txt"), "from the parent\n").unwrap();
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Hello?");
    talk.until_type("turn_ended");
    let (mut fork, folder) = fork(&talk, &json!({ "workspace": "own" }));
    assert!(folder.starts_with(stage.house.data().canonicalize().unwrap()), "{}", folder.display());

    let data = stage.house.data().canonicalize().unwrap();
    let command = format!(
        "pwd; cat shared.txt; echo here > made.txt; ls {0} | sed 's/^/seen: /'; ls {0}/forks | sed 's/^/fork: /'; \
         cat {0}/*/HEAD {0}/checkpoints/*/HEAD {0}/*.db {0}/*.sqlite && echo leaked; echo x > {0}/mark && echo written",
        data.display()
    );
    stage.provider.add([
        Answer::call("bash", json!({ "command": command, "description": "Looks around" })),
        Answer::call("write", json!({ "filePath": "by-tool.txt", "content": "tool\n" })),
        Answer::text("Done."),
    ]);
    fork.prompt("Look around.");
    let asked = fork.until_type("permission_asked");
    fork.answer(&asked, &json!({ "option": "once" }));
    assert_eq!(fork.until_type("turn_ended")["data"]["stop"], "end_turn");
    let output: String =
        fork.told("output_appended").iter().map(|output| output["text"].as_str().unwrap_or_default()).collect();
    assert!(output.contains(&format!("{}\nfrom the parent\n", folder.display())), "{output}");
    for (name, content) in [("made.txt", "here\n"), ("by-tool.txt", "tool\n"), ("shared.txt", "from the parent\n")] {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), content);
    }
    let workspace = stage.house.workspace();
    assert!(!workspace.join("made.txt").exists() && !workspace.join("by-tool.txt").exists());
    let sandbox = get(server.address, "/v1").expect(200)["sandbox"]["level"].clone();
    if sandbox == "none" {
        eprintln!("skipped in part: no sandbox can be had here");
        return;
    }
    let seen: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("seen: ")).collect();
    assert!(seen.iter().all(|name| *name == "forks"), "{sandbox}: {output}");
    assert!(!output.contains("leaked") && !output.contains("written"), "{sandbox}: {output}");
    assert!(!data.join("mark").exists(), "{sandbox}");
}

#[test]
fn copied_turns_are_taken_back_in_a_fork_in_place_with_their_files() {
    let write = |content: &str| Answer::call("write", json!({ "filePath": "notes.txt", "content": content }));
    let answers = [write("one\n"), Answer::text("One."), write("two\n"), Answer::text("Two.")];
    let stage = Stage::set(Wire::OpenAi, Script::of(answers));
    let notes = stage.house.workspace().join("notes.txt");
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    for words in ["Write one.", "Write two."] {
        talk.prompt(words);
        talk.until_type("turn_ended");
    }
    let (mut fork, workspace) = fork(&talk, &json!({}));
    assert_eq!(workspace, stage.house.workspace().canonicalize().unwrap());
    let copied = prompts(&fork);
    assert!(copied.len() == 2 && copied.iter().all(|message| !prompts(&talk).contains(message)), "ids of its own");
    let path = |what: &str| format!("/v1/sessions/{}/{what}", fork.session);
    let back = post(server.address, &path("rewind"), &json!({ "message": copied[1] })).expect(200);
    assert_eq!((&back["files"][0]["path"], &back["kept"]), (&json!("notes.txt"), &json!([])), "{back}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "one\n");
    post(server.address, &path("rewind"), &json!({ "message": copied[0] })).expect(200);
    assert!(!notes.exists());
    for content in ["one\n", "two\n"] {
        post(server.address, &path("unrewind"), &json!({})).expect(200);
        assert_eq!(fs::read_to_string(&notes).unwrap(), content);
    }
    // Gone back for good: the model is sent the first turn alone.
    post(server.address, &path("rewind"), &json!({ "message": copied[1] })).expect(200);
    stage.provider.add([Answer::text("Three.")]);
    fork.prompt("And three?");
    fork.until(|fact| fact["type"] == "turn_ended");
    let sent = stage.provider.requests().last().unwrap().body["messages"].to_string();
    assert!(sent.contains("Write one.") && sent.contains("And three?") && !sent.contains("Write two."), "{sent}");
}
