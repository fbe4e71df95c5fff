//! A dialog as it is loaded: the last messages first, then those before them.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use tolka_dialect::agentsmithy::History;
use tolka_facts::SessionId;

use super::total::total;
use super::{Answered, Params, find, number};
use crate::app::App;
use crate::fault::Fault;
use crate::past::{Page, Reach, hidden, hidden_from};
use crate::stream::JournalBlobs;

/// As many messages as the real server gives unless it is asked for more or fewer.
const LIMIT: u64 = 20;
/// A page is held whole, with what belongs to each of its messages; whoever asks for more reads `has_more`.
const MOST: u64 = 1000;
/// Turns that are read at first, then twice as many: a turn has two messages or more, and often far more.
const TURNS: usize = 4;
/// Facts that are read at a time to find where a message ends.
const STEP: u64 = 64;

pub(super) async fn page(State(app): State<App>, Path(id): Path<String>, Query(params): Params) -> Answered {
    let limit = usize::try_from(number(&params, "limit")?.unwrap_or(LIMIT).min(MOST)).unwrap_or_default();
    let before = number(&params, "before")?;
    let row = find(&app, &id).await?;
    let reading = Reading { app: &app, session: row.head.id, end: row.seq };
    let mut page = reading.history(limit, before).await?.page(limit, before);
    page.total_events = total(&app, &reading.session, reading.end).await?;
    Ok(Json(page).into_response())
}

struct Reading<'a> {
    app: &'a App,
    session: SessionId,
    /// What is told meanwhile is not of this page.
    end: u64,
}

impl Reading<'_> {
    /// As many of the turns before an index as hold more than `limit` messages: one more tells that there are more.
    async fn history(&self, limit: usize, before: Option<u64>) -> Result<History, Fault> {
        let journal = self.app.journal().as_ref();
        let mut history = History::new(self.session.clone());
        let mut to = before.map_or(self.end, |before| before.saturating_sub(1).min(self.end));
        let mut turns = TURNS;
        let hidden_from = hidden_from(journal, &self.session, self.end).await?;
        let before = before.unwrap_or(u64::MAX);
        loop {
            let page = Page::back_from(journal, &self.session, to, Reach::turns(turns)).await?;
            let (part, end) = self.fold(&page, before).await?;
            let gone = hidden(journal, &self.session, end, self.end, part.messages()).await?;
            history.prepend(part);
            history.hide(&gone);
            history.rewind(hidden_from);
            if history.said_before(before) > limit || !page.has_more() {
                return Ok(history);
            }
            (to, turns) = (page.tip.seq, turns.saturating_mul(2));
        }
    }

    /// The turns of a page, the last one as far as messages from before an index go, and where that is.
    async fn fold(&self, page: &Page, before: u64) -> Result<(History, u64), Fault> {
        let journal = self.app.journal().as_ref();
        let blobs = JournalBlobs::new(self.app.journal().clone());
        let (mut history, mut tip) = (History::new(self.session.clone()), page.tip.clone());
        let mut rest = None;
        loop {
            rest.as_ref()
                .unwrap_or(page)
                .each(journal, |fact| {
                    tip.apply(fact);
                    history.apply(fact, &tip, &blobs);
                })
                .await?;
            blobs.check()?;
            if tip.is_idle() || history.has_said(before) || tip.seq >= self.end {
                return Ok((history, tip.seq));
            }
            let to = tip.seq.saturating_add(STEP).min(self.end);
            rest = Some(Page { session: self.session.clone(), tip: tip.clone(), to });
        }
    }
}
