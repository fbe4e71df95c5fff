//! Whose work stands between a snapshot and now: a session's moments, made into the spans that a plan goes by.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use tolka_facts::Time;
use tolka_workspace::checkpoint::{Span, Whose, Wrote};

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
    /// From here on a turn works. What it told it wrote is looked up where its end does not say all.
    Started { wrote: HashMap<PathBuf, Wrote> },
    /// Up to here a turn worked.
    Ended { told: HashSet<PathBuf>, company: Company },
    /// Up to here nobody of ours worked, and neither from here on.
    Rest,
    /// The same, and all before it was copied from another session.
    Forked,
    /// Up to here a restore worked. `target: None`: nobody knows any more what it restored; `files: None`: nobody wrote
    /// down which files, since they were too many or it could not be finished.
    Restored { target: Option<String>, files: Option<HashSet<PathBuf>> },
}

/// Who may have worked between the snapshots before and after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    /// The turn.
    Alone,
    /// The turn, which told all that it did. What it did not tell was done by a person, while it ran.
    Seen,
    /// Other sessions too, and they tell what they change.
    Sessions,
    /// Whoever came between the turn's end, which nobody saw, and the snapshot.
    Anybody,
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
    spans(moments, &[]).iter().all(|span| matches!(span.whose, Whose::Ours | Whose::Others))
}

/// What happened from the first moment to the last, between those that were saved.
pub(crate) fn spans(moments: &[Moment], foreign: &[Foreign]) -> Vec<Span> {
    let Some(first) = moments.first() else { return Vec::new() };
    let mut spans = Vec::new();
    let mut last = first.commit.clone();
    let mut stretch = Stretch::since(first.time);
    for pair in moments.windows(2) {
        let [before, moment] = pair else { continue };
        stretch.take(&before.kind, &moment.kind);
        let Some(commit) = &moment.commit else { continue };
        if let Some(from) = last.replace(commit.clone()) {
            let whose = stretch.whose(moment.time, foreign);
            spans.push(Span { from, to: commit.clone(), whose });
        }
        stretch = Stretch::since(moment.time);
    }
    spans
}

/// Who worked in a stretch of time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Work {
    /// Nobody of ours.
    Others,
    /// One turn, and nobody else.
    Turn,
    /// One turn that told all, and maybe people.
    Seen,
    /// One turn, with other sessions beside it.
    Beside,
    /// A restore, and afterwards maybe others. It touched what was as it had been saved, and left what it should be.
    Restore { target: String, files: Option<HashSet<PathBuf>> },
    /// Ours and others, and nobody knows when the one ended and the other began.
    Anybody,
}

impl Work {
    fn between(before: &Kind, after: &Kind) -> Self {
        match (before, after) {
            (_, Kind::Restored { target: Some(target), files }) => {
                Work::Restore { target: target.clone(), files: files.clone() }
            }
            (_, Kind::Restored { target: None, .. }) => Work::Anybody,
            (Kind::Started { .. }, Kind::Ended { company, .. }) => match company {
                Company::Alone => Work::Turn,
                Company::Seen => Work::Seen,
                Company::Sessions => Work::Beside,
                Company::Anybody => Work::Anybody,
            },
            // Nobody knows where its work ended.
            (Kind::Started { .. }, _) => Work::Anybody,
            _ => Work::Others,
        }
    }

    fn then(self, next: Work) -> Self {
        match (self, next) {
            (Work::Others, Work::Others) => Work::Others,
            (restore @ Work::Restore { .. }, Work::Others) => restore,
            _ => Work::Anybody,
        }
    }
}

/// The time since the last snapshot.
struct Stretch {
    since: Time,
    work: Option<Work>,
    told: HashSet<PathBuf>,
    wrote: HashMap<PathBuf, Wrote>,
}

impl Stretch {
    fn since(since: Time) -> Self {
        Stretch { since, work: None, told: HashSet::new(), wrote: HashMap::new() }
    }

    /// Takes in what happened between two moments.
    fn take(&mut self, before: &Kind, after: &Kind) {
        let next = Work::between(before, after);
        self.work = Some(match self.work.take() {
            Some(work) => work.then(next),
            None => next,
        });
        if let Kind::Started { wrote } = before {
            self.told.extend(wrote.keys().cloned());
            for (path, wrote) in wrote {
                let known = self.wrote.entry(path.clone());
                known.and_modify(|known| known.then(wrote.clone())).or_insert_with(|| wrote.clone());
            }
        }
        if let Kind::Ended { told, .. } = after {
            self.told.extend(told.iter().cloned());
        }
    }

    fn whose(self, to: Time, foreign: &[Foreign]) -> Whose {
        let is_beside = |other: &&Foreign| other.from <= to && other.to.is_none_or(|end| end >= self.since);
        let theirs = || foreign.iter().filter(is_beside).flat_map(|other| other.paths.iter().cloned()).collect();
        match self.work {
            None | Some(Work::Others) => Whose::Others,
            Some(Work::Turn) => Whose::Ours,
            Some(Work::Seen) => Whose::Both { theirs: HashSet::new(), ours: self.told },
            Some(Work::Beside) => Whose::Both { theirs: theirs(), ours: self.told },
            Some(Work::Restore { target, files }) => Whose::Restored { target, files, theirs: theirs() },
            Some(Work::Anybody) => Whose::Anybodys { theirs: theirs(), wrote: self.wrote },
        }
    }
}

#[cfg(test)]
mod tests {
    use tolka_facts::{BlobRef, Hash};
    use tolka_workspace::checkpoint::Content;

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
        Kind::Started { wrote: HashMap::new() }
    }

    fn ended() -> Kind {
        Kind::Ended { told: HashSet::new(), company: Company::Alone }
    }

    fn wrote(was: &str, is: &str) -> Wrote {
        let content = |word: &str| Content::Holds(BlobRef { hash: Hash::of(word.as_bytes()), size: word.len() as u64 });
        Wrote { was: content(was), is: content(is) }
    }

    fn wrote_x(was: &str, is: &str) -> Kind {
        Kind::Started { wrote: HashMap::from([("x".into(), wrote(was, is))]) }
    }

    fn anybodys(all: &[(&str, Wrote)]) -> Whose {
        let wrote = all.iter().map(|(path, wrote)| (PathBuf::from(path), wrote.clone())).collect();
        Whose::Anybodys { wrote, theirs: HashSet::new() }
    }

    fn restored(files: Option<&[&str]>) -> Kind {
        Kind::Restored { target: Some("t".to_owned()), files: files.map(paths) }
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
        let told = || wrote_x("0", "1");
        let whose = || anybodys(&[("x", wrote("0", "1"))]);
        let no_end = moments(vec![(Some("a"), told()), (Some("c"), started()), (Some("d"), ended())]);
        assert_eq!(spans(&no_end, &[]), [span("a", "c", whose()), span("c", "d", Whose::Ours)]);
        let no_start = moments(vec![(Some("a"), Kind::Rest), (None, told()), (Some("c"), ended())]);
        assert_eq!(spans(&no_start, &[]), [span("a", "c", whose())]);
        let neither = moments(vec![(Some("a"), Kind::Rest), (None, told()), (Some("d"), Kind::Rest)]);
        assert_eq!(spans(&neither, &[]), [span("a", "d", whose())]);
        assert!(!is_certain(&neither));
        let late = Kind::Ended { told: paths(&["x"]), company: Company::Anybody };
        let late = moments(vec![(Some("a"), told()), (Some("c"), late)]);
        assert_eq!(spans(&late, &[]), [span("a", "c", whose())]);
    }

    #[test]
    fn of_two_turns_in_one_span_the_later_one_must_go_on_from_the_earlier() {
        let two =
            |was: &str| moments(vec![(Some("a"), wrote_x("0", "1")), (None, wrote_x(was, "2")), (Some("d"), ended())]);
        assert_eq!(spans(&two("1"), &[]), [span("a", "d", anybodys(&[("x", wrote("0", "2"))]))]);
        let unknown = Wrote { is: Content::Unknown, ..wrote("0", "1") };
        assert_eq!(spans(&two("mine"), &[]), [span("a", "d", anybodys(&[("x", unknown)]))]);
    }

    #[test]
    fn a_missing_snapshot_of_a_time_at_rest_changes_nothing() {
        let all = moments(vec![(Some("a"), ended()), (None, Kind::Rest), (Some("c"), started())]);
        assert_eq!(spans(&all, &[]), [span("a", "c", Whose::Others)]);
    }

    #[test]
    fn who_worked_beside_a_turn_has_what_they_told() {
        let uncertain = Kind::Ended { told: paths(&["x"]), company: Company::Sessions };
        let all = moments(vec![(Some("a"), started()), (Some("b"), uncertain), (Some("c"), Kind::Rest)]);
        let other = |from, to: Option<u64>, path: &str| Foreign {
            from: Time::from_micros(from),
            to: to.map(Time::from_micros),
            paths: paths(&[path]),
        };
        let foreign =
            [other(0, Some(9), "before"), other(5, Some(10), "y"), other(15, None, "z"), other(21, None, "w")];
        let expected = [
            span("a", "b", Whose::Both { ours: paths(&["x"]), theirs: paths(&["y", "z"]) }),
            span("b", "c", Whose::Others),
        ];
        assert_eq!(spans(&all, &foreign), expected);
    }

    #[test]
    fn a_restore_has_what_it_wrote_or_whatever_is_as_it_should_be() {
        let whose = |files: Option<&[&str]>| Whose::Restored {
            target: "t".to_owned(),
            files: files.map(paths),
            theirs: HashSet::new(),
        };
        for files in [Some(["x"].as_slice()), None] {
            let all = moments(vec![(Some("a"), Kind::Rest), (Some("b"), restored(files)), (Some("c"), Kind::Rest)]);
            assert_eq!(spans(&all, &[]), [span("a", "b", whose(files)), span("b", "c", Whose::Others)]);
            let not_saved = moments(vec![(Some("a"), Kind::Rest), (None, restored(files)), (Some("c"), Kind::Rest)]);
            assert_eq!(spans(&not_saved, &[]), [span("a", "c", whose(files))]);
        }
        let gone = Kind::Restored { target: None, files: Some(paths(&["x"])) };
        let all = moments(vec![(Some("a"), Kind::Rest), (Some("b"), gone)]);
        assert_eq!(spans(&all, &[]), [span("a", "b", anybodys(&[]))], "what it restored was pruned");
    }

    #[test]
    fn a_chain_has_no_gaps() {
        let all = moments(vec![
            (Some("a"), started()),
            (None, ended()),
            (None, started()),
            (Some("b"), ended()),
            (Some("c"), Kind::Rest),
            (None, restored(Some(&["x"]))),
            (Some("d"), Kind::Rest),
        ]);
        let spans = spans(&all, &[]);
        assert_eq!((spans[0].from.as_str(), spans[spans.len() - 1].to.as_str()), ("a", "d"));
        assert!(spans.windows(2).all(|pair| pair[0].to == pair[1].from));
    }
}
