//! Prompts for the turn that runs.

use std::sync::Arc;

use tolka_agent::Teller;
use tolka_facts::event::{Finish, Model, PromptSteered, StepEnded, StepStarted, Stop};
use tolka_facts::{Block, Draft, Event, Fact, Role, SessionId, Time, View};
use tolka_journal::{Journal, Scope};
use tolka_session::PromptRequest;

use crate::{Strings, World, prompt, say, texts};

/// Two steps; between them it looks for prompts, when it is let.
pub(crate) async fn turn(mind: &Strings, teller: &Teller) {
    for n in 1..=2 {
        let message = teller.ids().message(Time::now());
        teller.tell(Draft::agent(StepStarted { message: message.clone(), model: None })).await.unwrap();
        say(teller, &format!("step {n}")).await;
        if n == 1 {
            teller.settled().await.unwrap();
            mind.waits.notify_one();
            mind.go.notified().await;
        }
        let (finish, usage, cost, kept) = (Finish::Stop, None, None, None);
        teller.tell(Draft::agent(StepEnded { message, finish, usage, cost, kept })).await.unwrap();
        let steered = teller.steering().await.unwrap();
        for prompt in steered {
            let texts = prompt.content.iter().filter_map(|block| match block {
                Block::Text { text, .. } => Some(format!("{} bytes: {:.9}", text.len(), text.head())),
                _ => None,
            });
            say(teller, &format!("heard {}", texts.collect::<String>())).await;
        }
    }
}

fn steering(text: &str) -> PromptRequest {
    PromptRequest { steer: true, ..prompt(text) }
}

fn steered(facts: &[Arc<Fact>]) -> Vec<&PromptSteered> {
    let steered = |fact: &&Arc<Fact>| matches!(fact.event, Event::PromptSteered(_));
    facts
        .iter()
        .filter(steered)
        .filter_map(|fact| match &fact.event {
            Event::PromptSteered(e) => Some(e),
            _ => None,
        })
        .collect()
}

async fn begun(world: &World) -> SessionId {
    let session = world.session().await;
    world.desk.prompt(&session, prompt("steered")).await.unwrap();
    world.waits.notified().await;
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_takes_the_prompts_that_are_meant_for_it() {
    let world = World::new();
    let session = begun(&world).await;
    let running = world.desk.tip(&session).await.unwrap().turn.unwrap().id;
    let ordinary = world.desk.prompt(&session, prompt("later")).await.unwrap();
    // Longer than a fact holds: it must reach the mind whole.
    let meant = world.desk.prompt(&session, steering(&"and brief".repeat(10_000))).await.unwrap();
    assert_eq!((ordinary.steers, meant.steers), (None, Some(running.clone())));
    world.go.notify_one();
    assert_eq!(world.ended(&session, 2).await, [Stop::EndTurn, Stop::EndTurn]);
    let facts = world.facts(&session).await;
    assert_eq!(texts(&facts), ["step 1", "heard 90000 bytes: and brief", "step 2", "later"]);
    assert_eq!(steered(&facts), [&PromptSteered { turn: meant.turn, into: running.clone() }]);

    let mut view = View::default();
    facts.iter().for_each(|fact| view.apply(fact));
    let told: Vec<_> = view.messages.iter().map(|m| (m.role, m.turn == running)).collect();
    let mine = |role| (role, true);
    let of_turn = [mine(Role::User), mine(Role::Agent), mine(Role::User), mine(Role::Agent)];
    assert_eq!(told[..4], of_turn, "it stands between the two steps");
    assert_eq!(view.messages[2].id, meant.message);
}

/// A turn does not change its way of working, nor its model, in the middle.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_names_another_way_of_working_waits_for_its_own_turn() {
    let world = World::new();
    let session = begun(&world).await;
    let running = world.desk.tip(&session).await.unwrap().turn.unwrap().id;
    let model = |provider: &str, id: &str| Some(Model { provider: provider.into(), id: id.into() });
    let mode = |name: &str| Some(name.to_owned());
    for (agent, model, is_meant) in [
        (mode("build"), None, true),
        (None, model("test", "puppet"), true),
        (None, model("", "puppet"), true),
        (mode("plan"), None, false),
        (None, model("test", "other"), false),
        (mode("build"), model("", "other"), false),
    ] {
        let words = format!("{agent:?} {model:?}");
        let request = PromptRequest { agent, model, ..steering("ways") };
        let accepted = world.desk.prompt(&session, request).await.unwrap();
        assert_eq!(accepted.steers, is_meant.then(|| running.clone()), "{words}");
    }
    world.go.notify_one();
    world.ended(&session, 4).await;
    let texts = texts(&world.facts(&session).await);
    assert_eq!(texts.iter().filter(|text| text.starts_with("heard")).count(), 3, "{texts:?}");
    assert!(texts.contains(&"Some(\"plan\") Some(\"puppet\")".to_owned()), "{texts:?}");
    assert!(texts.contains(&"Some(\"build\") Some(\"other\")".to_owned()), "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_turn_ends_first_is_a_prompt_like_any_other() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("hang")).await.unwrap();
    world.waits.notified().await;
    world.desk.prompt(&session, steering("too late")).await.unwrap();
    world.desk.cancel(&session, false).await.unwrap();
    assert_eq!(world.ended(&session, 2).await, [Stop::Cancelled, Stop::EndTurn]);
    let facts = world.facts(&session).await;
    assert_eq!((texts(&facts), steered(&facts).len()), (vec!["too late".to_owned()], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_turn_does_not_take_what_was_meant_for_the_last() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("hang")).await.unwrap();
    world.waits.notified().await;
    world.desk.prompt(&session, prompt("steered")).await.unwrap();
    world.desk.prompt(&session, steering("for the first")).await.unwrap();
    world.desk.cancel(&session, false).await.unwrap();
    world.waits.notified().await;
    world.go.notify_one();
    world.ended(&session, 3).await;
    assert_eq!(texts(&world.facts(&session).await), ["step 1", "step 2", "for the first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_no_turn_to_steer_it_starts_one() {
    let world = World::new();
    let session = world.session().await;
    let accepted = world.desk.prompt(&session, steering("hello")).await.unwrap();
    assert_eq!(accepted.steers, None);
    world.ended(&session, 1).await;
    assert_eq!(texts(&world.facts(&session).await), ["hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_it_runs_unless_it_was_taken() {
    for taken in [false, true] {
        let world = World::new();
        let session = begun(&world).await;
        let key = Some("k".to_owned());
        let meant = PromptRequest { key, ..steering("be brief") };
        world.desk.prompt(&session, meant.clone()).await.unwrap();
        if taken {
            let mut head = world.journal.watch(&Scope::Session(session.clone()));
            world.go.notify_one();
            while steered(&world.facts(&session).await).is_empty() {
                head.changed().await.unwrap();
            }
        }
        let world = world.crash();
        world.desk.recover().await.unwrap();
        let ended = if taken { 1 } else { 2 };
        world.ended(&session, ended).await;
        let again = world.desk.prompt(&session, meant).await.unwrap();
        assert!(again.repeated, "the same request is the same prompt");
        assert_eq!(world.desk.tip(&session).await.unwrap().queue.len(), 0);
        let facts = world.facts(&session).await;
        let ran = texts(&facts).contains(&"be brief".to_owned());
        assert_eq!((ran, steered(&facts).len()), (!taken, usize::from(taken)));
    }
}
