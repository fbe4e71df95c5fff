//! When a model is asked again: errors that may pass, a few times, later and later.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::native::model::ModelError;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// A provider that wants a longer rest than this gets one: the turn fails, and says so.
const OBEYED: Duration = Duration::from_secs(120);

/// How long to wait after the `failed`th failure (from 1) in a row; `None`: do not ask again.
pub(in crate::native) fn delay(error: &ModelError, failed: u32, tries: u32) -> Option<Duration> {
    if !error.kind.may_pass() || failed >= tries {
        return None;
    }
    match error.retry_after {
        Some(_) if is_too_long(error) => None,
        // Asked for no wait at all, many would come back at once.
        Some(wanted) => Some(wanted + spread(FIRST)),
        None => {
            let doubled = FIRST.saturating_mul(1 << (failed - 1).min(16)).min(LONGEST);
            Some(doubled / 2 + spread(doubled / 2))
        }
    }
}

/// Whether the provider wants a longer rest than we wait for.
pub(in crate::native) fn is_too_long(error: &ModelError) -> bool {
    error.retry_after.is_some_and(|wanted| wanted > OBEYED)
}

/// Anything from nothing to `most`, so that those who failed together do not come back together.
fn spread(most: Duration) -> Duration {
    // Each `RandomState` has keys of its own: chance enough for this.
    let share = RandomState::new().hash_one(0u8) % 1024;
    most.mul_f64(share as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::model::ModelErrorKind;

    fn error(kind: ModelErrorKind, retry_after: Option<Duration>) -> ModelError {
        ModelError { kind, message: "no".into(), status: None, retry_after }
    }

    #[test]
    fn waits_double_up_to_half_a_minute() {
        let cut = error(ModelErrorKind::Cut, None);
        for (failed, most) in [(1, 0.5), (2, 1.0), (3, 2.0), (7, 30.0), (40, 30.0)] {
            let waited = delay(&cut, failed, 100).unwrap().as_secs_f64();
            assert!((most / 2.0..=most).contains(&waited), "after {failed}: {waited}");
        }
        assert_eq!(delay(&cut, 3, 3), None);
    }

    #[test]
    fn the_provider_is_obeyed_within_reason() {
        let asked = |secs| delay(&error(ModelErrorKind::RateLimited, Some(Duration::from_secs(secs))), 1, 3);
        let waited = asked(20).unwrap();
        assert!((Duration::from_secs(20)..Duration::from_secs(21)).contains(&waited), "{waited:?}");
        assert_eq!(asked(121), None);
    }

    #[test]
    fn what_will_not_pass_is_not_tried_again() {
        for kind in [ModelErrorKind::Auth, ModelErrorKind::Overflow, ModelErrorKind::Rejected] {
            assert_eq!(delay(&error(kind, None), 1, 5), None, "{kind:?}");
        }
    }
}
