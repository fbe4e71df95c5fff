//! Which event may follow which. After a finding it goes on as if the stream had been right, so that one fault is one
//! finding.

use serde_json::Value;

use super::rules;
use crate::check::Findings;

const SEGMENTS: [&str; 3] = ["chat", "reasoning", "summary"];

#[derive(Debug, Default)]
pub(super) struct Order {
    phase: Phase,
    /// The turn began with something else, and it was said; its `user` may follow or not.
    owes_user: bool,
    dialog: Option<String>,
    /// An event of another dialog was told of; those after it may be as well.
    told_of_dialog: bool,
    chat: Segment,
    reasoning: Segment,
    summary: Segment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Fresh,
    Open,
    /// An `error` was the last event.
    Failed,
    Done,
    /// Something came after `done`, and it was said.
    PastDone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Segment {
    #[default]
    Closed,
    Open,
    /// A piece came without its start, and it was said; an end may follow or not.
    Implied,
    /// Something else was told while it was open, and it was said; pieces and its end may follow or not.
    Overdue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Start,
    Piece,
    End,
}

impl Order {
    pub(super) fn judge(&mut self, name: &str, packet: &Value, out: &mut Findings<'_>) {
        if !self.advance(name, out) {
            return;
        }
        self.one_dialog(name, packet, out);
        let (kind, mark) = match name.rsplit_once('_') {
            Some((kind, "start")) => (kind, Mark::Start),
            Some((kind, "end")) => (kind, Mark::End),
            _ => (name, Mark::Piece),
        };
        match self.segment(kind) {
            Some(_) => self.mark(kind, mark, out),
            None => self.close_all(name, out),
        }
    }

    pub(super) fn end(&mut self, out: &mut Findings<'_>) {
        match self.phase {
            Phase::Fresh | Phase::Done | Phase::PastDone => {}
            Phase::Failed => out.add(&rules::ERROR, "the stream ends after `error`"),
            Phase::Open => {
                let open = SEGMENTS.into_iter().find(|kind| self.segment(kind) == Some(&mut Segment::Open));
                let inside = open.map(|kind| format!(", inside a {kind} segment")).unwrap_or_default();
                out.add(&rules::NO_DONE, format!("the stream ends without `done`{inside}"));
            }
        }
    }

    /// Moves on to the phase that the event brings; `false` if there is no more to say of it.
    fn advance(&mut self, name: &str, out: &mut Findings<'_>) -> bool {
        match (self.phase, name) {
            (Phase::Fresh | Phase::Done | Phase::PastDone, "user") => {
                *self = Order { phase: Phase::Open, ..Order::default() };
            }
            (Phase::Fresh, "error") => self.phase = Phase::Failed,
            (Phase::Fresh, name) => {
                out.add(&rules::USER_FIRST, format!("the stream begins with `{name}`"));
                self.phase = if name == "done" { Phase::Done } else { Phase::Open };
                self.owes_user = true;
            }
            (Phase::Done, name) => {
                match name {
                    "done" => out.add(&rules::DONE_ONCE, "a second `done`"),
                    name => out.add(&rules::AFTER_DONE, format!("`{name}` after `done`")),
                }
                self.phase = Phase::PastDone;
                return false;
            }
            (Phase::PastDone, _) => return false,
            (Phase::Failed, "done") | (Phase::Open, "done") => self.phase = Phase::Done,
            (Phase::Failed, name) => {
                out.add(&rules::ERROR, format!("`{name}` follows `error`"));
                match name {
                    "user" => *self = Order { phase: Phase::Open, ..Order::default() },
                    "error" => {}
                    _ => self.phase = Phase::Open,
                }
            }
            (Phase::Open, "error") => self.phase = Phase::Failed,
            (Phase::Open, "user") if self.owes_user => {
                self.owes_user = false;
                return false;
            }
            (Phase::Open, "user") => {
                out.add(&rules::NO_DONE, "another `user`, and the turn before has no `done`");
                *self = Order { phase: Phase::Open, ..Order::default() };
            }
            (Phase::Open, _) => {}
        }
        true
    }

    fn one_dialog(&mut self, name: &str, packet: &Value, out: &mut Findings<'_>) {
        let Some(dialog) = packet["dialog_id"].as_str() else { return };
        let known = self.dialog.get_or_insert_with(|| dialog.to_owned());
        if known != dialog && !self.told_of_dialog {
            self.told_of_dialog = true;
            out.add(&rules::DIALOG, format!("`{name}` is of another dialog than the turn"));
        }
    }

    fn segment(&mut self, kind: &str) -> Option<&mut Segment> {
        match kind {
            "chat" => Some(&mut self.chat),
            "reasoning" => Some(&mut self.reasoning),
            "summary" => Some(&mut self.summary),
            _ => None,
        }
    }

    fn mark(&mut self, kind: &str, mark: Mark, out: &mut Findings<'_>) {
        for other in SEGMENTS.into_iter().filter(|other| mark == Mark::Start && *other != kind) {
            if let Some(segment @ Segment::Open) = self.segment(other) {
                *segment = Segment::Overdue;
                out.add(&rules::NESTED, format!("`{kind}_start` while a {other} segment is open"));
            }
        }
        let Some(segment) = self.segment(kind) else { return };
        *segment = match (mark, *segment) {
            (Mark::Start, Segment::Open) => {
                out.add(&rules::DOUBLE_START, format!("a second `{kind}_start`"));
                Segment::Open
            }
            (Mark::Start, Segment::Closed | Segment::Implied | Segment::Overdue) => Segment::Open,
            (Mark::Piece, Segment::Closed) => {
                out.add(&rules::PIECE, format!("`{kind}` without `{kind}_start`"));
                Segment::Implied
            }
            (Mark::Piece, segment) => segment,
            (Mark::End, Segment::Closed) => {
                out.add(&rules::END, format!("`{kind}_end` without `{kind}_start`"));
                Segment::Closed
            }
            (Mark::End, Segment::Open | Segment::Implied | Segment::Overdue) => Segment::Closed,
        };
    }

    fn close_all(&mut self, name: &str, out: &mut Findings<'_>) {
        for kind in SEGMENTS {
            if let Some(segment @ Segment::Open) = self.segment(kind) {
                *segment = Segment::Overdue;
                out.add(&rules::UNCLOSED, format!("`{name}` while a {kind} segment is open"));
            }
        }
    }
}
