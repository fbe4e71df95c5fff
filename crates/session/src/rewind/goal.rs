//! Where a rewind goes: which snapshot, and which turns it takes back.

use tolka_facts::event::{Noticed, PromptQueued};
use tolka_facts::{Event, MessageId, Tip, TurnId, compaction_name};
use tolka_journal::{Mark, MarkKind};

use super::history::History;
use super::{RewindRequest, Target, What};
use crate::SessionError;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Goal {
    /// The files go back to it.
    pub(crate) checkpoint: Option<String>,
    /// The first prompt that is taken back.
    pub(crate) message: Option<MessageId>,
    /// Where its turn started.
    pub(crate) from: Option<u64>,
    /// What turns did from here on is taken back.
    pub(crate) since: u64,
}

impl History {
    pub(crate) async fn goal(&self, tip: &Tip, request: &RewindRequest) -> Result<Goal, SessionError> {
        let (seq, checkpoint) = match &request.to {
            Target::Message(message) => {
                let seq = self.turn_in_sight(tip, message).await?;
                (seq, self.checkpoint_of_turn(seq, request.what).await?)
            }
            Target::Checkpoint(commit) => (self.named(commit).await?, Some(commit.clone())),
            Target::Base => {
                let base = tip.base.as_ref().ok_or_else(nothing_saved)?;
                (base.seq, Some(base.checkpoint.clone()))
            }
        };
        let mut goal = Goal { checkpoint, message: None, from: None, since: seq };
        if request.what == What::Conversation {
            goal.checkpoint = None;
        }
        if request.what != What::Files
            && let Some(first) = self.marks(MarkKind::TurnStart, seq, u64::MAX).await?.first()
        {
            goal.from = Some(*first);
            goal.message = self.prompt_of_turn(*first).await?;
        }
        Ok(goal)
    }

    /// The same of one that is not hidden for good. What was saved before it can still be named.
    pub(super) async fn turn_in_sight(&self, tip: &Tip, message: &MessageId) -> Result<u64, SessionError> {
        if tip.queue.iter().any(|queued| queued.prompt.message == *message) {
            return Err(SessionError::Waiting(message.clone()));
        }
        match self.mark(Mark::Hidden(message)).await? {
            Some(_) => Err(SessionError::NoSuchMessage(message.clone())),
            None => self.turn_of(message).await,
        }
    }

    /// Where the turn of a prompt, or of an answer, started.
    pub(crate) async fn turn_of(&self, message: &MessageId) -> Result<u64, SessionError> {
        let unknown = || SessionError::NoSuchMessage(message.clone());
        if let Some(step) = self.mark(Mark::Step(message)).await? {
            let before = self.journal.marks(&self.session, MarkKind::TurnStart, step, 1).await?;
            return before.first().copied().ok_or_else(unknown);
        }
        let prompt = self.mark(Mark::Message(message)).await?.ok_or_else(unknown)?;
        match self.fact(prompt).await?.as_deref().map(|fact| &fact.event) {
            Some(Event::PromptQueued(queued)) => self.turn_start(&queued.turn).await?.ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }

    /// Where a snapshot of this session was first named.
    pub(crate) async fn named(&self, commit: &str) -> Result<u64, SessionError> {
        let seq = self.mark(Mark::Checkpoint(commit)).await?;
        seq.ok_or_else(|| SessionError::NoSuchCheckpoint(commit.to_owned()))
    }

    pub(super) async fn checkpoint_of_turn(&self, seq: u64, what: What) -> Result<Option<String>, SessionError> {
        let fact = self.fact(seq).await?;
        match fact.as_deref().map(|fact| &fact.event) {
            Some(Event::TurnStarted(started)) if started.checkpoint.is_some() || what == What::Conversation => {
                Ok(started.checkpoint.clone())
            }
            _ => Err(SessionError::NoCheckpoint(self.why_not_saved(seq).await?)),
        }
    }

    /// The notice behind the start of a turn says it.
    async fn why_not_saved(&self, seq: u64) -> Result<String, SessionError> {
        let fact = self.fact(seq + 1).await?;
        let told = match fact.as_deref().map(|fact| &fact.event) {
            Some(Event::Noticed(Noticed { description: Some(words), .. })) => words.clone(),
            _ => "none was saved before this turn".to_owned(),
        };
        Ok(format!("{}; the conversation alone can go back", told.trim_end_matches('.')))
    }

    pub(super) async fn prompt_of_turn(&self, seq: u64) -> Result<Option<MessageId>, SessionError> {
        let fact = self.fact(seq).await?;
        match fact.as_deref().map(|fact| &fact.event) {
            Some(Event::TurnStarted(started)) => self.prompt(&started.turn).await,
            _ => Ok(None),
        }
    }

    async fn prompt(&self, turn: &TurnId) -> Result<Option<MessageId>, SessionError> {
        Ok(self.prompt_of(turn).await?.map(|prompt| prompt.message))
    }

    pub(crate) async fn prompt_of(&self, turn: &TurnId) -> Result<Option<PromptQueued>, SessionError> {
        let Some(seq) = self.mark(Mark::Prompt(turn)).await? else { return Ok(None) };
        let fact = self.fact(seq).await?;
        Ok(fact.as_deref().and_then(|fact| match &fact.event {
            Event::PromptQueued(queued) => Some(queued.clone()),
            _ => None,
        }))
    }

    /// How many of them there are from a place on.
    pub(super) async fn count(&self, from: Option<u64>) -> Result<u64, SessionError> {
        match from {
            Some(from) => Ok(self.messages(from, u64::MAX).await?.len() as u64),
            None => Ok(0),
        }
    }

    /// Prompts and answers of turns that started in `from..before`, and are not hidden for good.
    pub(crate) async fn messages(&self, from: u64, before: u64) -> Result<Vec<MessageId>, SessionError> {
        let mut seqs = Vec::new();
        for kind in [MarkKind::TurnStart, MarkKind::Steered, MarkKind::Step] {
            seqs.extend(self.marks(kind, from, before).await?);
        }
        seqs.sort_unstable();
        let mut messages = Vec::new();
        for seq in seqs {
            let fact = self.fact(seq).await?;
            let message = match fact.as_deref().map(|fact| &fact.event) {
                Some(Event::StepStarted(step)) => Some(step.message.clone()),
                Some(Event::CompactionStarted(_) | Event::CompactionEnded(_)) => {
                    fact.as_deref().map(|fact| compaction_name(fact.time, fact.seq))
                }
                Some(Event::TurnStarted(_)) => self.prompt_of_turn(seq).await?,
                Some(Event::PromptSteered(steered)) => self.prompt(&steered.turn).await?,
                _ => None,
            };
            let Some(message) = message else { continue };
            if self.mark(Mark::Hidden(&message)).await?.is_none() {
                messages.push(message);
            }
        }
        Ok(messages)
    }
}

pub(crate) fn nothing_saved() -> SessionError {
    SessionError::NoCheckpoint("nothing of this session was saved yet; send a prompt first".to_owned())
}
