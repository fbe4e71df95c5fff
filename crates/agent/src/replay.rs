//! An agent that plays a recording: what another agent did, with the recorded text and timing, told anew.
//!
//! Turn k of a session plays prompt k of the recording, and starts over when the session outlives it.
//! Every id is minted afresh, so that one recording can be played many times, in many sessions. Only the
//! agent's side is played: permissions and questions are asked of the person who is there, and the
//! recording goes on as that person says.

mod acp;
mod facts;
mod fresh;
mod player;
mod recording;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tolka_facts::event::Model;

use crate::{Agent, Mind, Place};
use player::Player;
pub use recording::{Recording, RecordingError};

#[derive(Debug)]
pub struct Replay {
    name: String,
    recording: Arc<Recording>,
    pace: Pace,
}

impl Replay {
    pub fn new(name: impl Into<String>, recording: Recording, pace: Pace) -> Self {
        Replay { name: name.into(), recording: Arc::new(recording), pace }
    }
}

impl Agent for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> Model {
        let recorded = self.recording.model.clone();
        let file = self.name.rsplit('/').next().unwrap_or(&self.name);
        let id = file.strip_suffix(".jsonl").unwrap_or(file).to_owned();
        recorded.unwrap_or_else(|| Model { provider: "replay".into(), id })
    }

    fn open(&self, place: Place) -> Box<dyn Mind> {
        Box::new(Player::new(self.recording.clone(), self.pace, place.turns))
    }
}

/// How fast a recording is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    Recorded,
    /// So many times as fast.
    Times(f64),
    AtOnce,
}

impl Pace {
    /// How long it takes until something that was recorded `at` a moment of its turn.
    pub(crate) fn due(self, at: Duration) -> Duration {
        match self {
            Pace::Recorded => at,
            // A factor that makes no sense is no reason to fail: the recording's own pace will do.
            Pace::Times(factor) => Duration::try_from_secs_f64(at.as_secs_f64() / factor).unwrap_or(at),
            Pace::AtOnce => Duration::ZERO,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no pace; give a factor above 0 (1 is as recorded), or `max`")]
pub struct PaceError(String);

impl FromStr for Pace {
    type Err = PaceError;

    fn from_str(word: &str) -> Result<Self, PaceError> {
        if word == "max" {
            return Ok(Pace::AtOnce);
        }
        match word.parse::<f64>() {
            Ok(1.0) => Ok(Pace::Recorded),
            Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(Pace::Times(factor)),
            _ => Err(PaceError(word.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_factor_or_max() {
        let read = |word: &str| word.parse::<Pace>().ok();
        assert_eq!(
            ["1", "10", "0.5", "max"].map(read),
            [Some(Pace::Recorded), Some(Pace::Times(10.0)), Some(Pace::Times(0.5)), Some(Pace::AtOnce)]
        );
        assert_eq!(["0", "-1", "inf", "NaN", "fast", ""].map(read), [None; 6]);
        assert_eq!(Pace::Times(4.0).due(Duration::from_secs(2)), Duration::from_millis(500));
        assert_eq!(Pace::Times(0.0).due(Duration::from_secs(2)), Duration::from_secs(2));
    }
}
