//! Workspaces of small files, with a git folder for git and one for us.

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

/// Nobody waits for so long; a row that takes longer has failed.
const BUDGET: Duration = Duration::from_secs(300);

/// Files that change between two snapshots.
const FEW: usize = 5;

/// Git looks twice at what was written in the second in which it last looked.
pub(super) const SECOND: Duration = Duration::from_millis(1_100);

/// A workspace, git's folder and ours.
pub(super) struct Yard {
    root: PathBuf,
    workspace: PathBuf,
    paths: Vec<PathBuf>,
}

impl Yard {
    pub(super) fn grow(root: &Path, files: usize) -> Result<Self> {
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

    /// Checkpoints that know nothing yet.
    pub(super) fn fresh(&self) -> Result<Checkpoints> {
        let data = self.root.join("data");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        Ok(Checkpoints::new(&data))
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

    /// What ours stands beside: how long it took, and the tree.
    pub(super) async fn by_git(&self, folder: &Path) -> Result<(f64, String)> {
        let started = Instant::now();
        self.add(folder).await?;
        let tree = self.git(folder, &["write-tree"]).await?;
        Ok((ms(started), tree))
    }

    /// The first half of it.
    pub(super) async fn add(&self, folder: &Path) -> Result<f64> {
        let started = Instant::now();
        self.git(folder, &["add", "-A"]).await?;
        Ok(ms(started))
    }

    /// A git folder like ours, for git.
    pub(super) fn shadow(&self) -> PathBuf {
        self.root.join("shadow")
    }

    /// The same with nothing in it.
    pub(super) async fn new_shadow(&self) -> Result<PathBuf> {
        let shadow = self.shadow();
        if shadow.exists() {
            fs::remove_dir_all(&shadow)?;
        }
        self.git(&shadow, &["init", "--quiet"]).await?;
        Ok(shadow)
    }

    /// How long it took, and the commit.
    pub(super) async fn save(&self, checkpoints: &Checkpoints) -> Result<(f64, String)> {
        let started = Instant::now();
        let session = SessionId::from("ses_bench");
        let saved = checkpoints.save(&self.workspace, &session, Save::within(BUDGET, "bench")).await?;
        let took = ms(started);
        anyhow::ensure!(saved.files as usize == self.paths.len(), "{} of {} files", saved.files, self.paths.len());
        Ok((took, saved.commit))
    }

    /// Every `step`th file holds this now.
    pub(super) fn change(&self, step: usize, text: &str) -> Result<()> {
        for path in self.paths.iter().step_by(step) {
            fs::write(path, text)?;
        }
        Ok(())
    }

    /// The step by which few files change.
    pub(super) fn few(&self) -> usize {
        (self.paths.len() / FEW).max(1)
    }

    /// Plans and carries out the way back from a snapshot of now, which is taken before the clock starts.
    pub(super) async fn go_back(&self, checkpoints: &Checkpoints, target: &str, step: usize) -> Result<f64> {
        let now = self.save(checkpoints).await?.1;
        let span = Span { from: target.to_owned(), to: now.clone(), whose: Whose::Ours };
        let target = target.to_owned();
        let request = PlanRequest { target, now, spans: vec![span], overwrite: Overwrite::default() };
        let started = Instant::now();
        let plan = checkpoints.plan(&self.workspace, &request).await?;
        let restored = checkpoints.restore(&self.workspace, &plan).await?;
        let took = ms(started);
        let (done, all) = (restored.done.len(), self.paths.iter().step_by(step).count());
        anyhow::ensure!(done == all, "{done} of {all} files went back");
        Ok(took)
    }

    /// The same by git, from an index of now.
    pub(super) async fn go_back_by_git(&self, folder: &Path, target: &str) -> Result<f64> {
        self.add(folder).await?;
        let started = Instant::now();
        self.git(folder, &["read-tree", "--reset", "-u", target]).await?;
        Ok(ms(started))
    }

    /// The repository of the person who works there, as it is after a while: packed, and its index up to date.
    pub(super) async fn own_repository(&self) -> Result<PathBuf> {
        let own = self.workspace.join(".git");
        self.git(&own, &["init", "--quiet"]).await?;
        self.add(&own).await?;
        self.git(&own, &["commit", "--quiet", "-m", "first"]).await?;
        self.git(&own, &["gc", "--quiet"]).await?;
        tokio::time::sleep(SECOND).await;
        self.add(&own).await?;
        Ok(own)
    }
}

fn ms(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}
