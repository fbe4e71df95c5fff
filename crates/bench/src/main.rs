//! `make bench`: what the server costs, each figure beside its reference from the same run.
//!
//! The server is the real binary in its own process; readers are sockets in this one. Figures on a
//! shared machine wander, so every row is the median of several runs with its spread, and ratios come
//! first: they wander least.

mod appends;
mod count;
mod delivery;
mod encode;
mod process;
mod raw;
mod report;
mod rest;

use std::path::PathBuf;

use anyhow::{Context, Result};

use report::Report;

/// The server's own, so that what is measured in this process costs what it costs there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs of each row; the median of five is steady enough to show a change of a tenth.
const RUNS: usize = 5;

fn main() -> Result<()> {
    // These need no runtime, and its threads would be counted.
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["encode"] => return encode::measure(),
        ["count"] => return count::measure(),
        ["work", subject, stream, laps] => return count::work(subject, stream, laps),
        _ => {}
    }
    let mut args = words.into_iter();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match args.next().as_deref() {
        Some("raw-server") => runtime.block_on(raw::serve(args.next().context("how many bytes")?.parse()?)),
        Some("seed") => {
            let dir = PathBuf::from(args.next().context("which folder")?);
            runtime.block_on(rest::seed(&dir, args.next().context("how many facts")?.parse()?))
        }
        None => runtime.block_on(bench()),
        Some(other) => anyhow::bail!("`{other}` is unknown; run `make bench`"),
    }
}

async fn bench() -> Result<()> {
    let tolka = std::env::current_exe()?.with_file_name("tolka");
    anyhow::ensure!(tolka.exists(), "{} is missing; `make bench` builds it", tolka.display());
    let mut report = Report::default();
    for (readers, events) in [(1, 60_000), (100, 10_000), (1000, 2_000)] {
        delivery::measure(&tolka, readers, events, &mut report).await?;
    }
    rest::idle(&tolka, &mut report).await?;
    rest::start(&tolka, &mut report).await?;
    rest::resume(&tolka, &mut report).await?;
    appends::measure(&mut report).await?;
    report.finish()
}
