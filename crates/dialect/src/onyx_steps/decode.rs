use crate::{DecodeError, Heard, SseReader};

#[derive(Debug, Default)]
pub struct Decoder {
    reader: SseReader,
}

impl crate::Decoder for Decoder {
    fn feed(&mut self, bytes: &[u8], _: &mut Vec<Heard>) -> Result<(), DecodeError> {
        self.reader.feed(bytes, &mut Vec::new())
    }

    fn finish(&mut self, _: &mut Vec<Heard>) -> Result<(), DecodeError> {
        self.reader.finish(&mut Vec::new())
    }
}
