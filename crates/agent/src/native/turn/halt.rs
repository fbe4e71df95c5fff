use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::{Cancel, CancelSwitch, Teller, cancel};

/// Why a turn stops in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum Why {
    Cancelled,
    /// The turn has had all the time that it may take.
    TimeUp,
}

/// What ends every wait of a turn. One for the whole turn: a model says thousands of pieces, and none of them should
/// set up a timer.
pub(in crate::native) struct Halt<'a> {
    signal: Pin<Box<dyn Future<Output = Why> + Send + 'a>>,
    fired: Option<Why>,
    /// What the tools listen to: they end in the same way whatever stops the turn.
    switch: CancelSwitch,
    cancel: Cancel,
}

impl<'a> Halt<'a> {
    /// `time` is what the turn may work; to wait for a person is no work.
    pub(in crate::native) fn new(teller: &'a Teller, time: Duration) -> Self {
        let signal = Box::pin(async move {
            tokio::select! {
                biased;
                () = teller.cancel().fired() => Why::Cancelled,
                () = teller.worked(time) => Why::TimeUp,
            }
        });
        let (switch, cancel) = cancel();
        Halt { signal, fired: None, switch, cancel }
    }

    /// Fires when the turn stops, as soon as that is noticed.
    pub(in crate::native) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Does it, unless the turn stops first.
    pub(in crate::native) async fn or<T>(&mut self, wanted: impl Future<Output = T>) -> Result<T, Why> {
        if let Some(why) = self.fired {
            return Err(why);
        }
        tokio::select! {
            biased;
            why = &mut self.signal => {
                self.fired = Some(why);
                self.switch.fire();
                Err(why)
            }
            done = wanted => Ok(done),
        }
    }
}
