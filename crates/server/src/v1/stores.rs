//! The room that snapshots take.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use serde_json::{Value, json};
use tolka_workspace::checkpoint::Policy;

use crate::app::App;
use crate::fault::{Fault, TolkaError};
use crate::request::json_body;

/// A hundred years are for ever.
const FOR_EVER: u64 = 100 * 365 * 24 * 3600;

/// Removes old snapshots, or with `preview` says what would go.
pub(super) async fn prune(State(app): State<App>, body: Body) -> Result<Json<Value>, TolkaError> {
    let body = json_body(body).await?;
    let number = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let wrong = || Fault::BadRequest(format!("`{name}` must be a number from 0 on."));
            value.as_u64().map(Some).ok_or_else(wrong)
        }
    };
    let (older_than, most_bytes) = (number("older_than")?, number("most_bytes")?);
    if older_than.is_none() && most_bytes.is_none() {
        let wanted = "Say what may go: `older_than` (seconds), `most_bytes` (of one workspace's store), or both.";
        return Err(Fault::BadRequest(wanted.to_owned()).into());
    }
    let is_preview = match body.get("preview") {
        None | Some(Value::Null) => false,
        Some(value) => {
            value.as_bool().ok_or_else(|| Fault::BadRequest("`preview` must be true or false.".to_owned()))?
        }
    };
    let policy = Policy {
        keep_for: Duration::from_secs(older_than.unwrap_or(FOR_EVER).min(FOR_EVER)),
        most_bytes: most_bytes.unwrap_or(u64::MAX),
    };
    let pruned = if is_preview { app.desk.prunable(&policy).await } else { app.desk.prune(&policy).await };
    let pruned = pruned.map_err(Fault::from)?;
    Ok(Json(json!({ "checkpoints": pruned.snapshots, "bytes": pruned.bytes, "preview": is_preview })))
}
