//! A turn as one piece of JSON, for clients that do not stream.

use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tolka_facts::event::Stop;
use tolka_facts::{Event, SessionId, Tip};
use tolka_session::Accepted;

use super::checkpoints::session_name;
use super::telling::{DROPPED, channel, named};
use crate::app::App;
use crate::fault::Fault;
use crate::late;
use crate::stream::{Ending, Voice, until_end};

/// What of a turn's events goes into the answer.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Told {
    User {
        checkpoint: Option<String>,
    },
    ChatStart,
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
            Told::User { checkpoint } => {
                self.metadata.extend(checkpoint.map(|checkpoint| ("checkpoint".to_owned(), json!(checkpoint))));
            }
            // What was said before and after a tool call is two paragraphs.
            Told::ChatStart if !self.content.is_empty() => self.content += "\n\n",
            Told::Chat { content } => self.content += &content,
            Told::Error { error } => self.error = Some(error),
            Told::ChatStart | Told::Other => {}
        }
    }

    /// What was said before an error is in the history; an answer that looked whole would hide the error.
    fn finish(mut self, tip: &Tip, accepted: &Accepted, stop: Stop) -> Result<Value, Fault> {
        if let Some(error) = self.error {
            return Err(Fault::Failed(error));
        }
        if self.metadata.contains_key("checkpoint") {
            self.metadata.insert("session".to_owned(), json!(session_name(tip)));
        }
        self.metadata.insert("turn".to_owned(), json!(accepted.turn));
        self.metadata.insert("stop_reason".to_owned(), json!(stop));
        Ok(json!({ "content": self.content, "done": true, "dialog_id": tip.head.id, "metadata": self.metadata }))
    }
}

pub(super) async fn when_over(app: App, session: SessionId, accepted: Accepted) -> Result<Response, Fault> {
    let turn = accepted.turn.clone();
    let response = late::answer(ending(app, session.clone(), accepted)).await?;
    Ok(named(response, &session, &turn))
}

async fn ending(app: App, session: SessionId, accepted: Accepted) -> Result<Value, Fault> {
    let mut voice = Voice::new(&app.tongues, channel(&session));
    let (mut answer, mut is_own) = (Answer::default(), false);
    let hear = |event: &Event, frame: &[u8]| {
        is_own |= matches!(event, Event::TurnStarted(e) if e.turn == accepted.turn);
        if is_own {
            answer.hear(frame);
        }
    };
    match until_end(&app, &session, &accepted, &mut voice, hear).await? {
        Ending::Over(stop) => answer.finish(voice.tip(&session).ok_or(Fault::Internal)?, &accepted, stop),
        Ending::Dropped => Err(Fault::Conflict(DROPPED.to_owned())),
        Ending::Deleted => Err(Fault::NotFound("The dialog was deleted.".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use tolka_facts::{Base, Head, MessageId, TurnId};

    use super::*;

    fn finished(events: &[Value]) -> Result<Value, Fault> {
        let mut answer = Answer::default();
        events.iter().for_each(|event| answer.hear(event.to_string().as_bytes()));
        let (turn, message) = (TurnId::from("trn_1"), MessageId::from("msg_1"));
        let accepted = Accepted { turn, message, seq: 2, ahead: 0, repeated: false, steers: None };
        let head = Head { id: SessionId::from("ses_1"), ..Head::default() };
        let base = Base { checkpoint: "c0".to_owned(), seq: 3, approved: None, settled: 1 };
        let tip = Tip { head, base: Some(base), ..Tip::default() };
        answer.finish(&tip, &accepted, Stop::Cancelled)
    }

    #[test]
    fn the_answer_is_all_that_was_said() {
        let (start, end) = (json!({ "type": "chat_start" }), json!({ "type": "chat_end" }));
        let chat = |content: &str| json!({ "type": "chat", "content": content });
        let told = [
            json!({ "type": "user", "content": "hi", "checkpoint": "c1" }),
            json!({ "type": "reasoning", "content": "hm" }),
            start.clone(),
            chat("Hel"),
            chat("lo."),
            end.clone(),
            json!({ "type": "tool_call", "name": "read_file", "args": {} }),
            start,
            chat("Bye."),
            end,
        ];
        let metadata =
            json!({ "checkpoint": "c1", "session": "session_2", "turn": "trn_1", "stop_reason": "cancelled" });
        let expected = json!({ "content": "Hello.\n\nBye.", "done": true, "dialog_id": "ses_1", "metadata": metadata });
        assert_eq!(finished(&told).unwrap(), expected);
        let failed = finished(&[chat("Hel"), json!({ "type": "error", "error": "no" })]);
        assert!(matches!(failed, Err(Fault::Failed(words)) if words == "no"));
    }
}
