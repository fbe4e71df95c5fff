//! Time as recorded, and the end of patience. The clock is tokio's, paused: it jumps from wait to wait.

use std::time::Duration;

use tokio::time::Instant;
use tolka_agent::Pace;
use tolka_facts::event::{Finish, Stop};
use tolka_facts::{Cause, Event};

use crate::hall::{Hall, Person, own, replay};

async fn turn_takes(name: &str, pace: Pace, person: Person) -> Duration {
    let mut hall = Hall::open(&replay(name, pace), 0);
    let began = Instant::now();
    hall.turn(person).await;
    began.elapsed()
}

/// Tokio's timer has a grain of one millisecond.
fn assert_about(took: Duration, millis: u64) {
    let expected = Duration::from_millis(millis);
    assert!(took >= expected && took <= expected + Duration::from_millis(2), "{took:?} is not about {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_takes_as_long_as_it_did() {
    assert_about(turn_takes("codex", Pace::Recorded, Person::Allows).await, 705);
    assert_about(turn_takes("codex", Pace::Times(10.0), Person::Allows).await, 70);
    assert_about(turn_takes("codex", Pace::Times(0.5), Person::Allows).await, 1410);
    assert_about(turn_takes("codex", Pace::AtOnce, Person::Allows).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_clock_stands_still_while_a_person_thinks() {
    // 1072 ms were recorded, of which the recorded person took 6.
    assert_about(turn_takes("claude-perm", Pace::Recorded, Person::Allows).await, 1066);
    assert_about(turn_takes("claude-perm", Pace::Recorded, Person::Thinks).await, 61_066);
    assert_about(turn_takes("claude-perm", Pace::AtOnce, Person::Thinks).await, 60_000);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_turn_at_once() {
    let mut hall = Hall::open(&replay("claude-rich", Pace::Times(0.1)), 0);
    let began = Instant::now();
    let ended = hall.turn_until(Person::Allows, Some(Duration::from_millis(2500))).await;
    assert_eq!(ended.stop, Stop::Cancelled);
    assert_about(began.elapsed(), 2500);
    let last = &hall.facts[hall.facts.len() - 2];
    assert!(matches!(&last.event, Event::StepEnded(e) if e.finish == Finish::Cancelled), "{last:?}");
    assert_eq!(last.cause, Cause::Tolka);
    assert_eq!(hall.turn(Person::Allows).await.stop, Stop::EndTurn, "the next turn is a whole one");
    crate::check_steps(&hall, "claude-rich");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_for_a_person() {
    for pace in [Pace::Recorded, Pace::AtOnce] {
        let mut hall = Hall::open(&replay("gemini", pace), 0);
        let began = Instant::now();
        let ended = hall.turn_until(Person::Sleeps, Some(Duration::from_secs(5))).await;
        assert_eq!(ended.stop, Stop::Cancelled);
        assert_about(began.elapsed(), 5000);
        crate::check_steps(&hall, "gemini");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_step_of_our_own_facts() {
    let mut hall = Hall::open(&own("demo", Pace::Recorded), 0);
    let ended = hall.turn_until(Person::Allows, Some(Duration::from_secs(3))).await;
    assert_eq!(ended.stop, Stop::Cancelled);
    crate::check_steps(&hall, "demo");
}

#[tokio::test]
async fn a_turn_that_was_cancelled_before_it_began_says_nothing() {
    for name in ["opencode-cancel", "claude-rich"] {
        let mut hall = Hall::open(&replay(name, Pace::AtOnce), 0);
        assert_eq!(hall.turn_until(Person::Allows, Some(Duration::ZERO)).await.stop, Stop::Cancelled);
        let told: Vec<_> = hall.facts.iter().map(|fact| fact.event.name()).collect();
        assert_eq!(told, ["session_created", "prompt_queued", "turn_started", "turn_ended"]);
    }
}
