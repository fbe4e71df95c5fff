//! What the VS Code client asks about the server itself.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use tolka_facts::event::Model;

use crate::app::App;
use crate::fault::{AgentSmithyError, Fault};

/// Its client waits for `ready`, and asks for settings until they are valid; there are none to make here.
pub(super) async fn health(State(app): State<App>) -> Json<Value> {
    let is_stopping = *app.stopping.borrow();
    Json(json!({
        "status": "ok",
        "service": "agentsmithy-server",
        "server_status": if is_stopping { "stopping" } else { "ready" },
        "port": app.port,
        "pid": std::process::id(),
        "server_error": null,
        "config_valid": true,
        "config_errors": [],
    }))
}

/// Which models there are, in the form of its settings page. They are made elsewhere: no key is ever shown here.
pub(super) async fn config(State(app): State<App>) -> Json<Value> {
    let models: Vec<Model> =
        app.desk.agents().iter().flat_map(|agent| agent.models()).map(|about| about.model).collect();
    let (mut catalog, mut providers) = (Map::new(), Vec::new());
    for Model { provider, id } in &models {
        if !catalog.contains_key(provider) {
            providers.push(json!({ "name": provider, "type": provider, "has_api_key": true, "is_used": true }));
        }
        let listed = catalog.entry(provider.clone()).or_insert_with(|| json!({ "chat": [] }));
        listed["chat"].as_array_mut().into_iter().for_each(|chat| chat.push(json!(id)));
    }
    let named = |model: &Model| format!("{}/{}", model.provider, model.id);
    let workloads = models
        .iter()
        .map(|model| json!({ "name": named(model), "kind": "chat", "provider": model.provider, "model": model.id }));
    let workloads: Vec<Value> = workloads.collect();
    Json(json!({
        "config": { "models": { "agents": { "universal": { "workload": models.first().map(named) } } } },
        "metadata": {
            "provider_types": catalog.keys().collect::<Vec<_>>(),
            "workload_kinds": ["chat"],
            "providers": providers,
            "agent_provider_slots": [],
            "workloads": workloads,
            "model_catalog": catalog,
        },
    }))
}

pub(super) async fn set_elsewhere() -> AgentSmithyError {
    let words = "Settings are not changed here, and keys are never sent to this server: write them into tolka.toml or \
                 set the provider's environment variable (`tolka models` says what is usable and why the rest is not), \
                 then start tolka again. One dialog's model: PATCH /v1/sessions/{id} with {\"model\": {\"provider\": …, \
                 \"id\": …}}; GET /api/config lists them.";
    AgentSmithyError(Fault::NotThereYet(words.to_owned()))
}
