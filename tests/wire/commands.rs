//! Prompts in files, called by their names through every family: what the model is sent is what the file says.

use std::path::Path;

use serde_json::{Value, json};
use tolka_scripted::{Answer, Script, When};

use crate::http::{call, get, new_session, post};
use crate::native::stage::{Stage, Talk, Wire};

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The person's words in the last request that the model got.
fn asked(stage: &Stage) -> String {
    let requests = stage.provider.requests();
    let messages = requests.last().unwrap().body["messages"].clone();
    let last =
        messages.as_array().unwrap().iter().rfind(|message| message["role"] == "user").unwrap()["content"].clone();
    match last {
        Value::String(text) => text,
        parts => {
            parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    }
}

fn stage() -> Stage {
    let stage = Stage::set(Wire::OpenAi, Script::of([Answer::text("Well.").for_ever()]));
    let root = stage.house.workspace();
    put(
        &root,
        ".tolka/commands/review.md",
        "---\ndescription: Looks at it\nargument-hint: <what>\nagent: plan\n---\nReview $1 for $2.",
    );
    put(&root, ".claude/commands/git/commit.md", "Commit. Now: !`git status`");
    put(&root, ".opencode/command/read.md", "Tell of @notes.txt: $ARGUMENTS");
    put(&root, "notes.txt", "the notes");
    stage
}

#[test]
fn a_prompt_that_begins_with_a_name_is_what_the_file_says_in_every_family() {
    let stage = stage();
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("/review src 'all of it' please");
    let ended = talk.until_type("turn_ended");
    assert_eq!(ended["data"]["stop"], "end_turn");
    assert_eq!(asked(&stage), "Review src for all of it please.");
    let queued = talk.told("prompt_queued")[0].clone();
    assert_eq!(
        (&queued["agent"], &queued["content"][0]["text"]),
        (&json!("plan"), &json!("Review src for all of it please."))
    );
    let told = talk.told("commands_set");
    let names: Vec<&Value> = told[0]["commands"].as_array().unwrap().iter().map(|command| &command["name"]).collect();
    assert_eq!(
        (told.len(), names),
        (1, vec![&json!("compact"), &json!("git/commit"), &json!("read"), &json!("review")])
    );

    let session = talk.session.clone();
    let body = json!({ "command": "git/commit", "arguments": "" });
    let message = post(server.address, &format!("/session/{session}/command"), &body).expect(200);
    assert_eq!(message["info"]["role"], "assistant");
    assert_eq!(asked(&stage), "Commit. Now: [run the command `git status` and take what it prints for this place]");
    let missing =
        post(server.address, &format!("/session/{session}/command"), &json!({ "command": "nothing" })).expect(400);
    assert!(missing.to_string().contains("Available commands: compact, git/commit, read, review"), "{missing}");

    let body = json!({ "messages": [{ "role": "user", "content": "/git:commit now" }], "dialog_id": session, "stream": false });
    call(server.address, "POST", "/api/chat", &[("content-type", "application/json")], body.to_string().as_bytes());
    assert!(asked(&stage).ends_with("for this place]\n\nnow"), "{}", asked(&stage));

    talk.prompt("/nobody knows this");
    talk.until(|fact| fact["type"] == "turn_ended" && fact["seq"].as_u64() > ended["seq"].as_u64());
    while talk.told("turn_ended").len() < 4 {
        talk.until_type("turn_ended");
    }
    assert_eq!(asked(&stage), "/nobody knows this");
    assert_eq!(talk.told("commands_set").len(), 1, "told once");
}

#[test]
fn files_that_a_command_mentions_are_read_and_changes_are_told() {
    let stage = stage();
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("/read briefly");
    talk.until_type("turn_ended");
    let sent = asked(&stage);
    assert!(sent.contains("Tell of @notes.txt: briefly") && sent.contains("the notes"), "{sent}");
    put(&stage.house.workspace(), ".tolka/commands/new.md", "New");
    talk.prompt("hello");
    talk.until_type("turn_ended");
    let told = talk.told("commands_set");
    assert_eq!((told.len(), told[1]["commands"].as_array().unwrap().len()), (2, 5));
}

#[test]
fn what_can_be_called_is_listed() {
    let stage = stage();
    let server = stage.serve();
    let listed = get(server.address, "/v1/commands").expect(200);
    assert_eq!(
        listed["commands"][3],
        json!({ "name": "review", "description": "Looks at it", "hint": "<what>", "mode": "plan", "model": null })
    );
    let listed = get(server.address, "/command").expect(200);
    assert_eq!(
        listed[3],
        json!({
            "name": "review", "description": "Looks at it", "source": "command", "template": "Review $1 for $2.",
            "hints": ["$1", "$2"], "agent": "plan",
        })
    );
    assert_eq!((&listed[0]["name"], &listed[0]["hints"]), (&json!("compact"), &json!(["$ARGUMENTS"])));
    assert_eq!(new_session(server.address).get(..4), Some("ses_"));
}

/// What the agent does itself is told to clients of the Agent Client Protocol as well.
#[test]
fn a_summary_is_among_the_commands_in_every_list() {
    let stage = stage();
    put(&stage.house.workspace(), ".tolka/commands/compact.md", "It takes nobody's place.");
    let server = stage.serve();
    let listed = get(server.address, "/v1/commands").expect(200);
    assert_eq!(
        (&listed["commands"][0]["name"], &listed["commands"][0]["hint"]),
        (&json!("compact"), &json!("[what to heed]"))
    );
    let mut talk = Talk::begin(server.address);
    talk.prompt("hello");
    talk.until_type("turn_ended");
    let told =
        get(server.address, &format!("/v1/sessions/{}/events?dialect=acp&format=json", talk.session)).expect(200);
    let is_it = |event: &&Value| event.to_string().contains("available_commands_update");
    let told = told["events"].as_array().unwrap().iter().find(is_it).unwrap_or_else(|| panic!("{told}"));
    assert!(told.to_string().contains("\"name\":\"compact\""), "{told}");
}

#[test]
fn a_subagent_does_what_its_file_gives_to_one() {
    let of_child = When { system: Some("You are a subagent".to_owned()), ..When::default() };
    let script = Script::of([
        Answer::text("There is one.").when(of_child).for_ever(),
        Answer::text("So there is one mistake.").for_ever(),
    ]);
    let stage = Stage::set(Wire::OpenAi, script);
    let root = stage.house.workspace();
    let kinds = [("one", "subtask: true", "general"), ("two", "agent: explore", "explore")];
    for (name, says, _) in kinds {
        put(
            &root,
            &format!(".opencode/command/{name}.md"),
            &format!("---\ndescription: A look\n{says}\n---\nLook for mistakes in $1."),
        );
    }
    put(&root, ".opencode/command/three.md", "---\nagent: explore\nsubtask: false\n---\nLook yourself.");
    let server = stage.serve();
    let listed = get(server.address, "/command").expect(200);
    let subtasks: Vec<_> = listed.as_array().unwrap().iter().map(|command| command["subtask"].clone()).collect();
    assert_eq!(subtasks, [Value::Null, json!(true), json!(false), Value::Null]);
    for (name, _, kind) in kinds {
        let mut talk = Talk::begin(server.address);
        talk.prompt(&format!("/{name} a b"));
        assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
        let call = talk.ended("task", "Look for mistakes in a b.");
        assert_eq!((&call["status"], &call["input"]["subagent_type"]), (&json!("completed"), &json!(kind)), "{call}");
        let children = get(server.address, &format!("/v1/sessions?parent={}", talk.session)).expect(200);
        assert_eq!(children["sessions"][0]["mode"], json!(kind), "{children}");
        assert_eq!(talk.said(), "So there is one mistake.");
    }
    let mut talk = Talk::begin(server.address);
    talk.prompt("/three");
    talk.until_type("turn_ended");
    let children = get(server.address, &format!("/v1/sessions?parent={}", talk.session)).expect(200);
    assert_eq!(children["sessions"], json!([]));
}
