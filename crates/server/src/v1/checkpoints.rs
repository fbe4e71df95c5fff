//! The snapshots of a session, and what differs between them.

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tolka_facts::{MessageId, SessionId};
use tolka_session::{Between, Point, PointKind};
use tolka_workspace::checkpoint::FileDiff;
use tolka_workspace::names::told;

use super::{limit, number};
use crate::app::App;
use crate::fault::{Fault, TolkaError};

type Answered = Result<Json<Value>, TolkaError>;

const PAGE: usize = 100;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    before: Option<String>,
    limit: Option<String>,
}

/// The latest first.
pub(super) async fn list(State(app): State<App>, Path(id): Path<String>, Query(query): Query<ListQuery>) -> Answered {
    let limit = limit(query.limit.as_deref(), PAGE)?;
    let before = number("before", query.before.as_deref(), 0..=u64::MAX)?.unwrap_or(u64::MAX);
    let session = SessionId::from(id);
    app.desk.tip(&session).await?;
    // One more tells whether there is a next page.
    let mut points = app.desk.points(&session, before, limit + 1).await?;
    let has_more = points.len() > limit;
    points.truncate(limit);
    let next = points.last().filter(|_| has_more).map(|point| point.seq);
    let shown: Vec<Value> = points.iter().map(shown).collect();
    Ok(Json(json!({ "checkpoints": shown, "before": next })))
}

#[derive(Deserialize)]
pub(super) struct DiffQuery {
    message: Option<String>,
    from: Option<String>,
    to: Option<String>,
    since: Option<String>,
}

impl DiffQuery {
    fn between(self) -> Result<Between, Fault> {
        match (self.message, self.from, self.to, self.since.as_deref()) {
            (None, None, None, None | Some("session")) => Ok(Between::Session),
            (None, None, None, Some("approval")) => Ok(Between::SinceApproval),
            (Some(message), None, None, None) => Ok(Between::Message(MessageId::from(message))),
            (None, Some(from), to, None) => Ok(Between::Checkpoints(from, to)),
            _ => {
                let message = "Give one of `message`, `from` (a checkpoint; with or without `to`), and `since` \
                               (approval or session).";
                Err(Fault::BadRequest(message.to_owned()))
            }
        }
    }
}

pub(super) async fn diff(State(app): State<App>, Path(id): Path<String>, Query(query): Query<DiffQuery>) -> Answered {
    let (between, session) = (query.between()?, SessionId::from(id));
    app.desk.tip(&session).await?;
    let files = app.desk.differences(&session, between).await?;
    let (added, removed) =
        files.iter().fold((0, 0), |(added, removed), file| (added + file.change.added, removed + file.change.removed));
    let files: Vec<Value> = files.iter().map(file).collect();
    Ok(Json(json!({ "files": files, "added": added, "removed": removed })))
}

fn shown(point: &Point) -> Value {
    let (kind, more) = match &point.kind {
        PointKind::BeforeTurn { turn, message, words } => {
            ("before_turn", json!({ "turn": turn, "message": message, "words": words }))
        }
        PointKind::AfterTurn { turn } => ("after_turn", json!({ "turn": turn })),
        PointKind::BeforeRewind => ("before_rewind", json!({})),
        PointKind::AfterRewind => ("after_rewind", json!({})),
        PointKind::Approved { words: Some(words) } => ("approved", json!({ "words": words })),
        PointKind::Approved { words: None } => ("approved", json!({})),
        PointKind::Forked => ("forked", json!({})),
        PointKind::Asked => ("asked", json!({})),
    };
    let mut shown = more;
    shown["checkpoint"] = json!(point.checkpoint);
    shown["kind"] = json!(kind);
    shown["seq"] = json!(point.seq);
    shown["time"] = json!(point.time);
    if let Some(changes) = &point.changes {
        shown["changes"] = json!(changes);
    }
    shown
}

/// What is not so is left out.
fn file(diff: &FileDiff) -> Value {
    let change = &diff.change;
    let mut shown = json!({
        "path": told(&change.path),
        "operation": change.operation,
        "added": change.added,
        "removed": change.removed,
    });
    if let Some(patch) = &diff.patch {
        shown["patch"] = json!(patch);
    }
    for (name, flag) in [("binary", change.is_binary), ("too_large", diff.is_too_large)] {
        if flag {
            shown[name] = json!(true);
        }
    }
    shown
}
