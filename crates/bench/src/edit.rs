//! An edit in a large file as the tool makes it: read beneath the workspace, the place found, the whole put in its place
//! at once, the difference told. Beside the same bytes read, replaced and put in place with no care at all.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tolka_workspace::diff;
use tolka_workspace::edit::{self, Places};
use tolka_workspace::files::Files;

use crate::Bench;
use crate::figure::readable;
use crate::model::{Answer, Model};
use crate::report::{Figure, Goal};
use crate::server::{new_session, prompt};

const SIZE: usize = 5_000_000;
const NAME: &str = "large.rs";
/// No file that is edited here is larger.
const MOST: u64 = 64 << 20;
/// In the middle of the file's 75,000 lines.
const LINE: usize = 37_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    Exactly,
    /// With other white space than the file has, as models do.
    Loosely,
}

/// Milliseconds of each stage.
#[derive(Debug, Default)]
struct Stages {
    read: Vec<f64>,
    replace: Vec<f64>,
    write: Vec<f64>,
    diff: Vec<f64>,
}

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    for (what, copied) in [("to the letter", Copied::Exactly), ("but for white space", Copied::Loosely)] {
        let runs = bench.runs * 2;
        // Files block.
        let measured = tokio::task::spawn_blocking(move || compared(copied, runs)).await?;
        let (ours, raw, stages) = measured?;
        let what = format!("edit in a file of 5 MB, the old text {what}");
        let [read, replace, write, diff] =
            [stages.read, stages.replace, stages.write, stages.diff].map(|runs| readable(Figure::of(runs).median));
        let row = bench.report.row(&what, "ms", ours, Some(("read, str::replace, fsync, rename", raw)));
        row.goal(Goal::RatioAtMost(5.0));
        row.note(format!("ms of it: read {read}, replace {replace}, write {write}, diff {diff}"));
    }
    through_server(bench).await
}

/// The same as a model's call, up to the next request: with leave asked, both contents kept, and all of it told.
async fn through_server(bench: &mut Bench) -> Result<()> {
    let (mut ours, mut cpu, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    let model = Model::start().await?;
    let (server, scratch) = bench.tolka.think(&model).await?;
    let path = scratch.path().join("workspace").join(NAME);
    let bare = scratch.path().join(NAME);
    std::fs::write(&path, text()?)?;
    std::fs::write(&bare, text()?)?;
    let session = new_session(&server).await?;
    prompt(&server, &session).await?;
    model.asked().await?;
    // The first warms the caches.
    for run in 0..=bench.runs {
        let old = line(LINE + run);
        let new = old.replace("let", "const");
        let input = json!({ "filePath": NAME, "oldString": old, "newString": new });
        let (before, started) = (server.cpu()?, Instant::now());
        model.ready([Answer::call(run, "edit", &input)]);
        model.asked().await?;
        let (ms, used) = (since(started), (server.cpu()? - before) * 1e3);
        anyhow::ensure!(std::fs::read_to_string(&path)?.contains(&new), "the model's edit was not made");
        let started = Instant::now();
        replaced(&bare, &old, &new)?;
        if run > 0 {
            ours.push(ms);
            cpu.push(used);
            raw.push(since(started));
        }
    }
    server.stop().await?;
    let what = "a model's call to edit a file of 5 MB";
    let beside = Some(("read, str::replace, fsync, rename", Figure::of(raw)));
    bench.report.row(&format!("{what}, up to the next request"), "ms", Figure::of(ours), beside);
    bench.report.row(&format!("server CPU, {what}"), "ms", Figure::of(cpu), None);
    Ok(())
}

fn compared(copied: Copied, runs: usize) -> Result<(Figure, Figure, Stages)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(NAME);
    let text = text()?;
    let (mut ours, mut raw, mut stages) = (Vec::new(), Vec::new(), Stages::default());
    let lines = [line(LINE), line(LINE + 1)];
    let old = lines.concat();
    let new = old.replace("let", "const");
    let asked = match copied {
        Copied::Exactly => old.clone(),
        Copied::Loosely => lines.map(|line| format!("  {}  \n", line.trim())).concat(),
    };
    // The first of each warms the caches.
    for run in 0..=runs {
        std::fs::write(&path, &text)?;
        let started = Instant::now();
        let is_tolerant = edited(folder.path(), &asked, &new, &mut stages)?;
        let ms = since(started);
        anyhow::ensure!(is_tolerant == (copied == Copied::Loosely), "the place was found in another way");
        let after = std::fs::read_to_string(&path)?;
        anyhow::ensure!(after.len() > text.len() && after.contains("const"), "nothing was changed");
        std::fs::write(&path, &text)?;
        let started = Instant::now();
        replaced(&path, &old, &new)?;
        let raw_ms = since(started);
        if run > 0 {
            ours.push(ms);
            raw.push(raw_ms);
        }
    }
    Ok((Figure::of(ours), Figure::of(raw), stages))
}

/// As the tool does it. Whether tolerance was needed.
fn edited(workspace: &Path, old: &str, new: &str, stages: &mut Stages) -> Result<bool> {
    let started = Instant::now();
    let files = Files::open(workspace)?;
    let bytes = files.read(NAME, MOST)?;
    let before = std::str::from_utf8(&bytes).context("the file is text")?;
    stages.read.push(since(started));
    let started = Instant::now();
    let edited = edit::replace(before, old, new, Places::One)?;
    stages.replace.push(since(started));
    let started = Instant::now();
    files.write(NAME, edited.text.as_bytes(), Some(&bytes))?;
    stages.write.push(since(started));
    let started = Instant::now();
    let told = diff::unified(NAME, Some(before), Some(&edited.text));
    stages.diff.push(since(started));
    anyhow::ensure!((told.added, told.removed) == (2, 2), "two lines were to change: {}", told.text);
    Ok(edited.is_tolerant)
}

fn replaced(path: &Path, old: &str, new: &str) -> Result<()> {
    let text = std::fs::read_to_string(path)?.replace(old, new);
    let part = path.with_extension("part");
    let mut file = File::create(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(std::fs::rename(&part, path)?)
}

fn text() -> Result<String> {
    let mut text = String::with_capacity(SIZE + 100);
    let mut number = 0;
    while text.len() < SIZE {
        text.write_str(&line(number))?;
        number += 1;
    }
    Ok(text)
}

fn line(number: usize) -> String {
    format!("    let value_{number} = compute(value_{}, \"some words\", {});\n", number / 2, number % 97)
}

fn since(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}
