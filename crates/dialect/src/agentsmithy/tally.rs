//! How many events a history has, without what they say.
//!
//! It can start at any idle moment from the [`Counts`] of what is before. Only what is undone reaches further back, and
//! then [`Tally::missing`] says so: the counts are right unless something of these messages is before that moment.

use serde::{Deserialize, Serialize};
use tolka_facts::{Blobs, Event, Fact, MessageId, Tip};

use super::Encoder;
use super::packet::Packet;

/// Events of all kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub shown: usize,
    /// Undone, and not yet for good.
    pub rewound: usize,
}

impl Counts {
    /// Changes with what the encoder tells: counts of another version are not these.
    pub const VERSION: u32 = 1;
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
    is_rewound: bool,
}

impl Tally {
    pub fn since(counts: Counts) -> Self {
        Tally { counts, ..Tally::default() }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Messages that were undone and that nothing in these facts is of.
    pub fn missing(&self) -> &[MessageId] {
        &self.missing
    }

    pub fn apply(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs) {
        match &fact.event {
            Event::TurnStarted(_) if self.counts.rewound > 0 => {
                self.runs.retain(|run| !run.is_rewound);
                self.counts.rewound = 0;
            }
            Event::MessageHidden(e) => self.hide(&e.message),
            Event::Rewound(e) => e.message.iter().for_each(|message| self.rewind(message)),
            Event::Unrewound(_) => {
                self.runs.iter_mut().for_each(|run| run.is_rewound = false);
                self.counts.shown += std::mem::take(&mut self.counts.rewound);
            }
            _ => {}
        }
        if let (Event::PromptSteered(_), Some(queued), Some(_)) = (&fact.event, &tip.taken, &tip.turn) {
            self.add(queued.prompt.message.clone(), 1);
        }
        let mut events = 0;
        self.encoder.tell(fact, tip, blobs, &mut |packet| events += usize::from(is_event(packet)));
        if events > 0 {
            let message = tip.turn.as_ref().map(|turn| turn.current_message().clone()).unwrap_or_default();
            self.add(message, events);
        }
    }

    fn add(&mut self, message: MessageId, events: usize) {
        self.counts.shown += events;
        match self.runs.last_mut().filter(|run| run.message == message && !run.is_rewound) {
            Some(run) => run.events += events,
            None => self.runs.push(Run { message, events, is_rewound: false }),
        }
    }

    fn hide(&mut self, message: &MessageId) {
        let known = self.runs.len();
        let counts = &mut self.counts;
        self.runs.retain(|run| {
            if run.message == *message {
                *if run.is_rewound { &mut counts.rewound } else { &mut counts.shown } -= run.events;
            }
            run.message != *message
        });
        if self.runs.len() == known {
            self.missing.push(message.clone());
        }
    }

    fn rewind(&mut self, message: &MessageId) {
        let Some(from) = self.runs.iter().position(|run| run.message == *message) else {
            self.missing.push(message.clone());
            return;
        };
        for run in self.runs.iter_mut().skip(from).filter(|run| !run.is_rewound) {
            run.is_rewound = true;
            self.counts.shown -= run.events;
            self.counts.rewound += run.events;
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
