//! Sessions, turns, artifacts and approvals as this family's JSON has them.

use serde_json::{Value, json};
use tolka_dialect::onyx::timestamp;
use tolka_dialect::onyx_steps::in_workspace;
use tolka_facts::event::{ArtifactKind, ArtifactSaved, PermissionAsked};
use tolka_facts::{Blobs, Head, SessionId, Time, Tip, TurnId};
use tolka_session::UNNAMED;

pub(super) fn session(head: &Head) -> Value {
    // Clients of this family ask for a name when there is none.
    let name = Some(&head.title).filter(|title| !title.is_empty() && *title != UNNAMED);
    json!({
        "id": head.id,
        "user_id": null,
        "name": name,
        "status": if head.archived { "idle" } else { "active" },
        "created_at": timestamp(head.created),
        "last_activity_at": timestamp(head.updated),
        "nextjs_port": null,
        // It never sleeps: an agent runs where the server does. A client that read anything else would
        // wait for it to be restored.
        "sandbox": {
            "id": head.id,
            "status": "running",
            "container_id": null,
            "created_at": timestamp(head.created),
            "last_heartbeat": timestamp(head.updated),
        },
        // Always empty in the real server as well; `/artifacts` has them.
        "artifacts": [],
        "sharing_scope": "private",
        "origin": "INTERACTIVE",
        "agent_provider": head.model.as_ref().map(|model| &model.provider),
        "agent_model": head.model.as_ref().map(|model| &model.id),
        "skills_stale": false,
    })
}

pub(super) fn detailed_session(head: &Head) -> Value {
    let mut shown = session(head);
    shown["session_loaded_in_sandbox"] = json!(true);
    shown
}

pub(super) fn turn(session: &SessionId, turn: &TurnId, status: &str, index: u64) -> Value {
    json!({ "turn_id": turn, "session_id": session, "status": status, "turn_index": index })
}

/// Its path is told as a download wants it.
pub(super) fn artifact(head: &Head, saved: &ArtifactSaved, created: Time, updated: Time) -> Value {
    let kind = match saved.kind {
        ArtifactKind::WebApp | ArtifactKind::NextjsApp => "web_app",
        ArtifactKind::Presentation => "pptx",
        ArtifactKind::Document => "docx",
        ArtifactKind::Spreadsheet => "excel",
        ArtifactKind::Markdown => "markdown",
        ArtifactKind::Image => "image",
        // The family has no word for these; the documents' `file` is the nearest.
        ArtifactKind::File | ArtifactKind::Pdf | ArtifactKind::Code => "file",
    };
    json!({
        "id": saved.id,
        "session_id": head.id,
        "type": kind,
        "name": saved.name,
        "path": in_workspace(&saved.path, &head.workspace),
        "preview_url": saved.preview,
        "created_at": timestamp(created),
        "updated_at": timestamp(updated),
    })
}

/// Onyx asks about calls of connected apps, Tolka about any tool: the tool is the action, the agent the app.
pub(super) fn approval(tip: &Tip, ask: &PermissionAsked, asked: Time, blobs: &dyn Blobs) -> Value {
    let tool = ask.call.as_ref().and_then(|call| tip.tool(call));
    let input = tool.and_then(|tool| tool.input.as_ref()).map(|input| input.whole(blobs).value());
    let metadata = ask.metadata.as_ref().map(|metadata| metadata.whole(blobs).value());
    let payload = json!({ "patterns": ask.patterns, "input": input, "metadata": metadata });
    json!({
        "approval_id": ask.request,
        "session_id": tip.head.id,
        "actions": [{
            "action_type": ask.permission,
            "display_name": ask.title,
            "description": ask.patterns.join(", "),
            "policy": "ASK",
        }],
        "app_name": tip.head.agent,
        "payload": payload,
        "display_payload": payload,
        "is_live": true,
        "created_at": timestamp(asked),
        "decision": null,
        "decided_at": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_packets_write_them() {
        assert_eq!(timestamp(Time::from_micros(1_769_040_711_712_150)), "2026-01-22T00:11:51.712150+00:00");
        assert_eq!(timestamp(Time::default()), "1970-01-01T00:00:00.000000+00:00");
    }

    #[test]
    fn a_session_that_nobody_named_has_no_name() {
        let named = |title: &str| session(&Head { title: title.to_owned(), ..Head::default() })["name"].clone();
        assert_eq!(named("New session"), Value::Null);
        assert_eq!(named(""), Value::Null);
        assert_eq!(named("Fix the build"), "Fix the build");
    }
}
