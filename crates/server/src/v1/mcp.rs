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
use tolka_mcp::{Hub, Kit, Server};

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
    Ok(Json(listed(&folder_kit(&app, query.workspace.as_deref()).await?)))
}

pub(super) async fn connect(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<Where>,
) -> Result<(StatusCode, Json<Value>), TolkaError> {
    let server = found(&folder_kit(&app, query.workspace.as_deref()).await?, &name)?;
    server.connect();
    Ok((StatusCode::ACCEPTED, Json(shown(&server))))
}

pub(super) async fn disconnect(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<Where>,
) -> Result<(StatusCode, Json<Value>), TolkaError> {
    let server = found(&folder_kit(&app, query.workspace.as_deref()).await?, &name)?;
    server.disconnect();
    Ok((StatusCode::ACCEPTED, Json(shown(&server))))
}

pub(super) async fn of_session(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let tip = app.desk.tip(&SessionId::from(id)).await?;
    let kit =
        app.config.hands.mcp.as_ref().map(|hub| hub.of_session(tip.head.id.as_str(), Folder::new(&tip.head.workspace)));
    Ok(Json(listed(&kit.unwrap_or_default())))
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
    Ok((StatusCode::CREATED, Json(shown(&server))))
}

fn hub(app: &App) -> Result<&Arc<Hub>, Fault> {
    let none = || Fault::Conflict("The agent of this server uses no MCP servers; start it with a model.".to_owned());
    app.config.hands.mcp.as_ref().ok_or_else(none)
}

async fn folder_kit(app: &App, wanted: Option<&str>) -> Result<Kit, Fault> {
    let folder = app.workspace(wanted).await?;
    Ok(app.config.hands.mcp.as_ref().map(|hub| hub.of_folder(Folder::new(&folder))).unwrap_or_default())
}

fn found(kit: &Kit, name: &str) -> Result<Arc<Server>, Fault> {
    let name: String = name.chars().take(80).collect();
    kit.get(&name).cloned().ok_or_else(|| Fault::NotFound(format!("There is no MCP server `{name}`.")))
}

fn listed(kit: &Kit) -> Value {
    let servers: Vec<Value> = kit.servers().iter().map(|server| shown(server)).collect();
    json!({ "servers": servers })
}

fn shown(server: &Server) -> Value {
    let (config, status) = (server.config(), server.status());
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
