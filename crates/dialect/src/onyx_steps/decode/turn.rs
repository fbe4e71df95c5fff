//! What a decoder must know of the open turn to read its packets.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use tolka_facts::event::{OptionKind, OutputAppended, PermissionOption, ToolChanged, TurnStarted};
use tolka_facts::{
    Body, CallId, Draft, Json, PartId, RequestId, Time, ToolContent, ToolStatus, TurnId, Voice, derived_id,
};

use super::Decoder;
use crate::onyx::fields::{self, Fields};
use crate::onyx_steps::{block, tool, words};

#[derive(Debug)]
pub(super) struct OpenTurn {
    pub(super) id: TurnId,
    pub(super) step: Option<Step>,
    /// A tool was called in the step.
    pub(super) has_called: bool,
    /// The run that the next piece of this voice belongs to.
    pub(super) run: Option<(Voice, PartId)>,
    /// The names of open calls: packets repeat them.
    calls: HashMap<CallId, String>,
    pub(super) asks: BTreeMap<RequestId, Vec<PermissionOption>>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Model(String),
    Thinking(String),
}

impl Decoder {
    fn id(&mut self, prefix: &str) -> String {
        self.made += 1;
        derived_id(prefix, Time::default(), self.made, 0)
    }

    /// The packets of a turn imply its start, which the wire does not tell.
    pub(super) fn open_turn(&mut self, out: &mut Vec<Draft>) -> &mut OpenTurn {
        if self.turn.is_none() {
            let turn = TurnId::from(self.id("trn"));
            out.push(Draft::tolka(TurnStarted { turn: turn.clone(), checkpoint: None }));
            self.turn = Some(OpenTurn::new(turn));
        }
        self.turn.get_or_insert_with(|| OpenTurn::new(TurnId::default()))
    }

    pub(super) fn part(&mut self, voice: Voice, out: &mut Vec<Draft>) -> PartId {
        let open = self.open_turn(out).run.clone();
        if let Some((_, part)) = open.filter(|(open, _)| *open == voice) {
            return part;
        }
        let part = PartId::from(self.id("prt"));
        self.open_turn(out).run = Some((voice, part.clone()));
        part
    }
}

impl OpenTurn {
    fn new(id: TurnId) -> Self {
        OpenTurn { id, step: None, has_called: false, run: None, calls: HashMap::new(), asks: BTreeMap::new() }
    }

    pub(super) fn tool_start(&mut self, fields: &Fields) -> Option<ToolChanged> {
        let call = CallId::from(fields.text(&["tool_call_id"])?);
        // Text after a tool is a new run, also when the voice is the same.
        self.run = None;
        self.has_called = true;
        let mut changed = self.named(call, fields);
        changed.status = Some(ToolStatus::Running);
        changed.title = fields.text(&["title"]);
        changed.input = fields.json(&["tool_input"]).filter(|input| input.get() != "{}").cloned();
        Some(changed)
    }

    /// New output, or another title or input.
    pub(super) fn tool_progress(&mut self, fields: &Fields, out: &mut Vec<Draft>) -> Option<tolka_facts::Event> {
        let call = CallId::from(fields.text(&["tool_call_id"])?);
        let mut changed = self.named(call, fields);
        changed.input = fields.json(&["tool_input"]).cloned();
        let Some(text) = fields.text(&["output"]) else {
            changed.title = fields.text(&["message"]).filter(|message| !message.is_empty());
            changed.status = Some(ToolStatus::Running);
            return Some(changed.into());
        };
        let call = changed.call.clone();
        if changed != ToolChanged::of(call.clone()) {
            out.push(Draft::agent(changed));
        }
        Some(OutputAppended { call, text }.into())
    }

    pub(super) fn tool_end(&mut self, fields: &Fields) -> Option<ToolChanged> {
        let call = CallId::from(fields.text(&["tool_call_id"])?);
        let mut changed = self.named(call, fields);
        self.calls.remove(&changed.call);
        let status = words::read_tool_end(&fields.text(&["status"]).unwrap_or_default());
        changed.status = Some(status);
        let result = fields.json(&["result"]).cloned();
        match status == ToolStatus::Completed {
            true => changed.output = result,
            false => changed.error = result.map(|result| Body::from(in_words(&result))),
        }
        let content = |block: &Value| block::read(block).map(|block| ToolContent::Content { block });
        changed.content = fields.list(&["content"], content);
        Some(changed)
    }

    /// A change of the call that names the tool, if that is news.
    fn named(&mut self, call: CallId, fields: &Fields) -> ToolChanged {
        let mut changed = ToolChanged::of(call.clone());
        let name = fields.text(&["tool_name"]).filter(|name| !name.is_empty()).map(|name| tool::read_name(&name));
        if let Some(name) = name.filter(|name| self.calls.get(&call) != Some(name)) {
            changed.kind = tool::kind_of(&name);
            changed.name = Some(name.clone());
            self.calls.insert(call, name);
        }
        changed
    }
}

fn in_words(result: &Json) -> String {
    result.read::<String>().unwrap_or_else(|| result.get().to_owned())
}

/// The options that are told beside the document's fields.
pub(super) fn options_or_default(fields: &Fields) -> Vec<PermissionOption> {
    fields.list(&["options"], fields::option).unwrap_or_else(default_options)
}

/// What the document's packets leave to choose.
pub(super) fn default_options() -> Vec<PermissionOption> {
    let option = |id: &str, name: &str, kind| PermissionOption { id: id.to_owned(), name: name.to_owned(), kind };
    vec![option("approve", "Approve", OptionKind::AllowOnce), option("reject", "Reject", OptionKind::RejectOnce)]
}
