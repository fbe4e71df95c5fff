//! Servers that do everything wrong: each harms itself, and the session goes on.

use serde_json::json;
use tolka_scripted::{Answer, Script};

use super::{command, connect, hostile, output, servers};
use crate::native::stage::{Stage, Talk, Wire};
use crate::server::until;

const NEVER: &str = "did not answer within";

/// What it does when it is called, and a word of what is said to that. Of those that never answer the time is short.
const MODES: [(&str, &str); 12] = [
    ("never-answers", NEVER),
    ("crashes", "the disk is on fire"),
    ("floods-garbage", "no message of the protocol"),
    ("floods-without-end", "did not do it"),
    ("floods-news", NEVER),
    ("long-line", "did not do it"),
    ("huge-answer", "xxxx"),
    ("lies-about-ids", "the truth"),
    ("wrong-rpc", "cannot be used"),
    ("bad-image", "that is no base64"),
    ("closes-stdin", NEVER),
    ("asks-back", "asked"),
];

#[test]
fn a_session_with_a_dozen_of_them_goes_on() {
    let calls = MODES.iter().map(|(mode, _)| Answer::call(&format!("{mode}_misbehave"), json!({ "of": mode })));
    let script = calls.chain([
        Answer::call("good_echo", json!({ "of": "good" })),
        Answer::call("good_bash", json!({ "of": "a tool named like ours" })),
        Answer::text("All of them were tried."),
    ]);
    let stage = Stage::set(Wire::OpenAi, Script { answers: script.collect(), ..Script::default() });
    let program = hostile(&stage);
    let mut config = String::new();
    for (mode, said) in MODES {
        let words = command(&["node", program.to_str().unwrap(), mode]);
        let time = if said == NEVER { "5s" } else { "5m" };
        config += &format!("[mcp.{mode}]\ncommand = {words}\ntimeout = \"{time}\"\n");
    }
    let words = command(&["node", program.to_str().unwrap(), "named-like-ours"]);
    config += &format!("[mcp.good]\ncommand = {words}\n");
    stage.configure(&format!("{config}[permissions]\nmcp = \"allow\"\n"));
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    // A few at a time: a dozen programs that start at once take longer than five seconds here.
    let names: Vec<&str> = MODES.iter().map(|(mode, _)| *mode).chain(["good"]).collect();
    for some in names.chunks(3) {
        until_there(&server, &talk, some);
    }
    let before = server.peak_memory();
    talk.prompt("Try them all.");
    talk.until_type("turn_ended");
    for (mode, words) in MODES {
        let ended = talk.ended(&format!("{mode}_misbehave"), mode);
        let said = ended["error"].as_str().unwrap_or_else(|| output(&ended)).to_owned();
        let said = if said.is_empty() { ended.to_string() } else { said };
        assert!(said.contains(words), "{mode}: {}", &said[..said.len().min(500)]);
    }
    assert!(output(&talk.ended("good_echo", "good")).contains("echo"));
    assert!(output(&talk.ended("good_bash", "named like ours")).contains("echo"));
    assert!(talk.said().contains("All of them were tried."));
    let grown = server.peak_memory().saturating_sub(before);
    assert!(grown < 160 << 20, "{} MiB more than before", grown >> 20);
    // What the model is sent of a result has bounds as well.
    let longest = stage.provider.requests().iter().map(|asked| asked.body.to_string().len()).max().unwrap();
    assert!(longest < 1 << 20, "{longest} bytes were sent");
}

fn until_there(server: &crate::server::Server, talk: &Talk, names: &[&str]) {
    for name in names {
        crate::http::post(server.address, &format!("/v1/mcp/{name}/connect"), &json!({})).expect(202);
        until(&format!("{name} is ready"), || {
            let known = servers(server.address, &talk.session);
            if known[name]["status"] == "failed" {
                crate::http::post(server.address, &format!("/v1/mcp/{name}/connect"), &json!({})).expect(202);
            }
            (known[name]["status"] == "ready").then_some(())
        });
    }
}

#[test]
fn what_one_tells_in_one_breath_with_its_answer_is_told() {
    let script = [Answer::call("steps_misbehave", json!({})), Answer::text("Done.")];
    let stage = Stage::set(Wire::OpenAi, Script { answers: script.into(), ..Script::default() });
    let program = hostile(&stage);
    let words = command(&["node", program.to_str().unwrap(), "progress"]);
    stage.configure(&format!("[mcp.steps]\ncommand = {words}\n[permissions]\nmcp = \"allow\"\n"));
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    connect(server.address, &talk, &["steps"]);
    talk.prompt("Step by step.");
    talk.until_type("turn_ended");
    let told: String = talk.told("output_appended").iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    assert_eq!(told, "1 of 3: step\n2 of 3: step\n3 of 3: step\n");
}

#[test]
fn one_that_does_not_come_up_is_told_of_and_the_turn_runs_without_it() {
    let stage = Stage::set(Wire::OpenAi, Script { answers: vec![Answer::text("Without.")], ..Script::default() });
    let program = hostile(&stage);
    let words = command(&["node", program.to_str().unwrap(), "dies-at-once"]);
    stage.configure(&format!("[mcp.broken]\ncommand = {words}\n"));
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    crate::http::post(server.address, "/v1/mcp/broken/connect", &json!({})).expect(202);
    until("it is given up", || (servers(server.address, &talk.session)["broken"]["status"] == "failed").then_some(()));
    talk.prompt("Hello.");
    talk.until_type("turn_ended");
    assert_eq!(talk.said(), "Without.");
    let notice = talk.told("noticed")[0].to_string();
    assert!(notice.contains("The MCP server `broken` cannot be used"), "{notice}");
    assert!(notice.contains("cannot open the database"), "{notice}");
}

#[test]
fn a_person_is_told_once_that_one_cannot_be_used_however_it_says_so() {
    let stage =
        Stage::set(Wire::OpenAi, Script { answers: vec![Answer::text("Well.").for_ever()], ..Script::default() });
    let program = hostile(&stage);
    stage.configure(&format!("[mcp.moody]\ncommand = {}\n", command(&["node", program.to_str().unwrap(), "no-list"])));
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    let mut before = String::new();
    for prompt in ["One.", "Two.", "Three."] {
        crate::http::post(server.address, "/v1/mcp/moody/connect", &json!({})).expect(202);
        until("it fails in other words", || {
            let known = servers(server.address, &talk.session)["moody"].clone();
            let error = known["error"].as_str().unwrap_or_default().to_owned();
            let is_so = known["status"] == "failed" && error != before;
            is_so.then(|| before = error)
        });
        talk.prompt(prompt);
        talk.until_type("turn_ended");
    }
    let notices = talk.told("noticed");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].to_string().contains("none, says"), "{notices:?}");
}

#[test]
fn nothing_of_one_survives_a_disconnect_or_the_death_of_the_server() {
    let stage = Stage::set(Wire::OpenAi, Script::default());
    let program = hostile(&stage);
    let sign = stage.house.workspace().join("sign");
    let words = command(&["node", program.to_str().unwrap(), "lives", sign.to_str().unwrap()]);
    stage.configure(&format!("[mcp.alive]\ncommand = {words}\n"));
    let length = || std::fs::metadata(&sign).map_or(0, |sign| sign.len());
    let is_dead = || {
        let before = length();
        // It gives a sign of life fifty times a second.
        std::thread::sleep(std::time::Duration::from_secs(1));
        (length() == before).then_some(())
    };
    let server = stage.serve();
    let talk = Talk::begin(server.address);
    connect(server.address, &talk, &["alive"]);
    until("it lives", || (length() > 0).then_some(()));
    crate::http::post(server.address, "/v1/mcp/alive/disconnect", &json!({})).expect(202);
    until("it is gone when it is disconnected", is_dead);
    let before = length();
    connect(server.address, &talk, &["alive"]);
    until("it lives again", || (length() > before).then_some(()));
    server.kill();
    until("it is gone with the server", is_dead);
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_server_and_no_key_reaches_it() {
    let script = [
        Answer::call("env_misbehave", json!({})),
        Answer::text("Seen."),
        Answer::call("slow_misbehave", json!({})),
        Answer::text("Never said."),
    ];
    let stage = Stage::set(Wire::OpenAi, Script { answers: script.into(), ..Script::default() });
    let program = hostile(&stage);
    let heard = stage.house.workspace().join("heard");
    let slow = command(&["node", program.to_str().unwrap(), "remembers-cancel", heard.to_str().unwrap()]);
    let env = command(&["node", program.to_str().unwrap(), "environment"]);
    stage.configure(&format!(
        "[mcp.slow]\ncommand = {slow}\n[mcp.env]\ncommand = {env}\nenv = {{ GIVEN = \"a value\" }}\n[permissions]\nmcp = \"allow\"\n"
    ));
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    connect(server.address, &talk, &["slow", "env"]);
    talk.prompt("What do you see?");
    talk.until_type("turn_ended");
    let seen = output(&talk.ended("env_misbehave", "{")).to_owned();
    assert!(seen.contains("PATH") && seen.contains("GIVEN"), "{seen}");
    for hidden in ["TOLKA_DATA", "OLLAMA_HOST"] {
        assert!(!seen.contains(hidden), "{seen}");
    }
    talk.prompt("Wait for it.");
    until("it was called", || heard.exists().then_some(()));
    talk.cancel();
    talk.until_type("turn_ended");
    until("it heard of the cancel", || std::fs::read_to_string(&heard).unwrap().contains("cancelled").then_some(()));
    let calls = talk.told("tool_changed");
    assert_eq!(calls.last().unwrap()["status"], "cancelled");
}
