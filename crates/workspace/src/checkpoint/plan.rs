//! What a restore will do, before it does anything.
//!
//! A snapshot says what the files were; it does not say whose changes stand between then and now. That is told by the
//! [`Span`]s: the stretches of time between snapshots, each with who worked in it. A path goes back to what it was only if
//! nobody but the session's own turns (and earlier restores of its own) changed it since. Whatever else differs is kept,
//! and the plan says why.

mod clash;
mod hidden;
mod proof;
mod unsaved;
mod verdict;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tolka_facts::event::{FileOperation, KeptWhy, Overwrite};

pub(super) use hidden::{Rules, is_rules};
pub use proof::{Content, Wrote};
use proof::{Missed, Proofs};
use unsaved::Unsaved;
use verdict::Evidence;

use super::changes::{Difference, between, in_spans};
use super::git::{Git, Halt};
use super::{CheckpointError, Checkpoints};
use crate::names::{meant, shown};

/// How long making a plan may take: every file that differs is read, for its lines.
const PLANNING: Duration = Duration::from_secs(60);

/// What happened between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Commits.
    pub from: String,
    pub to: String,
    pub whose: Whose,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// A turn of the session, or a restore in it, with nobody beside it.
    Ours,
    /// Between turns: whoever changes a file then is somebody else.
    Others,
    /// Other sessions worked in the folder at the same time. A path that only one side told of is that side's; what both
    /// told of, or neither, may be either's.
    Both { ours: HashSet<PathBuf>, theirs: HashSet<PathBuf> },
    /// A snapshot is missing or came late, and a person, who tells nothing, may have worked too. A path is ours only if it
    /// was and is what we told; `theirs` is what other sessions told.
    Anybodys { wrote: HashMap<PathBuf, Wrote>, theirs: HashSet<PathBuf> },
    /// A restore, which may have been cut off and finished later. A path is its own only if it is what it was in the
    /// target; `files: None`: nobody wrote down which it touched.
    Restored { target: String, files: Option<HashSet<PathBuf>>, theirs: HashSet<PathBuf> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// The commit to go back to.
    pub target: String,
    /// A commit of the workspace as it is. Whatever is not so any more when the restore comes to it is kept.
    pub now: String,
    /// All that happened from the target to now, in the order of time.
    pub spans: Vec<Span>,
    pub overwrite: Overwrite,
}

/// Which paths a restore writes or removes, and which it keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub target: String,
    pub now: String,
    pub steps: Vec<Step>,
    pub kept: Vec<Kept>,
}

/// A path that changes. From the workspace on, as the file system has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub path: PathBuf,
    /// What the restore does: a file that is gone is created.
    pub operation: FileOperation,
    /// Lines; none are counted in a file that is no text.
    pub added: u64,
    pub removed: u64,
}

/// A path that differs from the target and stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub why: KeptWhy,
}

/// What becomes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Goes,
    Stays(KeptWhy),
}

impl Checkpoints {
    /// The same for the same request, as long as the snapshots are there: a restore that was cut off is planned again.
    pub async fn plan(&self, workspace: &Path, request: &PlanRequest) -> Result<Plan, CheckpointError> {
        // To be dropped with this future, which ends git.
        let (_wanted, halt) = Halt::within(PLANNING);
        let PlanRequest { target, now, spans, overwrite } = request;
        let in_time = spans.iter().flat_map(|span| [span.from.as_str(), &span.to]);
        let commits: Vec<&str> = [target.as_str(), now].into_iter().chain(in_time).collect();
        let git = self.reader(workspace, &commits, &halt).await?.git;
        let beginnings = spans.iter().map(|span| span.from.as_str());
        let beginnings: Vec<&str> = [target.as_str(), now].into_iter().chain(beginnings).collect();
        let (differences, changes, unsaved) = tokio::join!(
            between(&git, now, target, &[], &halt),
            in_spans(&git, spans, &halt),
            Unsaved::of(&git, &beginnings, &halt),
        );
        let (differences, changes, unsaved) = (differences?, changes?, unsaved?);
        let evidence = evidence(&git, request, &differences, (changes, unsaved), &halt).await?;
        let verdict = |difference: &Difference| match evidence.verdict(difference) {
            Verdict::Stays(KeptWhy::Conflict) if is_said(overwrite, &difference.path) => Verdict::Goes,
            verdict => verdict,
        };
        let mut verdicts: BTreeMap<&Path, Verdict> =
            differences.iter().map(|difference| (difference.path.as_path(), verdict(difference))).collect();
        clash::settle(&mut verdicts, &differences);
        let mut plan = Plan { target: target.clone(), now: now.clone(), ..Plan::default() };
        for difference in &differences {
            let path = difference.path.clone();
            match verdicts.get(difference.path.as_path()) {
                Some(Verdict::Stays(why)) => plan.kept.push(Kept { path, why: *why }),
                Some(Verdict::Goes) | None => plan.steps.push(step(difference)),
            }
        }
        Ok(plan)
    }
}

fn step(difference: &Difference) -> Step {
    let Difference { path, lines, .. } = difference;
    Step { path: path.clone(), operation: difference.operation(), added: lines.added, removed: lines.removed }
}

/// A client names files as it was told of them.
fn is_said(overwrite: &Overwrite, path: &Path) -> bool {
    match overwrite {
        Overwrite::Nothing => false,
        Overwrite::These(paths) => paths.iter().any(|named| meant(named) == path || *named == shown(path)),
        Overwrite::All => true,
    }
}

/// `changes` are of each span; `unsaved` of the target, of now, and of each span's beginning.
async fn evidence(
    git: &Git,
    PlanRequest { target, spans, .. }: &PlanRequest,
    differences: &[Difference],
    (changes, unsaved): (Vec<Vec<Difference>>, Vec<Unsaved>),
    halt: &Halt,
) -> Result<Evidence, CheckpointError> {
    let differ: HashSet<&Path> = differences.iter().map(|difference| difference.path.as_path()).collect();
    let mut unsaved = unsaved.into_iter();
    let mut evidence = Evidence::default();
    let told = spans.iter().map(|span| &span.whose).zip(&changes);
    evidence.proofs = Proofs::of(git, told, &differ, halt).await?;
    evidence.missed = Missed::of(git, spans, halt).await?;
    evidence.unsaved.extend(unsaved.by_ref().take(2));
    for ((span, changes), unsaved) in spans.iter().zip(changes).zip(unsaved) {
        let rules = match changes.iter().any(|change| is_rules(&change.path)) {
            true => Rules::of(git, &span.from, halt).await?,
            // Whatever can be seen at its end could be seen at its beginning.
            false => Rules::default(),
        };
        for change in changes.into_iter().filter(|change| differ.contains(change.path.as_path())) {
            // It may have been there all the time, unseen.
            let is_uncovered = change.was.is_none() && (rules.hide(&change.path) || unsaved.touches(&change.path));
            evidence.add(span, change, is_uncovered);
        }
    }
    // What the target's own rules hide may have been there.
    if differences.iter().any(|difference| is_rules(&difference.path)) {
        evidence.target = Rules::of(git, target, halt).await?;
    }
    Ok(evidence)
}
