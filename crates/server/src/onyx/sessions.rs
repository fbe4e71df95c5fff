//! Sessions: made, listed, named, read back, deleted; and what Onyx's frontend asks about them on every page.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tolka_facts::event::{ArtifactSaved, Model, SessionChanged};
use tolka_facts::{Block, Event, SessionId, Time};
use tolka_journal::{Entry, MarkKind};
use tolka_session::NewSession;

use super::{Answered, fact_at, find, shapes};
use crate::app::App;
use crate::fault::Fault;
use crate::request::{json_body, text_field};

/// As many as the real server lists.
const LISTED: usize = 100;
/// A made-up name is a line in a sidebar.
const NAME: usize = 60;

pub(super) async fn list(State(app): State<App>) -> Answered {
    let rows = app.listed(0, LISTED).await?;
    let sessions: Vec<Value> = rows.iter().map(|row| shapes::session(&row.head)).collect();
    Ok(Json(json!({ "sessions": sessions })).into_response())
}

/// Always a new one. Onyx hands out an empty session again, because each costs it a sandbox; here a session costs
/// nothing, and two clients that each asked for their own must not share one.
pub(super) async fn create(State(app): State<App>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let title = text_field(&body, "name")?.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    // What Onyx's frontend also sends has no meaning here, but a wrong type is still a mistake to tell.
    for name in ["headless", "demo_data_enabled"] {
        if !matches!(body.get(name), None | Some(Value::Null | Value::Bool(_))) {
            return Err(Fault::BadRequest(format!("`{name}` must be true or false.")).into());
        }
    }
    for name in ["user_work_area", "user_level"] {
        text_field(&body, name)?;
    }
    let model = match (text_field(&body, "llm_provider_type")?, text_field(&body, "llm_model_name")?) {
        (Some(provider), Some(id)) => Some(Model { provider: provider.to_owned(), id: id.to_owned() }),
        _ => None,
    };
    let model = model.and_then(|model| app.find_model(None, &model));
    let new = NewSession { workspace: app.workspace(None).await?, title, model, ..NewSession::default() };
    let tip = app.desk.create(new).await?;
    Ok(Json(shapes::detailed_session(&tip.head)).into_response())
}

/// Also the answer to a restore: there is nothing to wake.
pub(super) async fn get(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let row = find(&app, &id).await?;
    Ok(Json(shapes::detailed_session(&row.head)).into_response())
}

pub(super) async fn delete(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let row = find(&app, &id).await?;
    app.delete(&row.head.id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `null` asks for a made-up name.
pub(super) async fn rename(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let given = text_field(&body, "name")?.map(str::trim);
    if given.is_some_and(str::is_empty) {
        return Err(Fault::BadRequest("`name` is empty; give null to have one made up.".to_owned()).into());
    }
    let row = find(&app, &id).await?;
    let name = match given {
        Some(name) => Some(name.to_owned()),
        None => made_up_name(&app, &row.head.id).await?,
    };
    set_title(&app, &row.head.id, name).await?;
    Ok(Json(shapes::session(&find(&app, &id).await?.head)).into_response())
}

pub(super) async fn generate_name(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let row = find(&app, &id).await?;
    let name = made_up_name(&app, &row.head.id).await?;
    set_title(&app, &row.head.id, name).await?;
    let name = find(&app, &id).await?.head.title;
    Ok(Json(json!({ "name": name })).into_response())
}

async fn set_title(app: &App, session: &SessionId, title: Option<String>) -> Result<(), Fault> {
    if title.is_some() {
        let change = SessionChanged { title, mode: None, model: None, agent: None, archived: None };
        app.desk.change(session, change).await?;
    }
    Ok(())
}

/// The first line of the first prompt that has one; `None` while there is none.
async fn made_up_name(app: &App, session: &SessionId) -> Result<Option<String>, Fault> {
    let prompts = app.journal().marks(session, MarkKind::Prompt, u64::MAX, usize::MAX).await?;
    for seq in prompts.into_iter().rev() {
        let entry = fact_at(app, session, seq).await?;
        let Event::PromptQueued(prompt) = &entry.fact.event else { continue };
        let texts = prompt.content.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.head()),
            _ => None,
        });
        if let Some(line) = texts.flat_map(str::lines).map(str::trim).find(|line| !line.is_empty()) {
            return Ok(Some(clipped(line)));
        }
    }
    Ok(None)
}

fn clipped(line: &str) -> String {
    if line.chars().count() <= NAME {
        return line.to_owned();
    }
    let head: String = line.chars().take(NAME - 1).collect();
    let whole_words = head.rsplit_once(' ').map_or(head.as_str(), |(words, _)| words);
    format!("{}…", whole_words.trim_end())
}

/// By their ids, each as it was saved last.
pub(super) async fn artifacts(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let row = find(&app, &id).await?;
    let (head, mut saved) = (row.head, Saved::default());
    let saves = app.journal().marks(&head.id, MarkKind::Save, row.seq.saturating_add(1), usize::MAX).await?;
    for seq in saves.into_iter().rev() {
        saved.add(&fact_at(&app, &head.id, seq).await?);
    }
    let shown =
        saved.0.iter().map(|(artifact, created, updated)| shapes::artifact(&head, artifact, *created, *updated));
    Ok(Json(shown.collect::<Vec<Value>>()).into_response())
}

/// Artifacts with the times of their first and last saves, in the order of the first.
#[derive(Default)]
struct Saved(Vec<(ArtifactSaved, Time, Time)>);

impl Saved {
    fn add(&mut self, entry: &Entry) {
        let Event::ArtifactSaved(artifact) = &entry.fact.event else { return };
        let time = entry.fact.time;
        match self.0.iter_mut().find(|(known, ..)| known.id == artifact.id) {
            Some((known, _, updated)) => (*known, *updated) = (artifact.clone(), time),
            None => self.0.push((artifact.clone(), time, time)),
        }
    }
}

pub(super) async fn sandbox_status(State(app): State<App>, Path(id): Path<String>) -> Answered {
    find(&app, &id).await?;
    Ok(Json(json!({ "status": "running" })).into_response())
}

/// Tolka serves no web apps of agents.
pub(super) async fn webapp_info(State(app): State<App>, Path(id): Path<String>) -> Answered {
    find(&app, &id).await?;
    let none = json!({
        "has_webapp": false,
        "webapp_url": null,
        "status": "running",
        "ready": false,
        "sharing_scope": "private",
    });
    Ok(Json(none).into_response())
}

/// Whether a session that a page made in advance is still as good as new. A missing one is not, and no error.
pub(super) async fn is_unused(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let unused = match find(&app, &id).await {
        Ok(row) => (row.head.turns == 0 && row.head.queued == 0).then_some(row.head.id),
        Err(Fault::NotFound(_)) => None,
        Err(fault) => return Err(fault.into()),
    };
    Ok(Json(json!({ "valid": unused.is_some(), "session_id": unused })).into_response())
}

/// No session is a scheduled run; its client reads "not found" as that.
pub(super) async fn scheduled_run(State(app): State<App>, Path(id): Path<String>) -> Answered {
    find(&app, &id).await?;
    Err(Fault::NotFound("This session is not a scheduled run".to_owned()).into())
}

pub(super) async fn suggestions(State(app): State<App>, Path(id): Path<String>) -> Answered {
    find(&app, &id).await?;
    Ok(Json(json!({ "suggestions": [] })).into_response())
}

/// 0 is "no limit" to its client.
pub(super) async fn limit() -> Answered {
    let none = json!({
        "is_limited": false,
        "limit_type": "weekly",
        "messages_used": 0,
        "limit": 0,
        "reset_timestamp": null,
    });
    Ok(Json(none).into_response())
}

pub(super) async fn connectors() -> Answered {
    Ok(Json(json!({ "connectors": [] })).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_name_is_cut_between_words() {
        assert_eq!(clipped("Fix the build"), "Fix the build");
        let long = "Please look at the parser and find out why it drops the last line of a file";
        assert_eq!(clipped(long), "Please look at the parser and find out why it drops the…");
        assert_eq!(clipped(&"ü".repeat(100)), format!("{}…", "ü".repeat(59)));
    }
}
