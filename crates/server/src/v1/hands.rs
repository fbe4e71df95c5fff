//! What agents here can work with and what they may do: models, modes, rules and what was allowed always.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};
use tolka_agent::native::permission::{Grants, Leave, Rule};
use tolka_agent::{Agent, ModelAbout};

use crate::app::{App, Sandbox};
use crate::fault::{Fault, TolkaError};

type Answered = Result<Json<Value>, TolkaError>;

pub(super) async fn agents(State(app): State<App>) -> Json<Value> {
    let agents: Vec<Value> = app.desk.agents().iter().map(|agent| shown(agent.as_ref())).collect();
    Json(json!({ "agents": agents }))
}

/// Of all agents, the usual one of each first.
pub(super) async fn models(State(app): State<App>) -> Json<Value> {
    let of = |agent: &dyn Agent| {
        let name = agent.name().to_owned();
        let models = agent.models().into_iter().map(move |about| {
            let mut shown = model(&about);
            shown["agent"] = json!(name);
            shown
        });
        models.collect::<Vec<Value>>()
    };
    let models: Vec<Value> = app.desk.agents().iter().flat_map(|agent| of(agent.as_ref())).collect();
    Json(json!({ "models": models }))
}

pub(super) async fn permissions(State(app): State<App>) -> Answered {
    let grants = with_grants(&app, |grants| grants.read()).await?.unwrap_or_default();
    let rules: Vec<Value> = app.config.hands.rules.iter().map(rule).collect();
    Ok(Json(json!({ "rules": rules, "grants": grants })))
}

pub(super) async fn revoke(State(app): State<App>, Path(id): Path<String>) -> Result<StatusCode, TolkaError> {
    let named = id.clone();
    if with_grants(&app, move |grants| grants.revoke(&named)).await? == Some(true) {
        return Ok(StatusCode::NO_CONTENT);
    }
    let id: String = id.chars().take(80).collect();
    Err(Fault::NotFound(format!("Nothing was allowed always as `{id}`; GET /v1/permissions lists what was.")).into())
}

/// They are in a file, so they are not read where nobody may wait. `None`: there are no grants here.
async fn with_grants<T, E>(
    app: &App,
    act: impl FnOnce(&Grants) -> Result<T, E> + Send + 'static,
) -> Result<Option<T>, Fault>
where
    T: Send + 'static,
    E: std::fmt::Display + Send + 'static,
{
    let Some(grants) = app.config.hands.grants.clone() else { return Ok(None) };
    let acted = tokio::task::spawn_blocking(move || act(&grants)).await.map_err(|_| Fault::Internal)?;
    acted.map(Some).map_err(|error| {
        tracing::error!(%error, "grants");
        Fault::Storage(format!("What was allowed always cannot be told: {error}."))
    })
}

pub(super) fn sandbox(sandbox: &Sandbox) -> Value {
    let Sandbox { level, network, hosts, cannot_stop } = sandbox;
    json!({ "level": level, "network": network, "hosts": hosts, "cannot_stop": cannot_stop })
}

fn shown(agent: &dyn Agent) -> Value {
    let modes: Vec<Value> =
        agent.modes().iter().map(|mode| json!({ "name": mode.name, "description": mode.description })).collect();
    let models: Vec<Value> = agent.models().iter().map(model).collect();
    json!({ "name": agent.name(), "model": agent.model(), "models": models, "modes": modes })
}

/// What is not known is left out.
fn model(about: &ModelAbout) -> Value {
    let mut shown = json!({
        "provider": about.model.provider,
        "id": about.model.id,
        "name": about.name,
        "sees_images": about.sees_images,
    });
    let limits = [("context", about.context), ("output", about.output)];
    for (name, tokens) in limits.into_iter().filter_map(|(name, tokens)| Some((name, tokens?))) {
        shown[name] = json!(tokens);
    }
    if let Some(price) = about.price {
        shown["price"] = json!({
            "input": price.input,
            "output": price.output,
            "cache_read": price.cache_read,
            "cache_write": price.cache_write,
        });
    }
    shown
}

fn rule(rule: &Rule) -> Value {
    let leave = match rule.leave {
        Leave::Allow => "allow",
        Leave::Ask => "ask",
        Leave::Deny => "deny",
    };
    json!({ "permission": rule.permission, "pattern": rule.pattern, "leave": leave })
}
