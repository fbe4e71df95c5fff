//! `make bench-count`: instructions per fact, for every encoder, for the tip and for the journal.
//!
//! Counts hardly wander where times do: a change of 2 % is seen on a busy machine. The same program runs under callgrind
//! with some laps of a stream and with twice as many; the difference is what the laps cost, and all that happens once
//! cancels out. Two counts of one program differ by some 0.1 %: some maps are seeded by chance. They are held against
//! `baseline.json`, which `UPDATE_BASELINE=1` writes anew; another compiler or processor counts otherwise, so the baseline
//! says of which it is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use tolka_dialect::{Dialect, Frames};
use tolka_facts::{NoBlobs, Tip};
use tolka_journal::{Append, Journal, Sqlite, SqliteOptions};

use crate::encode::streams::Stream;

const LAPS: usize = 2;
/// A change of more is marked.
const SEEN: f64 = 0.02;
/// Facts in one append: what a session's actor gathers while an agent talks.
const BATCH: usize = 16;
const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.json");

/// What is counted.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Json,
    Apply,
    Append,
    Encode(Dialect),
}

impl Subject {
    fn all() -> impl Iterator<Item = Subject> {
        [Subject::Json, Subject::Apply, Subject::Append].into_iter().chain(Dialect::ALL.map(Subject::Encode))
    }

    fn name(self) -> &'static str {
        match self {
            Subject::Json => "the fact as JSON",
            Subject::Apply => "Tip::apply",
            Subject::Append => "append",
            Subject::Encode(dialect) => dialect.name(),
        }
    }

    /// What is done for each fact beside what is counted.
    fn beside(self) -> Option<Subject> {
        matches!(self, Subject::Encode(_)).then_some(Subject::Apply)
    }
}

pub(crate) fn measure() -> Result<()> {
    let valgrind = said("valgrind", "--version").context("counting needs valgrind: apt-get install valgrind")?;
    let baseline = std::fs::read(BASELINE).ok().map_or(Ok(Value::Null), |json| serde_json::from_slice(&json))?;
    let mut by_stream = Map::new();
    for stream in Stream::ALL {
        println!("\n{}: instructions per fact       now    baseline    change", stream.name());
        let mut counts = Map::new();
        for subject in Subject::all() {
            let mut count = per_fact(subject, stream)?;
            if let Some(beside) = subject.beside() {
                count -= counts[beside.name()].as_f64().unwrap_or_default();
            }
            row(subject.name(), count, baseline["instructions_per_fact"][stream.name()][subject.name()].as_f64());
            counts.insert(subject.name().to_owned(), json!(count.round()));
        }
        by_stream.insert(stream.name().to_owned(), counts.into());
    }
    let taken = json!({ "processor": processor(), "compiler": said("rustc", "--version")?, "valgrind": valgrind });
    if baseline["taken"] != taken && !baseline.is_null() {
        println!("\nthe baseline is of {}; this is {taken}", baseline["taken"]);
    }
    let counts = serde_json::to_vec_pretty(&json!({ "taken": taken, "instructions_per_fact": by_stream }))?;
    std::fs::create_dir_all("bench-results")?;
    std::fs::write("bench-results/counts.json", &counts)?;
    println!("\nwritten to bench-results/counts.json");
    if std::env::var_os("UPDATE_BASELINE").is_some() {
        std::fs::write(BASELINE, [&counts[..], b"\n"].concat())?;
    }
    Ok(())
}

fn row(name: &str, count: f64, baseline: Option<f64>) {
    let Some(baseline) = baseline.filter(|baseline| *baseline > 0.0) else {
        return println!("  {name:24} {count:10.0}           –");
    };
    let change = count / baseline - 1.0;
    let mark = match change {
        change if change > SEEN => "  MORE",
        change if change < -SEEN => "  less",
        _ => "",
    };
    println!("  {name:24} {count:10.0} {baseline:11.0} {:+8.1} %{mark}", change * 100.0);
}

fn per_fact(subject: Subject, stream: Stream) -> Result<f64> {
    let (once, twice) = (instructions(subject, stream, LAPS)?, instructions(subject, stream, LAPS * 2)?);
    Ok((twice - once) as f64 / (stream.laps()?.len() * LAPS) as f64)
}

fn instructions(subject: Subject, stream: Stream, laps: usize) -> Result<i64> {
    let scratch = tempfile::tempdir()?;
    let out = scratch.path().join("callgrind");
    let run = Command::new("valgrind")
        // Memory given back by the clock was counted now and then: 1 % of a count.
        .env("MIMALLOC_PURGE_DELAY", "-1")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .arg(std::env::current_exe()?)
        .args(["work", subject.name(), stream.name(), &laps.to_string()])
        .output()?;
    ensure!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let counted = std::fs::read_to_string(&out)?;
    let total = counted.lines().find_map(|line| line.strip_prefix("totals: ")).context("callgrind gave no total")?;
    Ok(total.trim().parse()?)
}

/// What is counted, and nothing else.
pub(crate) fn work(subject: &str, stream: &str, laps: &str) -> Result<()> {
    let subject = Subject::all().find(|known| known.name() == subject).context("what to count")?;
    let stream = Stream::ALL.into_iter().find(|known| known.name() == stream).context("which stream")?;
    let laps: usize = laps.parse()?;
    match subject {
        Subject::Json => json_of(stream, laps),
        Subject::Apply => fold(stream, laps, None),
        Subject::Encode(dialect) => fold(stream, laps, Some(dialect)),
        Subject::Append => append(stream, laps),
    }
}

fn json_of(stream: Stream, count: usize) -> Result<()> {
    let (mut laps, mut out) = (stream.laps()?, Vec::new());
    laps.created();
    for _ in 0..laps.len() * count {
        out.clear();
        serde_json::to_writer(&mut out, laps.next())?;
    }
    Ok(())
}

fn fold(stream: Stream, count: usize, dialect: Option<Dialect>) -> Result<()> {
    let (mut laps, mut tip, mut frames) = (stream.laps()?, Tip::default(), Frames::default());
    let mut encoder = dialect.map(Dialect::encoder);
    tip.apply(&laps.created());
    for _ in 0..laps.len() * count {
        let fact = laps.next();
        tip.apply(fact);
        if let Some(encoder) = &mut encoder {
            frames.clear();
            encoder.encode(fact, &tip, &NoBlobs, &mut frames);
        }
    }
    Ok(())
}

fn append(stream: Stream, count: usize) -> Result<()> {
    // In memory where there is such a place: the disk's own waiting has no instructions to count.
    let shm = Path::new("/dev/shm");
    let root = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    let scratch = tempfile::tempdir_in(root)?;
    let journal = Sqlite::open(&SqliteOptions::new(scratch.path().join("data")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut laps = stream.laps()?;
    let mut facts = vec![Arc::new(laps.created())];
    for _ in 0..laps.len() * count {
        facts.push(Arc::new(laps.next().clone()));
        if facts.len() == BATCH {
            let facts = std::mem::take(&mut facts);
            runtime.block_on(journal.append(Append { facts, ..Append::default() }))?;
        }
    }
    journal.close();
    Ok(())
}

fn said(program: &str, argument: &str) -> Result<String> {
    let output = Command::new(program).arg(argument).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn processor() -> Option<String> {
    let info = std::fs::read_to_string(PathBuf::from("/proc/cpuinfo")).ok()?;
    let model = info.lines().find(|line| line.starts_with("model name"))?;
    Some(model.split_once(':')?.1.trim().to_owned())
}
