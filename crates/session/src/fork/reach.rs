//! How far a fork goes: which facts of the other session count, and which turns of them were taken back by then.

use std::sync::Arc;

use tolka_facts::{MessageId, SessionId, Tip, TurnId};
use tolka_journal::{Journal, Mark, MarkKind};

use crate::SessionError;
use crate::rewind::History;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) session: SessionId,
    /// The last fact that counts. No turn is open after it.
    pub(super) at: u64,
    /// Where the turn started that the fork goes up to. `None`: it goes up to now.
    pub(super) before: Option<u64>,
    /// Turns that started here or later are taken back and may yet be brought back.
    hidden_from: Option<u64>,
}

impl Reach {
    pub(super) async fn find(
        journal: &Arc<dyn Journal>,
        tip: &Tip,
        before: Option<&MessageId>,
    ) -> Result<Self, SessionError> {
        let session = tip.head.id.clone();
        let waits = |message: &MessageId| tip.queue.iter().any(|queued| queued.prompt.message == *message);
        let start = match before.filter(|message| !waits(message)) {
            Some(message) => Some(History::of(journal.clone(), &tip.head).turn_of(message).await?),
            None => None,
        };
        let Some(start) = start else {
            let at = tip.turn.as_ref().map_or(tip.seq, |open| open.first_seq - 1);
            return Ok(Reach { session, at, before: None, hidden_from: tip.hidden_from() });
        };
        // What had been taken back when a turn started is hidden for good.
        Ok(Reach { session, at: start - 1, before: Some(start), hidden_from: None })
    }

    /// Whether the turn of this prompt is told in the fork.
    pub(super) async fn has(
        &self,
        journal: &dyn Journal,
        turn: &TurnId,
        message: &MessageId,
    ) -> Result<bool, SessionError> {
        let is_before = |seq: u64| seq <= self.at;
        let hidden = mark(journal, &self.session, Mark::Hidden(message)).await?;
        if hidden.is_some_and(is_before) {
            return Ok(false);
        }
        if let Some(start) = mark(journal, &self.session, Mark::TurnStart(turn)).await? {
            return Ok(is_before(start) && !self.is_rewound(start));
        }
        let Some(taken) = mark(journal, &self.session, Mark::Steered(turn)).await? else { return Ok(false) };
        // By the turn that was open there.
        let open = journal.marks(&self.session, MarkKind::TurnStart, taken, 1).await?;
        Ok(is_before(taken) && open.first().is_some_and(|start| !self.is_rewound(*start)))
    }

    fn is_rewound(&self, start: u64) -> bool {
        self.hidden_from.is_some_and(|from| from <= start)
    }
}

async fn mark(journal: &dyn Journal, session: &SessionId, mark: Mark<'_>) -> Result<Option<u64>, SessionError> {
    Ok(journal.mark(session, &mark.to_string()).await?)
}
