//! How fast a server may talk. One that says more waits: its pipe fills, and it is its own time that is lost.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::peer::Heard;

const SPAN: Duration = Duration::from_secs(1);
/// More than any server has to say; a model reads nothing at this speed.
const MESSAGES: u32 = 2_000;
const BYTES: usize = 32 << 20;

/// Messages in a row that are none, until it is given up: some print a few lines for people at their start.
const STRIKES: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct Pace {
    since: Instant,
    messages: u32,
    bytes: usize,
    strikes: u32,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Pace { since: Instant::now(), messages: 0, bytes: 0, strikes: 0 }
    }

    /// Counts a message, and waits if there were too many.
    pub(crate) async fn keep(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes;
        if self.since.elapsed() >= SPAN {
            *self = Pace { since: Instant::now(), messages: 1, bytes, strikes: self.strikes };
        } else if self.messages > MESSAGES || self.bytes > BYTES {
            sleep_until(self.since + SPAN).await;
        }
    }

    /// Counts what is no message, in a row. True: it was one too many.
    pub(crate) fn is_over(&mut self, heard: &Heard) -> bool {
        match heard {
            Heard::Answer | Heard::Nothing | Heard::Reply(_) => self.strikes = 0,
            Heard::Nonsense => self.strikes += 1,
        }
        self.strikes > STRIKES
    }
}
