//! Steps at their edges: when one ends, when none begins, and what is none.

use serde_json::json;
use tolka_agent::native::model::Message;
use tolka_facts::event::{FailureKind, Finish, Stop};
use tolka_facts::{Block, Event, Fact, ToolStatus};

use crate::hall::{Act, Hall};
use crate::script::{Play, Script, calls, ends, text, thought};

fn link(path: &std::path::Path) -> Block {
    let uri = format!("file://{}", path.display());
    Block::Link { uri, name: "a".into(), title: None, description: None, mime: None, size: None }
}

#[tokio::test]
async fn the_step_of_attached_files_ends_when_they_are_read() {
    let model = Script::new(vec![vec![text("Yes."), ends()]]);
    let mut hall = Hall::open(vec![model]);
    let files = ["a.txt", "b.txt"].map(|name| hall.folder.path().join(name));
    std::fs::write(&files[0], "one").unwrap();
    let content = [Block::text("Look")].into_iter().chain(files.iter().map(|file| link(file))).collect();
    assert_eq!(hall.prompt(content, None, |_| Act::Nothing).await.stop, Stop::EndTurn);
    let facts = hall.facts();
    let is_end = |fact: &Fact| matches!(&fact.event, Event::StepEnded(ended) if ended.finish == Finish::ToolCalls);
    let ended = facts.iter().position(is_end).unwrap();
    let last = facts.iter().rposition(|fact| matches!(fact.event, Event::ToolChanged(_))).unwrap();
    assert!(last < ended, "{facts:#?}");
    for fact in &facts {
        let Event::StepStarted(started) = &fact.event else { continue };
        assert_eq!(started.model.as_ref().map(|model| &*model.id), Some("m"));
    }
}

#[tokio::test]
async fn files_whose_step_was_cut_off_are_still_the_persons_words() {
    let model = Script::new(vec![vec![text("Yes."), ends()]]);
    let mut hall = Hall::open(vec![model]);
    let file = hall.folder.path().join("a.txt");
    std::fs::write(&file, "one").unwrap();
    hall.prompt(vec![link(&file)], None, |_| Act::Nothing).await;
    let is_read = |fact: &Fact| matches!(&fact.event, Event::ToolChanged(changed) if changed.status == Some(ToolStatus::Completed));
    let count = hall.facts().iter().position(is_read).unwrap() + 1;
    let sent = format!("{:?}", hall.sent_after(count).await.messages);
    assert!(sent.contains("[`a.txt` is attached:]") && sent.contains("one"), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn no_step_begins_after_a_cancel() {
    let model = Script::new(vec![calls([("list", json!({}))])]);
    let mut hall = Hall::open(vec![model.clone()]);
    let is_end = |fact: &Fact| matches!(fact.event, Event::StepEnded(_));
    assert_eq!(hall.say_until("Look", is_end).await.stop, Stop::Cancelled);
    let began = hall.facts().iter().filter(|fact| matches!(fact.event, Event::StepStarted(_))).count();
    assert_eq!((began, model.asked().len()), (1, 1));
}

fn retries(hall: &Hall) -> Vec<String> {
    let retry = |fact: Fact| match fact.event {
        Event::RetryScheduled(retry) => Some(retry.message),
        _ => None,
    };
    hall.facts().into_iter().filter_map(retry).collect()
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_is_asked_again() {
    for silent in [vec![ends()], vec![thought("Hm"), ends()], vec![text(" \n"), ends()]] {
        let model = Script::new(vec![silent, vec![text("Here."), ends()]]);
        let mut hall = Hall::open(vec![model.clone()]);
        let ended = hall.say("Hi").await;
        assert_eq!((ended.stop, model.asked().len()), (Stop::EndTurn, 2));
        assert_eq!(retries(&hall), ["the model script/m said nothing"]);
        assert_eq!(ended.usage.unwrap().input, 200, "what nobody heard is paid for too");
        hall.say("More").await;
        assert_eq!(model.asked()[2].messages.len(), 3, "what was empty is not sent back");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_goes_on_to_say_nothing_is_told_of() {
    let silence = || -> Vec<Play> { vec![vec![ends()]; 3] };
    let model = Script::new(silence());
    let mut hall = Hall::open(vec![model.clone()]);
    let ended = hall.say("Hi").await;
    let failure = ended.failure.unwrap();
    assert_eq!((ended.stop, failure.kind, model.asked().len()), (Stop::Failed, FailureKind::Provider, 3));
    assert!(failure.message.starts_with("the model script/m said nothing"), "{}", failure.message);

    let plays = [calls([("list", json!({}))])].into_iter().chain(silence()).collect();
    let mut hall = Hall::open(vec![Script::new(plays)]);
    assert_eq!(hall.say("Hi").await.stop, Stop::EndTurn, "what it did is done");
    let is_notice =
        |fact: &Fact| matches!(&fact.event, Event::Noticed(notice) if notice.title.contains("without a word"));
    assert!(hall.facts().iter().any(is_notice));
}

#[tokio::test]
async fn capitals_in_the_name_of_a_tool_do_not_matter() {
    let plays = vec![
        calls([("Read", json!({ "filePath": "a.txt" })), ("BASH", json!({ "command": ["echo", "a  b", "it's"] }))]),
        vec![text("Done."), ends()],
    ];
    let model = Script::new(plays);
    let mut hall = Hall::open(vec![model.clone()]);
    std::fs::write(hall.folder.path().join("a.txt"), "one").unwrap();
    assert_eq!(hall.say("Look").await.stop, Stop::EndTurn);
    let names: Vec<String> = hall
        .facts()
        .into_iter()
        .filter_map(|fact| match fact.event {
            Event::ToolChanged(changed) => changed.name,
            _ => None,
        })
        .collect();
    assert_eq!(names, ["read", "bash"]);
    let Some(Message::Results(results)) = model.asked()[1].messages.last().cloned() else { panic!() };
    assert!(results.iter().all(|result| !result.is_error), "{results:?}");
    assert!(format!("{results:?}").contains("a  b it's"), "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_another_mode_is_known_by_any_capitals() {
    let model = Script::new(vec![calls([("Write", json!({ "filePath": "a", "content": "" }))])]);
    let mut hall = Hall::open(vec![model.clone()]);
    hall.mode = Some("plan".to_owned());
    hall.say("Write").await;
    let sent = format!("{:?}", model.asked()[1].messages);
    assert!(sent.contains("may not be used in plan mode"), "{sent}");
}
