//! Tool calls: a call is told whole once, then what changes of it.

use std::borrow::Cow;

use serde_json::json;
use tolka_facts::event::{OutputAppended, ToolChanged};
use tolka_facts::{Blobs, Body, CallId, Event, Json, Tool, ToolContent, ToolKind, ToolStatus};

use super::super::tool::said_error;
use super::super::wire::{self, ToolFields, ToolMeta};
use super::super::write::{CallMeta, Content, OutputDelta, Shown, ToolCall, Update};
use super::{Encoder, Telling};

/// Not one word, so that nobody takes it for the tool's name.
const NO_TITLE: &str = "Tool call";

impl Encoder {
    /// Passes on an update of a call.
    pub(super) fn pass_call(&mut self, call: &CallId, update: &Json, kind: &str, to: &mut Telling<'_>) {
        if let Some(tool) = to.tip.tool(call) {
            if kind == "tool_call" {
                self.state.calls.insert(call.clone());
            }
            self.start(tool, to);
            self.forget_ended(tool);
        }
        self.state.twin = has_second(update, &to.fact.event).then(|| call.clone());
        to.pass(update);
    }

    pub(super) fn tool_changed(&mut self, e: &ToolChanged, is_twin: bool, to: &mut Telling<'_>) {
        // The tip has no such call if it ended before, or if no turn is open.
        let Some(tool) = to.tip.tool(&e.call) else { return };
        if !is_twin {
            let is_new = self.state.calls.insert(e.call.clone());
            let whole = is_new.then(|| started(tool));
            let said = ToolCall { tool_call_id: e.call.as_str(), ..changes(e, tool, to.blobs) };
            match whole {
                Some(start) => to.update(&Update::ToolCall(ToolCall { title: start.title, kind: start.kind, ..said })),
                None if says_something(&said) => to.update(&Update::ToolCallUpdate(said)),
                None => {}
            }
        }
        self.forget_ended(tool);
    }

    pub(super) fn output_appended(&mut self, e: &OutputAppended, to: &mut Telling<'_>) {
        let Some(tool) = to.tip.tool(&e.call).filter(|_| !e.text.is_empty()) else { return };
        self.start(tool, to);
        let terminal_output_delta = OutputDelta { data: &e.text, terminal_id: e.call.as_str() };
        let meta = Some(CallMeta::Output { terminal_output_delta });
        to.update(&Update::ToolCallUpdate(ToolCall { tool_call_id: e.call.as_str(), meta, ..ToolCall::default() }));
    }

    /// Tells of a call that the reader has not heard of: clients drop an update of a call that they do not know.
    fn start(&mut self, tool: &Tool, to: &mut Telling<'_>) {
        if !self.state.calls.contains(&tool.call) {
            self.state.calls.insert(tool.call.clone());
            to.update(&Update::ToolCall(started(tool)));
        }
    }

    fn forget_ended(&mut self, tool: &Tool) {
        if !tool.is_open() {
            self.state.calls.remove(&tool.call);
        }
    }
}

fn started(tool: &Tool) -> ToolCall<'_> {
    let title = [tool.title.as_str(), tool.name.as_deref().unwrap_or_default(), NO_TITLE];
    ToolCall {
        tool_call_id: tool.call.as_str(),
        title: title.into_iter().find(|title| !title.is_empty()),
        name: tool.name.as_deref(),
        kind: Some(tool.kind).filter(|kind| *kind != ToolKind::Other),
        ..ToolCall::default()
    }
}

fn changes<'a>(e: &'a ToolChanged, tool: &'a Tool, blobs: &dyn Blobs) -> ToolCall<'a> {
    let mut said = ToolCall {
        tool_call_id: e.call.as_str(),
        title: e.title.as_deref().filter(|title| !title.is_empty()),
        name: e.name.as_deref(),
        kind: e.kind,
        status: e.status,
        content: e.content.as_ref().map(|content| shown(content, blobs)),
        locations: e.locations.as_deref(),
        raw_input: e.input.as_ref().map(|input| input.whole(blobs)),
        raw_output: e.output.as_ref().map(|output| output.whole(blobs)),
        meta: e.subagent.as_ref().map(|subagent_session_id| CallMeta::Subagent { subagent_session_id }),
    };
    if let Some(meta) = e.meta.as_ref().map(|meta| meta.whole(blobs)).filter(|meta| meta.get().starts_with('{')) {
        said.meta = Some(CallMeta::Told(meta));
    }
    if let Some(error) = &e.error {
        tell_error(error, tool, &mut said, blobs);
    }
    said
}

fn shown<'a>(content: &'a [ToolContent], blobs: &dyn Blobs) -> Vec<Shown<'a>> {
    content.iter().map(|content| Shown::of(content, blobs)).collect()
}

/// The protocol has no field for why a call failed: agents say it in the output, or show it.
fn tell_error<'a>(error: &'a Body, tool: &'a Tool, said: &mut ToolCall<'a>, blobs: &dyn Blobs) {
    let content = tool.content.as_deref().unwrap_or_default();
    let output = tool.output.as_ref().map(|output| output.whole(blobs));
    let error = error.text(blobs);
    match output {
        None => said.raw_output = Some(Cow::Owned(Json::from(json!({ "error": error })))),
        Some(output) if said_error(Some(&output), content).is_some_and(|said| said.text(blobs) == error) => {}
        Some(_) => {
            let mut all = vec![Shown::Content { content: Content::text(error) }];
            all.extend(shown(content, blobs));
            said.content = Some(all);
        }
    }
}

/// Whether an update says more than which call it is about.
fn says_something(said: &ToolCall<'_>) -> bool {
    let ToolCall { tool_call_id: _, title, name, kind, status, content, locations, raw_input, raw_output, meta } = said;
    title.is_some()
        || name.is_some()
        || kind.is_some()
        || status.is_some()
        || content.is_some()
        || locations.is_some()
        || raw_input.is_some()
        || raw_output.is_some()
        || meta.is_some()
}

/// Whether another fact follows that tells of the same update.
///
/// The interpreter reads an update that has live output beside changes of its call as two facts: the changes, then the
/// output; where the changes end the call, the output, then the changes. The first has the update as its raw and the
/// second has none, so nothing but the update says that the second is to come.
fn has_second(update: &Json, first: &Event) -> bool {
    // Few updates have it, and to look for the word is cheaper than to parse.
    if !update.get().contains("terminal_output_delta") {
        return false;
    }
    let Some(ToolFields { status, meta, .. }) = update.read() else { return false };
    match first {
        Event::OutputAppended(_) => status.as_deref().and_then(wire::status).is_some_and(ToolStatus::is_terminal),
        _ => {
            let output = meta.and_then(|meta| meta.read::<ToolMeta>()?.terminal_output_delta);
            output.is_some_and(|output| !output.data.is_empty())
        }
    }
}
