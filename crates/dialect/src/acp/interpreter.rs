use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use serde::Deserialize;
use tolka_facts::event::{
    CompactionEnded, CompactionStarted, Failed, Finish, Foreign, OutputAppended, PermissionAsked, PlanEntry, PlanSet,
    StepEnded, StepStarted, Stop, TextAppended, ThoughtAppended, ToolChanged, Usage,
};
use tolka_facts::{CallId, Draft, Event, Ids, Json, MessageId, PartId, Time, ToolStatus, Voice};

use super::plan::{self, Plan, Todos};
use super::tool::{Call, Sight};
use super::wire::{self, Chunk, Compaction, CompactionChunk, Head, PermissionRequest, PromptResult, ToolFields};
use super::{block, plain};

/// Turns what an agent says in one session into drafts of facts.
///
/// Agents tell no steps (calls of their model), so they are made here: one before the first content of
/// a turn, and another when text or thought follows a finished tool, for only the model speaks.
#[derive(Debug)]
pub struct Interpreter {
    ids: Arc<Ids>,
    step: Option<MessageId>,
    part: Option<OpenPart>,
    /// A tool has finished since the step began, so the next words are of another call of the model.
    tool_finished: bool,
    /// The calls of this turn.
    calls: HashMap<CallId, Call>,
    plan: Vec<PlanEntry>,
    /// The agent tells plans itself, so its todo lists are not read for one.
    tells_plans: bool,
    /// Summaries that are told in chunks, by compaction.
    summaries: HashMap<String, String>,
    /// See [`Interpreter::keep_parts`].
    keeps_parts: bool,
}

#[derive(Debug)]
struct OpenPart {
    voice: Voice,
    part: PartId,
    /// The agent's id. Another one is another message; the same one proves nothing, since some agents
    /// have one id for all.
    message: Option<String>,
}

impl Interpreter {
    pub fn new(ids: Arc<Ids>) -> Self {
        Interpreter {
            ids,
            step: None,
            part: None,
            tool_finished: false,
            calls: HashMap::new(),
            plan: Vec::new(),
            tells_plans: false,
            summaries: HashMap::new(),
            keeps_parts: false,
        }
    }

    /// What is read is our own telling, in which the id of a message is that of a part. Agents' own ids may look the
    /// same and say less.
    pub(super) fn keep_parts(&mut self) {
        self.keeps_parts = true;
    }

    /// Reads the `update` of a `session/update`.
    pub fn update(&mut self, update: &Json, now: Time, out: &mut Vec<Draft>) {
        let what = update.read::<Head>().map(|head| head.session_update);
        let what = what.as_deref().unwrap_or("session/update");
        if self.read(what, update, now, out).is_none() {
            out.push(Interpreter::foreign(what, update));
        }
    }

    /// A message that has no reading.
    pub fn foreign(what: &str, raw: &Json) -> Draft {
        Draft::agent(Foreign { origin: "acp".into(), what: what.into() }).with_raw(raw.clone())
    }

    /// Reads the parameters of a `session/request_permission`. Before the question, `out` gets what the
    /// request tells of its call that is news; some agents tell of a call nowhere else. The question's
    /// draft must carry `params` as its raw. `None`: nobody can answer this; cancel it.
    pub fn permission(&mut self, params: &Json, now: Time, out: &mut Vec<Draft>) -> Option<PermissionAsked> {
        let request = params.read::<PermissionRequest>();
        let options: Vec<_> = request.iter().flat_map(|request| &request.options).filter_map(wire::option).collect();
        let Some(PermissionRequest { tool_call, .. }) = request.filter(|_| !options.is_empty()) else {
            out.push(Interpreter::foreign("session/request_permission", params));
            return None;
        };
        let input = tool_call.raw_input.clone();
        let id = CallId::from(tool_call.tool_call_id.as_str());
        let shown = tool_call.title.clone();
        self.tool(tool_call, Sight::Permission, None, now, out);
        let call = self.calls.entry(id.clone()).or_default();
        let permission = call.permission();
        let command = input.as_ref().and_then(Json::read::<CommandInput>).map(|input| vec![input.command]);
        Some(PermissionAsked {
            request: self.ids.permission(now),
            call: Some(id),
            title: shown.or_else(|| call.title.clone()).unwrap_or_else(|| permission.clone()),
            permission,
            patterns: command.unwrap_or_else(|| call.locations.iter().map(|at| at.path.clone()).collect()),
            metadata: input,
            options,
        })
    }

    /// Ends a call that a person refused, for an agent that does not say so itself.
    pub fn refuse(&mut self, call: &CallId, why: &str, out: &mut Vec<Draft>) {
        self.tool_finished = true;
        self.calls.entry(call.clone()).or_default().has_ended = true;
        out.push(Draft::agent(ToolChanged {
            status: Some(ToolStatus::Failed),
            error: Some(why.into()),
            ..ToolChanged::of(call.clone())
        }));
    }

    /// Reads the result of a `session/prompt` and closes the open step. The usage stands in the step as
    /// well as in what is returned: the fold counts a turn's only when the turn had no steps.
    pub fn ended(&mut self, result: &Json, out: &mut Vec<Draft>) -> (Stop, Option<Usage>, Option<Json>) {
        let read: PromptResult = result.read().unwrap_or_default();
        let stop = wire::stop(read.stop_reason.as_deref().unwrap_or_default());
        let usage = read.usage.map(Usage::from);
        let finish = stop.into();
        match self.step.take() {
            // This draft reads the message, though no agent speaks of steps.
            Some(message) => {
                out.push(
                    Draft::agent(StepEnded { message, finish, usage, cost: None, kept: None }).with_raw(result.clone()),
                );
            }
            None => out.push(Interpreter::foreign("session/prompt", result)),
        }
        self.forget_turn();
        (stop, usage, read.meta)
    }

    /// Reads the error object of a failed request.
    pub fn failed(&self, error: &Json) -> Failed {
        plain::failure(error)
    }

    /// Closes the open step of a turn that was cut.
    pub fn close(&mut self, finish: Finish, out: &mut Vec<Draft>) {
        if let Some(message) = self.step.take() {
            out.push(Draft::tolka(StepEnded { message, finish, usage: None, cost: None, kept: None }));
        }
        self.forget_turn();
    }

    fn forget_turn(&mut self) {
        self.part = None;
        self.tool_finished = false;
        self.calls.clear();
    }

    /// `None`, and nothing said, when the message lacks what makes it one.
    fn read(&mut self, what: &str, update: &Json, now: Time, out: &mut Vec<Draft>) -> Option<()> {
        let event: Event = match what {
            "agent_message_chunk" => return self.chunk(Voice::Text, update, now, out),
            "agent_thought_chunk" => return self.chunk(Voice::Thought, update, now, out),
            "tool_call" => return self.tool(update.read()?, Sight::Start, Some(update), now, out),
            "tool_call_update" => return self.tool(update.read()?, Sight::Update, Some(update), now, out),
            "plan" => {
                self.plan = plan::entries(&update.read::<Plan>()?.entries);
                self.tells_plans = true;
                // Claude tells its todo tool as a plan alone: what it says next is a paragraph of its own.
                self.part = None;
                PlanSet { entries: self.plan.clone() }.into()
            }
            "compaction_update" => self.compaction(update.read()?)?,
            "compaction_summary_chunk" => {
                let CompactionChunk { compaction_id, content } = update.read()?;
                self.summaries.entry(compaction_id).or_default().push_str(&block::text(&content)?);
                // There is no fact for part of a summary: the whole is told at the end.
                return None;
            }
            what => plain::event(what, update)?,
        };
        out.push(Draft::agent(event).with_raw(update.clone()));
        Some(())
    }

    fn chunk(&mut self, voice: Voice, update: &Json, now: Time, out: &mut Vec<Draft>) -> Option<()> {
        let Chunk { content, message_id } = update.read()?;
        let text = block::text(&content)?;
        if text.is_empty() {
            // Claude opens each run of text with an empty one.
            self.part = None;
            return None;
        }
        if self.tool_finished {
            self.end_step(Finish::ToolCalls, out);
        }
        self.start_step(now, out);
        let same = self.part.take_if(|open| open.voice == voice && open.message == message_id);
        let open = same.unwrap_or_else(|| {
            let named = message_id.as_deref().filter(|id| self.keeps_parts && id.starts_with("prt_"));
            let ours = named.map(PartId::from);
            OpenPart { voice, part: ours.unwrap_or_else(|| self.ids.part(now)), message: message_id }
        });
        let part = open.part.clone();
        self.part = Some(open);
        let event: Event = match voice {
            Voice::Text => TextAppended { part, text }.into(),
            Voice::Thought => ThoughtAppended { part, text }.into(),
        };
        out.push(Draft::agent(event).with_raw(update.clone()));
        Some(())
    }

    fn tool(
        &mut self,
        fields: ToolFields,
        sight: Sight,
        raw: Option<&Json>,
        now: Time,
        out: &mut Vec<Draft>,
    ) -> Option<()> {
        let id = CallId::from(fields.tool_call_id.as_str());
        let is_new = !self.calls.contains_key(&id);
        if is_new {
            self.start_step(now, out);
            self.part = None;
        }
        let call = match self.calls.entry(id.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Call::default()),
        };
        let change = call.read(fields, sight, is_new);
        let todos = change.changed.as_ref().and_then(|changed| changed.input.as_ref()?.read::<Todos>());
        let is_last = change.changed.as_ref().and_then(|changed| changed.status).is_some_and(ToolStatus::is_terminal);
        // A late word about a call that ended before is no reason for another step.
        self.tool_finished |= is_last && !std::mem::replace(&mut call.has_ended, true);
        let output = change.output.map(|text| Draft::agent(OutputAppended { call: id, text }));
        let changed = change.changed.map(Draft::agent);
        // Nothing may follow a terminal state, so the last output goes before it.
        let drafts = if is_last { [output, changed] } else { [changed, output] };
        let mut raw = raw.cloned();
        out.extend(drafts.into_iter().flatten().map(|draft| Draft { raw: raw.take(), ..draft }));
        if let Some(Todos { todos }) = todos.filter(|_| !self.tells_plans) {
            self.derive_plan(&todos, out);
        }
        Some(())
    }

    fn derive_plan(&mut self, todos: &[Json], out: &mut Vec<Draft>) {
        let entries = plan::entries(todos);
        if entries != self.plan {
            self.plan.clone_from(&entries);
            out.push(Draft::tolka(PlanSet { entries }));
        }
    }

    /// `None` for a state that is neither a beginning nor an end.
    fn compaction(&mut self, update: Compaction) -> Option<Event> {
        let Compaction { compaction_id: id, status, summary, error } = update;
        match status.as_str() {
            "in_progress" if !self.summaries.contains_key(&id) => {
                self.summaries.insert(id.clone(), String::new());
                // The protocol does not say who asked for it; what a person asks for is rare.
                Some(CompactionStarted { id, automatic: true }.into())
            }
            "completed" | "failed" | "cancelled" => {
                let chunks = self.summaries.remove(&id).unwrap_or_default();
                let whole = summary.map(|blocks| blocks.iter().filter_map(block::text).collect::<String>());
                let summary = whole.unwrap_or(chunks);
                let error = error.or_else(|| (status != "completed").then_some(status));
                Some(
                    CompactionEnded {
                        id,
                        summary: (!summary.is_empty()).then(|| summary.into()),
                        error,
                        keeps: None,
                        usage: None,
                        cost: None,
                    }
                    .into(),
                )
            }
            _ => None,
        }
    }

    fn start_step(&mut self, now: Time, out: &mut Vec<Draft>) {
        if self.step.is_none() {
            let message = self.ids.message(now);
            self.step = Some(message.clone());
            self.part = None;
            self.tool_finished = false;
            out.push(Draft::tolka(StepStarted { message, model: None }));
        }
    }

    fn end_step(&mut self, finish: Finish, out: &mut Vec<Draft>) {
        if let Some(message) = self.step.take() {
            out.push(Draft::tolka(StepEnded { message, finish, usage: None, cost: None, kept: None }));
        }
    }
}

#[derive(Deserialize)]
struct CommandInput {
    command: String,
}

#[cfg(test)]
mod tests;
