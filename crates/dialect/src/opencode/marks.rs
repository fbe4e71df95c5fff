use serde::{Deserialize, Serialize};

/// Where state that grows was last told whole. Marks depend on lengths alone, never on time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    at: usize,
    next: usize,
    least: usize,
    fraction: usize,
}

impl Mark {
    /// For text: every 1/64 of its length, 32 bytes at least.
    pub(super) fn text() -> Self {
        Mark { at: 0, next: 0, least: 32, fraction: 64 }
    }

    /// For a command's live output: every 1/8, 1 KiB at least.
    pub(super) fn output() -> Self {
        Mark { at: 0, next: 0, least: 1024, fraction: 8 }
    }

    /// Whether the state is to be told whole at this length; if so, gives the length of the last time.
    pub(super) fn reached(&mut self, len: usize) -> Option<usize> {
        if len < self.next {
            return None;
        }
        let last = std::mem::replace(&mut self.at, len);
        self.next = len + self.least.max(len / self.fraction);
        Some(last)
    }

    pub(super) fn at(self) -> usize {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telling_the_whole_at_marks_costs_a_multiple_of_the_length() {
        let (mut mark, mut told) = (Mark::text(), 0);
        for len in (4..1_000_000).step_by(4) {
            told += if mark.reached(len).is_some() { len } else { 0 };
        }
        assert!(told < 66 * 1_000_000, "{told}");
    }
}
