//! The calls of one step, run: those that make no sense are answered, the rest is for the tools.

use std::time::Duration;

use tokio::time::timeout;
use tolka_facts::event::ToolChanged;
use tolka_facts::{CallId, Draft, NoBlobs, Tool, ToolStatus};

use super::halt::{Halt, Why};
use super::step::Written;
use crate::native::tools::{Call, Outcome, Scene, Tools};
use crate::{BUILD, Gone};

/// Tools end their calls themselves when the turn stops. A session waits little longer than this for a mind.
const GRACE: Duration = Duration::from_millis(500);
/// Nobody waits for the end of a turn whose time is up.
const LONG_GRACE: Duration = Duration::from_secs(5);
/// Of an input that is no JSON, for the words of an error.
const SHOWN: usize = 400;

/// Runs calls, and lets the tools say what was cancelled.
pub(in crate::native) async fn run(
    tools: &Tools,
    calls: Vec<Call>,
    scene: &Scene<'_>,
    halt: &mut Halt<'_>,
) -> Result<Result<Vec<Outcome>, Why>, Gone> {
    let mut run = std::pin::pin!(tools.run(calls, scene));
    match halt.or(&mut run).await {
        Ok(outcomes) => Ok(Ok(outcomes?)),
        Err(why) => {
            // They have heard of it by now. What they do not tell then is told by the session.
            let grace = match why {
                Why::Cancelled => GRACE,
                Why::TimeUp => LONG_GRACE,
            };
            let _ = timeout(grace, run).await;
            Ok(Err(why))
        }
    }
}

/// Runs what the model wrote: one outcome for each call, in their order.
pub(super) async fn run_written(
    tools: &Tools,
    written: &[Written],
    scene: &Scene<'_>,
    halt: &mut Halt<'_>,
) -> Result<Result<Vec<(CallId, Outcome)>, Why>, Gone> {
    let mut calls = Vec::with_capacity(written.len());
    let mut outcomes: Vec<(CallId, Option<Outcome>)> = Vec::with_capacity(written.len());
    for call in written {
        let refused = match (call.is_offered, call.input()) {
            (false, _) => unknown(tools, call, &scene.mode),
            (true, Err(why)) => {
                let text = call.text();
                let shown = &text[..text.floor_char_boundary(SHOWN)];
                format!("The input of this call is not usable: {why}. It began: {shown}")
            }
            (true, Ok(input)) => {
                calls.push(Call { id: call.id.clone(), name: call.name.clone(), input });
                outcomes.push((call.id.clone(), None));
                continue;
            }
        };
        outcomes.push((call.id.clone(), Some(refuse(call, refused, scene).await?)));
    }
    if !calls.is_empty() {
        let mut done = match run(tools, calls, scene, halt).await? {
            Ok(done) => done.into_iter(),
            Err(why) => return Ok(Err(why)),
        };
        for (_, outcome) in outcomes.iter_mut().filter(|(_, outcome)| outcome.is_none()) {
            *outcome = done.next();
        }
    }
    Ok(Ok(outcomes.into_iter().filter_map(|(call, outcome)| Some((call, outcome?))).collect()))
}

fn unknown(tools: &Tools, call: &Written, mode: &str) -> String {
    let name = &call.name;
    if tools.specs(BUILD).iter().any(|spec| spec.name.eq_ignore_ascii_case(name.trim())) {
        return format!("`{name}` may not be used in {mode} mode, in which nothing is changed.");
    }
    let known: Vec<String> = tools.specs(mode).into_iter().map(|spec| spec.name).collect();
    format!("There is no tool `{name}`. There are: {}.", known.join(", "))
}

/// Ends a call that nothing can run. What the model is told is what it will be told when this is read back.
async fn refuse(call: &Written, why: String, scene: &Scene<'_>) -> Result<Outcome, Gone> {
    let input = (!call.is_offered).then(|| serde_json::json!({ "tool": call.name, "error": why }).into());
    let changed = ToolChanged {
        status: Some(ToolStatus::Failed),
        input,
        error: Some(why.into()),
        ..ToolChanged::of(call.id.clone())
    };
    let mut tool = Tool { call: call.id.clone(), name: Some(call.shown_name().to_owned()), ..Tool::default() };
    tool.merge(&changed, tolka_facts::Time::now());
    scene.teller.tell(Draft::agent(changed)).await?;
    Ok(Tools::recalled(&tool, &NoBlobs))
}

/// Watches for a model that makes the same call again and again although it fails.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<(String, String)>,
    count: usize,
}

/// The third time is no accident.
const REPEATS: usize = 3;

impl Repeats {
    /// The name of a tool that failed in the very same way too often.
    pub(super) fn watch(&mut self, calls: &[Written], outcomes: &[(CallId, Outcome)]) -> Option<String> {
        for call in calls {
            let has_failed = outcomes.iter().any(|(id, outcome)| *id == call.id && outcome.is_error);
            if !has_failed {
                *self = Repeats::default();
                continue;
            }
            let is_same = self.last.as_ref().is_some_and(|(name, text)| *name == call.name && text == call.text());
            if !is_same {
                *self = Repeats { last: Some((call.name.clone(), call.text().to_owned())), count: 0 };
            }
            self.count += 1;
            if self.count == REPEATS {
                return Some(call.name.clone());
            }
        }
        None
    }
}
