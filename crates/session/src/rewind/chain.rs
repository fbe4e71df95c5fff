//! Whose work stands between a snapshot and now: a session's moments, made into the spans that a plan goes by.

use std::collections::HashSet;
use std::path::PathBuf;

use tolka_facts::Time;
use tolka_workspace::checkpoint::{Span, Whose};

/// A moment of a session that says something about its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) seq: u64,
    pub(crate) time: Time,
    /// `None`: it could not be saved.
    pub(crate) commit: Option<String>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From here on a turn works. What it told it had changed is known here if nothing is known of its end.
    Started { told: HashSet<PathBuf> },
    /// Up to here a turn worked.
    Ended { told: HashSet<PathBuf>, is_certain: bool },
    /// Up to here nobody of ours worked, and neither from here on.
    Rest,
    /// The same, and all before it was copied from another session.
    Forked,
    /// Up to here a restore worked. `None`: on more files than anybody wrote down.
    Restored { files: Option<HashSet<PathBuf>> },
}

/// What another session did in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) from: Time,
    /// `None`: it goes on.
    pub(crate) to: Option<Time>,
    pub(crate) paths: HashSet<PathBuf>,
}

/// Whether anybody else's work has to be looked at.
pub(crate) fn is_certain(moments: &[Moment]) -> bool {
    spans(moments, &[]).iter().all(|span| !matches!(span.whose, Whose::Both { .. }))
}

/// What happened from the first moment to the last, between those that were saved.
pub(crate) fn spans(moments: &[Moment], foreign: &[Foreign]) -> Vec<Span> {
    let Some(first) = moments.first() else { return Vec::new() };
    let mut spans = Vec::new();
    let mut last = first.commit.clone();
    let mut stretch = Stretch::since(first.time);
    for pair in moments.windows(2) {
        let [before, moment] = pair else { continue };
        stretch.work(&before.kind, &moment.kind);
        let Some(commit) = &moment.commit else { continue };
        if let Some(from) = last.replace(commit.clone()) {
            let whose = stretch.whose(moment.time, foreign);
            spans.push(Span { from, to: commit.clone(), whose });
        }
        stretch = Stretch::since(moment.time);
    }
    spans
}

/// The time since the last snapshot.
struct Stretch {
    since: Time,
    is_ours: bool,
    is_others: bool,
    is_certain: bool,
    ours: HashSet<PathBuf>,
}

impl Stretch {
    fn since(since: Time) -> Self {
        Stretch { since, is_ours: false, is_others: false, is_certain: true, ours: HashSet::new() }
    }

    /// Takes in who worked between two moments.
    fn work(&mut self, before: &Kind, after: &Kind) {
        match (before, after) {
            (_, Kind::Restored { files }) => {
                self.is_ours = true;
                // A person may have worked while it was cut off.
                self.is_certain &= files.is_none();
                self.ours.extend(files.iter().flatten().cloned());
            }
            (Kind::Started { told: more }, Kind::Ended { told, is_certain }) => {
                self.is_ours = true;
                self.is_certain &= is_certain;
                self.ours.extend(told.iter().chain(more).cloned());
            }
            // Nobody knows where its work ended.
            (Kind::Started { told }, _) => {
                (self.is_ours, self.is_others) = (true, true);
                self.ours.extend(told.iter().cloned());
            }
            _ => self.is_others = true,
        }
    }

    fn whose(&self, to: Time, foreign: &[Foreign]) -> Whose {
        match (self.is_ours, self.is_others && self.is_ours || !self.is_certain) {
            (false, _) => Whose::Others,
            (true, false) => Whose::Ours,
            (true, true) => {
                let is_beside = |other: &&Foreign| other.from <= to && other.to.is_none_or(|end| end >= self.since);
                let theirs = foreign.iter().filter(is_beside).flat_map(|other| other.paths.iter().cloned());
                Whose::Both { ours: self.ours.clone(), theirs: theirs.collect() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> HashSet<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    fn moments(all: Vec<(Option<&str>, Kind)>) -> Vec<Moment> {
        let moment = |(seq, (commit, kind)): (u64, (Option<&str>, Kind))| Moment {
            seq,
            time: Time::from_micros(seq * 10),
            commit: commit.map(str::to_owned),
            kind,
        };
        (1..).zip(all).map(moment).collect()
    }

    fn span(from: &str, to: &str, whose: Whose) -> Span {
        Span { from: from.to_owned(), to: to.to_owned(), whose }
    }

    fn started() -> Kind {
        Kind::Started { told: HashSet::new() }
    }

    fn ended() -> Kind {
        Kind::Ended { told: HashSet::new(), is_certain: true }
    }

    fn both(ours: &[&str], theirs: &[&str]) -> Whose {
        Whose::Both { ours: paths(ours), theirs: paths(theirs) }
    }

    #[test]
    fn turns_are_ours_and_what_is_between_them_is_not() {
        let all = moments(vec![
            (Some("a"), started()),
            (Some("b"), ended()),
            (Some("c"), started()),
            (Some("d"), ended()),
            (Some("e"), Kind::Rest),
        ]);
        let (ours, others) = (|| Whose::Ours, || Whose::Others);
        let expected =
            [span("a", "b", ours()), span("b", "c", others()), span("c", "d", ours()), span("d", "e", others())];
        assert_eq!(spans(&all, &[]), expected);
        assert!(is_certain(&all));
    }

    #[test]
    fn a_missing_snapshot_makes_one_span_of_what_cannot_be_told_apart() {
        let told = || Kind::Started { told: paths(&["x"]) };
        let no_end = moments(vec![(Some("a"), told()), (Some("c"), started()), (Some("d"), ended())]);
        assert_eq!(spans(&no_end, &[]), [span("a", "c", both(&["x"], &[])), span("c", "d", Whose::Ours)]);
        let no_start = moments(vec![(Some("a"), Kind::Rest), (None, told()), (Some("c"), ended())]);
        assert_eq!(spans(&no_start, &[]), [span("a", "c", both(&["x"], &[]))]);
        let neither = moments(vec![(Some("a"), Kind::Rest), (None, told()), (Some("d"), Kind::Rest)]);
        assert_eq!(spans(&neither, &[]), [span("a", "d", both(&["x"], &[]))]);
        assert!(!is_certain(&neither));
    }

    #[test]
    fn a_missing_snapshot_of_a_time_at_rest_changes_nothing() {
        let all = moments(vec![(Some("a"), ended()), (None, Kind::Rest), (Some("c"), started())]);
        assert_eq!(spans(&all, &[]), [span("a", "c", Whose::Others)]);
    }

    #[test]
    fn who_worked_beside_a_turn_has_what_they_told() {
        let uncertain = Kind::Ended { told: paths(&["x"]), is_certain: false };
        let all = moments(vec![(Some("a"), started()), (Some("b"), uncertain), (Some("c"), Kind::Rest)]);
        let other = |from, to: Option<u64>, path: &str| Foreign {
            from: Time::from_micros(from),
            to: to.map(Time::from_micros),
            paths: paths(&[path]),
        };
        let foreign =
            [other(0, Some(9), "before"), other(5, Some(10), "y"), other(15, None, "z"), other(21, None, "w")];
        let expected = [span("a", "b", both(&["x"], &["y", "z"])), span("b", "c", Whose::Others)];
        assert_eq!(spans(&all, &foreign), expected);
    }

    #[test]
    fn of_a_restore_ours_is_what_it_wrote() {
        let few = Kind::Restored { files: Some(paths(&["x"])) };
        let all = moments(vec![(Some("a"), Kind::Rest), (Some("b"), few), (Some("c"), Kind::Rest)]);
        assert_eq!(spans(&all, &[]), [span("a", "b", both(&["x"], &[])), span("b", "c", Whose::Others)]);
        let many = moments(vec![(Some("a"), Kind::Rest), (Some("b"), Kind::Restored { files: None })]);
        assert_eq!(spans(&many, &[]), [span("a", "b", Whose::Ours)]);
    }

    #[test]
    fn a_chain_has_no_gaps() {
        let all = moments(vec![
            (Some("a"), started()),
            (None, ended()),
            (None, started()),
            (Some("b"), ended()),
            (Some("c"), Kind::Rest),
            (None, Kind::Restored { files: Some(paths(&["x"])) }),
            (Some("d"), Kind::Rest),
        ]);
        let spans = spans(&all, &[]);
        assert_eq!((spans[0].from.as_str(), spans[spans.len() - 1].to.as_str()), ("a", "d"));
        assert!(spans.windows(2).all(|pair| pair[0].to == pair[1].from));
    }
}
