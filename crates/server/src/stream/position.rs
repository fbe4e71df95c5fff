use std::fmt;
use std::str::FromStr;

/// The last frame that a reader has: frame `n` of the fact at `place`. Facts may have no frames at all, so
/// "all of this fact" is an `n` that no fact reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    pub(crate) place: u64,
    pub(crate) n: u32,
}

impl Cursor {
    /// Everything up to this fact, and all of it.
    pub(crate) fn whole(place: u64) -> Self {
        Cursor { place, n: u32::MAX }
    }

    /// Whether a reader at this cursor still lacks frame `n` of the fact at `place`.
    pub(super) fn lacks(self, place: u64, n: u32) -> bool {
        (place, n) > (self.place, self.n)
    }

    /// The place to read on from: a fact that was told in part is read again.
    pub(crate) fn before(self) -> u64 {
        if self.is_whole() { self.place } else { self.place.saturating_sub(1) }
    }

    pub(super) fn is_whole(self) -> bool {
        self.n == u32::MAX
    }

    /// A cursor of the feed of all sessions. Opaque to clients; the epoch says which journal gave it out.
    /// `None` if it is of another journal, or no cursor at all.
    pub(crate) fn of_feed(text: &str, epoch: &str) -> Option<Self> {
        text.strip_prefix(epoch)?.strip_prefix('.')?.parse().ok()
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() { write!(f, "{}", self.place) } else { write!(f, "{}.{}", self.place, self.n) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a position; positions look like 12 or 12.0, as `id:` lines and `position` fields give them")]
pub(crate) struct PositionError(String);

impl FromStr for Cursor {
    type Err = PositionError;

    /// `12.0`, or `12` for all of fact 12.
    fn from_str(text: &str) -> Result<Self, PositionError> {
        let wrong = || PositionError(text.chars().take(40).collect());
        match text.split_once('.') {
            None => text.parse().map(Cursor::whole).map_err(|_| wrong()),
            Some((place, n)) => {
                Ok(Cursor { place: place.parse().map_err(|_| wrong())?, n: n.parse().map_err(|_| wrong())? })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_as_they_are_written() {
        for text in ["0", "12", "12.0", "7.3"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "x", "1.", ".1", "1.2.3", "-1", "1.-1", "99999999999999999999"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
        assert_eq!(Cursor::of_feed("abc.12.1", "abc"), Some(Cursor { place: 12, n: 1 }));
        assert_eq!(Cursor::of_feed("abd.12.1", "abc"), None);
    }
}
