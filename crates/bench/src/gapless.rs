//! Whether a reader got every event once: the events of a stream are numbered, and each number must follow the last.

/// What one reader has seen of a numbered stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gapless {
    /// The number that must come now; any may come first.
    next: Option<u64>,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    /// Came twice, or late.
    pub(crate) doubled: u64,
}

impl Gapless {
    pub(crate) fn starting_at(first: u64) -> Self {
        Gapless { next: Some(first), ..Gapless::default() }
    }

    pub(crate) fn saw(&mut self, number: u64) {
        self.events += 1;
        match self.next {
            Some(next) if number < next => {
                self.doubled += 1;
                return;
            }
            Some(next) => self.lost += number - next,
            None => {}
        }
        self.next = Some(number + 1);
    }

    /// The stream is known to have gone up to `last`.
    pub(crate) fn ended_at(&mut self, last: u64) {
        if let Some(next) = self.next {
            self.lost += (last + 1).saturating_sub(next);
        }
    }

    pub(crate) fn last(&self) -> Option<u64> {
        self.next.and_then(|next| next.checked_sub(1))
    }
}

/// What all readers of a whole bench have seen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ledger {
    pub(crate) readers: u64,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
}

impl Ledger {
    pub(crate) fn add(&mut self, seen: &Gapless) {
        self.readers += 1;
        self.events += seen.events;
        self.lost += seen.lost;
        self.doubled += seen.doubled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(numbers: impl IntoIterator<Item = u64>) -> (u64, u64, u64) {
        let mut gapless = Gapless::default();
        numbers.into_iter().for_each(|number| gapless.saw(number));
        (gapless.events, gapless.lost, gapless.doubled)
    }

    #[test]
    fn a_whole_stream_lacks_nothing() {
        assert_eq!(seen(7..1007), (1000, 0, 0));
    }

    #[test]
    fn a_gap_is_counted_by_its_width() {
        assert_eq!(seen([1, 2, 3, 7, 8, 10]), (6, 4, 0));
    }

    #[test]
    fn what_comes_again_or_late_is_counted_and_is_no_gap() {
        assert_eq!(seen([1, 2, 2, 3, 1, 4]), (6, 0, 2));
    }

    #[test]
    fn what_lacks_at_either_end_is_lost_too() {
        let mut gapless = Gapless::starting_at(1);
        gapless.saw(3);
        gapless.ended_at(5);
        assert_eq!((gapless.lost, gapless.doubled), (4, 0));
    }
}
