//! Tool calls: each is told as pending first, then whenever its part has changed.

use tolka_facts::{Ask, CallId, Tool, ToolStatus};

use super::super::marks::Mark;
use super::super::tools;
use super::{Call, Telling};

impl Telling<'_> {
    pub(super) fn tool(&mut self, call: &CallId) {
        if let Some(tool) = self.tip.tool(call) {
            self.tool_part(tool);
        }
    }

    pub(super) fn live(&mut self, call: &CallId, reached: impl Fn(&mut Call, &Tool) -> Option<usize>) {
        let Some(tool) = self.tip.tool(call) else { return };
        self.announce(tool);
        let known = self.told.calls.iter_mut().find(|known| known.id == *call);
        if known.is_some_and(|known| reached(known, tool).is_some()) {
            self.tool_part(tool);
        }
    }

    /// Every call is first told as pending and empty, also where its agent began further on.
    pub(super) fn announce(&mut self, tool: &Tool) {
        if self.told.calls.iter().any(|known| known.id == tool.call) {
            return;
        }
        let mut part = Vec::with_capacity(256);
        tools::write_announced(tool, self.session(), &mut part);
        let (input, output) = (Mark::output(), Mark::output());
        self.told.calls.push(Call { id: tool.call.clone(), print: fingerprint(&part), input, output, asked: false });
        self.raw_part(&part);
    }

    pub(super) fn tool_part(&mut self, tool: &Tool) {
        self.announce(tool);
        let Some(at) = self.told.calls.iter().position(|known| known.id == tool.call) else { return };
        // Clients look at the input of a call only once it runs, and a person who is asked must see it.
        let asked =
            self.tip.asks().any(|ask| matches!(ask, Ask::Permission(ask) if ask.call.as_ref() == Some(&tool.call)));
        self.told.calls[at].asked |= asked;
        let tool = if self.told.calls[at].asked && tool.status == ToolStatus::Pending {
            &Tool { status: ToolStatus::Running, ..tool.clone() }
        } else {
            tool
        };
        let mut part = Vec::with_capacity(512);
        tools::write_part(tool, self.session(), self.blobs, &mut part);
        let print = fingerprint(&part);
        let is_news = std::mem::replace(&mut self.told.calls[at].print, print) != print;
        if !tool.is_open() {
            self.told.calls.remove(at);
        }
        if is_news {
            self.raw_part(&part);
        }
    }

    pub(super) fn raw_part(&mut self, part: &[u8]) {
        if let Ok(part) = serde_json::from_slice::<&serde_json::value::RawValue>(part) {
            self.part(part, None);
        }
    }
}

/// FNV-1a: no seed, so that the state of an encoder is the same in every process.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
