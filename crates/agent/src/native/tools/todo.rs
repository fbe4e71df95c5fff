//! `todowrite`: the plan of the work, whole each time.

use serde_json::{Value, json};
use tolka_facts::Draft;
use tolka_facts::event::{PlanEntry, PlanSet, PlanStatus, Priority};

use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::field::{Fields, TODOS};
use super::read::fields as map;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let entries: Vec<PlanEntry> = fields.list(TODOS)?.iter().map(entry).collect::<Result<_, _>>()?;
    act.leave(Want::look("todowrite", "*"), &[]).await?;
    act.running("todowrite", &[]).await?;
    act.scene.teller.tell(Draft::agent(PlanSet { entries: entries.clone() })).await?;
    let is_open = |entry: &&PlanEntry| matches!(entry.status, PlanStatus::Pending | PlanStatus::InProgress);
    let title = format!("{} todos", entries.iter().filter(is_open).count());
    let output = serde_json::to_string_pretty(&entries).unwrap_or_default();
    let metadata = map(json!({ "todos": entries, "truncated": false }));
    Ok(Done { title, output, metadata, ..Done::default() })
}

fn entry(item: &Value) -> Result<PlanEntry, Stop> {
    let text = |names: &[&str]| names.iter().find_map(|name| item[*name].as_str()).unwrap_or_default();
    let content = item.as_str().unwrap_or_else(|| text(&["content", "step", "title", "task"])).trim();
    if content.is_empty() {
        return Err(Stop::failed("each of `todos` has a `content` that says what is to be done"));
    }
    let status = match text(&["status", "state"]).to_lowercase().replace(['-', ' '], "_").as_str() {
        "completed" | "complete" | "done" => PlanStatus::Completed,
        "in_progress" | "active" | "doing" => PlanStatus::InProgress,
        "cancelled" | "canceled" => PlanStatus::Cancelled,
        _ => PlanStatus::Pending,
    };
    let priority = match text(&["priority"]).to_lowercase().as_str() {
        "high" => Priority::High,
        "low" => Priority::Low,
        _ => Priority::Medium,
    };
    Ok(PlanEntry { content: content.to_owned(), status, priority })
}
