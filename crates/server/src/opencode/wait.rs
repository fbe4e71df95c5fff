//! Waiting for the end of a turn, for clients that take its last message as the answer to their prompt.

use axum::response::Response;
use serde_json::Value;
use tolka_dialect::opencode::History;
use tolka_facts::event::Stop;
use tolka_facts::{Event, SessionId, Tip};
use tolka_session::Accepted;

use super::told;
use crate::app::App;
use crate::fault::Fault;
use crate::late;
use crate::stream::{Ending, until_end};

pub(super) async fn for_answer(app: App, session: SessionId, accepted: Accepted) -> Result<Response, Fault> {
    late::answer(ending(app, session, accepted)).await
}

/// `true` when the turn of a summary has ended, with or without one: its messages say which.
pub(super) async fn for_summary(app: App, session: SessionId, accepted: Accepted) -> Result<Response, Fault> {
    late::answer(async move {
        let mut voice = told::voice(&app.tongues, &session);
        match until_end(&app, &session, &accepted, &mut voice, |_, _| {}).await? {
            Ending::Over(Stop::EndTurn) => Ok(Value::Bool(true)),
            Ending::Over(stop) => Err(Fault::Failed(reason(stop, voice.tip(&session)))),
            Ending::Dropped => Err(dropped()),
            Ending::Deleted => Err(Fault::NotFound(format!("Session not found: {session}"))),
        }
    })
    .await
}

fn dropped() -> Fault {
    Fault::Conflict("The prompt was dropped from the queue before its turn came.".to_owned())
}

/// The last message of the agent, which also tells if the turn failed after it; an error if no message can tell it.
/// The other turns' messages are folded too, and do no harm.
async fn ending(app: App, session: SessionId, accepted: Accepted) -> Result<Value, Fault> {
    let (mut voice, mut history) = (told::voice(&app.tongues, &session), History::default());
    // The user's messages that the turn answers: its own, and those that steer it. Until it ends nothing else answers these.
    let mut asked = vec![accepted.message.clone()];
    let hear = |event: &Event, frame: &[u8]| {
        if let Event::PromptQueued(e) = event
            && e.steers.as_ref() == Some(&accepted.turn)
            && !asked.contains(&e.message)
        {
            asked.push(e.message.clone());
        }
        history.apply(frame);
    };
    match until_end(&app, &session, &accepted, &mut voice, hear).await? {
        Ending::Over(stop) => {
            let message = history.answer(&asked);
            message.ok_or_else(|| Fault::Failed(reason(stop, voice.tip(&session))))
        }
        Ending::Dropped => Err(dropped()),
        Ending::Deleted => Err(Fault::NotFound(format!("Session not found: {session}"))),
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
