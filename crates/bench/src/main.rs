//! `make bench` and `make bench-peers`: what the server costs, each figure beside its reference from the same run.
//!
//! The server is the real binary in its own process; readers are sockets in this one. Figures on a shared machine
//! wander, so every row is the median of several runs with its spread, ours and the reference turn by turn, and
//! ratios come first: they wander least.

mod appends;
mod body;
mod burst;
mod chart;
mod checkpoint;
mod churn;
mod command;
mod count;
mod edit;
mod encode;
mod figure;
mod gapless;
mod idle;
mod model;
mod paced;
mod page;
mod past;
mod peers;
mod process;
mod reader;
mod reference;
mod report;
mod search;
mod seed;
mod server;
mod stalled;
mod start;
mod steps;
mod tokens;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use gapless::Ledger;
use report::{Figure, Goal, Report};
use seed::Seeds;
use server::Tolka;

/// The server's own, so that what is measured in this process costs what it costs there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs of each row; the median of five is steady enough to show a change of a tenth.
const RUNS: u32 = 5;

/// Measures Tolka beside raw references, or beside its peers
#[derive(Debug, Parser)]
#[command(name = "tolka-bench")]
struct Args {
    /// Measure these alone, by name, separated by commas (see --list)
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = NAMES)]
    only: Vec<String>,
    /// Runs of each row
    #[arg(long, default_value_t = RUNS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Say what can be measured
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reference: the bytes of a file in pieces of this size to whoever asks
    #[command(hide = true)]
    RawServer { file: PathBuf, piece: usize },
    /// Reference: the frames of a file, one at a time, to so many readers
    #[command(hide = true)]
    PacedServer { file: PathBuf, readers: usize, micros: u64 },
    /// Reference: the facts of a file, encoded for each who asks
    #[command(hide = true)]
    EachServer { file: PathBuf },
    /// Reference: a server that says ok
    #[command(hide = true)]
    BareServer,
    /// Reference: asks a model the requests of a file
    #[command(hide = true)]
    Asks { file: PathBuf, address: String },
    /// Reference: prints a line
    #[command(hide = true)]
    Print,
    /// The script that peers play: as a model, as an agent
    #[command(hide = true)]
    ModelServer,
    #[command(hide = true)]
    ScriptedAgent,
    /// Measure beside OpenCode and sandbox-agent
    Peers,
    /// Measure what it costs to tell a fact, in every dialect
    Encode,
    /// Count instructions per fact, beside the baseline
    Count,
    /// What is counted
    #[command(hide = true)]
    Work { subject: String, stream: String, laps: String },
    /// Write docs/performance.md and its charts from what was measured
    Report,
}

/// What the rows share.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) tolka: Tolka,
    pub(crate) runs: usize,
    pub(crate) report: Report,
    /// Every reader of every row is counted here.
    pub(crate) ledger: Ledger,
    pub(crate) seeds: Seeds,
}

impl Bench {
    pub(crate) fn new(runs: u32) -> Result<Self> {
        Ok(Bench {
            tolka: Tolka::find()?,
            runs: runs as usize,
            report: Report::default(),
            ledger: Ledger::default(),
            seeds: Seeds::new()?,
        })
    }

    fn tell_ledger(&mut self) {
        let Ledger { readers, events, lost, doubled } = self.ledger;
        if readers > 0 {
            self.report.begin("lost");
            let figure = Figure::of(vec![(lost + doubled) as f64]);
            let note = format!("{readers} readers checked the numbers of {events} events");
            let row = self.report.row("events lost or doubled, all readers of all rows", "", figure, None);
            row.goal(Goal::AtMost(0.0)).note(note);
        }
    }
}

/// In the order in which they are measured.
const NAMES: [&str; 18] = [
    "burst",
    "ready",
    "catchup",
    "paced",
    "idle",
    "churn",
    "start",
    "sessions",
    "resume",
    "view",
    "stalled",
    "appends",
    "tokens",
    "steps",
    "search",
    "edit",
    "command",
    "checkpoint",
];

fn main() -> ExitCode {
    match measure(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: Args) -> Result<()> {
    if args.list {
        println!("{}", NAMES.join("\n"));
        return Ok(());
    }
    // These need no runtime, and its threads would be counted.
    match &args.command {
        Some(Command::Print) => {
            println!("ok");
            return Ok(());
        }
        Some(Command::Asks { file, address }) => return reference::asks::run(file, address),
        Some(Command::ScriptedAgent) => return peers::agent::run(),
        Some(Command::Report) => return page::write(),
        Some(Command::Encode) => return encode::measure(),
        Some(Command::Count) => return count::measure(),
        Some(Command::Work { subject, stream, laps }) => return count::work(subject, stream, laps),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // What was started goes when this goes, also when it is told to.
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            done = run(args) => done,
            _ = terminated.recv() => anyhow::bail!("told to stop"),
            _ = tokio::signal::ctrl_c() => anyhow::bail!("told to stop"),
        }
    })
}

async fn run(args: Args) -> Result<()> {
    match args.command {
        Some(Command::RawServer { file, piece }) => reference::raw::serve(&file, piece).await,
        Some(Command::PacedServer { file, readers, micros }) => {
            reference::raw::serve_paced(&file, readers, Duration::from_micros(micros)).await
        }
        Some(Command::EachServer { file }) => reference::each::serve(&file).await,
        Some(Command::BareServer) => reference::bare::serve().await,
        Some(Command::ModelServer) => peers::model::serve().await,
        Some(
            Command::Print
            | Command::Asks { .. }
            | Command::ScriptedAgent
            | Command::Report
            | Command::Encode
            | Command::Count
            | Command::Work { .. },
        ) => Ok(()),
        Some(Command::Peers) => {
            let (mut bench, started) = (Bench::new(args.runs)?, Instant::now());
            peers::measure(&mut bench).await?;
            bench.report.finish("bench-results/peers.json".as_ref(), started.elapsed().as_secs_f64())
        }
        None => bench(&args.only, args.runs).await,
    }
}

async fn bench(only: &[String], runs: u32) -> Result<()> {
    let (mut bench, started) = (Bench::new(runs)?, Instant::now());
    for name in NAMES.into_iter().filter(|name| only.is_empty() || only.iter().any(|chosen| chosen == name)) {
        bench.report.begin(name);
        match name {
            "burst" => burst::measure(&mut bench).await?,
            "ready" => burst::ready(&mut bench).await?,
            "catchup" => past::catch_up(&mut bench).await?,
            "paced" => paced::measure(&mut bench).await?,
            "idle" => idle::measure(&mut bench).await?,
            "churn" => churn::measure(&mut bench).await?,
            "start" => start::measure(&mut bench).await?,
            "sessions" => start::sessions(&mut bench).await?,
            "resume" => past::resume(&mut bench).await?,
            "view" => past::view(&mut bench).await?,
            "stalled" => stalled::measure(&mut bench).await?,
            "appends" => appends::measure(&mut bench).await?,
            "tokens" => tokens::measure(&mut bench).await?,
            "steps" => steps::measure(&mut bench).await?,
            "search" => search::measure(&mut bench).await?,
            "edit" => edit::measure(&mut bench).await?,
            "command" => command::measure(&mut bench).await?,
            "checkpoint" => checkpoint::measure(&mut bench).await?,
            _ => {}
        }
    }
    bench.tell_ledger();
    // A selection must not pass for the whole.
    let file = if only.is_empty() { "bench-results/latest.json" } else { "bench-results/selection.json" };
    bench.report.finish(file.as_ref(), started.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let parse = |args: &[&str]| Args::try_parse_from([&["tolka-bench"], args].concat());
        assert!(parse(&["--runs", "0"]).is_err());
        assert!(parse(&["--only", "idle,nope"]).is_err());
        let args = parse(&["--only", "idle,start", "--runs", "1"]).expect("what can be measured");
        assert_eq!((args.only.len(), args.runs), (2, 1));
    }
}
