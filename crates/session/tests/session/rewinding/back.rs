//! Back, forth, and back again.

use std::fs;
use std::time::Duration;

use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_facts::{Event, MessageId};
use tolka_session::{ForkRequest, RewindRequest, SessionError, Target, What};

use super::after::{go_on, stall};
use super::{Studio, files, kept, paths, to};
use crate::{prompt, texts};

#[tokio::test(flavor = "multi_thread")]
async fn turns_go_back_and_what_a_person_did_between_them_stays() {
    let studio = Studio::new();
    studio.write("old", "one");
    studio.write("gone", "g");
    let session = studio.session().await;
    let first = studio.turn(&session, "old=two; made=1; rm gone; tell told=1").await;
    studio.write("mine", "m");
    let second = studio.turn(&session, "made=2; more=1").await;
    studio.write("mine", "m2");
    studio.write("late", "l");
    let end = studio.tree();

    let preview = studio.world.desk.preview_rewind(&session, &to(&first, What::Both)).await.unwrap();
    assert_eq!(studio.tree(), end, "a look changes nothing");
    assert_eq!((preview.messages, &preview.message), (2, &Some(first.clone())));
    let rewinding = studio.rewind(&session, &first, What::Both).await.unwrap();
    assert_eq!(studio.tree(), files(&[("old", "one"), ("gone", "g"), ("mine", "m2"), ("late", "l")]));
    assert_eq!((paths(&rewinding.files), kept(&rewinding.kept)), (paths(&preview.files), kept(&preview.kept)));
    assert_eq!(paths(&rewinding.files), ["gone", "made", "more", "old", "told"]);
    assert_eq!(kept(&rewinding.kept), [("late", KeptWhy::NotOurs), ("mine", KeptWhy::NotOurs)]);
    let tip = studio.world.desk.tip(&session).await.unwrap();
    assert_eq!((tip.seq, tip.rewinds.len(), tip.head.busy), (rewinding.seq, 1, false));

    studio.unrewind(&session).await.unwrap();
    assert_eq!(studio.tree(), end, "the undo");
    assert!(matches!(studio.unrewind(&session).await, Err(SessionError::NothingToUndo)));

    studio.rewind(&session, &second, What::Both).await.unwrap();
    let between = files(&[("old", "two"), ("made", "1"), ("told", "1"), ("mine", "m2"), ("late", "l")]);
    assert_eq!(studio.tree(), between);
    studio.rewind(&session, &first, What::Both).await.unwrap();
    assert_eq!(studio.tree(), files(&[("old", "one"), ("gone", "g"), ("mine", "m2"), ("late", "l")]));
    // Forward again, to a message that is hidden now.
    studio.rewind(&session, &second, What::Both).await.unwrap();
    assert_eq!(studio.tree(), between);
    for tree in [&files(&[("old", "one"), ("gone", "g"), ("mine", "m2"), ("late", "l")]), &between, &end] {
        studio.unrewind(&session).await.unwrap();
        assert_eq!(studio.tree(), *tree, "undone one by one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_both_changed_is_kept_until_somebody_says_otherwise() {
    let studio = Studio::new();
    studio.write("a", "one");
    studio.write("b", "one");
    let session = studio.session().await;
    let message = studio.turn(&session, "a=two; b=two").await;
    studio.write("a", "mine");
    let rewinding = studio.rewind(&session, &message, What::Files).await.unwrap();
    assert_eq!(kept(&rewinding.kept), [("a", KeptWhy::Conflict)]);
    assert_eq!(studio.tree(), files(&[("a", "mine"), ("b", "one")]));
    let request = RewindRequest { overwrite: Overwrite::These(vec!["a".into()]), ..to(&message, What::Files) };
    studio.world.desk.rewind(&session, request).await.unwrap();
    assert_eq!(studio.tree(), files(&[("a", "one"), ("b", "one")]));
    studio.unrewind(&session).await.unwrap();
    assert_eq!(studio.tree(), files(&[("a", "mine"), ("b", "one")]), "what was overwritten was saved first");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_back_is_hidden_for_good_by_the_next_turn() {
    let studio = Studio::new();
    let session = studio.session().await;
    studio.turn(&session, "a=1").await;
    let second = studio.turn(&session, "step; a=2").await;
    let third = studio.turn(&session, "a=3").await;
    let answer = studio.events(&session).await.into_iter().find_map(|event| match event {
        Event::StepStarted(step) => Some(step.message),
        _ => None,
    });
    let answer = answer.unwrap();
    // An answer means its prompt.
    let rewinding = studio.rewind(&session, &answer, What::Both).await.unwrap();
    assert_eq!(rewinding.message, Some(second.clone()));
    assert_eq!(studio.tree(), files(&[("a", "1")]));
    assert!(hidden(&studio.events(&session).await).is_empty(), "it can still be undone");
    studio.turn(&session, "a=4").await;
    let events = studio.events(&session).await;
    assert_eq!(hidden(&events), [second, answer, third]);
    let last = events.iter().rposition(|event| matches!(event, Event::MessageHidden(_))).unwrap();
    assert!(matches!(events[last + 1], Event::TurnStarted(_)));
    assert!(matches!(studio.unrewind(&session).await, Err(SessionError::NothingToUndo)));
    studio.turn(&session, "a=5").await;
    assert_eq!(hidden(&studio.events(&session).await).len(), 3, "once");
}

/// The last rewind of the conversation decides, whatever lies under it and however many of files alone lie on it.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_goes_forth_shows_again_what_lies_before_it() {
    let studio = Studio::new();
    let session = studio.session().await;
    let first = studio.turn(&session, "a=1").await;
    let second = studio.turn(&session, "a=2").await;
    let third = studio.turn(&session, "a=3").await;
    studio.rewind(&session, &first, What::Both).await.unwrap();
    assert_eq!(studio.shown(&session).await, []);
    studio.rewind(&session, &second, What::Conversation).await.unwrap();
    assert_eq!(studio.shown(&session).await, std::slice::from_ref(&first));
    studio.rewind(&session, &third, What::Conversation).await.unwrap();
    assert_eq!(studio.shown(&session).await, [first.clone(), second.clone()]);
    studio.unrewind(&session).await.unwrap();
    assert_eq!(studio.shown(&session).await, std::slice::from_ref(&first), "the one before it decides");
    // More than can be taken back one after the other.
    for _ in 0..20 {
        studio.rewind(&session, &first, What::Files).await.unwrap();
        studio.rewind(&session, &third, What::Files).await.unwrap();
    }
    assert_eq!(studio.shown(&session).await, std::slice::from_ref(&first));
    let fork = studio.world.desk.fork(&session, ForkRequest::default()).await.unwrap();
    assert_eq!(studio.shown(&fork.head.id).await.len(), 1);

    let fourth = studio.turn(&session, "b=1").await;
    assert_eq!(studio.shown(&session).await, [first, fourth]);
    assert_eq!(hidden(&studio.events(&session).await), [second, third]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conversation_alone_goes_back_without_a_checkpoint() {
    let studio = Studio::within(tempfile::tempdir().unwrap(), Duration::from_millis(300));
    let session = studio.session().await;
    stall(&studio);
    let accepted = studio.begin(&session, "a=1; wait").await;
    studio.world.waits.notified().await;
    go_on(&studio);
    studio.world.go.notify_one();
    studio.world.ended(&session, 1).await;
    for what in [What::Files, What::Both] {
        let refused = studio.rewind(&session, &accepted.message, what).await.unwrap_err();
        assert!(matches!(&refused, SessionError::NoCheckpoint(why) if why.contains("saving took longer")), "{refused}");
    }
    let rewinding = studio.rewind(&session, &accepted.message, What::Conversation).await.unwrap();
    assert_eq!((rewinding.message, rewinding.before), (Some(accepted.message), None));
    assert_eq!(studio.tree(), files(&[("a", "1")]));
    studio.unrewind(&session).await.unwrap();
    assert!(studio.world.desk.tip(&session).await.unwrap().rewinds.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_goes_back_while_a_turn_runs_and_prompts_wait_for_a_rewind() {
    let studio = Studio::new();
    let session = studio.session().await;
    let desk = &studio.world.desk;
    let first = studio.turn(&session, "a=1").await;
    studio.begin(&session, "a=2; wait").await;
    studio.world.waits.notified().await;
    assert!(matches!(studio.rewind(&session, &first, What::Both).await, Err(SessionError::Busy)));
    assert!(matches!(desk.preview_rewind(&session, &to(&first, What::Both)).await, Err(SessionError::Busy)));
    assert!(matches!(desk.approve(&session, None).await, Err(SessionError::Busy)));
    studio.world.go.notify_one();
    studio.world.ended(&session, 2).await;

    stall(&studio);
    let mut rewinding = std::pin::pin!(studio.rewind(&session, &first, What::Both));
    studio.sent(&session, rewinding.as_mut()).await;
    assert!(matches!(desk.approve(&session, None).await, Err(SessionError::Busy)));
    let waiting = desk.prompt(&session, prompt("next")).await.unwrap();
    assert!(matches!(studio.unrewind(&session).await, Err(SessionError::Busy)));
    assert_eq!(desk.tip(&session).await.unwrap().queue.len(), 1);
    go_on(&studio);
    rewinding.await.unwrap();
    studio.world.ended(&session, 3).await;
    assert_eq!(texts(&studio.world.facts(&session).await), ["next"]);
    let events = studio.events(&session).await;
    let rewound = events.iter().position(|event| matches!(event, Event::Rewound(_))).unwrap();
    let start = |event: &Event| matches!(event, Event::TurnStarted(started) if started.turn == waiting.turn);
    assert!(events.iter().position(start).unwrap() > rewound);
    assert!(studio.tree().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_refused_and_changes_nothing() {
    let studio = Studio::new();
    let session = studio.session().await;
    let desk = &studio.world.desk;
    let request = |to| RewindRequest { to, what: What::Both, overwrite: Overwrite::Nothing };
    assert!(matches!(desk.reset(&session).await, Err(SessionError::NoCheckpoint(_))));
    assert!(matches!(studio.unrewind(&session).await, Err(SessionError::NothingToUndo)));
    studio.turn(&session, "a=1").await;
    let seq = desk.tip(&session).await.unwrap().seq;
    let unknown = Target::Message(MessageId::from("msg_none"));
    assert!(matches!(desk.rewind(&session, request(unknown)).await, Err(SessionError::NoSuchMessage(_))));
    let unknown = Target::Checkpoint("0".repeat(40));
    assert!(matches!(desk.rewind(&session, request(unknown)).await, Err(SessionError::NoSuchCheckpoint(_))));
    // Without a snapshot of what is there now nothing goes back.
    fs::rename(&studio.workspace, studio.workspace.with_extension("away")).unwrap();
    assert!(matches!(desk.rewind(&session, request(Target::Base)).await, Err(SessionError::Checkpoint(_))));
    assert_eq!(desk.tip(&session).await.unwrap().seq, seq);
}

fn hidden(events: &[Event]) -> Vec<MessageId> {
    let hidden = events.iter().filter_map(|event| match event {
        Event::MessageHidden(hidden) => Some(hidden.message.clone()),
        _ => None,
    });
    hidden.collect()
}
