//! Whether what a session told of a file is what the snapshots hold.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use tolka_facts::{BlobRef, Hash};

use super::{Span, Whose};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::changes::{Difference, Entry, Kind, in_spans};
use crate::checkpoint::contents::objects;
use crate::checkpoint::files::blocking;
use crate::checkpoint::git::{Git, Halt};
use crate::limits;

/// What is at a path, as facts tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Nothing,
    Holds(BlobRef),
    /// Nobody told.
    Unknown,
}

/// What a session told it made of a file in a span of time: of all its changes there, the first one's beginning and the
/// last one's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrote {
    pub was: Content,
    pub is: Content,
}

impl Wrote {
    /// Followed by another change. If that began with something else, somebody came in between.
    pub fn then(&mut self, next: Wrote) {
        self.is = if self.is == next.was { next.is } else { Content::Unknown };
    }
}

/// Contents in snapshots that were found to be what was told.
#[derive(Debug, Default)]
pub(super) struct Proofs(HashSet<(String, Hash)>);

impl Proofs {
    /// For all changes of spans in which it matters, by one git for their sizes and few for what they hold.
    pub(super) async fn of<'a>(
        git: &Git,
        spans: impl Iterator<Item = (&'a Whose, &'a Vec<Difference>)>,
        differ: &HashSet<&Path>,
        halt: &Halt,
    ) -> Result<Self, CheckpointError> {
        let mut told = Vec::new();
        for (whose, changes) in spans {
            let Whose::Anybodys { wrote, .. } = whose else { continue };
            let changes = changes.iter().filter(|change| differ.contains(change.path.as_path()));
            told.extend(changes.filter_map(|change| Some((change, wrote.get(&change.path)?))).flat_map(pairs));
        }
        let mut proofs = Proofs::default();
        let sizes = sizes(git, &told, halt).await?;
        told.retain(|(name, blob)| sizes.get(name) == Some(&blob.size) && blob.size <= limits::KEPT);
        while !told.is_empty() {
            let mut left = limits::TOGETHER as u64;
            let fit = told.iter().take_while(|(_, blob)| {
                let fits = blob.size <= left;
                left = left.saturating_sub(blob.size);
                fits
            });
            let some: Vec<(String, BlobRef)> = told.drain(..fit.count().max(1)).collect();
            let names: Vec<&str> = some.iter().map(|(name, _)| name.as_str()).collect();
            let contents = objects(git, &names, halt).await?;
            let same = blocking(move || {
                let both = some.into_iter().zip(contents);
                let same = both.filter(|((_, blob), content)| Hash::of(content) == blob.hash);
                Ok(same.map(|((name, blob), _)| (name, blob.hash)).collect::<Vec<_>>())
            });
            proofs.0.extend(same.await?);
        }
        Ok(proofs)
    }

    /// Whether all that became of a path in a span is what was told. What else became of its mode was somebody's.
    pub(super) fn hold(&self, wrote: &Wrote, change: &Difference) -> bool {
        let is_same_kind = match (&change.was, &change.is) {
            (Some(was), Some(is)) => was.kind == is.kind && !was.mode.differs(is.mode),
            _ => true,
        };
        is_same_kind && self.is(&wrote.was, change.was.as_ref()) && self.is(&wrote.is, change.is.as_ref())
    }

    fn is(&self, told: &Content, entry: Option<&Entry>) -> bool {
        match (told, entry) {
            (Content::Nothing, None) => true,
            (Content::Holds(blob), Some(Entry { kind: Kind::File | Kind::Program, blob: name, .. })) => {
                self.0.contains(&(name.clone(), blob.hash.clone()))
            }
            _ => false,
        }
    }
}

/// What is in a snapshot, and what was told to be.
fn pairs((change, wrote): (&Difference, &Wrote)) -> Vec<(String, BlobRef)> {
    let sides = [(&change.was, &wrote.was), (&change.is, &wrote.is)];
    let pair = |(entry, told): (&Option<Entry>, &Content)| match (entry, told) {
        (Some(entry), Content::Holds(blob)) if !entry.blob.is_empty() => Some((entry.blob.clone(), blob.clone())),
        _ => None,
    };
    sides.into_iter().filter_map(pair).collect()
}

async fn sizes(git: &Git, told: &[(String, BlobRef)], halt: &Halt) -> Result<HashMap<String, u64>, CheckpointError> {
    if told.is_empty() {
        return Ok(HashMap::new());
    }
    let lines: String = told.iter().map(|(name, _)| format!("{name}\n")).collect();
    let output = git.run(&["cat-file", "--batch-check=%(objectname) %(objectsize)"], lines.as_bytes(), halt).await?;
    let size = |line: &str| {
        let (name, size) = line.split_once(' ')?;
        Some((name.to_owned(), size.parse().ok()?))
    };
    Ok(String::from_utf8_lossy(&output.out).lines().filter_map(size).collect())
}

/// For each restore the paths that are not at its end what they were in its target, by one git for all of them.
#[derive(Debug, Default)]
pub(super) struct Missed(HashMap<(String, String), HashSet<PathBuf>>);

impl Missed {
    pub(super) async fn of(git: &Git, spans: &[Span], halt: &Halt) -> Result<Self, CheckpointError> {
        let to_target = |span: &Span| match &span.whose {
            Whose::Restored { target, .. } => {
                Some(Span { from: span.to.clone(), to: target.clone(), whose: Whose::Ours })
            }
            _ => None,
        };
        let restores: Vec<Span> = spans.iter().filter_map(to_target).collect();
        let differences = in_spans(git, &restores, halt).await?;
        let paths = |all: Vec<Difference>| all.into_iter().map(|difference| difference.path).collect();
        let missed = restores.into_iter().zip(differences).map(|(span, all)| ((span.from, span.to), paths(all)));
        Ok(Missed(missed.collect()))
    }

    pub(super) fn has(&self, end: &str, target: &str, change: &Difference) -> bool {
        let missed = self.0.get(&(end.to_owned(), target.to_owned()));
        missed.is_none_or(|paths| paths.contains(&change.path))
    }
}
