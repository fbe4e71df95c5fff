//! Nothing waits for ever: what nobody answers is decided in nobody's name.

use std::time::Duration;

use tokio::time::{Instant, advance};
use tolka_agent::{Patience, Teller};
use tolka_facts::event::{
    OptionKind, PermissionAnswered, PermissionAsked, PermissionOption, Question, QuestionAnswered, QuestionAsked, Stop,
};
use tolka_facts::{Cause, Event, SessionId, Time};
use tolka_session::{Answer, Place, SessionError};

use crate::{World, prompt, say, texts};

const ALONE: Duration = Duration::from_secs(10);
const ATTENDED: Duration = Duration::from_secs(100);

pub(crate) async fn ask(words: &str, teller: &Teller) {
    let option = |id: &str, kind| PermissionOption { id: id.into(), name: id.into(), kind };
    let otherwise = words.strip_prefix("patient: ").map(str::to_owned);
    let patience = Patience { alone: ALONE, attended: ATTENDED, otherwise };
    if words == "patient question" {
        let question =
            Question { question: "Which?".into(), header: String::new(), options: Vec::new(), multiple: false };
        let request = teller.ids().question(Time::now());
        let ask = QuestionAsked { request, call: None, questions: vec![question] };
        let answers = teller.ask_question(ask, patience).await.unwrap();
        return say(teller, &format!("answers: {answers:?}")).await;
    }
    let ask = PermissionAsked {
        request: teller.ids().permission(Time::now()),
        call: None,
        permission: "bash".into(),
        title: "Run it?".into(),
        patterns: Vec::new(),
        metadata: None,
        options: vec![option("yes", OptionKind::AllowOnce), option("no", OptionKind::RejectOnce)],
    };
    let chosen = teller.ask_permission(ask, None, patience).await.unwrap();
    let told = chosen.map(|chosen| (chosen.option, chosen.reason.unwrap_or_default()));
    say(teller, &format!("chosen: {told:?}")).await;
}

/// Time stands still but for what the test makes of it: it does not run ahead while the journal writes.
pub(crate) struct Still(Option<std::sync::mpsc::Sender<()>>);

impl Still {
    pub(crate) fn new() -> Self {
        let (ends, held) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || held.recv());
        Still(Some(ends))
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.0.take();
    }
}

async fn answered(world: &World, session: &SessionId) -> Vec<(Option<String>, String, Option<String>, Cause)> {
    let answered = |fact: &std::sync::Arc<tolka_facts::Fact>| match &fact.event {
        Event::PermissionAnswered(PermissionAnswered { option, by, reason, .. }) => {
            Some((option.clone(), by.clone(), reason.clone(), fact.cause))
        }
        _ => None,
    };
    world.facts(session).await.iter().filter_map(answered).collect()
}

/// Whether the session still waits, after the actor has had every chance to decide.
async fn still_waits(world: &World, session: &SessionId) -> bool {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    world.desk.tip(session).await.unwrap().asks().count() > 0
}

#[tokio::test(start_paused = true)]
async fn alone_a_request_is_decided_in_nobodys_name() {
    let (_still, world) = (Still::new(), World::new());
    let session = world.session().await;
    let asked = Instant::now();
    world.desk.prompt(&session, prompt("patient: yes")).await.unwrap();
    world.asked(&session).await;
    advance(ALONE - Duration::from_millis(1)).await;
    assert!(still_waits(&world, &session).await);
    advance(Duration::from_millis(2)).await;
    assert_eq!(world.ended(&session, 1).await, [Stop::EndTurn]);
    assert!(asked.elapsed() < ALONE * 2);
    let [(option, by, Some(reason), cause)] = &answered(&world, &session).await[..] else { panic!("not once") };
    assert_eq!((option.as_deref(), by.as_str(), *cause), (Some("yes"), "tolka", Cause::Tolka));
    assert!(reason.contains("Nobody was there") && reason.contains("10 s"), "{reason}");
    assert_eq!(texts(&world.facts(&session).await), [format!("chosen: {:?}", Some(("yes", reason)))]);
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_or_with_one_that_was_not_offered_it_is_a_refusal() {
    for words in ["patient", "patient: maybe"] {
        let (_still, world) = (Still::new(), World::new());
        let session = world.session().await;
        world.desk.prompt(&session, prompt(words)).await.unwrap();
        world.asked(&session).await;
        advance(ALONE + Duration::from_millis(1)).await;
        world.ended(&session, 1).await;
        assert_eq!(texts(&world.facts(&session).await), ["chosen: None"], "{words}");
        assert_eq!(answered(&world, &session).await[0].0, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_is_refused() {
    let (_still, world) = (Still::new(), World::new());
    let session = world.session().await;
    world.desk.prompt(&session, prompt("patient question")).await.unwrap();
    world.asked(&session).await;
    advance(ALONE + Duration::from_millis(1)).await;
    world.ended(&session, 1).await;
    let facts = world.facts(&session).await;
    assert_eq!(texts(&facts), ["answers: None"]);
    let by = facts.iter().find_map(|fact| match &fact.event {
        Event::QuestionAnswered(QuestionAnswered { by, answers: None, .. }) => Some(by.as_str()),
        _ => None,
    });
    assert_eq!(by, Some("tolka"));
}

#[tokio::test(start_paused = true)]
async fn while_somebody_is_there_it_waits_longer() {
    let (_still, world) = (Still::new(), World::new());
    let session = world.session().await;
    let here = world.desk.attend(Place::Session(session.clone()));
    let _elsewhere = world.desk.attend(Place::Session("ses_other".into()));
    world.desk.prompt(&session, prompt("patient: yes")).await.unwrap();
    world.asked(&session).await;
    advance(ALONE * 3).await;
    assert!(still_waits(&world, &session).await, "somebody could answer");
    // A moment away is not for ever: it goes on waiting, from when the last one left.
    drop(here);
    assert!(still_waits(&world, &session).await);
    advance(ALONE / 2).await;
    let back = world.desk.attend(Place::Folder("/w".into()));
    advance(ALONE).await;
    assert!(still_waits(&world, &session).await, "it came back in time");
    drop(back);
    assert!(still_waits(&world, &session).await);
    advance(ALONE + Duration::from_millis(1)).await;
    world.ended(&session, 1).await;
    assert_eq!(answered(&world, &session).await[0].1, "tolka");
}

#[tokio::test(start_paused = true)]
async fn who_looks_on_and_says_nothing_does_not_hold_it_for_ever() {
    let (_still, world) = (Still::new(), World::new());
    let session = world.session().await;
    let _here = world.desk.attend(Place::Everywhere);
    world.desk.prompt(&session, prompt("patient: no")).await.unwrap();
    world.asked(&session).await;
    advance(ATTENDED + Duration::from_millis(1)).await;
    world.ended(&session, 1).await;
    let reason = answered(&world, &session).await.remove(0).2.unwrap();
    assert!(reason.starts_with("Nobody answered within 100 s"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_counts_and_one_after_it_learns_of_the_decision() {
    let (_still, world) = (Still::new(), World::new());
    let session = world.session().await;
    let answer = || Answer::Option { id: "no".into(), reason: Some("not today".into()) };
    world.desk.prompt(&session, prompt("patient: yes")).await.unwrap();
    let request = world.asked(&session).await;
    world.desk.answer(&session, request, answer(), "me".into()).await.unwrap();
    world.ended(&session, 1).await;
    assert_eq!(texts(&world.facts(&session).await), [format!("chosen: {:?}", Some(("no", "not today")))]);

    world.desk.prompt(&session, prompt("patient: yes")).await.unwrap();
    let request = world.asked(&session).await;
    advance(ALONE + Duration::from_millis(1)).await;
    world.ended(&session, 2).await;
    let late = world.desk.answer(&session, request, answer(), "me".into()).await;
    assert!(matches!(late, Err(SessionError::AlreadyAnswered(_))), "{late:?}");
    assert_eq!(answered(&world, &session).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_the_question_and_its_answer_takes_the_question_back() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("patient: yes")).await.unwrap();
    let request = world.asked(&session).await;
    let world = world.crash();
    world.desk.recover().await.unwrap();
    assert_eq!(world.ended(&session, 1).await, [Stop::Interrupted]);
    let [(option, by, _, cause)] = &answered(&world, &session).await[..] else { panic!("not once") };
    assert_eq!((option, by.as_str(), *cause), (&None, "tolka", Cause::Tolka));
    let yes = Answer::Option { id: "yes".into(), reason: None };
    let late = world.desk.answer(&session, request, yes, "me".into()).await;
    assert!(matches!(late, Err(SessionError::AlreadyAnswered(_))), "{late:?}");
    assert!(texts(&world.facts(&session).await).is_empty(), "nothing was done on the strength of it");
}
