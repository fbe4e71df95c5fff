//! Which packets a client reads: those of documents 000 and 002, or the steps of document 001.

use std::collections::HashMap;

use tolka_dialect::onyx::{self, CommonError, Profile};
use tolka_dialect::{Dialect, onyx_steps};
use tolka_facts::{Fact, Json, Time};

use crate::fault::Fault;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packets {
    Onyx(Profile),
    Steps,
}

impl Packets {
    /// Whether a request asks for steps.
    pub(super) fn are_steps(params: &HashMap<String, String>) -> Result<bool, Fault> {
        match params.get("packets").map(String::as_str) {
            None => Ok(false),
            Some("steps") => Ok(true),
            Some(_) => Err(Fault::BadRequest("`packets` is steps, or left out.".to_owned())),
        }
    }

    pub(super) fn dialect(self) -> Dialect {
        match self {
            Packets::Onyx(profile) => Dialect::Onyx(profile),
            Packets::Steps => Dialect::OnyxSteps,
        }
    }

    /// What to ask a turn's events with, to get these.
    pub(super) fn query(self) -> &'static str {
        match self {
            Packets::Onyx(Profile::Documented) => "profile=documented",
            Packets::Onyx(Profile::Current) => "profile=current",
            Packets::Steps => "packets=steps",
        }
    }

    /// The turn was dropped before it started. Its client waits for an end all the same.
    pub(super) fn never_started(self) -> fn(&Fact) -> Vec<Vec<u8>> {
        match self {
            Packets::Onyx(_) => |fact| vec![onyx::cancelled_packet(fact.time)],
            Packets::Steps => |fact| vec![onyx_steps::cancelled_packet(fact.time)],
        }
    }

    /// One of the errors that arise before there is a turn to tell of them.
    pub(super) fn error(self, error: CommonError, details: Option<&Json>) -> Vec<u8> {
        match self {
            Packets::Onyx(_) => onyx::error_packet(error, Time::now(), details),
            Packets::Steps => onyx_steps::error_packet(error, Time::now()),
        }
    }
}
