//! Which dialect a stream is in, by its first packets. Three families tag their packets with `type` alone; the names
//! that they share (`error`) decide nothing, those that only one of them has do.

use serde_json::Value;

use crate::{Dialect, SseReader, onyx, opencode};

/// Known by their packets' names.
const TAGGED: [Dialect; 3] = [Dialect::AgentSmithy, Dialect::Onyx(onyx::Profile::Documented), Dialect::OnyxSteps];

impl Dialect {
    /// `head` is the beginning of a stream, cut anywhere. `None` if it could be several, or is none that we know; a
    /// longer beginning may decide it. Of a family's profiles it is the one that bears the family's name.
    pub fn guess(head: &[u8]) -> Option<Dialect> {
        let mut reader = SseReader::default();
        for line in head.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            let mut events = Vec::new();
            // A line that cannot be read says nothing about the dialect, and the next one may.
            let _ = reader.feed(line, &mut events);
            let packets = events.iter().filter_map(|event| serde_json::from_str(&event.data).ok());
            if let Some(known) = packets.into_iter().find_map(|packet: Value| of(&packet)) {
                return Some(known);
            }
        }
        None
    }
}

fn of(packet: &Value) -> Option<Dialect> {
    let has = |names: &[&str]| names.iter().all(|name| packet.get(name).is_some());
    if has(&["v", "session", "seq"]) {
        return Some(Dialect::Tolka);
    }
    if has(&["jsonrpc"]) || has(&["dir", "msg"]) {
        return Some(Dialect::Acp);
    }
    // The feed over all projects wraps its events.
    let event = packet.get("payload").unwrap_or(packet);
    if event["type"].is_string() && (event["properties"].is_object() || event["syncEvent"].is_object()) {
        return Some(Dialect::OpenCode(opencode::Profile::Superset));
    }
    let name = packet["type"].as_str()?;
    let mut known =
        TAGGED.into_iter().filter(|dialect| dialect.carriage().iter().any(|row| row.1.frames().contains(&name)));
    known.next().filter(|_| known.next().is_none())
}
