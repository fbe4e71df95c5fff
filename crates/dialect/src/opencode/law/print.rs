/// What is known of a text that grows: enough to know it again, and no more of it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    len: usize,
    hash: u64,
    /// The same without the blanks at its end.
    solid: (usize, u64),
}

/// FNV-1a, which takes a text piece by piece.
const SEED: u64 = 0xcbf2_9ce4_8422_2325;

impl Default for Print {
    fn default() -> Self {
        Print { len: 0, hash: SEED, solid: (0, SEED) }
    }
}

impl Print {
    pub(super) fn of(text: &str) -> Self {
        let mut print = Print::default();
        print.push(text);
        print
    }

    pub(super) fn push(&mut self, piece: &str) {
        let solid = piece.trim_end();
        if !solid.is_empty() {
            self.add(solid);
            self.solid = (self.len, self.hash);
        }
        self.add(&piece[solid.len()..]);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What `text` has beyond this one; `None` if it does not begin with it.
    pub(super) fn rest<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (start, rest) = text.split_at_checked(self.len)?;
        (Print::of(start).hash == self.hash).then_some(rest)
    }

    /// Whether `text` is this one with blanks cut off at its end.
    pub(super) fn is_trimmed(&self, text: &str) -> bool {
        text.len() == self.solid.0 && Print::of(text).hash == self.solid.1
    }

    fn add(&mut self, piece: &str) {
        self.len += piece.len();
        self.hash = piece.bytes().fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_again_however_it_came() {
        let mut print = Print::default();
        ["Hé", "", " 😀", " \n", " "].iter().for_each(|piece| print.push(piece));
        assert_eq!(print, Print::of("Hé 😀 \n "));
        assert_eq!(print.rest("Hé 😀 \n on"), Some("on"));
        assert_eq!(print.rest("Hé 😀 \n "), Some(""));
        assert_eq!((print.rest("Hé 😀"), print.rest("He 😀 \n on")), (None, None));
        assert_eq!((print.is_trimmed("Hé 😀"), print.is_trimmed("Hé 😃")), (true, false));
        assert!(Print::of(" \n").is_trimmed(""));
    }
}
