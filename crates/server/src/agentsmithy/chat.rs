//! Messages to an agent, and the turns that answer them: sent, told, and told again.

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tolka_facts::{SessionId, TurnId};

use super::message::Message;
use super::telling::{refused, tell};
use super::{Answered, Params, answer, dialogs, find, number};
use crate::app::App;
use crate::fault::{AgentSmithyError, Fault};
use crate::request::{Seat, json_body};
use crate::stream::Had;

/// The one route of the document. A message that comes while a turn runs waits for it.
pub(super) async fn send(State(app): State<App>, body: Body) -> Response {
    let body = match json_body(body).await {
        Ok(body) => body,
        Err(fault) => return refused(&app, &fault, None).await,
    };
    let wants_stream = body.get("stream") != Some(&Value::Bool(false));
    let sent = if wants_stream { and_tell(&app, &body).await } else { and_wait(app.clone(), &body).await };
    match sent {
        Ok(response) => response,
        Err(fault) if wants_stream => refused(&app, &fault, body.get("dialog_id").and_then(Value::as_str)).await,
        Err(fault) => AgentSmithyError(fault).into_response(),
    }
}

async fn and_tell(app: &App, body: &Value) -> Result<Response, Fault> {
    let message = Message::read(body)?;
    let seat = Seat::take(app)?;
    let session = dialog_for(app, message.dialog.as_deref()).await?;
    let accepted = app.desk.prompt(&session, message.into_request()).await?;
    tell(app, &session, &accepted.turn, Had::Nothing, seat).await
}

/// The prompt is durable before the wait begins: a client that leaves leaves the turn running.
async fn and_wait(app: App, body: &Value) -> Result<Response, Fault> {
    let message = Message::read(body)?;
    let session = dialog_for(&app, message.dialog.as_deref()).await?;
    let accepted = app.desk.prompt(&session, message.into_request()).await?;
    answer::when_over(app, session, accepted).await
}

/// The dialog that a message names, else the current one, else a new one.
async fn dialog_for(app: &App, named: Option<&str>) -> Result<SessionId, Fault> {
    let Some(id) = named else { return dialogs::current_or_new(app).await };
    match find(app, id).await {
        Ok(row) => Ok(row.head.id),
        // The real server takes any id for a new dialog's; here clients do not choose ids.
        Err(Fault::NotFound(_)) => Err(Fault::NotFound(format!(
            "Dialog not found: {}. Make one with POST /api/dialogs and send its id, or leave `dialog_id` out to use \
             the current one.",
            id.chars().take(80).collect::<String>()
        ))),
        Err(fault) => Err(fault),
    }
}

/// Tells a turn from its start, or after the events that a reader has had, whether it waits, runs or is long over.
/// Without `turn` the one that runs or is next; without `dialog_id` of the current dialog.
pub(super) async fn follow(State(app): State<App>, Query(params): Params) -> Answered {
    let session = match params.get("dialog_id") {
        Some(id) => find(&app, id).await?.head.id,
        None => {
            let none = || Fault::NotFound("No dialog is current; name one by `dialog_id`.".to_owned());
            dialogs::current_row(&app).await?.ok_or_else(none)?.head.id
        }
    };
    let turn = match params.get("turn") {
        Some(turn) => TurnId::from(turn.as_str()),
        None => open_turn(&app, &session).await?,
    };
    let had = number(&params, "skip")?.map_or(Had::Nothing, Had::Frames);
    let seat = Seat::take(&app)?;
    Ok(tell(&app, &session, &turn, had, seat).await?)
}

async fn open_turn(app: &App, session: &SessionId) -> Result<TurnId, Fault> {
    let tip = app.desk.tip(session).await?;
    let running = tip.turn.as_ref().map(|turn| &turn.id);
    let next = running.or_else(|| tip.queue.front().map(|queued| &queued.prompt.turn));
    next.cloned().ok_or_else(|| {
        let words = "No turn runs or waits in this dialog. Name an earlier one by `turn`, as the header `Tolka-Turn` \
                     did, or read /api/dialogs/<id>/history.";
        Fault::NotFound(words.to_owned())
    })
}
