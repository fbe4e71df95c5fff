//! What a client asks about before it does anything: configuration, models, folders. OpenCode's terminal client
//! will not start without the first few.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path as InPath, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use tolka_agent::{Agent, ModeAbout, ModelAbout};
use tolka_dialect::opencode::{SPOKEN_VERSION, project_id};
use tolka_journal::Workspace;

use super::Answered;
use super::folder::Folder;
use crate::app::App;
use crate::fault::Fault;
use crate::request::{json_body, text_field};

/// What a client may add to our log with one request.
const LOGGED: usize = 2000;

pub(super) fn routes() -> Router<App> {
    let mut routes = Router::new()
        .route("/global/health", get(health))
        .route("/global/config", get(|| async { Json(json!({ "$schema": SCHEMA })) }))
        .route("/config", get(config))
        .route("/config/providers", get(config_providers))
        .route("/provider", get(providers))
        .route("/agent", get(agents))
        .route("/path", get(paths))
        .route("/project", get(projects))
        .route("/project/current", get(current_project))
        .route("/project/{id}/directories", get(directories))
        .route("/vcs", get(vcs))
        .route("/log", post(log))
        .route("/experimental/capabilities", get(|| async { Json(json!({ "backgroundSubagents": false })) }))
        .route("/experimental/console", get(console));
    for nothing in NO_LISTS {
        routes = routes.route(nothing, get(|| async { Json(json!([])) }));
    }
    for nothing in NO_MAPS {
        routes = routes.route(nothing, get(|| async { Json(json!({})) }));
    }
    routes
}

const SCHEMA: &str = "https://opencode.ai/config.json";
/// What this server has nothing of.
const NO_LISTS: [&str; 6] = [
    "/skill",
    "/lsp",
    "/formatter",
    "/experimental/workspace",
    "/experimental/workspace/status",
    "/experimental/tool/ids",
];
const NO_MAPS: [&str; 1] = ["/provider/auth"];

async fn health() -> Json<Value> {
    Json(json!({ "healthy": true, "version": SPOKEN_VERSION }))
}

async fn console() -> Json<Value> {
    Json(json!({ "consoleManagedProviders": [], "switchableOrgCount": 0 }))
}

async fn config(State(app): State<App>) -> Json<Value> {
    let mut config = json!({
        "$schema": SCHEMA,
        "command": {},
        "plugin": [],
        "share": "disabled",
        "autoupdate": false,
        "mode": {},
        "agent": {},
        "provider": {},
    });
    if let Some(model) = app.desk.agents().first().map(|agent| agent.model()) {
        config["model"] = json!(format!("{}/{}", model.provider, model.id));
    }
    Json(config)
}

async fn config_providers(State(app): State<App>) -> Json<Value> {
    let (providers, default) = known_providers(app.desk.agents());
    Json(json!({ "providers": providers, "default": default }))
}

async fn providers(State(app): State<App>) -> Json<Value> {
    let (providers, default) = known_providers(app.desk.agents());
    let connected: Vec<&Value> = providers.iter().map(|provider| &provider["id"]).collect();
    Json(json!({ "all": providers, "default": default, "connected": connected }))
}

/// The models of all agents, each under its provider, and each provider's first as its default. What is not known of a
/// model (prices, limits) is 0, which clients take for unknown.
fn known_providers(agents: &[Arc<dyn Agent>]) -> (Vec<Value>, Map<String, Value>) {
    let (mut providers, mut default) = (Vec::<Value>::new(), Map::new());
    for agent in agents {
        for about in agent.models() {
            let (shown, model) = (shown(&about), about.model);
            let known = providers.iter_mut().find(|provider| provider["id"] == *model.provider);
            if let Some(models) = known.and_then(|provider| provider["models"].as_object_mut()) {
                models.entry(model.id).or_insert(shown);
                continue;
            }
            default.insert(model.provider.clone(), json!(model.id));
            providers.push(json!({
                "id": model.provider,
                "name": model.provider,
                "source": "custom",
                "env": [],
                "options": {},
                "models": { model.id: shown },
            }));
        }
    }
    (providers, default)
}

fn shown(about: &ModelAbout) -> Value {
    let (model, price) = (&about.model, about.price.unwrap_or_default());
    json!({
        "id": model.id,
        "providerID": model.provider,
        "api": { "id": model.id, "url": "", "npm": "" },
        "name": about.name,
        "family": "",
        "capabilities": {
            "temperature": false,
            "reasoning": true,
            "attachment": about.sees_images,
            "toolcall": true,
            "input": { "text": true, "audio": false, "image": about.sees_images, "video": false, "pdf": false },
            "output": { "text": true, "audio": false, "image": false, "video": false, "pdf": false },
            "interleaved": false,
        },
        "cost": {
            "input": price.input,
            "output": price.output,
            "cache": { "read": price.cache_read, "write": price.cache_write },
        },
        "limit": { "context": about.context.unwrap_or(0), "output": about.output.unwrap_or(0) },
        "status": "active",
        "options": {},
        "headers": {},
        "release_date": "",
        "variants": {},
    })
}

/// The ways of working of all agents; each is asked for by its name, and an agent refuses those that it does not have.
async fn agents(State(app): State<App>, folder: Folder) -> Answered<Value> {
    let directory = PathBuf::from(folder.to_work_in(&app).await?);
    let agents = app.desk.agents().clone();
    let modes: Vec<ModeAbout> = agents.iter().flat_map(|agent| agent.modes()).collect();
    // It reads files.
    let kinds =
        tokio::task::spawn_blocking(move || agents.iter().flat_map(|agent| agent.subagents(&directory)).collect());
    let kinds: Vec<ModeAbout> = kinds.await.map_err(|_| Fault::Internal)?;
    let mut listed = Vec::<Value>::new();
    for (about, mode) in modes.iter().map(|mode| (mode, "primary")).chain(kinds.iter().map(|kind| (kind, "subagent"))) {
        if listed.iter().all(|known| known["name"] != *about.name) {
            listed.push(json!({
                "name": about.name,
                "description": about.description,
                "mode": mode,
                "native": true,
                "permission": [],
                "options": {},
            }));
        }
    }
    Ok(Json(listed.into()))
}

async fn paths(State(app): State<App>, folder: Folder) -> Answered<Value> {
    let directory = folder.to_work_in(&app).await?;
    let home = std::env::var("HOME").unwrap_or_default();
    let data = app.config.data.display().to_string();
    Ok(Json(json!({ "home": home, "state": data, "config": data, "worktree": directory, "directory": directory })))
}

/// Every folder that has sessions, and the configured one.
async fn projects(State(app): State<App>) -> Answered<Vec<Value>> {
    Ok(Json(known_folders(&app).await?.iter().map(project).collect()))
}

async fn current_project(State(app): State<App>, folder: Folder) -> Answered<Value> {
    let path = folder.to_work_in(&app).await?;
    let known = known_folders(&app).await?.into_iter().find(|known| known.path == path);
    Ok(Json(project(&known.unwrap_or(Workspace { path, created: app.started, updated: app.started }))))
}

async fn directories(State(app): State<App>, InPath(id): InPath<String>, folder: Folder) -> Answered<Value> {
    let mut folders: Vec<String> = known_folders(&app).await?.into_iter().map(|known| known.path).collect();
    folders.extend(folder.to_work_in(&app).await.ok());
    let found = folders.into_iter().find(|folder| project_id(folder) == id);
    let found = found.ok_or_else(|| Fault::NotFound(format!("Project not found: {id}")))?;
    Ok(Json(json!([{ "directory": found }])))
}

async fn known_folders(app: &App) -> Result<Vec<Workspace>, Fault> {
    let mut known = app.journal().workspaces().await?;
    let path = app.workspace(None).await?;
    let own = known.iter().position(|folder| folder.path == path).map(|at| known.remove(at));
    known.insert(0, own.unwrap_or(Workspace { path, created: app.started, updated: app.started }));
    Ok(known)
}

/// A folder as a project: as old as its first session, as fresh as its last.
fn project(folder: &Workspace) -> Value {
    let mut project = json!({
        "id": project_id(&folder.path),
        "worktree": folder.path,
        "time": { "created": folder.created.millis(), "updated": folder.updated.millis() },
        "sandboxes": [],
    });
    if Path::new(&folder.path).join(".git").exists() {
        project["vcs"] = json!("git");
    }
    project
}

/// The branch, where the folder is the root of a repository.
async fn vcs(State(app): State<App>, folder: Folder) -> Answered<Value> {
    let head: PathBuf = Path::new(&folder.to_work_in(&app).await?).join(".git/HEAD");
    // A plain file only: a link could lead out of the workspace, and a pipe would never end.
    let read = tokio::task::spawn_blocking(move || {
        let is_plain = std::fs::symlink_metadata(&head).is_ok_and(|meta| meta.is_file() && meta.len() < 4096);
        if is_plain { std::fs::read_to_string(head).unwrap_or_default() } else { String::new() }
    });
    let head = read.await.map_err(|_| Fault::Internal)?;
    let branch = head.trim_end().strip_prefix("ref: refs/heads/");
    Ok(Json(branch.map_or_else(|| json!({}), |branch| json!({ "branch": branch }))))
}

/// A client's words in our log, marked as such and on one line whatever they hold.
async fn log(body: Body) -> Answered<bool> {
    let body = json_body(body).await?;
    let cut = |name: &str| text_field(&body, name).map(|text| text.unwrap_or_default().chars().take(LOGGED).collect());
    let (service, message): (String, String) = (cut("service")?, cut("message")?);
    match text_field(&body, "level")? {
        Some("error") => tracing::error!(?service, ?message, "a client says"),
        Some("warn") => tracing::warn!(?service, ?message, "a client says"),
        Some("info") => tracing::info!(?service, ?message, "a client says"),
        _ => tracing::debug!(?service, ?message, "a client says"),
    }
    Ok(Json(true))
}
