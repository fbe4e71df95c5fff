//! Snapshots of a workspace, beside `git add -A && git write-tree` of the same files into a git folder of its own, turn
//! by turn.
//!
//! Ours is a commit with a ref that is on the disk; git's is a tree that nobody holds. The first snapshot of a repository
//! stands beside a warm `git add -A` there: what a person who works in it pays at every turn anyway. A restore stands
//! beside `git checkout-index`, which writes the same files and asks nobody whether it may.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::process::Command;
use tolka_facts::SessionId;
use tolka_facts::event::Overwrite;
use tolka_workspace::checkpoint::{PlanRequest, Span, Whose};
use tolka_workspace::{Checkpoints, Save};

use crate::Bench;
use crate::burst::thousands;
use crate::report::{Figure, Goal};

const SIZES: [usize; 3] = [2_000, 20_000, 200_000];
/// Files that change between two snapshots.
const FEW: usize = 5;
/// Nobody waits for so long; a row that takes longer has failed.
const BUDGET: Duration = Duration::from_secs(300);
/// The largest tree takes minutes to make, and what is measured there wanders little.
const LARGE: usize = 100_000;
/// Git looks twice at what was written in the second in which it last looked.
const SECOND: Duration = Duration::from_millis(1_100);
const BESIDE: &str = "git add -A && git write-tree";

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    for files in SIZES {
        let runs = if files > LARGE { bench.runs.min(3) } else { bench.runs };
        // Gone with this, also when a row fails.
        let folder = tempfile::tempdir()?;
        let yard = Yard::grow(folder.path(), files)?;
        firsts(bench, &yard, files, runs).await?;
        repeats(bench, &yard, files, runs).await?;
        restores(bench, &yard, files, runs).await?;
    }
    Ok(())
}

/// A workspace, git's folder and ours.
struct Yard {
    root: PathBuf,
    workspace: PathBuf,
    paths: Vec<PathBuf>,
}

impl Yard {
    fn grow(root: &Path, files: usize) -> Result<Self> {
        let root = root.canonicalize()?;
        let workspace = root.join("workspace");
        let mut paths = Vec::with_capacity(files);
        let mut text = String::new();
        for file in 0..files {
            let folder = workspace.join(format!("part_{}/module_{}", file / 2_000, file / 50));
            if file % 50 == 0 {
                fs::create_dir_all(&folder)?;
            }
            text.clear();
            for line in 0..12 {
                writeln!(text, "fn step_{line}_of_{file}() -> usize {{ {line} }}")?;
            }
            let path = folder.join(format!("file_{file}.rs"));
            fs::write(&path, &text)?;
            paths.push(path);
        }
        Ok(Yard { root, workspace, paths })
    }

    fn fresh(&self) -> Result<Checkpoints> {
        let data = self.data();
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        Ok(Checkpoints::new(&data))
    }

    fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// A git folder like ours, for git.
    fn shadow(&self) -> PathBuf {
        self.root.join("shadow")
    }

    async fn git(&self, folder: &Path, args: &[&str]) -> Result<String> {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0"]).args(args);
        git.env("GIT_DIR", folder).env("GIT_WORK_TREE", &self.workspace).current_dir(&self.workspace);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").kill_on_drop(true);
        let output = git.output().await.context("git does not start")?;
        anyhow::ensure!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// What ours stands beside.
    async fn by_git(&self, folder: &Path) -> Result<f64> {
        let started = Instant::now();
        self.git(folder, &["add", "-A"]).await?;
        self.git(folder, &["write-tree"]).await?;
        Ok(ms(started))
    }

    async fn new_shadow(&self) -> Result<PathBuf> {
        let shadow = self.shadow();
        if shadow.exists() {
            fs::remove_dir_all(&shadow)?;
        }
        self.git(&shadow, &["init", "--quiet"]).await?;
        Ok(shadow)
    }

    async fn save(&self, checkpoints: &Checkpoints) -> Result<(f64, String)> {
        let started = Instant::now();
        let session = SessionId::from("ses_bench");
        let saved = checkpoints.save(&self.workspace, &session, Save::within(BUDGET, "bench")).await?;
        let took = ms(started);
        anyhow::ensure!(saved.files as usize == self.paths.len(), "{} of {} files", saved.files, self.paths.len());
        Ok((took, saved.commit))
    }

    fn change(&self, step: usize, text: &str) -> Result<()> {
        for path in self.paths.iter().step_by(step) {
            fs::write(path, text)?;
        }
        Ok(())
    }

    fn change_few(&self, text: &str) -> Result<()> {
        self.change(self.paths.len() / FEW, text)
    }
}

async fn firsts(bench: &mut Bench, yard: &Yard, files: usize, runs: usize) -> Result<()> {
    let count = thousands(files);
    let runs = if files > LARGE { 1 } else { runs };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let shadow = yard.new_shadow().await?;
        theirs.push(yard.by_git(&shadow).await?);
        ours.push(yard.save(&yard.fresh()?).await?.0);
    }
    let what = format!("first snapshot, no repository, {count} files");
    bench.report.row(&what, "ms", Figure::of(ours), Some((BESIDE, Figure::of(theirs))));

    let own = yard.workspace.join(".git");
    yard.git(&own, &["init", "--quiet"]).await?;
    yard.git(&own, &["add", "-A"]).await?;
    yard.git(&own, &["commit", "--quiet", "-m", "first"]).await?;
    yard.git(&own, &["gc", "--quiet"]).await?;
    tokio::time::sleep(SECOND).await;
    yard.git(&own, &["add", "-A"]).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        theirs.push(yard.by_git(&own).await?);
        ours.push(yard.save(&yard.fresh()?).await?.0);
    }
    let what = format!("first snapshot of a repository, {count} files");
    let row = bench.report.row(&what, "ms", Figure::of(ours), Some(("a warm `git add -A` there", Figure::of(theirs))));
    if files == 20_000 {
        row.goal(Goal::RatioAtMost(3.0));
    }
    fs::remove_dir_all(own)?;
    Ok(())
}

async fn repeats(bench: &mut Bench, yard: &Yard, files: usize, runs: usize) -> Result<()> {
    let count = thousands(files);
    let (shadow, checkpoints) = (yard.new_shadow().await?, yard.fresh()?);
    yard.by_git(&shadow).await?;
    yard.save(&checkpoints).await?;
    let (mut unchanged, mut changed) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for run in 0..=runs {
        tokio::time::sleep(SECOND).await;
        // The first look of each learns what is old by now.
        yard.by_git(&shadow).await?;
        yard.save(&checkpoints).await?;
        let pair = (yard.save(&checkpoints).await?.0, yard.by_git(&shadow).await?);
        yard.change_few(&format!("// changed in run {run}\n"))?;
        let few = (yard.save(&checkpoints).await?.0, yard.by_git(&shadow).await?);
        if run > 0 {
            unchanged.0.push(pair.0);
            unchanged.1.push(pair.1);
            changed.0.push(few.0);
            changed.1.push(few.1);
        }
    }
    for (what, (ours, theirs)) in [("unchanged", unchanged), ("few changed", changed)] {
        let what = format!("snapshot, {what}, {count} files");
        let row = bench.report.row(&what, "ms", Figure::of(ours), Some((BESIDE, Figure::of(theirs))));
        row.goal(Goal::RatioAtMost(1.5));
    }
    Ok(())
}

async fn restores(bench: &mut Bench, yard: &Yard, files: usize, runs: usize) -> Result<()> {
    let count = thousands(files);
    for (what, step) in [("few", yard.paths.len() / FEW), ("all", 1)] {
        let (shadow, checkpoints) = (yard.new_shadow().await?, yard.fresh()?);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let runs = if files > LARGE || step == 1 { runs.min(2) } else { runs };
        yard.by_git(&shadow).await?;
        let target = yard.save(&checkpoints).await?.1;
        for run in 0..runs {
            yard.change(step, &format!("// to be taken back, {run}\n"))?;
            let now = yard.save(&checkpoints).await?.1;
            let span = Span { from: target.clone(), to: now.clone(), whose: Whose::Ours };
            let request =
                PlanRequest { target: target.clone(), now, spans: vec![span], overwrite: Overwrite::default() };
            let started = Instant::now();
            let plan = checkpoints.plan(&yard.workspace, &request).await?;
            let restored = checkpoints.restore(&yard.workspace, &plan).await?;
            ours.push(ms(started));
            anyhow::ensure!(restored.done.len() == yard.paths.iter().step_by(step).count(), "{}", restored.done.len());

            yard.change(step, &format!("// to be taken back by git, {run}\n"))?;
            let started = Instant::now();
            yard.git(&shadow, &["checkout-index", "--all", "--force"]).await?;
            theirs.push(ms(started));
        }
        let what = format!("restore of {what}, planned and carried out, {count} files");
        bench.report.row(&what, "ms", Figure::of(ours), Some(("git checkout-index -a -f", Figure::of(theirs))));
    }
    Ok(())
}

fn ms(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}
