//! Whose a change is, by what is known of each span of time.

use std::collections::HashMap;
use std::path::PathBuf;

use tolka_facts::event::KeptWhy;

use super::unsaved::Unsaved;
use super::{Rules, Verdict, Whose};
use crate::checkpoint::changes::Difference;

/// All that is known of the paths that differ.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    touched: HashMap<PathBuf, Touched>,
    /// What the target's `.gitignore` files hide, if they are not the same now.
    pub(super) target: Rules,
    /// What the target and now do not hold.
    pub(super) unsaved: Vec<Unsaved>,
}

/// Who may have changed a path.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    ours: bool,
    theirs: bool,
}

impl Evidence {
    /// The path differs between the ends of a span; `is_uncovered`: it may have been there before, unseen.
    pub(super) fn add(&mut self, whose: &Whose, path: PathBuf, is_uncovered: bool) {
        let (ours, theirs) = match whose {
            Whose::Ours => (true, is_uncovered),
            Whose::Others => (false, true),
            Whose::Both { ours, theirs } => match (ours.contains(&path), theirs.contains(&path)) {
                (true, false) => (true, is_uncovered),
                (false, true) => (false, true),
                (true, true) | (false, false) => (true, true),
            },
        };
        let touched = self.touched.entry(path).or_default();
        touched.ours |= ours;
        touched.theirs |= theirs;
    }

    /// `difference` is from now to the target.
    pub(super) fn verdict(&self, difference: &Difference) -> Verdict {
        let is_hidden = difference.is.is_none() && self.target.hide(&difference.path);
        if is_hidden || self.unsaved.iter().any(|unsaved| unsaved.touches(&difference.path)) {
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
