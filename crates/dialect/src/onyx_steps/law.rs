//! What the document demands of a stream: lines, shapes, and that everything stands between its start and its end.
//!
//! A stream may tell one turn or a whole session. Plans, modes, files, artifacts and errors may stand between turns;
//! whatever starts something begins a turn, and `done` or `error` ends it.

mod shapes;

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use crate::check::{Findings, Law, Manners, Packet, Rule};

/// How many ended calls of a turn are remembered, to tell a late packet from one without a start.
const REMEMBERED: usize = 1024;
/// More than this of one kind is never open at once in any stream that we know; what comes on top is not followed.
const FOLLOWED: usize = 65_536;

static JSON: Rule =
    Rule { name: "json", section: "001, Overview", demand: "The data of every event is one JSON object." };
static CUT: Rule =
    Rule { name: "cut", section: "001, Formatting Packets for SSE", demand: "Every event ends with a blank line." };
static EVENT: Rule = Rule {
    name: "event",
    section: "001, Overview",
    demand: "All packets are sent as `event: message`, or all without a name, which readers take for the same.",
};
static DATA: Rule = Rule {
    name: "data",
    section: "001, Formatting Packets for SSE",
    demand: "A packet stands in one `data: ` line, behind nothing but its `event:` line.",
};
static TYPE: Rule = Rule {
    name: "type",
    section: "001, Overview",
    demand: "Every packet has a `type`, one of the seventeen that the document names.",
};
static STEP_ORDER: Rule = Rule {
    name: "step-order",
    section: "001, 1. Step/Thinking Packets",
    demand: "A step is started once, then has its deltas, then ends.",
};
static TOOL_ORDER: Rule = Rule {
    name: "tool-order",
    section: "001, 2. Tool Call Packets",
    demand: "A tool call is started once, then progresses, then ends; nothing follows its end.",
};
static OUTPUT_ORDER: Rule = Rule {
    name: "output-order",
    section: "001, 3. Agent Output Packets",
    demand: "Output is started, then has its deltas, then ends; segments do not nest.",
};
static PERMISSION_ORDER: Rule = Rule {
    name: "permission-order",
    section: "001, 9. Permission Packets",
    demand: "A permission is asked for, then answered once, before the turn ends.",
};
static AFTER_END: Rule = Rule {
    name: "after-end",
    section: "001, 6. Completion Packets",
    demand: "After `done` or `error` nothing of that turn follows.",
};
static UNENDED: Rule = Rule {
    name: "unended",
    section: "001, 6. Completion Packets",
    demand: "When a turn ends, everything that was started in it has ended.",
};
static TRUNCATED: Rule = Rule {
    name: "truncated",
    section: "001, 6. Completion Packets",
    demand: "The last packet of a turn is `done` or `error`.",
};

static MANNERS: Manners = Manners {
    bare: None,
    crlf: None,
    id: None,
    event: Some((&EVENT, &["message"])),
    data: Some(&DATA),
    json: &JSON,
    cut: &CUT,
};

pub(crate) fn law() -> Box<dyn Law> {
    Box::new(Order::default())
}

#[derive(Debug, Default)]
struct Order {
    /// Whether the first event had an `event:` line, until one differed.
    is_named: Naming,
    turn: Option<Turn>,
    has_ended: bool,
}

#[derive(Debug, Default)]
enum Naming {
    #[default]
    Unknown,
    Is(bool),
    /// Told once: it is the same on every event after.
    Mixed,
}

/// What is open in a turn.
#[derive(Debug, Default)]
struct Turn {
    steps: BTreeSet<String>,
    tools: BTreeSet<String>,
    ended_tools: VecDeque<String>,
    has_output: bool,
    asks: BTreeSet<String>,
}

impl Law for Order {
    fn manners(&self) -> &'static Manners {
        &MANNERS
    }

    fn judge(&mut self, packet: &Packet<'_>, out: &mut Findings<'_>) {
        self.judge_name(packet.event.is_some(), out);
        let body = packet.body;
        let Some(kind) = body["type"].as_str() else {
            return out.add(&TYPE, "a packet without a `type`");
        };
        let Some(shape) = shapes::shape(kind) else {
            return out.add(&TYPE, format!("`{kind}` is no packet of the document"));
        };
        shapes::judge(shape, body, out);
        self.judge_order(kind, body, out);
    }

    fn end(&mut self, out: &mut Findings<'_>) {
        if let Some(turn) = &self.turn {
            let open = match turn.open().as_slice() {
                [] => String::new(),
                [one] => format!(", with {one} open"),
                [first, rest @ ..] => format!(", with {first} and {} more open", rest.len()),
            };
            out.add(&TRUNCATED, format!("the stream ends inside a turn{open}"));
        }
    }

    fn rules(&self) -> Vec<&'static Rule> {
        let order: [&Rule; 8] =
            [&TYPE, &STEP_ORDER, &TOOL_ORDER, &OUTPUT_ORDER, &PERMISSION_ORDER, &AFTER_END, &UNENDED, &TRUNCATED];
        shapes::rules().chain(order).collect()
    }
}

impl Order {
    fn judge_name(&mut self, is_named: bool, out: &mut Findings<'_>) {
        match self.is_named {
            Naming::Unknown => self.is_named = Naming::Is(is_named),
            Naming::Is(first) if first != is_named => {
                let which = if first { "has no `event: message`, as those before it do" } else { "alone has a name" };
                out.add(&EVENT, format!("the event {which}"));
                self.is_named = Naming::Mixed;
            }
            Naming::Is(_) | Naming::Mixed => {}
        }
    }

    fn judge_order(&mut self, kind: &str, body: &Value, out: &mut Findings<'_>) {
        let goes_on = matches!(
            kind,
            "step_delta"
                | "step_end"
                | "tool_progress"
                | "tool_end"
                | "output_delta"
                | "output_end"
                | "permission_response"
        );
        if goes_on && self.turn.is_none() && self.has_ended {
            return out.add(&AFTER_END, format!("a `{kind}` after the end of its turn"));
        }
        match kind {
            "plan" | "mode_update" | "file_write" | "artifact_created" => {}
            "done" | "error" => {
                for open in self.turn.take().unwrap_or_default().open() {
                    out.add(&UNENDED, format!("{open} has not ended when the turn does"));
                }
                self.has_ended = true;
            }
            _ => self.turn.get_or_insert_default().judge(kind, body, out),
        }
    }
}

impl Turn {
    fn judge(&mut self, kind: &str, body: &Value, out: &mut Findings<'_>) {
        // A missing id is a fault of the shape; nothing more can be said of the packet.
        let id = |name: &str| body[name].as_str().map(str::to_owned);
        match kind {
            "step_start" | "step_delta" | "step_end" => {
                if let Some(step) = id("step_id") {
                    self.judge_step(kind, step, out);
                }
            }
            "tool_start" | "tool_progress" | "tool_end" => {
                if let Some(call) = id("tool_call_id") {
                    self.judge_tool(kind, call, out);
                }
            }
            "permission_request" => self.asks.extend(id("request_id").filter(|_| self.asks.len() < FOLLOWED)),
            "permission_response" => {
                if let Some(request) = id("request_id").filter(|request| !self.asks.remove(request)) {
                    out.add(&PERMISSION_ORDER, format!("an answer to `{request}`, which does not wait for one"));
                }
            }
            "output_start" if std::mem::replace(&mut self.has_output, true) => {
                out.add(&OUTPUT_ORDER, "a second `output_start` before an `output_end`");
            }
            "output_end" if !std::mem::take(&mut self.has_output) => {
                out.add(&OUTPUT_ORDER, "an `output_end` without a start");
            }
            "output_delta" if !self.has_output => {
                out.add(&OUTPUT_ORDER, "an `output_delta` outside of `output_start` and `output_end`");
            }
            _ => {}
        }
    }

    fn judge_step(&mut self, kind: &str, step: String, out: &mut Findings<'_>) {
        let is_open = self.steps.contains(&step);
        match kind {
            "step_start" if is_open => out.add(&STEP_ORDER, format!("step `{step}` is started again while it is open")),
            "step_start" if self.steps.len() < FOLLOWED => drop(self.steps.insert(step)),
            "step_delta" if !is_open => out.add(&STEP_ORDER, format!("a `step_delta` of `{step}`, which is not open")),
            "step_end" if !self.steps.remove(&step) => {
                out.add(&STEP_ORDER, format!("a `step_end` of `{step}`, which is not open"));
            }
            _ => {}
        }
    }

    fn judge_tool(&mut self, kind: &str, call: String, out: &mut Findings<'_>) {
        let is_open = self.tools.contains(&call);
        if self.ended_tools.contains(&call) {
            return out.add(&TOOL_ORDER, format!("a `{kind}` of `{call}` after its `tool_end`"));
        }
        match kind {
            "tool_start" if is_open => out.add(&TOOL_ORDER, format!("call `{call}` is started again")),
            "tool_start" if self.tools.len() < FOLLOWED => drop(self.tools.insert(call)),
            "tool_progress" if !is_open => {
                out.add(&TOOL_ORDER, format!("a `tool_progress` of `{call}` before its `tool_start`"));
                // Said once: the next one of this call is no other fault.
                if self.tools.len() < FOLLOWED {
                    self.tools.insert(call);
                }
            }
            "tool_end" => {
                if !self.tools.remove(&call) {
                    out.add(&TOOL_ORDER, format!("a `tool_end` of `{call}` without a `tool_start`"));
                }
                self.ended_tools.push_back(call);
                if self.ended_tools.len() > REMEMBERED {
                    self.ended_tools.pop_front();
                }
            }
            _ => {}
        }
    }

    fn open(&self) -> Vec<String> {
        let named =
            |what: &str, ids: &BTreeSet<String>| ids.iter().map(|id| format!("{what} `{id}`")).collect::<Vec<_>>();
        let mut open = [named("step", &self.steps), named("tool call", &self.tools)].concat();
        open.extend(self.has_output.then(|| "the output".to_owned()));
        open.extend(named("permission", &self.asks));
        open
    }
}
