//! All messages of a session in one answer, told as they are folded: in memory are those since the last quiet moment,
//! which are all of a session that has none.

use std::collections::HashSet;

use axum::response::Response;
use tolka_dialect::opencode::History;
use tolka_journal::{Scope, SessionRow};

use super::messages::{shown, voice};
use crate::app::App;
use crate::fault::Fault;
use crate::listing::{self, Items, Lister};
use crate::stream::{Cursor, Voice};

const PAGE: usize = 512;

/// The session up to what was durable when it was asked for; one that goes on meanwhile is not chased.
pub(super) async fn list(app: App, row: SessionRow) -> Result<Response, Fault> {
    let voice = voice(&app, &row.head.id);
    let messages = Messages { app: app.clone(), row, voice, history: History::default(), since: 0, at: 0 };
    listing::list(&app, "[", "]", messages).await
}

struct Messages {
    app: App,
    row: SessionRow,
    voice: Voice,
    /// What was made since a quiet moment.
    history: History,
    since: u64,
    at: u64,
}

impl Lister for Messages {
    async fn more(&mut self, items: &mut Items) -> Result<bool, Fault> {
        let wanted = usize::try_from(self.row.seq.saturating_sub(self.at)).unwrap_or(PAGE).min(PAGE);
        let facts = self.app.journal().read(&Scope::Session(self.row.head.id.clone()), self.at, wanted).await?;
        for fact in &facts {
            let one = std::slice::from_ref(fact);
            self.voice.payloads(one, Cursor::whole(0), |_, frame| self.history.apply(frame)).await?;
            self.at = fact.place;
            let tip = self.voice.tip(&self.row.head.id);
            let is_quiet = tip.is_some_and(|tip| tip.is_idle() && tip.queue.is_empty());
            if is_quiet && self.at - self.since >= PAGE as u64 {
                self.tell(items).await?;
            }
        }
        let has_more = !facts.is_empty() && self.at < self.row.seq;
        if !has_more {
            self.tell(items).await?;
        }
        Ok(has_more)
    }
}

impl Messages {
    async fn tell(&mut self, items: &mut Items) -> Result<(), Fault> {
        let messages = std::mem::take(&mut self.history).messages().collect();
        self.since = self.at;
        let (session, end) = (&self.row.head.id, self.row.seq);
        let messages = shown(&self.app, session, messages, self.at, end, HashSet::new()).await?;
        messages.iter().for_each(|message| items.push(message));
        Ok(())
    }
}
