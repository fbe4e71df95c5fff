//! Turns with tools, in a real folder.

use serde_json::json;
use tolka_agent::native::model::{Input, Message, Output};
use tolka_facts::event::Stop;
use tolka_facts::{Block, Event, Part, ToolStatus};

use crate::hall::{Act, Hall, Person};
use crate::script::{Script, began, calls, ends, ends_with, input, text};
use tolka_facts::event::Finish;

fn results(messages: &[Message]) -> Vec<(String, bool)> {
    let Some(Message::Results(results)) = messages.last() else { panic!("{messages:?}") };
    let said = |inputs: &[Input]| {
        inputs.iter().map(|input| if let Input::Text(text) = input { text.clone() } else { String::new() }).collect()
    };
    results.iter().map(|result| (said(&result.content), result.is_error)).collect()
}

#[tokio::test]
async fn calls_are_done_and_their_results_go_back() {
    let model = Script::new(vec![
        calls([
            ("write", json!({ "filePath": "a.txt", "content": "one\n" })),
            ("read", json!({ "filePath": "a.txt" })),
        ]),
        vec![text("Done."), ends()],
    ]);
    let mut hall = Hall::open(vec![model.clone()]);
    assert_eq!(hall.say("Write").await.stop, Stop::EndTurn);
    assert_eq!(std::fs::read_to_string(hall.folder.path().join("a.txt")).unwrap(), "one\n");
    let asked = model.asked();
    let results = results(&asked[1].messages);
    assert_eq!(results.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [false, false]);
    assert!(results[1].0.contains("one"), "{results:?}");
    let facts = hall.facts();
    let first = facts.iter().find_map(|fact| match &fact.event {
        Event::ToolChanged(changed) => Some(changed),
        _ => None,
    });
    let first = first.unwrap();
    assert_eq!(first.status, Some(ToolStatus::Pending));
    assert_eq!(first.input.as_ref().unwrap().get(), "{}");
    assert!(facts.iter().any(|fact| matches!(fact.event, Event::FileChanged(_))));
}

#[tokio::test]
async fn calls_that_make_no_sense_are_answered() {
    let model = Script::new(vec![
        vec![
            began(0, "", "fly"),
            input(0, "{\"to\": \"moon\"}"),
            began(1, "", "read"),
            input(1, "{\"filePath\": "),
            began(2, "", "read"),
            input(2, "[1]"),
            ends_with(Finish::ToolCalls),
        ],
        vec![text("Sorry."), ends()],
    ]);
    let mut hall = Hall::open(vec![model.clone()]);
    assert_eq!(hall.say("Fly").await.stop, Stop::EndTurn);
    let asked = model.asked();
    let results = results(&asked[1].messages);
    assert!(results.iter().all(|(_, is_error)| *is_error), "{results:?}");
    for (at, words) in [(0, "no tool `fly`"), (1, "not JSON"), (2, "not a JSON object")] {
        assert!(results[at].0.contains(words), "{results:?}");
    }
    let Message::Model(outputs) = &asked[1].messages[1] else { panic!() };
    assert!(matches!(&outputs[0], Output::Call { name, .. } if name == "invalid"), "{outputs:?}");
    let view = hall.memory.view();
    let statuses: Vec<ToolStatus> = view
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| if let Part::Tool(tool) = part { Some(tool.status) } else { None })
        .collect();
    assert_eq!(statuses, [ToolStatus::Failed; 3]);
}

#[tokio::test]
async fn nothing_is_changed_in_plan_mode() {
    let model = Script::new(vec![
        calls([("write", json!({ "filePath": "a.txt", "content": "x" }))]),
        vec![text("The plan."), ends()],
    ]);
    let mut hall = Hall::open(vec![model.clone()]);
    hall.mode = Some("plan".to_owned());
    assert_eq!(hall.say("Plan").await.stop, Stop::EndTurn);
    assert!(!hall.folder.path().join("a.txt").exists());
    let asked = model.asked();
    assert!(asked[0].system.contains("plan mode"));
    let offered: Vec<&str> = asked[0].tools.iter().map(|spec| spec.name.as_str()).collect();
    assert!(offered.contains(&"read") && !offered.contains(&"write") && !offered.contains(&"edit"), "{offered:?}");
    let results = results(&asked[1].messages);
    assert!(results[0].1 && results[0].0.contains("plan mode"), "{results:?}");
}

#[tokio::test]
async fn a_person_who_says_no_and_nothing_else_ends_the_turn() {
    let model = Script::new(vec![calls([("write", json!({ "filePath": "a.txt", "content": "x" }))])]);
    let mut hall = Hall::open(vec![model.clone()]);
    hall.ask_for_all();
    hall.person = Person::Rejects;
    assert_eq!(hall.say("Write").await.stop, Stop::EndTurn);
    assert!(!hall.folder.path().join("a.txt").exists());
    assert_eq!(model.asked().len(), 1);
    assert_eq!(hall.say("Why not?").await.stop, Stop::EndTurn);
    let sent = model.asked()[1].messages.clone();
    crate::halted::check_pairs(&sent);
}

#[tokio::test]
async fn files_that_a_prompt_links_to_are_read_and_stay_as_they_were() {
    let model = Script::new(Vec::new());
    let mut hall = Hall::open(vec![model.clone()]);
    let file = hall.folder.path().join("a b.txt");
    std::fs::write(&file, "as it was\n").unwrap();
    let link = Block::Link {
        uri: format!("file://{}/a%20b.txt", hall.folder.path().display()),
        name: "a b.txt".into(),
        title: None,
        description: None,
        mime: None,
        size: None,
    };
    hall.prompt(vec![Block::text("See"), link], None, |_| Act::Nothing).await;
    std::fs::write(&file, "as it is\n").unwrap();
    hall.say("And?").await;
    for request in model.asked() {
        let Message::User(inputs) = &request.messages[0] else { panic!("{request:?}") };
        let has = |words: &str| inputs.iter().any(|input| matches!(input, Input::Text(text) if text.contains(words)));
        assert!(has("as it was") && !has("as it is\n") && has("`a b.txt` is attached"), "{inputs:?}");
    }
    let tools = hall.facts().into_iter().filter(|fact| matches!(&fact.event, Event::ToolChanged(_))).count();
    assert!(tools >= 2, "every client sees that it was read");
}

#[tokio::test]
async fn files_outside_are_read_only_with_leave() {
    for (person, expected) in [(Person::Rejects, false), (Person::Allows, true)] {
        let model = Script::new(Vec::new());
        let mut hall = Hall::open(vec![model.clone()]);
        hall.ask_for_all();
        hall.person = person;
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("o.txt"), "from outside").unwrap();
        let link = Block::Link {
            uri: format!("file://{}/o.txt", outside.path().display()),
            name: "o.txt".into(),
            title: None,
            description: None,
            mime: None,
            size: None,
        };
        assert_eq!(hall.prompt(vec![Block::text("See"), link], None, |_| Act::Nothing).await.stop, Stop::EndTurn);
        assert!(hall.facts().iter().any(|fact| matches!(fact.event, Event::PermissionAsked(_))));
        let sent = format!("{:?}", model.asked()[0].messages);
        assert_eq!(sent.contains("from outside"), expected, "{sent}");
    }
}

#[tokio::test]
async fn a_cancel_ends_a_command_with_all_that_it_started() {
    let line = "echo begun; (while true; do echo x >> alive; sleep 0.05; done) & sleep 1000";
    let model = Script::new(vec![calls([("bash", json!({ "command": line, "description": "waits" }))])]);
    let mut hall = Hall::open(vec![model.clone()]);
    let ended = hall
        .say_until("Wait", |fact| matches!(&fact.event, Event::OutputAppended(output) if output.text.contains("begun")))
        .await;
    assert_eq!(ended.stop, Stop::Cancelled);
    let alive = || std::fs::metadata(hall.folder.path().join("alive")).map_or(0, |file| file.len());
    let before = alive();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(alive(), before, "what the command started goes on");
    assert_eq!(hall.say("And?").await.stop, Stop::EndTurn);
    let sent = model.asked()[1].messages.clone();
    crate::halted::check_pairs(&sent);
    let said = format!("{sent:?}");
    assert!(said.contains("begun") && said.contains("cancelled"), "the model learns what came until then: {said}");
}

#[tokio::test]
async fn a_failing_command_is_told_and_the_turn_goes_on() {
    let model = Script::new(vec![
        calls([("bash", json!({ "command": "echo oops >&2; exit 3", "description": "fails" }))]),
        vec![text("It failed."), ends()],
    ]);
    let mut hall = Hall::open(vec![model.clone()]);
    assert_eq!(hall.say("Run").await.stop, Stop::EndTurn);
    let results = results(&model.asked()[1].messages);
    assert!(results[0].0.contains("oops") && results[0].0.contains('3'), "{results:?}");
}
