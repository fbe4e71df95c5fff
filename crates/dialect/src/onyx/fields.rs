//! Reading the parts of a packet. Nothing here fails: what has an odd shape counts as missing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tolka_facts::event::{ArtifactKind, OptionKind, PermissionOption, PlanEntry, PlanStatus, Priority, Stop};
use tolka_facts::{Block, Json, Location, ToolContent, ToolStatus};

/// The fields of an object, unread: one that has an odd shape spoils nothing but itself.
#[derive(Default)]
pub(crate) struct Fields(BTreeMap<String, Json>);

impl Fields {
    pub(crate) fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json).map(Fields)
    }

    /// The first that is there; null is not.
    pub(crate) fn json(&self, names: &[&str]) -> Option<&Json> {
        names.iter().filter_map(|name| self.0.get(*name)).find(|json| !json.is_null())
    }

    /// It is there, be it null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self, names: &[&str]) -> Option<T> {
        self.json(names).and_then(Json::read)
    }

    pub(crate) fn text(&self, names: &[&str]) -> Option<String> {
        self.read(names)
    }

    pub(crate) fn list<T>(&self, names: &[&str], read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
        let items: Vec<Value> = self.read(names)?;
        Some(items.iter().filter_map(read).collect())
    }

    pub(super) fn block(&self) -> Option<Block> {
        block(&self.read(&["content"])?)
    }

    pub(crate) fn code(&self) -> Option<i64> {
        self.read(&["code"]).or_else(|| self.text(&["code"])?.parse().ok())
    }
}

fn text(object: &Value, name: &str) -> Option<String> {
    object[name].as_str().map(str::to_owned)
}

pub(crate) fn block(block: &Value) -> Option<Block> {
    match block["type"].as_str()? {
        "text" => Some(Block::Text {
            text: text(block, "text")?.into(),
            annotations: Some(block["annotations"].clone()).filter(|annotations| !annotations.is_null()),
        }),
        "image" => Some(Block::Image {
            data: text(block, "data")?.into(),
            mime: text(block, "mimeType")?,
            uri: text(block, "uri"),
        }),
        "audio" => Some(Block::Audio { data: text(block, "data")?.into(), mime: text(block, "mimeType")? }),
        "resource_link" => Some(Block::Link {
            uri: text(block, "uri")?,
            name: text(block, "name")?,
            title: text(block, "title"),
            description: text(block, "description"),
            mime: text(block, "mimeType"),
            size: block["size"].as_u64(),
        }),
        "resource" => {
            let resource = &block["resource"];
            Some(Block::Resource {
                uri: text(resource, "uri")?,
                mime: text(resource, "mimeType"),
                text: text(resource, "text").map(Into::into),
                blob: text(resource, "blob").map(Into::into),
            })
        }
        _ => None,
    }
}

pub(super) fn tool_content(item: &Value) -> Option<ToolContent> {
    match item["type"].as_str()? {
        "content" => Some(ToolContent::Content { block: block(&item["content"])? }),
        "diff" => Some(ToolContent::Diff {
            path: text(item, "path")?,
            old: text(item, "oldText").map(Into::into),
            new: text(item, "newText").unwrap_or_default().into(),
        }),
        "terminal" => Some(ToolContent::Terminal { id: text(item, "terminalId")? }),
        _ => None,
    }
}

pub(super) fn location(place: &Value) -> Option<Location> {
    Some(Location { path: text(place, "path")?, line: place["line"].as_u64() })
}

pub(super) fn plan_entry(entry: &Value) -> Option<PlanEntry> {
    let status = match entry["status"].as_str() {
        Some("in_progress") => PlanStatus::InProgress,
        Some("completed") => PlanStatus::Completed,
        Some("cancelled") => PlanStatus::Cancelled,
        _ => PlanStatus::Pending,
    };
    let priority = match entry["priority"].as_str() {
        Some("high") => Priority::High,
        Some("low") => Priority::Low,
        _ => Priority::Medium,
    };
    Some(PlanEntry { content: text(entry, "content")?, status, priority })
}

pub(crate) fn option(option: &Value) -> Option<PermissionOption> {
    let kind: OptionKind = Deserialize::deserialize(&option["kind"]).ok()?;
    Some(PermissionOption { id: text(option, "optionId")?, name: text(option, "name")?, kind })
}

pub(super) fn tool_status(status: &str) -> Option<ToolStatus> {
    match status {
        "pending" => Some(ToolStatus::Pending),
        "in_progress" => Some(ToolStatus::Running),
        "completed" => Some(ToolStatus::Completed),
        "failed" => Some(ToolStatus::Failed),
        "cancelled" => Some(ToolStatus::Cancelled),
        _ => None,
    }
}

/// `stop_sequence` stands in the document and in no agent; it is an ordinary end, as is what nobody knows.
pub(crate) fn stop(reason: &str) -> Stop {
    match reason {
        "max_tokens" => Stop::MaxTokens,
        "max_turn_requests" => Stop::MaxTurnRequests,
        "refusal" => Stop::Refusal,
        "cancelled" => Stop::Cancelled,
        _ => Stop::EndTurn,
    }
}

/// The document's four, and the names that today's server gives its artifacts.
pub(super) fn artifact_kind(kind: &str) -> ArtifactKind {
    match kind {
        "image" => ArtifactKind::Image,
        "web_app" => ArtifactKind::WebApp,
        "nextjs_app" => ArtifactKind::NextjsApp,
        "markdown" => ArtifactKind::Markdown,
        "docx" => ArtifactKind::Document,
        "pptx" => ArtifactKind::Presentation,
        "excel" => ArtifactKind::Spreadsheet,
        _ => ArtifactKind::File,
    }
}
