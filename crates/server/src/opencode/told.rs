//! Messages by the places where they were first told, which is their order in every list.
//!
//! A message is told in few places: a prompt where it was queued and in its turn, which may be much later and may have
//! parts for it; a step from its start until its calls have ended. Only these are folded, and only the wanted messages are
//! in memory, whatever lies between. So neither a queue that is never empty nor a long turn makes a page dear, but for a
//! page with the prompt of a long turn, which takes time.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::Value;
use tolka_dialect::opencode::{History, Profile};
use tolka_dialect::{Dialect, Growing};
use tolka_facts::{Event, MessageId, OpenTurn, SessionId, Tip, TurnId, compaction_name};
use tolka_journal::{Entry, Journal, JournalError, Mark, MarkKind, Scope, tip_at};

use crate::past;
use crate::stream::{Channel, Cursor, Dress, Tongues, Voice, Whose};

const PAGE: u64 = 512;
/// Read first at a place: often a prompt is all that is wanted there.
const FEW: u64 = 32;

/// A voice for [`History`], which reads this profile.
pub(super) fn voice(tongues: &Tongues, session: &SessionId) -> Voice {
    let dialect = Dialect::OpenCode(Profile::Current);
    // Payloads are never dressed; any dress will do.
    let channel = Channel { whose: Whose::Session(session.clone()), dialect, dress: Dress::Positions };
    Voice::new(tongues, channel)
}

/// The last places before one where a message was first told, in their order.
pub(super) async fn places(
    journal: &dyn Journal,
    session: &SessionId,
    before: u64,
    limit: usize,
) -> Result<Vec<u64>, JournalError> {
    let mut places = journal.marks(session, MarkKind::Message, before, limit).await?;
    places.extend(journal.marks(session, MarkKind::Step, before, limit).await?);
    places.sort_unstable();
    places.drain(..places.len().saturating_sub(limit));
    Ok(places)
}

pub(super) async fn place(
    journal: &dyn Journal,
    session: &SessionId,
    message: &MessageId,
) -> Result<Option<u64>, JournalError> {
    match journal.mark(session, &Mark::Message(message).to_string()).await? {
        Some(place) => Ok(Some(place)),
        None => journal.mark(session, &Mark::Step(message).to_string()).await,
    }
}

/// A session up to an end.
pub(super) struct Told {
    journal: Arc<dyn Journal>,
    session: SessionId,
    end: u64,
    voice: Voice,
    /// The last fact that was spoken.
    at: u64,
}

/// What is folded of the messages that are wanted.
#[derive(Default)]
struct Fold {
    history: History,
    messages: HashSet<MessageId>,
    /// Prompts whose turns have not come.
    waiting: Vec<(TurnId, MessageId)>,
}

impl Told {
    pub(super) fn new(tongues: &Tongues, session: &SessionId, end: u64) -> Self {
        let voice = voice(tongues, session);
        Told { journal: tongues.journal().clone(), session: session.clone(), end, voice, at: 0 }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// The messages of some places in their order as they are at the end, but for those that are gone by then.
    pub(super) async fn messages(&mut self, places: &[u64]) -> Result<Vec<Value>, JournalError> {
        let (mut fold, mut points) = (Fold::default(), places.iter().copied().collect::<BTreeSet<u64>>());
        if points.first().is_some_and(|first| *first <= self.at) {
            self.at = 0;
        }
        while let Some(point) = points.pop_first() {
            if point <= self.at {
                continue;
            }
            // To take a voice up elsewhere may cost as much as to go on.
            if point - self.at > PAGE {
                self.at = point - 1;
            }
            let mut size = FEW.max(point - self.at);
            while self.at < point || self.is_open(&fold) {
                let wanted = usize::try_from(size.min(self.end.saturating_sub(self.at))).unwrap_or_default();
                let facts = self.journal.read(&Scope::Session(self.session.clone()), self.at, wanted).await?;
                if facts.is_empty() {
                    break;
                }
                for fact in &facts {
                    let turn = self.take(fact, places, &mut fold).await?;
                    points.extend(turn);
                }
                size = PAGE;
            }
        }
        let gone = gone(self.journal.as_ref(), &self.session, self.end, &fold).await?;
        let is_gone = |message: &Value| message["info"]["id"].as_str().is_some_and(|id| gone.contains(&id.into()));
        Ok(fold.history.messages().filter(|message| !is_gone(message)).collect())
    }

    /// Where the turn of the prompt starts that the fact is, if it is wanted.
    async fn take(&mut self, fact: &Entry, places: &[u64], fold: &mut Fold) -> Result<Option<u64>, JournalError> {
        self.at = fact.place;
        let is_wanted = places.binary_search(&fact.place).is_ok();
        let one = std::slice::from_ref(fact);
        let history = &mut fold.history;
        // Only what a call came to is listed, and one that still runs has come to something at the end.
        self.voice.set_growing(if fact.place < self.end { Growing::Held } else { Growing::Told });
        let each = |_, frame: &[u8]| if is_wanted { history.apply(frame) } else { history.apply_to_known(frame) };
        self.voice.payloads(one, Cursor::whole(0), each).await?;
        match &fact.fact.event {
            Event::CompactionStarted(_) | Event::CompactionEnded(_) if is_wanted => {
                fold.messages.insert(compaction_name(fact.fact.time, fact.fact.seq));
            }
            Event::StepStarted(e) if is_wanted => {
                fold.messages.insert(e.message.clone());
            }
            Event::PromptQueued(e) if is_wanted => {
                fold.messages.insert(e.message.clone());
                let mark = async |mark: Mark<'_>| self.journal.mark(&self.session, &mark.to_string()).await;
                let start = mark(Mark::TurnStart(&e.turn)).await?;
                let taken = if start.is_none() { mark(Mark::Steered(&e.turn)).await? } else { start };
                if taken.is_none_or(|taken| taken > self.end) {
                    fold.waiting.push((e.turn.clone(), e.message.clone()));
                }
                return Ok(start.filter(|start| *start <= self.end));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Whether the facts that follow may change a message: its turn or its step is open, or a call of it.
    fn is_open(&self, fold: &Fold) -> bool {
        let wanted = |message: &MessageId| fold.messages.contains(message);
        let is_open = |turn: &OpenTurn| {
            let step = turn.step.as_ref();
            wanted(&turn.message)
                // How the turn ends belongs to the last step, until another one starts.
                || step.is_none_or(|step| wanted(&step.message))
                || turn.text.as_ref().is_some_and(|text| wanted(&text.message))
                || turn.open_tools().any(|tool| wanted(&tool.message))
        };
        let tip = self.voice.tip(&self.session).filter(|tip| tip.seq == self.at);
        tip.and_then(|tip: &Tip| tip.turn.as_ref()).is_some_and(is_open)
    }
}

/// Those that were hidden, or dropped from the queue, also after what was folded.
async fn gone(
    journal: &dyn Journal,
    session: &SessionId,
    end: u64,
    fold: &Fold,
) -> Result<HashSet<MessageId>, JournalError> {
    let mut gone = past::hidden(journal, session, 0, end, &fold.messages).await?;
    if !fold.waiting.is_empty() {
        let tip = tip_at(journal, session, end).await?;
        let waits: HashSet<&TurnId> = tip.queue.iter().map(|queued| &queued.prompt.turn).collect();
        let dropped = fold.waiting.iter().filter(|(turn, _)| !waits.contains(turn));
        gone.extend(dropped.map(|(_, message)| message.clone()));
    }
    Ok(gone)
}

#[cfg(test)]
mod tests;
