//! Finding files and text among 20,000 files, in this process as the tools do it, beside `rg` on the same tree.
//!
//! Both must find the same before either is timed. `rg` pays for its start and for printing what it finds; ours sorts by
//! the time of change, opens each file beneath the workspace only, and keeps what it finds.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result};
use tolka_workspace::search::{Query, glob, grep};

use crate::Bench;
use crate::burst::thousands;
use crate::report::{Figure, Goal};

const FOLDERS: usize = 200;
const FILES: usize = 100;
/// Beside them, in a folder that `.gitignore` names.
const IGNORED: usize = 2_000;
/// Some 1.5 KB a file, as sources have.
const LINES: usize = 40;
/// Nothing that is looked for here is cut off: `rg` finds all of it too.
const LIMIT: usize = 50_000;

#[derive(Debug, Clone, Copy)]
enum Looking {
    Names,
    Text,
}

#[derive(Debug, Clone, Copy)]
struct Search {
    what: &'static str,
    looking: Looking,
    pattern: &'static str,
    finds: usize,
}

const SEARCHES: [Search; 5] = [
    Search { what: "glob of one file in a hundred", looking: Looking::Names, pattern: "**/part_17.rs", finds: FOLDERS },
    Search { what: "glob of all", looking: Looking::Names, pattern: "**/*.rs", finds: FOLDERS * FILES },
    Search {
        what: "grep of a word in one file of a hundred",
        looking: Looking::Text,
        pattern: "needle_42",
        finds: FOLDERS,
    },
    Search {
        what: "grep of an expression in all files",
        looking: Looking::Text,
        pattern: r"fn step_7_\w+\(",
        finds: FOLDERS * FILES,
    },
    Search { what: "grep of what is nowhere", looking: Looking::Text, pattern: "haystack", finds: 0 },
];

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let runs = bench.runs;
    // Walks block.
    let measured = tokio::task::spawn_blocking(move || all(runs)).await??;
    for (search, (ours, theirs)) in SEARCHES.into_iter().zip(measured) {
        let what = format!("{}, {} files", search.what, thousands(FOLDERS * FILES));
        let row = bench.report.row(&what, "ms", ours, theirs.map(|theirs| ("rg", theirs)));
        match theirs {
            Some(_) => row.goal(Goal::RatioAtMost(2.0)),
            None => row.note("no reference: `rg` is not installed (apt-get install ripgrep)"),
        };
    }
    Ok(())
}

fn all(runs: usize) -> Result<Vec<(Figure, Option<Figure>)>> {
    let tree = tempfile::tempdir()?;
    grow(tree.path())?;
    let has_rg =
        Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    let mut figures = Vec::new();
    for search in SEARCHES {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // The first of each warms the caches.
        for run in 0..=runs {
            let (ms, found) = timed(|| search.here(tree.path()))?;
            anyhow::ensure!(found == search.finds, "{}: found {found} of {}", search.what, search.finds);
            if run > 0 {
                ours.push(ms);
            }
            if has_rg {
                let (ms, found) = timed(|| search.by_rg(tree.path()))?;
                anyhow::ensure!(found == search.finds, "{}: rg found {found} of {}", search.what, search.finds);
                if run > 0 {
                    theirs.push(ms);
                }
            }
        }
        figures.push((Figure::of(ours), has_rg.then(|| Figure::of(theirs))));
    }
    Ok(figures)
}

fn timed(search: impl FnOnce() -> Result<usize>) -> Result<(f64, usize)> {
    let started = Instant::now();
    let found = search()?;
    Ok((started.elapsed().as_secs_f64() * 1e3, found))
}

impl Search {
    fn here(self, workspace: &Path) -> Result<usize> {
        let stop = Arc::new(AtomicBool::new(false));
        let query = Query { workspace, within: ".", pattern: self.pattern, include: None, limit: LIMIT, stop };
        Ok(match self.looking {
            Looking::Names => glob(&query)?.items.len(),
            Looking::Text => grep(&query)?.items.len(),
        })
    }

    fn by_rg(self, workspace: &Path) -> Result<usize> {
        let mut rg = Command::new("rg");
        // The same files as ours: ignored ones are left out without a repository too, hidden ones are not.
        rg.args(["--no-config", "--hidden", "--no-require-git", "--color", "never"]).current_dir(workspace);
        match self.looking {
            Looking::Names => rg.args(["--files", "--glob", self.pattern]),
            Looking::Text => rg.args(["--line-number", "--no-heading", self.pattern, "."]),
        };
        let output = rg.stdin(Stdio::null()).output().context("rg does not start")?;
        // 1: nothing found.
        anyhow::ensure!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(memchr::memchr_iter(b'\n', &output.stdout).count())
    }
}

fn grow(root: &Path) -> Result<()> {
    std::fs::write(root.join(".gitignore"), "/build/\n*.log\n")?;
    let mut text = String::new();
    for folder in 0..FOLDERS {
        let path = root.join(format!("crate_{}/module_{folder}", folder / 20));
        std::fs::create_dir_all(&path)?;
        for file in 0..FILES {
            text.clear();
            for line in 0..LINES {
                writeln!(text, "fn step_{line}_{file}() -> usize {{ {folder} + {line} }}")?;
            }
            if file == 42 {
                text.push_str("// needle_42\n");
            }
            std::fs::write(path.join(format!("part_{file}.rs")), &text)?;
        }
    }
    let ignored = root.join("build");
    std::fs::create_dir(&ignored)?;
    for file in 0..IGNORED {
        // All of it would be found.
        std::fs::write(ignored.join(format!("part_{file}.rs")), &text)?;
    }
    Ok(())
}
