use serde::Serialize;

/// The frames of one or more facts: payloads end to end in one buffer, so that a burst costs no allocation per frame.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Frames {
    /// Adds a frame: one line of JSON.
    pub fn push<T: Serialize + ?Sized>(&mut self, payload: &T) {
        // What dialects serialise has string keys only, and writing to a Vec cannot fail.
        let _ = serde_json::to_writer(&mut self.bytes, payload);
        self.ends.push(self.bytes.len());
    }

    /// Adds a frame that `write` makes; it must be one line of JSON.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// As [`Frames::push_with`], for a frame that is known to be worth telling only once it is written: `write` says so.
    pub fn push_if(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let start = self.bytes.len();
        match write(&mut self.bytes) {
            true => self.ends.push(self.bytes.len()),
            false => self.bytes.truncate(start),
        }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}
