use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tolka_dialect::opencode::session_info;
use tolka_facts::event::{Parent, ParentKind, SessionChanged};
use tolka_facts::{Event, Head, SessionId, Time, Tip};
use tolka_journal::{Entry, JournalError, Kin, Scope, SessionQuery};
use tolka_session::NewSession;

use super::folder::Folder;
use super::query::Params;
use super::{Answered, choice, session_id, session_row};
use crate::app::App;
use crate::fault::Fault;
use crate::request::{json_body, text_field};
use crate::stream::Follow;

/// As many as OpenCode's own server lists unless it is asked for more or fewer.
const LISTED: u64 = 100;
/// A turn that is cancelled ends within a second, and then the workspace is saved.
const ENDING: Duration = Duration::from_secs(15);
/// Facts that are read at a time on the way to the end of a turn.
const ENTRIES: usize = 256;

pub(super) async fn create(State(app): State<App>, folder: Folder, body: Body) -> Answered<Value> {
    let body = json_body(body).await?;
    let mut parent = None;
    if let Some(id) = text_field(&body, "parentID")? {
        let session = session_row(&app, id.to_owned()).await?.head.id;
        parent = Some(Parent { session, kind: ParentKind::Subagent, at: None, call: None });
    }
    if body.get("permission").is_some_and(|rules| !rules.is_null()) {
        // Refusing them would shut out `opencode run`, which always sends some. They are not shown as if they held.
        tracing::info!("a client sent permission rules; agents here ask by their own");
    }
    let choice::Choice { agent, mode, model } = choice::for_new_session(&app, &body)?;
    let new = NewSession {
        workspace: folder.to_work_in(&app).await?,
        agent,
        title: text_field(&body, "title")?.filter(|title| !title.is_empty()).map(str::to_owned),
        mode,
        model,
        parent,
    };
    let tip = app.desk.create(new).await?;
    Ok(Json(session_info(&tip.head)))
}

pub(super) async fn list(State(app): State<App>, folder: Folder, params: Params) -> Answered<Vec<Value>> {
    let limit = params.number("limit")?.filter(|limit| *limit > 0).unwrap_or(LISTED);
    // A page that is asked for after another would miss what was changed in between; this is one look.
    let query = SessionQuery {
        workspace: folder.to_filter_by(&app).await,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        // A fork stands on its own in this family.
        kin: if params.flag("roots")? { Kin::NoSubagents } else { Kin::All },
        since: params.number("start")?.map_or(Time::default(), Time::from_millis),
        titled: params.text("search").map(str::to_owned),
        ..SessionQuery::default()
    };
    let rows = app.journal().sessions(query).await.map_err(Fault::from)?;
    Ok(Json(rows.iter().map(|row| session_info(&row.head)).collect()))
}

/// Only those that are at work; a session that is not named is idle.
pub(super) async fn status(State(app): State<App>, folder: Folder) -> Answered<Map<String, Value>> {
    let query = SessionQuery { workspace: folder.to_filter_by(&app).await, open: true, ..SessionQuery::default() };
    let rows = app.journal().sessions(query).await.map_err(Fault::from)?;
    let busy = rows.iter().filter(|row| row.head.busy || row.head.queued > 0);
    Ok(Json(busy.map(|row| (row.head.id.to_string(), json!({ "type": "busy" }))).collect()))
}

pub(super) async fn get(State(app): State<App>, Path(id): Path<String>) -> Answered<Value> {
    Ok(Json(session_info(&session_row(&app, id).await?.head)))
}

pub(super) async fn change(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered<Value> {
    let body = json_body(body).await?;
    let session = session_row(&app, id.clone()).await?.head.id;
    let title = text_field(&body, "title")?.map(str::to_owned);
    let archived = match body.get("time").and_then(|time| time.get("archived")) {
        None => None,
        // Clients bring a session back with a time that is none.
        Some(Value::Null) => Some(false),
        Some(Value::Number(at)) => Some(at.as_f64() != Some(0.0)),
        Some(_) => return Err(Fault::BadRequest("Expected a number\n  at [\"time\"][\"archived\"]".to_owned()).into()),
    };
    if title.is_some() || archived.is_some() {
        app.desk.change(&session, SessionChanged { title, mode: None, model: None, agent: None, archived }).await?;
    }
    Ok(Json(session_info(&session_row(&app, id).await?.head)))
}

pub(super) async fn delete(State(app): State<App>, Path(id): Path<String>) -> Answered<bool> {
    app.delete(&session_id(id)?).await?;
    Ok(Json(true))
}

pub(super) async fn children(State(app): State<App>, Path(id): Path<String>) -> Answered<Vec<Value>> {
    let parent: SessionId = session_row(&app, id).await?.head.id;
    let query = SessionQuery { kin: Kin::ChildrenOf(parent), ..SessionQuery::default() };
    let children = app.journal().sessions(query).await.map_err(Fault::from)?;
    let is_called = |head: &&Head| head.parent.as_ref().is_some_and(|parent| parent.kind == ParentKind::Subagent);
    Ok(Json(children.iter().map(|row| &row.head).filter(is_called).map(session_info).collect()))
}

/// A plan's entries have the fields and the words of OpenCode's todos.
pub(super) async fn todo(State(app): State<App>, Path(id): Path<String>) -> Answered<Value> {
    let tip = app.desk.tip(&session_id(id)?).await?;
    Ok(Json(json!(tip.plan)))
}

/// Stops the session, as this family understands it: what waits behind the running turn is dropped with it. Its clients
/// go on when this is answered, to undo the turn say, so the turn is over by then.
pub(super) async fn abort(State(app): State<App>, Path(id): Path<String>) -> Answered<bool> {
    let session = session_row(&app, id).await?.head.id;
    let tip = app.desk.tip(&session).await?;
    if app.desk.cancel(&session, true).await? {
        // A turn that is not over by now has something that hangs; it is told when it is.
        let _ = timeout(ENDING, ended(&app, &tip)).await;
    }
    Ok(Json(true))
}

/// Waits for the end of the turn that runs in a session, or is about to.
async fn ended(app: &App, tip: &Tip) -> Result<(), JournalError> {
    let mut follow = Follow::new(app.journal().clone(), Scope::Session(tip.head.id.clone()), tip.seq);
    loop {
        let entries = follow.next(ENTRIES).await?;
        let is_end = |entry: &Entry| matches!(entry.fact.event, Event::TurnEnded(_) | Event::SessionDeleted(_));
        if entries.is_empty() || entries.iter().any(is_end) {
            return Ok(());
        }
    }
}
