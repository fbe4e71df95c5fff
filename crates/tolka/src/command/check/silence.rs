use std::pin::pin;
use std::time::{Duration, Instant};

/// Long enough that a model which thinks is not taken for one that waits for a person.
const LONG: Duration = Duration::from_secs(10);

/// Tells a person who watches a live stream, once per silence, that it is open and that nothing comes.
pub(super) struct Silence {
    is_wanted: bool,
    since: Instant,
    events: u64,
    is_told: bool,
}

impl Silence {
    pub(super) fn new(is_wanted: bool) -> Self {
        Silence { is_wanted, since: Instant::now(), events: 0, is_told: false }
    }

    /// What the stream gives next, however long that takes.
    pub(super) async fn watch<T>(&mut self, next: impl Future<Output = T>) -> T {
        let mut next = pin!(next);
        loop {
            match tokio::time::timeout(LONG, &mut next).await {
                Ok(given) => return given,
                Err(_) => self.note(),
            }
        }
    }

    /// Keep-alives are no events: a stream that sends nothing else is silent.
    pub(super) fn heard(&mut self, events: u64) {
        if events > self.events {
            *self = Silence { events, ..Silence::new(self.is_wanted) };
        } else if self.since.elapsed() >= LONG {
            self.note();
        }
    }

    fn note(&mut self) {
        if self.is_wanted && !std::mem::replace(&mut self.is_told, true) {
            eprintln!(
                "no event for {} s; the stream is open, and its turn may wait for an answer. Ctrl-C ends with the summary.",
                self.since.elapsed().as_secs()
            );
        }
    }
}
