//! OpenCode's routes, at the root where its SDK and its terminal client look for them.
//!
//! What a route lists is folded from the events that the feeds carry, so a client cannot read one thing
//! and be told another. What this server has nothing of is answered with the empty shape, never made up.

mod all_messages;
mod asks;
mod choice;
mod commands;
mod compact;
mod diff;
mod events;
mod folder;
mod mcp;
mod messages;
mod prompt;
mod query;
mod revert;
mod sessions;
mod surroundings;
mod told;
mod wait;

use axum::Router;
use axum::routing::{get, post};
use tolka_facts::SessionId;
use tolka_journal::SessionRow;

use crate::app::App;
use crate::fault::{Fault, OpenCodeError};

type Answered<T> = Result<axum::Json<T>, OpenCodeError>;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/event", get(events::feed))
        .route("/global/event", get(events::global_feed))
        .route("/session", get(sessions::list).post(sessions::create))
        .route("/session/status", get(sessions::status))
        .route("/session/{id}", get(sessions::get).patch(sessions::change).delete(sessions::delete))
        .route("/session/{id}/children", get(sessions::children))
        .route("/session/{id}/todo", get(sessions::todo))
        .route("/session/{id}/diff", get(diff::list))
        .route("/session/{id}/abort", post(sessions::abort))
        .route("/session/{id}/revert", post(revert::revert))
        .route("/session/{id}/unrevert", post(revert::unrevert))
        .route("/session/{id}/fork", post(revert::fork))
        .route("/session/{id}/summarize", post(compact::summarize))
        .route("/api/session/{id}/compact", post(compact::and_go))
        .route("/api/session/{id}/revert/stage", post(revert::stage))
        .route("/api/session/{id}/revert/clear", post(revert::clear))
        .route("/api/session/{id}/revert/commit", post(revert::commit))
        .route("/session/{id}/message", get(messages::list).post(prompt::and_wait))
        .route("/session/{id}/message/{message}", get(messages::one))
        .route("/session/{id}/prompt_async", post(prompt::and_go))
        .route("/session/{id}/command", post(commands::call))
        .route("/command", get(commands::list))
        .route("/session/{id}/permissions/{request}", post(asks::respond))
        .route("/permission", get(asks::permissions))
        .route("/permission/{request}/reply", post(asks::reply))
        .route("/question", get(asks::questions))
        .route("/question/{request}/reply", post(asks::answer))
        .route("/question/{request}/reject", post(asks::reject))
        .merge(mcp::routes())
        .merge(surroundings::routes())
}

/// The id in a path. OpenCode's own schema wants this prefix.
fn session_id(id: String) -> Result<SessionId, Fault> {
    if id.starts_with("ses") {
        return Ok(SessionId::from(id));
    }
    let id: String = id.chars().take(80).collect();
    Err(Fault::BadRequest(format!("Expected a string starting with \"ses\", got \"{id}\"\n  at [\"sessionID\"]")))
}

async fn session_row(app: &App, id: String) -> Result<SessionRow, Fault> {
    let id = session_id(id)?;
    app.find(&id).await?.ok_or_else(|| Fault::NotFound(format!("Session not found: {id}")))
}
