//! `tolka-bench encode`: what it costs to tell a fact, in every dialect.
//!
//! Each fact is timed by itself, so that there is a median and a tail; the reference beside it is the fact written as plain
//! JSON. Then one turn is made very long, and facts late in it are held against early ones: a cost that grows with what
//! was told before shows there. Allocations are counted by a program of its own, so that counting costs nothing here.

mod growth;
pub(crate) mod streams;

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tolka_dialect::{Dialect, Frames};
use tolka_facts::{NoBlobs, Tip};

use streams::Stream;

/// Facts of each stream that are timed.
const FACTS: usize = 100_000;
const RUNS: usize = 3;
/// Nanoseconds that the median fact may take, in every dialect.
const GOAL: u64 = 2000;

/// What one fact costs, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    median: u64,
    p99: u64,
    mean: u64,
}

impl Cost {
    fn of(mut each: Vec<u64>) -> Self {
        each.sort_unstable();
        let at = |share: usize| each.get(each.len() * share / 100).copied().unwrap_or_default();
        let mean = each.iter().sum::<u64>() / (each.len() as u64).max(1);
        Cost { median: at(50), p99: at(99), mean }
    }

    /// The run of the median median.
    fn middle(mut runs: Vec<Cost>) -> Self {
        runs.sort_by_key(|run| run.median);
        runs.get(runs.len() / 2).copied().unwrap_or_default()
    }

    fn json(self) -> Value {
        json!({ "median_ns": self.median, "p99_ns": self.p99, "mean_ns": self.mean })
    }
}

pub(crate) fn measure() -> Result<()> {
    let counted = allocations()?;
    println!("a reading of the clock takes {} ns; every figure has one in it", clock());
    let mut rows = Vec::new();
    for stream in Stream::ALL {
        println!(
            "\n{}: ns per fact        median     p99    mean   bytes out/in   allocations   most bytes for a fact",
            stream.name()
        );
        let reference = Cost::middle((0..RUNS).map(|_| plain(stream)).collect::<Result<_>>()?);
        row("the fact as JSON", reference, 1.0, &Value::Null);
        for dialect in Dialect::ALL {
            let runs: Vec<(Cost, f64)> = (0..RUNS).map(|_| told(dialect, stream)).collect::<Result<_>>()?;
            let ratio = runs[0].1;
            let cost = Cost::middle(runs.into_iter().map(|(cost, _)| cost).collect());
            let allocated = &counted[stream.name()][dialect.name()];
            row(dialect.name(), cost, ratio, allocated);
            rows.push(json!({
                "stream": stream.name(), "dialect": dialect.name(), "cost": cost.json(), "bytes_out_per_byte_in": ratio,
                "allocations": allocated, "reference": reference.json(), "met": cost.median <= GOAL,
            }));
        }
    }
    let missed: Vec<String> = rows.iter().filter(|row| row["met"] == false).map(named).collect();
    let growth = growth::measure(&counted)?;
    std::fs::create_dir_all("bench-results")?;
    let report = json!({ "clock_ns": clock(), "goal_ns": GOAL, "rows": rows, "growth": growth });
    std::fs::write("bench-results/encode.json", serde_json::to_vec_pretty(&report)?)?;
    println!("\nwritten to bench-results/encode.json");
    match missed.as_slice() {
        [] => println!("every dialect tells the median fact in {GOAL} ns or less"),
        missed => println!("missed, more than {GOAL} ns: {}", missed.join("; ")),
    }
    Ok(())
}

fn named(row: &Value) -> String {
    format!("{} in {}", row["stream"].as_str().unwrap_or_default(), row["dialect"].as_str().unwrap_or_default())
}

fn row(name: &str, cost: Cost, ratio: f64, allocated: &Value) {
    let count = allocated["per_fact"].as_f64().map_or_else(|| "–".to_owned(), |count| format!("{count:.2}"));
    let most = allocated["most_bytes"].as_u64().map_or_else(|| "–".to_owned(), |most| most.to_string());
    println!("  {name:22} {:7} {:7} {:7} {ratio:10.2} {count:>13} {most:>16}", cost.median, cost.p99, cost.mean);
}

fn told(dialect: Dialect, stream: Stream) -> Result<(Cost, f64)> {
    let mut laps = stream.laps()?;
    let (mut encoder, mut tip, mut frames) = (dialect.encoder(), Tip::default(), Frames::default());
    tip.apply(&laps.created());
    // The first lap fills buffers that a stream keeps.
    let (mut written, mut read) = (0, 0);
    for _ in 0..laps.len() {
        let fact = laps.next();
        tip.apply(fact);
        frames.clear();
        encoder.encode(fact, &tip, &NoBlobs, &mut frames);
        read += fact.to_json().len();
        written += frames.iter().map(<[u8]>::len).sum::<usize>();
    }
    let mut each = Vec::with_capacity(FACTS);
    for _ in 0..FACTS {
        let fact = laps.next();
        tip.apply(fact);
        frames.clear();
        let started = Instant::now();
        encoder.encode(fact, &tip, &NoBlobs, &mut frames);
        each.push(started.elapsed().as_nanos() as u64);
    }
    Ok((Cost::of(each), written as f64 / read as f64))
}

fn plain(stream: Stream) -> Result<Cost> {
    let (mut laps, mut out) = (stream.laps()?, Vec::new());
    laps.created();
    let mut each = Vec::with_capacity(FACTS);
    for _ in 0..FACTS {
        let fact = laps.next();
        out.clear();
        let started = Instant::now();
        serde_json::to_writer(&mut out, fact)?;
        each.push(started.elapsed().as_nanos() as u64);
    }
    Ok(Cost::of(each))
}

fn clock() -> u64 {
    let reading = |_| {
        let started = Instant::now();
        started.elapsed().as_nanos() as u64
    };
    Cost::of((0..10_000).map(reading).collect()).median
}

/// By stream and dialect, as the program that counts them prints it.
fn allocations() -> Result<Value> {
    let program = std::env::current_exe()?.with_file_name("tolka-bench-allocations");
    let counted = std::process::Command::new(&program).output().with_context(|| format!("{}", program.display()))?;
    anyhow::ensure!(counted.status.success(), "{}", String::from_utf8_lossy(&counted.stderr));
    Ok(serde_json::from_slice(&counted.stdout)?)
}
