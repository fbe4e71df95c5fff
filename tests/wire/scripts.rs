//! `tolka run` for scripts: JSON lines, exit codes, stdin, and permissions that nobody is there to give.

use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use tolka_scripted::{Answer, Beat, Script, Scripted, When};

use crate::cli::{code, stderr, stdout};
use crate::server::{House, send, until};

/// A house whose agent plays `answers`.
struct Bench {
    house: House,
    provider: Scripted,
}

impl Bench {
    fn playing(answers: impl IntoIterator<Item = Answer>) -> Self {
        let (house, provider) = (House::new(), Scripted::start(Script::of(answers)).unwrap());
        let text = format!("[providers.scripted]\nwire = \"openai\"\nbase_url = \"{}\"\n", provider.openai_url());
        std::fs::write(house.data().with_file_name("tolka.toml"), text).unwrap();
        Bench { house, provider }
    }

    fn args(&self, args: &[&str]) -> Vec<String> {
        let config = self.house.data().with_file_name("tolka.toml").to_str().unwrap().to_owned();
        let usual = ["--config", &config, "--model", "scripted/story"].map(str::to_owned);
        ["run".to_owned()].into_iter().chain(args.iter().map(|arg| (*arg).to_owned())).chain(usual).collect()
    }

    fn run(&self, args: &[&str]) -> Output {
        let args = self.args(args);
        self.house.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn with_stdin(&self, args: &[&str], stdin: &str) -> Output {
        let args = self.args(args);
        let mut command = self.house.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// The last words of the person that the model was sent.
    fn heard(&self) -> String {
        let requests = self.provider.requests();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
        let content = &messages.iter().rfind(|message| message["role"] == "user").unwrap()["content"];
        content.as_str().map_or_else(|| content[0]["text"].as_str().unwrap().to_owned(), str::to_owned)
    }
}

/// The facts, and the result.
fn lines(run: &Output) -> (Vec<Value>, Value) {
    let printed = stdout(run);
    let mut lines: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.pop().unwrap_or_else(|| panic!("{}", stderr(run)));
    (lines, last)
}

#[test]
fn a_run_in_json_is_its_facts_and_a_result() {
    let bench = Bench::playing([Answer::text("Forty-two.")]);
    let run = bench.run(&["--json", "what", "is", "it?"]);
    let (facts, result) = lines(&run);
    assert_eq!((code(&run), stderr(&run).as_str()), (0, ""));
    assert_eq!(bench.heard(), "what is it?");
    let kinds: Vec<&str> = facts.iter().map(|fact| fact["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"turn_started") && kinds.last() == Some(&"turn_ended"), "{kinds:?}");
    assert_eq!(
        (&result["type"], &result["text"], &result["exit"]),
        (&json!("result"), &json!("Forty-two."), &json!(0))
    );
    assert_eq!((&result["stop"], &result["refused"], &result["error"]), (&json!("end_turn"), &json!([]), &Value::Null));
    assert_eq!(result["session"], facts[0]["session"]);
}

#[test]
fn what_nobody_can_allow_is_refused_at_once_and_told_by_the_exit_code() {
    let answers =
        || [Answer::call("bash", json!({ "command": "touch it", "description": "Touches" })), Answer::text("Tried.")];
    let bench = Bench::playing(answers());
    let run = bench.run(&["--json", "touch it"]);
    let (facts, result) = lines(&run);
    assert_eq!((code(&run), &result["exit"], &result["text"]), (3, &json!(3), &json!("Tried.")));
    assert_eq!(result["refused"][0]["permission"], "bash");
    assert!(facts.iter().any(|fact| fact["type"] == "permission_answered" && fact["data"]["option"] == "reject"));
    assert!(!bench.house.workspace().join("it").exists());

    for allow in ["bash", "bash:touch *", "*"] {
        let bench = Bench::playing(answers());
        let run = bench.run(&["touch it", "--allow", allow]);
        assert_eq!(code(&run), 0, "{allow}: {}{}", stdout(&run), stderr(&run));
        assert!(stdout(&run).contains("→ Allow once, by --allow"), "{}", stdout(&run));
        assert!(bench.house.workspace().join("it").exists());
    }
    let bench = Bench::playing(answers());
    assert_eq!(code(&bench.run(&["touch it", "--allow", "bash:rm *", "--allow", "edit"])), 3);
    assert_eq!(code(&bench.run(&["x", "--allow", "bash:"])), 2);
}

/// What a subagent asks is asked of whoever runs its parent.
#[test]
fn what_a_subagent_wants_is_decided_in_the_same_way() {
    let task = json!({ "description": "Touch", "prompt": "Touch it.", "subagent_type": "general" });
    let touch = json!({ "command": "touch it", "description": "Touches" });
    for (allow, expected) in [(&["--json"] as &[&str], 3), (&["--json", "--allow", "bash:touch *"], 0)] {
        let of_child = || When { user: Some("Touch it.".to_owned()), ..When::default() };
        let bench = Bench::playing([
            Answer::call("task", task.clone()),
            Answer::call("bash", touch.clone()).when(of_child()),
            Answer::text("Tried.").when(of_child()),
            Answer::text("The subagent tried."),
        ]);
        let run = bench.run(&[&["have it done"], allow].concat());
        let (facts, result) = lines(&run);
        assert_eq!((code(&run), &result["text"]), (expected, &json!("The subagent tried.")), "{}", stderr(&run));
        let refused: Vec<_> = result["refused"].as_array().unwrap().iter().map(|one| &one["permission"]).collect();
        assert_eq!(refused, vec![&json!("bash"); usize::from(expected == 3)]);
        assert_eq!(bench.house.workspace().join("it").exists(), expected == 0);
        assert!(facts.iter().all(|fact| fact["session"] == result["session"]), "no other session's facts are mixed in");
    }
}

#[test]
fn a_prompt_comes_from_words_and_from_stdin() {
    let bench = Bench::playing([Answer::text("Yes.").for_ever()]);
    for (args, stdin, heard) in [
        (&["-"] as &[_], "from stdin", "from stdin"),
        (&[], "piped", "piped"),
        (&["review", "this:", "-"], "a diff", "review this:\n\na diff"),
        (&["only", "words"], "not read", "only words"),
    ] {
        let run = bench.with_stdin(args, stdin);
        assert_eq!((code(&run), bench.heard().as_str()), (0, heard), "{}", stderr(&run));
    }
    let nothing = bench.run(&[]);
    assert_eq!((code(&nothing), stderr(&nothing).contains("the prompt is empty")), (2, true), "{}", stderr(&nothing));
}

#[test]
fn a_run_goes_on_with_the_latest_session_of_the_folder() {
    let bench = Bench::playing([Answer::text("Yes.").for_ever()]);
    let none = bench.run(&["--continue", "go on"]);
    assert_eq!((code(&none), stderr(&none).contains("no session of this folder")), (1, true), "{}", stderr(&none));
    let (_, first) = lines(&bench.run(&["--json", "first"]));
    let (_, second) = lines(&bench.run(&["--json", "second"]));
    assert_ne!(first["session"], second["session"]);
    let (_, third) = lines(&bench.run(&["--json", "--continue", "third"]));
    assert_eq!(third["session"], second["session"]);
}

#[test]
fn every_end_has_its_exit_code() {
    let bench = Bench::playing([Answer::status(401)]);
    let run = bench.run(&["--json", "x"]);
    let (_, result) = lines(&run);
    assert_eq!((code(&run), &result["exit"], &result["stop"]), (1, &json!(1), &json!("failed")));
    assert!(result["error"].as_str().is_some_and(|error| !error.is_empty()), "{result}");

    let bench = Bench::playing([Answer::call("list", json!({})).for_ever()]);
    let config = bench.house.data().with_file_name("tolka.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(config, format!("{text}[limits]\nsteps = 2\n")).unwrap();
    let run = bench.run(&["--json", "x"]);
    let (_, result) = lines(&run);
    assert_eq!((code(&run), &result["stop"]), (5, &json!("max_turn_requests")), "{result}");

    let bench = Bench::playing([Answer::beats([Beat::Text("Wait".to_owned()), Beat::Gate("never".to_owned())])]);
    let args = bench.args(&["--json", "x"]);
    let mut command = bench.house.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(printed.any(|line| line.contains("text_appended")), "it begins");
    send(child.id(), Signal::INT);
    let result: Value = serde_json::from_str(&printed.last().unwrap()).unwrap();
    assert_eq!((&result["exit"], &result["stop"]), (&json!(4), &json!("cancelled")));
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

/// The server is stopped in the middle of the turn, so that no cancel can end it.
#[test]
fn who_presses_ctrl_c_again_leaves_with_130_whatever_the_server_does() {
    let bench = Bench::playing([Answer::beats([Beat::Text("Wait".to_owned()), Beat::Gate("never".to_owned())])]);
    let config = bench.house.data().with_file_name("tolka.toml").to_str().unwrap().to_owned();
    let server = bench.house.serve(&["--config", &config, "--model", "scripted/story"]);
    let mut command = bench.house.command(&["run", "--json", "x"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(printed.any(|line| line.contains("text_appended")), "it begins");
    send(server.pid(), Signal::STOP);
    let status = until("the run to end", || {
        send(child.id(), Signal::INT);
        child.try_wait().unwrap()
    });
    send(server.pid(), Signal::CONT);
    assert_eq!(status.code(), Some(130));
    assert!(!printed.any(|line| line.contains("turn_ended")));
}

#[test]
fn a_run_beside_a_server_decides_in_the_same_way() {
    let bench = Bench::playing([
        Answer::call("bash", json!({ "command": "touch it", "description": "Touches" })),
        Answer::text("Done."),
    ]);
    let config = bench.house.data().with_file_name("tolka.toml").to_str().unwrap().to_owned();
    let _server = bench.house.serve(&["--config", &config, "--model", "scripted/story"]);
    let run = bench.house.run(&["run", "--json", "touch it", "--allow", "bash:touch *"]);
    let (_, result) = lines(&run);
    assert_eq!((code(&run), &result["text"]), (0, &json!("Done.")), "{}", stderr(&run));
    assert!(bench.house.workspace().join("it").exists());
}
