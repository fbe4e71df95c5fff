//! The demo as people meet it: no model, no key, no configuration.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli::{code, stderr, stdout};
use crate::http::{get, new_session, post, prompt};
use crate::server::{House, Server, send, until};
use crate::sse::Stream;

/// What one turn told, as facts; whatever it asks is answered with `answer`.
fn turn(server: &Server, session: &str, answer: &Value) -> Vec<Value> {
    let listed = get(server.address, &format!("/v1/sessions/{session}/events?format=json&limit=1000")).expect(200);
    let after = listed["position"].as_str().unwrap().to_owned();
    let mut facts = Stream::open(server.address, &format!("/v1/sessions/{session}/events"), Some(&after)).unwrap();
    prompt(server.address, session);
    let mut told = Vec::new();
    loop {
        let fact = facts.find("a fact", |_| true);
        if fact["type"] == "permission_asked" {
            let request = fact["data"]["request"].as_str().unwrap();
            assert_eq!(post(server.address, &format!("/v1/sessions/{session}/answers/{request}"), answer).status, 204);
        }
        let is_over = fact["type"] == "turn_ended";
        told.push(fact);
        if is_over {
            return told;
        }
    }
}

fn kinds<'a>(told: &'a [Value], kind: &str) -> Vec<&'a Value> {
    told.iter().filter(|fact| fact["type"] == kind).map(|fact| &fact["data"]).collect()
}

/// Name and last status of each call, in the order in which they began.
fn calls(told: &[Value]) -> Vec<(String, String)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for change in kinds(told, "tool_changed") {
        let id = change["call"].as_str().unwrap();
        let at = calls.iter().position(|(known, ..)| known == id).unwrap_or_else(|| {
            calls.push((id.to_owned(), String::new(), String::new()));
            calls.len() - 1
        });
        if let Some(name) = change["name"].as_str() {
            calls[at].1 = name.to_owned();
        }
        if let Some(status) = change["status"].as_str() {
            calls[at].2 = status.to_owned();
        }
    }
    calls.into_iter().map(|(_, name, status)| (name, status)).collect()
}

fn text(told: &[Value]) -> String {
    kinds(told, "text_appended").iter().map(|data| data["text"].as_str().unwrap()).collect()
}

const APP: &str = include_str!("../../crates/agent/src/native/demo/todo.html");

#[test]
fn without_a_model_the_demo_answers_and_says_how_to_get_one() {
    let house = House::new();
    let mut command = house.command(&["serve", "--port", "0"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let address = first.trim_end().strip_prefix("http://").unwrap().parse().unwrap();
    let served = get(address, "/path").expect(200);
    let own = house.data().join("demo").canonicalize().unwrap();
    assert_eq!(served["directory"], own.to_str().unwrap(), "no folder of the person's own");
    let said: Vec<String> = BufReader::new(child.stderr.take().unwrap()).lines().take(3).map(Result::unwrap).collect();
    assert!(said[0].contains("no model can be used, so the demo answers: a fixed script"), "{said:?}");
    assert!(said[1].contains("`tolka models`") && said[1].contains("OPENAI_API_KEY"), "{said:?}");
    let level = said[2].strip_prefix("tolka: sandbox: ").unwrap().split(';').next().unwrap();
    let sandbox = &get(address, "/v1").expect(200)["sandbox"];
    assert_eq!(sandbox["level"], level, "the API tells what was said at the start");
    assert!(!sandbox["cannot_stop"].as_array().unwrap().is_empty(), "{sandbox}");
    let session = get(address, &format!("/v1/sessions/{}", new_session(address))).expect(200);
    let session = session.get("session").unwrap_or(&session);
    assert_eq!(session["agent"], "demo", "{session}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(std::fs::read_dir(house.workspace()).unwrap().next().is_none(), "nothing is left where it was started");
}

#[test]
fn everything_appears_and_the_app_is_there() {
    let house = House::new();
    let workspace = house.workspace();
    let server = house.serve(&["--agent", "demo", "--pace", "max", "--workspace", workspace.to_str().unwrap()]);
    let session = new_session(server.address);
    let told = turn(&server, &session, &json!({ "option": "once" }));
    assert_eq!(told.last().unwrap()["data"]["stop"], "end_turn", "{told:#?}");
    assert!(text(&told).starts_with("This is Tolka's demo: a fixed script, not a model"), "{}", text(&told));
    let calls = calls(&told);
    let called: Vec<(&str, &str)> = calls.iter().map(|(name, status)| (name.as_str(), status.as_str())).collect();
    let names: Vec<&str> = called.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "todowrite",
            "glob",
            "grep",
            "write",
            "read",
            "todowrite",
            "edit",
            "todowrite",
            "bash",
            "bash",
            "artifact",
            "todowrite"
        ]
    );
    assert!(called.iter().filter(|(name, _)| *name != "bash").all(|(_, status)| *status == "completed"), "{called:?}");
    for kind in [
        "thought_appended",
        "plan_set",
        "input_appended",
        "output_appended",
        "file_changed",
        "permission_asked",
        "artifact_saved",
        "step_ended",
    ] {
        assert!(!kinds(&told, kind).is_empty(), "no {kind}");
    }
    let asked = kinds(&told, "permission_asked");
    assert_eq!((asked.len(), &asked[0]["permission"]), (1, &json!("bash")));
    let plan = kinds(&told, "plan_set");
    assert!(plan.last().unwrap()["entries"].as_array().unwrap().iter().all(|entry| entry["status"] == "completed"));
    assert_eq!(std::fs::read_to_string(workspace.join("todo/index.html")).unwrap(), APP);
    let artifact = kinds(&told, "artifact_saved")[0];
    assert_eq!((&artifact["kind"], &artifact["name"]), (&json!("web_app"), &json!("Things to do")));

    // Once more, in the same session and in another one: what is there is found, and what was allowed always is not asked.
    let again = turn(&server, &session, &json!({ "option": "always" }));
    assert!(text(&again).contains("another colour, plum"), "{}", text(&again));
    let other = turn(&server, &new_session(server.address), &json!({ "option": "reject" }));
    assert!(text(&other).contains("another colour, blue"), "{}", text(&other));
    assert!(kinds(&other, "permission_asked").is_empty());
    let page = std::fs::read_to_string(workspace.join("todo/index.html")).unwrap();
    assert_eq!(page, APP.replace("#0f766e", "#1d4ed8"));

    let listed = stdout(&house.run(&["permissions", "list"]));
    assert!(
        listed.contains("bash") && listed.contains("wc") && listed.contains(workspace.to_str().unwrap()),
        "{listed}"
    );
    let id = listed.split_whitespace().next().unwrap();
    let told = get(server.address, "/v1/permissions").expect(200);
    assert_eq!(told["grants"][0]["id"], id, "the API tells what the command does: {told}");
    assert!(!told["rules"].as_array().unwrap().is_empty(), "{told}");
    assert_eq!(code(&house.run(&["permissions", "revoke", id])), 0);
    assert_eq!(stdout(&house.run(&["permissions", "list"])), "nothing was allowed always\n");
    let asked = turn(&server, &session, &json!({ "option": "once" }));
    assert_eq!(kinds(&asked, "permission_asked").len(), 1, "what was revoked is asked again, by the server that runs");
}

#[test]
fn a_refusal_with_a_reason_is_heard_and_one_without_ends_the_turn() {
    let house = House::new();
    let server = house.serve(&["--agent", "demo", "--pace", "max"]);
    let session = new_session(server.address);
    let told = turn(&server, &session, &json!({ "option": "reject", "reason": "not on my machine" }));
    assert!(text(&told).contains("All right, not that command."), "{}", text(&told));
    assert!(text(&told).contains("not on my machine") && text(&told).contains("Done:"), "{}", text(&told));
    let told = turn(&server, &session, &json!({ "option": "reject" }));
    assert!(!text(&told).contains("Done:"), "{}", text(&told));
    assert_eq!(kinds(&told, "turn_ended").len(), 1);
}

#[test]
fn two_sessions_at_once_do_not_harm_each_other() {
    let house = House::new();
    let server = house.serve(&["--agent", "demo", "--pace", "max"]);
    let sessions = [new_session(server.address), new_session(server.address), new_session(server.address)];
    let turns: Vec<Vec<Value>> = std::thread::scope(|scope| {
        let turns: Vec<_> = sessions
            .iter()
            .map(|session| scope.spawn(|| turn(&server, session, &json!({ "option": "once" }))))
            .collect();
        turns.into_iter().map(|turn| turn.join().unwrap()).collect()
    });
    for told in &turns {
        assert_eq!(told.last().unwrap()["data"]["stop"], "end_turn");
        assert!(text(told).contains("Done:"), "{}", text(told));
    }
    let page = std::fs::read_to_string(house.data().join("demo/todo/index.html")).unwrap();
    assert!(page.contains("Made by Tolka's demo") && page.ends_with("</html>\n"), "a whole page");
}

#[test]
fn a_run_without_a_server_plays_it_in_this_terminal() {
    let house = House::new();
    let run = house.run(&["run", "hello", "--pace", "max"]);
    assert_eq!(code(&run), 3, "{}{}", stdout(&run), stderr(&run));
    let printed = stdout(&run);
    assert!(printed.contains("a fixed script, not a model") && printed.contains("Done:"), "{printed}");
    let refused = "\n? wc -c todo/index.html\n→ Reject, by `tolka run`: nobody is at this terminal to answer\n";
    assert!(printed.contains(refused), "nobody is there to allow the command: {printed}");
    assert!(printed.contains("\nplan 4 of 4 done\n") && !printed.contains("todowrite"), "{printed}");
    let said = stderr(&run);
    assert!(said.starts_with("tolka: no model can be used, so the demo answers"), "{said}");
    assert_eq!(said.lines().count(), 2, "that, and the session: {said}");
    assert!(house.data().join("demo/todo/index.html").exists());
    let planned = house.run(&["run", "hello", "--agent", "demo", "--pace", "max", "--mode", "plan"]);
    assert!(!stderr(&planned).contains("no model"), "who asks for the demo is told nothing: {}", stderr(&planned));
    assert!(stdout(&planned).contains("In this mode I change nothing"), "{}", stdout(&planned));
}

/// It writes files; a folder that was named was named for somebody who does what is asked.
#[test]
fn the_demo_does_not_write_into_a_folder_that_was_not_meant_for_it() {
    let house = House::new();
    let project = house.workspace();
    let project = project.to_str().unwrap();
    for command in [&["run", "hi", "--pace", "max"] as &[_], &["serve", "--port", "0"]] {
        let refused = house.run(&[command, &["--workspace", project]].concat());
        assert_eq!((code(&refused), stdout(&refused).as_str()), (1, ""), "{command:?}");
        let said = stderr(&refused);
        assert!(said.contains("the demo does not write into") && said.contains("--agent demo"), "{said}");
    }
    assert!(std::fs::read_dir(house.workspace()).unwrap().next().is_none(), "nothing was written");
    let meant =
        house.run(&["run", "hi", "--pace", "max", "--agent", "demo", "--workspace", project, "--allow", "bash"]);
    assert_eq!(code(&meant), 0, "{}", stderr(&meant));
    assert!(house.workspace().join("todo/index.html").exists());
}

/// A key that is set is somebody's wish for a model: a script is no answer to it.
#[test]
fn the_demo_does_not_answer_where_a_provider_was_set_up() {
    let house = House::new();
    let file = house.data().with_file_name("tolka.toml");
    let work = "[providers.work]\nwire = \"openai\"\nbase_url = \"https://work.invalid/v1\"\n";
    std::fs::write(&file, work).unwrap();
    let dead = [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")];
    let configured = [("TOLKA_CONFIG", file.to_str().unwrap())];
    for (variables, why) in [
        (&dead as &[_], "no model can be used (openai: nothing answers at http://127.0.0.1:9)"),
        (&configured, "name a model: --model work/<id>, TOLKA_MODEL=work/<id>, or model = \"work/<id>\" in tolka.toml"),
    ] {
        for command in [&["run", "hi"] as &[_], &["serve", "--port", "0"], &["run", "hi", "--agent", "native"]] {
            let refused = house.command(command).envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap();
            assert_eq!((code(&refused), stdout(&refused).as_str()), (1, ""), "{command:?}");
            assert!(stderr(&refused).contains(why), "{command:?}: {}", stderr(&refused));
        }
        let meant = ["run", "hi", "--agent", "demo", "--pace", "max", "--allow", "bash:wc *"];
        let meant = house.command(&meant).envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(code(&meant), 0, "{}", stderr(&meant));
    }
}

#[test]
fn who_refuses_at_the_terminal_is_asked_why() {
    for (typed, told) in [
        ("3\nnot on my machine\n", "All right, not that command."),
        ("3\n\n", "Error: The user rejected permission to use this specific tool call.\n"),
        ("9\n1\n", "→ Allow once\n✓ bash Measure the finished file\n"),
    ] {
        let house = House::new();
        let (mut keyboard, terminal) = terminal();
        let mut command = house.command(&["run", "hello", "--agent", "demo", "--pace", "max"]);
        let child = command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A terminal keeps what is typed ahead, and gives it line by line.
        keyboard.write_all(typed.as_bytes()).unwrap();
        let run = child.wait_with_output().unwrap();
        assert_eq!(code(&run), 0, "{}", stderr(&run));
        let printed = stdout(&run);
        assert!(printed.contains(told), "{typed:?}: {printed}");
        let is_heard = printed.contains("not on my machine");
        assert_eq!(
            (is_heard, printed.contains("  why? ")),
            (typed.contains("not on"), typed.starts_with('3')),
            "{printed}"
        );
    }
}

/// What is written to the first is typed at the second.
pub(crate) fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
    let not_ours = i32::try_from(OpenptFlags::NOCTTY.bits()).unwrap();
    let terminal = File::options().read(true).write(true).custom_flags(not_ours).open(name).unwrap();
    (File::from(keyboard), terminal)
}

#[test]
fn a_run_beside_a_server_of_the_demo_works_in_the_demos_folder() {
    let house = House::new();
    let _server = house.serve(&["--pace", "max"]);
    let run = house.run(&["run", "hello"]);
    assert_eq!(code(&run), 3, "{}{}", stdout(&run), stderr(&run));
    assert!(house.data().join("demo/todo/index.html").exists());
}

/// Ten seconds after it asked: nothing waits for ever for somebody who is not there.
#[test]
fn when_nobody_is_there_it_goes_on_by_itself() {
    let house = House::new();
    let server = house.serve(&["--agent", "demo", "--pace", "max"]);
    let session = new_session(server.address);
    prompt(server.address, &session);
    let path = format!("/v1/sessions/{session}/events?format=json&limit=1000");
    let told = until("the end of the turn", || {
        let page = get(server.address, &path).expect(200);
        let told: Vec<Value> = page["events"].as_array().unwrap().iter().map(|event| event["data"].clone()).collect();
        (!kinds(&told, "turn_ended").is_empty()).then_some(told)
    });
    let (asked, answered) = (kinds(&told, "permission_asked"), kinds(&told, "permission_answered"));
    assert_eq!((asked.len(), answered.len(), &answered[0]["option"]), (1, 1, &json!("once")), "{answered:?}");
    let at = |kind: &str| told.iter().find(|fact| fact["type"] == kind).unwrap()["time"].as_u64().unwrap();
    let waited = (at("permission_answered") - at("permission_asked")) as f64 / 1e6;
    assert!((9.0..60.0).contains(&waited), "{waited} s");
    assert!(text(&told).contains("Done:"), "{}", text(&told));
}

#[test]
fn an_interrupt_cancels_the_turn_and_leaves_nothing_open() {
    let house = House::new();
    let mut command = house.command(&["run", "hello", "--agent", "demo"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(printed.any(|line| line.starts_with("plan 0 of 4 done: ")), "it begins");
    send(child.id(), Signal::INT);
    assert_eq!(printed.last().unwrap(), "cancelled");
    assert_eq!(child.wait().unwrap().code(), Some(4));
    let sessions = stdout(&house.run(&["sessions"]));
    assert!(sessions.contains("  idle  "), "{sessions}");
}
