//! Tool calls: one start, a progress for what can be seen to change, exactly one end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tolka_facts::event::{Stop, ToolChanged};
use tolka_facts::{Blobs, CallId, Event, Fact, Tip, Tool, ToolStatus};

use super::{State, file_write};
use crate::Frames;
use crate::onyx_steps::packet::{Packet, Stamp};
use crate::onyx_steps::{block, tool, words};
use crate::print::print;

/// New output is told at its first piece and then in steps that grow with it, so that a chatty tool costs few packets.
const LIVE_STEP: u64 = 1024;
const LIVE_SHARE: u64 = 8;

/// The calls whose start was told, until their end is.
pub(super) type Calls = BTreeMap<CallId, Told>;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Told {
    /// Prints.
    title: u64,
    input: u64,
    /// Bytes of live output.
    live: u64,
}

impl State {
    /// A `ToolChanged` or an `OutputAppended`. The tip has no such call if it ended before, or if no turn is open:
    /// nothing is told of it then.
    pub(super) fn tool(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        let timestamp = Stamp(fact.time);
        match &fact.event {
            Event::ToolChanged(e) => {
                let edits = self.edits.of(fact, tip, blobs);
                let has_begun = |call: &&Tool| tool::has_begun(call) || self.calls.contains_key(&call.call);
                let Some(call) = tip.tool(&e.call).filter(has_begun) else { return };
                self.start_tool(call, timestamp, blobs, out);
                self.progress(e, call, timestamp, blobs, out);
                for edit in edits {
                    file_write(&edit, Some(call.call.as_str()), tip, timestamp, out);
                }
                if !call.is_open() {
                    self.end_tool(call, timestamp, blobs, out);
                }
            }
            Event::OutputAppended(e) => {
                let Some(call) = tip.tool(&e.call).filter(|call| !call.live_output.is_empty()) else { return };
                self.start_tool(call, timestamp, blobs, out);
                self.live_output(call, timestamp, out);
            }
            _ => {}
        }
    }

    /// Tells the start, if it was not told yet.
    pub(super) fn start_tool(&mut self, call: &Tool, timestamp: Stamp, blobs: &dyn Blobs, out: &mut Frames) {
        if self.calls.contains_key(&call.call) {
            return;
        }
        self.end_output(timestamp, out);
        self.end_thinking(timestamp, out);
        let (title, tool_input) = (tool::title(call), tool::input(call, blobs));
        let told = Told { title: print(title.as_bytes()), input: print(tool_input.get().as_bytes()), live: 0 };
        self.calls.insert(call.call.clone(), told);
        let (tool_call_id, tool_name) = (call.call.as_str(), tool::name(call));
        out.push(&Packet::ToolStart { tool_call_id, tool_name, tool_input, title, timestamp });
    }

    fn progress(&mut self, e: &ToolChanged, call: &Tool, timestamp: Stamp, blobs: &dyn Blobs, out: &mut Frames) {
        let Some(told) = self.calls.get_mut(&call.call) else { return };
        // An input may be long; its spelling depends on the tool's name.
        let may_differ = e.input.is_some() || e.name.is_some() || e.kind.is_some();
        let input = may_differ.then(|| tool::input(call, blobs));
        let is_news = |seen: &mut u64, text: &str| {
            let print = print(text.as_bytes());
            std::mem::replace(seen, print) != print
        };
        let tool_input = input.filter(|input| is_news(&mut told.input, input.get()));
        let title = tool::title(call);
        if !is_news(&mut told.title, title) && tool_input.is_none() {
            return;
        }
        out.push(&Packet::ToolProgress {
            tool_call_id: call.call.as_str(),
            tool_name: tool::name(call),
            status: "in_progress",
            progress: (),
            message: title,
            tool_input,
            output: None,
            timestamp,
        });
    }

    fn live_output(&mut self, call: &Tool, timestamp: Stamp, out: &mut Frames) {
        let Some(told) = self.calls.get_mut(&call.call) else { return };
        let length = call.live_output.len() as u64;
        let is_due = told.live == 0 || length.saturating_sub(told.live) >= LIVE_STEP.max(told.live / LIVE_SHARE);
        if !is_due {
            return;
        }
        let output = call.live_output.since(usize::try_from(told.live).unwrap_or(usize::MAX));
        told.live = length;
        out.push(&Packet::ToolProgress {
            tool_call_id: call.call.as_str(),
            tool_name: tool::name(call),
            status: "in_progress",
            progress: (),
            message: tool::last_line(output).as_deref().unwrap_or_else(|| tool::title(call)),
            tool_input: None,
            output: Some(output),
            timestamp,
        });
    }

    fn end_tool(&mut self, call: &Tool, timestamp: Stamp, blobs: &dyn Blobs, out: &mut Frames) {
        self.calls.remove(&call.call);
        out.push(&Packet::ToolEnd {
            tool_call_id: call.call.as_str(),
            tool_name: tool::name(call),
            status: words::tool_end(call.status),
            result: tool::result(call, blobs).into(),
            content: block::of_tool(call.content.as_ref(), blobs),
            timestamp,
        });
    }

    /// The session's actor ends every call; should it not have, a spinner would turn for ever.
    pub(super) fn cut_tool(&mut self, call: &Tool, stop: Stop, timestamp: Stamp, blobs: &dyn Blobs, out: &mut Frames) {
        let mut ended = call.clone();
        ended.status = if stop == Stop::Cancelled { ToolStatus::Cancelled } else { ToolStatus::Failed };
        ended.error.get_or_insert_with(|| "The turn ended before the tool did.".into());
        self.start_tool(&ended, timestamp, blobs, out);
        self.end_tool(&ended, timestamp, blobs, out);
    }
}
