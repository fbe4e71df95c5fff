//! The demands, each with the place where it stands; those of single packets are beside their shapes.

use crate::check::{Manners, Rule};

static JSON: Rule =
    Rule { name: "json", section: "001, Overview", demand: "The data of every event is one JSON object." };
static CUT: Rule =
    Rule { name: "cut", section: "001, Formatting Packets for SSE", demand: "Every event ends with a blank line." };
pub(super) static EVENT: Rule = Rule {
    name: "event",
    section: "001, Overview",
    demand: "All packets are sent as `event: message`, or all without a name, which readers take for the same.",
};
static DATA: Rule = Rule {
    name: "data",
    section: "001, Formatting Packets for SSE",
    demand: "A packet stands in one `data: ` line, behind nothing but `event:` and `id:` lines.",
};
pub(super) static TYPE: Rule = Rule {
    name: "type",
    section: "001, Overview",
    demand: "Every packet has a `type`, one of the seventeen that the document names.",
};
pub(super) static STEP_ORDER: Rule = Rule {
    name: "step-order",
    section: "001, 1. Step/Thinking Packets",
    demand: "A step is started, then has its deltas, then ends; only after its end it may be taken up again.",
};
pub(super) static TOOL_ORDER: Rule = Rule {
    name: "tool-order",
    section: "001, 2. Tool Call Packets",
    demand: "A tool call is started once, then progresses, then ends; nothing follows its end.",
};
pub(super) static TOOL_NAME: Rule = Rule {
    name: "tool-name",
    section: "001, 2. Tool Call Packets",
    demand: "All packets of a tool call have the `tool_name` of its start.",
};
pub(super) static OUTPUT_ORDER: Rule = Rule {
    name: "output-order",
    section: "001, 3. Agent Output Packets",
    demand: "Output is started, then has its deltas, then ends; segments do not nest.",
};
pub(super) static PERMISSION_ORDER: Rule = Rule {
    name: "permission-order",
    section: "001, 9. Permission Packets",
    demand: "A permission is asked for, then answered once, before the turn ends.",
};
pub(super) static AFTER_END: Rule = Rule {
    name: "after-end",
    section: "001, 6. Completion Packets",
    demand: "After `done` or `error` nothing of that turn follows.",
};
pub(super) static ONE_END: Rule = Rule {
    name: "one-end",
    section: "001, 6. Completion Packets",
    demand: "A turn ends once, with `done` or `error`; an end right after another is of a turn that said nothing if its \
             time is later, else it is a second one.",
};
pub(super) static UNENDED: Rule = Rule {
    name: "unended",
    section: "001, 6. Completion Packets",
    demand: "When a turn ends, everything that was started in it has ended.",
};
pub(super) static TRUNCATED: Rule = Rule {
    name: "truncated",
    section: "001, 6. Completion Packets",
    demand: "The last packet of a turn is `done` or `error`.",
};

pub(super) static MANNERS: Manners = Manners {
    bare: Some(&DATA),
    crlf: None,
    id: None,
    event: Some((&EVENT, &["message"])),
    data: Some(&DATA),
    blank: None,
    json: &JSON,
    cut: &CUT,
};

/// But for those of the lines and of the shapes.
pub(super) static ORDER: &[&Rule] = &[
    &TYPE,
    &STEP_ORDER,
    &TOOL_ORDER,
    &TOOL_NAME,
    &OUTPUT_ORDER,
    &PERMISSION_ORDER,
    &AFTER_END,
    &ONE_END,
    &UNENDED,
    &TRUNCATED,
];
