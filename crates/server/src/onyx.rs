//! The routes of Onyx Build Mode, for the clients of its documents and for its frontend of today.
//!
//! Both send prompts to one route and are told apart by the body, never by `Accept`, which neither sets: a body
//! without `client_request_id` is answered by the stream itself, one with it by the name of a turn whose stream
//! is read elsewhere. Where Onyx has a thing that Tolka has not (connectors, scheduled runs, a sandbox that
//! sleeps), the answer is the empty shape that its client takes for "none".

mod approvals;
mod files;
mod message;
mod messages;
mod packets;
mod sessions;
mod shapes;
mod telling;
mod turns;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post, put};
use tolka_facts::SessionId;
use tolka_journal::{Entry, Scope, SessionRow};

use crate::app::App;
use crate::fault::{Fault, OnyxError};

type Answered = Result<Response, OnyxError>;

const PAGE: usize = 512;

pub(crate) fn routes() -> Router<App> {
    let current = Router::new()
        .merge(documented())
        .route("/sessions/{id}", get(sessions::get).delete(sessions::delete))
        .route("/sessions/{id}/name", put(sessions::rename))
        .route("/sessions/{id}/generate-name", post(sessions::generate_name))
        .route("/sessions/{id}/generate-suggestions", post(sessions::suggestions))
        .route("/sessions/{id}/messages", get(messages::messages))
        .route("/sessions/{id}/artifacts", get(sessions::artifacts))
        .route("/sessions/{id}/artifacts/{*path}", get(files::download))
        .route("/sessions/{id}/restore", post(sessions::get))
        .route("/sessions/{id}/sandbox-status", get(sessions::sandbox_status))
        .route("/sessions/{id}/webapp-info", get(sessions::webapp_info))
        .route("/sessions/{id}/pre-provisioned-check", get(sessions::is_unused))
        .route("/sessions/{id}/scheduled-run-context", get(sessions::scheduled_run))
        .route("/sessions/{id}/turns/active", get(turns::active))
        .route("/sessions/{id}/turns/{turn}/events", get(turns::events))
        .route("/sessions/{id}/subagents/{child}/send-message", post(turns::send_to_subagent))
        .route("/sessions/{id}/interrupt", post(turns::interrupt))
        .route("/approvals/sessions/{id}/live", get(approvals::live))
        .route("/approvals/{approval}/decision", post(approvals::decide))
        .route("/limit", get(sessions::limit))
        .route("/connectors", get(sessions::connectors));
    Router::new().nest("/api/build", current).merge(documented())
}

/// What the documents name. They show these paths bare; the released server has them under `/api/build`.
fn documented() -> Router<App> {
    Router::new()
        .route("/sessions", get(sessions::list).post(sessions::create))
        .route("/sessions/{id}/send-message", post(turns::send_message))
}

async fn find(app: &App, id: &str) -> Result<SessionRow, Fault> {
    app.find(&SessionId::from(id)).await?.ok_or_else(|| Fault::NotFound("Session not found".to_owned()))
}

/// The fact at a place that a mark gave.
async fn fact_at(app: &App, session: &SessionId, seq: u64) -> Result<Entry, Fault> {
    let page = app.journal().read(&Scope::Session(session.clone()), seq.saturating_sub(1), 1).await?;
    page.into_iter().next().ok_or(Fault::Internal)
}
