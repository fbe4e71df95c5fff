use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tolka_facts::event::{Model, SessionChanged};
use tolka_facts::{Block, Json, RequestId, SessionId, TurnId};
use tolka_journal::{JournalError, Kin, Purged, SessionQuery, Standing};
use tolka_session::{Accepted, Answer, CompactRequest, NewSession, PromptRequest};

use super::{limit, shapes};
use crate::app::App;
use crate::fault::{Fault, TolkaError};
use crate::guard::Caller;
use crate::request::{json_body, text_field};

type Answered = Result<Response, TolkaError>;

const PAGE: usize = 100;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    limit: Option<String>,
    after: Option<String>,
    workspace: Option<String>,
    parent: Option<String>,
}

pub(super) async fn list(State(app): State<App>, Query(query): Query<ListQuery>) -> Answered {
    let limit = limit(query.limit.as_deref(), PAGE)?;
    let after = match query.after {
        Some(after) => Some(standing(&app, after).await?),
        None => None,
    };
    let kin = match query.parent {
        Some(parent) => {
            app.desk.tip(&SessionId::from(parent.as_str())).await?;
            Kin::ChildrenOf(SessionId::from(parent))
        }
        None => Kin::NoSubagents,
    };
    // One more tells whether there is a next page.
    let mut rows = app
        .journal()
        .sessions(SessionQuery { workspace: query.workspace, limit: limit + 1, after, kin, ..SessionQuery::default() })
        .await?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(|row| row.standing.to_string());
    let sessions: Vec<Value> = rows.iter().map(|row| shapes::session(&row.head, row.seq)).collect();
    Ok(axum::Json(json!({ "sessions": sessions, "next": next })).into_response())
}

/// Where a page begins: `next` of the one before, or the id of a session that is still there.
async fn standing(app: &App, after: String) -> Result<Standing, Fault> {
    if let Ok(standing) = after.parse() {
        return Ok(standing);
    }
    let session = SessionId::from(after);
    let row = app.journal().session(&session).await?;
    Ok(row.ok_or(JournalError::NoSession { session })?.standing)
}

pub(super) async fn create(State(app): State<App>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let owned = |name: &str| text_field(&body, name).map(|text| text.map(str::to_owned));
    let new = NewSession {
        workspace: app.workspace(text_field(&body, "workspace")?).await?,
        agent: owned("agent")?,
        title: owned("title")?,
        mode: owned("mode")?,
        model: model(&body)?,
        parent: None,
    };
    let tip = app.desk.create(new).await?;
    Ok((StatusCode::CREATED, axum::Json(shapes::session(&tip.head, tip.seq))).into_response())
}

pub(super) async fn get(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let tip = app.desk.tip(&SessionId::from(id)).await?;
    Ok(axum::Json(shapes::session(&tip.head, tip.seq)).into_response())
}

pub(super) async fn change(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let session = SessionId::from(id);
    app.desk.tip(&session).await?;
    let owned = |name: &str| text_field(&body, name).map(|text| text.map(str::to_owned));
    let archived = match body.get("archived") {
        None => None,
        Some(Value::Bool(archived)) => Some(*archived),
        Some(_) => return Err(Fault::BadRequest("`archived` must be true or false.".to_owned()).into()),
    };
    let change =
        SessionChanged { title: owned("title")?, mode: owned("mode")?, model: model(&body)?, agent: None, archived };
    if change == (SessionChanged { title: None, mode: None, model: None, agent: None, archived: None }) {
        let message = "Nothing to change; give one of `title`, `mode`, `model`, `archived`.";
        return Err(Fault::BadRequest(message.to_owned()).into());
    }
    app.desk.change(&session, change).await?;
    let tip = app.desk.tip(&session).await?;
    Ok(axum::Json(shapes::session(&tip.head, tip.seq)).into_response())
}

#[derive(Deserialize)]
pub(super) struct DeleteQuery {
    purge: Option<String>,
}

/// With `?purge=true` the facts, blobs and checkpoints go too, also of a session that was deleted before.
pub(super) async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(query): Query<DeleteQuery>,
) -> Answered {
    let is_purge = match query.purge.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Fault::BadRequest("`purge` is true or false.".to_owned()).into()),
    };
    let session = SessionId::from(id);
    let deleted = app.delete(&session).await;
    if !is_purge {
        deleted?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    // What was deleted before can still be purged; what never was a session cannot.
    if session.is_server() || app.journal().session(&session).await?.is_none() {
        deleted?;
    }
    let purged = app.desk.purge(&session).await?;
    let Purged { facts, blobs, bytes } = purged.freed;
    let mut shown = json!({ "purged": { "facts": facts, "blobs": blobs, "bytes": bytes } });
    if let Some(folder) = purged.kept {
        // Somebody may have worked there.
        shown["kept"] = json!({ "folder": folder.to_string_lossy() });
    }
    Ok(axum::Json(shown).into_response())
}

pub(super) async fn prompt(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let content = match (text_field(&body, "text")?, body.get("content")) {
        (Some(text), None) if text.trim().is_empty() => Vec::new(),
        (Some(text), None) => vec![Block::text(text)],
        (None, Some(content)) => serde_json::from_value(content.clone())
            .map_err(|error| Fault::BadRequest(format!("`content` is not a list of blocks: {error}.")))?,
        (Some(_), Some(_)) => return Err(Fault::BadRequest("Give `text` or `content`, not both.".to_owned()).into()),
        (None, None) => return Err(Fault::BadRequest("Give the prompt as `text` or `content`.".to_owned()).into()),
    };
    let request = PromptRequest {
        content,
        key: text_field(&body, "key")?.map(str::to_owned),
        agent: text_field(&body, "mode")?.map(str::to_owned),
        model: model(&body)?,
        context: body.get("context").map(Json::from_value),
        steer: flag(&body, "steer")?,
        ..PromptRequest::default()
    };
    let session = SessionId::from(id);
    let accepted = app.desk.prompt(&session, request).await?;
    Ok(taken(&session, &accepted))
}

/// Has the session summarised when it is free.
pub(super) async fn compact(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let request = CompactRequest {
        instructions: text_field(&body, "instructions")?.unwrap_or_default().to_owned(),
        key: text_field(&body, "key")?.map(str::to_owned),
        model: model(&body)?,
    };
    let session = SessionId::from(id);
    let accepted = app.desk.compact(&session, request).await?;
    Ok(taken(&session, &accepted))
}

fn taken(session: &SessionId, accepted: &Accepted) -> Response {
    let mut answer = json!({
        "session": session,
        "turn": accepted.turn,
        "message": accepted.message,
        "position": accepted.seq.to_string(),
        "ahead": accepted.ahead,
        "repeated": accepted.repeated,
    });
    if let Some(turn) = &accepted.steers {
        answer["steers"] = json!(turn);
    }
    (StatusCode::ACCEPTED, axum::Json(answer)).into_response()
}

pub(super) async fn queue(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let tip = app.desk.tip(&SessionId::from(id)).await?;
    let waiting: Vec<Value> = tip
        .queue
        .iter()
        .map(|queued| json!({ "turn": queued.prompt.turn, "message": queued.prompt.message, "content": queued.prompt.content, "time": queued.time }))
        .collect();
    let running =
        tip.turn.as_ref().map(|turn| json!({ "turn": turn.id, "message": turn.message, "started": turn.started }));
    Ok(axum::Json(json!({ "running": running, "waiting": waiting })).into_response())
}

pub(super) async fn drop_prompt(State(app): State<App>, Path((id, turn)): Path<(String, String)>) -> Answered {
    app.desk.drop_prompt(&SessionId::from(id), TurnId::from(turn)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn cancel(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let queue_too = flag(&body, "queue")?;
    let session = SessionId::from(id);
    app.desk.tip(&session).await?;
    let cancelled = app.desk.cancel(&session, queue_too).await?;
    Ok(axum::Json(json!({ "cancelled": cancelled })).into_response())
}

pub(super) async fn answer(
    State(app): State<App>,
    Path((id, request)): Path<(String, String)>,
    Extension(Caller { name: by, .. }): Extension<Caller>,
    body: Body,
) -> Answered {
    let body = json_body(body).await?;
    let reason = text_field(&body, "reason")?.map(str::to_owned);
    let given = match (text_field(&body, "option")?, body.get("answers"), body.get("reject")) {
        (Some(option), None, None) => Answer::Option { id: option.to_owned(), reason },
        (None, Some(answers), None) => Answer::Questions(serde_json::from_value(answers.clone()).map_err(|_| {
            Fault::BadRequest("`answers` must be a list of lists of strings, one list per question.".to_owned())
        })?),
        (None, None, Some(Value::Bool(true))) => Answer::Kind { allow: false, always: false, reason },
        _ => {
            let message = "Give one of `option` (an option's id), `answers` (for questions), or `reject`: true; a \
                           `reason` may stand beside it.";
            return Err(Fault::BadRequest(message.to_owned()).into());
        }
    };
    app.desk.answer(&SessionId::from(id), RequestId::from(request), given, by).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Something that a client asks for by `true`.
pub(super) fn flag(body: &Value, name: &str) -> Result<bool, Fault> {
    match body.get(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(Fault::BadRequest(format!("`{name}` must be true or false."))),
    }
}

fn model(body: &Value) -> Result<Option<Model>, Fault> {
    let wrong = |_| Fault::BadRequest("`model` must be {\"provider\": …, \"id\": …}.".to_owned());
    body.get("model").map(|model| serde_json::from_value(model.clone()).map_err(wrong)).transpose()
}
