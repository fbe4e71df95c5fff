//! The agent that is there when no other is: it plays a fixed script, and says so.

use std::sync::Arc;

use crate::{Agent, Pace, Recording, Replay};

/// Shows in some twelve seconds what a session can hold. It needs no model, no key and no network, and
/// touches nothing.
pub fn demo(pace: Pace) -> Arc<dyn Agent> {
    let script = Recording::parse(include_str!("demo.jsonl")).expect("the embedded script is one that its tests read");
    Arc::new(Replay::new("demo", script, pace))
}
