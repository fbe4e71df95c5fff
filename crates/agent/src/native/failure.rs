//! Why a turn failed, in words that say what to do.

use std::time::Duration;

use tolka_facts::event::{Failed, FailureKind, Model as ModelName};

use super::model::{ModelError, ModelErrorKind};
use super::turn::retry;

pub(super) fn of_model(error: &ModelError, model: &ModelName, tries: u32) -> Failed {
    let (provider, id) = (&model.provider, &model.id);
    let (kind, reason) = match error.kind {
        ModelErrorKind::Auth => (FailureKind::Auth, "auth"),
        ModelErrorKind::UnknownModel => (FailureKind::Provider, "unknown_model"),
        ModelErrorKind::Overflow => (FailureKind::Provider, "context_overflow"),
        ModelErrorKind::RateLimited => (FailureKind::Provider, "rate_limited"),
        ModelErrorKind::Unavailable => (FailureKind::Provider, "unavailable"),
        ModelErrorKind::Network => (FailureKind::Provider, "network"),
        ModelErrorKind::Cut => (FailureKind::Provider, "cut"),
        ModelErrorKind::Rejected => (FailureKind::Provider, "rejected"),
    };
    let said = error.message.trim_end();
    let message = match error.kind {
        kind if kind.may_pass() && retry::is_too_long(error) => {
            let wait = error.retry_after.unwrap_or_default();
            format!("{said} (It asks to be left alone for {}; send the prompt again then.)", in_words(wait))
        }
        ModelErrorKind::RateLimited | ModelErrorKind::Unavailable | ModelErrorKind::Network | ModelErrorKind::Cut
            if tries > 1 =>
        {
            format!("{said} (Asked {tries} times; send the prompt again later.)")
        }
        _ => said.to_owned(),
    };
    let wait = error.retry_after.map(|wait| wait.as_secs());
    let details = serde_json::json!({ "provider": provider, "model": id, "retry_after": wait, "reason": reason });
    Failed {
        kind,
        message,
        code: error.status.map(i64::from),
        retryable: error.kind.may_pass(),
        details: Some(details.into()),
    }
}

/// About how long, in the unit that people would use.
fn in_words(time: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let seconds = time.as_secs();
    let (one, unit) = UNITS.into_iter().find(|(one, _)| seconds >= *one).unwrap_or((1, "second"));
    let count = seconds.div_ceil(one);
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

pub(super) fn unknown_model(wanted: Option<&ModelName>, known: &[String]) -> Failed {
    let named = wanted.map(|wanted| format!(" {}/{}", wanted.provider, wanted.id)).unwrap_or_default();
    let message = match known {
        [] => "No model is configured. `tolka models` says what can be used and what is missing.".to_owned(),
        known => {
            format!("There is no model{named} here. Choose one of: {}; `tolka models` says more.", known.join(", "))
        }
    };
    Failed { kind: FailureKind::Provider, message, code: None, retryable: false, details: None }
}

/// A subagent whose kind is not there any more.
pub(super) fn unknown_kind(wanted: &str, known: &str) -> Failed {
    let message = format!("There is no kind of subagent `{wanted}` here any more; there are: {known}.");
    Failed { kind: FailureKind::Agent, message, code: None, retryable: false, details: None }
}

/// A person asked for a summary, and there is none.
pub(super) fn unsummarised(why: &str) -> Failed {
    let message = format!("{why} Nothing was changed; ask again, or with another model.");
    Failed { kind: FailureKind::Provider, message, code: None, retryable: true, details: None }
}

/// The conversation does not fit, and what was done about it did not help.
pub(super) fn still_too_long(overflow: Failed, why: &str) -> Failed {
    Failed { message: format!("{} ({why})", overflow.message), ..overflow }
}

pub(super) fn no_past(error: &crate::PastError) -> Failed {
    let message = format!("{error}. Nothing was sent to the model; try again.");
    Failed { kind: FailureKind::Storage, message, code: None, retryable: true, details: None }
}
