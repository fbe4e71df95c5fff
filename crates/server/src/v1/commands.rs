//! Prompts in files that can be called by a name: a prompt that begins with `/name` is such a call.

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::fault::TolkaError;

#[derive(Deserialize)]
pub(super) struct CommandsQuery {
    workspace: Option<String>,
}

/// Of a folder, as the files are now.
pub(super) async fn list(
    State(app): State<App>,
    Query(query): Query<CommandsQuery>,
) -> Result<Json<Value>, TolkaError> {
    let workspace = app.workspace(query.workspace.as_deref()).await?;
    let all = app.slashes(None, workspace).await?;
    let commands: Vec<Value> = all
        .into_iter()
        .map(|slash| {
            json!({
                "name": slash.name, "description": slash.description, "hint": slash.hint, "mode": slash.agent,
                "model": slash.model,
            })
        })
        .collect();
    Ok(Json(json!({ "commands": commands })))
}
