//! How a turn ends, and the wait for it.

use tolka_facts::event::{Stop, TurnEnded};
use tolka_facts::{Event, SessionId, TurnId};
use tolka_journal::Scope;
use tolka_session::Accepted;

use super::{Cursor, Follow, Voice};
use crate::app::App;
use crate::fault::Fault;

const PAGE: usize = 256;

/// Why nothing more will come of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Over(Stop),
    /// It will never start: its prompt was taken out of the queue.
    Dropped,
    /// The session went, and the turn with it.
    Deleted,
}

impl Ending {
    /// What this event is the end of, if it ends the turn.
    pub(crate) fn of(turn: &TurnId, event: &Event) -> Option<Self> {
        match event {
            Event::TurnEnded(TurnEnded { turn: ended, stop, .. }) => (ended == turn).then_some(Ending::Over(*stop)),
            Event::PromptDropped(e) => (e.turn == *turn).then_some(Ending::Dropped),
            Event::SessionDeleted(_) => Some(Ending::Deleted),
            _ => None,
        }
    }
}

/// Follows the session from the prompt to the end of its turn. The prompt may wait in the queue for a while: what other
/// turns tell in the meantime is heard as well.
pub(crate) async fn until_end(
    app: &App,
    session: &SessionId,
    accepted: &Accepted,
    voice: &mut Voice,
    mut hear: impl FnMut(&Event, &[u8]),
) -> Result<Ending, Fault> {
    let before = accepted.seq.saturating_sub(1);
    let mut follow = Follow::new(app.journal().clone(), Scope::Session(session.clone()), before);
    let mut stopping = app.stopping.clone();
    let mut turn = accepted.turn.clone();
    loop {
        let entries = tokio::select! {
            // On the way down the turn ends first, and that is a better answer.
            biased;
            entries = follow.next(PAGE) => entries?,
            _ = stopping.wait_for(|stopping| *stopping) => return Err(Fault::Unavailable(
                "The server is stopping. The prompt is kept; read its answer in the history when the server is back."
                    .to_owned(),
            )),
        };
        if entries.is_empty() {
            return Ok(Ending::Deleted);
        }
        for entry in &entries {
            let event = &entry.fact.event;
            let tell = |_, frame: &[u8]| hear(event, frame);
            voice.payloads(std::slice::from_ref(entry), Cursor::whole(before), tell).await?;
            match event {
                // It has no turn of its own: what comes of it is what comes of the one that took it.
                Event::PromptSteered(e) if e.turn == turn => turn.clone_from(&e.into),
                _ => {
                    if let Some(ending) = Ending::of(&turn, event) {
                        return Ok(ending);
                    }
                }
            }
        }
    }
}
