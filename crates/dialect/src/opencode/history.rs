//! Messages and parts as the routes list them, folded from the very events that streams carry: what a
//! client reads and what it was told cannot differ.

use serde_json::{Map, Value, json};
use tolka_facts::MessageId;

#[derive(Debug, Clone, Default)]
pub struct History {
    messages: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    id: String,
    info: Value,
    parts: Vec<(String, Value)>,
}

impl History {
    /// Takes one frame of the `Current` profile.
    pub fn apply(&mut self, frame: &[u8]) {
        self.take(frame, true);
    }

    /// Takes what one frame does to the messages that are known.
    pub fn apply_to_known(&mut self, frame: &[u8]) {
        self.take(frame, false);
    }

    fn take(&mut self, frame: &[u8], takes_new: bool) {
        let Ok(Value::Object(mut frame)) = serde_json::from_slice::<Value>(frame) else { return };
        let (Some(Value::String(kind)), Some(Value::Object(mut properties))) =
            (frame.remove("type"), frame.remove("properties"))
        else {
            return;
        };
        match kind.as_str() {
            "message.updated" => {
                if let Some(info) = properties.remove("info") {
                    let id = text(&info, "id");
                    match self.messages.iter_mut().rev().find(|entry| entry.id == id) {
                        Some(entry) => entry.info = info,
                        None if takes_new => self.messages.push(Entry { id, info, parts: Vec::new() }),
                        None => {}
                    }
                }
            }
            "message.removed" => {
                let id = properties.get("messageID").and_then(Value::as_str).unwrap_or_default();
                self.messages.retain(|entry| entry.id != id);
            }
            "message.part.updated" => {
                if let Some(part) = properties.remove("part") {
                    self.set_part(part);
                }
            }
            "message.part.delta" => self.append(&properties),
            _ => {}
        }
    }

    fn set_part(&mut self, part: Value) {
        let (message, id) = (text(&part, "messageID"), text(&part, "id"));
        let Some(entry) = self.messages.iter_mut().rev().find(|entry| entry.id == message) else { return };
        match entry.parts.iter_mut().rev().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = part,
            None => entry.parts.push((id, part)),
        }
    }

    fn append(&mut self, properties: &Map<String, Value>) {
        let field = |name: &str| properties.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(entry) = self.messages.iter_mut().rev().find(|entry| entry.id == field("messageID")) else { return };
        let Some((_, part)) = entry.parts.iter_mut().rev().find(|(known, _)| known == field("partID")) else { return };
        if let Some(Value::String(known)) = part.get_mut(field("field")) {
            known.push_str(field("delta"));
        }
    }

    pub fn messages(&self) -> impl Iterator<Item = Value> + '_ {
        self.messages.iter().map(Entry::json)
    }

    pub fn message(&self, id: &str) -> Option<Value> {
        self.messages.iter().rev().find(|entry| entry.id == id).map(Entry::json)
    }

    /// The last message of an agent in answer to one of a user's messages: what a waiting prompt returns.
    pub fn answer(&self, parents: &[MessageId]) -> Option<Value> {
        let is_answer = |entry: &&Entry| parents.iter().any(|parent| entry.info["parentID"] == parent.as_str());
        self.messages.iter().rev().find(is_answer).map(Entry::json)
    }
}

impl Entry {
    fn json(&self) -> Value {
        let parts: Vec<&Value> = self.parts.iter().map(|(_, part)| part).collect();
        json!({ "info": self.info, "parts": parts })
    }
}

fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}
