//! A summary, for dialects that have nothing but messages: one asks for it, and one holds it.

use crate::{Event, Fact, MessageId, Time, Tip, derived_id};

/// The message that a fact of a compaction is told as, by a name that follows from its place: see [`compaction_name`]. The
/// tip is the session's after the fact. `None`: none. A person's prompt asks for itself, what failed leaves nothing, and
/// outside of a turn nobody knows what belongs together.
pub fn compaction_message(fact: &Fact, tip: &Tip) -> Option<MessageId> {
    let turn = tip.turn.as_ref()?;
    let is_told = match &fact.event {
        Event::CompactionStarted(e) => e.automatic || turn.steps > 0,
        Event::CompactionEnded(e) => e.error.is_none() && e.summary.is_some(),
        _ => false,
    };
    is_told.then(|| compaction_name(fact.time, fact.seq))
}

/// Of the message that the fact at this place is told as.
pub fn compaction_name(time: Time, seq: u64) -> MessageId {
    derived_id("msg", time, seq, 0).into()
}
