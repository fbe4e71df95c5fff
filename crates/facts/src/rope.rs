use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const CHUNK: usize = 16 * 1024;

/// Text that grows at its end and is cheap to copy: full chunks are shared between copies.
///
/// As JSON it is a plain string.
#[derive(Debug, Clone, Default)]
pub struct Rope {
    full: Vec<Arc<str>>,
    tail: String,
}

impl Rope {
    pub fn push(&mut self, text: &str) {
        self.tail.push_str(text);
        if self.tail.len() >= CHUNK {
            self.full.push(Arc::from(std::mem::take(&mut self.tail)));
        }
    }

    pub fn len(&self) -> usize {
        self.full.iter().map(|c| c.len()).sum::<usize>() + self.tail.len()
    }

    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.tail.is_empty()
    }

    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.full.iter().map(|c| &**c).chain(std::iter::once(self.tail.as_str()))
    }

    /// The text from byte `from` on; `from` must be a length that the rope once had.
    pub fn since(&self, from: usize) -> String {
        let mut skip = from;
        let mut text = String::with_capacity(self.len().saturating_sub(from));
        for piece in self.pieces() {
            if skip < piece.len() {
                text.push_str(&piece[skip..]);
                skip = 0;
            } else {
                skip -= piece.len();
            }
        }
        text
    }
}

impl std::fmt::Display for Rope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

impl From<&str> for Rope {
    fn from(text: &str) -> Self {
        let mut rope = Rope::default();
        rope.push(text);
        rope
    }
}

impl PartialEq for Rope {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.to_string() == other.to_string()
    }
}

impl Serialize for Rope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Rope::from(text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_gives_the_rest_at_every_length_it_had() {
        let mut rope = Rope::default();
        let mut whole = String::new();
        let mut lengths = vec![0];
        for i in 0..5000 {
            let piece = format!("piece {i} ö ");
            rope.push(&piece);
            whole.push_str(&piece);
            lengths.push(whole.len());
        }
        assert_eq!(rope.to_string(), whole);
        for from in lengths.iter().step_by(97) {
            assert_eq!(rope.since(*from), whole[*from..]);
        }
    }
}
