//! Snapshots of a workspace, beside `git add -A && git write-tree` of the same files into a git folder of its own, turn
//! by turn.
//!
//! Ours is a commit with a ref that is on the disk; git's, with its defaults, is a tree that nobody holds, in objects that
//! it does not wait for. The first snapshot of a repository stands beside a warm `git add -A` there: what a person who
//! works in it pays at every turn anyway. A restore, from the plan to the last file on the disk, stands beside
//! `git read-tree --reset -u`, which writes the same files, asks nobody whether it may, and does not wait for the disk.

mod yard;

use std::time::Duration;

use anyhow::Result;
use tolka_workspace::Checkpoints;

use crate::Bench;
use crate::burst::thousands;
use crate::report::{Figure, Goal, Report};
use yard::{SECOND, Yard};

const SIZES: [usize; 3] = [2_000, 20_000, 200_000];
/// From here on what is measured takes long and wanders little.
const LARGE: usize = 100_000;
/// For one size, with all that is made for it. Some gigabytes of the temporary folder are taken until then.
const LONGEST: Duration = Duration::from_secs(900);
const BESIDE: &str = "git add -A && git write-tree";
const BACK: &str = "git read-tree --reset -u";

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    for files in SIZES {
        let all = of_size(&mut bench.report, files, bench.runs);
        match tokio::time::timeout(LONGEST, all).await {
            Ok(measured) => measured?,
            Err(_) => {
                let why = format!("it took longer than {} s", LONGEST.as_secs());
                bench.report.failed(&format!("snapshots, {} files", thousands(files)), &why);
            }
        }
    }
    Ok(())
}

async fn of_size(report: &mut Report, files: usize, runs: usize) -> Result<()> {
    // Gone with this, also when a row fails.
    let folder = tempfile::tempdir()?;
    let yard = Yard::grow(folder.path(), files)?;
    let mut rows = Rows { report, count: thousands(files) };
    let many = if files > LARGE { 1 } else { runs.min(3) };
    let checkpoints = firsts(&mut rows, &yard, many).await?;
    let runs = if files > LARGE { runs.min(3) } else { runs };
    repeats(&mut rows, &yard, &checkpoints, runs).await?;
    restores(&mut rows, &yard, &checkpoints, (runs, many)).await?;
    of_repository(&mut rows, &yard, files, many).await
}

/// Rows of one size.
struct Rows<'a> {
    report: &'a mut Report,
    count: String,
}

impl Rows<'_> {
    fn row(&mut self, what: &str, pairs: Pairs, beside: &str, goal: Option<f64>) {
        let what = format!("{what}, {} files", self.count);
        let row = self.report.row(&what, "ms", Figure::of(pairs.ours), Some((beside, Figure::of(pairs.theirs))));
        if let Some(most) = goal {
            row.goal(Goal::RatioAtMost(most));
        }
    }
}

/// What each took, turn by turn.
#[derive(Default)]
struct Pairs {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Pairs {
    fn push(&mut self, ours: f64, theirs: f64) {
        self.ours.push(ours);
        self.theirs.push(theirs);
    }
}

/// Git's folder and the checkpoints that are given back know the files as they were grown.
async fn firsts(rows: &mut Rows<'_>, yard: &Yard, runs: usize) -> Result<Checkpoints> {
    let mut pairs = Pairs::default();
    let mut checkpoints = yard.fresh()?;
    for _ in 0..runs {
        let shadow = yard.new_shadow().await?;
        let theirs = yard.by_git(&shadow).await?.0;
        checkpoints = yard.fresh()?;
        pairs.push(yard.save(&checkpoints).await?.0, theirs);
    }
    rows.row("first snapshot, no repository", pairs, BESIDE, None);
    Ok(checkpoints)
}

async fn repeats(rows: &mut Rows<'_>, yard: &Yard, checkpoints: &Checkpoints, runs: usize) -> Result<()> {
    let shadow = yard.shadow();
    let (mut unchanged, mut changed) = (Pairs::default(), Pairs::default());
    for run in 0..runs {
        tokio::time::sleep(SECOND).await;
        // The first look of each learns what is old by now.
        yard.by_git(&shadow).await?;
        yard.save(checkpoints).await?;
        unchanged.push(yard.save(checkpoints).await?.0, yard.by_git(&shadow).await?.0);
        yard.change(yard.few(), &format!("// changed in run {run}\n"))?;
        changed.push(yard.save(checkpoints).await?.0, yard.by_git(&shadow).await?.0);
    }
    rows.row("snapshot, unchanged", unchanged, BESIDE, Some(1.5));
    rows.row("snapshot, few changed", changed, BESIDE, Some(1.5));
    Ok(())
}

async fn restores(
    rows: &mut Rows<'_>,
    yard: &Yard,
    checkpoints: &Checkpoints,
    (few, all): (usize, usize),
) -> Result<()> {
    let shadow = yard.shadow();
    for (what, step, runs) in [("restore of few", yard.few(), few), ("restore of all", 1, all)] {
        let mut pairs = Pairs::default();
        let (target, tree) = (yard.save(checkpoints).await?.1, yard.by_git(&shadow).await?.1);
        for run in 0..runs {
            yard.change(step, &format!("// to be taken back, {run}\n"))?;
            let ours = yard.go_back(checkpoints, &target, step).await?;
            yard.change(step, &format!("// to be taken back by git, {run}\n"))?;
            pairs.push(ours, yard.go_back_by_git(&shadow, &tree).await?);
        }
        rows.row(what, pairs, BACK, Some(1.5));
    }
    Ok(())
}

async fn of_repository(rows: &mut Rows<'_>, yard: &Yard, files: usize, runs: usize) -> Result<()> {
    let own = yard.own_repository().await?;
    let mut pairs = Pairs::default();
    for _ in 0..runs {
        let theirs = yard.add(&own).await?;
        pairs.push(yard.save(&yard.fresh()?).await?.0, theirs);
    }
    let goal = (files == 20_000).then_some(3.0);
    rows.row("first snapshot of a repository", pairs, "a warm git add -A there", goal);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of its steps makes sure that it did what it is timed for.
    #[tokio::test]
    async fn every_row_of_a_small_workspace_has_a_figure_and_its_reference() {
        let mut report = Report::default();
        of_size(&mut report, 60, 1).await.unwrap();
        let ratios = report.ratios();
        assert_eq!(ratios.len(), 6);
        assert!(ratios.iter().all(|ratio| ratio.is_some_and(|ratio| ratio > 0.0)), "{ratios:?}");
    }
}
