use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const CHUNK: usize = 16 * 1024;

/// Text that grows at its end and is cheap to copy: copies share all but the last chunk. A session's tip is copied for
/// everybody who asks for it, and the text that is open in it may be long.
///
/// As JSON it is a plain string.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(type = "string"))]
pub struct Rope {
    /// The list is shared too: it is written anew when a chunk is full, not when the rope is copied.
    full: Arc<Vec<Arc<str>>>,
    /// Bytes in full chunks.
    full_len: usize,
    tail: String,
}

impl Rope {
    pub fn push(&mut self, text: &str) {
        self.tail.push_str(text);
        if self.tail.len() >= CHUNK {
            self.full_len += self.tail.len();
            Arc::make_mut(&mut self.full).push(Arc::from(self.tail.as_str()));
            self.tail.clear();
        }
    }

    pub fn len(&self) -> usize {
        self.full_len + self.tail.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn pieces(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.full.iter().map(|c| &**c).chain(std::iter::once(self.tail.as_str()))
    }

    /// The text from byte `from` on; `from` must be a length that the rope once had.
    pub fn since(&self, from: usize) -> Since<'_> {
        // Found from the end: what is asked for is what came last.
        let (mut chunk, mut start) = (self.full.len(), self.full_len);
        while start > from && chunk > 0 {
            chunk -= 1;
            start -= self.full[chunk].len();
        }
        Since { rope: self, chunk, skip: from.saturating_sub(start) }
    }

    /// The text before byte `to`, which must be a length that the rope once had.
    pub fn until(&self, to: usize) -> Rope {
        let mut rope = Rope::default();
        for piece in self.pieces() {
            let end = piece.len().min(to.saturating_sub(rope.len()));
            rope.push(piece.get(..end).unwrap_or_default());
        }
        rope
    }
}

/// The end of a rope, where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Since<'a> {
    rope: &'a Rope,
    /// The first chunk of which something is left; the tail comes after the full ones.
    chunk: usize,
    /// Bytes of it that are not.
    skip: usize,
}

impl<'a> Since<'a> {
    pub fn is_empty(&self) -> bool {
        self.pieces().all(str::is_empty)
    }

    pub fn pieces(&self) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        let (rope, first, skip) = (self.rope, self.chunk, self.skip);
        (first..=rope.full.len()).map(move |chunk| {
            let text = rope.full.get(chunk).map_or(rope.tail.as_str(), |full| full);
            if chunk == first { text.get(skip..).unwrap_or_default() } else { text }
        })
    }
}

impl fmt::Display for Since<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

impl Serialize for Since<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Rope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.since(0).fmt(f)
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
        for from in lengths.iter().step_by(97).chain(lengths.last()) {
            let since = rope.since(*from);
            assert_eq!(since.to_string(), whole[*from..]);
            assert_eq!(since.is_empty(), *from == whole.len());
            assert_eq!(rope.until(*from).to_string(), whole[..*from]);
        }
    }

    #[test]
    fn a_copy_shares_what_is_full_and_goes_its_own_way() {
        let mut rope = Rope::default();
        (0..10).for_each(|_| rope.push(&"x".repeat(CHUNK / 2)));
        let mut copy = rope.clone();
        assert!(Arc::ptr_eq(&rope.full, &copy.full), "copying copies no list of chunks");
        (0..4).for_each(|_| copy.push(&"y".repeat(CHUNK / 2)));
        assert!(rope.full.iter().zip(&*copy.full).all(|(one, other)| Arc::ptr_eq(one, other)));
        assert_eq!((rope.len(), copy.len()), (5 * CHUNK, 7 * CHUNK));
        assert!(!rope.to_string().contains('y') && copy.to_string().ends_with('y'));
    }
}
