//! Servers of tools, as OpenCode's clients ask for them; their prompts as commands and their resources.

use std::path::Path as Place;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use tolka_facts::Head;
use tolka_mcp::{Hub, Kit, PromptArgument, Seen, Server, State as Standing, Status};

use super::Answered;
use super::folder::Folder;
use crate::app::App;
use crate::fault::Fault;
use crate::mcp;
use crate::request::{json_body, text_field};

/// For one that was just told to come or go: its client asks at once how it is doing.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/mcp", get(statuses).post(add))
        .route("/mcp/{name}/connect", post(connect))
        .route("/mcp/{name}/disconnect", post(disconnect))
        .route("/experimental/resource", get(resources))
}

async fn statuses(State(app): State<App>, folder: Folder) -> Answered<Value> {
    Ok(Json(shown(&seen(&app, &folder).await?)))
}

async fn add(State(app): State<App>, folder: Folder, body: Body) -> Answered<Value> {
    let body = json_body(body).await?;
    let name = text_field(&body, "name")?.unwrap_or_default();
    let config = body.get("config").and_then(Value::as_object).cloned().unwrap_or_default();
    let config = mcp::config(name, &config)?;
    let place = folder.to_work_in(&app).await?;
    let server = hub(&app)?.add_to_folder(Place::new(&place), config);
    let server = server.map_err(|error| Fault::BadRequest(format!("{error}.")))?;
    server.need();
    server.settled(PATIENCE).await;
    Ok(Json(shown(&seen(&app, &folder).await?)))
}

async fn connect(State(app): State<App>, Path(name): Path<String>, folder: Folder) -> Answered<bool> {
    let server = found(&kit(&app, &folder).await?, &name)?;
    server.connect();
    server.settled(PATIENCE).await;
    Ok(Json(true))
}

async fn disconnect(State(app): State<App>, Path(name): Path<String>, folder: Folder) -> Answered<bool> {
    let server = found(&kit(&app, &folder).await?, &name)?;
    server.disconnect();
    server.until(&[Standing::Disabled], PATIENCE).await;
    Ok(Json(true))
}

/// Each prompt of each server is a command, as `server:prompt`.
pub(super) async fn commands(app: &App, folder: &Folder) -> Result<Vec<Value>, Fault> {
    let seen = seen(app, folder).await?;
    let prompts =
        seen.iter().flat_map(|seen| seen.status.lists.prompts.iter().map(|prompt| (&seen.config.name, prompt)));
    let commands = prompts.map(|(server, prompt)| {
        let place = |(at, _): (usize, &PromptArgument)| format!("${}", at + 1);
        let hints: Vec<String> = prompt.arguments.iter().enumerate().map(place).collect();
        json!({
            "name": format!("{server}:{}", prompt.name),
            "description": prompt.description.as_deref().unwrap_or_default(),
            "source": "mcp",
            "template": "",
            "hints": hints,
        })
    });
    Ok(commands.collect())
}

/// Whether a prompt of a server is called so.
pub(super) async fn has_command(app: &App, head: &Head, name: &str) -> bool {
    let Some(hub) = &app.config.hands.mcp else { return false };
    let kit = hub.of_session(head.id.as_str(), Place::new(&head.workspace));
    kit.settled(PATIENCE).await;
    kit.prompts().iter().any(|(server, prompt)| format!("{}:{}", server.name(), prompt.name) == name)
}

async fn resources(State(app): State<App>, folder: Folder) -> Answered<Value> {
    let mut shown = Map::new();
    let seen = seen(&app, &folder).await?;
    for (server, resource) in
        seen.iter().flat_map(|seen| seen.status.lists.resources.iter().map(|resource| (&seen.config.name, resource)))
    {
        let key = format!("{server}:{}", resource.uri);
        let mut about = json!({ "name": resource.name, "uri": resource.uri, "client": server });
        about["description"] = json!(resource.description);
        about["mimeType"] = json!(resource.mime);
        if let Value::Object(fields) = &mut about {
            fields.retain(|_, value| !value.is_null());
        }
        shown.insert(key, about);
    }
    Ok(Json(shown.into()))
}

/// To look starts nothing.
async fn seen(app: &App, folder: &Folder) -> Result<Vec<Seen>, Fault> {
    let place = folder.to_work_in(app).await?;
    Ok(app.config.hands.mcp.as_ref().map(|hub| hub.seen_in_folder(Place::new(&place))).unwrap_or_default())
}

async fn kit(app: &App, folder: &Folder) -> Result<Kit, Fault> {
    let place = folder.to_work_in(app).await?;
    Ok(app.config.hands.mcp.as_ref().map(|hub| hub.of_folder(Place::new(&place))).unwrap_or_default())
}

fn hub(app: &App) -> Result<&Arc<Hub>, Fault> {
    let none = || Fault::BadRequest("The agent of this server uses no MCP servers.".to_owned());
    app.config.hands.mcp.as_ref().ok_or_else(none)
}

fn found(kit: &Kit, name: &str) -> Result<Arc<Server>, Fault> {
    let name: String = name.chars().take(80).collect();
    kit.get(&name).cloned().ok_or_else(|| Fault::NotFound(format!("MCP server not found: {name}")))
}

fn shown(seen: &[Seen]) -> Value {
    Value::Object(seen.iter().map(|seen| (seen.config.name.clone(), status(&seen.status))).collect())
}

/// OpenCode has no word for one that is on its way.
fn status(status: &Status) -> Value {
    let error = || status.error.clone().unwrap_or_default();
    match status.state {
        Standing::Ready => json!({ "status": "connected" }),
        Standing::Idle | Standing::Disabled => json!({ "status": "disabled" }),
        Standing::Connecting if status.error.is_none() => json!({ "status": "failed", "error": "still connecting" }),
        Standing::Connecting | Standing::Failed => json!({ "status": "failed", "error": error() }),
        Standing::NeedsAuth => json!({ "status": "needs_auth" }),
    }
}
