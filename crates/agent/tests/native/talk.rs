//! Turns without tools: what is told, what is sent, how it ends.

use std::time::Duration;

use tolka_agent::native::model::{Input, Message, ModelErrorKind, Output};
use tolka_facts::event::{FailureKind, Finish, Stop};
use tolka_facts::{Event, Fact};

use crate::hall::Hall;
use crate::script::{Line, Script, ends, ends_with, limited, refuses, text, thought, thought_ended, usage};

/// Names of events, runs of the same one once.
fn told(facts: &[Fact]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = facts.iter().map(|fact| fact.event.name()).collect();
    names.dedup();
    names
}

fn finishes(facts: &[Fact]) -> Vec<Finish> {
    let finish = |fact: &Fact| match &fact.event {
        Event::StepEnded(ended) => Some(ended.finish),
        _ => None,
    };
    facts.iter().filter_map(finish).collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_told_piece_by_piece() {
    let model = Script::new(vec![vec![text("Hel"), text("lo"), ends()]]);
    let mut hall = Hall::open(vec![model.clone()]);
    let ended = hall.say("Hi").await;
    assert_eq!(ended.stop, Stop::EndTurn);
    assert_eq!(ended.usage, Some(usage()));
    let cost = ended.cost.unwrap();
    assert!((cost - 125e-6).abs() < 1e-12, "{cost}");
    let facts = hall.facts();
    assert_eq!(
        told(&facts[3..]),
        ["step_started", "text_appended", "usage_set", "step_ended", "turn_ended"],
        "{facts:#?}"
    );
    let asked = model.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].messages, [Message::User(vec![Input::Text("Hi".into())])]);
    assert!(asked[0].system.contains("Tolka"));
}

#[tokio::test(start_paused = true)]
async fn thoughts_go_back_with_what_the_provider_gave() {
    let kept = serde_json::json!({ "signature": "abc" });
    let hidden = serde_json::json!({ "redacted": "xyz" });
    let play = vec![
        thought("Hm, "),
        thought("well."),
        thought_ended(Some(kept.clone())),
        thought_ended(Some(hidden.clone())),
        text("Yes."),
        ends(),
    ];
    let model = Script::new(vec![play]);
    let mut hall = Hall::open(vec![model.clone()]);
    hall.say("Is it?").await;
    hall.say("Sure?").await;
    let answer = Message::Model(vec![
        Output::Thought { text: "Hm, well.".into(), kept: Some(kept.into()) },
        Output::Thought { text: String::new(), kept: Some(hidden.into()) },
        Output::Text("Yes.".into()),
    ]);
    assert_eq!(model.asked()[1].messages[1], answer);
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_stands_and_is_asked_for_again() {
    let model = Script::new(vec![
        vec![text("Once upon"), Line::Fails(ModelErrorKind::Cut)],
        vec![text("Once upon a time."), ends()],
    ]);
    let mut hall = Hall::open(vec![model.clone()]);
    assert_eq!(hall.say("Tell me").await.stop, Stop::EndTurn);
    let facts = hall.facts();
    assert_eq!(finishes(&facts), [Finish::Error, Finish::Stop]);
    let asked = model.asked();
    assert_eq!(asked[0].messages, asked[1].messages, "the half answer is not sent back");
    hall.say("More").await;
    let sent = &model.asked()[2].messages;
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[1], Message::Model(vec![Output::Text("Once upon a time.".into())]));
}

#[tokio::test(start_paused = true)]
async fn a_busy_provider_is_asked_again_in_the_same_step() {
    let model = Script::new(vec![
        vec![limited(Duration::from_secs(7))],
        vec![Line::Fails(ModelErrorKind::Unavailable)],
        vec![text("Here."), ends()],
    ]);
    let mut hall = Hall::open(vec![model.clone()]);
    let began = tokio::time::Instant::now();
    assert_eq!(hall.say("Hi").await.stop, Stop::EndTurn);
    assert!(began.elapsed() >= Duration::from_secs(7), "{:?}", began.elapsed());
    let facts = hall.facts();
    let retries: Vec<(u64, Option<i64>)> = facts
        .iter()
        .filter_map(|fact| match &fact.event {
            Event::RetryScheduled(retry) => Some((retry.attempt, retry.code)),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [(1, Some(429)), (2, Some(500))]);
    assert_eq!(finishes(&facts), [Finish::Stop]);
}

#[tokio::test(start_paused = true)]
async fn tries_come_to_an_end() {
    let model = Script::new(vec![vec![Line::Fails(ModelErrorKind::Network)]; 9]);
    let mut hall = Hall::open(vec![model.clone()]);
    let ended = hall.say("Hi").await;
    let failure = ended.failure.unwrap();
    assert_eq!((ended.stop, failure.kind, failure.retryable), (Stop::Failed, FailureKind::Provider, true));
    assert!(failure.message.contains("Asked 4 times"), "{}", failure.message);
    assert_eq!(model.asked().len(), 4);
    assert_eq!(finishes(&hall.facts()), [Finish::Error]);
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_fails_at_once_and_says_what_to_do() {
    for (kind, expected, words) in [
        (ModelErrorKind::Auth, FailureKind::Auth, "It is Auth."),
        (ModelErrorKind::UnknownModel, FailureKind::Provider, "It is UnknownModel."),
        (ModelErrorKind::Overflow, FailureKind::Provider, "It is Overflow."),
        (ModelErrorKind::Rejected, FailureKind::Provider, "It is Rejected."),
    ] {
        let model = Script::new(vec![vec![Line::Fails(kind)]]);
        let mut hall = Hall::open(vec![model.clone()]);
        let ended = hall.say("Hi").await;
        let failure = ended.failure.unwrap();
        assert_eq!((ended.stop, failure.kind, failure.retryable), (Stop::Failed, expected, false), "{kind:?}");
        assert_eq!(failure.message, words);
        assert_eq!(model.asked().len(), 1);
        let is_overflow = failure.details.unwrap().get().contains("\"context_overflow\"");
        assert_eq!(is_overflow, kind == ModelErrorKind::Overflow);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_a_long_rest_is_left_alone() {
    let model = Script::new(vec![vec![limited(Duration::from_secs(3600))]]);
    let mut hall = Hall::open(vec![model.clone()]);
    let ended = hall.say("Hi").await;
    assert_eq!(ended.stop, Stop::Failed);
    assert_eq!(model.asked().len(), 1);
    let failure = ended.failure.unwrap();
    assert!(failure.message.contains("left alone for 1 hour;"), "{}", failure.message);
    let details = failure.details.unwrap();
    assert!(details.get().contains("3600") && details.get().contains("\"rate_limited\""), "{details:?}");
}

#[tokio::test(start_paused = true)]
async fn turns_end_as_the_model_ends() {
    for (last, stop) in [
        (ends_with(Finish::Length), Stop::MaxTokens),
        (refuses(), Stop::Refusal),
        (ends_with(Finish::Unknown), Stop::EndTurn),
    ] {
        let model = Script::new(vec![vec![text("So"), last]]);
        let mut hall = Hall::open(vec![model]);
        assert_eq!(hall.say("Hi").await.stop, stop);
    }
}

#[tokio::test(start_paused = true)]
async fn thoughts_that_lead_to_nothing_are_not_sent_back() {
    let model = Script::new(vec![
        vec![thought("Hm"), ends_with(Finish::Length)],
        vec![text("Well."), thought("Or"), ends_with(Finish::Length)],
    ]);
    let mut hall = Hall::open(vec![model.clone()]);
    assert_eq!(hall.say("One").await.stop, Stop::MaxTokens);
    assert_eq!(hall.say("Two").await.stop, Stop::MaxTokens);
    hall.say("Three").await;
    let user = |words: &[&str]| Message::User(words.iter().map(|text| Input::Text((*text).into())).collect());
    let said = Message::Model(vec![Output::Text("Well.".into())]);
    assert_eq!(model.asked()[2].messages, [user(&["One", "Two"]), said, user(&["Three"])]);
}

#[tokio::test(start_paused = true)]
async fn what_was_hidden_is_not_sent() {
    let model = Script::new(vec![vec![text("One."), ends()], vec![text("Two."), ends()], vec![text("Three."), ends()]]);
    let mut hall = Hall::open(vec![model.clone()]);
    hall.say("First").await;
    hall.hide(0);
    hall.say("Second").await;
    hall.say("Third").await;
    hall.hide(2);
    hall.hide(3);
    hall.say("Fourth").await;
    let user = |words: &str| Message::User(vec![Input::Text(words.into())]);
    let said = |words: &str| Message::Model(vec![Output::Text(words.into())]);
    let asked = model.asked();
    assert_eq!(asked[1].messages, [user("Second")], "an answer without its prompt answers nothing");
    assert_eq!(asked[3].messages, [user("Third"), said("Three."), user("Fourth")]);
}
