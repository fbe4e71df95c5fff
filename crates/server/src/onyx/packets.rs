//! Which packets a client reads: those of documents 000 and 002, or the steps of document 001.

use std::collections::HashMap;

use serde_json::json;
use tolka_dialect::Dialect;
use tolka_dialect::onyx::{CommonError, Profile, cancelled_packet, error_packet, timestamp};
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
            Packets::Onyx(_) => |fact| vec![cancelled_packet(fact.time)],
            Packets::Steps => |fact| vec![cancelled_step(fact.time)],
        }
    }

    /// One of the errors that arise before there is a turn to tell of them.
    pub(super) fn error(self, error: CommonError, details: Option<&Json>) -> Vec<u8> {
        match self {
            Packets::Onyx(_) => error_packet(error, Time::now(), details),
            Packets::Steps => error_step(error, Time::now()),
        }
    }
}

fn error_step(error: CommonError, time: Time) -> Vec<u8> {
    json!({ "type": "error", "message": error.message(), "code": -1, "timestamp": timestamp(time) })
        .to_string()
        .into_bytes()
}

fn cancelled_step(time: Time) -> Vec<u8> {
    let done = json!({
        "type": "done",
        "summary": "The message was dropped before its turn came",
        "stop_reason": "cancelled",
        "timestamp": timestamp(time),
    });
    done.to_string().into_bytes()
}
