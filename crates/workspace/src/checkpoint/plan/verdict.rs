//! Whose a change is, by what is known of each span of time.

use std::collections::HashMap;
use std::path::PathBuf;

use tolka_facts::event::KeptWhy;

use super::{Rules, Verdict, Whose};
use crate::checkpoint::changes::Difference;

/// All that is known of the paths that differ.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    touched: HashMap<PathBuf, Touched>,
    /// What the target's `.gitignore` files hide, if they are not the same now.
    pub(super) target: Rules,
}

/// Who may have changed a path.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    ours: bool,
    theirs: bool,
}

impl Evidence {
    /// `rules` are those from the span's beginning.
    pub(super) fn add(&mut self, whose: &Whose, change: Difference, rules: &Rules) {
        // It may have been there all the time, unseen.
        let is_uncovered = change.was.is_none() && rules.hide(&change.path);
        let (ours, theirs) = match whose {
            Whose::Ours => (true, is_uncovered),
            Whose::Others => (is_uncovered, true),
            Whose::Both { ours, theirs } => match (ours.contains(&change.path), theirs.contains(&change.path)) {
                (true, false) => (true, is_uncovered),
                (false, true) => (is_uncovered, true),
                (true, true) | (false, false) => (true, true),
            },
        };
        let touched = self.touched.entry(change.path).or_default();
        touched.ours |= ours;
        touched.theirs |= theirs;
    }

    /// `difference` is from now to the target.
    pub(super) fn verdict(&self, difference: &Difference) -> Verdict {
        if difference.is.is_none() && self.target.hide(&difference.path) {
            return Verdict::Stays(KeptWhy::NotSaved);
        }
        match self.touched.get(&difference.path) {
            Some(Touched { ours: true, theirs: false }) => Verdict::Goes,
            Some(Touched { ours: false, theirs: true }) => Verdict::Stays(KeptWhy::NotOurs),
            // What no span tells of may be anybody's.
            Some(Touched { .. }) | None => Verdict::Stays(KeptWhy::Conflict),
        }
    }
}
