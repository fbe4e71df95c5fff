//! The shapes on the wire, as they are written. Fields stand in the order that OpenCode gives them.

use serde::Serialize;
use serde_json::{Value, json};
use tolka_facts::event::{Model, PermissionAsked, PlanEntry, PlanStatus, QuestionAsked};
use tolka_facts::{Ask, Blobs, Head, Tip};

use super::tools;

/// The version of OpenCode whose wire this is; its clients compare it.
pub const SPOKEN_VERSION: &str = "1.18.33";

#[derive(Serialize)]
pub(super) struct Frame<'a, P> {
    pub(super) id: String,
    pub(super) r#type: &'a str,
    pub(super) properties: P,
}

#[derive(Serialize)]
pub(super) struct PartUpdated<'a, P> {
    #[serde(rename = "sessionID")]
    pub(super) session_id: &'a str,
    pub(super) part: P,
    pub(super) time: u64,
}

#[derive(Serialize)]
pub(super) struct Span {
    pub(super) start: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<u64>,
}

/// OpenCode's "agent" is what others call the mode: build, plan, ….
pub(super) fn agent_name(head: &Head) -> &str {
    head.mode.as_deref().unwrap_or("build")
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ModelName<'a> {
    pub(super) provider: &'a str,
    pub(super) id: &'a str,
}

pub(super) fn model<'a>(head: &'a Head, asked: Option<&'a Model>) -> ModelName<'a> {
    match asked.or(head.model.as_ref()) {
        Some(model) => ModelName { provider: &model.provider, id: &model.id },
        None => ModelName { provider: "tolka", id: &head.agent },
    }
}

pub(super) fn todos(entries: &[PlanEntry]) -> Value {
    let status = |status| match status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in_progress",
        PlanStatus::Completed => "completed",
        PlanStatus::Cancelled => "cancelled",
    };
    let todo = |(at, entry): (usize, &PlanEntry)| {
        json!({
            "id": (at + 1).to_string(),
            "content": entry.content,
            "status": status(entry.status),
            "priority": entry.priority,
        })
    };
    entries.iter().enumerate().map(todo).collect()
}

/// A permission or a question as `permission.asked`, `question.asked` and the routes that list them show it.
pub fn ask_json(ask: &Ask, tip: &Tip, blobs: &dyn Blobs) -> Value {
    match ask {
        Ask::Permission(ask) => permission(ask, tip, blobs),
        Ask::Question(ask) => question(ask, tip),
    }
}

pub(super) fn permission(ask: &PermissionAsked, tip: &Tip, blobs: &dyn Blobs) -> Value {
    let mut asked = json!({
        "id": ask.request,
        "sessionID": tip.head.id,
        "permission": ask.permission,
        "patterns": ask.patterns,
        "metadata": metadata(ask, tip, blobs),
        "always": ask.patterns,
    });
    if let Some(call) = &ask.call {
        asked["tool"] = json!({ "messageID": message_of(tip), "callID": call });
    }
    asked
}

/// What a person is shown before they allow it: what the agent said, and for a change of a file the change.
pub(super) fn metadata(ask: &PermissionAsked, tip: &Tip, blobs: &dyn Blobs) -> Value {
    let mut metadata = ask.metadata.as_ref().map_or_else(|| json!({}), |metadata| metadata.whole(blobs).value());
    let tool = ask.call.as_ref().and_then(|call| tip.tool(call)).filter(|_| ask.permission == "edit");
    if let (Some(fields), Some((path, diff))) =
        (metadata.as_object_mut(), tool.and_then(|tool| tools::proposed_change(tool, blobs)))
    {
        fields.entry("filepath").or_insert_with(|| json!(path));
        fields.entry("diff").or_insert_with(|| json!(diff));
    }
    metadata
}

pub(super) fn question(ask: &QuestionAsked, tip: &Tip) -> Value {
    let mut asked = json!({ "id": ask.request, "sessionID": tip.head.id, "questions": ask.questions });
    if let Some(call) = &ask.call {
        asked["tool"] = json!({ "messageID": message_of(tip), "callID": call });
    }
    asked
}

fn message_of(tip: &Tip) -> &str {
    tip.turn.as_ref().map_or("", |turn| turn.current_message().as_str())
}
