//! What a process has printed: the end of it, with places that stay the same as more comes.

/// More is of no use to anybody who did not look in time.
const MOST: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Log {
    text: String,
    /// Bytes that came before what is kept.
    gone: u64,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// Where it begins: later than what was asked for, if that is no longer kept.
    pub from: u64,
    /// Where to read on.
    pub next: u64,
}

impl Log {
    pub(super) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        if self.text.len() > MOST {
            // A quarter more than needed, so that not every piece moves all of it.
            let cut = self.text.ceil_char_boundary(self.text.len() - MOST / 4 * 3);
            self.text.drain(..cut);
            self.gone += cut as u64;
        }
    }

    pub(super) fn from(&self, from: u64) -> Piece {
        let at = usize::try_from(from.saturating_sub(self.gone)).unwrap_or(usize::MAX).min(self.text.len());
        let at = self.text.floor_char_boundary(at);
        let next = self.gone + self.text.len() as u64;
        Piece { text: self.text[at..].to_owned(), from: self.gone + at as u64, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_and_old_words_go() {
        let mut log = Log::default();
        log.push("one ");
        let first = log.from(0);
        assert_eq!(first, Piece { text: "one ".to_owned(), from: 0, next: 4 });
        log.push("twö");
        assert_eq!(log.from(first.next), Piece { text: "twö".to_owned(), from: 4, next: 8 });
        assert_eq!(log.from(99), Piece { text: String::new(), from: 8, next: 8 });
        for _ in 0..3 {
            log.push(&"ö".repeat(MOST / 3));
        }
        let all = log.from(0);
        assert!(all.from > 0 && all.text.len() <= MOST && all.next == 8 + 3 * (MOST / 3 * 2) as u64);
        assert!(all.text.chars().all(|c| c == 'ö'));
    }
}
