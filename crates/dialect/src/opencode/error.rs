use serde_json::{Value, json};
use tolka_facts::Blobs;
use tolka_facts::event::{Failed, FailureKind, Model, RetryScheduled};

/// A failure as one of document 004's five errors.
pub fn error_json(failed: &Failed, model: &Model, blobs: &dyn Blobs) -> Value {
    let message = &failed.message;
    match failed.kind {
        FailureKind::Auth => {
            json!({ "name": "ProviderAuthError", "data": { "providerID": model.provider, "message": message } })
        }
        FailureKind::OutputLength => json!({ "name": "MessageOutputLengthError", "data": {} }),
        FailureKind::Aborted => json!({ "name": "MessageAbortedError", "data": { "message": message } }),
        FailureKind::Provider => {
            let mut data = json!({ "message": message, "isRetryable": failed.retryable });
            if let Some(code) = failed.code {
                data["statusCode"] = json!(code);
            }
            let details = failed.details.as_ref().map(|details| details.whole(blobs).value());
            for field in ["responseHeaders", "responseBody"] {
                if let Some(value) = details.as_ref().and_then(|details| details.get(field)) {
                    data[field] = value.clone();
                }
            }
            json!({ "name": "APIError", "data": data })
        }
        FailureKind::Agent | FailureKind::Sandbox | FailureKind::Storage | FailureKind::Unknown => {
            json!({ "name": "UnknownError", "data": { "message": message } })
        }
    }
}

/// Why the model is asked again.
pub(super) fn retried(retry: &RetryScheduled) -> Value {
    let mut data = json!({ "message": retry.message, "isRetryable": true });
    if let Some(code) = retry.code {
        data["statusCode"] = json!(code);
    }
    json!({ "name": "APIError", "data": data })
}

pub(super) fn aborted(message: &str) -> Value {
    json!({ "name": "MessageAbortedError", "data": { "message": message } })
}
