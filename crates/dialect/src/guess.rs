//! Which dialect a stream is in, by its first packets. Three families tag their packets with `type` alone; the names
//! that they share (`error`) decide nothing, those that only one of them has do.

use serde_json::Value;

use crate::{Dialect, SseReader, onyx, opencode};

/// A stream that is heard until it is clear what is spoken.
#[derive(Debug, Default)]
pub struct Guess {
    reader: SseReader,
}

impl Guess {
    /// Takes the next bytes of the stream, cut anywhere. `None` if it could still be several, or is none that we know;
    /// what follows may decide it. Of a family's profiles it is the one that bears the family's name.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Dialect> {
        let mut events = Vec::new();
        // A line that cannot be read says nothing about the dialect, and the next one may.
        let _ = self.reader.feed(bytes, &mut events);
        events.iter().filter_map(|event| serde_json::from_str(&event.data).ok()).find_map(|packet| of(&packet))
    }
}

/// How the packets of a dialect are known.
enum Mark {
    /// By fields that no other family has.
    Fields(fn(&Value) -> bool),
    /// By their names; other families have some of them, too.
    Names,
    /// As those of the profile that bears the family's name.
    Family,
}

fn mark(dialect: Dialect) -> Mark {
    match dialect {
        Dialect::Tolka => Mark::Fields(|packet| has(packet, &["v", "session", "seq"])),
        Dialect::Acp => Mark::Fields(|packet| has(packet, &["jsonrpc"]) || has(packet, &["dir", "msg"])),
        Dialect::OpenCode(opencode::Profile::Superset) => Mark::Fields(is_opencode),
        Dialect::AgentSmithy | Dialect::Onyx(onyx::Profile::Documented) | Dialect::OnyxSteps => Mark::Names,
        Dialect::Onyx(onyx::Profile::Current)
        | Dialect::OpenCode(opencode::Profile::Current | opencode::Profile::Documented) => Mark::Family,
    }
}

fn has(packet: &Value, names: &[&str]) -> bool {
    names.iter().all(|name| packet.get(name).is_some())
}

fn is_opencode(packet: &Value) -> bool {
    // The feed over all projects wraps its events.
    let event = packet.get("payload").unwrap_or(packet);
    event["type"].is_string() && (event["properties"].is_object() || event["syncEvent"].is_object())
}

fn of(packet: &Value) -> Option<Dialect> {
    let has_fields = |dialect: &Dialect| matches!(mark(*dialect), Mark::Fields(has) if has(packet));
    if let Some(known) = Dialect::ALL.into_iter().find(has_fields) {
        return Some(known);
    }
    let name = packet["type"].as_str()?;
    let has_name = |dialect: &Dialect| {
        matches!(mark(*dialect), Mark::Names) && dialect.carriage().iter().any(|row| row.1.frames().contains(&name))
    };
    let mut known = Dialect::ALL.into_iter().filter(has_name);
    known.next().filter(|_| known.next().is_none())
}
