//! What a turn does to the world is over, and told, when the turn is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tolka_agent::Teller;
use tolka_facts::Event;
use tolka_facts::event::Stop;

use crate::patience::Still;
use crate::{World, prompt, say};

/// Something that goes on when the mind is dropped, tells more than its line holds, and ends when it is let go.
pub(crate) async fn begin(teller: &Teller, waits: &Arc<Notify>, go: &Arc<Notify>) {
    let (effect, teller, go) = (teller.effects().begin(), teller.clone(), go.clone());
    tokio::spawn(async move {
        go.notified().await;
        for n in 0..1_000 {
            say(&teller, &n.to_string()).await;
        }
        say(&teller, "the file is written").await;
        drop(effect);
    });
    waits.notify_one();
    std::future::pending::<()>().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_when_a_turn_is_dropped_is_told_before_its_end() {
    let (_still, world) = (Still::new(), World::new());
    let session = world.session().await;
    world.desk.prompt(&session, prompt("lasting")).await.unwrap();
    world.waits.notified().await;
    world.desk.cancel(&session, false).await.unwrap();
    // Long after the mind was dropped, for it does not listen.
    tokio::time::advance(Duration::from_secs(1)).await;
    world.go.notify_one();
    world.ended(&session, 1).await;
    let facts = world.facts(&session).await;
    let last: Vec<&Event> = facts.iter().rev().take(2).map(|fact| &fact.event).collect();
    assert!(matches!(last[0], Event::TurnEnded(ended) if ended.stop == Stop::Cancelled), "{last:?}");
    assert!(matches!(last[1], Event::TextAppended(told) if told.text == "the file is written"), "{last:?}");
}

/// It cannot hold a turn open for ever.
#[tokio::test(flavor = "multi_thread")]
async fn what_never_ends_is_given_up() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("lasting")).await.unwrap();
    world.waits.notified().await;
    world.desk.cancel(&session, false).await.unwrap();
    world.ended(&session, 1).await;
    assert!(matches!(world.facts(&session).await.last().unwrap().event, Event::TurnEnded(_)));
}
