//! What came of tool calls. Streams do not carry it: a client that wants to show it asks here.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tolka_dialect::agentsmithy::{Call, result};
use tolka_dialect::onyx::timestamp;
use tolka_facts::{Blobs, CallId, Event, Head, Tip, Tool};
use tolka_journal::{Mark, MarkKind, Scope, TIP};

use super::{Answered, find};
use crate::app::App;
use crate::fault::Fault;
use crate::listing::{self, Items, Lister};
use crate::stream::JournalBlobs;

/// Tips are kept about so many facts apart: a call that is further away is nearer to one of them.
const FAR: u64 = 512;

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

    fn row(&self, tool: &Tool) -> Value {
        json!({
            "tool_call_id": tool.call,
            "tool_name": self.call.name,
            "timestamp": time(tool),
            "size_bytes": self.size,
            "summary": self.summary,
            "error": self.error,
        })
    }
}

fn time(tool: &Tool) -> String {
    timestamp(tool.ended.unwrap_or(tool.first_time))
}

/// The wire has no pages for it, so it is told whole.
pub(super) async fn list(State(app): State<App>, Path(id): Path<String>) -> Answered {
    let row = find(&app, &id).await?;
    let before = row.seq.saturating_add(1);
    let ends = app.journal().marks(&row.head.id, MarkKind::CallEnd, before, usize::MAX).await?;
    let blobs = JournalBlobs::new(app.journal().clone());
    let results = Results { app: app.clone(), head: row.head, ends, blobs, tip: Tip::default() };
    Ok(listing::list(&app, "[", "]", results).await?)
}

/// The results of all calls, in the order in which they ended. Only facts that tell of calls are read, and those around
/// them.
struct Results {
    app: App,
    head: Head,
    /// Where calls ended, the next one last.
    ends: Vec<u64>,
    blobs: JournalBlobs,
    tip: Tip,
}

impl Lister for Results {
    async fn more(&mut self, items: &mut Items) -> Result<bool, Fault> {
        let Some(next) = self.ends.last().copied() else { return Ok(false) };
        let (journal, session) = (self.app.journal(), &self.head.id);
        if next - self.tip.seq > FAR {
            let kept = journal.kept(session, TIP, next - 1, false).await?.filter(|kept| kept.seq > self.tip.seq);
            let kept = kept.and_then(|kept| serde_json::from_slice(&kept.state).ok());
            self.tip = kept.unwrap_or_else(|| std::mem::take(&mut self.tip));
        }
        let wanted = usize::try_from(FAR).unwrap_or_default();
        let page = journal.read(&Scope::Session(session.clone()), self.tip.seq, wanted).await?;
        for entry in &page {
            self.tip.apply(&entry.fact);
            if self.ends.pop_if(|end| *end == entry.place).is_some()
                && let Event::ToolChanged(changed) = &entry.fact.event
                && let Some(tool) = self.tip.tool(&changed.call)
                && let Some(ended) = Ended::of(tool, &self.head, &self.blobs)
            {
                items.push(&ended.row(tool));
            }
        }
        self.blobs.check()?;
        Ok(!page.is_empty() && !self.ends.is_empty())
    }
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
