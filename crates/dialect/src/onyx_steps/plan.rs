//! A plan, as numbered lines and as entries with a number for their priority.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use tolka_facts::event::{PlanEntry, PlanStatus, Priority};

#[derive(Debug, Serialize)]
pub(super) struct Entry<'a> {
    id: String,
    description: &'a str,
    status: &'static str,
    priority: u8,
}

pub(super) fn entries(plan: &[PlanEntry]) -> Vec<Entry<'_>> {
    (1..).zip(plan).map(|(n, entry)| Entry::new(n, entry)).collect()
}

impl<'a> Entry<'a> {
    fn new(n: u64, entry: &'a PlanEntry) -> Self {
        let status = match entry.status {
            PlanStatus::Pending => "pending",
            PlanStatus::InProgress => "in_progress",
            // The wire has no word for a dropped entry; like a finished one, nothing is left to do on it.
            PlanStatus::Completed | PlanStatus::Cancelled => "completed",
        };
        let priority = match entry.priority {
            Priority::High => 1,
            Priority::Medium => 2,
            Priority::Low => 3,
        };
        Entry { id: n.to_string(), description: &entry.content, status, priority }
    }
}

pub(super) fn lines(plan: &[PlanEntry]) -> String {
    let mut text = String::new();
    for (n, entry) in (1..).zip(plan) {
        let gap = if n == 1 { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{gap}{n}. {}", entry.content);
    }
    text
}

pub(super) fn read_entry(entry: &Value) -> Option<PlanEntry> {
    let status = match entry["status"].as_str() {
        Some("in_progress") => PlanStatus::InProgress,
        Some("completed") => PlanStatus::Completed,
        Some("cancelled") => PlanStatus::Cancelled,
        _ => PlanStatus::Pending,
    };
    let priority = match entry["priority"].as_u64() {
        Some(0 | 1) => Priority::High,
        Some(2) | None => Priority::Medium,
        Some(_) => Priority::Low,
    };
    Some(PlanEntry { content: entry["description"].as_str()?.to_owned(), status, priority })
}

/// For a plan that is told in its lines alone.
pub(super) fn read_lines(text: &str) -> Vec<PlanEntry> {
    let unnumbered = |line: &str| match line.split_once(". ") {
        Some((number, rest)) if number.parse::<u32>().is_ok() => rest.to_owned(),
        _ => line.to_owned(),
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let entry = |line| PlanEntry { content: unnumbered(line), status: PlanStatus::Pending, priority: Priority::Medium };
    lines.map(entry).collect()
}
