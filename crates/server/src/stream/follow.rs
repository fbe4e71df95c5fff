use std::sync::Arc;

use tokio::sync::watch;
use tolka_journal::{Entry, Journal, JournalError, Scope};

/// Facts of a scope from a place on, for ever.
pub(crate) struct Follow {
    journal: Arc<dyn Journal>,
    scope: Scope,
    at: u64,
    pub(super) head: watch::Receiver<u64>,
}

impl Follow {
    pub(crate) fn new(journal: Arc<dyn Journal>, scope: Scope, at: u64) -> Self {
        let head = journal.watch(&scope);
        Follow { journal, scope, at, head }
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Goes back to a place that it has passed.
    pub(super) fn rewind(&mut self, to: u64) {
        self.at = self.at.min(to);
    }

    /// The next facts, as soon as there are any. Empty when the session has been purged.
    pub(crate) async fn next(&mut self, limit: usize) -> Result<Vec<Entry>, JournalError> {
        loop {
            let page = self.ready(limit).await?;
            if !page.is_empty() {
                return Ok(page);
            }
            if !self.arrived().await {
                return Ok(Vec::new());
            }
        }
    }

    /// Waits for a next fact. `false`: there will be none, the session has been purged.
    pub(crate) async fn arrived(&mut self) -> bool {
        self.head.wait_for(|head| *head > self.at).await.is_ok()
    }

    /// Nothing will come any more: the session has been purged.
    ///
    /// A head that is behind does not say so. The disk has a fact a moment before its bell rings, and whoever reads the
    /// disk then is ahead; only if the fact that was read last is there no more has the session been purged.
    pub(crate) async fn is_gone(&self) -> Result<bool, JournalError> {
        let is_behind = matches!(self.scope, Scope::Session(_)) && *self.head.borrow() < self.at;
        Ok(self.head.is_closed() || (is_behind && self.journal.read(&self.scope, self.at - 1, 1).await?.is_empty()))
    }

    pub(crate) fn has_more(&self) -> bool {
        *self.head.borrow() > self.at
    }

    /// The facts that are there now; empty at the head.
    pub(crate) async fn ready(&mut self, limit: usize) -> Result<Vec<Entry>, JournalError> {
        let page = match self.journal.recent(&self.scope, self.at, limit) {
            Some(page) => page,
            None => self.journal.read(&self.scope, self.at, limit).await?,
        };
        self.at = page.last().map_or(self.at, |entry| entry.place);
        Ok(page)
    }
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follow").field("scope", &self.scope).field("at", &self.at).finish_non_exhaustive()
    }
}
