//! Modes and models: as the prompt says, else as the session does, and only those that the agent has.

use tolka_facts::event::{Model, SessionChanged};
use tolka_session::{NewSession, PromptRequest, SessionError};

use crate::{World, prompt, texts};

fn model(id: &str) -> Option<Model> {
    Some(Model { provider: "test".into(), id: id.into() })
}

fn change(mode: Option<&str>, model: Option<Model>) -> SessionChanged {
    SessionChanged { title: None, mode: mode.map(str::to_owned), model, agent: None, archived: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_has_its_own_ways_or_the_sessions() {
    let world = World::new();
    let session = world.session().await;
    let planned = PromptRequest { agent: Some("plan".into()), model: model("other"), ..prompt("ways") };
    world.desk.prompt(&session, prompt("ways")).await.unwrap();
    world.desk.prompt(&session, planned).await.unwrap();
    world.desk.prompt(&session, prompt("ways")).await.unwrap();
    world.ended(&session, 3).await;
    world.desk.change(&session, change(Some("plan"), model("other"))).await.unwrap();
    world.desk.prompt(&session, prompt("ways")).await.unwrap();
    world.ended(&session, 4).await;
    let (usual, planned) = ("None Some(\"puppet\")", "Some(\"plan\") Some(\"other\")");
    assert_eq!(texts(&world.facts(&session).await), [usual, planned, usual, planned]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_does_not_have_is_refused_and_changes_nothing() {
    let world = World::new();
    let session = world.session().await;
    let before = world.facts(&session).await.len();
    let refused = world.desk.prompt(&session, PromptRequest { model: model("gpt"), ..prompt("ways") }).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.to_string(), "`puppet` has no model `test/gpt`; it has: test/puppet, test/other");
    let refused = world.desk.prompt(&session, PromptRequest { agent: Some("dream".into()), ..prompt("ways") }).await;
    assert_eq!(refused.unwrap_err().to_string(), "`puppet` has no mode `dream`; it has: build, plan");
    for (mode, model) in [(Some("dream"), None), (None, model("gpt"))] {
        assert!(world.desk.change(&session, change(mode, model.clone())).await.is_err());
        let new = NewSession { workspace: "/w".into(), mode: mode.map(str::to_owned), model, ..NewSession::default() };
        let refused = world.desk.create(new).await;
        assert!(matches!(refused, Err(SessionError::UnknownMode { .. } | SessionError::UnknownModel { .. })));
    }
    assert_eq!(world.facts(&session).await.len(), before);
}
