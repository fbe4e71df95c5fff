//! A session as it looks: its last turns, and on request those before them.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use tolka_facts::event::{ArtifactSaved, Command};
use tolka_facts::{Event, Fact, SessionId};
use tolka_journal::{Journal, JournalError, MarkKind, Scope};

use super::number;
use crate::app::App;
use crate::fault::{Fault, TolkaError};
use crate::past::{Page, Reach};

/// More than a screen holds.
const TURNS: u64 = 20;
const MOST_TURNS: u64 = 1000;
/// A fact takes some 5 µs to read and fold: the longest turns are cut where a page would take a tenth of a second.
const FACTS: u64 = 20_000;
/// Each save is read by itself. What was saved before these is in the facts, and on the disk.
const SAVES: usize = 1000;

#[derive(Deserialize)]
pub(super) struct ViewQuery {
    at: Option<String>,
    turns: Option<String>,
    before: Option<String>,
}

/// The session at a position, now or as it was: its last turns, or the last ones before a position.
pub(super) async fn view(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(query): Query<ViewQuery>,
) -> Result<Response, TolkaError> {
    let turns = number("turns", query.turns.as_deref(), 1..=MOST_TURNS)?.unwrap_or(TURNS);
    let at = number("at", query.at.as_deref(), 0..=u64::MAX)?;
    let before = number("before", query.before.as_deref(), 0..=u64::MAX)?;
    let session = SessionId::from(id);
    let head = app.desk.tip(&session).await?.seq;
    if let Some(beyond) = [at, before].into_iter().flatten().find(|place| *place > head) {
        return Err(Fault::Gone(format!("The session ends at {head}; there is no {beyond} yet.")).into());
    }
    let reach = Reach { turns: usize::try_from(turns).unwrap_or(usize::MAX), facts: FACTS };
    let at = at.unwrap_or(head);
    let to = before.unwrap_or(at).min(at);
    let journal = app.journal().as_ref();
    let page = Page::back_from(journal, &session, to, reach).await?;
    let mut view = page.view(journal, at).await?;
    // These are the session's and not the page's: whoever asks for what was before has them.
    (view.artifacts, view.commands) = match before {
        None => (artifacts(journal, &session, at).await?, commands(journal, &session, at).await?),
        Some(_) => (Vec::new(), Vec::new()),
    };
    let mut shown = json!(view);
    shown["position"] = json!(view.tip.seq.to_string());
    if page.has_more() {
        shown["before"] = json!(page.tip.seq);
    }
    Ok(axum::Json(shown).into_response())
}

/// Each as it was last saved, in the order in which they were first.
async fn artifacts(journal: &dyn Journal, session: &SessionId, at: u64) -> Result<Vec<ArtifactSaved>, JournalError> {
    let saves = journal.marks(session, MarkKind::Save, at.saturating_add(1), SAVES).await?;
    let mut artifacts: Vec<ArtifactSaved> = Vec::new();
    for seq in saves.into_iter().rev() {
        let Some(Event::ArtifactSaved(saved)) = event(journal, session, seq).await? else { continue };
        match artifacts.iter_mut().find(|known| known.path == saved.path) {
            Some(known) => *known = saved,
            None => artifacts.push(saved),
        }
    }
    Ok(artifacts)
}

async fn commands(journal: &dyn Journal, session: &SessionId, at: u64) -> Result<Vec<Command>, JournalError> {
    let told = journal.marks(session, MarkKind::Commands, at.saturating_add(1), 1).await?;
    let Some(last) = told.first() else { return Ok(Vec::new()) };
    match event(journal, session, *last).await? {
        Some(Event::CommandsSet(e)) => Ok(e.commands),
        _ => Ok(Vec::new()),
    }
}

async fn event(journal: &dyn Journal, session: &SessionId, seq: u64) -> Result<Option<Event>, JournalError> {
    let page = journal.read(&Scope::Session(session.clone()), seq - 1, 1).await?;
    Ok(page.first().map(|entry| Fact::clone(&entry.fact).event))
}
