//! What it takes to run a command that does nothing, at every level of confinement that this machine has, beside a bare
//! shell that does the same.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::process::Command;
use tolka_workspace::command::{Heard, Job, Level, Shell};

use crate::Bench;
use crate::report::Figure;

/// Starts are short and wander much: a run is the median of so many.
const EACH: usize = 20;

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    // The keeper is the product's own.
    let keeper = bench.tolka.path()?;
    let folder = tempfile::tempdir()?;
    for level in [Level::None, Level::Landlock, Level::Bubblewrap] {
        let what = format!("a command that does nothing, sandbox {}", level.name());
        let shell = match Shell::at(&keeper, level) {
            Ok(shell) => shell,
            Err(error) => {
                let row = bench.report.row(&what, "ms", Figure::of(Vec::new()), None);
                row.note(format!("this machine cannot: {error}"));
                continue;
            }
        };
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..bench.runs {
            let (mut some, mut others) = (Vec::new(), Vec::new());
            for _ in 0..EACH {
                some.push(kept(&shell, folder.path()).await?);
                others.push(unkept().await?);
            }
            ours.push(Figure::of(some).median);
            bare.push(Figure::of(others).median);
        }
        bench.report.row(&what, "ms", Figure::of(ours), Some(("sh -c true", Figure::of(bare))));
    }
    Ok(())
}

/// Milliseconds from the order to the word that it has ended.
async fn kept(shell: &Shell, workspace: &Path) -> Result<f64> {
    let started = Instant::now();
    let mut running = shell.start(&Job {
        line: "true".to_owned(),
        workspace: workspace.to_owned(),
        folder: workspace.to_owned(),
        time_limit: Duration::from_secs(60),
        env: Vec::new(),
    })?;
    while let Some(heard) = running.next().await {
        match heard {
            Heard::Output(_) => {}
            Heard::Ended(exit) if exit.code == Some(0) => return Ok(started.elapsed().as_secs_f64() * 1e3),
            Heard::Ended(exit) => anyhow::bail!("the command ended with {exit:?}"),
            Heard::Failed(why) => anyhow::bail!("the command failed: {why}"),
        }
    }
    anyhow::bail!("nothing was said of how the command ended")
}

async fn unkept() -> Result<f64> {
    let started = Instant::now();
    let status = Command::new("sh").args(["-c", "true"]).stdin(Stdio::null()).kill_on_drop(true).status();
    anyhow::ensure!(status.await?.success(), "sh does not work");
    Ok(started.elapsed().as_secs_f64() * 1e3)
}
