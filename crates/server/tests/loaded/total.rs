//! How many events a dialog of AgentSmithy's has, whatever was kept of it.

use serde_json::{Value, json};
use tolka_facts::{Event, Fact, SessionId, TurnId};
use tolka_journal::{Journal, Kept};

use crate::house::House;
use crate::seed::{long, seeded, seeded_after};
use crate::whole::Whole;
use crate::{got, house};

const NAME: &str = "agentsmithy.total.2";

pub(crate) async fn total(house: &House, facts: &[Fact]) -> u64 {
    let page = got(house, &format!("/api/dialogs/{}/history?limit=1", facts[0].session)).await;
    page["total_events"].as_u64().unwrap()
}

pub(crate) fn expected(facts: &[Fact]) -> u64 {
    Whole::of(facts).history.page(usize::MAX, None).events.len() as u64
}

/// Where counts were last kept, and what they are.
async fn kept(house: &House, session: &SessionId) -> Option<(u64, Value)> {
    let kept = house.journal.kept(session, NAME, u64::MAX, true).await.unwrap()?;
    Some((kept.seq, serde_json::from_slice(&kept.state).unwrap()))
}

async fn keep(house: &House, session: &SessionId, name: &str, seq: u64, counts: Value) {
    let state = Kept { seq, idle: true, state: counts.to_string().into_bytes() };
    house.journal.keep(session, name, state).await.unwrap();
}

/// The number of facts up to the end of a turn.
fn end_of(facts: &[Fact], turn: usize) -> usize {
    let turn = TurnId::from(format!("trn_{turn}"));
    let is_end = |fact: &Fact| matches!(&fact.event, Event::TurnEnded(e) if e.turn == turn);
    facts.iter().position(is_end).unwrap() + 1
}

/// What is before kept counts is not read again: else a wrong one would not show.
#[tokio::test(flavor = "multi_thread")]
async fn events_are_counted_from_where_they_were_counted_last() {
    const WRONG: u64 = 1000;
    let house = house().await;
    let facts = long("ses_kept", 6, 300);
    let (first, last) = (end_of(&facts, 2), end_of(&facts, 4));
    let session = &facts[0].session;

    seeded(&house, &facts[..first], 512).await;
    let right = expected(&facts[..first]);
    assert_eq!(total(&house, &facts[..first]).await, right);
    assert_eq!(kept(&house, session).await, Some((first as u64, json!({ "told": right }))));

    keep(&house, session, NAME, first as u64, json!({ "told": right + WRONG })).await;
    // The last turn is open, and nothing is kept in it.
    let all_but_hidden = facts.len() - 1;
    seeded_after(&house, &facts[..all_but_hidden], first, 512).await;
    assert_eq!(total(&house, &facts).await, expected(&facts[..all_but_hidden]) + WRONG);
    let counts = json!({ "told": expected(&facts[..last]) + WRONG });
    assert_eq!(kept(&house, session).await, Some((last as u64, counts)));

    // A message of the first turns is hidden: what was counted after it does not hold, right or wrong.
    seeded_after(&house, &facts, all_but_hidden, 512).await;
    assert_eq!(total(&house, &facts).await, expected(&facts));
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_another_version_are_not_used() {
    let house = house().await;
    let facts = long("ses_version", 4, 20);
    seeded(&house, &facts, 512).await;
    let (session, idle) = (&facts[0].session, end_of(&facts, 2) as u64);
    keep(&house, session, "agentsmithy.total.1", idle, json!({ "told": 7 })).await;
    keep(&house, session, NAME, idle, json!({ "all": 7 })).await;
    assert_eq!(total(&house, &facts).await, expected(&facts));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_count_at_once() {
    let house = house().await;
    let facts = long("ses_many", 5, 300);
    seeded(&house, &facts, 512).await;
    let ask = || total(&house, &facts);
    let totals = tokio::join!(ask(), ask(), ask(), ask());
    let right = expected(&facts);
    assert_eq!(totals, (right, right, right, right));
    assert_eq!(ask().await, right);
}
