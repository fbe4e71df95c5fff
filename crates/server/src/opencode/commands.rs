//! Prompts that are called by their names, in files and of MCP servers: the list, and a call with its answer.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};
use tolka_facts::Block;
use tolka_session::PromptRequest;
use tolka_workspace::slash::{Slash, places};

use super::folder::Folder;
use super::{Answered, choice, mcp, prompt, session_row, wait};
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::request::{json_body, text_field};

pub(super) async fn list(State(app): State<App>, folder: Folder) -> Answered<Vec<Value>> {
    let place = folder.to_work_in(&app).await?;
    let mut all: Vec<Value> = app.slashes(None, place).await?.iter().map(shown).collect();
    all.extend(mcp::commands(&app, &folder).await?);
    Ok(Json(all))
}

fn shown(slash: &Slash) -> Value {
    let mut shown = json!({
        "name": slash.name, "description": slash.description, "source": "command", "template": slash.template,
        "hints": places(&slash.template),
    });
    for (name, value) in [("agent", &slash.agent), ("model", &slash.model)] {
        if let Some(value) = value {
            shown[name] = json!(value);
        }
    }
    if let Some(subtask) = slash.subtask {
        shown["subtask"] = json!(subtask);
    }
    shown
}

/// The prompt is durable before the wait begins: a client that leaves leaves the turn running.
pub(super) async fn call(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, OpenCodeError> {
    let mut body = json_body(body).await?;
    let head = session_row(&app, id).await?.head;
    let missing = |field: &str| Fault::BadRequest(format!("Expected a string\n  at [\"{field}\"]"));
    let name = text_field(&body, "command")?.ok_or_else(|| missing("command"))?.to_owned();
    let arguments = text_field(&body, "arguments")?.unwrap_or_default().to_owned();
    let known = app.slashes(Some(&head.agent), head.workspace.clone()).await?;
    let is_known = known.iter().any(|slash| slash.name == name);
    if !is_known && !mcp::has_command(&app, &head, &name).await {
        let known: Vec<&str> = known.iter().map(|slash| slash.name.as_str()).take(50).collect();
        let name: String = name.chars().take(80).collect();
        let message =
            format!("Command not found: \"{name}\". Available commands: {}\n  at [\"command\"]", known.join(", "));
        return Err(Fault::BadRequest(message).into());
    }
    // Here a model is named in one word.
    if let Some((provider, model)) = body["model"].as_str().and_then(|model| model.split_once('/')) {
        body["model"] = json!({ "providerID": provider, "modelID": model });
    }
    let choice::Choice { mode, model, .. } = choice::in_session(&app, &head, &body)?;
    let content = vec![Block::text(format!("/{name} {arguments}").trim_end().to_owned())];
    let message = prompt::message_id(&body)?;
    let request = PromptRequest { content, message, agent: mode, model, ..PromptRequest::default() };
    let accepted = app.desk.prompt(&head.id, request).await.map_err(Fault::from)?;
    Ok(wait::for_answer(app, head.id, accepted).await?)
}
