//! What came of tool calls. Streams do not carry it: a client that wants to show it asks here.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tolka_dialect::agentsmithy::{Call, result};
use tolka_dialect::onyx::timestamp;
use tolka_facts::{Blobs, CallId, Event, Head, Tip, Tool};
use tolka_journal::Mark;

use super::{Answered, find};
use crate::app::App;
use crate::fault::Fault;
use crate::stream::JournalBlobs;

/// A call that ended, as both routes show it.
struct Ended {
    call: Call,
    result: Value,
    size: usize,
    summary: String,
    error: Option<Value>,
}

impl Ended {
    fn of(tool: &Tool, head: &Head, blobs: &dyn Blobs) -> Option<Self> {
        let told = result(tool, &head.workspace, blobs)?;
        let result = json!(told);
        // A command that was cut off has no words of its own.
        let error = told.is_error().then(|| result.get("error").cloned().unwrap_or_else(|| json!("It timed out.")));
        let summary = error.as_ref().and_then(Value::as_str).unwrap_or(&tool.title).to_owned();
        Some(Ended { call: Call::of(tool, blobs), size: result.to_string().len(), summary, error, result })
    }
}

fn time(tool: &Tool) -> String {
    timestamp(tool.ended.unwrap_or(tool.first_time))
}

pub(super) async fn list(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let head = find(&app, &id).await?.head;
    let blobs = JournalBlobs::new(app.journal().clone());
    let mut rows: Vec<Value> = Vec::new();
    each_ended(&app, &head, |tool| {
        rows.extend(Ended::of(tool, &head, &blobs).map(|ended| {
            json!({
                "tool_call_id": tool.call,
                "tool_name": ended.call.name,
                "timestamp": time(tool),
                "size_bytes": ended.size,
                "summary": ended.summary,
                "error": ended.error,
            })
        }));
    })
    .await?;
    blobs.check()?;
    Ok(Json(rows).into_response())
}

pub(super) async fn one(State(app): State<App>, Path((id, call)): Path<(String, String)>) -> Answered {
    let head = find(&app, &id).await?.head;
    let call = CallId::from(call);
    let blobs = JournalBlobs::new(app.journal().clone());
    let found = match app.mark(&head.id, Mark::CallEnd(&call)).await? {
        Some(end) => app.tip_at(&head.id, end).await?.tool(&call).cloned(),
        None => None,
    };
    let found = found.and_then(|tool| Ended::of(&tool, &head, &blobs).map(|ended| (tool, ended)));
    blobs.check()?;
    let (tool, ended) = found.ok_or_else(|| {
        let call: String = call.as_str().chars().take(80).collect();
        Fault::NotFound(format!(
            "Tool result not found: {call}. GET /api/dialogs/{id}/tool-results lists those there are; a call that \
             still runs has none."
        ))
    })?;
    let shown = json!({
        "tool_call_id": tool.call,
        "tool_name": ended.call.name,
        "args": ended.call.args,
        "result": ended.result,
        "timestamp": time(&tool),
        "metadata": { "size_bytes": ended.size, "summary": ended.summary },
    });
    Ok(Json(shown).into_response())
}

/// All of the session's facts: a list shows every call there was.
async fn each_ended(app: &App, head: &Head, mut each: impl FnMut(&Tool)) -> Result<(), Fault> {
    let mut tip = Tip::default();
    app.each_fact(&head.id, 0, |entry| {
        tip.apply(&entry.fact);
        if let Event::ToolChanged(changed) = &entry.fact.event
            && let Some(tool) = tip.tool(&changed.call).filter(|tool| !tool.is_open())
        {
            each(tool);
        }
    })
    .await
}
