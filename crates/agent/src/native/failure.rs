//! Why a turn failed, in words that say what to do.

use tolka_facts::event::{Failed, FailureKind, Model as ModelName};

use super::model::{ModelError, ModelErrorKind};

pub(super) fn of_model(error: &ModelError, model: &ModelName, tries: u32) -> Failed {
    let (provider, id) = (&model.provider, &model.id);
    let kind = match error.kind {
        ModelErrorKind::Auth => FailureKind::Auth,
        ModelErrorKind::UnknownModel
        | ModelErrorKind::Overflow
        | ModelErrorKind::RateLimited
        | ModelErrorKind::Unavailable
        | ModelErrorKind::Network
        | ModelErrorKind::Cut
        | ModelErrorKind::Rejected => FailureKind::Provider,
    };
    let said = error.message.trim_end();
    let message = match error.kind {
        ModelErrorKind::Overflow => format!(
            "The conversation is too long for {provider}/{id}: {said} Start a new session, or choose a model that takes more."
        ),
        ModelErrorKind::RateLimited | ModelErrorKind::Unavailable | ModelErrorKind::Network | ModelErrorKind::Cut
            if tries > 1 =>
        {
            format!("{said} (Asked {tries} times; send the prompt again later.)")
        }
        _ => said.to_owned(),
    };
    let wait = error.retry_after.map(|wait| wait.as_secs());
    let details = serde_json::json!({ "provider": provider, "model": id, "retry_after": wait });
    Failed {
        kind,
        message,
        code: error.status.map(i64::from),
        retryable: error.kind.may_pass(),
        details: Some(details.into()),
    }
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

pub(super) fn no_past(error: &crate::PastError) -> Failed {
    let message = format!("{error}. Nothing was sent to the model; try again.");
    Failed { kind: FailureKind::Storage, message, code: None, retryable: true, details: None }
}
