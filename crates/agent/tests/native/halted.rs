//! Turns that are stopped in the middle, and turns that people steer.

use std::time::Duration;

use serde_json::json;
use tolka_agent::native::model::{Input, Message, ModelErrorKind, Output};
use tolka_facts::event::{Finish, Severity, Stop};
use tolka_facts::{Block, Event, Fact, ToolStatus};

use crate::hall::{Act, Hall, Person};
use crate::script::{Line, Play, Script, began, calls, ends, ends_with, input, limited, text, thought, thought_ended};

/// Where the model is, what it does there, and the fact that shows it.
type Stage = (&'static str, Play, fn(&Fact) -> bool);

fn is_text(fact: &Fact) -> bool {
    matches!(fact.event, Event::TextAppended(_))
}

fn is_retry(fact: &Fact) -> bool {
    matches!(fact.event, Event::RetryScheduled(_))
}

fn is_begun(fact: &Fact) -> bool {
    matches!(fact.event, Event::StepStarted(_))
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_cancelled_wherever_the_model_is() {
    let places: [Stage; 5] = [
        ("connecting", vec![Line::Hangs], is_begun),
        ("talking", vec![text("Well"), Line::Hangs], is_text),
        ("calling", vec![text("Well"), began(0, "c", "read"), input(0, "{\"pa"), Line::Hangs], |fact| {
            matches!(fact.event, Event::InputAppended(_))
        }),
        ("waiting to ask again", vec![limited(Duration::from_secs(100))], is_retry),
        ("waiting after a cut", vec![text("Well"), Line::Fails(ModelErrorKind::Cut)], is_retry),
    ];
    for (place, play, cancel) in places {
        let model = Script::new(vec![play]);
        let mut hall = Hall::open(vec![model.clone()]);
        let ended = hall.say_until("Hi", cancel).await;
        assert_eq!((ended.stop, ended.failure), (Stop::Cancelled, None), "{place}");
        let view = hall.memory.view();
        let tool = view.messages.iter().flat_map(|message| &message.parts).find_map(|part| match part {
            tolka_facts::Part::Tool(tool) => Some(tool.status),
            _ => None,
        });
        assert!(tool.is_none_or(|status| status == ToolStatus::Cancelled), "{place}: {tool:?}");
        assert_eq!(hall.say("And now?").await.stop, Stop::EndTurn, "{place}");
        let sent = &model.asked().last().unwrap().messages.clone();
        let has_calls = sent.iter().any(|message| matches!(message, Message::Results(_)));
        assert!(!has_calls, "{place}: a call that was not made is not sent back: {sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn words_of_a_cancelled_answer_are_sent_back() {
    let model = Script::new(vec![vec![thought("Hm"), thought_ended(None), text("First, "), Line::Hangs]]);
    let mut hall = Hall::open(vec![model.clone()]);
    hall.say_until("Count", is_text).await;
    hall.say("Go on").await;
    assert_eq!(model.asked()[1].messages[1], Message::Model(vec![Output::Text("First, ".into())]));
}

/// At every fact of a busy turn in turn: it ends at once, nothing stays open, and the session goes on.
#[tokio::test(start_paused = true)]
async fn a_cancel_at_any_fact_leaves_nothing_open() {
    let plays = || -> Vec<Play> {
        vec![
            vec![limited(Duration::from_secs(1))],
            vec![thought("Hm"), text("I look."), Line::Fails(ModelErrorKind::Cut)],
            calls([("list", json!({})), ("nonsense", json!({})), ("glob", json!({ "pattern": "*" }))]),
            vec![began(0, "", "read"), input(0, "{\"filePath\": "), ends_with(Finish::Length)],
            calls([("todowrite", json!({ "todos": [{ "content": "a", "status": "pending", "priority": "high" }] }))]),
            vec![text("Done."), ends()],
        ]
    };
    let mut whole = Hall::open(vec![Script::new(plays())]);
    assert_eq!(whole.say("Work").await.stop, Stop::EndTurn);
    let count = whole.facts().len();
    assert!(count > 30, "{count}");
    for at in 4..count {
        let model = Script::new(plays());
        let mut hall = Hall::open(vec![model.clone()]);
        let ended = hall.say_until("Work", |fact| fact.seq == at as u64).await;
        let is_late = at + 3 >= count;
        assert!(ended.stop == Stop::Cancelled || is_late && ended.stop == Stop::EndTurn, "at {at}: {ended:?}");
        let view = hall.memory.view();
        assert!(view.tip.turn.is_none(), "at {at}");
        hall.say("Again").await;
        check_pairs(&model.asked().last().unwrap().messages);
    }
}

/// Every call has its result, right after the answer that makes it.
pub(crate) fn check_pairs(messages: &[Message]) {
    for (at, message) in messages.iter().enumerate() {
        let Message::Model(outputs) = message else { continue };
        let called: Vec<&String> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::Call { id, .. } => Some(id),
                Output::Text(_) | Output::Thought { .. } => None,
            })
            .collect();
        let returned: Vec<&String> = match messages.get(at + 1) {
            Some(Message::Results(results)) => results.iter().map(|result| &result.call).collect(),
            _ => Vec::new(),
        };
        assert_eq!(called, returned, "{messages:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_when_its_time_is_over_and_says_so() {
    let model = Script::new(vec![vec![text("Well"), Line::Hangs]]);
    let mut hall = Hall::open(vec![model]);
    hall.settings.turn = Duration::from_secs(120);
    assert_eq!(hall.say("Hi").await.stop, Stop::MaxTurnRequests);
    assert!(noticed(&hall).contains("2 minutes"), "{}", noticed(&hall));
}

/// What a person takes to answer is not the turn's time.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_takes_nothing_of_the_turns_time() {
    let asks = || calls([("write", json!({ "filePath": "a.txt", "content": "a" }))]);
    let model = Script::new(vec![asks(), asks(), vec![text("Well"), Line::Hangs]]);
    let mut hall = Hall::open(vec![model]);
    hall.ask_for_all();
    hall.settings.turn = Duration::from_secs(120);
    hall.person = Person::Dawdles(Duration::from_secs(1000));
    let began = tokio::time::Instant::now();
    assert_eq!(hall.say("Hi").await.stop, Stop::MaxTurnRequests);
    let took = began.elapsed().as_secs();
    assert!((2120..2130).contains(&took), "{took}");
    assert!(hall.folder.path().join("a.txt").exists());
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_after_so_many_steps_and_says_so() {
    let plays = (0..9).map(|n| calls([("glob", json!({ "pattern": format!("*{n}") }))])).collect();
    let model = Script::new(plays);
    let mut hall = Hall::open(vec![model.clone()]);
    hall.settings.steps = 4;
    assert_eq!(hall.say("Hi").await.stop, Stop::MaxTurnRequests);
    assert_eq!(model.asked().len(), 4);
    assert!(noticed(&hall).contains("4 times"), "{}", noticed(&hall));
}

#[tokio::test(start_paused = true)]
async fn the_same_failing_call_three_times_in_a_row_ends_the_turn() {
    let again = || calls([("read", json!({ "filePath": "nowhere" }))]);
    let other = || calls([("read", json!({ "filePath": "elsewhere" }))]);
    let model = Script::new(vec![again(), again(), other(), again(), again(), again(), again()]);
    let mut hall = Hall::open(vec![model.clone()]);
    assert_eq!(hall.say("Hi").await.stop, Stop::MaxTurnRequests);
    assert_eq!(model.asked().len(), 6);
    assert!(noticed(&hall).contains("three times"), "{}", noticed(&hall));
}

fn noticed(hall: &Hall) -> String {
    let notice = hall.facts().into_iter().find_map(|fact| match fact.event {
        Event::Noticed(notice) if notice.severity == Severity::Warning => notice.description,
        _ => None,
    });
    notice.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_steered_between_steps_and_at_its_end() {
    let model =
        Script::new(vec![calls([("list", json!({}))]), vec![text("Done."), ends()], vec![text("That too."), ends()]]);
    let mut hall = Hall::open(vec![model.clone()]);
    let mut texts = 0;
    let ended = hall
        .prompt(vec![Block::text("Begin")], None, |fact| match &fact.event {
            Event::InputAppended(_) if texts == 0 => {
                texts = 1;
                Act::Steers("Mind the tests".into())
            }
            Event::TextAppended(_) if texts == 1 => {
                texts = 2;
                Act::Steers("And the docs".into())
            }
            _ => Act::Nothing,
        })
        .await;
    assert_eq!(ended.stop, Stop::EndTurn);
    let asked = model.asked();
    assert_eq!(asked.len(), 3);
    let user = |text: &str| Message::User(vec![Input::Text(text.into())]);
    assert_eq!(asked[1].messages.last(), Some(&user("Mind the tests")));
    assert!(matches!(asked[1].messages[2], Message::Results(_)));
    assert_eq!(asked[2].messages.last(), Some(&user("And the docs")));
    let again = hall.sent_after(hall.facts().len()).await;
    assert_eq!(again.messages[..asked[2].messages.len()], asked[2].messages);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_for_a_person() {
    let model = Script::new(vec![calls([("write", json!({ "filePath": "a", "content": "b" }))])]);
    let mut hall = Hall::open(vec![model]);
    hall.ask_for_all();
    hall.person = Person::Sleeps;
    let ended = hall.say_until("Write", |fact| matches!(fact.event, Event::PermissionAsked(_))).await;
    assert_eq!(ended.stop, Stop::Cancelled);
    assert!(!hall.folder.path().join("a").exists());
}

/// The time of a turn ends its tools as a cancel does: they say what they did.
#[tokio::test]
async fn a_command_that_outlasts_the_turn_is_ended_and_told() {
    let line = "echo made > made.txt; echo heard; sleep 300";
    let model = Script::new(vec![calls([("bash", json!({ "command": line }))])]);
    let mut hall = Hall::open(vec![model]);
    // Long enough for it to begin on a busy machine.
    hall.settings.turn = Duration::from_secs(8);
    assert_eq!(hall.say("Hi").await.stop, Stop::MaxTurnRequests);
    let changed =
        hall.facts().iter().any(|fact| matches!(&fact.event, Event::FileChanged(e) if e.path.ends_with("made.txt")));
    assert!(changed, "{:?}", hall.facts());
    let ended = hall.facts().into_iter().find_map(|fact| match fact.event {
        Event::ToolChanged(change) if change.status == Some(ToolStatus::Cancelled) => Some(change),
        _ => None,
    });
    let ended = ended.unwrap();
    assert_eq!(ended.error.unwrap().head(), "The turn had all its time before the tool ended.");
    assert!(ended.output.unwrap().value()["output"].as_str().unwrap().contains("heard"));
}
