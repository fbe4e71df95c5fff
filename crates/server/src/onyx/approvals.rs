//! Permissions that wait for a person. Their ids are global on this wire: a decision names no session.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde_json::{Value, json};
use tolka_dialect::onyx::timestamp;
use tolka_facts::event::PermissionAsked;
use tolka_facts::{Ask, RequestId, SessionId, Tip};
use tolka_journal::{Mark, SessionQuery};
use tolka_session::{Answer, SessionError};

use super::{Answered, fact_at, find, shapes};
use crate::app::App;
use crate::fault::Fault;
use crate::guard::Caller;
use crate::request::{json_body, text_field};
use crate::stream::JournalBlobs;

pub(super) async fn live(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let row = find(&app, &id).await?;
    // Asked again by every page of every session: no need to wake an actor for those that wait for nobody.
    let mut items = Vec::new();
    if row.head.waiting > 0 {
        let tip = app.desk.tip(&row.head.id).await?;
        for ask in permissions(&tip) {
            items.push(shown(&app, &tip, ask).await?);
        }
    }
    Ok(Json(json!({ "items": items })).into_response())
}

pub(super) async fn decide(
    State(app): State<App>,
    Path(approval): Path<String>,
    Extension(Caller { name: by, .. }): Extension<Caller>,
    body: Body,
) -> Answered {
    let body = json_body(body).await?;
    let request = RequestId::from(approval);
    let Decision { allow, reason } = Decision::read(&body, &request)?;
    let (session, mut shown) = asked(&app, &request).await?;
    app.desk.answer(&session, request.clone(), Answer::Kind { allow, always: false, reason }, by).await?;
    let answered = app.mark(&session, Mark::Answer(&request)).await?.ok_or(Fault::Internal)?;
    shown["decision"] = json!(if allow { "APPROVED" } else { "REJECTED" });
    shown["decided_at"] = json!(timestamp(fact_at(&app, &session, answered).await?.fact.time));
    shown["is_live"] = json!(false);
    Ok(Json(shown).into_response())
}

#[derive(Debug, PartialEq)]
struct Decision {
    allow: bool,
    reason: Option<String>,
}

impl Decision {
    /// `decision` is today's client's, `approved` that of document 001's `permission_response`.
    fn read(body: &Value, request: &RequestId) -> Result<Self, Fault> {
        let wrong = |words: &str| Err(Fault::BadRequest(words.to_owned()));
        if text_field(body, "request_id")?.is_some_and(|named| named != request.as_str()) {
            return wrong("`request_id` names another request than the path does.");
        }
        let allow = match (text_field(body, "decision")?, body.get("approved")) {
            (Some("APPROVED"), None) => true,
            (Some("REJECTED"), None) => false,
            (None, Some(Value::Bool(approved))) => *approved,
            _ => return wrong("`decision` must be APPROVED or REJECTED, or `approved` true or false."),
        };
        Ok(Decision { allow, reason: text_field(body, "reason")?.map(str::to_owned) })
    }
}

/// The session that waits for this answer, and the approval as its client sees it.
async fn asked(app: &App, request: &RequestId) -> Result<(SessionId, Value), Fault> {
    // Only where a turn is open does anything wait, and there are few of these.
    let open = app.journal().sessions(SessionQuery { open: true, ..SessionQuery::default() }).await?;
    for row in open.iter().filter(|row| row.head.waiting > 0) {
        let tip = app.desk.tip(&row.head.id).await?;
        // Of a subagent's, the one that is asked; its parent shows the same.
        let is_own = |ask: &&PermissionAsked| tip.asked_in(&Ask::Permission((*ask).clone())).is_none();
        if let Some(ask) = permissions(&tip).find(|ask| ask.request == *request).filter(is_own) {
            return Ok((row.head.id.clone(), shown(app, &tip, ask).await?));
        }
    }
    if app.journal().is_marked(&Mark::Answer(request).to_string()).await? {
        return Err(SessionError::AlreadyAnswered(request.clone()).into());
    }
    Err(Fault::NotFound("Approval request not found".to_owned()))
}

fn permissions(tip: &Tip) -> impl Iterator<Item = &PermissionAsked> {
    tip.asks().filter_map(|ask| match ask {
        Ask::Permission(ask) => Some(ask),
        Ask::Question(_) => None,
    })
}

async fn shown(app: &App, tip: &Tip, ask: &PermissionAsked) -> Result<Value, Fault> {
    let session = &tip.head.id;
    let asked = app.mark(session, Mark::Ask(&ask.request)).await?.ok_or(Fault::Internal)?;
    let asked = fact_at(app, session, asked).await?.fact.time;
    let blobs = JournalBlobs::new(app.journal().clone());
    let shown = shapes::approval(tip, ask, asked, &blobs);
    blobs.check()?;
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_read_in_both_its_forms() {
        let request = RequestId::from("per_1");
        let read = |body: Value| Decision::read(&body, &request).ok();
        let plain = |allow| Some(Decision { allow, reason: None });
        assert_eq!(read(json!({ "decision": "APPROVED" })), plain(true));
        assert_eq!(read(json!({ "decision": "REJECTED" })), plain(false));
        assert_eq!(
            read(json!({ "type": "permission_response", "request_id": "per_1", "approved": true })),
            plain(true)
        );
        let rejected = Some(Decision { allow: false, reason: Some("no".to_owned()) });
        assert_eq!(read(json!({ "approved": false, "reason": "no" })), rejected);
        for body in [
            json!({}),
            json!({ "decision": "EXPIRED" }),
            json!({ "approved": "yes" }),
            json!({ "approved": true, "decision": "REJECTED" }),
            json!({ "approved": true, "request_id": "per_2" }),
        ] {
            assert_eq!(read(body.clone()), None, "{body}");
        }
    }
}
