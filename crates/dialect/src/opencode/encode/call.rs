//! Tool calls: each is told as pending first, then whenever its part has changed.

use tolka_facts::{Ask, CallId, Tool, ToolStatus};

use super::super::marks::Mark;
use super::super::tools;
use super::{Call, Held, Telling};
use crate::Growing;
use crate::print::print;
use crate::quoted::quoted;

impl Telling<'_> {
    /// Whether a subagent works for this call.
    pub(super) fn is_of_subagent(&self, call: Option<&CallId>) -> bool {
        call.and_then(|call| self.tip.tool(call)).is_some_and(|tool| tool.subagent.is_some())
    }

    pub(super) fn tool(&mut self, call: &CallId) {
        if let Some(tool) = self.tip.tool(call) {
            self.tool_part(tool);
        }
    }

    pub(super) fn live(&mut self, call: &CallId, reached: impl Fn(&mut Call, &Tool) -> Option<usize>) {
        let Some(tool) = self.tip.tool(call) else { return };
        self.announce(tool);
        let Some(known) = self.told.calls.iter_mut().find(|known| known.id == *call) else { return };
        if reached(known, tool).is_none() {
            return;
        }
        match self.growing {
            Growing::Told => self.tool_part(tool),
            Growing::Held => {
                known.held = Some(Held { input: tool.live_input.len(), output: tool.live_output.len() });
            }
        }
    }

    /// Tells what was held. Since then the calls have grown and not changed: a change tells all of a call.
    pub(super) fn held(&mut self) {
        let tip = self.tip;
        for at in 0..self.told.calls.len() {
            let call = &self.told.calls[at];
            let Some((held, tool)) = call.held.zip(tip.tool(&call.id)).filter(|(_, tool)| tool.is_open()) else {
                continue;
            };
            let (live_input, live_output) = (tool.live_input.until(held.input), tool.live_output.until(held.output));
            self.tool_part(&Tool { live_input, live_output, ..tool.clone() });
        }
    }

    /// Every call is first told as pending and empty, also where its agent began further on.
    pub(super) fn announce(&mut self, tool: &Tool) {
        if self.told.calls.iter().any(|known| known.id == tool.call) {
            return;
        }
        let (input, output) = (Mark::output(), Mark::output());
        self.told.calls.push(Call { id: tool.call.clone(), seen: 0, input, output, asked: false, held: None });
        let at = self.told.calls.len() - 1;
        self.written_part(at, |session, out| tools::write_announced(tool, session, out));
    }

    pub(super) fn tool_part(&mut self, tool: &Tool) {
        self.announce(tool);
        let Some(at) = self.told.calls.iter().position(|known| known.id == tool.call) else { return };
        // Clients look at the input of a call only once it runs, and a person who is asked must see it.
        let asked =
            self.tip.asks().any(|ask| matches!(ask, Ask::Permission(ask) if ask.call.as_ref() == Some(&tool.call)));
        self.told.calls[at].asked |= asked;
        self.told.calls[at].held = None;
        let tool = if self.told.calls[at].asked && tool.status == ToolStatus::Pending {
            &Tool { status: ToolStatus::Running, ..tool.clone() }
        } else {
            tool
        };
        let blobs = self.blobs;
        self.written_part(at, |session, out| tools::write_part(tool, session, blobs, out));
        if !tool.is_open() {
            self.told.calls.remove(at);
        }
    }

    /// Tells a part as it is written, unless it is the one that was told last of this call.
    fn written_part(&mut self, at: usize, write: impl FnOnce(&str, &mut Vec<u8>)) {
        let (event, session, time) = (self.event_id(), self.session(), self.fact.time.millis());
        let Some(call) = self.told.calls.get_mut(at) else { return };
        self.out.push_if(|out| {
            out.extend_from_slice(br#"{"id":"#);
            quoted([event.as_str()], out);
            out.extend_from_slice(br#","type":"message.part.updated","properties":{"sessionID":"#);
            quoted([session], out);
            out.extend_from_slice(br#","part":"#);
            let start = out.len();
            write(session, out);
            let print = print(&out[start..]);
            out.extend_from_slice(br#","time":"#);
            // Writing to a Vec cannot fail.
            let _ = serde_json::to_writer(&mut *out, &time);
            out.extend_from_slice(b"}}");
            std::mem::replace(&mut call.seen, print) != print
        });
    }
}
