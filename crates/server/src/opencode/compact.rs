//! Summaries on request.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use tolka_facts::SessionId;
use tolka_session::{Accepted, CompactRequest};

use super::{choice, session_row, wait};
use crate::app::App;
use crate::fault::{Fault, OpenCodeError};
use crate::request::{json_body, text_field};

/// Answers when there is a summary, as OpenCode does. A client that leaves leaves it being made.
pub(super) async fn summarize(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, OpenCodeError> {
    let body = json_body(body).await?;
    let name = |field: &str| {
        let missing = || Fault::BadRequest(format!("Missing key\n  at [\"{field}\"]"));
        Ok::<String, Fault>(text_field(&body, field)?.ok_or_else(missing)?.to_owned())
    };
    let model = json!({ "model": { "providerID": name("providerID")?, "modelID": name("modelID")? } });
    let (session, accepted) = compact(&app, id, &model).await?;
    Ok(wait::for_summary(app, session, accepted).await?)
}

/// The newer API's, which does not wait.
pub(super) async fn and_go(State(app): State<App>, Path(id): Path<String>) -> Result<StatusCode, OpenCodeError> {
    compact(&app, id, &Value::Null).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn compact(app: &App, id: String, body: &Value) -> Result<(SessionId, Accepted), Fault> {
    let head = session_row(app, id).await?.head;
    let choice::Choice { model, .. } = choice::in_session(app, &head, body)?;
    let accepted = app.desk.compact(&head.id, CompactRequest { model, ..CompactRequest::default() }).await?;
    Ok((head.id, accepted))
}
