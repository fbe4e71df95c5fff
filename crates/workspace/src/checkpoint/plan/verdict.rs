//! Whose a change is, by what is known of each span of time.

use std::collections::HashMap;
use std::path::PathBuf;

use tolka_facts::event::KeptWhy;

use super::unsaved::Unsaved;
use super::{Missed, Proofs, Rules, Span, Verdict, Whose};
use crate::checkpoint::changes::Difference;

/// All that is known of the paths that differ.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    touched: HashMap<PathBuf, Touched>,
    /// Of what was told.
    pub(super) proofs: Proofs,
    /// Of what was restored.
    pub(super) missed: Missed,
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

/// Whose a change in a span is, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Ours,
    Theirs,
    /// May be either's.
    Unclear,
}

impl Told {
    fn by(ours: bool, theirs: bool) -> Self {
        match (ours, theirs) {
            (true, false) => Told::Ours,
            (false, true) => Told::Theirs,
            (true, true) | (false, false) => Told::Unclear,
        }
    }
}

impl Evidence {
    /// The path differs between the ends of a span; `is_uncovered`: it may have been there before, unseen.
    pub(super) fn add(&mut self, span: &Span, change: Difference, is_uncovered: bool) {
        let told = match &span.whose {
            Whose::Ours => Told::Ours,
            Whose::Others => Told::Theirs,
            Whose::Both { ours, theirs } => Told::by(ours.contains(&change.path), theirs.contains(&change.path)),
            Whose::Anybodys { wrote, theirs } => match wrote.get(&change.path) {
                Some(wrote) if !self.proofs.hold(wrote, &change) => Told::Unclear,
                wrote => Told::by(wrote.is_some(), theirs.contains(&change.path)),
            },
            Whose::Restored { target, files, theirs } => {
                let is_named = files.as_ref().is_none_or(|files| files.contains(&change.path));
                let is_done = is_named && !self.missed.has(&span.to, target, &change);
                Told::by(is_done, theirs.contains(&change.path))
            }
        };
        let touched = self.touched.entry(change.path).or_default();
        touched.ours |= told != Told::Theirs;
        touched.theirs |= told != Told::Ours || is_uncovered;
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
