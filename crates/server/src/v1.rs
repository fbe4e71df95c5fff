//! Our own routes: everything the journal knows, in every dialect, with positions that mean the same as
//! a stream, as a long poll and as plain pages.

mod checkpoints;
mod commands;
mod events;
mod hands;
mod mcp;
mod processes;
mod rewind;
mod sessions;
mod shapes;
mod stores;
mod view;

use std::ops::RangeInclusive;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde_json::json;
use tolka_dialect::Dialect;
use tolka_facts::Hash;

use crate::app::App;
use crate::fault::{Fault, TolkaError};

/// What `/v1/openapi.json` says; a test holds it against the routes below.
const OPENAPI: &str = include_str!("v1/openapi.json");

/// The longest page of any list.
const PAGE_MOST: u64 = 1000;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(about))
        .route("/openapi.json", get(openapi))
        .route("/agents", get(hands::agents))
        .route("/models", get(hands::models))
        .route("/commands", get(commands::list))
        .route("/permissions", get(hands::permissions))
        .route("/permissions/{id}", delete(hands::revoke))
        .route("/mcp", get(mcp::of_folder))
        .route("/mcp/{name}/connect", post(mcp::connect))
        .route("/mcp/{name}/disconnect", post(mcp::disconnect))
        .route("/checkpoints/prune", post(stores::prune))
        .route("/events", get(events::feed))
        .route("/blobs/{hash}", get(blob))
        .route("/sessions", get(sessions::list).post(sessions::create))
        .route("/sessions/{id}", get(sessions::get).patch(sessions::change).delete(sessions::delete))
        .route("/sessions/{id}/prompt", post(sessions::prompt))
        .route("/sessions/{id}/compact", post(sessions::compact))
        .route("/sessions/{id}/queue", get(sessions::queue))
        .route("/sessions/{id}/queue/{turn}", delete(sessions::drop_prompt))
        .route("/sessions/{id}/cancel", post(sessions::cancel))
        .route("/sessions/{id}/answers/{request}", post(sessions::answer))
        .route("/sessions/{id}/checkpoints", get(checkpoints::list))
        .route("/sessions/{id}/diff", get(checkpoints::diff))
        .route("/sessions/{id}/rewind", post(rewind::rewind))
        .route("/sessions/{id}/unrewind", post(rewind::unrewind))
        .route("/sessions/{id}/approve", post(rewind::approve))
        .route("/sessions/{id}/reset", post(rewind::reset))
        .route("/sessions/{id}/fork", post(rewind::fork))
        .route("/sessions/{id}/mcp", get(mcp::of_session).post(mcp::add))
        .route("/sessions/{id}/processes", get(processes::list))
        .route("/sessions/{id}/processes/{process}", delete(processes::end))
        .route("/sessions/{id}/processes/{process}/log", get(processes::log))
        .route("/sessions/{id}/view", get(view::view))
        .route("/sessions/{id}/events", get(events::session))
}

pub(crate) async fn about(State(app): State<App>) -> Response {
    let agents: Vec<&str> = app.desk.agents().iter().map(|agent| agent.name()).collect();
    axum::Json(json!({
        "name": "tolka",
        "version": env!("CARGO_PKG_VERSION"),
        "journal": app.journal().epoch(),
        "workspace": app.config.workspace,
        "agents": agents,
        "dialects": Dialect::ALL.map(Dialect::name),
        "started": app.started,
        "sandbox": app.config.hands.sandbox.as_ref().map(hands::sandbox),
    }))
    .into_response()
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

pub(crate) async fn metrics(State(app): State<App>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.text(app.tongues.memory())).into_response()
}

/// A number of a query, if it is there. Queries are read as text, so that whoever sent a wrong one is told what it must be.
fn number(name: &str, text: Option<&str>, range: RangeInclusive<u64>) -> Result<Option<u64>, Fault> {
    let Some(text) = text else { return Ok(None) };
    if let Some(number) = text.parse().ok().filter(|number| range.contains(number)) {
        return Ok(Some(number));
    }
    let (least, most) = range.into_inner();
    let to = if most == u64::MAX { "on".to_owned() } else { format!("to {most}") };
    Err(Fault::BadRequest(format!("`{name}` is a number from {least} {to}.")))
}

/// As many of what a list asks for with its `limit`.
fn limit(text: Option<&str>, otherwise: usize) -> Result<usize, Fault> {
    let limit = number("limit", text, 1..=PAGE_MOST)?;
    Ok(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(otherwise))
}

/// What stands in a fact as a head and a hash, whole.
async fn blob(State(app): State<App>, Path(hash): Path<String>) -> Result<Response, TolkaError> {
    let is_hash = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let missing = || Fault::NotFound("no blob has this hash; it may have gone with a purged session".to_owned());
    if !is_hash {
        return Err(missing().into());
    }
    let journal = app.journal().clone();
    let read = tokio::task::spawn_blocking(move || journal.blob(&Hash::from(hash))).await;
    let content = read.map_err(|_| Fault::Internal)??.ok_or_else(missing)?;
    let mut response = content.into_response();
    let headers = response.headers_mut();
    // Text of unknown origin: never to be shown as a page.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable"));
    Ok(response)
}
