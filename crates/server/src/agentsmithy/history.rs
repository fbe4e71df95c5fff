//! A dialog as it is loaded: the last messages first, then those before them.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use tolka_dialect::agentsmithy::History;
use tolka_facts::Tip;

use super::{Answered, Params, find, number};
use crate::app::App;
use crate::stream::JournalBlobs;

/// As many messages as the real server gives unless it is asked for more or fewer.
const LIMIT: u64 = 20;

pub(super) async fn page(State(app): State<App>, Path(id): Path<String>, Query(params): Params) -> Answered {
    let count = |n| usize::try_from(n).unwrap_or(usize::MAX);
    let limit = count(number(&params, "limit")?.unwrap_or(LIMIT));
    let before = number(&params, "before")?.map(count);
    let session = find(&app, &id).await?.head.id;
    let blobs = JournalBlobs::new(app.journal().clone());
    let (mut history, mut tip) = (History::default(), Tip::default());
    app.each_fact(&session, 0, |entry| {
        tip.apply(&entry.fact);
        history.apply(&entry.fact, &tip, &blobs);
    })
    .await?;
    blobs.check()?;
    Ok(Json(history.page(limit, before)).into_response())
}
