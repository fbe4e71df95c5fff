//! Prompts and their turns: sent, followed, taken up again, interrupted.

use std::collections::HashMap;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tolka_dialect::onyx::{CommonError, Profile};
use tolka_facts::event::{Model, ParentKind, Stop};
use tolka_facts::{Event, Head, Json as Raw, SessionId, Tip, TurnId};
use tolka_journal::Mark;
use tolka_session::Accepted;

use super::message::Message;
use super::packets::Packets;
use super::telling::{one_packet, tell};
use super::{Answered, fact_at, find, shapes};
use crate::app::App;
use crate::fault::Fault;
use crate::request::{Seat, json_body, last_event_id};
use crate::stream::{Cursor, Had};

type Params = Query<HashMap<String, String>>;

/// The one route of the documents. A prompt that comes while a turn runs waits for it.
pub(super) async fn send_message(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(params): Params,
    body: Body,
) -> Answered {
    let packets = if Packets::are_steps(&params)? { Packets::Steps } else { Packets::Onyx(Profile::Documented) };
    let message = Message::read(&json_body(body).await?)?;
    let (is_plain, is_current) = (message.is_plain, message.key.is_some());
    let seat = if is_current { None } else { Some(Seat::take(&app)?) };
    let (session, accepted) = match accept(&app, &id, message).await {
        Ok(accepted) => accepted,
        Err(fault) => match as_packet(&fault, packets).filter(|_| is_plain) {
            Some(packet) => return Ok(one_packet(&packet)),
            None => return Err(fault.into()),
        },
    };
    let Some(seat) = seat else {
        let mut answer = standing(&app, &session, &accepted.turn).await?.ok_or(Fault::Internal)?;
        answer["skills_stale"] = json!(false);
        return Ok(Json(answer).into_response());
    };
    Ok(tell(&app, &session, &accepted.turn, packets, Had::Nothing, seat).await?)
}

/// A prompt to one of a session's subagents, answered with its stream. Today's client alone has it.
pub(super) async fn send_to_subagent(
    State(app): State<App>,
    Path((id, child)): Path<(String, String)>,
    body: Body,
) -> Answered {
    let parent = find(&app, &id).await?.head.id;
    let is_its =
        |head: &Head| head.parent.as_ref().is_some_and(|of| of.kind == ParentKind::Subagent && of.session == parent);
    if !find(&app, &child).await.is_ok_and(|row| is_its(&row.head)) {
        return Err(Fault::NotFound("Subagent not found".to_owned()).into());
    }
    let message = Message::read(&json_body(body).await?)?;
    if !message.is_plain {
        return Err(Fault::BadRequest("`content` is all that can be sent to a subagent.".to_owned()).into());
    }
    let seat = Seat::take(&app)?;
    let (session, accepted) = accept(&app, &child, message).await?;
    Ok(tell(&app, &session, &accepted.turn, Packets::Onyx(Profile::Current), Had::Nothing, seat).await?)
}

async fn accept(app: &App, id: &str, message: Message) -> Result<(SessionId, Accepted), Fault> {
    let head = find(app, id).await?.head;
    let mut request = message.into_request(&head);
    let known = |model: &Model| app.find_model(Some(&head.agent), model);
    // A model without a provider is one of the session's, if that has one of this id.
    let of_session = |model: &Model| match (&head.model, model.provider.as_str()) {
        (Some(usual), "") => known(&Model { provider: usual.provider.clone(), id: model.id.clone() }),
        _ => None,
    };
    request.model = request.model.and_then(|model| of_session(&model).or_else(|| known(&model)));
    let accepted = app.desk.prompt(&head.id, request).await?;
    Ok((head.id, accepted))
}

/// The documents' client learns of these in the stream; every other failure is one of HTTP to it as well.
fn as_packet(fault: &Fault, packets: Packets) -> Option<Vec<u8>> {
    match fault {
        Fault::NotFound(_) => Some(packets.error(CommonError::SessionNotFound, None)),
        Fault::Storage(_) | Fault::Internal => {
            let details = Raw::from(json!({ "reason": fault.message() }));
            Some(packets.error(CommonError::Database, Some(&details)))
        }
        _ => None,
    }
}

/// The turn that runs, or the one that will run next; `null` when the session is idle.
pub(super) async fn active(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let session = find(&app, &id).await?.head.id;
    let tip = app.desk.tip(&session).await?;
    let running = tip.turn.as_ref().map(|turn| &turn.id);
    let next = running.or_else(|| tip.queue.front().map(|queued| &queued.prompt.turn));
    let shown = next.and_then(|turn| open_turn(&tip, turn));
    Ok(Json(shown).into_response())
}

/// Whether there was anything to interrupt. Prompts that wait are not dropped: other clients sent them.
pub(super) async fn interrupt(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let session = find(&app, &id).await?.head.id;
    let interrupted = app.desk.cancel(&session, false).await?;
    Ok(Json(json!({ "interrupted": interrupted })).into_response())
}

/// Tells a turn from its start, or from where a reader left off, whether it waits, runs or is long over.
pub(super) async fn events(
    State(app): State<App>,
    Path((id, turn)): Path<(String, String)>,
    Query(params): Params,
    headers: HeaderMap,
) -> Answered {
    let are_steps = Packets::are_steps(&params)?;
    let row = find(&app, &id).await?;
    let (session, turn) = (row.head.id, TurnId::from(turn));
    let queued = app.mark(&session, Mark::Prompt(&turn)).await?;
    let queued = queued.ok_or_else(|| Fault::NotFound("Turn not found".to_owned()))?;
    let position = last_event_id(&headers).or(params.get("after").map(String::as_str));
    let skip = params.get("skip").filter(|_| position.is_none());
    let is_resumed = position.is_some() || skip.is_some();
    let packets = if are_steps {
        Packets::Steps
    } else {
        Packets::Onyx(profile(&app, &session, queued, &params, is_resumed).await?)
    };
    let had = match (position, skip) {
        (Some(position), _) => {
            let cursor: Cursor = position.parse().map_err(|error| Fault::BadRequest(format!("{error}.")))?;
            if cursor.place > row.seq {
                return Err(Fault::Gone(format!("Position {cursor} is beyond the end of this session.")).into());
            }
            Had::UpTo(cursor)
        }
        (None, Some(skip)) => {
            let wrong = |_| Fault::BadRequest("`skip` must be a number of events.".to_owned());
            Had::Frames(skip.parse().map_err(wrong)?)
        }
        (None, None) => Had::Nothing,
    };
    let seat = Seat::take(&app)?;
    Ok(tell(&app, &session, &turn, packets, had, seat).await?)
}

/// Only today's client reads turns here from their start. One that takes up a stream gets it in the words that
/// the stream began in: a prompt without a key was answered in the documents' words.
async fn profile(
    app: &App,
    session: &SessionId,
    queued: u64,
    params: &HashMap<String, String>,
    is_resumed: bool,
) -> Result<Profile, Fault> {
    match params.get("profile").map(String::as_str) {
        Some("documented") => Ok(Profile::Documented),
        Some("current") => Ok(Profile::Current),
        Some(_) => Err(Fault::BadRequest("`profile` is documented or current.".to_owned())),
        None if !is_resumed => Ok(Profile::Current),
        None => match &fact_at(app, session, queued).await?.fact.event {
            Event::PromptQueued(prompt) if prompt.key.is_none() => Ok(Profile::Documented),
            _ => Ok(Profile::Current),
        },
    }
}

/// A turn as it stands, wherever it stands; `None` if no prompt made it.
async fn standing(app: &App, session: &SessionId, turn: &TurnId) -> Result<Option<Value>, Fault> {
    let Some(queued) = app.mark(session, Mark::Prompt(turn)).await? else { return Ok(None) };
    let tip = app.desk.tip(session).await?;
    if let Some(open) = open_turn(&tip, turn) {
        return Ok(Some(open));
    }
    // Neither waiting nor running in a state that is younger than the prompt: it ended or was dropped.
    let ended = app.mark(session, Mark::TurnEnd(turn)).await?;
    let entry = fact_at(app, session, ended.unwrap_or(queued)).await?;
    let tip = app.tip_at(session, entry.place).await?;
    let shown = match &entry.fact.event {
        Event::TurnEnded(e) => {
            let index = tip.ended_turn.as_ref().map_or(0, |turn| turn.index);
            shapes::turn(session, turn, ended_status(e.stop), index)
        }
        _ => shapes::turn(session, turn, "CANCELLED", queued_index(&tip, tip.queue.len().saturating_sub(1))),
    };
    Ok(Some(shown))
}

fn open_turn(tip: &Tip, turn: &TurnId) -> Option<Value> {
    let session = &tip.head.id;
    if let Some(open) = tip.turn.as_ref().filter(|open| open.id == *turn) {
        return Some(shapes::turn(session, turn, "RUNNING", open.index));
    }
    let ahead = tip.queue.iter().position(|queued| queued.prompt.turn == *turn)?;
    Some(shapes::turn(session, turn, "QUEUED", queued_index(tip, ahead)))
}

/// The number of prompts before one that has so many before it in the queue.
fn queued_index(tip: &Tip, ahead: usize) -> u64 {
    tip.head.turns + ahead as u64
}

fn ended_status(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn | Stop::MaxTokens | Stop::MaxTurnRequests | Stop::Refusal => "SUCCEEDED",
        Stop::Cancelled => "CANCELLED",
        Stop::Failed | Stop::Interrupted => "FAILED",
    }
}
