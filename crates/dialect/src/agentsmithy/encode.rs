//! Facts to events.
//!
//! The state is the segment that is open and the calls that were told. It is empty whenever no turn is open.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tolka_facts::event::{Stop, TurnEnded};
use tolka_facts::{Blobs, Block, CallId, Event, Fact, Json, OpenTurn, Queued, Tip, Tool, ToolStatus};

use super::ask;
use super::file::FileEdit;
use super::packet::{Addressed, Packet};
use super::piece;
use super::tools::Call;
use crate::Frames;
use crate::edit::Edits;

/// Changes with the meaning of [`State`]: an older state then starts from an idle moment instead.
const STATE_VERSION: u32 = 1;
pub(super) const INTERRUPTED: &str = "The server stopped during the turn.";
const UNEXPLAINED: &str = "The agent failed and did not say why.";

#[derive(Debug, Default)]
pub struct Encoder {
    state: State,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct State {
    v: u32,
    open: Option<Segment>,
    /// Attempts to summarise that something else was told in, and whose end was told for that reason.
    cut_summaries: BTreeSet<String>,
    /// Open calls that were told.
    calls: BTreeSet<CallId>,
    edits: Edits,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Segment {
    Chat,
    Reasoning,
    Summary(String),
}

impl Default for State {
    fn default() -> Self {
        State {
            v: STATE_VERSION,
            open: None,
            cut_summaries: BTreeSet::new(),
            calls: BTreeSet::new(),
            edits: Edits::default(),
        }
    }
}

/// Where events go: into frames, or into a history.
pub(super) type Out<'a> = dyn FnMut(&Packet<'_>) + 'a;

impl Encoder {
    pub fn resume(state: &[u8]) -> Option<Self> {
        let state: State = serde_json::from_slice(state).ok()?;
        (state.v == STATE_VERSION).then_some(Encoder { state })
    }

    pub(super) fn tell(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Out<'_>) {
        // Every stream of this wire is the answer to a prompt: between turns there is nobody to tell.
        if tip.turn.is_none() && tip.ended_turn.is_none() {
            return;
        }
        if tip.ended_text.is_some() && matches!(self.state.open, Some(Segment::Chat | Segment::Reasoning)) {
            self.close(out);
        }
        match &fact.event {
            Event::TurnStarted(e) => {
                self.state = State::default();
                let content = prompt_text(tip.taken.as_ref(), blobs).into();
                out(&Packet::User { content, checkpoint: e.checkpoint.as_deref() });
            }
            Event::TextAppended(e) => self.say(Segment::Chat, &e.text, out),
            Event::ThoughtAppended(e) => self.say(Segment::Reasoning, &e.text, out),
            Event::ToolChanged(e) => {
                if let Some(tool) = tip.tool(&e.call) {
                    self.tool_changed(tool, fact, tip, blobs, out);
                }
            }
            Event::OutputAppended(e) => {
                if let Some(tool) = tip.tool(&e.call) {
                    self.invoked(tool, blobs, out);
                }
            }
            Event::FileChanged(e) => {
                let tool = e.call.as_ref().and_then(|call| tip.tool(call));
                if let Some(tool) = tool.filter(|tool| tool.is_open()) {
                    self.invoked(tool, blobs, out);
                }
                for edit in self.state.edits.of(fact, tip, blobs) {
                    self.edited(&FileEdit::new(&edit, &tip.head.workspace, blobs), out);
                }
            }
            Event::CheckpointSaved(_) => {
                for edit in self.state.edits.of(fact, tip, blobs) {
                    self.edited(&FileEdit::new(&edit, &tip.head.workspace, blobs), out);
                }
            }
            Event::PermissionAsked(e) => {
                let args = Json::of(&ask::PermissionArgs::new(e, &fact.session));
                self.asked(e.request.as_str(), ask::PERMISSION, &args, out);
            }
            Event::QuestionAsked(e) => {
                let args = Json::of(&ask::QuestionArgs::new(e, &fact.session));
                self.asked(e.request.as_str(), ask::QUESTION, &args, out);
            }
            Event::CompactionStarted(e) => self.start_summary(&e.id, out),
            Event::CompactionEnded(e) => self.end_summary(&e.id, out),
            Event::TurnEnded(e) => {
                if let Some(turn) = &tip.ended_turn {
                    self.turn_ended(e, turn, out);
                }
            }
            // Not on this wire. What fails inside a turn is told by the turn's end: a client takes `error` for it.
            Event::SessionCreated(_)
            | Event::SessionChanged(_)
            | Event::SessionDeleted(_)
            | Event::PromptQueued(_)
            | Event::PromptDropped(_)
            | Event::StepStarted(_)
            | Event::StepEnded(_)
            | Event::InputAppended(_)
            | Event::PlanSet(_)
            | Event::ModeSet(_)
            | Event::CommandsSet(_)
            | Event::UsageSet(_)
            | Event::Noticed(_)
            | Event::ArtifactSaved(_)
            | Event::PermissionAnswered(_)
            | Event::QuestionAnswered(_)
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
            | Event::Failed(_)
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

    /// Ends the open segment: nothing may stand in one but its own pieces.
    fn close(&mut self, out: &mut Out<'_>) {
        match self.state.open.take() {
            Some(Segment::Chat) => out(&Packet::ChatEnd),
            Some(Segment::Reasoning) => out(&Packet::ReasoningEnd),
            Some(Segment::Summary(id)) => {
                self.state.cut_summaries.insert(id);
                out(&Packet::SummaryEnd);
            }
            None => {}
        }
    }

    fn say(&mut self, segment: Segment, text: &str, out: &mut Out<'_>) {
        if text.is_empty() {
            return;
        }
        let (start, piece) = match segment {
            Segment::Reasoning => (Packet::ReasoningStart, Packet::Reasoning { content: text }),
            Segment::Chat | Segment::Summary(_) => (Packet::ChatStart, Packet::Chat { content: text }),
        };
        if self.state.open.as_ref() != Some(&segment) {
            self.close(out);
            out(&start);
            self.state.open = Some(segment);
        }
        out(&piece);
    }

    /// Tells the call, unless it was.
    fn invoked(&mut self, tool: &Tool, blobs: &dyn Blobs, out: &mut Out<'_>) {
        if !self.state.calls.contains(&tool.call) {
            self.close(out);
            let Call { name, args } = Call::of(tool, blobs);
            out(&Packet::ToolCall { id: tool.call.as_str(), name: &name, args: &args });
            self.state.calls.insert(tool.call.clone());
        }
    }

    fn tool_changed(&mut self, tool: &Tool, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Out<'_>) {
        // A call that waits for its input has nothing to invoke yet.
        let is_told = self.state.calls.contains(&tool.call);
        if !is_told && (tool.status != ToolStatus::Pending || Call::of(tool, blobs).is_ready()) {
            self.invoked(tool, blobs, out);
        }
        for edit in piece::whole(tool, self.state.edits.of(fact, tip, blobs), blobs) {
            self.edited(&FileEdit::new(&edit, &tip.head.workspace, blobs), out);
        }
        if !tool.is_open() {
            self.state.calls.remove(&tool.call);
        }
    }

    fn edited(&mut self, edit: &FileEdit, out: &mut Out<'_>) {
        self.close(out);
        out(&Packet::FileEdit { file: &edit.file, diff: edit.diff.as_deref() });
    }

    fn asked(&mut self, id: &str, name: &str, args: &Json, out: &mut Out<'_>) {
        self.close(out);
        out(&Packet::ToolCall { id, name, args });
    }

    fn start_summary(&mut self, id: &str, out: &mut Out<'_>) {
        let segment = Segment::Summary(id.to_owned());
        if self.state.open.as_ref() != Some(&segment) {
            self.close(out);
            out(&Packet::SummaryStart);
            self.state.open = Some(segment);
            self.state.cut_summaries.remove(id);
        }
    }

    fn end_summary(&mut self, id: &str, out: &mut Out<'_>) {
        if self.state.cut_summaries.remove(id) {
            return;
        }
        self.start_summary(id, out);
        self.close(out);
        self.state.cut_summaries.remove(id);
    }

    fn turn_ended(&mut self, end: &TurnEnded, turn: &OpenTurn, out: &mut Out<'_>) {
        self.close(out);
        self.state = State::default();
        let words = match end.stop {
            Stop::Failed => Some(turn.failure.as_ref().map_or(UNEXPLAINED, |failure| &failure.message)),
            Stop::Interrupted => Some(INTERRUPTED),
            Stop::EndTurn | Stop::MaxTokens | Stop::MaxTurnRequests | Stop::Refusal | Stop::Cancelled => None,
        };
        if let Some(error) = words {
            out(&Packet::Error { error });
        }
        out(&Packet::Done { done: true });
    }
}

impl crate::Encoder for Encoder {
    fn encode(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        let dialog_id = Some(fact.session.as_str());
        self.tell(fact, tip, blobs, &mut |packet| out.push(&Addressed { packet, dialog_id }));
    }

    fn state(&self) -> Vec<u8> {
        // Call ids are strings, so the map has string keys.
        serde_json::to_vec(&self.state).unwrap_or_default()
    }
}

pub(super) fn prompt_text(queued: Option<&Queued>, blobs: &dyn Blobs) -> String {
    let blocks = queued.iter().flat_map(|queued| &queued.prompt.content);
    let texts: Vec<Cow<'_, str>> = blocks
        .filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.text(blobs)),
            Block::Image { .. } | Block::Audio { .. } | Block::Link { .. } | Block::Resource { .. } => None,
        })
        .collect();
    texts.join("\n")
}
