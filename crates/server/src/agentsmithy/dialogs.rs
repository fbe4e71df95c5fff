//! Dialogs: made, listed, chosen, named, deleted.

use std::collections::HashMap;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tolka_dialect::onyx::timestamp;
use tolka_facts::event::SessionChanged;
use tolka_facts::{Head, SessionId};
use tolka_journal::SessionRow;
use tolka_session::{NewSession, UNNAMED};

use super::{Answered, Params, find, number};
use crate::app::App;
use crate::fault::Fault;
use crate::request::json_body;

/// As many as the real server lists unless it is asked for more or fewer.
const LISTED: u64 = 50;

/// By which of its times a dialog stands in a list.
#[derive(Debug, Clone, Copy)]
enum Sort {
    Updated,
    Created,
}

#[derive(Debug, Clone, Copy)]
enum Order {
    NewestFirst,
    OldestFirst,
}

/// A title that there is not is left out, as its clients expect it.
fn shape(head: &Head) -> Value {
    let mut dialog = json!({ "id": head.id });
    if !head.title.is_empty() && head.title != UNNAMED {
        dialog["title"] = json!(head.title);
    }
    dialog["created_at"] = json!(timestamp(head.created));
    dialog["updated_at"] = json!(timestamp(head.updated));
    dialog
}

pub(super) async fn list(State(app): State<App>, Query(params): Params) -> Answered {
    let sort = choice(&params, "sort", [("updated_at", Sort::Updated), ("created_at", Sort::Created)])?;
    let order = choice(&params, "order", [("desc", Order::NewestFirst), ("asc", Order::OldestFirst)])?;
    let count = |name, or: u64| number(&params, name).map(|n| usize::try_from(n.unwrap_or(or)).unwrap_or(usize::MAX));
    let (limit, offset) = (count("limit", LISTED)?, count("offset", 0)?);
    let rows = match (sort, order) {
        (Sort::Updated, Order::NewestFirst) => app.listed(offset, limit).await?,
        // The journal has them by their last change, the latest first: any other order takes all of them.
        _ => {
            let mut rows = app.listed(0, usize::MAX).await?;
            if let Sort::Created = sort {
                rows.sort_by_key(|row| std::cmp::Reverse(row.head.created));
            }
            if let Order::OldestFirst = order {
                rows.reverse();
            }
            rows.into_iter().skip(offset).take(limit).collect()
        }
    };
    let dialogs: Vec<Value> = rows.iter().map(|row| shape(&row.head)).collect();
    let mut answer = json!({ "dialogs": dialogs });
    if let Some(current) = current_row(&app).await? {
        answer["current_dialog_id"] = json!(current.head.id);
    }
    Ok(Json(answer).into_response())
}

/// What the word of a query stands for; without one, what the first does.
fn choice<T>(params: &HashMap<String, String>, name: &str, words: [(&str, T); 2]) -> Result<T, Fault> {
    let [(usual, first), (other, second)] = words;
    match params.get(name) {
        None => Ok(first),
        Some(given) if given == usual => Ok(first),
        Some(given) if given == other => Ok(second),
        Some(_) => Err(Fault::Invalid(format!("`{name}` must be {usual} or {other}."))),
    }
}

/// The real server answers with the id alone; its VS Code client looks for the rest as well.
pub(super) async fn create(State(app): State<App>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let set_current = match body.get("set_current") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(set_current)) => *set_current,
        Some(_) => return Err(Fault::Invalid("`set_current` must be true or false.".to_owned()).into()),
    };
    let head = make(&app, title(&body)?).await?;
    if set_current {
        app.desk.choose(Some(head.id.clone())).await?;
    }
    Ok(Json(shape(&head)).into_response())
}

async fn make(app: &App, title: Option<String>) -> Result<Head, Fault> {
    let new = NewSession { workspace: app.workspace(None).await?, title, ..NewSession::default() };
    Ok(app.desk.create(new).await?.head)
}

fn title(body: &Value) -> Result<Option<String>, Fault> {
    match body.get("title") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(title)) => Ok(Some(title.trim().to_owned()).filter(|title| !title.is_empty())),
        Some(_) => Err(Fault::Invalid("`title` must be a string.".to_owned())),
    }
}

/// The dialog that was chosen last. Should somebody of another family have deleted it, the newest of the others.
pub(super) async fn current_row(app: &App) -> Result<Option<SessionRow>, Fault> {
    let Some(chosen) = app.desk.chosen().await? else { return Ok(None) };
    match find(app, chosen.as_str()).await {
        Ok(row) => Ok(Some(row)),
        Err(Fault::NotFound(_)) => Ok(newest(app).await?),
        Err(fault) => Err(fault),
    }
}

async fn newest(app: &App) -> Result<Option<SessionRow>, Fault> {
    Ok(app.listed(0, 1).await?.into_iter().next())
}

/// The current dialog; if there is none, a new one that is current from now on.
pub(super) async fn current_or_new(app: &App) -> Result<SessionId, Fault> {
    let _choosing = app.choosing.lock().await;
    if let Some(row) = current_row(app).await? {
        return Ok(row.head.id);
    }
    let made = make(app, None).await?.id;
    app.desk.choose(Some(made.clone())).await?;
    Ok(made)
}

pub(super) async fn current(State(app): State<App>) -> Answered {
    let current = current_row(&app).await?;
    let shown = current.map_or(json!({}), |row| json!({ "id": row.head.id, "meta": shape(&row.head) }));
    Ok(Json(shown).into_response())
}

pub(super) async fn choose(State(app): State<App>, Query(params): Params) -> Answered {
    let missing = || Fault::Invalid("`id` is missing: PATCH /api/dialogs/current?id=<dialog>.".to_owned());
    let id = find(&app, params.get("id").ok_or_else(missing)?).await?.head.id;
    app.desk.choose(Some(id)).await?;
    Ok(Json(json!({ "ok": true })).into_response())
}

pub(super) async fn get(State(app): State<App>, Path(id): Path<String>) -> Answered {
    Ok(Json(shape(&find(&app, &id).await?.head)).into_response())
}

/// `{"ok": true}` is all that the real server says; its VS Code client takes the new title from the answer.
pub(super) async fn rename(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let title = title(&json_body(body).await?)?;
    let id = find(&app, &id).await?.head.id;
    if title.is_some() {
        let change = SessionChanged { title, mode: None, model: None, agent: None, archived: None };
        app.desk.change(&id, change).await?;
    }
    let mut shown = json!({ "ok": true });
    if let (Value::Object(shown), Value::Object(dialog)) = (&mut shown, shape(&find(&app, id.as_str()).await?.head)) {
        shown.extend(dialog);
    }
    Ok(Json(shown).into_response())
}

/// With the current one gone, the newest of the others is current.
pub(super) async fn delete(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let id = find(&app, &id).await?.head.id;
    app.delete(&id).await?;
    if app.desk.chosen().await? == Some(id) {
        app.desk.choose(newest(&app).await?.map(|row| row.head.id)).await?;
    }
    Ok(Json(json!({ "ok": true })).into_response())
}
