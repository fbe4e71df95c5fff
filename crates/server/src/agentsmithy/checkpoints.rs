//! Snapshots of the files of a dialog: listed, restored, agreed to, taken back. The conversation stays as it is.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tolka_dialect::onyx::timestamp;
use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_facts::{SessionId, Tip};
use tolka_session::{Between, Point, PointKind, RewindRequest, Rewinding, SessionError, Target, What};
use tolka_workspace::checkpoint::{FileDiff, Kept, Step};
use tolka_workspace::names::told;

use super::{Answered, find};
use crate::app::App;
use crate::fault::Fault;
use crate::request::json_body;

/// How much of an approval names its checkpoint.
const WORDS: usize = 50;
/// Read at once.
const PAGE: usize = 200;
/// An approval is a remark, not a document.
const LONGEST: usize = 10_000;

/// Every one of the dialog, the oldest first, also those from before an approval or a reset.
pub(super) async fn list(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let dialog = find(&app, &id).await?.head.id;
    let (mut shown, mut before) = (Vec::new(), u64::MAX);
    loop {
        let points = app.desk.points(&dialog, before, PAGE).await?;
        shown.extend(points.iter().map(|point| json!({ "commit_id": point.checkpoint, "message": words(point) })));
        match points.last() {
            Some(last) if points.len() == PAGE => before = last.seq,
            _ => break,
        }
    }
    shown.reverse();
    let initial = shown.first().map(|first: &Value| first["commit_id"].clone());
    Ok(Json(json!({ "dialog_id": dialog, "checkpoints": shown, "initial_checkpoint": initial })).into_response())
}

fn words(point: &Point) -> String {
    match &point.kind {
        PointKind::BeforeTurn { words, .. } => format!("Before user message: {words}..."),
        PointKind::AfterTurn { .. } => "After the answer".to_owned(),
        PointKind::BeforeRewind => "Before a restore".to_owned(),
        PointKind::AfterRewind => "After a restore".to_owned(),
        PointKind::Approved { words: Some(words) } => {
            format!("Approved: {}", words.chars().take(WORDS).collect::<String>())
        }
        PointKind::Approved { words: None } => "Approved".to_owned(),
        PointKind::Forked => "Beginning of the fork".to_owned(),
        PointKind::Asked => "Saved by hand".to_owned(),
    }
}

/// What has changed and was not agreed to. Without such changes this family names no session.
pub(super) async fn session(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let dialog = find(&app, &id).await?.head.id;
    let tip = app.desk.tip(&dialog).await?;
    let changed = match app.desk.differences(&dialog, Between::SinceApproval).await {
        // Nothing was saved yet, so nothing is known to have changed.
        Err(SessionError::NoCheckpoint(_) | SessionError::CheckpointsOff) => Vec::new(),
        changed => changed?,
    };
    let active = (!changed.is_empty()).then(|| session_name(&tip));
    Ok(Json(json!({
        "active_session": active,
        "session_ref": active.as_ref().map(|name| format!("refs/heads/{name}")),
        "has_unapproved": active.is_some(),
        "last_approved_at": tip.base.as_ref().and_then(|base| base.approved).map(timestamp),
        "changed_files": changed.iter().map(changed_file).collect::<Vec<_>>(),
    }))
    .into_response())
}

fn changed_file(FileDiff { change, patch, before, is_too_large }: &FileDiff) -> Value {
    json!({
        "path": told(&change.path),
        "status": change.operation.status(),
        "additions": change.added,
        "deletions": change.removed,
        "diff": patch,
        "base_content": before,
        "is_binary": change.is_binary,
        "is_too_large": is_too_large,
    })
}

/// What this family calls the work since the last approval or reset, numbered from 1.
pub(super) fn session_name(tip: &Tip) -> String {
    format!("session_{}", tip.base.as_ref().map_or(0, |base| base.settled).saturating_add(1))
}

pub(super) async fn restore(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let dialog = find(&app, &id).await?.head.id;
    let wanted =
        text(&body, "checkpoint_id")?.ok_or_else(|| Fault::Invalid("`checkpoint_id` is missing.".to_owned()))?;
    let to = Target::Checkpoint(wanted.to_owned());
    let request = RewindRequest { to, what: What::Files, overwrite: Overwrite::Nothing };
    let done = app.desk.rewind(&dialog, request).await.map_err(|error| refused(&dialog, error))?;
    let shown = json!({ "restored_to": wanted, "new_checkpoint": done.after, "pre_restore_checkpoint": done.before });
    Ok(Json(with_files(shown, &done)).into_response())
}

pub(super) async fn approve(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    let dialog = find(&app, &id).await?.head.id;
    let words = text(&body, "message")?.map(str::trim).filter(|words| !words.is_empty());
    if words.is_some_and(|words| words.len() > LONGEST) {
        return Err(Fault::Invalid(format!("`message` may have {LONGEST} bytes at most.")).into());
    }
    let done = app.desk.approve(&dialog, words.map(str::to_owned)).await.map_err(|error| refused(&dialog, error))?;
    Ok(Json(json!({
        "approved_commit": done.checkpoint,
        "new_session": format!("session_{}", done.settled.saturating_add(1)),
        "commits_approved": done.points,
    }))
    .into_response())
}

/// It takes nothing; whoever sends something else than an object may mean another route.
pub(super) async fn reset(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    json_body(body).await?;
    let dialog = find(&app, &id).await?.head.id;
    let done = app.desk.reset(&dialog).await.map_err(|error| refused(&dialog, error))?;
    let new_session = session_name(&app.desk.tip(&dialog).await?);
    let shown = json!({ "reset_to": done.checkpoint, "new_session": new_session, "pre_reset_checkpoint": done.before });
    Ok(Json(with_files(shown, &done)).into_response())
}

/// What was done and what was not: the real server restores what it can and says nothing of the rest.
fn with_files(mut shown: Value, done: &Rewinding) -> Value {
    let file = |Step { path, operation, .. }: &Step| json!({ "path": told(path), "status": operation.status() });
    let kept = |Kept { path, why }: &Kept| json!({ "path": told(path), "why": why, "message": because(*why) });
    shown["files"] = done.files.iter().map(file).collect();
    shown["kept"] = done.kept.iter().map(kept).collect();
    shown
}

fn because(why: KeptWhy) -> &'static str {
    match why {
        KeptWhy::Conflict => "The agent and somebody else changed it: it was left as it is.",
        KeptWhy::NotOurs => "The agent did not change it: it was left as it is.",
        KeptWhy::Moved => "It changed while files were restored: it was left as it is.",
        KeptWhy::NotSaved => "No checkpoint holds it: it was left as it is.",
        KeptWhy::Refused => "The system did not let it be changed.",
        KeptWhy::NoRoom => "The disk is full: it was left as it is.",
    }
}

fn refused(dialog: &SessionId, error: SessionError) -> Fault {
    match error {
        SessionError::NoSuchCheckpoint(wanted) => {
            let wanted: String = wanted.chars().take(80).collect();
            Fault::NotFound(format!(
                "Checkpoint {wanted} not found in dialog {dialog}. GET /api/dialogs/{dialog}/checkpoints lists those \
                 there are."
            ))
        }
        other => other.into(),
    }
}

fn text<'a>(body: &'a Value, name: &str) -> Result<Option<&'a str>, Fault> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Fault::Invalid(format!("`{name}` must be a string."))),
    }
}
