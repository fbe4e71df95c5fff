//! Text and thoughts, in the three ways that clients expect them.

use tolka_facts::{OpenText, Rope, Voice, derived_id};

use super::super::Profile;
use super::super::marks::Mark;
use super::super::wire::{PartDelta, Span, TextPart};
use super::Telling;

impl Telling<'_> {
    pub(super) fn text(&mut self, piece: &str) {
        let Some(open) = self.tip.turn.as_ref().and_then(|turn| turn.text.as_ref()) else { return };
        let id = text_part_id(open);
        let is_first = open.first_seq == self.fact.seq;
        let mut mark = if is_first { Mark::text() } else { self.told.text.unwrap_or_else(Mark::text) };
        let last = mark.reached(open.text.len());
        self.told.text = Some(mark);
        if self.profile == Profile::Documented {
            return self.text_part(open, &id, &open.text, None, Some(piece));
        }
        if is_first {
            self.text_part(open, &id, &Rope::default(), None, None);
        }
        let (session_id, message_id) = (self.session(), open.message.as_str());
        self.event(
            "message.part.delta",
            PartDelta { session_id, message_id, part_id: &id, field: "text", delta: piece },
        );
        if let (Profile::Superset, Some(last)) = (self.profile, last) {
            let since = open.text.since(last);
            self.text_part(open, &id, &open.text, None, Some(&since));
        }
    }

    pub(super) fn text_ended(&mut self, open: &OpenText) {
        let last = self.told.text.take().map_or(0, Mark::at);
        let since = match self.profile {
            Profile::Superset => open.text.since(last),
            Profile::Current | Profile::Documented => String::new(),
        };
        let delta = (!since.is_empty()).then_some(since.as_str());
        self.text_part(open, &text_part_id(open), &open.text, Some(self.fact.time.millis()), delta);
    }

    pub(super) fn text_part(&mut self, open: &OpenText, id: &str, text: &Rope, end: Option<u64>, delta: Option<&str>) {
        let part = TextPart {
            id,
            session_id: self.session(),
            message_id: open.message.as_str(),
            r#type: match open.voice {
                Voice::Text => "text",
                Voice::Thought => "reasoning",
            },
            text,
            time: Span { start: open.started.millis(), end },
        };
        self.part(part, delta);
    }
}

fn text_part_id(open: &OpenText) -> String {
    derived_id("prt", open.started, open.first_seq, 0)
}
