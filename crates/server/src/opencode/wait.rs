//! Waiting for the end of a turn, for clients that take its last message as the answer to their prompt.

use axum::response::Response;
use serde_json::Value;
use tolka_dialect::opencode::History;
use tolka_facts::event::Stop;
use tolka_facts::{Event, SessionId, Tip};
use tolka_journal::Scope;
use tolka_session::Accepted;

use super::messages;
use crate::app::App;
use crate::fault::Fault;
use crate::late;
use crate::stream::{Cursor, Follow, is_end_of};

const PAGE: usize = 256;

pub(super) async fn for_answer(app: App, session: SessionId, accepted: Accepted) -> Result<Response, Fault> {
    late::answer(ending(app, session, accepted)).await
}

/// The last message of the agent, which also tells if the turn failed after it; an error if no message can tell it.
/// Follows the session from the prompt to the end of its turn. It may wait in the queue for a while; what
/// other turns tell in the meantime is folded too, and does no harm.
async fn ending(app: App, session: SessionId, accepted: Accepted) -> Result<Value, Fault> {
    let before = accepted.seq.saturating_sub(1);
    let mut follow = Follow::new(app.journal().clone(), Scope::Session(session.clone()), before);
    let (mut voice, mut history) = (messages::voice(&app, &session), History::default());
    let mut stopping = app.stopping.clone();
    loop {
        let mut entries = tokio::select! {
            // On the way down the turn ends first, and that is a better answer.
            biased;
            entries = follow.next(PAGE) => entries?,
            _ = stopping.wait_for(|stopping| *stopping) => return Err(Fault::Unavailable(
                "The server is stopping. The prompt is kept; read the session's messages when it is back.".to_owned(),
            )),
        };
        let end = entries.iter().position(|entry| is_end_of(&accepted.turn, &entry.fact.event));
        entries.truncate(end.map_or(entries.len(), |end| end + 1));
        voice.payloads(&entries, Cursor::whole(before), |_, frame| history.apply(frame)).await?;
        let gone = || Fault::NotFound(format!("Session not found: {session}"));
        let last = entries.last().ok_or_else(gone)?;
        match &last.fact.event {
            _ if end.is_none() => {}
            Event::TurnEnded(ended) => {
                let message = history.answer(accepted.message.as_str());
                return message.ok_or_else(|| Fault::Failed(reason(ended.stop, voice.tip(&session))));
            }
            Event::PromptDropped(_) => {
                return Err(Fault::Conflict("The prompt was dropped from the queue before its turn came.".to_owned()));
            }
            _ => return Err(gone()),
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
