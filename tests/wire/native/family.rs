//! Subagents: three at once, one that asks, one that fails, one that is cancelled from another client; the tree after
//! SIGKILL; and how every dialect tells a run with two of them.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tolka_scripted::{Answer, Beat, Call, Counts, Script, When};

use super::normal::Normal;
use super::stage::{Stage, Talk, Wire};
use super::story::golden;
use crate::http::{call, get, post};
use crate::server::until;

fn task(description: &str, kind: &str, prompt: &str) -> Call {
    let input = json!({ "description": description, "prompt": prompt, "subagent_type": kind });
    Call::new("task", input)
}

fn to(prompt: &str, answer: Answer) -> Answer {
    answer.when(When { user: Some(prompt.to_owned()), ..When::default() })
}

fn touch(file: &str) -> Value {
    json!({ "command": format!("echo made > {file}"), "description": format!("Makes {file}") })
}

/// Its subagents, by their titles.
fn children(address: SocketAddr, session: &str) -> Vec<Value> {
    let mut listed = get(address, &format!("/v1/sessions?parent={session}")).expect(200)["sessions"].take();
    let mut listed = std::mem::take(listed.as_array_mut().unwrap());
    listed.sort_by_key(|child| child["title"].as_str().unwrap().to_owned());
    listed
}

fn child(address: SocketAddr, session: &str, title: &str) -> String {
    until("a subagent", || {
        let listed = children(address, session);
        let found = listed.iter().find(|child| child["title"].as_str().unwrap().starts_with(title));
        found.map(|child| child["id"].as_str().unwrap().to_owned())
    })
}

#[test]
fn three_work_at_once_and_one_asks_one_fails_and_one_is_cancelled_by_somebody_else() {
    let script = Script::of([
        to(
            "Split it.",
            Answer::beats([Beat::Calls(vec![
                task("Ask first", "general", "Run the command."),
                task("Break down", "explore", "Fail at once."),
                task("Wait long", "general", "Wait for ever."),
            ])]),
        ),
        to("Run the command.", Answer::call("bash", touch("made.txt"))),
        to("Run the command.", Answer::text("The command ran.")),
        to("Fail at once.", Answer::status(400)),
        to("Wait for ever.", Answer::beats([Beat::Text("I wait, ".to_owned()), Beat::Hang])),
        Answer::text("All three are over."),
    ]);
    let stage = Stage::set(Wire::OpenAi, script);
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Split it.");

    // All three have begun before any of them is answered: they work side by side.
    let asked = talk.until_type("permission_asked");
    let waiting = child(server.address, &talk.session, "Wait long");
    let mut other = Talk::take_up(server.address, waiting.clone());
    other.until(|fact| fact["type"] == "text_appended");
    let asking = child(server.address, &talk.session, "Ask first");
    let listed = children(server.address, &talk.session);
    assert_eq!(listed.len(), 3, "{listed:?}");
    for child in &listed {
        assert_eq!((&child["parent"]["session"], &child["parent"]["kind"]), (&json!(talk.session), &json!("subagent")));
        assert_eq!(child["model"], json!({ "provider": "scripted", "id": "story" }));
    }
    let all = get(server.address, "/v1/sessions").expect(200);
    assert_eq!(all["sessions"].as_array().unwrap().len(), 1, "subagents are not among those that people began: {all}");

    // One request, which OpenCode's clients find once, in the session that asks.
    let request = &asked["data"]["request"];
    let waits = get(server.address, "/permission").expect(200);
    assert_eq!((waits.as_array().unwrap().len(), &waits[0]["id"]), (1, request), "{waits}");
    assert_eq!(waits[0]["sessionID"], json!(asking));
    let shown = get(server.address, &format!("/session/{}/children", talk.session)).expect(200);
    assert!(shown.as_array().unwrap().iter().all(|child| child["parentID"] == json!(talk.session)), "{shown}");
    let call = &asked["data"]["call"];
    let named = listed.iter().find(|child| child["id"] == json!(asking)).unwrap();
    assert_eq!(&named["parent"]["call"], call);

    // Cancelled from another client, of another family.
    post(server.address, &format!("/session/{waiting}/abort"), &json!({})).expect(200);
    assert_eq!(other.until_type("turn_ended")["data"]["stop"], "cancelled");

    // Answered where the parent is watched; it counts in both.
    talk.answer(&asked, &json!({ "option": "once" }));
    let again = post(
        server.address,
        &format!("/v1/sessions/{asking}/answers/{}", request.as_str().unwrap()),
        &json!({ "option": "once" }),
    );
    again.expect(409);
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    let answered = talk.told("permission_answered");
    assert_eq!((answered.len(), &answered[0]["request"], &answered[0]["option"]), (1, request, &json!("once")));
    let mut asker = Talk::take_up(server.address, asking.clone());
    asker.until_type("turn_ended");
    assert_eq!(asker.told("permission_answered")[0], answered[0]);

    let asked = talk.ended("task", "Ask first");
    assert_eq!((&asked["status"], &asked["subagent"]), (&json!("completed"), &json!(asking)));
    assert_eq!(asked["output"]["metadata"]["sessionId"], json!(asking));
    assert!(asked["output"]["output"].as_str().unwrap().starts_with("The command ran.\n\n<task_metadata>"), "{asked}");
    let failed = talk.ended("task", "Break down");
    assert!(failed["error"].as_str().unwrap().starts_with("The subagent failed: "), "{failed}");
    let cancelled = talk.ended("task", "Wait long");
    assert_eq!(cancelled["status"], "failed");
    assert!(cancelled["error"].as_str().unwrap().contains("cancelled the subagent"), "{cancelled}");
    let last = stage.provider.requests().last().unwrap().body.to_string();
    for words in ["The command ran.", "The subagent failed", "cancelled the subagent", "I wait,"] {
        assert!(last.contains(words), "the model is told: {words}");
    }
    let changed = talk.told("file_changed");
    assert_eq!((changed.len(), &changed[0]["call"]), (1, call), "what a subagent changed is told in its parent");
    assert_eq!(changed[0]["after"], asker.told("file_changed")[0]["after"]);
}

#[test]
fn a_parent_that_is_cancelled_takes_its_subagents_along_and_a_rewind_takes_back_what_they_changed() {
    let write = json!({ "filePath": "made.txt", "content": "made\n" });
    let script = Script::of([
        to(
            "Split it.",
            Answer::beats([Beat::Calls(vec![task("One", "general", "First."), task("Two", "general", "Second.")])]),
        ),
        to("First.", Answer::call("write", write)),
        to("First.", Answer::beats([Beat::Text("Written.".to_owned()), Beat::Hang])),
        to("Second.", Answer::beats([Beat::Text("I wait, ".to_owned()), Beat::Hang])),
    ]);
    let stage = Stage::set(Wire::Anthropic, script);
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Split it.");
    let mut both =
        ["One", "Two"].map(|title| Talk::take_up(server.address, child(server.address, &talk.session, title)));
    both.iter_mut().for_each(|child| drop(child.until_type("text_appended")));
    talk.cancel();
    for child in &mut both {
        assert_eq!(child.until_type("turn_ended")["data"]["stop"], "cancelled");
    }
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "cancelled");
    assert_eq!(talk.told("file_changed").len(), 1);

    let file = stage.house.workspace().join("made.txt");
    assert!(file.exists());
    let message = talk.told("prompt_queued")[0]["message"].clone();
    let body = json!({ "message": message });
    let rewound = post(server.address, &format!("/v1/sessions/{}/rewind", talk.session), &body).expect(200);
    assert!(!file.exists(), "{rewound}");
    let first = &mut both[0];
    first.until_type("files_moved");
    assert_eq!(first.told("message_hidden").len(), 0, "nothing of a subagent's journal is hidden");

    let path = format!("/v1/sessions/{}", talk.session);
    call(server.address, "DELETE", &path, &[], b"").expect(204);
    for child in &both {
        get(server.address, &format!("/v1/sessions/{}", child.session)).expect(404);
    }
}

#[test]
fn after_a_kill_the_tree_is_right_and_nothing_is_run_again() {
    let script = Script::of([
        to(
            "Split it.",
            Answer::beats([Beat::Calls(vec![
                task("Asks", "general", "Ask."),
                task("Breaks", "explore", "Break down."),
                task("Stopped", "general", "Be stopped."),
                task("Waits", "explore", "Wait."),
            ])]),
        ),
        to("Ask.", Answer::call("bash", touch("never.txt"))),
        to("Break down.", Answer::status(400)),
        to("Be stopped.", Answer::beats([Beat::Text("I wait, ".to_owned()), Beat::Hang])),
        to("Wait.", Answer::beats([Beat::Text("I wait, ".to_owned()), Beat::Hang])),
        to("Go on.", Answer::text("I go on.")),
        to("And you?", Answer::text("Me too.")),
    ]);
    let stage = Stage::set(Wire::OpenAi, script);
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Split it.");
    let waits = child(server.address, &talk.session, "Waits");
    Talk::take_up(server.address, waits.clone()).until_type("text_appended");
    let stopped = child(server.address, &talk.session, "Stopped");
    Talk::take_up(server.address, stopped.clone()).until_type("text_appended");
    post(server.address, &format!("/session/{stopped}/abort"), &json!({})).expect(200);
    let ended = |talk: &Talk| talk.told("tool_changed").iter().filter(|change| change["status"] == "failed").count();
    while talk.told("permission_asked").is_empty() || ended(&talk) < 2 {
        talk.until(|_| true);
    }
    let tree = |address| -> Vec<Value> {
        let shown = |child: Value| json!([child["id"], child["parent"], child["mode"], child["title"]]);
        children(address, &talk.session).into_iter().map(shown).collect()
    };
    let before = tree(server.address);
    server.kill();

    let server = stage.serve();
    assert_eq!(tree(server.address), before);
    let mut after = Talk::take_up(server.address, talk.session.clone());
    assert_eq!(after.until_type("turn_ended")["data"]["stop"], "interrupted");
    assert_eq!(after.told("permission_answered").len(), 1);
    let ends = [
        ("Asks", "cancelled", "interrupted"),
        ("Breaks", "failed", "failed"),
        ("Stopped", "failed", "cancelled"),
        ("Waits", "cancelled", "interrupted"),
    ];
    assert_eq!(before.len(), ends.len());
    for (one, (title, status, stop)) in before.iter().zip(ends) {
        let id = one[0].as_str().unwrap().to_owned();
        let task = after.ended("task", title);
        assert_eq!((&task["status"], &task["subagent"]), (&json!(status), &json!(id)), "{task}");
        assert_eq!(one[1]["call"], task["call"]);
        let mut child = Talk::take_up(server.address, id);
        assert_eq!(child.until_type("turn_ended")["data"]["stop"], stop);
    }
    let asked = stage.provider.requests().len();
    after.prompt("Go on.");
    assert_eq!(after.until_type("turn_ended")["data"]["stop"], "end_turn");
    assert_eq!(after.said(), "I go on.");
    let mut child = Talk::take_up(server.address, waits);
    child.until_type("turn_ended");
    child.prompt("And you?");
    child.until_type("turn_started");
    assert_eq!(child.until_type("turn_ended")["data"]["stop"], "end_turn");
    let requests = stage.provider.requests();
    assert_eq!(requests.len(), asked + 2, "nothing is asked again");
    assert!(requests.iter().all(|request| request.refused.is_none()), "{requests:?}");
    assert!(!stage.house.workspace().join("never.txt").exists());
}

#[test]
fn a_kind_has_its_own_words_and_tools_and_is_listed() {
    let script = Script::of([
        to("Split it.", Answer::beats([Beat::Calls(vec![task("Review", "reviewer", "Review it.")])])),
        to("Review it.", Answer::call("bash", touch("never.txt"))),
        to("Review it.", Answer::text("It is fine.")),
        Answer::text("Reviewed."),
        Answer::text("That is all."),
    ]);
    let stage = Stage::set(Wire::Anthropic, script);
    let folder = stage.house.workspace().join(".claude/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let reviewer =
        "---\nname: reviewer\ndescription: Reviews code.\ntools: Read, Grep\n---\nYou are the strict reviewer.\n";
    std::fs::write(folder.join("reviewer.md"), reviewer).unwrap();
    std::fs::write(folder.join("bad.md"), "no head").unwrap();
    let server = stage.serve();
    let listed = get(server.address, "/agent").expect(200);
    let modes: Vec<_> = listed.as_array().unwrap().iter().map(|agent| [&agent["name"], &agent["mode"]]).collect();
    for known in [["build", "primary"], ["explore", "subagent"], ["general", "subagent"], ["reviewer", "subagent"]] {
        assert!(modes.contains(&[&json!(known[0]), &json!(known[1])]), "{modes:?}");
    }
    let mut talk = Talk::begin(server.address);
    for turn in 1..=2 {
        talk.prompt(if turn == 1 { "Split it." } else { "And?" });
        talk.until_type("turn_ended");
        if turn == 1 {
            assert_eq!(talk.ended("task", "Review it.")["status"], "completed");
            stage.provider.requests().iter().for_each(|request| assert_eq!(request.refused, None));
        }
    }
    let notices = talk.told("noticed");
    assert_eq!(notices.len(), 1, "a bad file is noticed once: {notices:?}");
    assert!(notices[0]["description"].as_str().unwrap().contains(".claude/agents/bad.md"), "{notices:?}");
    let requests = stage.provider.requests();
    let of_child: Vec<String> = requests.iter().map(|request| request.body.to_string()).collect();
    let of_child: Vec<_> = of_child.iter().filter(|body| body.contains("You are the strict reviewer.")).collect();
    assert_eq!(of_child.len(), 2);
    assert!(of_child[1].contains("There is no tool `bash`. There are: read, grep."), "{}", of_child[1]);
    assert!(requests[0].body.to_string().contains("- reviewer: Reviews code."));
    assert!(!stage.house.workspace().join("never.txt").exists());
}

#[test]
fn a_subtask_in_a_prompt_is_done_before_the_model_is_asked() {
    let script = Script::of([
        Answer::text("There is a program.")
            .when(When { system: Some("You are a subagent".to_owned()), ..When::default() }),
        Answer::text("So there is a program."),
    ]);
    let stage = Stage::set(Wire::Anthropic, script);
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    let part = json!({ "type": "subtask", "prompt": "Look around.", "description": "A look", "agent": "explore" });
    let path = format!("/session/{}/message", talk.session);
    post(server.address, &path, &json!({ "parts": [part] })).expect(200);
    talk.until_type("turn_ended");
    assert_eq!(talk.said(), "So there is a program.");
    let call = talk.ended("task", "Look around.");
    assert_eq!(call["output"]["metadata"]["sessionId"], children(server.address, &talk.session)[0]["id"]);
    let last = stage.provider.requests().last().unwrap().body.to_string();
    assert!(last.contains("There is a program.") && last.contains("The subagent `explore` was given this"), "{last}");
    let messages = get(server.address, &path).expect(200);
    let shown = &messages[0]["parts"][0];
    assert_eq!((&shown["type"], &shown["agent"], &shown["prompt"]), (&part["type"], &part["agent"], &part["prompt"]));
}

#[test]
fn onyx_clients_prompt_a_subagent_by_its_parent() {
    let script = Script::of([
        to("Split it.", Answer::beats([Beat::Calls(vec![task("Look", "explore", "Look.")])])),
        to("Look.", Answer::text("I looked.")),
        Answer::text("It looked."),
        to("Look again.", Answer::text("I looked again.")),
    ]);
    let stage = Stage::set(Wire::OpenAi, script);
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    let other = Talk::begin(server.address);
    talk.prompt("Split it.");
    talk.until_type("turn_ended");
    let child = child(server.address, &talk.session, "Look");
    let to_child = |parent: &str, child: &str, body: &Value| {
        post(server.address, &format!("/api/build/sessions/{parent}/subagents/{child}/send-message"), body)
    };
    let content = json!({ "content": "Look again." });
    to_child(&other.session, &child, &content).expect(404);
    to_child(&talk.session, &other.session, &content).expect(404);
    to_child(&talk.session, &child, &json!({ "content": "Look.", "model": "x" })).expect(400);
    let told = String::from_utf8(to_child(&talk.session, &child, &content).body).unwrap();
    let packets: Vec<Value> = told
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let said: Vec<&Value> = packets.iter().filter(|packet| packet["type"] == "agent_message_chunk").collect();
    let words: String = said.iter().map(|packet| packet["content"]["text"].as_str().unwrap()).collect();
    assert_eq!(words, "I looked again.", "{told}");
    let (of, meta) = (json!([child, talk.session]), &said[0]["_meta"]);
    assert_eq!(json!([meta["sessionId"], meta["parentSessionId"]]), of, "{told}");
    assert_eq!(packets.last().unwrap()["type"], "prompt_response", "{told}");
}

/// Whoever pays for the parent pays for them.
#[test]
fn what_subagents_use_is_counted_in_their_parent_and_once() {
    let script = Script::of([
        to(
            "Split it.",
            Answer::beats([Beat::Calls(vec![task("One", "explore", "First."), task("Two", "general", "Second.")])]),
        ),
        to("First.", Answer::call("list", json!({}))),
        to("First.", Answer::text("Nothing is there.")),
        to("Second.", Answer::call("list", json!({}))),
        to("Second.", Answer::status(400)),
        Answer::text("One of them failed."),
        Answer::text("That is all."),
    ]);
    let mut script = script;
    let usage = Some(Counts { input: 100, output: 10, ..Counts::default() });
    script.answers.iter_mut().for_each(|answer| answer.usage = usage);
    let stage = Stage::set(Wire::OpenAi, script);
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    for (prompt, answered) in [("Split it.", 5), ("And?", 6)] {
        talk.prompt(prompt);
        assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
        let shown = get(server.address, &format!("/v1/sessions/{}", talk.session)).expect(200);
        assert_eq!(shown["tokens"], json!({ "input": 100 * answered, "output": 10 * answered }), "{shown}");
        assert_eq!(shown["cost"]["amount"], json!(f64::from(200 * answered) / 1e6), "{shown}");
    }
    let spent: Vec<f64> = talk.told("turn_ended").iter().map(|ended| ended["cost"].as_f64().unwrap()).collect();
    assert_eq!(spent, [0.001, 0.0002], "a turn has cost what its subagents have");
    let listed = get(server.address, "/v1/sessions").expect(200);
    let sum: u64 =
        listed["sessions"].as_array().unwrap().iter().map(|one| one["tokens"]["input"].as_u64().unwrap()).sum();
    assert_eq!(sum, 600, "whoever sums the list counts nothing twice: {listed}");
    let own: Vec<Value> =
        children(server.address, &talk.session).iter().map(|child| child["tokens"]["input"].clone()).collect();
    assert_eq!(own, [json!(200), json!(100)], "each knows its own");
}

/// One at a time, so that the facts come in one order.
#[test]
fn a_run_with_two_subagents_is_told_in_every_dialect() {
    let script = Script::of([
        to(
            "Split it.",
            Answer::beats([
                Beat::Text("I split it.".to_owned()),
                Beat::Calls(vec![task("Make a file", "general", "Make it."), task("Look around", "explore", "Look.")]),
            ]),
        ),
        to("Make it.", Answer::call("bash", touch("made.txt"))),
        to("Make it.", Answer::text("It is made.")),
        to("Look.", Answer::call("read", json!({ "filePath": "README.md" }))),
        to("Look.", Answer::text("It is a program that greets.")),
        Answer::text("Both are done."),
    ]);
    let mut script = script;
    // What the tools are called is sent with every request, and is nothing to count on.
    let usage = Some(Counts { input: 100, output: 10, ..Counts::default() });
    script.answers.iter_mut().for_each(|answer| answer.usage = usage);
    let stage = Stage::with(Wire::OpenAi, script, "[limits]\nsubagents = 1\n");
    stage.furnish();
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Split it.");
    let asked = talk.until_type("permission_asked");
    talk.answer(&asked, &json!({ "option": "once" }));
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    let workspace = stage.house.workspace().canonicalize().unwrap();
    let mut normal = Normal::default().saying(workspace.to_str().unwrap(), "/work/greetings");
    let told = normal.facts(&talk.facts);
    golden(&stage.house, "native-family", &told);
    for (title, name) in [("Make a file", "native-family-makes"), ("Look around", "native-family-looks")] {
        let mut child = Talk::take_up(server.address, child(server.address, &talk.session, title));
        child.until_type("turn_ended");
        golden(&stage.house, name, &normal.facts(&child.facts));
    }
}

/// Whoever may call one that only looks gets no other one by its name; and what a model writes is no command.
#[test]
fn one_that_is_taken_up_again_stays_of_its_kind_and_its_prompt_is_as_it_was_written() {
    let script = Script::of([
        to("Split it.", Answer::beats([Beat::Calls(vec![task("Work", "general", "/deploy now")])])),
        to("/deploy now", Answer::text("Done so far.")),
        Answer::text("It began."),
    ]);
    let stage = Stage::set(Wire::OpenAi, script);
    let folder = stage.house.workspace().join(".tolka/commands");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("deploy.md"), "Deploy everything, $ARGUMENTS.\n").unwrap();
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Split it.");
    talk.until_type("turn_ended");
    let sent = |words: &str| stage.provider.requests().iter().any(|request| request.body.to_string().contains(words));
    assert!(sent("/deploy now") && !sent("Deploy everything"));

    let known = child(server.address, &talk.session, "Work");
    let again = |kind: &str, prompt: &str| {
        let input = json!({ "description": "Again", "prompt": prompt, "subagent_type": kind, "task_id": known });
        Answer::beats([Beat::Calls(vec![Call::new("task", input)])])
    };
    stage.provider.add([
        to("More.", again("explore", "Look.")),
        Answer::text("It may not."),
        to("Once more.", again("general", "Go on.")),
        to("Go on.", Answer::text("It went on.")),
        Answer::text("It may."),
    ]);
    talk.prompt("More.");
    talk.until_type("turn_ended");
    let refused = talk.ended("task", "Look.");
    assert_eq!(refused["status"], "failed");
    assert!(refused["error"].as_str().unwrap().contains("is of the kind `general`"), "{refused}");
    talk.prompt("Once more.");
    talk.until_type("turn_ended");
    assert_eq!(talk.ended("task", "Go on.")["status"], "completed");
    assert_eq!(children(server.address, &talk.session).len(), 1);
}
