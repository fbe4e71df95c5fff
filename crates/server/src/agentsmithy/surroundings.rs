//! What the VS Code client asks about the server itself, and what Tolka does not have yet.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde_json::{Value, json};

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

pub(super) async fn not_there_yet(uri: Uri) -> AgentSmithyError {
    let what = match uri.path().rsplit('/').next() {
        Some("config" | "rename") => "Settings are made on Tolka's command line, not here",
        _ => "Checkpoints and the approval of changes are not there yet",
    };
    AgentSmithyError(Fault::NotThereYet(format!("{what}: Tolka does not answer {} yet.", uri.path())))
}
