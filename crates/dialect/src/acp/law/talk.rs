//! One session as the law sees it: its open turn, its calls, and what waits for a person.

use serde_json::Value;

use super::rule::{DOUBLE_CALL, DOUBLE_TURN, ENDED_CALL, NO_CALL, OUTSIDE};
use crate::check::Findings;
use crate::recent::Recent;

const REMEMBERED_CALLS: usize = 1024;

#[derive(Debug)]
pub(super) struct Talk {
    pub(super) turn: Option<Turn>,
    /// Calls of the turn: whether each has ended, and whether it was said that more came.
    calls: Recent<Call>,
    /// What is told is history: a load repeats it, or whoever writes the stream passes it on.
    is_history: bool,
    /// Calls may be spoken of that are not among ours: those of a turn that is over or was forgotten.
    has_lost_calls: bool,
}

impl Default for Talk {
    fn default() -> Self {
        Talk { turn: None, calls: Recent::of(REMEMBERED_CALLS), is_history: false, has_lost_calls: false }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// So many prompts of the client have no response.
    Prompted(u64),
    /// Our own stream says which turn it is; so far, whether it has only said so.
    Marked { id: String, is_fresh: bool },
    /// One side alone is in the stream, and the user's words or the agent's were in it.
    Implied { has_words: bool },
}

#[derive(Debug, Default)]
struct Call {
    has_ended: bool,
    is_told: bool,
    /// Leave was asked for it. Some agents do so before they create the call, and whoever tells that on has told of the
    /// call first.
    is_asked: bool,
}

/// What the stream has shown of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// The client's side is in it.
    pub(super) client: bool,
    /// It marks its turns.
    pub(super) marks: bool,
}

impl Talk {
    /// A session that was known once. Nothing is held against it until its next turn begins.
    pub(super) fn forgotten() -> Self {
        Talk { is_history: true, has_lost_calls: true, ..Talk::default() }
    }

    pub(super) fn prompted(&mut self) {
        self.turn = match self.turn.take() {
            Some(Turn::Prompted(open)) => Some(Turn::Prompted(open + 1)),
            _ => {
                self.begin();
                Some(Turn::Prompted(1))
            }
        };
    }

    fn begin(&mut self) {
        *self = Talk { turn: self.turn.take(), ..Talk::default() };
    }

    pub(super) fn load(&mut self) {
        self.begin();
        self.is_history = true;
    }

    pub(super) fn loaded(&mut self) {
        self.begin();
    }

    /// The response to a prompt is there. `true` if the turn is over.
    pub(super) fn end(&mut self) -> bool {
        match &mut self.turn {
            Some(Turn::Prompted(open)) if *open > 1 => {
                *open -= 1;
                false
            }
            _ => {
                *self = Talk { is_history: self.is_history, has_lost_calls: true, ..Talk::default() };
                true
            }
        }
    }

    pub(super) fn update(&mut self, kind: &str, update: &Value, seen: Seen, out: &mut Findings<'_>) {
        let mark = update["_meta"]["tolka"]["turn"].as_str();
        match kind {
            "user_message_chunk" if self.is_in(update["_meta"]["tolka"]["into"].as_str()) => {}
            "user_message_chunk" => return self.words(mark, seen, out),
            "session_info_update" if mark.is_some() => return self.words(mark, seen, out),
            "agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update" => {}
            _ => return,
        }
        if let Some(Turn::Marked { is_fresh, .. }) = &mut self.turn {
            *is_fresh = false;
        }
        if self.turn.is_none() && !self.is_history {
            if seen.client || seen.marks {
                out.add(&OUTSIDE, format!("a `{kind}` while no prompt is worked on"));
                // What follows is of the same mistake.
                self.is_history = true;
            } else {
                self.begin();
                self.turn = Some(Turn::Implied { has_words: false });
            }
        }
        if kind.starts_with("tool_call") {
            self.call(kind, update, out);
        }
    }

    /// Words for the turn that runs: they begin none.
    fn is_in(&self, into: Option<&str>) -> bool {
        matches!(&self.turn, Some(Turn::Marked { id, .. }) if Some(id.as_str()) == into)
    }

    /// The user's words, or a mark without words.
    fn words(&mut self, mark: Option<&str>, seen: Seen, out: &mut Findings<'_>) {
        let Some(mark) = mark else {
            match &self.turn {
                // Agents echo what the user said.
                Some(Turn::Prompted(_) | Turn::Marked { .. }) => {}
                _ if self.is_history => {}
                _ if seen.client || seen.marks => self.load(),
                _ => {
                    self.begin();
                    self.turn = Some(Turn::Implied { has_words: true });
                }
            }
            return;
        };
        match &self.turn {
            Some(Turn::Marked { id, is_fresh: true }) if id == mark => return,
            Some(Turn::Marked { id, .. }) => {
                out.add(&DOUBLE_TURN, format!("{mark} begins before {id} has its response"));
            }
            _ => {}
        }
        self.begin();
        self.turn = Some(Turn::Marked { id: mark.to_owned(), is_fresh: true });
    }

    pub(super) fn asked(&mut self, call: &str) {
        if let Some(call) = self.calls.get_mut(call) {
            call.is_asked = true;
        }
    }

    fn call(&mut self, kind: &str, update: &Value, out: &mut Findings<'_>) {
        let Some(id) = update["toolCallId"].as_str() else { return };
        let is_known = self.calls.get(id).is_some();
        let may_be_lost = self.has_lost_calls || self.calls.is_full();
        let call = self.calls.touch_or_insert(id, Call::default);
        let has_ended = matches!(update["status"].as_str(), Some("completed" | "failed"));
        if call.has_ended && !std::mem::replace(&mut call.is_told, true) {
            out.add(&ENDED_CALL, format!("more of the call `{id}`, which has ended"));
        } else if kind == "tool_call" && is_known && !call.is_told && !call.is_asked {
            out.add(&DOUBLE_CALL, format!("the call `{id}` is created again"));
        } else if kind == "tool_call_update" && !is_known && !may_be_lost {
            out.add(&NO_CALL, format!("an update of the call `{id}`, which was not created"));
        }
        call.has_ended |= has_ended;
    }
}
