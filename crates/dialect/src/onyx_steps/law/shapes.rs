//! What each packet and each content block must hold, in the order of the document.

use serde_json::Value;

use crate::check::{Field, Findings, Kind, Rule, may, must};

/// A packet of the document.
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) rule: Rule,
    pub(super) fields: &'static [Field],
}

macro_rules! shapes {
    ($($name:literal, $rule:literal, $section:literal => [$($field:expr),* $(,)?];)*) => {
        pub(super) static SHAPES: &[Shape] = &[$(Shape {
            name: $name,
            rule: Rule {
                name: $rule,
                section: concat!("001, ", $section, ", `", $name, "`"),
                demand: concat!("A `", $name, "` has the fields that the document shows, with values of the same kind."),
            },
            fields: &[$($field),*],
        }),*];
    };
}

const TEXT: Kind = Kind::Text;
const TEXT_OR_NULL: Kind = Kind::Or(&Kind::Text);

shapes! {
    "step_start", "step-start", "1. Step/Thinking Packets" => [must("step_id", TEXT), must("step_name", TEXT)];
    "step_delta", "step-delta", "1. Step/Thinking Packets" => [must("step_id", TEXT), must("content", TEXT)];
    "step_end", "step-end", "1. Step/Thinking Packets" => [
        must("step_id", TEXT),
        must("status", Kind::OneOf(&["completed", "failed", "cancelled"])),
    ];
    "tool_start", "tool-start", "2. Tool Call Packets" => [
        must("tool_call_id", TEXT),
        must("tool_name", TEXT),
        must("tool_input", Kind::Open),
        must("title", TEXT),
    ];
    "tool_progress", "tool-progress", "2. Tool Call Packets" => [
        must("tool_call_id", TEXT),
        must("tool_name", TEXT),
        must("status", Kind::OneOf(&["pending", "in_progress"])),
        must("progress", Kind::Or(&Kind::Number)),
        must("message", TEXT_OR_NULL),
        may("tool_input", Kind::Open),
        may("output", TEXT),
    ];
    "tool_end", "tool-end", "2. Tool Call Packets" => [
        must("tool_call_id", TEXT),
        must("tool_name", TEXT),
        must("status", Kind::OneOf(&["success", "error", "cancelled"])),
        must("result", TEXT_OR_NULL),
        may("content", Kind::List(&Kind::Open)),
    ];
    "output_start", "output-start", "3. Agent Output Packets" => [];
    "output_delta", "output-delta", "3. Agent Output Packets" => [must("content", TEXT)];
    "output_end", "output-end", "3. Agent Output Packets" => [];
    "plan", "plan", "4. Plan Packets" => [
        must("plan", TEXT),
        must("entries", Kind::List(&Kind::Object(&[
            must("id", TEXT),
            must("description", TEXT),
            must("status", Kind::OneOf(&["pending", "in_progress", "completed"])),
            must("priority", Kind::Integer),
        ]))),
    ];
    "mode_update", "mode-update", "5. Mode Update Packets" => [
        must("mode", TEXT),
        must("description", TEXT_OR_NULL),
    ];
    "done", "done", "6. Completion Packets" => [
        must("summary", TEXT),
        must("stop_reason", Kind::OneOf(&["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])),
        must("usage", Kind::Or(&Kind::Object(&[
            must("input_tokens", Kind::Integer),
            must("output_tokens", Kind::Integer),
        ]))),
    ];
    "error", "error", "7. Error Packets" => [must("message", TEXT), must("code", Kind::Integer)];
    "file_write", "file-write", "8. Custom Onyx Packets" => [
        must("path", TEXT),
        must("size_bytes", Kind::Or(&Kind::Integer)),
        must("operation", Kind::OneOf(&["create", "update", "delete"])),
        may("tool_call_id", TEXT),
    ];
    "artifact_created", "artifact-created", "8. Custom Onyx Packets" => [
        must("artifact", Kind::Object(&[
            must("id", TEXT),
            must("type", Kind::OneOf(&[
                "web_app", "markdown", "image", "csv", "excel", "pptx", "docx", "pdf", "code", "other",
            ])),
            must("name", TEXT),
            must("path", TEXT),
            must("preview_url", TEXT_OR_NULL),
            must("download_url", TEXT_OR_NULL),
            must("mime_type", TEXT),
            must("size_bytes", Kind::Integer),
        ])),
    ];
    "permission_request", "permission-request", "9. Permission Packets" => [
        must("request_id", TEXT),
        must("operation", TEXT),
        must("description", TEXT),
        must("auto_approve", Kind::Bool),
        may("options", Kind::List(&Kind::Object(&[must("optionId", TEXT), must("name", TEXT), must("kind", TEXT)]))),
        may("tool_call_id", TEXT_OR_NULL),
    ];
    "permission_response", "permission-response", "9. Permission Packets" => [
        must("request_id", TEXT),
        must("approved", Kind::Bool),
        must("reason", TEXT_OR_NULL),
        may("option_id", TEXT_OR_NULL),
    ];
}

static TIMESTAMP: Rule = Rule {
    name: "timestamp",
    section: "001, Packet Categories",
    demand: "Every packet has a `timestamp` in RFC 3339.",
};

static BLOCK: Rule = Rule {
    name: "content-block",
    section: "001, Content Block Types",
    demand: "A content block is text, image, audio, embedded_resource or resource_link, with the fields shown.",
};

pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    SHAPES.iter().map(|shape| &shape.rule).chain([&TIMESTAMP, &BLOCK])
}

pub(super) fn shape(kind: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.name == kind)
}

pub(super) fn judge(shape: &'static Shape, body: &Value, out: &mut Findings<'_>) {
    out.shape(&shape.rule, body, shape.fields);
    out.shape(&TIMESTAMP, body, &[must("timestamp", Kind::Time)]);
    if shape.name == "tool_end" {
        for block in body["content"].as_array().into_iter().flatten() {
            judge_block(block, out);
        }
    }
}

fn judge_block(block: &Value, out: &mut Findings<'_>) {
    const MEDIA: &[Field] = &[must("data", TEXT), must("mimeType", TEXT)];
    let fields: &[Field] = match block["type"].as_str() {
        Some("text") => &[must("text", TEXT)],
        Some("image" | "audio") => MEDIA,
        Some("embedded_resource") => &[must("uri", TEXT), may("text", TEXT), may("mimeType", TEXT_OR_NULL)],
        Some("resource_link") => &[
            must("uri", TEXT),
            must("name", TEXT),
            may("mimeType", TEXT_OR_NULL),
            may("size", Kind::Or(&Kind::Integer)),
        ],
        _ => return out.add(&BLOCK, format!("a block of type {} in `content`", block["type"])),
    };
    out.shape(&BLOCK, block, fields);
}
