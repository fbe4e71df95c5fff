//! What the document demands of a stream: lines, shapes, and that everything stands between its start and its end.
//!
//! A stream may tell one turn or a whole session. Plans, modes, files, artifacts and errors may stand between turns;
//! whatever starts something begins a turn, and `done` or `error` ends it.

mod rule;
mod shapes;
mod turn;

use jiff::Timestamp;
use serde_json::Value;

use crate::check::{Findings, Law, Manners, Packet, Rule};
use turn::Turn;

pub(crate) fn law() -> Box<dyn Law> {
    Box::new(Order::default())
}

#[derive(Debug, Default)]
struct Order {
    /// Whether the first event had an `event:` line, until one differed.
    is_named: Naming,
    turn: Option<Turn>,
    has_ended: bool,
    /// The end right before this packet, if that was one.
    last_end: Option<End>,
}

#[derive(Debug, Default)]
enum Naming {
    #[default]
    Unknown,
    Is(bool),
    /// Told once: it is the same on every event after.
    Mixed,
}

/// When a turn ended, if that can be read.
#[derive(Debug)]
struct End(Option<Timestamp>);

impl Law for Order {
    fn manners(&self) -> &'static Manners {
        &rule::MANNERS
    }

    fn judge(&mut self, packet: &Packet<'_>, out: &mut Findings<'_>) {
        self.judge_name(packet.event.is_some(), out);
        let body = packet.body;
        let Some(kind) = body["type"].as_str() else {
            return out.add(&rule::TYPE, "a packet without a `type`");
        };
        let Some(shape) = shapes::shape(kind) else {
            return out.add(&rule::TYPE, format!("`{kind}` is no packet of the document"));
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
            out.add(&rule::TRUNCATED, format!("the stream ends inside a turn{open}"));
        }
    }

    fn rules(&self) -> Vec<&'static Rule> {
        shapes::rules().chain(rule::ORDER.iter().copied()).collect()
    }
}

impl Order {
    fn judge_name(&mut self, is_named: bool, out: &mut Findings<'_>) {
        match self.is_named {
            Naming::Unknown => self.is_named = Naming::Is(is_named),
            Naming::Is(first) if first != is_named => {
                let which = if first { "has no `event: message`, as those before it do" } else { "alone has a name" };
                out.add(&rule::EVENT, format!("the event {which}"));
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
            return out.add(&rule::AFTER_END, format!("a `{kind}` after the end of its turn"));
        }
        let last_end = self.last_end.take();
        match kind {
            "plan" | "mode_update" | "file_write" | "artifact_created" => {}
            "done" | "error" => self.end_turn(kind, body, last_end, out),
            _ => self.turn.get_or_insert_default().judge(kind, body, out),
        }
    }

    fn end_turn(&mut self, kind: &str, body: &Value, last: Option<End>, out: &mut Findings<'_>) {
        for open in self.turn.take().unwrap_or_default().open() {
            out.add(&rule::UNENDED, format!("{open} has not ended when the turn does"));
        }
        let now = End(body["timestamp"].as_str().and_then(|time| time.parse().ok()));
        let is_later = |last: End| now.0.zip(last.0).is_some_and(|(now, last)| now > last);
        if last.is_some_and(|last| !is_later(last)) {
            out.add(&rule::ONE_END, format!("a `{kind}` right after the end of the turn, and no later"));
        }
        self.has_ended = true;
        self.last_end = Some(now);
    }
}
