//! What of a session's facts is told in its fork, and how.

use std::collections::HashMap;

use tolka_facts::event::{CheckpointSaved, Moment, PromptQueued, SessionChanged, TurnStarted};
use tolka_facts::{ArtifactId, Draft, Event, Fact, MessageId, RequestId, SessionId, TurnId};
use tolka_journal::Journal;

use super::ForkWorkspace;
use super::names::renewed;
use super::reach::Reach;
use crate::SessionError;

/// Goes through the facts in their order.
pub(super) struct Copyist<'a> {
    journal: &'a dyn Journal,
    fork: &'a SessionId,
    reach: &'a Reach,
    own: ForkWorkspace,
    /// Prompts that wait for their turn, and whether that is told here.
    waiting: HashMap<TurnId, bool>,
    /// In a turn that is not told, or after it.
    is_left_out: bool,
}

impl<'a> Copyist<'a> {
    pub(super) fn new(journal: &'a dyn Journal, fork: &'a SessionId, reach: &'a Reach, own: ForkWorkspace) -> Self {
        Copyist { journal, fork, reach, own, waiting: HashMap::new(), is_left_out: false }
    }

    /// `None`: it is not told. What the agent sent stays as it came: it has the agent's own names, and so have calls.
    pub(super) async fn copy(&mut self, fact: &Fact) -> Result<Option<Draft>, SessionError> {
        let event = match &fact.event {
            Event::PromptQueued(e) => {
                let is_told = self.reach.has(self.journal, &e.turn, &e.message).await?;
                self.waiting.insert(e.turn.clone(), is_told);
                is_told.then(|| self.prompt(e))
            }
            Event::PromptDropped(e) => {
                self.waiting.remove(&e.turn);
                None
            }
            Event::TurnStarted(e) => {
                self.is_left_out = self.waiting.remove(&e.turn) == Some(false);
                (!self.is_left_out).then(|| self.start(e))
            }
            Event::PromptSteered(e) => {
                self.waiting.remove(&e.turn);
                self.said(&fact.event)
            }
            Event::SessionChanged(e) => changed(e),
            Event::CommandsSet(_) => Some(fact.event.clone()),
            event => self.said(event),
        };
        Ok(event.map(|event| Draft { cause: fact.cause, event, raw: fact.raw.clone() }))
    }

    /// The keys of requests are those of another session.
    fn prompt(&self, e: &PromptQueued) -> Event {
        let steers = e.steers.as_ref().map(|turn| self.turn(turn));
        PromptQueued { turn: self.turn(&e.turn), message: self.message(&e.message), key: None, steers, ..e.clone() }
            .into()
    }

    /// The snapshots of another folder are nothing to go back to.
    fn start(&self, e: &TurnStarted) -> Event {
        let checkpoint = e.checkpoint.clone().filter(|_| self.own == ForkWorkspace::InPlace);
        TurnStarted { turn: self.turn(&e.turn), checkpoint }.into()
    }

    /// What a turn changed, for who wants to take it back here.
    fn saved(&self, e: &CheckpointSaved) -> Option<Event> {
        let is_told = e.moment == Some(Moment::AfterTurn) && self.own == ForkWorkspace::InPlace;
        let turn = e.turn.as_ref().map(|turn| self.turn(turn));
        is_told.then(|| CheckpointSaved { turn, total: None, ..e.clone() }.into())
    }

    /// What stands in a turn that is told, or after it.
    fn said(&self, event: &Event) -> Option<Event> {
        if self.is_left_out {
            return None;
        }
        let mut event = event.clone();
        match &mut event {
            Event::PromptSteered(e) => (e.turn, e.into) = (self.turn(&e.turn), self.turn(&e.into)),
            Event::TurnEnded(e) => e.turn = self.turn(&e.turn),
            Event::StepStarted(e) => e.message = self.message(&e.message),
            Event::StepEnded(e) => e.message = self.message(&e.message),
            Event::ArtifactSaved(e) => e.id = ArtifactId::from(renewed(self.fork, e.id.as_str())),
            Event::PermissionAsked(e) => e.request = self.request(&e.request),
            Event::PermissionAnswered(e) => e.request = self.request(&e.request),
            Event::QuestionAsked(e) => e.request = self.request(&e.request),
            Event::QuestionAnswered(e) => e.request = self.request(&e.request),
            Event::CompactionEnded(e) => e.keeps = e.keeps.as_ref().map(|message| self.message(message)),
            Event::CheckpointSaved(e) => return self.saved(e),
            Event::TextAppended(_)
            | Event::ThoughtAppended(_)
            | Event::ToolChanged(_)
            | Event::InputAppended(_)
            | Event::OutputAppended(_)
            | Event::PlanSet(_)
            | Event::ModeSet(_)
            | Event::CommandsSet(_)
            | Event::UsageSet(_)
            | Event::Noticed(_)
            | Event::FileChanged(_)
            | Event::CompactionStarted(_)
            | Event::Failed(_)
            | Event::Foreign(_)
            | Event::RetryScheduled(_) => {}
            // What was done with the other session, and with its files.
            Event::SessionCreated(_)
            | Event::SessionChanged(_)
            | Event::SessionDeleted(_)
            | Event::SessionForked(_)
            | Event::RewindStarted(_)
            | Event::Rewound(_)
            | Event::RewindFailed(_)
            | Event::Unrewound(_)
            | Event::MessageHidden(_)
            | Event::Approved(_)
            | Event::FilesMoved(_)
            | Event::ProcessStarted(_)
            | Event::ProcessEnded(_) => return None,
            // Told before, by their own rules.
            Event::PromptQueued(_) | Event::PromptDropped(_) | Event::TurnStarted(_) => return None,
            // Of the server's own journal.
            Event::InstanceDisposed(_)
            | Event::VersionChanged(_)
            | Event::UpdateFound(_)
            | Event::BranchChanged(_)
            | Event::PtyChanged(_)
            | Event::SessionChosen(_) => return None,
        }
        Some(event)
    }

    fn turn(&self, id: &TurnId) -> TurnId {
        renewed(self.fork, id.as_str()).into()
    }

    fn message(&self, id: &MessageId) -> MessageId {
        renewed(self.fork, id.as_str()).into()
    }

    fn request(&self, id: &RequestId) -> RequestId {
        renewed(self.fork, id.as_str()).into()
    }
}

/// How it works goes along. It has a title of its own, and is not put away.
fn changed(e: &SessionChanged) -> Option<Event> {
    let change = SessionChanged { title: None, archived: None, ..e.clone() };
    let is_any = change.mode.is_some() || change.model.is_some() || change.agent.is_some();
    is_any.then(|| change.into())
}
