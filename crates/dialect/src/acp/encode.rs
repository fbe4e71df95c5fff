//! Facts to messages, as an agent would send them to its client.
//!
//! What came from an ACP agent is said again in its own words. The state is what a reader was told of the open turn:
//! its calls, and the result that the agent gave, which is the turn's last frame. It is empty when no turn is open.

mod call;
mod end;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tolka_facts::event::{
    CompactionEnded, OutputAppended, PermissionAsked, PromptQueued, PromptSteered, QuestionAsked, SessionChanged,
    Severity, ToolChanged,
};
use tolka_facts::{Ask, Blobs, CallId, Cause, Event, Fact, Json, RequestId, Tip, TurnId};

use super::ask::{FormParams, PermissionParams};
use super::mark::{AnswerMark, Meta, Outcome, RetryMark, TurnMark};
use super::passed::{Passed, Readdressed};
use super::write::{self, Content, SessionUpdate, Update};
use crate::Frames;

/// Changes with the meaning of [`State`]: an older state then starts from an idle moment instead.
const STATE_VERSION: u32 = 1;

#[derive(Debug, Default)]
pub struct Encoder {
    state: State,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct State {
    v: u32,
    /// Open calls that the reader has heard of.
    calls: BTreeSet<CallId>,
    /// An update of this call was passed on for the first of the two facts that it was read as. The agent's next fact is
    /// the second: the reader has it already.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    twin: Option<CallId>,
    /// What the agent answered to the prompt, with the reason that it gave.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    result: Option<(String, Json)>,
}

impl Default for State {
    fn default() -> Self {
        State { v: STATE_VERSION, calls: BTreeSet::new(), twin: None, result: None }
    }
}

/// One fact on its way out.
struct Telling<'a> {
    fact: &'a Fact,
    tip: &'a Tip,
    blobs: &'a dyn Blobs,
    out: &'a mut Frames,
}

impl Telling<'_> {
    fn update(&mut self, update: &Update<'_>) {
        self.pass(update);
    }

    fn pass<U: Serialize>(&mut self, update: U) {
        let meta = write::Routing::of(&self.tip.head);
        let params = SessionUpdate { session_id: self.fact.session.as_str(), update, meta };
        self.out.push(&write::notification("session/update", Some(params)));
    }

    fn answered(&mut self, request: &RequestId, mark: AnswerMark) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled<'a> {
            request_id: &'a str,
            #[serde(rename = "_meta")]
            meta: Meta<AnswerMark>,
        }
        let params = Cancelled { request_id: request.as_str(), meta: Meta { tolka: mark } };
        self.out.push(&write::notification("$/cancel_request", Some(params)));
    }
}

impl Encoder {
    pub fn resume(state: &[u8]) -> Option<Self> {
        let state: State = serde_json::from_slice(state).ok()?;
        (state.v == STATE_VERSION).then_some(Encoder { state })
    }

    /// `false` if the fact is to be told in our own words.
    fn pass(&mut self, passed: Passed<'_>, to: &mut Telling<'_>) -> bool {
        match (&to.fact.event, passed) {
            (
                Event::ToolChanged(ToolChanged { call, .. }) | Event::OutputAppended(OutputAppended { call, .. }),
                Passed::Update { update, kind, call: named },
            ) => {
                // A recording that is played again renames its calls.
                let is_same = named.as_deref() == Some(call.as_str());
                if is_same {
                    self.pass_call(call, update, &kind, to);
                }
                is_same
            }
            (_, Passed::Update { update, .. }) => {
                to.pass(update);
                true
            }
            (Event::PermissionAsked(e), Passed::Ask { params, call }) => {
                // A recording that is played again renames its calls.
                let is_same = e.call.as_ref().map(CallId::as_str) == call.as_deref();
                is_same && Encoder::pass_ask(&e.request, "session/request_permission", params, to)
            }
            (Event::QuestionAsked(e), Passed::Ask { params, call }) => {
                let is_same = e.call.as_ref().map(CallId::as_str) == call.as_deref();
                is_same && Encoder::pass_ask(&e.request, "elicitation/create", params, to)
            }
            (Event::Foreign(_), Passed::Notification { method, params }) => {
                let is_ours_to_say = method.starts_with('_') || method == "elicitation/complete";
                if is_ours_to_say {
                    let session = to.fact.session.as_str();
                    let params = params.map(|params| Readdressed { params: params.get(), session });
                    to.out.push(&write::notification(&method, params));
                }
                is_ours_to_say
            }
            (Event::StepEnded(_) | Event::Foreign(_), Passed::Result { reason }) => {
                // Perhaps moved out to a blob: it is kept until the turn ends.
                let result = to.fact.raw.clone().filter(|_| to.tip.turn.is_some());
                self.state.result = result.map(|result| (reason, result));
                true
            }
            _ => false,
        }
    }

    fn pass_ask(request: &RequestId, method: &'static str, params: &Json, to: &mut Telling<'_>) -> bool {
        if to.tip.asks().any(|ask| ask.request() == request) {
            let params = Readdressed { params: params.get(), session: to.fact.session.as_str() };
            to.out.push(&write::request(request.as_str(), method, params));
        }
        true
    }

    fn turn_started(&mut self, turn: &TurnId, to: &mut Telling<'_>) {
        self.state = State::default();
        let mark = || Meta { tolka: TurnMark { turn: turn.clone(), into: None } };
        let prompt = to.tip.taken.as_ref().map(|queued| &queued.prompt).filter(|prompt| !prompt.content.is_empty());
        let Some(prompt) = prompt else {
            // Clients show nothing of this, and whoever reads the stream knows where the turn begins.
            return to.update(&Update::SessionInfoUpdate { title: None, meta: Some(mark()) });
        };
        Encoder::words(prompt, mark, to);
    }

    /// The user's words come in the middle of the turn that took them.
    fn steered(e: &PromptSteered, to: &mut Telling<'_>) {
        if let Some(queued) = &to.tip.taken {
            let mark = || Meta { tolka: TurnMark { turn: e.turn.clone(), into: Some(e.into.clone()) } };
            Encoder::words(&queued.prompt, mark, to);
        }
    }

    fn words(prompt: &PromptQueued, mark: impl Fn() -> Meta<TurnMark>, to: &mut Telling<'_>) {
        for block in &prompt.content {
            let content = Content::of(block, to.blobs);
            to.update(&Update::UserMessageChunk { content, message_id: prompt.message.as_str(), meta: mark() });
        }
    }

    fn changed(e: &SessionChanged, to: &mut Telling<'_>) {
        if let Some(title) = &e.title {
            to.update(&Update::SessionInfoUpdate { title: Some(title), meta: None });
        }
        if let Some(mode) = &e.mode {
            to.update(&Update::CurrentModeUpdate { current_mode_id: mode });
        }
    }

    fn compacted(e: &CompactionEnded, to: &mut Telling<'_>) {
        let status = match e.error.as_deref() {
            None => "completed",
            Some("cancelled") => "cancelled",
            Some(_) => "failed",
        };
        let summary = e.summary.as_ref().map(|summary| [Content::text(summary.text(to.blobs))]);
        let error = e.error.as_deref().filter(|error| *error != status);
        to.update(&Update::CompactionUpdate { compaction_id: &e.id, status, summary, error });
    }

    /// Nobody can answer what is asked outside of a turn.
    fn asked_permission(e: &PermissionAsked, to: &mut Telling<'_>) {
        if to.tip.asks().any(|ask| *ask.request() == e.request) {
            let tool = e.call.as_ref().and_then(|call| to.tip.tool(call));
            let params = PermissionParams::of(e, tool, to.fact.session.as_str(), to.blobs);
            to.out.push(&write::request(e.request.as_str(), "session/request_permission", params));
        }
    }

    fn asked_question(e: &QuestionAsked, to: &mut Telling<'_>) {
        if to.tip.asks().any(|ask| *ask.request() == e.request) {
            let params = FormParams::of(e, to.fact.session.as_str());
            to.out.push(&write::request(e.request.as_str(), "elicitation/create", params));
        }
    }

    fn tell(&mut self, to: &mut Telling<'_>) {
        let in_turn = !to.tip.is_idle();
        let twin = self.state.twin.take_if(|_| to.fact.cause == Cause::Agent);
        // What we made up, and what a client said, has our own words.
        let raw = to.fact.raw.as_ref().filter(|_| to.fact.cause == Cause::Agent);
        let whole = raw.map(|raw| raw.whole(to.blobs));
        if let Some(passed) = whole.as_deref().and_then(Passed::of)
            && self.pass(passed, to)
        {
            return;
        }
        match &to.fact.event {
            Event::TurnStarted(e) => self.turn_started(&e.turn, to),
            Event::PromptSteered(e) if in_turn => Encoder::steered(e, to),
            Event::TurnEnded(e) => {
                if let Some(turn) = &to.tip.ended_turn {
                    self.turn_ended(e, turn, to);
                }
            }
            // Agents open a run of text with an empty piece; there is nothing to see in it.
            Event::TextAppended(e) if in_turn && !e.text.is_empty() => {
                let content = Content::text(e.text.as_str());
                to.update(&Update::AgentMessageChunk { content, message_id: e.part.as_str() });
            }
            Event::ThoughtAppended(e) if in_turn && !e.text.is_empty() => {
                let content = Content::text(e.text.as_str());
                to.update(&Update::AgentThoughtChunk { content, message_id: e.part.as_str() });
            }
            Event::ToolChanged(e) => self.tool_changed(e, twin.as_ref() == Some(&e.call), to),
            Event::OutputAppended(e) if twin.as_ref() != Some(&e.call) => self.output_appended(e, to),
            // Read out of a todo list that the reader got with its call.
            Event::PlanSet(_) if to.fact.cause == Cause::Tolka => {}
            Event::PlanSet(e) => to.update(&Update::Plan { entries: e.entries.iter().map(Into::into).collect() }),
            Event::ModeSet(e) => to.update(&Update::CurrentModeUpdate { current_mode_id: &e.mode }),
            Event::CommandsSet(e) => {
                let available_commands = e.commands.iter().map(Into::into).collect();
                to.update(&Update::AvailableCommandsUpdate { available_commands });
            }
            Event::UsageSet(e) => {
                to.update(&Update::UsageUpdate { used: e.used, size: e.size, cost: e.cost.as_ref() });
            }
            Event::Noticed(e) => to.update(&Update::Notice {
                severity: e.severity,
                title: or_notice(&e.title),
                description: e.description.as_deref(),
                meta: None,
            }),
            Event::RetryScheduled(e) if in_turn => {
                let title = format!("Trying again in {} s", e.delay_ms.div_ceil(1000));
                let (severity, description) = (Severity::Warning, Some(e.message.as_str()));
                let mark = RetryMark { attempt: e.attempt, delay_ms: e.delay_ms, code: e.code };
                to.update(&Update::Notice { severity, title: &title, description, meta: Some(Meta { tolka: mark }) });
            }
            Event::SessionChanged(e) => Encoder::changed(e, to),
            Event::CompactionStarted(e) => to.update(&Update::CompactionUpdate {
                compaction_id: &e.id,
                status: "in_progress",
                summary: None,
                error: None,
            }),
            Event::CompactionEnded(e) => Encoder::compacted(e, to),
            Event::PermissionAsked(e) => Encoder::asked_permission(e, to),
            Event::QuestionAsked(e) => Encoder::asked_question(e, to),
            Event::PermissionAnswered(e) if matches!(to.tip.answered, Some(Ask::Permission(_))) => {
                to.answered(
                    &e.request,
                    AnswerMark {
                        outcome: Some(Outcome::of(e.option.as_deref())),
                        action: None,
                        answers: None,
                        by: e.by.clone(),
                        reason: e.reason.clone(),
                    },
                );
            }
            Event::QuestionAnswered(e) if matches!(to.tip.answered, Some(Ask::Question(_))) => {
                let action = if e.answers.is_some() { "accept" } else { "decline" };
                to.answered(
                    &e.request,
                    AnswerMark {
                        outcome: None,
                        action: Some(action.to_owned()),
                        answers: e.answers.clone(),
                        by: e.by.clone(),
                        reason: None,
                    },
                );
            }
            // Inside a turn the response to its prompt tells it.
            Event::Failed(e) if !in_turn => {
                to.update(&Update::Notice {
                    severity: Severity::Error,
                    title: or_notice(&e.message),
                    description: None,
                    meta: None,
                });
            }
            // What we played again, with the method beside it. It may have been a request, but its answer was given.
            Event::Foreign(e) if e.origin == "acp" && e.what.starts_with('_') && to.fact.cause == Cause::Agent => {
                let params = to.fact.raw.as_ref().map(|raw| raw.whole(to.blobs));
                if let Some(params) = params.filter(|params| params.get().starts_with('{')) {
                    let params = Readdressed { params: params.get(), session: to.fact.session.as_str() };
                    to.out.push(&write::notification(&e.what, Some(params)));
                }
            }
            // Outside of a turn, or of what is not open.
            Event::TextAppended(_)
            | Event::ThoughtAppended(_)
            | Event::OutputAppended(_)
            | Event::PermissionAnswered(_)
            | Event::QuestionAnswered(_)
            | Event::PromptSteered(_)
            | Event::RetryScheduled(_)
            | Event::Failed(_) => {}
            // Not on this wire. Streamed input is among them: an update has the whole once it is known.
            Event::InputAppended(_)
            | Event::SessionCreated(_)
            | Event::SessionDeleted(_)
            | Event::PromptQueued(_)
            | Event::PromptDropped(_)
            | Event::StepStarted(_)
            | Event::StepEnded(_)
            | Event::FileChanged(_)
            | Event::ArtifactSaved(_)
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
            | Event::SessionChosen(_) => {}
        }
    }
}

impl crate::Encoder for Encoder {
    fn encode(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames) {
        self.tell(&mut Telling { fact, tip, blobs, out });
        if tip.is_idle() {
            self.state = State::default();
        }
    }

    fn state(&self) -> Vec<u8> {
        // Call ids are strings, so nothing in it cannot be JSON.
        serde_json::to_vec(&self.state).unwrap_or_default()
    }
}

/// A notice has a title.
fn or_notice(title: &str) -> &str {
    if title.is_empty() { "Notice" } else { title }
}
