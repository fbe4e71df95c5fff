//! AgentSmithy's routes, for the client that document 003 shows and for its VS Code extension.
//!
//! A dialog is a session. One of them is current for all clients, and that is a fact in the server's own journal.
//! Its client reads a turn as the answer to its message and knows no way back to a stream that broke off; here the
//! turn goes on without it, and `GET /api/chat` tells it again from any event on.

mod answer;
mod chat;
mod checkpoints;
mod dialogs;
mod history;
mod message;
mod results;
mod surroundings;
mod telling;
mod total;

use std::collections::HashMap;

use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::{get, post};
use tolka_facts::SessionId;
use tolka_journal::SessionRow;

use crate::app::App;
use crate::fault::{AgentSmithyError, Fault};

type Answered = Result<Response, AgentSmithyError>;
type Params = Query<HashMap<String, String>>;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/health", get(surroundings::health))
        .route("/api/chat", post(chat::send).get(chat::follow))
        .route("/api/dialogs", get(dialogs::list).post(dialogs::create))
        .route("/api/dialogs/current", get(dialogs::current).patch(dialogs::choose))
        .route("/api/dialogs/{id}", get(dialogs::get).patch(dialogs::rename).delete(dialogs::delete))
        .route("/api/dialogs/{id}/history", get(history::page))
        .route("/api/dialogs/{id}/tool-results", get(results::list))
        .route("/api/dialogs/{id}/tool-results/{call}", get(results::one))
        .route("/api/dialogs/{id}/checkpoints", get(checkpoints::list))
        .route("/api/dialogs/{id}/session", get(checkpoints::session))
        .route("/api/dialogs/{id}/restore", post(checkpoints::restore))
        .route("/api/dialogs/{id}/approve", post(checkpoints::approve))
        .route("/api/dialogs/{id}/reset", post(checkpoints::reset))
        .route("/api/config", get(surroundings::config).put(surroundings::set_elsewhere))
        .route("/api/config/rename", post(surroundings::set_elsewhere))
}

async fn find(app: &App, id: &str) -> Result<SessionRow, Fault> {
    app.find(&SessionId::from(id)).await?.ok_or_else(|| {
        let id: String = id.chars().take(80).collect();
        Fault::NotFound(format!("Dialog not found: {id}. GET /api/dialogs lists those there are."))
    })
}

/// A number of a query, if it is there.
fn number(params: &HashMap<String, String>, name: &str) -> Result<Option<u64>, Fault> {
    let wrong = |_| Fault::Invalid(format!("`{name}` must be a whole number from 0 on."));
    params.get(name).map(|text| text.parse().map_err(wrong)).transpose()
}
