//! Commands that go on while their session does: what runs, what it prints, and its end.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tolka_agent::native::processes::Process;
use tolka_facts::SessionId;

use super::number;
use crate::app::App;
use crate::fault::{Fault, TolkaError};

type Answered = Result<Json<Value>, TolkaError>;

pub(super) async fn list(State(app): State<App>, Path(session): Path<SessionId>) -> Answered {
    // Whether there is such a session.
    app.desk.tip(&session).await.map_err(Fault::from)?;
    let all = app.config.hands.processes.as_ref().map(|processes| processes.of(&session)).unwrap_or_default();
    let shown = tokio::task::spawn_blocking(move || all.iter().map(|process| shown(process)).collect::<Vec<_>>());
    let shown = shown.await.map_err(|_| Fault::Internal)?;
    Ok(Json(json!({ "processes": shown })))
}

#[derive(Deserialize)]
pub(super) struct LogQuery {
    from: Option<String>,
}

pub(super) async fn log(
    State(app): State<App>,
    Path((session, id)): Path<(SessionId, String)>,
    Query(query): Query<LogQuery>,
) -> Answered {
    let from = number("from", query.from.as_deref(), 0..=u64::MAX)?.unwrap_or(0);
    let process = find(&app, &session, &id).await?;
    let piece = process.log(from);
    let is_running = process.ended().is_none();
    Ok(Json(json!({ "text": piece.text, "from": piece.from, "next": piece.next, "running": is_running })))
}

/// Ends it, and answers when it is gone.
pub(super) async fn end(
    State(app): State<App>,
    Path((session, id)): Path<(SessionId, String)>,
) -> Result<StatusCode, TolkaError> {
    find(&app, &session, &id).await?.end("client").await;
    Ok(StatusCode::NO_CONTENT)
}

async fn find(app: &App, session: &SessionId, id: &str) -> Result<Arc<Process>, TolkaError> {
    app.desk.tip(session).await.map_err(Fault::from)?;
    let found = app.config.hands.processes.as_ref().and_then(|processes| processes.find(session, id));
    Ok(found.ok_or_else(|| {
        let id: String = id.chars().take(80).collect();
        Fault::NotFound(format!("No process is called `{id}` in this session; GET …/processes lists them."))
    })?)
}

/// Blocks, shortly.
fn shown(process: &Process) -> Value {
    let ended = process.ended();
    let mut shown = json!({
        "process": process.id,
        "command": process.command,
        "call": process.call,
        "started": process.started,
        "running": ended.is_none(),
        "ports": process.ports(),
    });
    if let Some(ended) = ended {
        shown["ended"] = json!({ "at": ended.at, "code": ended.code, "by": ended.by, "notes": ended.notes });
    }
    shown
}
