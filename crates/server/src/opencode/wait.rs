//! Waiting for the end of a turn, for clients that take its last message as the answer to their prompt.

use axum::response::Response;
use serde_json::Value;
use tolka_dialect::opencode::History;
use tolka_facts::event::Stop;
use tolka_facts::{Event, MessageId, SessionId, Tip, TurnId};
use tolka_session::Accepted;

use super::told;
use crate::app::App;
use crate::fault::Fault;
use crate::late;
use crate::stream::{Ending, until_end};

pub(super) async fn for_answer(app: App, session: SessionId, accepted: Accepted) -> Result<Response, Fault> {
    late::answer(ending(app, session, accepted)).await
}

/// The last message of the agent, which also tells if the turn failed after it; an error if no message can tell it.
/// The other turns' messages are folded too, and do no harm.
async fn ending(app: App, session: SessionId, accepted: Accepted) -> Result<Value, Fault> {
    let (mut voice, mut history) = (told::voice(&app.tongues, &session), History::default());
    let mut asked = Asked { waiting: Vec::new(), messages: vec![accepted.message.clone()] };
    let hear = |event: &Event, frame: &[u8]| {
        asked.hear(&accepted.turn, event);
        history.apply(frame);
    };
    match until_end(&app, &session, &accepted, &mut voice, hear).await? {
        Ending::Over(stop) => {
            let message = history.answer(&asked.messages);
            message.ok_or_else(|| Fault::Failed(reason(stop, voice.tip(&session))))
        }
        Ending::Dropped => {
            Err(Fault::Conflict("The prompt was dropped from the queue before its turn came.".to_owned()))
        }
        Ending::Deleted => Err(Fault::NotFound(format!("Session not found: {session}"))),
    }
}

/// The user's messages that the turn answers: its own, and those that steered it.
struct Asked {
    waiting: Vec<(TurnId, MessageId)>,
    messages: Vec<MessageId>,
}

impl Asked {
    fn hear(&mut self, turn: &TurnId, event: &Event) {
        match event {
            Event::PromptQueued(e) if e.steers.as_ref() == Some(turn) => {
                self.waiting.push((e.turn.clone(), e.message.clone()));
            }
            Event::PromptSteered(e) if e.into == *turn => {
                let taken = self.waiting.iter().filter(|(waiting, _)| *waiting == e.turn);
                self.messages.extend(taken.map(|(_, message)| message.clone()));
            }
            _ => {}
        }
    }
}

fn reason(stop: Stop, tip: Option<&Tip>) -> String {
    let failure = tip.and_then(|tip| tip.ended_turn.as_ref()).and_then(|turn| turn.failure.as_ref());
    match (stop, failure) {
        (Stop::Cancelled, _) => "Aborted".to_owned(),
        (Stop::Interrupted, _) => "The server stopped in the middle of this turn".to_owned(),
        (_, Some(failure)) => failure.message.clone(),
        (_, None) => "The agent ended its turn without a word".to_owned(),
    }
}
