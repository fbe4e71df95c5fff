//! How many events a history has, without what they say.
//!
//! It can start at any idle moment from the [`Counts`] of what is before. Only what is undone reaches further back. Of
//! messages that were hidden for good [`Tally::missing`] says so: the counts are right unless something of these is
//! before that moment. Of turns that rewinds have hidden the tip says where they start.

use serde::{Deserialize, Serialize};
use tolka_facts::{Blobs, Event, Fact, MessageId, Tip};

use super::Encoder;
use super::packet::Packet;

/// Events of all kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// But for those of messages that were hidden for good.
    pub told: usize,
}

impl Counts {
    /// Changes with what the encoder tells: counts of another version are not these.
    pub const VERSION: u32 = 2;
}

#[derive(Debug, Default)]
pub struct Tally {
    encoder: Encoder,
    counts: Counts,
    runs: Vec<Run>,
    missing: Vec<MessageId>,
}

/// Events in a row that belong to one message.
#[derive(Debug)]
struct Run {
    message: MessageId,
    events: usize,
    /// Where their turn started, if they are in one.
    started: Option<u64>,
}

impl Tally {
    pub fn since(counts: Counts) -> Self {
        Tally { counts, ..Tally::default() }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many are shown at a tip. Turns that it hides must be among those that were counted here.
    pub fn shown(&self, tip: &Tip) -> usize {
        let is_hidden = |run: &&Run| run.started.is_some_and(|started| tip.hides(started));
        self.counts.told - self.runs.iter().filter(is_hidden).map(|run| run.events).sum::<usize>()
    }

    /// Messages that were hidden and that nothing in these facts is of.
    pub fn missing(&self) -> &[MessageId] {
        &self.missing
    }

    pub fn apply(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs) {
        if let Event::MessageHidden(e) = &fact.event {
            self.hide(&e.message);
        }
        let started = tip.turn.as_ref().map(|turn| turn.first_seq);
        if let (Event::PromptSteered(_), Some(queued), Some(_)) = (&fact.event, &tip.taken, &tip.turn) {
            self.add(queued.prompt.message.clone(), started, 1);
        }
        let mut events = 0;
        self.encoder.tell(fact, tip, blobs, &mut |packet| events += usize::from(is_event(packet)));
        if events > 0 {
            let message = tip.turn.as_ref().map(|turn| turn.current_message().clone()).unwrap_or_default();
            self.add(message, started, events);
        }
    }

    fn add(&mut self, message: MessageId, started: Option<u64>, events: usize) {
        self.counts.told += events;
        match self.runs.last_mut().filter(|run| run.message == message && run.started == started) {
            Some(run) => run.events += events,
            None => self.runs.push(Run { message, events, started }),
        }
    }

    fn hide(&mut self, message: &MessageId) {
        let known = self.runs.len();
        let counts = &mut self.counts;
        self.runs.retain(|run| {
            if run.message == *message {
                counts.told -= run.events;
            }
            run.message != *message
        });
        if self.runs.len() == known {
            self.missing.push(message.clone());
        }
    }
}

fn is_event(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::User { .. }
        | Packet::ReasoningStart
        | Packet::ChatStart
        | Packet::ToolCall { .. }
        | Packet::FileEdit { .. } => true,
        Packet::Reasoning { .. }
        | Packet::Chat { .. }
        | Packet::ChatEnd
        | Packet::ReasoningEnd
        | Packet::SummaryStart
        | Packet::SummaryEnd
        | Packet::Error { .. }
        | Packet::Done { .. } => false,
    }
}
