//! When a session works and when it rests.

use serde_json::Value;

use super::super::Profile;
use super::rule;
use crate::check::Findings;
use crate::recent::Recent;

const REMEMBERED: usize = 4096;

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

    pub(super) fn end(&self, out: &mut Findings<'_>) {
        for (id, session) in self.known.iter() {
            match session.state {
                State::Busy => out.add(&rule::BUSY_AT_END, format!("the stream ends, and `{id}` is busy")),
                State::Resting => out.add(&rule::IDLE_TOLD, format!("the stream ends before `session.idle` of `{id}`")),
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
        self.state = State::Idle;
        self.has_worked = false;
        self.rests += 1;
    }

    /// Something of a message of the agent's that was first told when the session had rested `rests` times.
    pub(super) fn works(&mut self, rests: u64, out: &mut Findings<'_>) {
        if self.state == State::Idle && rests < self.rests {
            out.add(&rule::AFTER_IDLE, "this is of a response that `session.idle` said was complete");
            // Told once: what else comes late, and the idle after it, is the same fault.
            self.state = State::Unknown;
        }
        self.has_worked = true;
    }
}
