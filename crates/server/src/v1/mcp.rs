//! Servers of tools: how they are doing and what they have; adding one for a session.

use std::path::Path as Folder;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tolka_facts::SessionId;
use tolka_mcp::{Config, Hub, Seen, Server, Status};

use crate::app::App;
use crate::fault::{Fault, TolkaError};
use crate::mcp;
use crate::request::{json_body, text_field};

type Answered = Result<Json<Value>, TolkaError>;

#[derive(Deserialize)]
pub(super) struct Where {
    workspace: Option<String>,
}

/// Those of the configuration, in one folder. To look starts nothing.
pub(super) async fn of_folder(State(app): State<App>, Query(query): Query<Where>) -> Answered {
    let folder = app.workspace(query.workspace.as_deref()).await?;
    let hub = app.config.hands.mcp.as_ref();
    Ok(Json(listed(&hub.map(|hub| hub.seen_in_folder(Folder::new(&folder))).unwrap_or_default())))
}

pub(super) async fn connect(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<Where>,
) -> Result<(StatusCode, Json<Value>), TolkaError> {
    let server = found(&app, query.workspace.as_deref(), &name).await?;
    server.connect();
    Ok((StatusCode::ACCEPTED, Json(shown(server.config(), &server.status()))))
}

pub(super) async fn disconnect(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<Where>,
) -> Result<(StatusCode, Json<Value>), TolkaError> {
    let server = found(&app, query.workspace.as_deref(), &name).await?;
    server.disconnect();
    Ok((StatusCode::ACCEPTED, Json(shown(server.config(), &server.status()))))
}

pub(super) async fn of_session(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let tip = app.desk.tip(&SessionId::from(id)).await?;
    let seen = app
        .config
        .hands
        .mcp
        .as_ref()
        .map(|hub| hub.seen_in_session(tip.head.id.as_str(), Folder::new(&tip.head.workspace)));
    Ok(Json(listed(&seen.unwrap_or_default())))
}

/// For this session alone, and connected at once: who adds one wants to use it.
pub(super) async fn add(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Body,
) -> Result<(StatusCode, Json<Value>), TolkaError> {
    let body = json_body(body).await?;
    let tip = app.desk.tip(&SessionId::from(id)).await?;
    let hub = hub(&app)?;
    let name = text_field(&body, "name")?.unwrap_or_default();
    let fields = body.as_object().cloned().unwrap_or_default();
    let config = mcp::config(name, &fields)?;
    let added = hub.add_to_session(tip.head.id.as_str(), Folder::new(&tip.head.workspace), config);
    let server = added.map_err(|error| Fault::BadRequest(format!("{error}.")))?;
    server.need();
    Ok((StatusCode::CREATED, Json(shown(server.config(), &server.status()))))
}

fn hub(app: &App) -> Result<&Arc<Hub>, Fault> {
    let none = || Fault::Conflict("The agent of this server uses no MCP servers; start it with a model.".to_owned());
    app.config.hands.mcp.as_ref().ok_or_else(none)
}

async fn found(app: &App, workspace: Option<&str>, name: &str) -> Result<Arc<Server>, Fault> {
    let folder = app.workspace(workspace).await?;
    let name: String = name.chars().take(80).collect();
    let kit = app.config.hands.mcp.as_ref().map(|hub| hub.of_folder(Folder::new(&folder))).unwrap_or_default();
    kit.get(&name).cloned().ok_or_else(|| Fault::NotFound(format!("There is no MCP server `{name}`.")))
}

fn listed(seen: &[Seen]) -> Value {
    let servers: Vec<Value> = seen.iter().map(|seen| shown(&seen.config, &seen.status)).collect();
    json!({ "servers": servers })
}

fn shown(config: &Config, status: &Status) -> Value {
    let lists = &status.lists;
    let tools = lists.tools.iter().map(|tool| json!({ "name": tool.name, "description": tool.description }));
    let resources = lists.resources.iter().map(|resource| {
        json!({
            "uri": resource.uri,
            "name": resource.name,
            "description": resource.description,
            "mime": resource.mime,
        })
    });
    let prompts = lists.prompts.iter().map(|prompt| {
        let argument =
            |argument: &tolka_mcp::PromptArgument| json!({ "name": argument.name, "required": argument.is_required });
        let arguments: Vec<Value> = prompt.arguments.iter().map(argument).collect();
        json!({ "name": prompt.name, "description": prompt.description, "arguments": arguments })
    });
    json!({
        "name": config.name,
        "kind": config.reach.kind(),
        "at": config.reach.shown(),
        "status": status.state.name(),
        "error": status.error,
        "restarts": status.restarts,
        "server": status.about.as_ref().map(|(name, version)| json!({ "name": name, "version": version })),
        "tools": tools.collect::<Vec<_>>(),
        "resources": resources.collect::<Vec<_>>(),
        "prompts": prompts.collect::<Vec<_>>(),
        "is_cut": lists.is_cut,
    })
}
