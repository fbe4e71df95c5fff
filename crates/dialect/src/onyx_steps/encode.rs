//! Facts to packets.
//!
//! The state is what a reader has been told to be open: a step, a segment of output, calls. A segment or a thought is
//! ended by the packet that cannot stand inside it and not by a fact that this wire does not tell: so every end has a
//! reader's reason, and a stream that is read back and told again is the same.

mod calls;

use serde::{Deserialize, Serialize};
use tolka_facts::event::{
    ModeSet, PermissionAnswered, PermissionAsked, SessionChanged, StepEnded, StepStarted, Stop, TextAppended,
    ThoughtAppended, TurnEnded, Usage,
};
use tolka_facts::{Ask, Blobs, Event, Fact, MessageId, OpenTurn, PartId, Time, Tip};

use super::artifact::Artifact;
use super::packet::{Choice, Packet, Stamp, Tokens};
use super::words::{Ending, StepStatus, THINKING, UNKNOWN_CODE};
use super::{plan, words};
use crate::Frames;
use crate::edit::{Edit, Edits};
use crate::onyx::{CommonError, INTERRUPTED};
use calls::Calls;

/// Changes with the meaning of [`State`]: an older state then starts from an idle moment instead.
const STATE_VERSION: u32 = 2;

const UNANSWERED: &str = "The turn ended before anybody answered";

#[derive(Debug, Default)]
pub struct Encoder {
    state: State,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct State {
    v: u32,
    step: Option<Step>,
    /// The run of text that the open segment tells.
    output: Option<PartId>,
    calls: Calls,
    edits: Edits,
    /// Of the turn's steps together, for agents that do not tell the turn's.
    usage: Option<Usage>,
}

/// The open step; there is never more than one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Step {
    /// A call of the model.
    Model(MessageId),
    /// A thought outside of any.
    Thinking(PartId),
}

impl Step {
    fn id(&self) -> &str {
        match self {
            Step::Model(message) => message.as_str(),
            Step::Thinking(part) => part.as_str(),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        State {
            v: STATE_VERSION,
            step: None,
            output: None,
            calls: Calls::default(),
            edits: Edits::default(),
            usage: None,
        }
    }
}

impl Encoder {
    pub fn resume(state: &[u8]) -> Option<Self> {
        let state: State = serde_json::from_slice(state).ok()?;
        (state.v == STATE_VERSION).then_some(Encoder { state })
    }
}

impl crate::Encoder for Encoder {
    fn encode(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        let (state, timestamp) = (&mut self.state, Stamp(fact.time));
        match &fact.event {
            Event::TurnStarted(_) => *state = State::default(),
            Event::TurnEnded(e) => {
                if let Some(turn) = &tip.ended_turn {
                    state.turn_ended(e, turn, fact.time, blobs, out);
                }
            }
            Event::StepStarted(e) => state.step_started(e, tip, timestamp, out),
            Event::StepEnded(e) => state.step_ended(e, tip, timestamp, out),
            Event::TextAppended(e) => state.text(e, tip, timestamp, out),
            Event::ThoughtAppended(e) => state.thought(e, tip, timestamp, out),
            Event::ToolChanged(_) | Event::OutputAppended(_) => state.tool(fact, tip, blobs, out),
            Event::FileChanged(e) => {
                let call = e.call.as_ref().and_then(|call| tip.tool(call)).filter(|tool| tool.is_open());
                if let Some(tool) = call {
                    state.start_tool(tool, timestamp, blobs, out);
                }
                for edit in state.edits.of(fact, tip, blobs) {
                    file_write(&edit, call.map(|tool| tool.call.as_str()), tip, timestamp, out);
                }
            }
            Event::CheckpointSaved(_) => {
                for edit in state.edits.of(fact, tip, blobs) {
                    file_write(&edit, None, tip, timestamp, out);
                }
            }
            Event::PlanSet(e) => {
                let (plan, entries) = (plan::lines(&e.entries), plan::entries(&e.entries));
                out.push(&Packet::Plan { plan, entries, timestamp });
            }
            Event::ModeSet(ModeSet { mode }) | Event::SessionChanged(SessionChanged { mode: Some(mode), .. }) => {
                out.push(&Packet::ModeUpdate { mode, description: (), timestamp });
            }
            Event::ArtifactSaved(e) => {
                out.push(&Packet::ArtifactCreated {
                    artifact: Artifact::new(e, &fact.session, &tip.head.workspace),
                    timestamp,
                });
            }
            Event::PermissionAsked(e) => state.asked(e, tip, timestamp, blobs, out),
            Event::PermissionAnswered(e) => answered(e, tip, timestamp, out),
            // Inside a turn the end of the turn tells it: a client takes an `error` for the end.
            Event::Failed(e) => {
                if tip.is_idle() {
                    let code = e.code.unwrap_or(UNKNOWN_CODE);
                    out.push(&Packet::Error { message: &e.message, code, timestamp });
                }
            }
            // Not on this wire. Streamed input is among them: the start has it once it is whole.
            Event::InputAppended(_)
            | Event::SessionCreated(_)
            | Event::SessionChanged(_)
            | Event::SessionDeleted(_)
            | Event::PromptQueued(_)
            | Event::PromptDropped(_)
            | Event::CommandsSet(_)
            | Event::UsageSet(_)
            | Event::Noticed(_)
            | Event::QuestionAsked(_)
            | Event::QuestionAnswered(_)
            | Event::CompactionStarted(_)
            | Event::CompactionEnded(_)
            | Event::RewindStarted(_)
            | Event::RewindFailed(_)
            | Event::Approved(_)
            | Event::FilesMoved(_)
            | Event::ProcessStarted(_)
            | Event::ProcessEnded(_)
            | Event::SessionForked(_)
            | Event::Rewound(_)
            | Event::Unrewound(_)
            | Event::MessageHidden(_)
            | Event::Foreign(_)
            | Event::InstanceDisposed(_)
            | Event::VersionChanged(_)
            | Event::UpdateFound(_)
            | Event::BranchChanged(_)
            | Event::PtyChanged(_)
            | Event::SessionChosen(_)
            | Event::PromptSteered(_)
            | Event::RetryScheduled(_) => {}
        }
    }

    fn state(&self) -> Vec<u8> {
        // Call ids are strings, so the map has string keys.
        serde_json::to_vec(&self.state).unwrap_or_default()
    }
}

impl State {
    fn step_started(&mut self, e: &StepStarted, tip: &Tip, timestamp: Stamp, out: &mut Frames) {
        let Some(turn) = &tip.turn else { return };
        self.end_output(timestamp, out);
        self.end_step(StepStatus::Completed, timestamp, out);
        let (step_id, step_name) = (e.message.as_str(), format!("Step {}", turn.steps));
        out.push(&Packet::StepStart { step_id, step_name: &step_name, timestamp });
        self.step = Some(Step::Model(e.message.clone()));
    }

    fn step_ended(&mut self, e: &StepEnded, tip: &Tip, timestamp: Stamp, out: &mut Frames) {
        if tip.is_idle() {
            return;
        }
        if let Some(usage) = e.usage {
            *self.usage.get_or_insert_default() += usage;
        }
        if matches!(self.step, Some(Step::Model(_))) {
            self.end_output(timestamp, out);
            self.end_step(e.finish.into(), timestamp, out);
        }
    }

    fn text(&mut self, e: &TextAppended, tip: &Tip, timestamp: Stamp, out: &mut Frames) {
        // Some agents send empty pieces, to carry a `_meta` of their own; there is nothing to see in them.
        if e.text.is_empty() || tip.is_idle() {
            return;
        }
        self.end_thinking(timestamp, out);
        if self.output.as_ref() != Some(&e.part) {
            self.end_output(timestamp, out);
            out.push(&Packet::OutputStart { timestamp });
            self.output = Some(e.part.clone());
        }
        out.push(&Packet::OutputDelta { content: &e.text, timestamp });
    }

    fn thought(&mut self, e: &ThoughtAppended, tip: &Tip, timestamp: Stamp, out: &mut Frames) {
        if e.text.is_empty() || tip.is_idle() {
            return;
        }
        self.end_output(timestamp, out);
        let is_another = matches!(&self.step, Some(Step::Thinking(part)) if *part != e.part);
        if is_another {
            self.end_thinking(timestamp, out);
        }
        let step = self.step.get_or_insert_with(|| {
            out.push(&Packet::StepStart { step_id: e.part.as_str(), step_name: THINKING, timestamp });
            Step::Thinking(e.part.clone())
        });
        out.push(&Packet::StepDelta { step_id: step.id(), content: &e.text, timestamp });
    }

    fn end_output(&mut self, timestamp: Stamp, out: &mut Frames) {
        if self.output.take().is_some() {
            out.push(&Packet::OutputEnd { timestamp });
        }
    }

    fn end_thinking(&mut self, timestamp: Stamp, out: &mut Frames) {
        if matches!(self.step, Some(Step::Thinking(_))) {
            self.end_step(StepStatus::Completed, timestamp, out);
        }
    }

    fn end_step(&mut self, status: StepStatus, timestamp: Stamp, out: &mut Frames) {
        if let Some(step) = self.step.take() {
            out.push(&Packet::StepEnd { step_id: step.id(), status: status.name(), timestamp });
        }
    }

    fn asked(&mut self, e: &PermissionAsked, tip: &Tip, timestamp: Stamp, blobs: &dyn Blobs, out: &mut Frames) {
        // Outside of a turn nobody waits for the answer, and none would be told.
        if tip.is_idle() {
            return;
        }
        if let Some(tool) = e.call.as_ref().and_then(|call| tip.tool(call)).filter(|tool| tool.is_open()) {
            self.start_tool(tool, timestamp, blobs, out);
        }
        out.push(&Packet::PermissionRequest {
            request_id: e.request.as_str(),
            operation: &e.permission,
            description: &e.title,
            auto_approve: false,
            options: e.options.iter().map(Choice::from).collect(),
            tool_call_id: e.call.as_ref().map(|call| call.as_str()),
            timestamp,
        });
    }

    fn turn_ended(&mut self, end: &TurnEnded, turn: &OpenTurn, time: Time, blobs: &dyn Blobs, out: &mut Frames) {
        let timestamp = Stamp(time);
        for tool in turn.open_tools() {
            self.cut_tool(tool, end.stop, timestamp, blobs, out);
        }
        for ask in &turn.asks {
            if let Ask::Permission(ask) = ask {
                out.push(&Packet::PermissionResponse {
                    request_id: ask.request.as_str(),
                    approved: false,
                    reason: Some(UNANSWERED),
                    option_id: None,
                    timestamp,
                });
            }
        }
        self.end_output(timestamp, out);
        self.end_step(end.stop.into(), timestamp, out);
        let usage = end.usage.or(self.usage);
        *self = State::default();
        if let Some(Ending { reason: stop_reason, summary }) = Ending::of(end.stop) {
            let usage = usage.map(|usage| Tokens { input_tokens: usage.input, output_tokens: usage.output });
            return out.push(&Packet::Done { summary, stop_reason, usage, timestamp });
        }
        let failure = turn.failure.as_ref().filter(|_| end.stop == Stop::Failed);
        let otherwise = if end.stop == Stop::Interrupted { INTERRUPTED } else { CommonError::Agent.message() };
        let message = failure.map_or(otherwise, |failure| &failure.message);
        let code = failure.and_then(|failure| failure.code).unwrap_or(UNKNOWN_CODE);
        out.push(&Packet::Error { message, code, timestamp });
    }
}

/// An answer to what nobody asked is not told.
fn answered(e: &PermissionAnswered, tip: &Tip, timestamp: Stamp, out: &mut Frames) {
    let Some(Ask::Permission(ask)) = &tip.answered else { return };
    let chosen = ask.options.iter().find(|option| Some(&option.id) == e.option.as_ref());
    out.push(&Packet::PermissionResponse {
        request_id: e.request.as_str(),
        approved: chosen.is_some_and(|option| option.kind.allows()),
        reason: e.reason.as_deref(),
        option_id: e.option.as_deref(),
        timestamp,
    });
}

fn file_write(edit: &Edit<'_>, tool_call_id: Option<&str>, tip: &Tip, timestamp: Stamp, out: &mut Frames) {
    let operation = words::operation(edit.operation);
    let path = in_workspace(&edit.path, &tip.head.workspace);
    out.push(&Packet::FileWrite { path, size_bytes: edit.size, operation, tool_call_id, timestamp });
}

/// A path as document 001 shows them: from the session's folder on, if it is in there.
pub fn in_workspace<'a>(path: &'a str, workspace: &str) -> &'a str {
    let workspace = workspace.trim_end_matches('/');
    let inside = path.strip_prefix(workspace).filter(|_| !workspace.is_empty()).and_then(|rest| rest.strip_prefix('/'));
    inside.filter(|rest| !rest.is_empty()).unwrap_or(path)
}
