//! Who keeps an actor's ledger: gathers what is told into batches, holds what the disk refuses, and knows who waits until
//! their words are durable.

use std::sync::Arc;

use tokio::sync::oneshot;
use tolka_agent::Said;
use tolka_facts::{Draft, Tip};
use tolka_journal::{Journal, JournalError};

use crate::SessionError;
use crate::fork::Copied;
use crate::ledger::Ledger;
use crate::told::Told;
use crate::turn::RunningTurn;

pub(crate) struct Clerk {
    ledger: Ledger,
    /// Told by the agent and refused by the disk; it goes first when there is room again.
    backlog: Told,
    /// Those who wait until what they told is durable.
    settling: Vec<oneshot::Sender<()>>,
    broken: bool,
}

impl Clerk {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Clerk { ledger, backlog: Told::default(), settling: Vec::new(), broken: false }
    }

    /// After the last fact that is durable.
    pub(crate) fn tip(&self) -> &Tip {
        &self.ledger.tip
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        self.ledger.journal()
    }

    /// Whether something waits for room on the disk; nothing more is heard until it has gone.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Somebody else wrote, or the journal refuses for good: the truth is no longer known here.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(crate) fn drop_backlog(&mut self) {
        self.backlog = Told::default();
    }

    /// Takes what was said and whatever else is ready, so that a burst is one commit. While one is on its way the next is
    /// gathered; it goes when that one is durable, so that the journal never has two of them to order.
    pub(crate) async fn hear(&mut self, turn: &mut RunningTurn, said: Said) {
        let (mut told, mut settling) = (Told::default(), Vec::new());
        turn.take(said, &mut told, &mut settling);
        loop {
            while !told.is_full()
                && let Some(said) = turn.try_more()
            {
                turn.take(said, &mut told, &mut settling);
            }
            if told.is_full() || !self.ledger.is_writing() {
                break;
            }
            tokio::select! {
                biased;
                answer = self.ledger.answer() => self.land(answer),
                said = turn.more() => turn.take(said, &mut told, &mut settling),
            }
        }
        if told.is_empty() || self.is_blocked() {
            self.backlog.append(told);
            self.settling.extend(settling);
            return self.settled();
        }
        // A full one is made ready while the one before it is still written.
        let batch = self.ledger.prepare(told);
        self.settle().await;
        self.settling.extend(settling);
        if self.is_blocked() {
            self.backlog.append(batch.take_back());
        } else {
            self.ledger.send(batch).await;
        }
    }

    /// Takes the last words of a turn that was stopped.
    pub(crate) async fn hear_out(&mut self, turn: &mut RunningTurn) {
        self.settle().await;
        while let Some(said) = turn.last_word().await {
            turn.take(said, &mut self.backlog, &mut self.settling);
            // What is still told may wait for the room that this takes.
            if self.backlog.is_full() {
                self.append_or_keep(Vec::new()).await;
            }
        }
        self.append_or_keep(Vec::new()).await;
    }

    /// Tells those who wait that all before them is durable, if it is.
    fn settled(&mut self) {
        if self.backlog.is_empty() && !self.ledger.is_writing() {
            for done in self.settling.drain(..) {
                let _ = done.send(());
            }
        }
    }

    /// Waits until nothing is on its way: what follows acts on what is durable.
    pub(crate) async fn settle(&mut self) {
        if self.ledger.is_writing() {
            let answer = self.ledger.answer().await;
            self.land(answer);
        }
    }

    /// The journal's answer to what is on its way, for [`Clerk::land`]; it pends while nothing is.
    pub(crate) async fn answer(&mut self) -> Result<(), JournalError> {
        self.ledger.answer().await
    }

    pub(crate) fn land(&mut self, answer: Result<(), JournalError>) {
        match self.ledger.land(answer) {
            Ok(()) => self.settled(),
            Err((told, error)) => {
                let session = &self.ledger.session;
                tracing::error!(%session, %error, facts = told.len(), "facts cannot be written");
                self.broken |= !may_pass(&error);
                self.backlog = *told;
            }
        }
    }

    /// For what happened and must be told: it waits if the disk refuses it.
    pub(crate) async fn append_or_keep(&mut self, drafts: Vec<Draft>) {
        let mut told = Told::default();
        told.push_all(drafts);
        self.tell(told).await;
    }

    /// The same with contents.
    pub(crate) async fn tell(&mut self, told: Told) {
        self.settle().await;
        let mut all = std::mem::take(&mut self.backlog);
        all.append(told);
        if all.is_empty() {
            return self.settled();
        }
        let batch = self.ledger.prepare(all);
        self.ledger.send(batch).await;
        self.settle().await;
    }

    /// For a fork that is being made: nothing else is told in it.
    pub(crate) async fn copy(&mut self, facts: Vec<Copied>) -> Result<(), SessionError> {
        self.settle().await;
        self.ledger.copy(facts).await.map_err(|error| {
            self.broken |= !may_pass(&error);
            error.into()
        })
    }

    /// For what a client asked: it is told at once if it cannot be. What the agent told before goes first.
    pub(crate) async fn append(&mut self, drafts: Vec<Draft>) -> Result<(), SessionError> {
        self.settle().await;
        let waiting = self.backlog.extent();
        let mut all = std::mem::take(&mut self.backlog);
        all.push_all(drafts);
        self.ledger.append(all).await.map_err(|(mut told, error)| {
            told.truncate(waiting);
            self.backlog = *told;
            self.broken |= !may_pass(&error);
            error
        })?;
        self.settled();
        Ok(())
    }
}

/// Whether waiting can help. A conflict or a refusal cannot pass: the actor is made again from the journal.
fn may_pass(error: &JournalError) -> bool {
    matches!(error, JournalError::DiskFull { .. } | JournalError::Storage { .. })
}
