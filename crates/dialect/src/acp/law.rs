//! What the protocol demands of a conversation: both sides of it, one alone, or our own telling of a session.
//!
//! A stream with one side has no requests of the other, so less can be held against it: what it does not show is taken
//! to be in order. A turn's calls are forgotten with it. Of sessions, requests and calls only so many are remembered:
//! where one that is not known may have been forgotten, nothing is held against it.

mod rule;
mod shape;
mod talk;

use serde_json::Value;

use self::rule::*;
use self::talk::{Seen, Talk, Turn};
use super::method::{Side, Sort, method};
use super::recorded;
use super::waiting::{Waiting, written};
use crate::check::{Findings, Law, Manners, Packet, Rule};
use crate::recent::Recent;

const REMEMBERED_SESSIONS: usize = 4096;
const REMEMBERED_WITHDRAWN: usize = 4096;

pub(crate) fn law() -> Box<dyn Law> {
    Box::new(Order::default())
}

#[derive(Debug)]
struct Order {
    sessions: Recent<Talk>,
    last: String,
    waiting: Waiting<Asked>,
    /// Requests that need no response any more and may still get one.
    withdrawn: Recent<()>,
    seen: Seen,
    told_version: bool,
}

impl Default for Order {
    fn default() -> Self {
        Order {
            sessions: Recent::of(REMEMBERED_SESSIONS),
            last: String::new(),
            waiting: Waiting::default(),
            withdrawn: Recent::of(REMEMBERED_WITHDRAWN),
            seen: Seen::default(),
            told_version: false,
        }
    }
}

/// A request that waits.
#[derive(Debug)]
struct Asked {
    method: String,
    session: String,
    /// The options of a permission.
    options: Vec<String>,
}

impl Law for Order {
    fn manners(&self) -> &'static Manners {
        &MANNERS
    }

    fn name<'a>(&self, packet: &'a Value) -> &'a str {
        let message = packet.get("msg").unwrap_or(packet);
        let update = message["params"]["update"]["sessionUpdate"].as_str();
        let outcome = if message.get("error").is_some() { "error" } else { "result" };
        match message["method"].as_str() {
            Some("session/update") => update.unwrap_or("session/update"),
            Some(method) => method,
            None if packet["dir"].as_str().is_some_and(|dir| matches!(recorded::side(dir), Ok(None))) => "noise",
            None => outcome,
        }
    }

    fn judge(&mut self, packet: &Packet<'_>, out: &mut Findings<'_>) {
        let body = packet.body;
        let is_recorded = body.get("dir").is_some() && body.get("msg").is_some();
        if !is_recorded {
            return self.message(None, body, out);
        }
        if body["t"].as_f64().is_none_or(|t| t < 0.0) {
            out.add(&ENVELOPE, "`t` is missing or no time");
        }
        match recorded::side(body["dir"].as_str().unwrap_or_default()) {
            Ok(Some(side)) => self.message(Some(side), &body["msg"], out),
            Ok(None) => out.add(&NOISE, "the agent wrote something that is no message"),
            Err(problem) => out.add(&ENVELOPE, problem.to_string()),
        }
    }

    fn end(&mut self, out: &mut Findings<'_>) {
        for (session, talk) in self.sessions.iter() {
            let problem = match &talk.turn {
                Some(Turn::Prompted(open)) => format!("{open} prompts of `{session}` have no response"),
                Some(Turn::Marked { id, .. }) => format!("{id} has no response"),
                Some(Turn::Implied { has_words: true }) => "what the user said has no response".to_owned(),
                Some(Turn::Implied { has_words: false }) | None => continue,
            };
            out.add(&TRUNCATED, problem);
        }
    }

    fn rules(&self) -> Vec<&'static Rule> {
        rule::ALL.to_vec()
    }
}

impl Order {
    fn message(&mut self, side: Option<Side>, message: &Value, out: &mut Findings<'_>) {
        if message["jsonrpc"] != "2.0" && !std::mem::replace(&mut self.told_version, true) {
            out.add(&VERSION, "`jsonrpc` is not \"2.0\", here and perhaps further on");
        }
        let name = message.get("method").and_then(Value::as_str);
        let id = message.get("id").filter(|id| !id.is_null());
        if id.is_some_and(|id| !id.is_string() && !id.is_i64() && !id.is_u64()) {
            return out.add(&MESSAGE, "`id` is neither a string nor a whole number");
        }
        let (result, error) = (message.get("result"), message.get("error"));
        match (name, result, error) {
            (Some(name), None, None) => self.called(side, name, id, &message["params"], out),
            (None, Some(result), None) => self.responded(side, id, Ok(result), out),
            (None, None, Some(error)) => {
                out.shape(&SHAPE, error, shape::ERROR);
                self.responded(side, id, Err(()), out);
            }
            (Some(_), ..) => out.add(&MESSAGE, "a method stands beside a result or an error"),
            (None, Some(_), Some(_)) => out.add(&MESSAGE, "there are both a result and an error"),
            (None, None, None) => out.add(&MESSAGE, "there is no method, no result and no error"),
        }
    }

    fn called(&mut self, side: Option<Side>, name: &str, id: Option<&Value>, params: &Value, out: &mut Findings<'_>) {
        let known = method(name);
        if known.is_none() && !name.starts_with('_') {
            out.add(&METHOD, format!("there is no method `{name}`"));
        }
        let from = side.or(known.and_then(|known| known.from)).unwrap_or(Side::Agent);
        self.seen.client |= from == Side::Client;
        if let Some(known) = known {
            let sort = if id.is_some() { Sort::Request } else { Sort::Notification };
            if known.from.is_some_and(|right| right != from) {
                return out.add(&SENDER, format!("`{name}` is not this side's to send"));
            }
            if known.sort != sort {
                let problem =
                    if id.is_some() { "is a notification and has an `id`" } else { "is a request without `id`" };
                return out.add(&SENDER, format!("`{name}` {problem}"));
            }
            let fields = shape::params(name);
            if !fields.is_empty() {
                out.shape(&SHAPE, params, fields);
            }
        }
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        if let Some(id) = id {
            self.waits(from, id, name, &session, params, out);
        }
        match name {
            "session/load" | "session/resume" => {
                let talk = self.open(&session);
                if name == "session/load" {
                    talk.load();
                }
            }
            "session/prompt" => {
                shape::contents(params, out);
                self.talk(&session, out).prompted();
            }
            "session/update" => self.update(&session, &params["update"], out),
            "$/cancel_request" => self.withdraw(from, &params["requestId"], out),
            "session/request_permission" => {
                shape::contents(&params["toolCall"], out);
                self.talk(&session, out).asked(params["toolCall"]["toolCallId"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn waits(&mut self, from: Side, id: &Value, method: &str, session: &str, params: &Value, out: &mut Findings<'_>) {
        let options = params["options"].as_array().into_iter().flatten();
        let options = options.filter_map(|option| option["optionId"].as_str()).map(str::to_owned).collect();
        let asked = Asked { method: method.to_owned(), session: session.to_owned(), options };
        let (id, waiting) = (written(id), self.waiting.of(from));
        if waiting.get(&id).is_some() {
            out.add(&DOUBLE_ID, format!("the id {id} is that of a request that still waits"));
        }
        let forgotten =
            waiting.admit(&id, asked).map(|(_, asked)| asked).filter(|asked| asked.method == "session/prompt");
        if let Some(talk) = forgotten.and_then(|asked| self.sessions.get_mut(&asked.session)) {
            // Nobody will know its response.
            *talk = Talk::forgotten();
        }
    }

    /// The session of this name, which may be spoken of from now on.
    fn open(&mut self, session: &str) -> &mut Talk {
        self.add(session, Talk::default())
    }

    fn add(&mut self, session: &str, new: Talk) -> &mut Talk {
        session.clone_into(&mut self.last);
        self.sessions.touch_or_insert(session, || new)
    }

    /// The session of this name. The first is what it is; another must have been opened.
    fn talk(&mut self, session: &str, out: &mut Findings<'_>) -> &mut Talk {
        let mut new = Talk::default();
        if self.sessions.is_full() {
            new = Talk::forgotten();
        } else if self.sessions.iter().next().is_some() && self.sessions.get(session).is_none() {
            // What it says is of the same mistake.
            new.load();
            if !session.is_empty() {
                out.add(&SESSION, format!("the session `{session}` was not opened; `{}` was", self.last));
            }
        }
        self.add(session, new)
    }

    fn update(&mut self, session: &str, update: &Value, out: &mut Findings<'_>) {
        let Some(kind) = update["sessionUpdate"].as_str() else { return };
        match shape::update(kind) {
            Some(fields) => {
                out.shape(&SHAPE, update, fields);
                shape::contents(update, out);
            }
            None if kind.starts_with('_') => {}
            None => out.add(&KIND, format!("an update of the kind `{kind}`")),
        }
        self.seen.marks |= update["_meta"]["tolka"]["turn"].is_string();
        let seen = self.seen;
        self.talk(session, out).update(kind, update, seen, out);
    }

    fn responded(
        &mut self,
        side: Option<Side>,
        id: Option<&Value>,
        result: Result<&Value, ()>,
        out: &mut Findings<'_>,
    ) {
        let Some(id) = id.map(written) else { return };
        let is_of_client = result.is_ok_and(|result| result.get("outcome").or(result.get("action")).is_some());
        let Some((from, asked)) = self.waiting.take(side, &id, is_of_client) else {
            return self.unasked(&id, result, out);
        };
        self.seen.client |= from == Side::Agent;
        if let Ok(result) = result {
            let fields = shape::result(&asked.method);
            if !fields.is_empty() {
                out.shape(&SHAPE, result, fields);
            }
            let chosen = result["outcome"]["optionId"].as_str();
            if let Some(chosen) = chosen.filter(|chosen| !asked.options.iter().any(|option| option == chosen)) {
                out.add(&OPTION, format!("`{chosen}` was not offered"));
            }
        }
        match asked.method.as_str() {
            "session/new" => {
                if let Some(session) = result.ok().and_then(|result| result["sessionId"].as_str()) {
                    self.open(session);
                }
            }
            "session/load" => self.open(&asked.session).loaded(),
            "session/prompt" => self.end_turn(&asked.session, out),
            _ => {}
        }
    }

    /// The response to a request that the stream does not show.
    fn unasked(&mut self, id: &str, result: Result<&Value, ()>, out: &mut Findings<'_>) {
        if self.withdrawn.remove(id).is_some() {
            return;
        }
        let is_stop = result.is_ok_and(|result| result.get("stopReason").is_some());
        let named = if self.seen.marks { self.marked(id) } else { None };
        if let Some(result) = result.ok().filter(|_| is_stop || named.is_some()) {
            out.shape(&SHAPE, result, shape::result("session/prompt"));
        }
        if let Some(session) = named {
            return self.end_turn(&session, out);
        }
        if self.waiting.is_full() || self.withdrawn.is_full() {
            return;
        }
        if self.seen.client || self.seen.marks {
            out.add(&RESPONSE, format!("no request with the id {id} waits"));
        }
        let last = self.last.clone();
        let is_implied = self.sessions.get(&last).is_some_and(|talk| matches!(talk.turn, Some(Turn::Implied { .. })));
        if is_stop || is_implied {
            self.end_turn(&last, out);
        }
    }

    /// The session whose open turn has this name, which is compared as ids are written.
    fn marked(&self, turn: &str) -> Option<String> {
        let is_named = |talk: &Talk| match &talk.turn {
            Some(Turn::Marked { id, .. }) => written(id) == turn,
            Some(Turn::Prompted(_) | Turn::Implied { .. }) | None => false,
        };
        self.sessions.iter().find(|(_, talk)| is_named(talk)).map(|(session, _)| session.to_owned())
    }

    fn end_turn(&mut self, session: &str, out: &mut Findings<'_>) {
        let Some(talk) = self.sessions.get_mut(session) else { return };
        if !talk.end() {
            return;
        }
        // The answers of one who is not in the stream are not known.
        let is_known = self.seen.client || self.seen.marks;
        let waiting = self.waiting.of(Side::Agent);
        let open = waiting.iter().filter(|(_, asked)| asked.session == session);
        let open: Vec<_> = open.map(|(id, _)| id.to_owned()).collect();
        for id in open {
            let is_of_person =
                |asked: Asked| matches!(&*asked.method, "session/request_permission" | "elicitation/create");
            if waiting.remove(&id).is_some_and(is_of_person) && is_known {
                out.add(&OPEN_ASK, format!("the request {id} has no answer"));
            }
        }
    }

    fn withdraw(&mut self, from: Side, id: &Value, out: &mut Findings<'_>) {
        let id = written(id);
        let is_known = [from, Side::Agent, Side::Client].into_iter().any(|from| match from {
            Side::Agent => self.waiting.of(from).remove(&id).is_some(),
            // Its response is still to come.
            Side::Client => self.waiting.of(from).get(&id).is_some(),
        });
        if is_known {
            self.withdrawn.insert(&id, ());
        } else if self.seen.marks && !self.waiting.is_full() {
            out.add(&RESPONSE, format!("no request with the id {id} waits"));
        }
    }
}
