//! One boundary in a conversation, from which on it is hidden, though rewinds lie on each other: it is moved, or taken
//! away, by one fact, so that nobody and no prompt can come in between.

use tolka_facts::{MessageId, Rewind, Tip};

use super::goal::Goal;
use super::history::History;
use super::{Undo, What};
use crate::SessionError;

/// How a boundary gets to where it shall be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// By taking back all rewinds from this one on, with the files before them.
    Back(u64, Option<String>),
    To(Goal),
}

/// The first rewind that is taken back, and the files that were there before it.
pub(super) fn undone(tip: &Tip, undo: Undo) -> Result<(u64, Option<String>), SessionError> {
    let last = tip.rewinds.last().ok_or(match undo {
        Undo::This(seq) => SessionError::NotTheLast(seq),
        Undo::Last | Undo::All => SessionError::NothingToUndo,
    })?;
    match undo {
        Undo::This(seq) if seq != last.seq => Err(SessionError::NotTheLast(seq)),
        Undo::Last | Undo::This(_) => Ok((last.seq, last.before.clone())),
        Undo::All => match of_conversation(&tip.rewinds) {
            [] => Err(SessionError::NothingToUndo),
            all @ [first, ..] => Ok((first.seq, before(all))),
        },
    }
}

impl History {
    pub(super) async fn step_to(&self, tip: &Tip, message: MessageId, what: What) -> Result<Step, SessionError> {
        let from = self.turn_in_sight(tip, &message).await?;
        let rewinds = of_conversation(&tip.rewinds);
        let target = match what {
            What::Conversation => None,
            What::Files | What::Both => self.checkpoint_of_turn(from, what).await?,
        };
        let is_there = |rewinds: &[Rewind]| {
            let hides = rewinds.iter().rev().find_map(Rewind::hidden_from);
            let files = rewinds.iter().rev().find_map(|rewind| rewind.checkpoint.as_ref());
            let wanted = target.clone().or_else(|| before(rewinds));
            hides == Some(from) && files == wanted.as_ref()
        };
        if is_there(rewinds) {
            return Err(SessionError::AlreadyThere);
        }
        if let Some(at) = (1..rewinds.len()).rev().find(|at| is_there(&rewinds[..*at])) {
            return Ok(Step::Back(rewinds[at].seq, before(&rewinds[at..])));
        }
        let checkpoint = target.or_else(|| before(rewinds));
        let message = self.prompt_of_turn(from).await?;
        Ok(Step::To(Goal { checkpoint, message, from: Some(from), since: from }))
    }
}

/// From the first one that hides messages on. Those of files alone before it are no part of a boundary.
fn of_conversation(rewinds: &[Rewind]) -> &[Rewind] {
    let first = rewinds.iter().position(|rewind| rewind.hidden_from().is_some());
    first.map_or(&[], |first| &rewinds[first..])
}

/// The files before all of them; `None` if they moved none.
fn before(rewinds: &[Rewind]) -> Option<String> {
    rewinds.iter().find_map(|rewind| rewind.before.clone())
}
