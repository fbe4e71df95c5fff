//! The two servers that the protocol's own people publish.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tolka_scripted::{Answer, Script};

use super::{command, connect, installed, output, package, servers};
use crate::http::post;
use crate::native::stage::{Stage, Talk, Wire};
use crate::server::{free_port, until};

fn answers(calls: &[(&str, Value)]) -> Script {
    let calls = calls.iter().map(|(name, input)| Answer::call(name, input.clone()));
    Script { answers: calls.chain([Answer::text("Done.")]).collect(), ..Script::default() }
}

fn everything(stage: &Stage) -> String {
    let program = package(stage, "server-everything");
    format!("[mcp.everything]\ncommand = {}\n", command(&["node", program.to_str().unwrap()]))
}

#[test]
fn their_tools_are_used_and_asked_for() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let stage = Stage::set(
            wire,
            answers(&[
                ("files_write_file", json!({ "path": "note.txt", "content": "from a server" })),
                ("files_read_text_file", json!({ "path": "note.txt" })),
                ("files_write_file", json!({ "path": "again.txt", "content": "once more" })),
                ("everything_echo", json!({ "message": "hello" })),
                ("everything_get-sum", json!({ "a": 20, "b": 22 })),
                ("everything_get-tiny-image", json!({})),
                ("everything_get-roots-list", json!({ "of": "the folder" })),
                ("everything_get-resource-reference", json!({ "resourceType": "Text", "resourceId": 1 })),
                ("everything_no-such-tool", json!({})),
            ]),
        );
        let (files, workspace) =
            (package(&stage, "server-filesystem"), stage.house.workspace().canonicalize().unwrap());
        let files = command(&["node", files.to_str().unwrap(), workspace.to_str().unwrap()]);
        stage.configure(&format!(
            "[mcp.files]\ncommand = {files}\n{}[permissions.mcp]\n\"everything:*\" = \"allow\"\n\"files:read*\" = \"allow\"\n",
            everything(&stage)
        ));
        let server = stage.serve();
        let mut talk = Talk::begin(server.address);
        connect(server.address, &talk, &["files", "everything"]);
        // This one it learns only when it knows that we can tell, and says so.
        until("it has learned of roots", || {
            let tools = servers(server.address, &talk.session)["everything"]["tools"].to_string();
            tools.contains("get-roots-list").then_some(())
        });
        talk.prompt("Use them.");
        let asked = talk.until_type("permission_asked");
        assert_eq!(asked["data"]["permission"], "mcp");
        assert_eq!(asked["data"]["patterns"], json!(["files:write_file"]));
        assert!(!workspace.join("note.txt").exists(), "nothing happens before leave is given");
        talk.answer(&asked, &json!({ "option": "always" }));
        talk.until_type("turn_ended");
        assert_eq!(talk.told("permission_asked").len(), 1, "what was allowed always is not asked again");

        let ended = |name: &str, input: &str| talk.ended(name, input);
        assert_eq!(std::fs::read_to_string(workspace.join("note.txt")).unwrap(), "from a server");
        assert_eq!(std::fs::read_to_string(workspace.join("again.txt")).unwrap(), "once more");
        assert_eq!(output(&ended("files_read_text_file", "note.txt")), "from a server");
        let changed = talk.told("file_changed").into_iter().map(|change| change["path"].as_str().unwrap().into());
        let changed: Vec<std::path::PathBuf> = changed.collect();
        assert_eq!(changed, ["note.txt", "again.txt"].map(|name| workspace.join(name)), "a rewind takes them back");
        assert!(output(&ended("everything_echo", "hello")).contains("hello"));
        assert!(output(&ended("everything_get-sum", "22")).contains("42"));
        let roots = ended("everything_get-roots-list", "the folder");
        assert!(output(&roots).contains(workspace.to_str().unwrap()), "it knows where it works: {roots}");
        let resource = ended("everything_get-resource-reference", "Text");
        assert!(output(&resource).contains("<resource uri="), "{resource}");
        let pictures =
            talk.told("tool_changed").into_iter().flat_map(|change| change["content"].as_array().into_iter().flatten());
        let pictures: Vec<&Value> = pictures.filter(|content| content["block"]["type"] == "image").collect();
        assert_eq!(pictures.len(), 1);
        assert_eq!(pictures[0]["block"]["mime"], "image/png");

        // The model has seen the picture, and was told of the tool that is not there.
        let last = stage.provider.requests().pop().unwrap().body.to_string();
        let sight = match wire {
            Wire::OpenAi => "data:image/png;base64,",
            Wire::Anthropic => r#""media_type":"image/png""#,
        };
        assert!(last.contains(sight), "{last}");
        assert!(last.contains("There is no tool `everything_no-such-tool`"), "{last}");
        assert!(stage.provider.requests().iter().all(|asked| asked.refused.is_none()), "every schema is taken");
    }
}

#[test]
fn resources_and_prompts_come_into_the_conversation() {
    let answers = vec![Answer::text("Done.").for_ever()];
    let stage = Stage::set(Wire::OpenAi, Script { answers, ..Script::default() });
    stage.configure(&everything(&stage));
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    connect(server.address, &talk, &["everything"]);
    let known = servers(server.address, &talk.session);
    let uri = known["everything"]["resources"][0]["uri"].as_str().expect("it has resources").to_owned();
    let asked = || stage.provider.requests().pop().unwrap().body.to_string();

    talk.prompt(&format!("What is in @everything:{uri}, in short?"));
    talk.until_type("turn_ended");
    let read = talk.ended("mcp_resource", &uri);
    assert_eq!(read["status"], "completed", "{read}");
    let words = output(&read).lines().nth(1).unwrap().to_owned();
    assert!(asked().contains(&json!(words).to_string().trim_matches('"').to_owned()), "the model was sent it");
    let commands = talk.told("commands_set");
    assert!(commands[0].to_string().contains("everything:args-prompt"), "{commands:?}");

    talk.prompt("/everything:args-prompt Uppsala state=Uppland");
    talk.until_type("turn_ended");
    let read = talk.ended("mcp_prompt", "args-prompt");
    assert!(output(&read).contains("Uppsala, Uppland"), "{read}");
    assert!(asked().contains("Uppsala, Uppland"));

    let link = json!({ "content": [
        { "type": "text", "text": "And this?" },
        { "type": "link", "uri": uri, "name": "it" },
    ]});
    post(server.address, &format!("/v1/sessions/{}/prompt", talk.session), &link).expect(202);
    talk.until_type("turn_ended");
    assert_eq!(talk.told("tool_changed").iter().filter(|change| change["name"] == "mcp_resource").count(), 2);

    // Another process, which knows the journal alone, sends the same.
    let (session, before) = (talk.session.clone(), stage.provider.requests().pop().unwrap().body["messages"].clone());
    server.kill();
    let server = stage.serve();
    let mut talk = Talk::take_up(server.address, session);
    talk.prompt("Go on.");
    until("the model is asked again", || {
        let last = stage.provider.requests().pop().unwrap().body["messages"].clone();
        (last.to_string().contains("Go on.")).then_some(())
    });
    let after = stage.provider.requests().pop().unwrap().body["messages"].clone();
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(before[1..], after[1..before.len()], "what was said before is said again");
    talk.until(|fact| fact["type"] == "turn_ended");
}

/// The same server at an address.
struct AtAddress {
    child: Child,
    url: String,
}

impl AtAddress {
    fn start(port: u16) -> Self {
        let mut child = Command::new("node")
            .arg(installed("server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("listening on port")), "it comes up");
        std::thread::spawn(move || lines.for_each(drop));
        AtAddress { child, url: format!("http://127.0.0.1:{port}/mcp") }
    }
}

impl Drop for AtAddress {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn one_at_an_address_is_used_lost_and_found_again() {
    let port = free_port();
    let remote = AtAddress::start(port);
    let stage = Stage::set(
        Wire::OpenAi,
        answers(&[
            ("remote_echo", json!({ "message": "first" })),
            ("remote_get-tiny-image", json!({})),
            ("remote_trigger-long-running-operation", json!({ "duration": 2, "steps": 2 })),
        ]),
    );
    stage.configure(&format!("[mcp.remote]\nurl = \"{}\"\n[permissions]\nmcp = \"allow\"\n", remote.url));
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    connect(server.address, &talk, &["remote"]);
    talk.prompt("Use it.");
    talk.until_type("turn_ended");
    assert!(output(&talk.ended("remote_echo", "first")).contains("first"));
    assert_eq!(talk.ended("remote_trigger-long-running-operation", "steps")["status"], "completed");
    let told: String = talk.told("output_appended").iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    assert!(told.contains("2 of 2"), "its progress is told: {told:?}");

    drop(remote);
    stage.provider.add([Answer::call("remote_echo", json!({ "message": "second" })), Answer::text("Well.")]);
    talk.prompt("Once more.");
    talk.until_type("turn_ended");
    let lost = talk.ended("remote_echo", "second");
    assert_eq!(lost["status"], "failed");
    let why = lost["error"].to_string();
    assert!(why.contains("the MCP server `remote` did not do it"), "{why}");

    let _remote = AtAddress::start(port);
    connect(server.address, &talk, &["remote"]);
    stage.provider.add([Answer::call("remote_echo", json!({ "message": "third" })), Answer::text("Good.")]);
    talk.prompt("And now?");
    talk.until_type("turn_ended");
    assert!(output(&talk.ended("remote_echo", "third")).contains("third"));
}
