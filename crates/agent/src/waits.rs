//! The time in which a turn waits for a person: it is nobody's work, and does not count towards what a turn may take.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// What a turn waits for people.
#[derive(Debug, Clone)]
pub(crate) struct Waits(watch::Sender<Waited>);

#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    /// Requests that are open, and since when there is one.
    open: usize,
    since: Option<Instant>,
    /// Of all that are over.
    total: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Waits(watch::Sender::new(Waited::default()))
    }
}

impl Waits {
    /// A person is asked; it lasts until what this gives is dropped.
    pub(crate) fn begin(&self) -> Wait {
        self.0.send_modify(|waited| {
            waited.open += 1;
            waited.since.get_or_insert_with(Instant::now);
        });
        Wait(self.0.clone())
    }

    /// Returns when so much time has gone by in which nobody was waited for.
    pub(crate) async fn worked(&self, time: Duration) {
        let began = Instant::now();
        let mut waits = self.0.subscribe();
        loop {
            let Waited { open, total, .. } = *waits.borrow_and_update();
            let is_over = async {
                match open {
                    0 => sleep_until(began + time + total).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                () = is_over => return,
                // It fails only without a sender, and this has one.
                _ = waits.changed() => {}
            }
        }
    }
}

/// A person who was asked and has not answered.
#[derive(Debug)]
pub(crate) struct Wait(watch::Sender<Waited>);

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.send_modify(|waited| {
            waited.open -= 1;
            if let Some(since) = waited.since.take_if(|_| waited.open == 0) {
                waited.total += since.elapsed();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_is_no_work() {
        let waits = Waits::default();
        let minute = Duration::from_secs(60);
        let began = Instant::now();
        let person = async {
            tokio::time::sleep(minute / 2).await;
            let first = waits.begin();
            tokio::time::sleep(minute * 10).await;
            let second = waits.begin();
            drop(first);
            tokio::time::sleep(minute * 10).await;
            drop(second);
        };
        tokio::join!(waits.worked(minute), person);
        let took = began.elapsed();
        assert!((minute * 21..minute * 21 + minute / 60).contains(&took), "{took:?}");
    }
}
