//! Facts to packets.
//!
//! The state is what the reader was last told of each open call: agents repeat themselves, and a wire that
//! sends whole states would repeat much. It is empty whenever no turn is open.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};
use serde_json::Map;
use tolka_facts::event::{ModeSet, ParentKind, SessionChanged, Stop, TurnEnded};
use tolka_facts::{Blobs, CallId, Event, Fact, Json, OpenTurn, SessionId, Time, Tip, Tool, ToolStatus};

use super::Profile;
use super::content::Content;
use super::error::{CommonError, ErrorFrame, INTERRUPTED};
use super::output;
use super::stamp::Stamp;
use super::tool::{self, Body, Live};
use super::write::{self, Meta};
use crate::Frames;

/// Changes with the meaning of [`State`]: an older state then starts from an idle moment instead.
const STATE_VERSION: u32 = 2;
/// Live output is told whole each time, so the steps grow with it: the bytes sent stay within nine times
/// the output.
const LIVE_STEP: u64 = 1024;
const LIVE_SHARE: u64 = 8;

#[derive(Debug)]
pub struct Encoder {
    profile: Profile,
    state: State,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct State {
    v: u32,
    calls: BTreeMap<CallId, Told>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Told {
    /// The print of the body without live output.
    seen: u64,
    /// Bytes of live output.
    live: u64,
}

impl Default for State {
    fn default() -> Self {
        State { v: STATE_VERSION, calls: BTreeMap::new() }
    }
}

impl Encoder {
    pub fn new(profile: Profile) -> Self {
        Encoder { profile, state: State::default() }
    }

    pub fn resume(profile: Profile, state: &[u8]) -> Option<Self> {
        let state: State = serde_json::from_slice(state).ok()?;
        (state.v == STATE_VERSION).then_some(Encoder { profile, state })
    }

    fn chunk(&self, text: &str, name: &'static str, time: Time, tip: &Tip, out: &mut Frames) {
        // Some agents send empty pieces, to carry a `_meta` of their own; there is nothing to see in them.
        if text.is_empty() {
            return;
        }
        out.push(&write::Chunk {
            _meta: meta(self.profile, tip, None),
            content: Content::text(text),
            update: name,
            r#type: name,
            timestamp: Stamp(time),
        });
    }

    fn subagent_started(&self, child: &SessionId, parent: &SessionId, time: Time, out: &mut Frames) {
        out.push(&write::SubagentStarted {
            subagent_session_id: child.as_str(),
            parent_session_id: parent.as_str(),
            r#type: "subagent_started",
            timestamp: Stamp(time),
        });
    }

    /// What was told of the call, after its start was.
    fn told(&mut self, tool: &Tool, time: Time, tip: &Tip, out: &mut Frames) -> &mut Told {
        match self.state.calls.entry(tool.call.clone()) {
            Entry::Occupied(told) => told.into_mut(),
            Entry::Vacant(untold) => {
                let start = Body::start(tool, meta(self.profile, tip, Some(tool)));
                let mut seen = 0;
                out.push_with(|out| {
                    seen = start.write(out);
                    tool::finish_start(time, out);
                });
                untold.insert(Told { seen, live: 0 })
            }
        }
    }

    fn tool_changed(&mut self, tool: &Tool, time: Time, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        let is_new = !self.state.calls.contains_key(&tool.call);
        let (meta, same_meta) = (meta(self.profile, tip, Some(tool)), meta(self.profile, tip, Some(tool)));
        let body = Body::merged(tool, meta, Live::Hidden, blobs);
        let says_no_more = is_new && body.looks_like_start();
        let told = self.told(tool, time, tip, out);
        out.push_if(|out| {
            let start = out.len();
            let seen = body.write(out);
            let is_news = std::mem::replace(&mut told.seen, seen) != seen && !says_no_more;
            if is_news {
                if tool.is_open() && !tool.live_output.is_empty() {
                    out.truncate(start);
                    Body::merged(tool, same_meta, Live::Shown, blobs).write(out);
                }
                told.live = tool.live_output.len() as u64;
                tool::finish_progress(time, out);
            }
            is_news
        });
        if !tool.is_open() {
            self.state.calls.remove(&tool.call);
        }
    }

    fn output_appended(&mut self, tool: &Tool, time: Time, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        let told = self.told(tool, time, tip, out);
        let length = tool.live_output.len() as u64;
        let due = told.live == 0 || length.saturating_sub(told.live) >= LIVE_STEP.max(told.live / LIVE_SHARE);
        // An output that the agent gave itself stands before the live one.
        if length > 0 && due && output::told(tool).is_none() {
            told.live = length;
            let meta = meta(self.profile, tip, Some(tool));
            out.push_with(|out| {
                Body::merged(tool, meta, Live::Shown, blobs).write(out);
                tool::finish_progress(time, out);
            });
        }
    }

    fn turn_ended(
        &mut self,
        end: &TurnEnded,
        turn: &OpenTurn,
        fact: &Fact,
        tip: &Tip,
        blobs: &dyn Blobs,
        out: &mut Frames,
    ) {
        for open in turn.open_tools() {
            // The session's actor ends every tool; should it not have, a spinner would turn for ever.
            let mut ended = open.clone();
            ended.status = ToolStatus::Failed;
            ended.error.get_or_insert_with(|| "The turn ended before the tool did".into());
            self.tool_changed(&ended, fact.time, tip, blobs, out);
        }
        self.state = State::default();
        if let Some(stop) = write::stop_reason(end.stop) {
            let meta = end.meta.as_ref().map(|meta| meta.whole(blobs).into_owned());
            let meta = meta.filter(|meta| meta.get().trim_start().starts_with('{'));
            out.push(&write::PromptResponse {
                _meta: meta.unwrap_or_else(|| Json::of(&Map::new())),
                stop,
                r#type: "prompt_response",
                timestamp: Stamp(fact.time),
            });
        } else if let Some(failure) = turn.failure.as_ref().filter(|_| end.stop == Stop::Failed) {
            out.push(&ErrorFrame::failed(failure, fact.time, blobs));
        } else {
            let message = if end.stop == Stop::Interrupted { INTERRUPTED } else { CommonError::Agent.message() };
            out.push(&ErrorFrame::plain(message, fact.time));
        }
    }
}

fn meta<'a>(profile: Profile, tip: &'a Tip, tool: Option<&'a Tool>) -> Option<Meta<'a>> {
    if profile == Profile::Documented {
        return None;
    }
    let mut meta = Meta::default();
    if let Some(parent) = tip.head.parent.as_ref().filter(|parent| parent.kind == ParentKind::Subagent) {
        meta.session_id = Some(tip.head.id.as_str());
        meta.parent_session_id = Some(parent.session.as_str());
        meta.parent_tool_call_id = parent.call.as_ref().map(CallId::as_str);
    }
    if let Some(tool) = tool {
        meta.tool_name = tool.name.as_deref();
        meta.subagent_session_id = tool.subagent.as_ref().map(SessionId::as_str);
    }
    Some(meta).filter(|meta| !meta.is_empty())
}

impl crate::Encoder for Encoder {
    fn encode(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        let (time, timestamp) = (fact.time, Stamp(fact.time));
        match &fact.event {
            Event::TextAppended(e) => self.chunk(&e.text, "agent_message_chunk", time, tip, out),
            Event::ThoughtAppended(e) => self.chunk(&e.text, "agent_thought_chunk", time, tip, out),
            // The tip has no such call if it ended before, or if no turn is open: nothing is told of it then.
            Event::ToolChanged(e) => {
                if let Some(tool) = tip.tool(&e.call) {
                    if let Some(child) = &e.subagent {
                        self.subagent_started(child, &fact.session, time, out);
                    }
                    self.tool_changed(tool, time, tip, blobs, out);
                }
            }
            Event::OutputAppended(e) => {
                if let Some(tool) = tip.tool(&e.call) {
                    self.output_appended(tool, time, tip, blobs, out);
                }
            }
            Event::PlanSet(e) => out.push(&write::Plan {
                _meta: meta(self.profile, tip, None),
                entries: e.entries.iter().map(write::Entry::from).collect(),
                update: "plan",
                r#type: "agent_plan_update",
                timestamp,
            }),
            Event::ModeSet(ModeSet { mode }) | Event::SessionChanged(SessionChanged { mode: Some(mode), .. }) => {
                out.push(&write::Mode {
                    _meta: meta(self.profile, tip, None),
                    mode,
                    update: "current_mode_update",
                    r#type: "current_mode_update",
                    timestamp,
                });
            }
            Event::UsageSet(e) => out.push(&write::ContextUsage {
                used_tokens: e.used,
                cost: e.cost.as_ref().map(|cost| cost.amount),
                r#type: "context_usage",
                timestamp,
            }),
            // One that failed left the context as it was.
            Event::CompactionEnded(e) if e.error.is_none() => out.push(&write::Compaction {
                summary: e.summary.as_ref().map(|summary| summary.text(blobs)),
                r#type: "compaction",
                timestamp,
            }),
            Event::PermissionAsked(e) => {
                let tool = e.call.as_ref().and_then(|call| tip.tool(call));
                out.push(&write::ApprovalRequested {
                    approval_id: e.request.as_str(),
                    session_id: fact.session.as_str(),
                    permission: &e.permission,
                    title: &e.title,
                    patterns: &e.patterns,
                    tool_call: tool
                        .map(|tool| Body::merged(tool, meta(self.profile, tip, Some(tool)), Live::Hidden, blobs)),
                    options: e.options.iter().map(write::Choice::from).collect(),
                    r#type: "approval_requested",
                    timestamp,
                });
            }
            Event::SessionCreated(e) => {
                if let Some(parent) = e.parent.as_ref().filter(|parent| parent.kind == ParentKind::Subagent) {
                    self.subagent_started(&fact.session, &parent.session, time, out);
                }
            }
            Event::ArtifactSaved(e) => {
                out.push(&write::ArtifactCreated { artifact: e.into(), r#type: "artifact_created", timestamp });
            }
            Event::TurnStarted(_) => self.state = State::default(),
            Event::TurnEnded(e) => {
                if let Some(turn) = &tip.ended_turn {
                    self.turn_ended(e, turn, fact, tip, blobs, out);
                }
            }
            // Inside a turn the end of the turn tells it: a client takes an `error` for the end.
            Event::Failed(e) => {
                if tip.is_idle() {
                    out.push(&ErrorFrame::failed(e, time, blobs));
                }
            }
            // Not on this wire. Streamed input is among them: a progress has the whole input once it is known.
            Event::InputAppended(_)
            | Event::SessionChanged(_)
            | Event::SessionDeleted(_)
            | Event::PromptQueued(_)
            | Event::PromptDropped(_)
            | Event::StepStarted(_)
            | Event::StepEnded(_)
            | Event::CommandsSet(_)
            | Event::Noticed(_)
            | Event::FileChanged(_)
            | Event::PermissionAnswered(_)
            | Event::QuestionAsked(_)
            | Event::QuestionAnswered(_)
            | Event::CompactionStarted(_)
            | Event::CompactionEnded(_)
            | Event::CheckpointSaved(_)
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
