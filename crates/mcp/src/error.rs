use std::time::Duration;

/// Why a server did not do what was asked of it, in words for the model and for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    #[error("it did not answer within {}", seconds(.0))]
    TimedOut(Duration),
    /// It answered with an error, or with something that is no answer.
    #[error("it refused: {message} (code {code})")]
    Refused { code: i64, message: String },
    #[error("what it answered cannot be used: {0}")]
    Unreadable(String),
    #[error("it wants to know who asks: {0}")]
    NeedsAuth(String),
    /// There is no connection, or there is none any more.
    #[error("{0}")]
    Gone(String),
}

impl McpError {
    /// It sends what is no message, and does not stop.
    pub(crate) fn flooded() -> Self {
        McpError::Gone("it sends what is no message of the protocol, again and again".to_owned())
    }
}

fn seconds(time: &Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1 => "a second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

/// A text of somebody else's, short enough for an error.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}
