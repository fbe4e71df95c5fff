//! Text and thoughts, in the three ways that clients expect them.
//!
//! These frames are most of a stream, and some hold a whole text: they are written by hand.

use tolka_facts::{OpenText, Rope, Since, Voice, derived_id};

use super::super::Profile;
use super::super::marks::Mark;
use super::Telling;
use crate::quoted::quoted;

impl Telling<'_> {
    pub(super) fn text(&mut self, piece: &str) {
        let Some(open) = self.tip.turn.as_ref().and_then(|turn| turn.text.as_ref()) else { return };
        let id = text_part_id(open);
        let is_first = open.first_seq == self.fact.seq;
        let mut mark = if is_first { Mark::text() } else { self.told.text.unwrap_or_else(Mark::text) };
        let last = mark.reached(open.text.len());
        self.told.text = Some(mark);
        if self.profile == Profile::Documented {
            let piece = open.text.since(open.text.len() - piece.len());
            return self.text_part(open, &id, &open.text, None, Some(piece));
        }
        if is_first {
            self.text_part(open, &id, &Rope::default(), None, None);
        }
        self.delta(open, &id, piece);
        if let (Profile::Superset, Some(last)) = (self.profile, last) {
            self.text_part(open, &id, &open.text, None, Some(open.text.since(last)));
        }
    }

    pub(super) fn text_ended(&mut self, open: &OpenText) {
        let last = self.told.text.take().map_or(0, Mark::at);
        let since = match self.profile {
            Profile::Superset => Some(open.text.since(last)).filter(|since| !since.is_empty()),
            Profile::Current | Profile::Documented => None,
        };
        self.text_part(open, &text_part_id(open), &open.text, Some(self.fact.time.millis()), since);
    }

    /// A text that is there all at once, for clients of every kind.
    pub(super) fn whole_text(&mut self, said: &OpenText) {
        let (id, end) = (said.part.as_str(), Some(self.fact.time.millis()));
        let piece = || Some(said.text.since(0));
        match self.profile {
            Profile::Documented => {
                self.text_part(said, id, &said.text, None, piece());
                self.text_part(said, id, &said.text, end, None);
            }
            Profile::Superset | Profile::Current => {
                self.text_part(said, id, &Rope::default(), None, None);
                self.delta(said, id, &said.text.to_string());
                let since = piece().filter(|since| self.profile == Profile::Superset && !since.is_empty());
                self.text_part(said, id, &said.text, end, since);
            }
        }
    }

    fn delta(&mut self, open: &OpenText, id: &str, piece: &str) {
        let (event, session) = (self.event_id(), self.session());
        self.out.push_with(|out| {
            field(r#"{"id":"#, &event, out);
            field(r#","type":"message.part.delta","properties":{"sessionID":"#, session, out);
            field(r#","messageID":"#, open.message.as_str(), out);
            field(r#","partID":"#, id, out);
            field(r#","field":"text","delta":"#, piece, out);
            out.extend_from_slice(b"}}");
        });
    }

    fn text_part(&mut self, open: &OpenText, id: &str, text: &Rope, end: Option<u64>, delta: Option<Since<'_>>) {
        let (event, session, now) = (self.event_id(), self.session(), self.fact.time.millis());
        let kind = match open.voice {
            Voice::Text => "text",
            Voice::Thought => "reasoning",
        };
        self.out.push_with(|out| {
            field(r#"{"id":"#, &event, out);
            field(r#","type":"message.part.updated","properties":{"sessionID":"#, session, out);
            field(r#","part":{"id":"#, id, out);
            field(r#","sessionID":"#, session, out);
            field(r#","messageID":"#, open.message.as_str(), out);
            field(r#","type":"#, kind, out);
            out.extend_from_slice(br#","text":"#);
            quoted(text.pieces(), out);
            number(r#","time":{"start":"#, open.started.millis(), out);
            if let Some(end) = end {
                number(r#","end":"#, end, out);
            }
            number(r#"}},"time":"#, now, out);
            if let Some(delta) = delta {
                out.extend_from_slice(br#","delta":"#);
                quoted(delta.pieces(), out);
            }
            out.extend_from_slice(b"}}");
        });
    }
}

fn field(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    quoted([value], out);
}

fn number(name: &str, value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    // Writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, &value);
}

fn text_part_id(open: &OpenText) -> String {
    derived_id("prt", open.started, open.first_seq, 0)
}
