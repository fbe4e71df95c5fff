//! What HTTP adds to a stream: rules of the answer itself, which no line of it can break.

use std::time::Duration;

use anyhow::Result;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use tolka_dialect::{Finding, Rule};

const STATUS: Rule = Rule { name: "http-status", section: "HTTP", demand: "A stream is answered with status 200." };
const TYPE: Rule = Rule {
    name: "http-content-type",
    section: "HTML, Server-sent events",
    demand: "The answer's content type is text/event-stream; browsers refuse any other.",
};

/// They hold for every dialect.
pub(crate) const RULES: [&Rule; 2] = [&STATUS, &TYPE];

/// Of an answer that is no stream, enough to see what it is.
const SHOWN: usize = 200;
/// An answer that is no stream is waited for so long.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Answer {
    status: StatusCode,
    content_type: Option<String>,
    /// What it says, if it is no stream.
    says: String,
}

impl Answer {
    /// The body comes along if it can be judged. What is plainly something else, as an error or a page, would only
    /// break every rule that there is.
    pub(super) async fn hear(response: Response<Incoming>) -> Result<(Answer, Option<Incoming>)> {
        let (head, body) = response.into_parts();
        let content_type = head.headers.get(CONTENT_TYPE);
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let mut answer = Answer { status: head.status, content_type, says: String::new() };
        if answer.status == StatusCode::OK && !answer.is("application/json") && !answer.is("text/html") {
            return Ok((answer, Some(body)));
        }
        if let Ok(Ok(body)) = tokio::time::timeout(PATIENCE, Limited::new(body, 64 * 1024).collect()).await {
            let text = String::from_utf8_lossy(&body.to_bytes()).split_whitespace().collect::<Vec<_>>().join(" ");
            answer.says = text.chars().take(SHOWN).collect();
        }
        Ok((answer, None))
    }

    pub(super) fn judge(&self, found: &mut Vec<Finding>) {
        let mut add = |rule, problem: String| {
            let says = if self.says.is_empty() { String::new() } else { format!(": {}", self.says) };
            found.push(Finding::new(0, rule, format!("{problem}{says}")));
        };
        if self.status != StatusCode::OK {
            add(&STATUS, format!("the status is {}", self.status));
        } else if !self.is("text/event-stream") {
            match &self.content_type {
                Some(content_type) => add(&TYPE, format!("the content type is {content_type}")),
                None => add(&TYPE, "there is no content type".to_owned()),
            }
        }
    }

    fn is(&self, wanted: &str) -> bool {
        let essence = self.content_type.as_deref().and_then(|value| value.split(';').next());
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(wanted))
    }
}
