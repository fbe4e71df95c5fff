//! Text that the wire repeats: what of it is new? Only lengths and fingerprints are kept, so that a
//! decoder's memory does not grow with what it reads.

/// What is known of a text that was told so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Grown {
    whole: Print,
    /// Up to its last character that is not white space.
    solid: Print,
}

/// What a text is, compared to what was known of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Growth<'a> {
    Same,
    /// Only this is new.
    More(&'a str),
    /// It does not begin with what was known.
    Replaced,
}

impl Grown {
    pub(super) fn push(&mut self, piece: &str) {
        let solid = piece.trim_end().len();
        if solid > 0 {
            self.solid = self.whole.and(&piece.as_bytes()[..solid]);
        }
        self.whole = self.whole.and(piece.as_bytes());
    }

    /// Compares with the whole text as it is told now, and takes it over.
    pub(super) fn tell<'a>(&mut self, text: &'a str) -> Growth<'a> {
        if self.whole.begins(text) {
            let more = &text[self.whole.len..];
            self.push(more);
            return if more.is_empty() { Growth::Same } else { Growth::More(more) };
        }
        // OpenCode trims a text when it ends. The blanks were told and cannot be taken back; nobody misses it.
        if self.solid.begins(text) && text[self.solid.len..].trim_start().is_empty() {
            return Growth::Same;
        }
        *self = Grown::default();
        self.push(text);
        Growth::Replaced
    }
}

/// FNV-1a and a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    len: usize,
    hash: u64,
}

impl Print {
    pub(super) fn of(text: &str) -> Print {
        Print::default().and(text.as_bytes())
    }

    fn and(self, bytes: &[u8]) -> Print {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Print { len: self.len + bytes.len(), hash: bytes.iter().fold(self.hash, step) }
    }

    fn begins(self, text: &str) -> bool {
        text.get(..self.len).is_some_and(|head| Print::of(head) == self)
    }
}

impl Default for Print {
    fn default() -> Self {
        Print { len: 0, hash: 0xcbf2_9ce4_8422_2325 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_new_end_once() {
        let mut grown = Grown::default();
        assert_eq!(grown.tell(""), Growth::Same);
        assert_eq!(grown.tell("hé"), Growth::More("hé"));
        grown.push("llo  \n");
        assert_eq!(grown.tell("héllo  \n"), Growth::Same);
        assert_eq!(grown.tell("héllo"), Growth::Same, "trimmed at its end");
        assert_eq!(grown.tell("héllo  \nyou"), Growth::More("you"));
        assert_eq!(grown.tell("h"), Growth::Replaced);
        assert_eq!(grown.tell("hi"), Growth::More("i"));
    }
}
