//! What was said in a session, read back. The wire has no pages for it, so it is told whole, turn by turn.

use std::collections::HashMap;

use axum::extract::{Path, State};
use tolka_dialect::onyx::{Profile, Rows};
use tolka_facts::{Event, MessageId, SessionId, Tip};
use tolka_journal::{MarkKind, Scope, SessionRow};

use super::{Answered, PAGE, fact_at, find};
use crate::app::App;
use crate::fault::Fault;
use crate::listing::{Items, Lister, list};
use crate::past;
use crate::stream::JournalBlobs;

pub(super) async fn messages(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let messages = Messages::of(&app, find(&app, &id).await?).await?;
    Ok(list(&app, r#"{"messages":["#, "]}", messages).await?)
}

struct Messages {
    app: App,
    session: SessionId,
    /// What is told meanwhile comes with the next load.
    end: u64,
    /// Where messages are hidden; rows are gone before the fold comes to it.
    hidden: HashMap<MessageId, u64>,
    /// What rewinds hide at the end.
    hidden_from: Option<u64>,
    blobs: JournalBlobs,
    rows: Rows,
    tip: Tip,
}

impl Messages {
    async fn of(app: &App, row: SessionRow) -> Result<Self, Fault> {
        let (session, end) = (row.head.id, row.seq);
        let mut hidden = HashMap::new();
        for seq in app.journal().marks(&session, MarkKind::Hidden, end.saturating_add(1), usize::MAX).await? {
            if let Event::MessageHidden(e) = &fact_at(app, &session, seq).await?.fact.event {
                hidden.insert(e.message.clone(), seq);
            }
        }
        let hidden_from = past::hidden_from(app.journal().as_ref(), &session, end).await?;
        let blobs = JournalBlobs::new(app.journal().clone());
        let (rows, tip) = (Rows::new(Profile::Current), Tip::default());
        Ok(Messages { app: app.clone(), session, end, hidden, hidden_from, blobs, rows, tip })
    }
}

impl Lister for Messages {
    async fn more(&mut self, items: &mut Items) -> Result<bool, Fault> {
        let wanted = usize::try_from(self.end - self.tip.seq).unwrap_or(PAGE).min(PAGE);
        let page = self.app.journal().read(&Scope::Session(self.session.clone()), self.tip.seq, wanted).await?;
        for entry in &page {
            self.tip.apply(&entry.fact);
            self.rows.apply(&entry.fact, &self.tip, &self.blobs);
        }
        self.blobs.check()?;
        self.rows.take_settled(&self.hidden, self.hidden_from).iter().for_each(|row| items.push(row));
        let has_more = !page.is_empty() && self.tip.seq < self.end;
        if !has_more {
            self.rows.rows().for_each(|row| items.push(row));
        }
        Ok(has_more)
    }
}
