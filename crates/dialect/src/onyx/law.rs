//! What documents 000 and 002 demand of a stream, and what the house decided where they disagree or are silent.
//!
//! Nothing on this wire says that a turn begins: its first piece of text or first call does. So a stream of a whole
//! session is judged like one of a single turn, and what comes after an end belongs to the next turn, which then needs
//! an end of its own.

mod rule;
mod shape;

use serde_json::Value;

use super::{Profile, rules};
use crate::check::{Findings, Law, Manners, Packet, Rule};
use crate::recent::Recent;

const REMEMBERED_CALLS: usize = 16 * 1024;

pub(crate) fn law(profile: Profile) -> Box<dyn Law> {
    Box::new(Turns { profile, calls: Recent::of(REMEMBERED_CALLS), is_open: false, ended_at: None })
}

#[derive(Debug)]
struct Turns {
    profile: Profile,
    /// Of the open turn.
    calls: Recent<Call>,
    is_open: bool,
    /// The time of the last end, while nothing of a turn has come since.
    ended_at: Option<Value>,
}

/// How far a call has come; it never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Call {
    Pending,
    Running,
    Ended,
}

impl Call {
    fn of(packet: &Value) -> Option<Self> {
        match packet["status"].as_str()? {
            "pending" => Some(Call::Pending),
            "in_progress" => Some(Call::Running),
            "completed" | "failed" => Some(Call::Ended),
            _ => None,
        }
    }
}

impl Law for Turns {
    fn manners(&self) -> &'static Manners {
        &rule::MANNERS
    }

    fn name<'a>(&self, packet: &'a Value) -> &'a str {
        rules::packet_type(packet).unwrap_or("(no type)")
    }

    fn judge(&mut self, packet: &Packet<'_>, out: &mut Findings<'_>) {
        let packet = packet.body;
        let Some(kind) = rules::packet_type(packet) else {
            return out.add(&rule::TYPE, "neither `type` nor `sessionUpdate` says what the packet is");
        };
        if packet["type"] != kind {
            out.add(&rule::TYPE, format!("`type` is missing; by its `sessionUpdate` this is `{kind}`"));
        }
        let Some(known) = self.known(kind) else {
            return out.add(&rule::UNKNOWN, format!("`{kind}` is no packet of this wire"));
        };
        let may_be_timeless = kind == "error" && self.profile == Profile::Documented;
        let stamped = if may_be_timeless { shape::STAMPED_PERHAPS } else { shape::STAMPED };
        out.shape(&rule::TIMESTAMP, packet, stamped);
        out.shape(known.rule, packet, known.fields);
        if let Some(update) = known.update {
            self.judge_update(packet, update, out);
        }
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" => self.turn_goes_on(),
            "tool_call_start" => self.start(packet, out),
            "tool_call_progress" => self.progress(packet, out),
            "prompt_response" => {
                self.judge_stop(&packet["stopReason"], out);
                self.end_turn(packet, out);
            }
            "error" => self.end_turn(packet, out),
            _ => {}
        }
    }

    fn end(&mut self, out: &mut Findings<'_>) {
        if self.is_open {
            out.add(&rule::TURN_END, "the stream ends inside a turn, without `prompt_response` or `error`");
        }
    }

    fn rules(&self) -> Vec<&'static Rule> {
        let of_profile = match self.profile {
            Profile::Documented => rule::DOCUMENTED,
            Profile::Current => rule::CURRENT,
        };
        [rule::ALL, of_profile].concat()
    }
}

impl Turns {
    fn known(&self, kind: &str) -> Option<&'static shape::Known> {
        match (kind, self.profile) {
            ("error", Profile::Documented) => Some(shape::FAILED_DOCUMENTED),
            ("error", Profile::Current) => Some(shape::FAILED),
            _ => shape::PACKETS.iter().find(|known| known.name == kind),
        }
    }

    fn judge_stop(&self, reason: &Value, out: &mut Findings<'_>) {
        let (rule, fields) = match self.profile {
            Profile::Documented => (&rule::STOP_REASON_DOCUMENTED, shape::STOPPED_DOCUMENTED),
            Profile::Current => (&rule::STOP_REASON, shape::STOPPED),
        };
        out.shape(rule, &serde_json::json!({ "stopReason": reason }), fields);
    }

    /// The fields that all of ACP's updates have.
    fn judge_update(&self, packet: &Value, update: &str, out: &mut Findings<'_>) {
        match packet.get("sessionUpdate") {
            Some(told) if told == update => {}
            Some(told) => out.add(&rule::SESSION_UPDATE, format!("`sessionUpdate` is {told}, not `{update}`")),
            None => out.add(&rule::SESSION_UPDATE, format!("`sessionUpdate` is missing; it is `{update}`")),
        }
        let (rule, fields) = match self.profile {
            Profile::Documented => (&rule::META, shape::NO_META),
            Profile::Current => (&rule::ROUTING, shape::ROUTING),
        };
        out.shape(rule, packet, fields);
    }

    fn turn_goes_on(&mut self) {
        self.is_open = true;
        self.ended_at = None;
    }

    fn start(&mut self, packet: &Value, out: &mut Findings<'_>) {
        self.turn_goes_on();
        let Some(call) = packet["toolCallId"].as_str() else { return };
        match self.calls.get(call) {
            Some(_) => out.add(&rule::ONE_START, format!("`{call}` was started before")),
            None => self.calls.insert(call, Call::Pending),
        }
    }

    fn progress(&mut self, packet: &Value, out: &mut Findings<'_>) {
        self.turn_goes_on();
        let (Some(call), Some(now)) = (packet["toolCallId"].as_str(), Call::of(packet)) else { return };
        if let Some(problem) = raw_output_problem(packet) {
            out.add(&rule::RAW_OUTPUT, problem);
        }
        match self.calls.get(call) {
            None if self.calls.is_full() => {}
            None => out.add(&rule::START_FIRST, format!("`{call}` was not started, so that readers drop this")),
            Some(Call::Ended) => return out.add(&rule::CALL_ENDED, format!("`{call}` has ended before")),
            Some(before) if now < *before => {
                return out.add(&rule::CALL_ORDER, format!("`{call}` was in progress, and is pending again"));
            }
            Some(_) => {}
        }
        self.calls.insert(call, now);
    }

    fn end_turn(&mut self, packet: &Value, out: &mut Findings<'_>) {
        let calls = std::mem::replace(&mut self.calls, Recent::of(REMEMBERED_CALLS));
        for (call, _) in calls.iter().filter(|(_, state)| **state != Call::Ended) {
            out.add(&rule::CALLS_END, format!("`{call}` has not ended, and the turn does"));
        }
        let now = &packet["timestamp"];
        // An end with nothing before it is of a turn that said nothing, and such a turn ends later than the one before.
        let is_later = |before: &Value| now.as_str().zip(before.as_str()).is_some_and(|(now, before)| now > before);
        if self.ended_at.as_ref().is_some_and(|before| !is_later(before)) {
            out.add(&rule::ONE_END, "the turn has ended before");
        }
        self.is_open = false;
        self.ended_at = Some(now.clone());
    }
}

fn raw_output_problem(packet: &Value) -> Option<&'static str> {
    let output = &packet["rawOutput"];
    match packet["status"].as_str()? {
        "pending" | "in_progress" => (!output.is_null()).then_some("`rawOutput` is there before the call has ended"),
        "completed" => output.is_null().then_some("`rawOutput` is null, though the call is completed"),
        "failed" => (!output["error"].is_string()).then_some("`rawOutput.error` does not say why the call failed"),
        _ => None,
    }
}
