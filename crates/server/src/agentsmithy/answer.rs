//! A turn as one piece of JSON, for clients that do not stream.

use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tolka_facts::{Event, SessionId};
use tolka_journal::Scope;
use tolka_session::Accepted;

use super::telling::{channel, why_never};
use crate::app::App;
use crate::fault::Fault;
use crate::late;
use crate::stream::{Cursor, Follow, Voice, is_end_of};

const PAGE: usize = 256;

/// What of a turn's events goes into the answer.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Told {
    User {
        checkpoint: Option<String>,
        session: Option<String>,
    },
    Chat {
        content: String,
    },
    Error {
        error: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Default)]
struct Answer {
    content: String,
    metadata: Map<String, Value>,
    error: Option<String>,
}

impl Answer {
    fn hear(&mut self, event: &[u8]) {
        match serde_json::from_slice(event).unwrap_or(Told::Other) {
            Told::User { checkpoint, session } => {
                for (name, value) in [("checkpoint", checkpoint), ("session", session)] {
                    self.metadata.extend(value.map(|value| (name.to_owned(), json!(value))));
                }
            }
            Told::Chat { content } => self.content += &content,
            Told::Error { error } => self.error = Some(error),
            Told::Other => {}
        }
    }

    /// What was said before an error is in the history; an answer that looked whole would hide the error.
    fn finish(mut self, session: &SessionId, accepted: &Accepted) -> Result<Value, Fault> {
        if let Some(error) = self.error {
            return Err(Fault::Failed(error));
        }
        self.metadata.insert("turn".to_owned(), json!(accepted.turn));
        Ok(json!({ "content": self.content, "done": true, "dialog_id": session, "metadata": self.metadata }))
    }
}

pub(super) async fn when_over(app: App, session: SessionId, accepted: Accepted) -> Result<Response, Fault> {
    late::answer(ending(app, session, accepted)).await
}

/// Follows the session from the prompt to the end of its turn. It may wait in the queue for a while; what other
/// turns tell in the meantime is not its own.
async fn ending(app: App, session: SessionId, accepted: Accepted) -> Result<Value, Fault> {
    let mut follow = Follow::new(app.journal().clone(), Scope::Session(session.clone()), accepted.seq);
    let mut voice = Voice::new(app.journal().clone(), channel(&session));
    let mut answer = Answer::default();
    let mut is_own = false;
    let mut stopping = app.stopping.clone();
    loop {
        let entries = tokio::select! {
            // On the way down the turn ends first, and that is a better answer.
            biased;
            entries = follow.next(PAGE) => entries?,
            _ = stopping.wait_for(|stopping| *stopping) => return Err(Fault::Unavailable(
                "The server is stopping. The message is kept; read the dialog's history when it is back.".to_owned(),
            )),
        };
        if entries.is_empty() {
            return Err(Fault::NotFound("The dialog was deleted.".to_owned()));
        }
        for entry in &entries {
            let event = &entry.fact.event;
            is_own |= matches!(event, Event::TurnStarted(e) if e.turn == accepted.turn);
            let told = |_, frame: &[u8]| {
                if is_own {
                    answer.hear(frame);
                }
            };
            voice.payloads(std::slice::from_ref(entry), Cursor::whole(0), told).await?;
            if is_end_of(&accepted.turn, event) {
                return if is_own {
                    answer.finish(&session, &accepted)
                } else {
                    Err(Fault::Conflict(why_never(event).to_owned()))
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tolka_facts::{MessageId, TurnId};

    use super::*;

    fn finished(events: &[Value]) -> Result<Value, Fault> {
        let mut answer = Answer::default();
        events.iter().for_each(|event| answer.hear(event.to_string().as_bytes()));
        let (turn, message) = (TurnId::from("trn_1"), MessageId::from("msg_1"));
        let accepted = Accepted { turn, message, seq: 2, ahead: 0, repeated: false };
        answer.finish(&SessionId::from("ses_1"), &accepted)
    }

    #[test]
    fn the_answer_is_all_that_was_said() {
        let user = json!({ "type": "user", "content": "hi", "checkpoint": "c1" });
        let (one, two) = (json!({ "type": "chat", "content": "Hel" }), json!({ "type": "chat", "content": "lo" }));
        let thought = json!({ "type": "reasoning", "content": "hm" });
        let expected = json!({
            "content": "Hello", "done": true, "dialog_id": "ses_1", "metadata": { "checkpoint": "c1", "turn": "trn_1" },
        });
        assert_eq!(finished(&[user, thought, one, json!({ "type": "chat_end" }), two]).unwrap(), expected);
        let failed =
            finished(&[json!({ "type": "chat", "content": "Hel" }), json!({ "type": "error", "error": "no" })]);
        assert!(matches!(failed, Err(Fault::Failed(words)) if words == "no"));
    }
}
