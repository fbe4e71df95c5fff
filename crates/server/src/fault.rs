//! Every way a request can fail, and how each family of clients is told. The words are for the client;
//! what only the operator may know is logged where it is handled.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tolka_journal::JournalError;
use tolka_session::SessionError;

use crate::stream::TurnError;

/// Whose routes, and so whose shape of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Tolka,
    Onyx,
    AgentSmithy,
    OpenCode,
}

impl Family {
    pub(crate) fn of(path: &str) -> Self {
        let is_under = |root: &str| path == root || path.starts_with(&format!("{root}/"));
        if is_under("/v1") || is_under("/metrics") || is_under("/healthz") {
            Family::Tolka
        } else if is_under("/api/build") || is_under("/sessions") {
            Family::Onyx
        } else if is_under("/api") || is_under("/health") {
            Family::AgentSmithy
        } else {
            Family::OpenCode
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Fault {
    BadRequest(String),
    /// It was read, and a field of it has the wrong type; only some families tell that from a bad request.
    Invalid(String),
    Unauthorized(String),
    Forbidden(String),
    NotFound(String),
    WrongMethod(String),
    Timeout(String),
    Conflict(String),
    Gone(String),
    TooLarge(String),
    TooMany(String),
    Storage(String),
    Unavailable(String),
    /// The agent failed, and there is nothing else to answer.
    Failed(String),
    /// The family has such a route, and Tolka has none of it yet.
    NotThereYet(String),
    Internal,
}

impl Fault {
    pub(crate) fn status(&self) -> StatusCode {
        self.parts().0
    }

    fn parts(&self) -> (StatusCode, &'static str, &str) {
        match self {
            Fault::BadRequest(m) => (StatusCode::BAD_REQUEST, "bad_request", m),
            Fault::Invalid(m) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid", m),
            Fault::Unauthorized(m) => (StatusCode::UNAUTHORIZED, "unauthorized", m),
            Fault::Forbidden(m) => (StatusCode::FORBIDDEN, "forbidden", m),
            Fault::NotFound(m) => (StatusCode::NOT_FOUND, "not_found", m),
            Fault::WrongMethod(m) => (StatusCode::METHOD_NOT_ALLOWED, "wrong_method", m),
            Fault::Timeout(m) => (StatusCode::REQUEST_TIMEOUT, "timeout", m),
            Fault::Conflict(m) => (StatusCode::CONFLICT, "conflict", m),
            Fault::Gone(m) => (StatusCode::GONE, "gone", m),
            Fault::TooLarge(m) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", m),
            Fault::TooMany(m) => (StatusCode::TOO_MANY_REQUESTS, "too_many", m),
            Fault::Storage(m) => (StatusCode::INSUFFICIENT_STORAGE, "storage", m),
            Fault::Unavailable(m) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", m),
            Fault::Failed(m) => (StatusCode::INTERNAL_SERVER_ERROR, "failed", m),
            Fault::NotThereYet(m) => (StatusCode::NOT_IMPLEMENTED, "not_there_yet", m),
            Fault::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "Something went wrong in the server; its log says what.",
            ),
        }
    }

    pub(crate) fn message(&self) -> &str {
        self.parts().2
    }

    fn body(&self, family: Family) -> Value {
        let (_, code, message) = self.parts();
        match family {
            Family::Tolka => json!({ "error": { "code": code, "message": message } }),
            Family::Onyx => json!({ "error_code": code.to_uppercase(), "detail": message }),
            Family::AgentSmithy => json!({ "detail": message }),
            Family::OpenCode => match self {
                Fault::NotFound(_) => json!({ "name": "NotFoundError", "data": { "message": message } }),
                Fault::BadRequest(_) | Fault::TooLarge(_) => {
                    json!({ "name": "BadRequest", "data": { "message": message, "kind": "Payload" } })
                }
                _ => json!({ "name": "UnknownError", "data": { "message": message } }),
            },
        }
    }

    pub(crate) fn into_response(self, family: Family) -> Response {
        let status = self.status();
        let mut response = (status, axum::Json(self.body(family))).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"tolka\""));
        }
        response
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        match error {
            SessionError::NotFound(_)
            | SessionError::NotAsked(_)
            | SessionError::NotQueued(_)
            | SessionError::NoSuchMessage(_)
            | SessionError::NoSuchCheckpoint(_) => Fault::NotFound(message),
            SessionError::UnknownAgent { .. }
            | SessionError::UnknownMode { .. }
            | SessionError::UnknownModel { .. }
            | SessionError::EmptyPrompt
            | SessionError::Reference
            | SessionError::LongKey { .. }
            | SessionError::OwnKey(_)
            | SessionError::CannotCompact(_)
            | SessionError::LongInstructions { .. }
            | SessionError::BadPicture { .. }
            | SessionError::NoSuchOption { .. }
            | SessionError::WrongAnswers { .. } => Fault::BadRequest(message),
            SessionError::QueueFull { .. } => Fault::TooMany(message),
            SessionError::AlreadyAnswered(_)
            | SessionError::Busy
            | SessionError::Waiting(_)
            | SessionError::NoCheckpoint(_)
            | SessionError::NothingToUndo
            | SessionError::NotTheLast(_)
            | SessionError::AlreadyThere
            | SessionError::FolderGoes(_)
            | SessionError::CheckpointsOff => Fault::Conflict(message),
            SessionError::Checkpoint(error) if error.is_full() => {
                tracing::error!(%error, "a disk is full");
                Fault::Storage("The disk is full; nothing was changed. Make room and try again.".to_owned())
            }
            SessionError::Checkpoint(_) | SessionError::HalfDone(_) => Fault::Failed(message),
            SessionError::ShuttingDown => Fault::Unavailable(message),
            SessionError::Journal(error) => error.into(),
        }
    }
}

impl From<TurnError> for Fault {
    fn from(error: TurnError) -> Self {
        match error {
            TurnError::Unknown => Fault::NotFound(error.to_string()),
            TurnError::TooFew { .. } => Fault::Gone(error.to_string()),
            TurnError::Journal(error) => error.into(),
        }
    }
}

impl From<JournalError> for Fault {
    fn from(error: JournalError) -> Self {
        let is_clients = matches!(error, JournalError::NoSession { .. } | JournalError::NotDeleted { .. });
        if !is_clients {
            tracing::error!(%error, "the journal failed a request");
        }
        match error {
            JournalError::DiskFull { .. } => Fault::Storage(
                "The server has no room left: its disk is full, or its --max-bytes is reached. What was acknowledged is \
                 safe; make room and try again."
                    .to_owned(),
            ),
            JournalError::NoSession { session } => Fault::NotFound(format!("Session not found: {session}")),
            JournalError::NotDeleted { .. } | JournalError::Conflict { .. } => Fault::Conflict(error.to_string()),
            JournalError::Damaged { .. } => Fault::Storage(
                "The server's journal is damaged; its log says where. Restore it from a backup.".to_owned(),
            ),
            JournalError::InUse { .. }
            | JournalError::Unusable { .. }
            | JournalError::TooNew { .. }
            | JournalError::Closed
            | JournalError::Malformed { .. }
            | JournalError::Storage { .. } => Fault::Internal,
        }
    }
}

/// A fault on its way out of a route of one family. `E::from` makes `?` work there.
macro_rules! family_error {
    ($name:ident, $family:expr) => {
        #[derive(Debug)]
        pub(crate) struct $name(pub(crate) Fault);

        impl<F: Into<Fault>> From<F> for $name {
            fn from(fault: F) -> Self {
                $name(fault.into())
            }
        }

        impl IntoResponse for $name {
            fn into_response(self) -> Response {
                self.0.into_response($family)
            }
        }
    };
}

family_error!(TolkaError, Family::Tolka);
family_error!(OnyxError, Family::Onyx);
family_error!(AgentSmithyError, Family::AgentSmithy);
family_error!(OpenCodeError, Family::OpenCode);
