//! What was started in a turn, and what of it is open.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rule;
use crate::check::Findings;
use crate::recent::Recent;

/// How many steps and how many calls of a turn are followed; of older ones nothing more is said.
const FOLLOWED: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Turn {
    steps: Recent<Stage>,
    calls: Recent<Call>,
    has_output: bool,
    asks: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Ended,
}

#[derive(Debug)]
struct Call {
    stage: Stage,
    /// As it was first told.
    name: Value,
}

impl Default for Turn {
    fn default() -> Self {
        let (steps, calls) = (Recent::of(FOLLOWED), Recent::of(FOLLOWED));
        Turn { steps, calls, has_output: false, asks: BTreeSet::new() }
    }
}

impl Turn {
    pub(super) fn judge(&mut self, kind: &str, body: &Value, out: &mut Findings<'_>) {
        // A missing id is a fault of the shape; nothing more can be said of the packet.
        let id = |name: &str| body[name].as_str();
        match kind {
            "step_start" | "step_delta" | "step_end" => {
                if let Some(step) = id("step_id") {
                    self.judge_step(kind, step, out);
                }
            }
            "tool_start" | "tool_progress" | "tool_end" => {
                if let Some(call) = id("tool_call_id") {
                    self.judge_call(kind, call, &body["tool_name"], out);
                }
            }
            "permission_request" => {
                self.asks.extend(id("request_id").filter(|_| self.asks.len() < FOLLOWED).map(str::to_owned));
            }
            "permission_response" => {
                let may_be_asked = self.asks.len() >= FOLLOWED;
                if let Some(request) = id("request_id").filter(|request| !self.asks.remove(*request) && !may_be_asked) {
                    out.add(&rule::PERMISSION_ORDER, format!("an answer to `{request}`, which does not wait for one"));
                }
            }
            "output_start" if std::mem::replace(&mut self.has_output, true) => {
                out.add(&rule::OUTPUT_ORDER, "a second `output_start` before an `output_end`");
            }
            "output_end" if !std::mem::take(&mut self.has_output) => {
                out.add(&rule::OUTPUT_ORDER, "an `output_end` without a start");
            }
            "output_delta" if !self.has_output => {
                out.add(&rule::OUTPUT_ORDER, "an `output_delta` outside of `output_start` and `output_end`");
            }
            _ => {}
        }
    }

    fn judge_step(&mut self, kind: &str, step: &str, out: &mut Findings<'_>) {
        let stage = self.steps.get(step).copied();
        let problem = match (kind, stage) {
            // A thought that text interrupted is taken up again under its id.
            ("step_start", None | Some(Stage::Ended)) => None,
            ("step_start", Some(Stage::Open)) => Some(format!("step `{step}` is started again while it is open")),
            (_, Some(Stage::Open)) => None,
            (_, None) if self.steps.is_full() => None,
            (_, None | Some(Stage::Ended)) => Some(format!("a `{kind}` of `{step}`, which is not open")),
        };
        problem.into_iter().for_each(|problem| out.add(&rule::STEP_ORDER, problem));
        match kind {
            "step_start" => self.steps.insert(step, Stage::Open),
            "step_end" if stage.is_some() => self.steps.insert(step, Stage::Ended),
            _ => {}
        }
    }

    fn judge_call(&mut self, kind: &str, id: &str, name: &Value, out: &mut Findings<'_>) {
        let stage = if kind == "tool_end" { Stage::Ended } else { Stage::Open };
        let is_full = self.calls.is_full();
        let Some(call) = self.calls.get_mut(id) else {
            if kind != "tool_start" && !is_full {
                out.add(&rule::TOOL_ORDER, format!("a `{kind}` of `{id}` without a `tool_start`"));
            }
            // Said once: the next packet of this call is no other fault.
            return self.calls.insert(id, Call { stage, name: name.clone() });
        };
        if call.stage == Stage::Ended {
            return out.add(&rule::TOOL_ORDER, format!("a `{kind}` of `{id}` after its `tool_end`"));
        }
        if kind == "tool_start" {
            out.add(&rule::TOOL_ORDER, format!("call `{id}` is started again"));
        }
        // A name that is no text is a fault of the shape.
        if name.is_string() && call.name.is_string() && call.name != *name {
            out.add(&rule::TOOL_NAME, format!("call `{id}` is of {name}, and was of {}", call.name));
        }
        call.stage = stage;
    }

    /// What has not ended, each in words.
    pub(super) fn open(&self) -> Vec<String> {
        let steps = self.steps.iter().filter(|(_, stage)| **stage == Stage::Open);
        let calls = self.calls.iter().filter(|(_, call)| call.stage == Stage::Open);
        let mut open: Vec<_> = steps.map(|(id, _)| format!("step `{id}`")).collect();
        open.extend(calls.map(|(id, _)| format!("tool call `{id}`")));
        open.extend(self.has_output.then(|| "the output".to_owned()));
        open.extend(self.asks.iter().map(|id| format!("permission `{id}`")));
        open
    }
}
