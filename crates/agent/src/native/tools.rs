//! The tools: what a model can call for, and how each call is told and done.
//!
//! A call is told as running, with its input, before it has any effect, and its end is told last: what it changed stands
//! between the two. What the model is sent of a call is made from what was told of it and from nothing else, so that a
//! session which is taken up again later goes on from the same words.

mod act;
mod artifact;
mod ask;
mod bash;
mod change;
mod delete;
mod edit;
mod field;
mod glob;
mod grep;
mod hidden;
mod list;
mod mcp;
mod memory;
mod name;
mod outcome;
mod patch;
mod processes;
mod question;
mod read;
mod spec;
mod task;
mod todo;
mod webfetch;
mod websearch;
mod write;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use futures_util::stream::{FuturesOrdered, FuturesUnordered};
use tokio::time::timeout;
use tolka_facts::{Blobs, CallId, Draft, Json, NoBlobs, SessionId, Time, Tool};

use super::model::{Input, ToolSpec};
use super::settings::Settings;
use super::spent::Bills;
use crate::{Cancel, Gone, PLAN, Teller};
use act::{Act, End};
use field::Fields;
use mcp::Acquaintance;
pub(super) use mcp::{PROMPT, RESOURCE};
use memory::Memory;
use name::Name;
pub use name::{MCP, permissions};
pub(super) use task::Home;

/// Calls side by side that have all ended by then are told in one order, whichever was faster.
const QUICK: Duration = Duration::from_millis(500);

/// A call that the model has finished writing. That it began (`pending`, and its input as it came) is told already.
#[derive(Debug, Clone)]
pub struct Call {
    pub id: CallId,
    pub name: String,
    pub input: Json,
}

/// What goes back to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub content: Vec<Input>,
    pub is_error: bool,
    /// The person said no, and nothing more: the turn ends here.
    pub ends_turn: bool,
}

/// The tools of one session.
#[derive(Debug)]
pub struct Tools {
    settings: Arc<Settings>,
    session: SessionId,
    workspace: PathBuf,
    /// Shared with the blocking parts of a call.
    memory: Arc<Memory>,
    /// What is known here of MCP servers.
    servers: Acquaintance,
    /// `None`: no turn has begun yet.
    home: Option<Home>,
}

/// What a turn is to its tools.
#[derive(Debug, Clone)]
pub struct Scene<'a> {
    pub teller: &'a Teller,
    /// `plan`: nothing may be changed.
    pub mode: String,
    /// The workspace as it was before this turn.
    pub checkpoint: Option<String>,
    /// When the turn began: what was changed later is not in the checkpoint.
    pub since: SystemTime,
    /// Stops the calls: the turn was cancelled, or has had its time.
    pub cancel: Cancel,
}

impl Tools {
    pub fn new(settings: Arc<Settings>, session: SessionId, workspace: PathBuf) -> Self {
        Tools { settings, session, workspace, memory: Arc::default(), servers: Acquaintance::default(), home: None }
    }

    /// What a turn that begins knows of subagents.
    pub(super) fn is_subagents(&self) -> bool {
        self.home.as_ref().is_some_and(|home| home.is_child)
    }

    /// Of the subagents of the turn that runs.
    pub(super) fn bills(&self) -> Option<&Bills> {
        self.home.as_ref().map(|home| &home.bills)
    }

    pub(super) fn at_home(&mut self, home: Home) {
        self.home = Some(home);
    }

    /// What the model is offered in this mode.
    pub fn specs(&self, mode: &str) -> Vec<ToolSpec> {
        let home = self.home.as_ref();
        let can_search = self.settings.web.search.is_some();
        let has_family = home.is_some_and(|home| home.family.is_some());
        let is_allowed = |name: &str| home.is_none_or(|home| home.allowed.has(name));
        let is_offered = |name: &&Name| {
            let is_there = match name {
                Name::WebSearch => can_search,
                Name::Task => has_family,
                _ => true,
            };
            is_allowed(name.as_str()) && is_there && (mode != PLAN || !name.changes_files())
        };
        let ours = Name::ALL.iter().filter(is_offered).map(|name| name.spec());
        let foreign = self.foreign_specs(mode).into_iter().filter(|spec| is_allowed(&spec.name));
        let mut specs: Vec<ToolSpec> = ours.chain(foreign).collect();
        let task = specs.iter_mut().find(|spec| spec.name == Name::Task.as_str());
        if let (Some(task), Some(home)) = (task, home) {
            task.description.push_str(&home.listed());
        }
        specs
    }

    /// Runs the calls of one step: side by side where that is safe, else one after the other. Tells everything from
    /// `running` to the end of each, in the order of the calls. On cancel each call that has not ended is told as cancelled.
    pub async fn run(&self, calls: Vec<Call>, scene: &Scene<'_>) -> Result<Vec<Outcome>, Gone> {
        let mut outcomes = Vec::with_capacity(calls.len());
        let mut rest = calls.as_slice();
        while let Some(first) = rest.first() {
            if outcomes.iter().any(|outcome: &Outcome| outcome.ends_turn) {
                // Who said no to one has not said yes to what was to follow it.
                outcomes.push(self.end(first, End::Skipped, scene).await?);
                rest = &rest[1..];
                continue;
            }
            let tasks = rest.iter().take_while(|call| Name::of(&call.name) == Some(Name::Task)).count();
            if tasks > 1 {
                let (now, later) = rest.split_at(tasks);
                rest = later;
                outcomes.extend(self.run_tasks(now, scene).await?);
                continue;
            }
            let quiet = rest.iter().take_while(|call| self.is_quiet(call)).count();
            let (now, later) = rest.split_at(quiet.max(1));
            rest = later;
            if quiet == 0 {
                outcomes.push(self.end(first, self.act(first, scene).run().await?, scene).await?);
                continue;
            }
            // They begin in their order and the line to the session is first come, first served: so they are told in
            // their order too. The ends of quick ones follow all the beginnings, and none waits for a slow one after it.
            let acts: Vec<_> = now.iter().map(|call| self.act(call, scene)).collect();
            let mut ends: FuturesOrdered<_> = acts.iter().map(Act::run).collect();
            let mut quick = VecDeque::with_capacity(now.len());
            let all = async {
                while let Some(end) = ends.next().await {
                    quick.push_back(end);
                }
            };
            // What had ended by then is kept, and the rest goes on.
            let _ = timeout(QUICK, all).await;
            for call in now {
                let Some(end) = (if quick.is_empty() { ends.next().await } else { quick.pop_front() }) else { break };
                outcomes.push(self.end(call, end?, scene).await?);
            }
        }
        Ok(outcomes)
    }

    /// Subagents work side by side, as many as may. Each can take long, so the end of each is told when it comes.
    async fn run_tasks(&self, calls: &[Call], scene: &Scene<'_>) -> Result<Vec<Outcome>, Gone> {
        let acts: Vec<_> = calls.iter().map(|call| self.act(call, scene)).collect();
        let mut waiting = acts.iter().enumerate().map(|(at, act)| async move { (at, act.run().await) });
        let at_once = self.home.as_ref().map_or(1, |home| home.at_once.max(1));
        let mut ends: FuturesUnordered<_> = waiting.by_ref().take(at_once).collect();
        let mut outcomes: Vec<Option<Outcome>> = calls.iter().map(|_| None).collect();
        let mut is_rejected = false;
        while let Some((at, end)) = ends.next().await {
            let outcome = self.end(&calls[at], end?, scene).await?;
            is_rejected |= outcome.ends_turn;
            outcomes[at] = Some(outcome);
            if !is_rejected {
                ends.extend(waiting.next());
            }
        }
        for (call, outcome) in calls.iter().zip(&mut outcomes) {
            if outcome.is_none() {
                // Who said no to one has not said yes to what was to follow it.
                *outcome = Some(self.end(call, End::Skipped, scene).await?);
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// What an ended call gave back, as the model is sent it: the same from the facts as it was when the call ended.
    pub fn recalled(tool: &Tool, blobs: &dyn Blobs) -> Outcome {
        outcome::of(tool, blobs)
    }

    fn act<'a>(&'a self, call: &'a Call, scene: &'a Scene<'a>) -> Act<'a> {
        Act { tools: self, scene, call }
    }

    /// Whether it only looks, and need not ask for that: then it may run beside others of its kind.
    fn is_quiet(&self, call: &Call) -> bool {
        let Some(name) = Name::of(&call.name) else { return false };
        match name {
            Name::Read => read::is_free(self, call),
            Name::Glob | Name::Grep | Name::List => self.is_free_search(name, call),
            Name::WebFetch => webfetch::is_free(self, call),
            Name::Bash
            | Name::Write
            | Name::Edit
            | Name::ApplyPatch
            | Name::Delete
            | Name::TodoWrite
            | Name::Question
            | Name::Artifact
            | Name::WebSearch
            | Name::Task
            | Name::Processes => false,
        }
    }

    fn is_free_search(&self, name: Name, call: &Call) -> bool {
        let subject = Fields::of(&call.input).and_then(|fields| self.folder(&fields));
        // What cannot be read fails by itself, and has no effect either.
        subject.map_or(true, |subject| ask::is_free(self, name.permission(), &subject))
    }

    async fn end(&self, call: &Call, end: End, scene: &Scene<'_>) -> Result<Outcome, Gone> {
        let change = end.told(call, scene);
        let mut tool = Tool { call: call.id.clone(), name: Some(call.name.clone()), ..Tool::default() };
        tool.merge(&change, Time::now());
        scene.teller.tell(Draft::agent(change)).await?;
        Ok(Tools::recalled(&tool, &NoBlobs))
    }
}
