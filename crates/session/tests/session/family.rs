//! Sessions of subagents, and what becomes of them with their parents.

use tolka_facts::event::{Parent, ParentKind, Stop};
use tolka_facts::{Event, SessionId};
use tolka_journal::Journal;
use tolka_session::{NewSession, PromptRequest, SessionError};

use super::{World, prompt, texts};

async fn child_of(world: &World, parent: &SessionId) -> SessionId {
    let parent = Parent { session: parent.clone(), kind: ParentKind::Subagent, at: None, call: None };
    let new = NewSession { workspace: "/w".into(), parent: Some(parent), ..NewSession::default() };
    world.desk.create(new).await.unwrap().head.id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_had_not_begun_when_the_server_died_is_dropped_and_what_people_sent_is_not() {
    let world = World::new();
    let parent = world.session().await;
    let child = child_of(&world, &parent).await;
    world.desk.prompt(&child, prompt("hang")).await.unwrap();
    world.waits.notified().await;
    let task = PromptRequest { key: Some("tolka:task:1".into()), ..prompt("task") };
    let task = world.desk.prompt(&child, task).await.unwrap();
    world.desk.prompt(&child, prompt("mine")).await.unwrap();

    let world = world.crash();
    world.desk.recover().await.unwrap();
    assert_eq!(world.ended(&child, 2).await, [Stop::Interrupted, Stop::EndTurn]);
    let facts = world.facts(&child).await;
    assert_eq!(texts(&facts), ["mine"]);
    let is_dropped = |event: &Event| matches!(event, Event::PromptDropped(dropped) if dropped.turn == task.turn);
    assert!(facts.iter().any(|fact| is_dropped(&fact.event)));
}

#[tokio::test(flavor = "multi_thread")]
async fn subagents_are_deleted_and_purged_with_the_session_that_they_worked_for() {
    let world = World::new();
    let (parent, other) = (world.session().await, world.session().await);
    let child = child_of(&world, &parent).await;
    let grandchild = child_of(&world, &child).await;
    world.desk.prompt(&grandchild, prompt("hang")).await.unwrap();
    world.waits.notified().await;
    world.desk.delete(&parent).await.unwrap();
    for gone in [&parent, &child, &grandchild] {
        assert!(matches!(world.desk.tip(gone).await, Err(SessionError::NotFound(_))), "{gone}");
    }
    world.desk.tip(&other).await.unwrap();
    let mut facts = 0;
    for session in [&parent, &child, &grandchild] {
        facts += world.facts(session).await.len() as u64;
    }
    assert_eq!(world.desk.purge(&parent).await.unwrap().freed.facts, facts);
    for gone in [&parent, &child, &grandchild] {
        assert!(world.journal.session(gone).await.unwrap().is_none(), "{gone}");
    }
    assert!(world.journal.session(&other).await.unwrap().is_some());
}
