//! The shapes on the wire, as they are written. Fields stand in the order that OpenCode gives them.

use serde::Serialize;
use serde_json::{Value, json};
use tolka_facts::event::{Model, PermissionAsked, PlanEntry, PlanStatus, QuestionAsked, Usage};
use tolka_facts::{Ask, Blobs, Hash, Head, Rope, SessionId, Tip};

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
#[serde(rename_all = "camelCase")]
pub(super) struct PartDelta<'a> {
    #[serde(rename = "sessionID")]
    pub(super) session_id: &'a str,
    #[serde(rename = "messageID")]
    pub(super) message_id: &'a str,
    #[serde(rename = "partID")]
    pub(super) part_id: &'a str,
    pub(super) field: &'a str,
    pub(super) delta: &'a str,
}

#[derive(Serialize)]
pub(super) struct PartUpdated<'a, P> {
    #[serde(rename = "sessionID")]
    pub(super) session_id: &'a str,
    pub(super) part: P,
    pub(super) time: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delta: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct TextPart<'a> {
    pub(super) id: &'a str,
    #[serde(rename = "sessionID")]
    pub(super) session_id: &'a str,
    #[serde(rename = "messageID")]
    pub(super) message_id: &'a str,
    pub(super) r#type: &'a str,
    pub(super) text: &'a Rope,
    pub(super) time: Span,
}

#[derive(Serialize)]
pub(super) struct Span {
    pub(super) start: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<u64>,
}

/// A project is a folder; OpenCode names it by a hash.
pub fn project_id(workspace: &str) -> String {
    Hash::of(workspace.as_bytes()).as_str()[..40].to_owned()
}

/// `Session` as routes and events show it.
pub fn session_info(head: &Head) -> Value {
    let mut info = json!({
        "id": head.id,
        "slug": slug(&head.id),
        "version": SPOKEN_VERSION,
        "projectID": project_id(&head.workspace),
        "directory": head.workspace,
        "path": "",
        "title": head.title,
        "agent": agent_name(head),
        "model": { "id": model(head, None).id, "providerID": model(head, None).provider },
        "cost": head.cost.as_ref().map_or(0.0, |cost| cost.amount),
        "tokens": tokens(head.tokens),
        "summary": { "additions": head.added, "deletions": head.removed, "files": head.files },
        "time": { "created": head.created.millis(), "updated": head.updated.millis() },
    });
    if let Some(parent) = &head.parent {
        info["parentID"] = json!(parent.session);
    }
    if head.archived {
        info["time"]["archived"] = json!(head.updated.millis());
    }
    info
}

fn slug(id: &SessionId) -> String {
    const FIRST: [&str; 16] = [
        "amber", "brisk", "calm", "clear", "eager", "gentle", "glowing", "happy", "jolly", "keen", "kind", "lucid",
        "misty", "proud", "quiet", "sunny",
    ];
    const SECOND: [&str; 16] = [
        "birch", "brook", "comet", "falcon", "fjord", "heron", "lake", "lynx", "maple", "meadow", "otter", "pine",
        "raven", "river", "rocket", "tiger",
    ];
    let hash = Hash::of(id.as_str().as_bytes());
    let digit = |at: usize| usize::from_str_radix(&hash.as_str()[at..=at], 16).ok();
    format!("{}-{}", FIRST[digit(0).unwrap_or(0)], SECOND[digit(1).unwrap_or(0)])
}

/// OpenCode's "agent" is what others call the mode: build, plan, ….
pub(super) fn agent_name(head: &Head) -> &str {
    head.mode.as_deref().unwrap_or("build")
}

pub(super) fn model(head: &Head, asked: Option<&Model>) -> Model {
    let unknown = || Model { provider: "tolka".to_owned(), id: head.agent.clone() };
    asked.or(head.model.as_ref()).cloned().unwrap_or_else(unknown)
}

pub(super) fn tokens(usage: Usage) -> Value {
    json!({
        "input": usage.input,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "cache": { "read": usage.cache_read, "write": usage.cache_write },
    })
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
