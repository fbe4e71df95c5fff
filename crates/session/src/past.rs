//! What a session has been, for its mind: read from the journal when it is asked for, folded off the runtime's threads.

use std::fmt;
use std::sync::Arc;

use tolka_agent::{Past, PastError, Remembered, Remembering};
use tolka_facts::{Blobs, Hash, SessionId, View};
use tolka_journal::{Journal, Scope};

/// Facts that are folded at once: a millisecond or two.
const PAGE: usize = 2048;

pub(crate) struct SessionPast {
    journal: Arc<dyn Journal>,
    session: SessionId,
}

impl SessionPast {
    pub(crate) fn new(journal: Arc<dyn Journal>, session: SessionId) -> Self {
        SessionPast { journal, session }
    }

    /// All that came after what is known.
    async fn fold(&self, mut view: View) -> Result<View, PastError> {
        let failed = |error: &dyn fmt::Display| PastError(error.to_string());
        let scope = Scope::Session(self.session.clone());
        loop {
            let page = self.journal.read(&scope, view.tip.seq, PAGE).await.map_err(|error| failed(&error))?;
            if page.is_empty() {
                return Ok(view);
            }
            let folded = tokio::task::spawn_blocking(move || {
                page.iter().for_each(|entry| view.apply(&entry.fact));
                view
            });
            view = folded.await.map_err(|error| failed(&error))?;
        }
    }
}

impl Past for SessionPast {
    fn remember(&self) -> Remembering<'_> {
        self.go_on(View::default())
    }

    fn go_on(&self, known: View) -> Remembering<'_> {
        Box::pin(async {
            let view = self.fold(known).await?;
            Ok(Remembered { view, blobs: Arc::new(JournalBlobs(self.journal.clone())) })
        })
    }
}

impl fmt::Debug for SessionPast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionPast").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Blobs of the journal, where blocking is fine.
pub(crate) struct JournalBlobs(pub(crate) Arc<dyn Journal>);

impl Blobs for JournalBlobs {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.0.blob(hash).ok().flatten()
    }
}
