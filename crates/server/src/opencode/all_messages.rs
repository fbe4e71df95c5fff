//! All messages of a session in one answer, told as they are folded: in memory are a few of them, and the places of the
//! others, which are eight bytes each.

use axum::response::Response;
use tolka_journal::{JournalError, SessionRow};

use super::told::{Told, places};
use crate::app::App;
use crate::fault::Fault;
use crate::listing::{self, Items, Lister};
use crate::stream::Tongues;

/// Messages that are folded at once. The turn that they end in may be read again for the next ones.
const AT_ONCE: usize = 64;

/// The session up to what was durable when it was asked for; one that goes on meanwhile is not chased.
pub(super) async fn list(app: App, row: SessionRow) -> Result<Response, Fault> {
    let messages = Messages::new(&app.tongues, &row).await?;
    listing::list(&app, "[", "]", messages).await
}

pub(super) struct Messages {
    told: Told,
    places: Vec<u64>,
    next: usize,
}

impl Messages {
    pub(super) async fn new(tongues: &Tongues, row: &SessionRow) -> Result<Self, JournalError> {
        let (session, end) = (&row.head.id, row.seq);
        let places = places(tongues.journal().as_ref(), session, end + 1, usize::MAX).await?;
        Ok(Messages { told: Told::new(tongues, session, end), places, next: 0 })
    }
}

impl Lister for Messages {
    async fn more(&mut self, items: &mut Items) -> Result<bool, Fault> {
        let to = self.places.len().min(self.next + AT_ONCE);
        let messages = self.told.messages(&self.places[self.next..to]).await?;
        messages.iter().for_each(|message| items.push(message));
        self.next = to;
        Ok(to < self.places.len())
    }
}
