//! Messages and their parts: what they are never changes, texts grow, tools and steps go their way.

use serde_json::Value;

use super::super::Profile;
use super::part;
use super::print::Print;
use super::rule;
use super::session::Session;
use crate::check::Findings;
use crate::recent::Recent;

const REMEMBERED_MESSAGES: usize = 16 * 1024;
const REMEMBERED_PARTS: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Messages {
    profile: Profile,
    known: Recent<Message>,
    parts: Recent<Part>,
}

#[derive(Debug, Default)]
struct Message {
    role: Role,
    /// Of its session's id.
    session: Option<Print>,
    /// How often its session had rested when it was first told.
    rests: u64,
    completed: Option<u64>,
    /// A step was started and not finished; after how many retries.
    step: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Role {
    /// Parts were told of it, and it was not.
    #[default]
    Unknown,
    User,
    Assistant,
}

#[derive(Debug)]
struct Part {
    /// Of its type, its message, its call and its tool.
    identity: Print,
    /// All that was told of its text.
    told: Print,
    /// The text as the last `message.part.updated` had it: clients of the document know no more.
    updated: Print,
    has_pieces: bool,
    tool: Option<Tool>,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tool {
    Pending,
    Running,
    Completed,
    Error,
}

impl Tool {
    fn of(part: &Value) -> Option<Self> {
        match part["state"]["status"].as_str()? {
            "pending" => Some(Tool::Pending),
            "running" => Some(Tool::Running),
            "completed" => Some(Tool::Completed),
            "error" => Some(Tool::Error),
            _ => None,
        }
    }
}

impl Messages {
    pub(super) fn new(profile: Profile) -> Self {
        Messages { profile, known: Recent::of(REMEMBERED_MESSAGES), parts: Recent::of(REMEMBERED_PARTS) }
    }

    pub(super) fn updated(&mut self, info: &Value, session: &mut Session, out: &mut Findings<'_>) {
        let Some(id) = info["id"].as_str() else { return };
        let role = match info["role"].as_str() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return,
        };
        if self.known.get(id).is_none() {
            self.known.insert(id, Message { rests: session.rests, ..Message::default() });
        }
        let Some(message) = self.known.get_mut(id) else { return };
        if message.role != Role::Unknown && message.role != role {
            out.add(&rule::SAME, format!("the role of `{id}` has changed"));
        }
        message.role = role;
        if !message.is_of(&info["sessionID"]) {
            return out.add(&rule::SAME, format!("`{id}` is of another session before"));
        }
        let completed = info["time"]["completed"].as_u64();
        if message.completed.is_some_and(|before| completed != Some(before)) {
            out.add(&rule::COMPLETED, format!("`{id}` was completed at another time before"));
        }
        message.completed = completed;
        if role == Role::Assistant {
            session.works(message.rests, out);
        }
    }

    pub(super) fn part_updated(&mut self, properties: &Value, session: &mut Session, out: &mut Findings<'_>) {
        let shown = &properties["part"];
        let (Some(id), Some(kind), Some(message_id)) =
            (shown["id"].as_str(), shown["type"].as_str(), shown["messageID"].as_str())
        else {
            return;
        };
        if part::PARTS.iter().all(|(name, _)| *name != kind) {
            return;
        }
        // The server forgets what old calls gave, also while nobody works.
        let is_pruned = shown["state"]["time"]["compacted"].is_number();
        let (role, rests) = self.owner(message_id, session, out);
        if role == Role::Assistant && !is_pruned {
            session.works(rests, out);
        }
        let of_another = self.known.get_mut(message_id).is_some_and(|message| !message.is_of(&shown["sessionID"]));
        if of_another {
            return out.add(&rule::SAME, format!("`{id}` is of another session than its message"));
        }
        let identity = Print::of(&format!("{kind} {message_id} {} {}", shown["callID"], shown["tool"]));
        let is_new = self.parts.get(id).is_none();
        if is_new {
            let (told, updated) = (Print::default(), Print::default());
            self.parts.insert(id, Part { identity, told, updated, has_pieces: false, tool: None });
        }
        let Some(known) = self.parts.get_mut(id) else { return };
        if known.identity != identity {
            session.tool_ended(id);
            return out.add(&rule::SAME, format!("`{id}` has become another part"));
        }
        match kind {
            // What was told of it before nobody knows.
            "text" | "reasoning" if is_new && !session.is_whole => known.text_begun(shown),
            "text" | "reasoning" => known.text_updated(properties, self.profile, role, out),
            "tool" => {
                known.tool_updated(shown, out);
                match known.tool {
                    Some(Tool::Pending | Tool::Running) if Tool::of(shown).is_some() => session.tool_works(id),
                    _ => session.tool_ended(id),
                }
            }
            "step-start" | "step-finish" if is_new => {
                if let Some(message) = self.known.get_mut(message_id) {
                    message.step(kind, session, out);
                }
            }
            _ => {}
        }
    }

    pub(super) fn part_delta(&mut self, properties: &Value, session: &mut Session, out: &mut Findings<'_>) {
        let text = |name: &str| properties[name].as_str();
        let (Some(id), Some(message), Some(delta)) = (text("partID"), text("messageID"), text("delta")) else { return };
        let may_be_forgotten = !session.is_whole || self.parts.is_full();
        match self.parts.get_mut(id) {
            Some(part) if properties["field"] == "text" => {
                part.told.push(delta);
                part.has_pieces = true;
            }
            Some(_) => {}
            None if may_be_forgotten => {}
            None => return out.add(&rule::PART_FIRST, format!("`{id}` was not told before")),
        }
        let (role, rests) = self.owner(message, session, out);
        if role == Role::Assistant {
            session.works(rests, out);
        }
    }

    /// The message of a part: its role, and how often its session had rested when it was told.
    fn owner(&mut self, id: &str, session: &Session, out: &mut Findings<'_>) -> (Role, u64) {
        if let Some(message) = self.known.get(id) {
            return (message.role, message.rests);
        }
        if session.is_whole && !self.known.is_full() {
            out.add(&rule::MESSAGE_FIRST, format!("`{id}` was not told before"));
        }
        self.known.insert(id, Message { rests: session.rests, ..Message::default() });
        (Role::Unknown, session.rests)
    }
}

impl Message {
    /// Whether this is its session, or the first that is heard of it.
    fn is_of(&mut self, session: &Value) -> bool {
        let Some(session) = session.as_str().map(Print::of) else { return true };
        *self.session.get_or_insert(session) == session
    }

    fn step(&mut self, kind: &str, session: &Session, out: &mut Findings<'_>) {
        let is_open = self.step.is_some_and(|retries| retries == session.retries);
        if kind == "step-start" {
            if is_open {
                out.add(&rule::STEPS, "a step starts, and the one before is not finished");
            }
            self.step = Some(session.retries);
        } else {
            if self.step.is_none() && session.is_whole {
                out.add(&rule::STEPS, "a step is finished that was not started");
            }
            self.step = None;
        }
    }
}

impl Part {
    fn tool_updated(&mut self, part: &Value, out: &mut Findings<'_>) {
        let Some(now) = Tool::of(part) else { return };
        match self.tool {
            Some(before @ (Tool::Completed | Tool::Error)) if now != before => {
                return out.add(&rule::TOOL_ORDER, format!("{} has ended before", part["callID"]));
            }
            Some(before) if now < before => {
                return out.add(&rule::TOOL_ORDER, format!("{} was running, and is pending again", part["callID"]));
            }
            _ => {}
        }
        self.tool = Some(now);
    }

    fn text_begun(&mut self, part: &Value) {
        let print = Print::of(part["text"].as_str().unwrap_or_default());
        (self.told, self.updated, self.has_pieces) = (print, print, false);
    }

    fn text_updated(&mut self, properties: &Value, profile: Profile, role: Role, out: &mut Findings<'_>) {
        let part = &properties["part"];
        let Some(text) = part["text"].as_str() else { return };
        let delta = properties["delta"].as_str();
        let before = Part { ..*self };
        self.text_begun(part);
        let rest = before.told.rest(text);
        let is_trimmed = part["time"]["end"].is_number() && before.told.is_trimmed(text);
        match rest {
            None if is_trimmed => {}
            None => return out.add(&rule::TEXT, "the text does not begin with what was told of it before"),
            Some(more) if !more.is_empty() && before.has_pieces => {
                return out.add(&rule::TEXT, "the text is more than its pieces add up to");
            }
            Some(_) => {}
        }
        match (profile, delta) {
            (Profile::Current, Some(_)) => out.add(&rule::NO_DELTA, "`delta` stands in a `message.part.updated`"),
            (Profile::Superset | Profile::Documented, Some(delta)) if before.updated.rest(text) != Some(delta) => {
                out.add(&rule::DELTA, "`delta` is not what was added to the text");
            }
            // Nobody shows the user's own words piece by piece.
            (Profile::Superset | Profile::Documented, None)
                if role == Role::Assistant && text.len() > before.updated.len() =>
            {
                out.add(&rule::DELTA, "the text has grown, and no `delta` says by what");
            }
            _ => {}
        }
    }
}
