//! Going back and taking that back, agreeing to changes or not, and going on from a point in a session of its own.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tolka_facts::event::{KeptWhy, Overwrite};
use tolka_facts::{MessageId, SessionId};
use tolka_session::{ForkRequest, ForkWorkspace, Preview, RewindRequest, Rewinding, Target, Undo, What};
use tolka_workspace::checkpoint::{Kept, Step};
use tolka_workspace::names::told;

use super::sessions::flag;
use super::{number, shapes};
use crate::app::App;
use crate::fault::{Fault, TolkaError};
use crate::request::{json_body, text_field};

type Answered = Result<Json<Value>, TolkaError>;

pub(super) async fn rewind(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    only(&body, &["message", "checkpoint", "what", "overwrite", "preview"])?;
    let (request, is_preview) = (rewind_request(&body)?, flag(&body, "preview")?);
    let session = SessionId::from(id);
    app.desk.tip(&session).await?;
    if is_preview {
        return Ok(Json(previewed(&app.desk.preview_rewind(&session, &request).await?)));
    }
    // What goes is counted while it is there.
    let messages = app.desk.would_hide(&session, &request).await?;
    let mut shown = done(&app.desk.rewind(&session, request).await?);
    shown["messages"] = json!(messages);
    Ok(Json(shown))
}

pub(super) async fn unrewind(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    only(&body, &["rewind", "overwrite"])?;
    let (undo, overwrite) = (undo(&body)?, overwrite(&body)?);
    let session = SessionId::from(id);
    app.desk.tip(&session).await?;
    let hidden = app.desk.hidden(&session).await?;
    let mut shown = done(&app.desk.unrewind(&session, undo, overwrite).await?);
    shown["messages"] = json!(hidden.saturating_sub(app.desk.hidden(&session).await?));
    Ok(Json(shown))
}

pub(super) async fn approve(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    let body = json_body(body).await?;
    only(&body, &["message"])?;
    let words = text_field(&body, "message")?.map(str::to_owned);
    let session = SessionId::from(id);
    app.desk.tip(&session).await?;
    let approval = app.desk.approve(&session, words).await?;
    let (checkpoint, points, settled) = (approval.checkpoint, approval.points, approval.settled);
    Ok(Json(json!({ "checkpoint": checkpoint, "points": points, "settled": settled })))
}

pub(super) async fn reset(State(app): State<App>, Path(id): Path<String>, body: Body) -> Answered {
    only(&json_body(body).await?, &[])?;
    let session = SessionId::from(id);
    app.desk.tip(&session).await?;
    let mut shown = done(&app.desk.reset(&session).await?);
    shown["messages"] = json!(0);
    Ok(Json(shown))
}

pub(super) async fn fork(State(app): State<App>, Path(id): Path<String>, body: Body) -> Result<Response, TolkaError> {
    let body = json_body(body).await?;
    only(&body, &["before", "workspace", "title"])?;
    let workspace = match text_field(&body, "workspace")? {
        None | Some("in_place") => ForkWorkspace::InPlace,
        Some("own") => ForkWorkspace::Own,
        Some(_) => return Err(Fault::BadRequest("`workspace` is in_place or own.".to_owned()).into()),
    };
    let before = text_field(&body, "before")?.map(MessageId::from);
    let title = text_field(&body, "title")?.map(str::to_owned);
    let tip = app.desk.fork(&SessionId::from(id), ForkRequest { before, workspace, title }).await?;
    Ok((StatusCode::CREATED, Json(shapes::session(&tip.head, tip.seq))).into_response())
}

fn rewind_request(body: &Value) -> Result<RewindRequest, Fault> {
    let (to, usual) = match (text_field(body, "message")?, text_field(body, "checkpoint")?) {
        (Some(message), None) => (Target::Message(MessageId::from(message)), What::Both),
        (None, Some(checkpoint)) => (Target::Checkpoint(checkpoint.to_owned()), What::Files),
        _ => {
            let message = "Give one of `message` (of a prompt or an answer, to go back to before it) and `checkpoint`.";
            return Err(Fault::BadRequest(message.to_owned()));
        }
    };
    let what = match text_field(body, "what")? {
        None => usual,
        Some("files") => What::Files,
        Some("conversation") => What::Conversation,
        Some("both") => What::Both,
        Some(_) => return Err(Fault::BadRequest("`what` is files, conversation or both.".to_owned())),
    };
    Ok(RewindRequest { to, what, overwrite: overwrite(body)? })
}

/// The rewind that is meant, by its position.
fn undo(body: &Value) -> Result<Undo, Fault> {
    match body.get("rewind") {
        None | Some(Value::Null) => Ok(Undo::Last),
        Some(Value::String(text)) => Ok(number("rewind", Some(text), 1..=u64::MAX)?.map_or(Undo::Last, Undo::This)),
        Some(given) => given
            .as_u64()
            .map(Undo::This)
            .ok_or_else(|| Fault::BadRequest("`rewind` is the position that the answer to a rewind has.".to_owned())),
    }
}

fn overwrite(body: &Value) -> Result<Overwrite, Fault> {
    let wrong = || Fault::BadRequest("`overwrite` is true, false, or a list of paths.".to_owned());
    match body.get("overwrite") {
        None | Some(Value::Null | Value::Bool(false)) => Ok(Overwrite::Nothing),
        Some(Value::Bool(true)) => Ok(Overwrite::All),
        Some(Value::Array(paths)) => {
            let paths = paths.iter().map(|path| path.as_str().map(str::to_owned));
            paths.collect::<Option<_>>().map(Overwrite::These).ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

/// Whoever misspells `preview` does not want to go back.
fn only(body: &Value, known: &[&str]) -> Result<(), Fault> {
    let unknown =
        body.as_object().into_iter().flatten().map(|(name, _)| name).find(|name| !known.contains(&name.as_str()));
    match unknown {
        Some(name) => {
            let name: String = name.chars().take(40).collect();
            let there = if known.is_empty() {
                "it takes no fields".to_owned()
            } else {
                format!("there are: {}", known.join(", "))
            };
            Err(Fault::BadRequest(format!("`{name}` means nothing here; {there}.")))
        }
        None => Ok(()),
    }
}

fn previewed(preview: &Preview) -> Value {
    json!({
        "preview": true,
        "checkpoint": preview.checkpoint,
        "message": preview.message,
        "files": files(&preview.files),
        "kept": kept(&preview.kept),
        "messages": preview.messages,
    })
}

fn done(rewinding: &Rewinding) -> Value {
    json!({
        "preview": false,
        "checkpoint": rewinding.checkpoint,
        "message": rewinding.message,
        "before": rewinding.before,
        "after": rewinding.after,
        "files": files(&rewinding.files),
        "kept": kept(&rewinding.kept),
        "position": rewinding.seq.to_string(),
    })
}

fn files(steps: &[Step]) -> Vec<Value> {
    let shown = |step: &Step| {
        json!({
            "path": told(&step.path),
            "operation": step.operation,
            "added": step.added,
            "removed": step.removed,
        })
    };
    steps.iter().map(shown).collect()
}

fn kept(kept: &[Kept]) -> Vec<Value> {
    let shown = |kept: &Kept| json!({ "path": told(&kept.path), "why": kept.why, "words": words(kept.why) });
    kept.iter().map(shown).collect()
}

fn words(why: KeptWhy) -> &'static str {
    match why {
        KeptWhy::Conflict => "It was also changed by somebody else; to lose that, name it in `overwrite`.",
        KeptWhy::NotOurs => "No turn of this session changed it.",
        KeptWhy::Moved => "It changed while the files were going back.",
        KeptWhy::NotSaved => "It is in no checkpoint: it was too large, unreadable or ignored.",
        KeptWhy::Refused => "The system did not let it be written or removed.",
        KeptWhy::NoRoom => "The disk is full. Make room, then go back again.",
    }
}
