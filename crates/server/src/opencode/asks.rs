//! Permissions and questions that wait for a person. This family knows them by their own ids, without the
//! session, so they are looked for where somebody waits.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde_json::Value;
use tolka_dialect::opencode::ask_json;
use tolka_facts::{Ask, RequestId, SessionId, Tip};
use tolka_journal::SessionQuery;
use tolka_session::{Answer, SessionError};

use super::folder::Folder;
use super::{Answered, session_id};
use crate::app::App;
use crate::fault::Fault;
use crate::guard::Caller;
use crate::request::{json_body, text_field};
use crate::stream::JournalBlobs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Permission,
    Question,
}

impl Kind {
    fn of(ask: &Ask) -> Self {
        match ask {
            Ask::Permission(_) => Kind::Permission,
            Ask::Question(_) => Kind::Question,
        }
    }

    fn missing(self, request: &str) -> Fault {
        let what = match self {
            Kind::Permission => "Permission",
            Kind::Question => "Question",
        };
        Fault::NotFound(format!("{what} request not found: {request}"))
    }
}

pub(super) async fn permissions(State(app): State<App>, folder: Folder) -> Answered<Vec<Value>> {
    Ok(Json(listed(&app, &folder, Kind::Permission).await?))
}

pub(super) async fn questions(State(app): State<App>, folder: Folder) -> Answered<Vec<Value>> {
    Ok(Json(listed(&app, &folder, Kind::Question).await?))
}

/// Today's way to answer a permission.
pub(super) async fn reply(
    State(app): State<App>,
    Path(request): Path<String>,
    Extension(Caller { name: by, .. }): Extension<Caller>,
    body: Body,
) -> Answered<bool> {
    let given = permission_answer(&json_body(body).await?, "reply")?;
    let session = asker(&app, &request, Kind::Permission).await?;
    app.desk.answer(&session, RequestId::from(request), given, by).await?;
    Ok(Json(true))
}

/// The way of the older SDK, which names the session.
pub(super) async fn respond(
    State(app): State<App>,
    Path((id, request)): Path<(String, String)>,
    Extension(Caller { name: by, .. }): Extension<Caller>,
    body: Body,
) -> Answered<bool> {
    let given = permission_answer(&json_body(body).await?, "response")?;
    let session = session_id(id)?;
    let tip = app.desk.tip(&session).await?;
    if tip.asks().any(|ask| ask.request().as_str() == request && Kind::of(ask) != Kind::Permission) {
        return Err(Kind::Permission.missing(&request).into());
    }
    app.desk.answer(&session, RequestId::from(request), given, by).await?;
    Ok(Json(true))
}

pub(super) async fn answer(
    State(app): State<App>,
    Path(request): Path<String>,
    Extension(Caller { name: by, .. }): Extension<Caller>,
    body: Body,
) -> Answered<bool> {
    let body = json_body(body).await?;
    let answers = body.get("answers").cloned().unwrap_or_default();
    let answers = serde_json::from_value(answers)
        .map_err(|_| Fault::BadRequest("Expected a list of lists of strings\n  at [\"answers\"]".to_owned()))?;
    let session = asker(&app, &request, Kind::Question).await?;
    app.desk.answer(&session, RequestId::from(request), Answer::Questions(answers), by).await?;
    Ok(Json(true))
}

pub(super) async fn reject(
    State(app): State<App>,
    Path(request): Path<String>,
    Extension(Caller { name: by, .. }): Extension<Caller>,
) -> Answered<bool> {
    let session = asker(&app, &request, Kind::Question).await?;
    app.desk.answer(&session, RequestId::from(request), Answer::RejectQuestions, by).await?;
    Ok(Json(true))
}

fn permission_answer(body: &Value, field: &str) -> Result<Answer, Fault> {
    let reason = text_field(body, "message")?.map(str::to_owned);
    match text_field(body, field)? {
        Some("once") => Ok(Answer::Kind { allow: true, always: false, reason }),
        Some("always") => Ok(Answer::Kind { allow: true, always: true, reason }),
        Some("reject") => Ok(Answer::Kind { allow: false, always: false, reason }),
        _ => Err(Fault::BadRequest(format!("Expected \"once\", \"always\" or \"reject\"\n  at [\"{field}\"]"))),
    }
}

async fn listed(app: &App, folder: &Folder, kind: Kind) -> Result<Vec<Value>, Fault> {
    let (tips, blobs) = (waiting(app, folder).await?, JournalBlobs::new(app.journal().clone()));
    let asks = tips.iter().flat_map(|tip| own(tip).map(move |ask| (ask, tip)));
    Ok(asks.filter(|(ask, _)| Kind::of(ask) == kind).map(|(ask, tip)| ask_json(ask, tip, &blobs)).collect())
}

async fn asker(app: &App, request: &str, kind: Kind) -> Result<SessionId, Fault> {
    let tips = waiting(app, &Folder::default()).await?;
    let is_it = |ask: &Ask| ask.request().as_str() == request && Kind::of(ask) == kind;
    let found = tips.into_iter().find(|tip| own(tip).any(is_it));
    found.map(|tip| tip.head.id).ok_or_else(|| kind.missing(request))
}

/// Not what its subagents ask: these clients show that from the subagents' sessions.
fn own(tip: &Tip) -> impl Iterator<Item = &Ask> {
    tip.asks().filter(|ask| tip.asked_in(ask).is_none())
}

/// The sessions in which somebody waits for a person, the one that waits longest first.
async fn waiting(app: &App, folder: &Folder) -> Result<Vec<Tip>, Fault> {
    // Who waits for a person is in a turn.
    let query = SessionQuery { workspace: folder.to_filter_by(app).await, open: true, ..SessionQuery::default() };
    let rows = app.journal().sessions(query).await?;
    let mut tips = Vec::new();
    for row in rows.iter().rev().filter(|row| row.head.waiting > 0) {
        match app.desk.tip(&row.head.id).await {
            Ok(tip) => tips.push(tip),
            // Deleted since it was listed.
            Err(SessionError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(tips)
}
