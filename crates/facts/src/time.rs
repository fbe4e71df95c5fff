use serde::{Deserialize, Serialize};

/// Microseconds since the Unix epoch: fine enough to order a burst, and exact in JSON until the year 2255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    pub fn from_micros(micros: u64) -> Self {
        Time(micros)
    }

    pub fn from_millis(millis: u64) -> Self {
        Time(millis.saturating_mul(1000))
    }

    /// The machine's clock; only the session's actor and the door may ask it, never a dialect.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Time(since.map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX)))
    }

    pub fn micros(self) -> u64 {
        self.0
    }

    pub fn millis(self) -> u64 {
        self.0 / 1000
    }
}
