//! A tool part against what was known of its call: only what changed is told.

use serde_json::{Map, Value, json};
use tolka_facts::event::{InputAppended, OutputAppended, ToolChanged};
use tolka_facts::{Block, Body, CallId, Draft, Json, ToolContent, ToolKind, ToolStatus};

use super::grown::{Grown, Growth, Print};
use super::part::{Attachment, Completed, Failed, Running, ToolPart, ToolState};
use crate::opencode::blocks_from_parts;

#[derive(Debug, Default)]
pub(super) struct Call {
    name: Option<String>,
    status: Option<ToolStatus>,
    title: String,
    input: Print,
    raw: Grown,
    output: Grown,
}

/// What could not be said as a change of the call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leftover {
    None,
    /// The part says something that we have no word for; its raw form is all there is.
    Unsaid,
}

impl Call {
    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some_and(ToolStatus::is_terminal)
    }

    pub(super) fn tell(&mut self, part: &ToolPart, out: &mut Vec<Draft>) -> Leftover {
        let mut change = ToolChanged::of(CallId::from(part.call_id.as_str()));
        if self.name.as_ref() != Some(&part.tool) {
            self.name = Some(part.tool.clone());
            change.name.clone_from(&self.name);
            change.kind = kind(&part.tool);
        }
        let call = change.call.clone();
        let mut grown = Vec::new();
        let mut left = Leftover::None;
        match &part.state {
            ToolState::Pending(state) => {
                self.become_(ToolStatus::Pending, &mut change);
                self.take_input(&state.input, &mut change);
                match self.raw.tell(&state.raw) {
                    Growth::Same => {}
                    Growth::More(text) => grown.push(Draft::agent(InputAppended { call, text: text.to_owned() })),
                    Growth::Replaced => left = Leftover::Unsaid,
                }
            }
            ToolState::Running(state) => {
                self.become_(ToolStatus::Running, &mut change);
                self.take_input(&state.input, &mut change);
                if let Some(title) = &state.title {
                    self.take_title(title, &mut change);
                }
                match self.output.tell(&live_output(state)) {
                    Growth::Same => {}
                    Growth::More(text) => grown.push(Draft::agent(OutputAppended { call, text: text.to_owned() })),
                    // A server that shows a window of a long output; the end brings it whole.
                    Growth::Replaced => left = Leftover::Unsaid,
                }
            }
            ToolState::Completed(state) => {
                self.become_(ToolStatus::Completed, &mut change);
                self.take_input(&state.input, &mut change);
                self.take_title(&state.title, &mut change);
                complete(state, &mut change);
            }
            ToolState::Error(state) => {
                self.become_(ToolStatus::Failed, &mut change);
                self.take_input(&state.input, &mut change);
                fail(state, &mut change);
            }
            ToolState::Other(_) => left = Leftover::Unsaid,
        }
        if says_something(&change) {
            out.push(Draft::agent(change));
        }
        out.append(&mut grown);
        left
    }

    fn become_(&mut self, status: ToolStatus, change: &mut ToolChanged) {
        if self.status != Some(status) {
            self.status = Some(status);
            change.status = Some(status);
        }
    }

    /// An empty input is how the wire says that none is known yet.
    fn take_input(&mut self, input: &Json, change: &mut ToolChanged) {
        let print = Print::of(input.get());
        if input.get() != "{}" && print != self.input {
            self.input = print;
            change.input = Some(input.clone());
        }
    }

    fn take_title(&mut self, title: &str, change: &mut ToolChanged) {
        if title != self.title {
            title.clone_into(&mut self.title);
            change.title = Some(title.to_owned());
        }
    }
}

fn says_something(change: &ToolChanged) -> bool {
    change.name.is_some()
        || change.title.is_some()
        || change.status.is_some()
        || change.input.is_some()
        || change.output.is_some()
        || change.content.is_some()
        || change.error.is_some()
}

fn live_output(state: &Running) -> String {
    let metadata = state.metadata.as_ref().map(Json::value);
    let output = metadata.as_ref().and_then(|metadata| metadata.get("output")).and_then(Value::as_str);
    output.unwrap_or_default().to_owned()
}

fn complete(state: &Completed, change: &mut ToolChanged) {
    let metadata = object(&state.metadata);
    let mut content: Vec<ToolContent> = state.attachments.iter().filter_map(attached).collect();
    content.extend(metadata.get("filediff").and_then(diff));
    change.content = (!content.is_empty()).then_some(content);
    change.output = Some(Json::from_value(&if metadata.is_empty() {
        json!(state.output)
    } else {
        json!({ "output": state.output, "metadata": metadata })
    }));
}

fn fail(state: &Failed, change: &mut ToolChanged) {
    change.error = Some(Body::from(state.error.as_str()));
    let metadata = state.metadata.as_ref().map(object).unwrap_or_default();
    if !metadata.is_empty() {
        change.output = Some(Json::from_value(&json!({ "metadata": metadata })));
    }
}

fn object(json: &Json) -> Map<String, Value> {
    match json.value() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn attached(file: &Attachment) -> Option<ToolContent> {
    let part = json!([{ "type": "file", "mime": file.mime, "url": file.url, "filename": file.filename }]);
    let block: Block = blocks_from_parts(Some(&part)).ok()?.pop()?;
    Some(ToolContent::Content { block })
}

fn diff(filediff: &Value) -> Option<ToolContent> {
    let text = |field: &str| filediff.get(field).and_then(Value::as_str);
    let (path, new) = (text("file")?, text("after")?);
    let old = text("before").filter(|old| !old.is_empty()).map(Body::from);
    Some(ToolContent::Diff { path: path.to_owned(), old, new: new.into() })
}

fn kind(tool: &str) -> Option<ToolKind> {
    Some(match tool {
        "bash" => ToolKind::Execute,
        "read" => ToolKind::Read,
        "edit" | "write" | "patch" | "apply_patch" | "multiedit" => ToolKind::Edit,
        "glob" | "grep" | "list" | "codesearch" => ToolKind::Search,
        "webfetch" | "websearch" => ToolKind::Fetch,
        _ => return None,
    })
}
