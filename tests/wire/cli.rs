//! The command line as a shell sees it: what is printed, and the exit code.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tolka_dialect::Dialect;
use tolka_scripted::{Answer, Beat, Cut, Ending, Script, Scripted};

use crate::recording::short_turn;
use crate::server::{House, recorded, tolka};

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// The session that a run names at its end.
fn session(output: &Output) -> String {
    let named = stderr(output);
    let line = named.lines().find_map(|line| line.strip_prefix("session ")).unwrap_or_else(|| panic!("{named}"));
    line.to_owned()
}

#[test]
fn a_run_prints_the_turn_and_ends_as_it_did() {
    let house = House::new();
    let well = house.run(&["run", "hello", "--agent", &house.plays(&short_turn()), "--pace", "max"]);
    assert_eq!((code(&well), stdout(&well).as_str()), (0, "Hello.\n"), "{}", stderr(&well));

    let failed = house.run(&["run", "hello", "--agent", &recorded("copilot"), "--pace", "max"]);
    assert_eq!(code(&failed), 1);
    assert!(stdout(&failed).contains("error: Authentication required"), "{}", stdout(&failed));

    let cancel = recorded("opencode-cancel");
    let first = house.run(&["run", "hello", "--agent", &cancel, "--pace", "max"]);
    assert_eq!(code(&first), 0, "{}", stderr(&first));
    let second = house.run(&["run", "on", "--session", &session(&first), "--agent", &cancel, "--pace", "max"]);
    assert_eq!(code(&second), 4, "{}", stderr(&second));
    assert!(stdout(&second).contains("cancelled"), "{}", stdout(&second));
}

#[test]
fn a_run_refuses_what_nobody_is_there_to_allow() {
    let house = House::new();
    let run = house.run(&["run", "hello", "--agent", &recorded("opencode-perm"), "--pace", "max"]);
    assert_eq!(code(&run), 3, "{}", stderr(&run));
    let printed = stdout(&run);
    assert!(printed.contains("→ Reject") && printed.contains("✗ bash"), "{printed}");
}

/// One prompt to a model that plays `answers`.
fn native_run(house: &House, answers: impl IntoIterator<Item = Answer>, limits: &str) -> Output {
    let provider = Scripted::start(Script::of(answers)).unwrap();
    let file = house.data().with_file_name("tolka.toml");
    let base = provider.openai_url();
    let config = format!("{limits}\n[providers.scripted]\nwire = \"openai\"\nbase_url = \"{base}\"\n");
    std::fs::write(&file, config).unwrap();
    house.run(&["run", "hello", "--config", file.to_str().unwrap(), "--model", "scripted/story"])
}

#[test]
fn a_run_that_stops_at_a_limit_says_which_and_does_not_end_well() {
    let house = House::new();
    let long = Answer { finish: Some(Ending::Length), ..Answer::text("And so on and") };
    let run = native_run(&house, [long], "");
    assert_eq!(code(&run), 5, "{}{}", stdout(&run), stderr(&run));
    assert!(stdout(&run).starts_with("And so on and\nstopped at the token limit"), "{}", stdout(&run));

    let looks = (0..3).map(|n| Answer::call("glob", json!({ "pattern": format!("{n}*") })));
    let run = native_run(&house, looks, "limits.steps = 2");
    assert_eq!(code(&run), 5, "{}{}", stdout(&run), stderr(&run));
    let told = "note: The turn took too many steps: A turn may ask the model 2 times. Send a prompt to go on.\nstopped at that limit\n";
    assert!(stdout(&run).ends_with(told), "{}", stdout(&run));
}

#[test]
fn a_run_tells_that_an_answer_was_cut_before_the_next_begins() {
    let house = House::new();
    let cut = Answer::beats([Beat::Text("Half an ans".to_owned()), Beat::Cut(Cut::Closed)]);
    let run = native_run(&house, [cut, Answer::text("A whole answer.")], "");
    assert_eq!(code(&run), 0, "{}{}", stdout(&run), stderr(&run));
    let printed = stdout(&run);
    let lines: Vec<&str> = printed.lines().collect();
    let ["Half an ans", note, "A whole answer."] = lines[..] else { panic!("{printed}") };
    assert!(note.starts_with("the answer was cut off; asking again in "), "{note}");
}

#[test]
fn a_run_reads_its_prompt_from_stdin_and_wants_one() {
    let house = House::new();
    let agent = house.plays(&short_turn());
    let prompted = |prompt: &str| {
        let mut command = house.command(&["run", "-", "--agent", &agent, "--pace", "max"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let well = prompted("say hello\nplease");
    assert_eq!(code(&well), 0, "{}", stderr(&well));
    let listed = stdout(&house.run(&["sessions"]));
    assert!(listed.contains("say hello"), "{listed}");
    let empty = prompted(" \n");
    assert_eq!(code(&empty), 2);
    assert!(stderr(&empty).contains("the prompt is empty"));
}

#[test]
fn a_run_beside_a_server_is_a_session_of_that_server() {
    let house = House::new();
    let agent = house.plays(&short_turn());
    let server = house.serve(&["--agent", &agent, "--pace", "max"]);
    let run = house.run(&["run", "hello", "--agent", &agent]);
    assert_eq!((code(&run), stdout(&run).as_str()), (0, "Hello.\n"), "{}", stderr(&run));
    let listed = crate::http::get(server.address, "/v1/sessions").expect(200);
    assert_eq!(listed["sessions"][0]["id"], session(&run));
    drop(server);

    let server = house.serve(&["--agent", &agent, "--token", "secret"]);
    let refused = house.run(&["run", "hello", "--agent", &agent]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("--token"), "{}", stderr(&refused));
    let listed = house.run(&["sessions", "--token", "secret", "--json"]);
    let listed: Value = serde_json::from_str(&stdout(&listed)).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    drop(server);
}

#[test]
fn sessions_are_listed_for_people_and_for_programs() {
    let house = House::new();
    let none = house.run(&["sessions"]);
    assert_eq!(code(&none), 0, "{}", stderr(&none));
    assert!(stdout(&none).contains("no sessions yet"));
    let run = house.run(&["run", "a title\nand more", "--agent", &house.plays(&short_turn()), "--pace", "max"]);
    let listed = stdout(&house.run(&["sessions"]));
    assert_eq!(listed, format!("{}  idle        1 turn   a title\n", session(&run)));
    let json: Value = serde_json::from_str(&stdout(&house.run(&["sessions", "--json"]))).unwrap();
    assert_eq!((&json["sessions"][0]["title"], &json["sessions"][0]["busy"]), (&"a title".into(), &false.into()));
}

/// `tolka replay … | head` is how people look at a stream.
#[test]
fn a_reader_that_goes_away_ends_a_command_quietly() {
    use std::io::Read;
    let house = House::new();
    let recording = house.plays(&short_turn()).replacen("replay:", "", 1);
    let mut child = house.command(&["replay", &recording, "--pace", "max"]);
    let mut child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[test]
fn tokens_are_made_listed_and_taken_back() {
    let house = House::new();
    let token = |args: &[&str]| house.run(&[&["token"], args].concat());
    assert_eq!(stdout(&token(&["list"])), "");
    let made = token(&["add", "phone", "--scope", "view,approve"]);
    let secret = stdout(&made).trim_end().to_owned();
    assert!(secret.starts_with("tolka_") && secret.len() == 54, "{secret}");
    assert_eq!(stdout(&token(&["list"])), "phone  view,approve\n");
    let file = house.data().join("tokens.json");
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&secret), "the secret itself is kept");
    assert_eq!(mode(&file) & 0o077, 0, "others can read the tokens");

    for (args, problem) in [
        (&["add", "phone"] as &[_], "exists already"),
        (&["revoke", "tablet"], "no token is called `tablet`"),
        (&["add", "x", "--scope", "root"], "no scope is called `root`"),
    ] {
        let refused = token(args);
        assert_ne!(code(&refused), 0, "{args:?}");
        assert!(stderr(&refused).contains(problem), "{args:?}: {}", stderr(&refused));
    }
    assert_eq!(code(&token(&["revoke", "phone"])), 0);
    assert_eq!(stdout(&token(&["list"])), "");
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode()
}

/// What a replay prints is what the golden streams show, but for ids, times and the words of the prompt.
#[test]
fn a_replay_prints_the_frames_of_a_dialect() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for dialect in Dialect::ALL.map(Dialect::name) {
        for recording in ["claude-rich", "codex-cancel", "copilot"] {
            let file = root.join(format!("tests/data/recordings/acp/{recording}.jsonl"));
            let args = ["replay", file.to_str().unwrap(), "--dialect", dialect, "--pace", "max"];
            let played = tolka().args(args).output().unwrap();
            assert_eq!(code(&played), 0, "{}", stderr(&played));
            let golden =
                std::fs::read_to_string(root.join(format!("tests/golden/{recording}.{dialect}.jsonl"))).unwrap();
            assert_eq!(kinds(&stdout(&played)), kinds(&golden), "{recording} in {dialect}");
        }
    }
}

/// Prompts are all queued at first here and one by one in the golden streams, so they are left out.
fn kinds(frames: &str) -> Vec<String> {
    let frames = frames.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_of_the_prompt = |frame: &Value| {
        let is_user = |value: &Value| value["role"] == "user";
        matches!(kind(frame), "prompt_queued" | "session.updated" | "user_message_chunk")
            || is_user(&frame["properties"]["info"])
    };
    let is_of_prompt_part = |frame: &Value| {
        let part = &frame["properties"]["part"];
        part["type"] == "text" && part["time"].is_null()
    };
    let told = frames.filter(|frame| !is_of_the_prompt(frame) && !is_of_prompt_part(frame));
    told.map(|frame| kind(&frame).to_owned()).collect()
}

/// ACP's messages have no type, but updates, requests and answers.
fn kind(frame: &Value) -> &str {
    let names = [&frame["type"], &frame["params"]["update"]["sessionUpdate"], &frame["method"]];
    names.into_iter().find_map(Value::as_str).unwrap_or("answer")
}

#[test]
fn mistakes_on_the_command_line_are_told() {
    let house = House::new();
    for (args, problem) in [
        (&["replay", "missing.jsonl"] as &[_], "missing.jsonl"),
        (&["replay", "x", "--dialect", "klingon"], "no dialect is called `klingon`"),
        (&["replay", "x", "--pace", "0"], "no pace"),
        (&["serve", "--agent", "clippy"], "no agent is called `clippy`"),
        (&["serve", "--workspace", "/does/not/exist"], "/does/not/exist"),
        (
            &["serve", "--agent", "native"],
            "the native agent needs a model, and none can be used; `tolka models` says why",
        ),
        (&["serve", "--model", "openai/gpt-5"], "the model openai/gpt-5 cannot be used: no OPENAI_API_KEY"),
        (&["serve", "--model", "gpt-5"], "a model is named provider/model"),
        (&["serve", "--model", "a/b", "--agent", "demo"], "--model a/b is for the agent `native`"),
        (&["serve", "--config", "missing.toml"], "missing.toml cannot be used: No such file"),
        (&["models", "--config", "missing.toml"], "missing.toml cannot be used: No such file"),
        (&["permissions", "revoke", "nothing"], "nothing that was allowed is called `nothing`"),
        (&["run", "x", "--session", "ses_none"], "Session not found"),
        (&["frobnicate"], "unrecognized subcommand"),
    ] {
        let refused = house.run(args);
        assert_ne!(code(&refused), 0, "{args:?}");
        assert!(stdout(&refused).is_empty(), "{args:?}: {}", stdout(&refused));
        assert!(stderr(&refused).contains(problem), "{args:?}: {}", stderr(&refused));
    }
}
