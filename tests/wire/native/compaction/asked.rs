//! Summaries that people ask for: by our route and OpenCode's, cut off by a kill, taken back, and in forks.

use serde_json::{Value, json};
use tolka_scripted::{Answer, Beat, Script};

use super::super::stage::{Stage, Talk, Wire};
use super::summary;
use crate::http::{get, post};
use crate::server::{House, recorded};

/// A session in which something was said.
fn stage(answers: impl IntoIterator<Item = Answer>) -> Stage {
    Stage::set(Wire::Anthropic, Script::of([Answer::text("A lantern, then.")].into_iter().chain(answers)))
}

fn begin(address: std::net::SocketAddr) -> Talk {
    let mut talk = Talk::begin(address);
    talk.prompt("Think of a thing.");
    talk.until_type("turn_ended");
    talk
}

fn compact(talk: &Talk) -> String {
    let accepted = post(talk.address, &format!("/v1/sessions/{}/compact", talk.session), &json!({})).expect(202);
    accepted["message"].as_str().unwrap().to_owned()
}

/// What the model was sent last.
fn last(stage: &Stage) -> String {
    let requests = stage.provider.requests();
    assert!(requests.iter().all(|request| request.refused.is_none()), "{requests:?}");
    requests.last().unwrap().body["messages"].to_string()
}

#[test]
fn opencode_asks_for_a_summary_and_reads_it_among_its_messages() {
    let stage = stage([Answer::text("The thing is a lantern.").when(summary()), Answer::text("It shines.")]);
    let server = stage.serve();
    let mut talk = begin(server.address);
    let path = format!("/session/{}/summarize", talk.session);
    for (body, field) in [(json!({}), "providerID"), (json!({ "providerID": "scripted" }), "modelID")] {
        let refused = post(server.address, &path, &body).expect(400);
        assert!(refused.to_string().contains(field), "{refused}");
    }
    let model = json!({ "providerID": "scripted", "modelID": "story" });
    let nobody = post(server.address, "/session/ses_nobody/summarize", &model).expect(404);
    assert_eq!(nobody["name"], "NotFoundError");
    assert_eq!(post(server.address, &path, &model).expect(200), Value::Bool(true));

    let list = format!("/session/{}/message", talk.session);
    let messages = get(server.address, &list).expect(200);
    let messages = messages.as_array().unwrap();
    let [_, _, asked, summed] = &messages[..] else { panic!("{messages:#?}") };
    assert_eq!((&asked["info"]["role"], &asked["parts"][1]["type"]), (&json!("user"), &json!("compaction")));
    assert_eq!(asked["parts"][1]["auto"], false);
    let info = &summed["info"];
    assert_eq!(
        (&info["summary"], &info["mode"], &info["finish"]),
        (&json!(true), &json!("compaction"), &json!("stop"))
    );
    assert_eq!(
        (&info["parentID"], &summed["parts"][0]["text"]),
        (&asked["info"]["id"], &json!("The thing is a lantern."))
    );
    // Pages and single messages are cut out of the same list.
    let page = get(server.address, &format!("{list}?limit=1")).expect(200);
    assert_eq!(page, json!([summed]));
    assert_eq!(get(server.address, &format!("{list}/{}", info["id"].as_str().unwrap())).expect(200), *summed);

    let turn = talk.prompt("What does it do?");
    let ended = talk.until(|fact| fact["type"] == "turn_ended" && fact["data"]["turn"] == json!(turn));
    assert_eq!(ended["data"]["stop"], "end_turn");
    let sent = last(&stage);
    assert!(sent.contains("The thing is a lantern.") && !sent.contains("Think of a thing."), "{sent}");
}

#[test]
fn the_command_is_the_agents_own_though_a_file_has_its_name() {
    let stage = stage([Answer::text("The thing is a lantern.").when(summary())]);
    let server = stage.serve();
    let talk = begin(server.address);
    let folder = stage.house.workspace().join(".tolka/commands");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("compact.md"), "Press it hard.").unwrap();
    let body = json!({ "command": "compact", "arguments": "Heed the light." });
    let answer = post(server.address, &format!("/session/{}/command", talk.session), &body).expect(200);
    assert_eq!(answer["info"]["summary"], true, "{answer}");
    let sent = last(&stage);
    assert!(sent.contains("Heed the light.") && !sent.contains("Press it hard."), "{sent}");
}

#[test]
fn a_kill_in_the_middle_of_a_summary_leaves_everything_as_it_was() {
    let half = Answer::beats([Beat::Text("Half a summ".to_owned()), Beat::Hang]).when(summary());
    let stage = stage([half, Answer::text("A lantern.")]);
    let server = stage.serve();
    let mut talk = begin(server.address);
    compact(&talk);
    talk.until_type("compaction_started");
    server.kill();
    let server = stage.serve();
    let mut talk = Talk::take_up(server.address, talk.session);
    let ended = talk.until_type("compaction_ended");
    assert!(ended["data"]["error"].as_str().unwrap().contains("server stopped"), "{ended}");
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "interrupted");
    talk.prompt("What was it?");
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    let sent = last(&stage);
    assert!(
        sent.contains("Think of a thing.") && sent.contains("A lantern, then.") && !sent.contains("Half"),
        "{sent}"
    );
    assert!(!sent.contains("/compact"), "{sent}");
}

#[test]
fn a_rewind_and_a_fork_to_before_a_summary_send_what_it_stood_for() {
    let said = |text: &str| Answer::text(text);
    let stage = stage([
        said("It was a lantern.").when(summary()),
        said("In the fork of all."),
        said("In the fork before."),
        said("After the rewind."),
    ]);
    let server = stage.serve();
    let mut talk = begin(server.address);
    let asked = compact(&talk);
    talk.until_type("turn_ended");
    let fork = |body: &Value| {
        let forked = post(server.address, &format!("/v1/sessions/{}/fork", talk.session), body).expect(201);
        let mut fork = Talk::take_up(server.address, forked["id"].as_str().unwrap().to_owned());
        fork.until_type("session_forked");
        fork.prompt("Go on.");
        fork.until(|fact| fact["type"] == "text_appended" && fact["data"]["text"].to_string().contains('.'));
        last(&stage)
    };
    let whole = fork(&json!({}));
    assert!(whole.contains("It was a lantern.") && !whole.contains("Think of a thing."), "{whole}");
    let before = fork(&json!({ "before": asked }));
    assert!(before.contains("Think of a thing.") && !before.contains("It was a lantern."), "{before}");
    let rewind = json!({ "message": asked, "what": "conversation" });
    post(server.address, &format!("/v1/sessions/{}/rewind", talk.session), &rewind).expect(200);
    talk.prompt("Go on.");
    talk.until(|fact| fact["type"] == "turn_ended");
    let back = last(&stage);
    assert!(back.contains("Think of a thing.") && !back.contains("It was a lantern."), "{back}");
}

#[test]
fn a_recording_is_not_summarised_and_says_so() {
    let house = House::new();
    let server = house.serve(&["--agent", &recorded("claude-perm")]);
    let session = crate::http::new_session(server.address);
    let refused = post(server.address, &format!("/v1/sessions/{session}/compact"), &json!({})).expect(400);
    assert!(refused["error"]["message"].as_str().unwrap().contains("summarises no sessions"), "{refused}");
    let long = json!({ "instructions": "x".repeat(9000) });
    let path = format!("/v1/sessions/{session}/compact");
    assert_eq!(post(server.address, &path, &long).expect(400)["error"]["code"], "bad_request");
}
