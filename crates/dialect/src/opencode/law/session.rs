//! When a session works and when it rests.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::Profile;
use super::rule;
use crate::check::Findings;
use crate::recent::Recent;

const REMEMBERED: usize = 4096;
/// More calls of one session are never open at once; what comes on top is not followed.
const OPEN_TOOLS: usize = 4096;

#[derive(Debug)]
pub(super) struct Sessions {
    known: Recent<Session>,
}

#[derive(Debug, Default)]
pub(super) struct Session {
    /// It was created on this feed, so that all of it is known.
    pub(super) is_whole: bool,
    /// How often it was idle: what was told before the last time is of a response that is complete.
    pub(super) rests: u64,
    /// How often its provider was asked again; a step that was begun then begins anew.
    pub(super) retries: u64,
    pub(super) state: State,
    /// Since it was idle.
    has_worked: bool,
    /// The agent said something since the session was last idle or failed.
    is_answering: bool,
    /// Parts of calls that have not ended, of the response at hand.
    open_tools: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    #[default]
    Unknown,
    Busy,
    /// `session.status` said idle, `session.idle` has not come yet.
    Resting,
    Idle,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Sessions { known: Recent::of(REMEMBERED) }
    }

    pub(super) fn of(&mut self, id: &str) -> &mut Session {
        if self.known.get(id).is_none() {
            self.known.insert(id, Session::default());
        }
        self.known.get_mut(id).expect("it was put there if it was not")
    }

    pub(super) fn end(&self, profile: Profile, out: &mut Findings<'_>) {
        for (id, session) in self.known.iter() {
            match session.state {
                State::Busy => out.add(&rule::BUSY_AT_END, format!("the stream ends, and `{id}` is busy")),
                State::Resting => out.add(&rule::IDLE_TOLD, format!("the stream ends before `session.idle` of `{id}`")),
                // The document has no `session.status`. Today's server has, and tells old answers in a session that was
                // forked, with no work in it.
                State::Unknown | State::Idle if session.is_answering && profile == Profile::Documented => {
                    out.add(
                        &rule::BUSY_AT_END,
                        format!("the stream ends in an answer, before `session.idle` of `{id}`"),
                    );
                }
                State::Unknown | State::Idle => {}
            }
        }
    }
}

impl Session {
    pub(super) fn created(&mut self) {
        *self = Session { is_whole: true, ..Session::default() };
    }

    pub(super) fn deleted(&mut self) {
        self.state = State::Unknown;
        self.is_answering = false;
        self.open_tools.clear();
    }

    /// For clients of the document the response is over.
    pub(super) fn failed(&mut self) {
        self.is_answering = false;
    }

    pub(super) fn tool_works(&mut self, part: &str) {
        if self.open_tools.len() < OPEN_TOOLS {
            self.open_tools.insert(part.to_owned());
        }
    }

    pub(super) fn tool_ended(&mut self, part: &str) {
        self.open_tools.remove(part);
    }

    pub(super) fn status(&mut self, status: &Value, out: &mut Findings<'_>) {
        match status["type"].as_str() {
            Some("idle") if self.state != State::Idle => self.state = State::Resting,
            Some(kind @ ("busy" | "retry")) => {
                if self.state == State::Resting {
                    out.add(&rule::IDLE_TOLD, "the session is busy again, and there was no `session.idle`");
                }
                self.retries += u64::from(kind == "retry");
                self.state = State::Busy;
                self.has_worked = true;
            }
            _ => {}
        }
    }

    pub(super) fn idle(&mut self, profile: Profile, out: &mut Findings<'_>) {
        let is_known = self.is_whole || self.rests > 0;
        if is_known && !self.has_worked {
            out.add(&rule::IDLE, "the session was not busy");
        } else if self.state == State::Busy && profile != Profile::Documented {
            out.add(&rule::IDLE_STATUS, "`session.status` says that the session is busy");
        }
        for part in std::mem::take(&mut self.open_tools) {
            out.add(&rule::TOOL_AT_IDLE, format!("the tool of `{part}` has not ended"));
        }
        self.state = State::Idle;
        self.has_worked = false;
        self.is_answering = false;
        self.rests += 1;
    }

    /// Something of a message of the agent's that was first told when the session had rested `rests` times.
    pub(super) fn works(&mut self, rests: u64, out: &mut Findings<'_>) {
        if self.state == State::Idle && rests < self.rests {
            out.add(&rule::AFTER_IDLE, "this is of a response that `session.idle` said was complete");
            // Told once: what else comes late, and the idle after it, is the same fault.
            self.state = State::Unknown;
        } else if self.state != State::Unknown || rests == self.rests {
            self.is_answering = true;
        }
        self.has_worked = true;
    }
}
