//! Servers over the API: for one session, and in OpenCode's words.

use serde_json::{Value, json};
use tolka_scripted::{Answer, Script};

use super::{command, connect, hostile, package, servers};
use crate::http::{get, post};
use crate::native::stage::{Stage, Talk, Wire};
use crate::server::until;

#[test]
fn a_session_brings_its_own_and_no_other_has_it() {
    let answers = vec![Answer::call("mine_echo", json!({ "a": 1 })), Answer::text("Good.")];
    let stage = Stage::set(Wire::OpenAi, Script { answers, ..Script::default() });
    let program = hostile(&stage);
    let server = stage.serve();
    let (mut talk, other) = (Talk::begin(server.address), Talk::begin(server.address));
    let path = format!("/v1/sessions/{}/mcp", talk.session);
    for (body, words) in [
        (json!({ "name": "mine" }), "Give either `command`"),
        (json!({ "name": "a b", "command": ["x"] }), "cannot be the name of an MCP server"),
        (json!({ "name": "mine", "url": "file:///etc/passwd" }), "has to begin with http://"),
    ] {
        let refused = post(server.address, &path, &body).expect(400);
        assert!(refused.to_string().contains(words), "{refused}");
    }
    assert_eq!(servers(server.address, &talk.session), json!({}), "a mistake changes nothing");
    let mine = json!({ "name": "mine", "command": ["node", program, "good"], "tools": ["ec*"], "env": { "K": "sk-secret-1" } });
    let added = post(server.address, &path, &mine).expect(201);
    assert!(!added.to_string().contains("sk-secret"), "{added}");
    until("it is ready", || (servers(server.address, &talk.session)["mine"]["status"] == "ready").then_some(()));
    let known = servers(server.address, &talk.session);
    assert_eq!(known["mine"]["tools"].as_array().unwrap().len(), 1, "only what was chosen: {known}");
    assert_eq!(servers(server.address, &other.session), json!({}));
    talk.prompt("Use it.");
    let asked = talk.until_type("permission_asked");
    talk.answer(&asked, &json!({ "option": "once" }));
    talk.until_type("turn_ended");
    assert_eq!(super::output(&talk.ended("mine_echo", "1")), "echo: {\"a\":1}");
    let nobody = post(server.address, "/v1/sessions/ses_nobody/mcp", &mine);
    assert_eq!(nobody.status, 404);
}

#[test]
fn opencodes_clients_see_add_and_steer_them() {
    let stage =
        Stage::set(Wire::OpenAi, Script { answers: vec![Answer::text("Yes.").for_ever()], ..Script::default() });
    let everything = package(&stage, "server-everything");
    let words = command(&["node", everything.to_str().unwrap()]);
    stage.configure(&format!(
        "[mcp.everything]\ncommand = {words}\n[mcp.off]\ncommand = [\"false\"]\nenabled = false\n"
    ));
    let program = hostile(&stage);
    let server = stage.serve();
    let at = server.address;
    let talk = Talk::begin(at);
    let statuses = || get(at, "/mcp").expect(200);
    assert_eq!(statuses()["everything"], json!({ "status": "disabled" }), "to look starts nothing");
    post(at, "/mcp/everything/connect", &json!({})).expect(200);
    until("it is connected", || (statuses()["everything"] == json!({ "status": "connected" })).then_some(()));
    assert_eq!(statuses()["off"], json!({ "status": "disabled" }));
    let commands = get(at, "/command").expect(200);
    let names: Vec<&Value> = commands.as_array().unwrap().iter().map(|command| &command["name"]).collect();
    assert!(names.contains(&&json!("everything:simple-prompt")), "{names:?}");
    let resources = get(at, "/experimental/resource").expect(200);
    assert!(resources.as_object().unwrap().keys().all(|key| key.starts_with("everything:")), "{resources}");
    assert!(!resources.as_object().unwrap().is_empty());

    let added = json!({ "name": "local", "config": { "type": "local", "command": ["node", program, "good"] } });
    post(at, "/mcp", &added).expect(200);
    until("the added one is connected", || (statuses()["local"]["status"] == "connected").then_some(()));
    post(at, "/mcp/local/disconnect", &json!({})).expect(200);
    assert_eq!(statuses()["local"]["status"], "disabled");
    post(at, "/mcp/local/connect", &json!({})).expect(200);
    connect(at, &talk, &["local"]);
    assert_eq!(post(at, "/mcp/nobody/connect", &json!({})).status, 404);

    let run = |command: &str| {
        post(at, &format!("/session/{}/command", talk.session), &json!({ "command": command, "arguments": "Lund" }))
    };
    let answer = run("everything:args-prompt").expect(200);
    assert!(answer.to_string().contains("Yes."), "{answer}");
    assert!(stage.provider.requests().pop().unwrap().body.to_string().contains("Lund"));
    assert_eq!(run("everything:no-such").status, 400);
}
