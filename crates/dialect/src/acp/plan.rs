use serde::Deserialize;
use tolka_facts::Json;
use tolka_facts::event::{PlanEntry, PlanStatus, Priority};

use super::wire::lenient;

#[derive(Deserialize)]
pub(super) struct Plan {
    pub(super) entries: Vec<Json>,
}

/// The input of a todo tool, whatever the agent calls it.
#[derive(Deserialize)]
pub(super) struct Todos {
    pub(super) todos: Vec<Json>,
}

#[derive(Deserialize)]
struct Entry {
    /// Gemini's todos call it `description`.
    #[serde(alias = "description")]
    content: String,
    #[serde(default, deserialize_with = "lenient")]
    status: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    priority: Option<String>,
}

/// Entries that say what is to be done; the others are left out.
pub(super) fn entries(wire: &[Json]) -> Vec<PlanEntry> {
    wire.iter().filter_map(Json::read).map(entry).collect()
}

fn entry(entry: Entry) -> PlanEntry {
    let status = match entry.status.as_deref().unwrap_or_default() {
        "in_progress" | "in-progress" => PlanStatus::InProgress,
        "completed" | "done" => PlanStatus::Completed,
        "cancelled" => PlanStatus::Cancelled,
        _ => PlanStatus::Pending,
    };
    let priority = match entry.priority.as_deref().unwrap_or_default() {
        "high" => Priority::High,
        "low" => Priority::Low,
        _ => Priority::Medium,
    };
    PlanEntry { content: entry.content, status, priority }
}
