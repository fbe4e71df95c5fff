//! What document 004 demands of a feed, and what OpenCode's own clients of today do beside it.
//!
//! A feed tells of many sessions and may be joined at any time. A session that was created on the feed is judged from
//! its first event; of another one what is not known may have been told before, and nobody is blamed for that.

mod event;
mod message;
mod part;
mod print;
mod rule;
mod session;

use serde_json::Value;

use super::Profile;
use crate::check::{Field, Findings, Law, Manners, Packet, Rule, problems};
use crate::recent::Recent;
use message::Messages;
use session::Sessions;

/// How many event ids are remembered, to know one that comes twice.
const REMEMBERED_EVENTS: usize = 4096;
const REMEMBERED_ASKS: usize = 4096;

pub(crate) fn law(profile: Profile) -> Box<dyn Law> {
    Box::new(Feed {
        profile,
        has_begun: false,
        told_pieces: false,
        ids: Recent::of(REMEMBERED_EVENTS),
        sessions: Sessions::new(),
        messages: Messages::new(profile),
        asks: Recent::of(REMEMBERED_ASKS),
    })
}

#[derive(Debug)]
struct Feed {
    profile: Profile,
    has_begun: bool,
    /// Told once: a server that sends pieces sends many.
    told_pieces: bool,
    ids: Recent<()>,
    sessions: Sessions,
    messages: Messages,
    asks: Recent<Ask>,
}

/// A permission or a question.
#[derive(Debug, PartialEq, Eq)]
enum Ask {
    Open,
    Answered,
}

impl Law for Feed {
    fn manners(&self) -> &'static Manners {
        &rule::MANNERS
    }

    fn name<'a>(&self, packet: &'a Value) -> &'a str {
        packet.get("payload").unwrap_or(packet)["type"].as_str().unwrap_or("(no type)")
    }

    fn judge(&mut self, packet: &Packet<'_>, out: &mut Findings<'_>) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let event = packet.body.get("payload").unwrap_or(packet.body);
        let (Some(kind), properties) = (event["type"].as_str(), &event["properties"]) else {
            return out.add(&rule::ENVELOPE, "`type` does not say what the event is");
        };
        // The feed's own events are of no folder.
        if packet.body.get("payload").is_some() && !kind.starts_with("server.") && !kind.starts_with("global.") {
            out.shape(&rule::ENVELOPE, packet.body, event::GLOBAL);
        }
        if kind == "sync" {
            return out.shape(&rule::ENVELOPE, event, event::SYNC);
        }
        self.judge_envelope(event, out);
        if kind == "server.connected" && !is_first {
            out.add(&rule::CONNECTED, "`server.connected` is not the first event");
        }
        if properties.is_object() && self.judge_properties(kind, properties, out) {
            self.judge_order(kind, properties, out);
        }
    }

    fn end(&mut self, out: &mut Findings<'_>) {
        self.sessions.end(self.profile, out);
    }

    fn rules(&self) -> Vec<&'static Rule> {
        rule::ALL.to_vec()
    }
}

impl Feed {
    fn judge_envelope(&mut self, event: &Value, out: &mut Findings<'_>) {
        let fields = match self.profile {
            Profile::Current => event::TODAY,
            Profile::Superset | Profile::Documented => event::DOCUMENTED,
        };
        out.shape(&rule::ENVELOPE, event, fields);
        if let Some(id) = event["id"].as_str() {
            if self.ids.get(id).is_some() {
                out.add(&rule::EVENT_ID, format!("`{id}` was the id of an event before"));
            }
            self.ids.insert(id, ());
        }
    }

    /// Whether the event is known.
    fn judge_properties(&self, kind: &str, properties: &Value, out: &mut Findings<'_>) -> bool {
        let find = |table: &'static [event::Known]| table.iter().find(|known| known.name == kind);
        let shapes = match self.profile {
            Profile::Documented => [find(event::OF_DOCUMENT).or_else(|| find(event::OF_TODAY)), find(event::OLD)],
            Profile::Superset => [find(event::OF_DOCUMENT), find(event::OF_TODAY).or_else(|| find(event::OLD))],
            // Today's table of messages holds what the document's leaves out.
            Profile::Current if kind == "message.updated" => [find(event::OF_DOCUMENT), find(event::OF_TODAY)],
            Profile::Current => [None, find(event::OF_TODAY)],
        };
        if shapes.iter().all(Option::is_none) && !event::is_next(kind) {
            out.add(&rule::UNKNOWN, format!("`{kind}` is no event of this wire"));
            return false;
        }
        let mut told = Vec::new();
        for known in shapes.into_iter().flatten() {
            tell_once(known.rule, properties, known.fields, &mut told, out);
        }
        match kind {
            "message.part.updated" if properties["part"]["type"] == "tool" => {
                out.shape(&rule::TOOL_STATE, &properties["part"], part::STATE);
            }
            "message.updated" => out.shape(&rule::ERROR, &properties["info"], part::FAILURE),
            "session.error" => out.shape(&rule::ERROR, properties, part::FAILURE),
            _ => {}
        }
        true
    }

    fn judge_order(&mut self, kind: &str, properties: &Value, out: &mut Findings<'_>) {
        let Some(id) = session_of(kind, properties) else { return };
        let session = self.sessions.of(id);
        match kind {
            "session.created" => session.created(),
            "session.deleted" => session.deleted(),
            "session.error" => session.failed(),
            "session.status" => session.status(&properties["status"], out),
            "session.idle" => session.idle(self.profile, out),
            "message.updated" => self.messages.updated(&properties["info"], session, out),
            "message.part.updated" => self.messages.part_updated(properties, session, out),
            "message.part.delta" => {
                if self.profile == Profile::Documented && !std::mem::replace(&mut self.told_pieces, true) {
                    out.add(&rule::NO_PIECES, "a `message.part.delta`, and there may be more after it");
                }
                self.messages.part_delta(properties, session, out);
            }
            "permission.asked" | "question.asked" => {
                let is_known = properties["id"].as_str().is_some_and(|request| self.asks.get(request).is_some());
                if is_known {
                    out.add(&rule::ASKED_ONCE, format!("{} was asked before", properties["id"]));
                }
                properties["id"].as_str().into_iter().for_each(|request| self.asks.insert(request, Ask::Open));
            }
            "permission.replied" | "question.replied" | "question.rejected" => {
                let Some(request) = properties["requestID"].as_str() else { return };
                let may_be_forgotten = !session.is_whole || self.asks.is_full();
                match self.asks.get(request) {
                    Some(Ask::Open) => {}
                    Some(Ask::Answered) => out.add(&rule::ASKED, format!("`{request}` was answered before")),
                    None if may_be_forgotten => {}
                    None => out.add(&rule::ASKED, format!("`{request}` was never asked")),
                }
                self.asks.insert(request, Ask::Answered);
            }
            _ => {}
        }
    }
}

/// The document names the session inside what the event shows, today's server beside it as well.
fn session_of<'a>(kind: &str, properties: &'a Value) -> Option<&'a str> {
    let inside = match kind {
        "message.updated" => &properties["info"]["sessionID"],
        "message.part.updated" => &properties["part"]["sessionID"],
        "session.updated" => &properties["session"]["id"],
        _ => &Value::Null,
    };
    properties["sessionID"].as_str().or_else(|| inside.as_str())
}

/// Two tables of the same event may miss the same field.
fn tell_once(rule: &'static Rule, value: &Value, fields: &[Field], told: &mut Vec<String>, out: &mut Findings<'_>) {
    for problem in problems(value, fields) {
        if !told.contains(&problem) {
            out.add(rule, problem.clone());
            told.push(problem);
        }
    }
}
