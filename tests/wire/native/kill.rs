//! SIGKILL of the server in the middle of a tool: the turn ends as interrupted, the command is not run again, nothing of it
//! runs on, and the session goes on with the next prompt.

use serde_json::json;
use tolka_scripted::{Answer, Script};

use super::stage::{Stage, Talk, Wire};
use crate::server::until;

/// Whether a process runs whose command line has this word.
pub(crate) fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(word))
}

#[test]
fn a_kill_in_the_middle_of_a_command_leaves_nothing_running_and_runs_nothing_again() {
    // A number that no other process has in its command line.
    let mark = format!("8{:09}", std::process::id());
    let command = format!("echo x >> ran.txt; setsid sleep {mark} & echo started; sleep {mark}");
    let stage = Stage::set(
        Wire::Anthropic,
        Script::of([
            Answer::call("bash", json!({ "command": command, "description": "Runs for ever" })),
            Answer::text("I go on."),
        ]),
    );
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Run it.");
    let asked = talk.until_type("permission_asked");
    talk.answer(&asked, &json!({ "option": "once" }));
    talk.until_type("output_appended");
    until("the command to run", || runs(&mark).then_some(()));
    server.kill();
    until("its processes to go", || (!runs(&mark)).then_some(()));

    let server = stage.serve();
    let mut talk = Talk::take_up(server.address, talk.session);
    let ended = talk.until_type("turn_ended");
    assert_eq!(ended["data"]["stop"], "interrupted");
    let call = talk.ended("bash", &mark);
    assert_eq!(call["status"], "cancelled");
    assert!(call["error"].as_str().unwrap().contains("not run again"), "{call}");

    talk.prompt("And now?");
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    assert_eq!(talk.said(), "I go on.");
    let ran = std::fs::read_to_string(stage.house.workspace().join("ran.txt")).unwrap();
    assert_eq!(ran, "x\n", "it ran once");
    let requests = stage.provider.requests();
    assert!(requests.iter().all(|request| request.refused.is_none()), "{requests:?}");
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains(&mark) && last.contains("not run again"), "the model knows what was under way: {last}");
    assert!(!runs(&mark));
}
