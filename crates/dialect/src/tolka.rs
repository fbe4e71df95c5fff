//! Our own wire: each fact is one frame, as the journal stores it (`Fact`'s JSON, with its version in `v`).
//! A value of over 32 KiB stands in it as a head and a hash; `/v1/blobs/{hash}` has the whole.

mod carriage;
mod law;

use tolka_facts::{Blobs, Draft, Fact, FactError, Tip};

use crate::sse::read_all;
use crate::{DecodeError, Frames, Heard, SseEvent, SseReader};

pub(crate) use carriage::CARRIAGE;
pub(crate) use law::law;

#[derive(Debug, Clone, Copy, Default)]
pub struct Encoder;

impl crate::Encoder for Encoder {
    fn encode(&mut self, fact: &Fact, _: &Tip, _: &dyn Blobs, out: &mut Frames) {
        out.push_with(|bytes| fact.write_json(bytes));
    }

    fn state(&self) -> Vec<u8> {
        Vec::new()
    }
}

#[derive(Debug, Default)]
pub struct Decoder {
    reader: SseReader,
}

impl crate::Decoder for Decoder {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.feed(bytes, &mut events);
        hear_all(&events, out).and(read)
    }

    fn finish(&mut self, out: &mut Vec<Heard>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.reader.finish(&mut events);
        hear_all(&events, out).and(read)
    }
}

fn hear_all(events: &[SseEvent], out: &mut Vec<Heard>) -> Result<(), DecodeError> {
    read_all(events, |event| {
        let fact = Fact::from_json(event.data.as_bytes())?;
        let draft = Draft { cause: fact.cause, event: fact.event, raw: fact.raw };
        out.push(Heard { session: Some(fact.session), time: Some(fact.time), draft });
        Ok::<_, FactError>(())
    })
}
