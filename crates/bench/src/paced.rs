//! Facts that come one at a time: what each delivery costs, and how late it is.
//!
//! Delay is to the moment when the reader's read has returned, and begins twice: at the fact's own `time`, which the
//! session's actor stamps before the fact is made durable, but after the one before it was; and when the script says that
//! the fact was due, which has that wait and the timer's lateness in it. All on the wall clock of one machine.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Bench;
use crate::burst::{facts_of, readers_of};
use crate::figure::percentile;
use crate::gapless::Gapless;
use crate::process::Process;
use crate::reader::{Numbers, Reader};
use crate::report::{Figure, Goal};
use crate::server::{Script, new_session, prompt, readers};

pub(crate) const EVERY: Duration = Duration::from_millis(5);
/// Three seconds of facts.
const FACTS: usize = 600;

/// Delays in milliseconds, sorted, and the processor time of a delivery in microseconds.
pub(crate) struct Paced {
    pub(crate) delays: Vec<f64>,
    /// The same from when each fact was due.
    due: Vec<f64>,
    pub(crate) cpu: f64,
    per_write: f64,
    per_read: f64,
    /// A fact as it stood on the wire.
    frame: Vec<u8>,
}

#[derive(Default)]
struct Runs {
    cpu: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    max: Vec<f64>,
    due_p50: Vec<f64>,
    due_p99: Vec<f64>,
    per_write: Vec<f64>,
    per_read: Vec<f64>,
}

/// The same by a program that only writes: each fact in a write of its own.
#[derive(Default)]
struct Raw {
    cpu: Vec<f64>,
    per_read: Vec<f64>,
}

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let gather = bench.tolka.knows("--gather");
    if !gather {
        println!("          this server has no --gather: those rows are left out");
    }
    for count in [1000, 500] {
        let (mut at_once, mut gathered, mut raw) = (Runs::default(), Runs::default(), Raw::default());
        let mut delays = Vec::new();
        for _ in 0..bench.runs {
            let ours = run(bench, count, &[]).await?;
            at_once.add(&ours);
            let (cpu, per_read) = beside_raw(&ours, count).await?;
            raw.cpu.push(cpu);
            raw.per_read.push(per_read);
            delays = ours.delays;
            if gather {
                gathered.add(&run(bench, count, &["--gather", "20"]).await?);
            }
        }
        let merged = merged(Figure::of(at_once.per_write.clone()).median);
        let what = format!("{}, a fact each 5 ms, at once", readers_of(count));
        at_once.tell(bench, &what, &raw, Goal::AtMost(5.0), &merged);
        if gather {
            let what = format!("{}, a fact each 5 ms, gathered for 20 ms", readers_of(count));
            gathered.tell(bench, &what, &raw, Goal::AtMost(2.0), "");
        }
        tell_distribution(bench, &format!("Tolka, {}", readers_of(count)), &delays);
    }
    Ok(())
}

pub(crate) fn tell_distribution(bench: &mut Bench, line: &str, delays: &[f64]) {
    for hundredths in [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9] {
        bench.report.point("delay", line, hundredths, percentile(delays, hundredths));
    }
}

impl Runs {
    fn add(&mut self, paced: &Paced) {
        self.cpu.push(paced.cpu);
        self.p50.push(percentile(&paced.delays, 50.0));
        self.p99.push(percentile(&paced.delays, 99.0));
        self.max.push(percentile(&paced.delays, 100.0));
        self.due_p50.push(percentile(&paced.due, 50.0));
        self.due_p99.push(percentile(&paced.due, 99.0));
        self.per_write.push(paced.per_write);
        self.per_read.push(paced.per_read);
    }

    fn tell(self, bench: &mut Bench, what: &str, raw: &Raw, goal: Goal, remark: &str) {
        let report = &mut bench.report;
        let row = report.row(
            &format!("server CPU per delivery, {what}"),
            "µs",
            Figure::of(self.cpu),
            Some(("raw TCP at once", Figure::of(raw.cpu.clone()))),
        );
        row.goal(goal).note(format!(
            "{remark}facts per write: ours {:.2}, raw TCP 1; per read: ours {:.2}, raw TCP {:.2}",
            Figure::of(self.per_write).median,
            Figure::of(self.per_read).median,
            Figure::of(raw.per_read.clone()).median,
        ));
        for (name, runs) in [
            ("p50", self.p50),
            ("p99", self.p99),
            ("longest", self.max),
            ("p50 from when it was due", self.due_p50),
            ("p99 from when it was due", self.due_p99),
        ] {
            report.row(&format!("delay {name}, {what}"), "ms", Figure::of(runs), None);
        }
    }
}

/// A server that lacks the processor merges facts by itself, and its cost is no longer that of telling them at once.
fn merged(per_write: f64) -> String {
    if per_write > 1.5 {
        format!("merged by a full processor: {per_write:.1} facts per write; ")
    } else {
        String::new()
    }
}

async fn run(bench: &mut Bench, count: usize, more: &[&str]) -> Result<Paced> {
    let (server, _scratch) = bench.tolka.play(&Script::paced(FACTS, EVERY), more).await?;
    let paced = turn(bench, &server, count).await?;
    server.stop().await?;
    Ok(paced)
}

/// One paced turn in a new session, read by so many.
pub(crate) async fn turn(bench: &mut Bench, server: &Process, count: usize) -> Result<Paced> {
    let session = new_session(server).await?;
    let (mut reading, mut pieces, mut reads) = (JoinSet::new(), 0, 0);
    for mut reader in readers(server, &session, count).await? {
        pieces -= reader.pieces() as i64;
        reads -= reader.reads as i64;
        reader.arrivals = Some(Vec::with_capacity(FACTS + 8));
        reading.spawn(async move { reader.until(b"\"turn_ended\"").await.map(|()| reader) });
    }
    let cpu = server.cpu()?;
    prompt(server, &session).await?;
    let mut readers = Vec::new();
    while let Some(reader) = reading.join_next().await {
        readers.push(reader??);
    }
    let cpu = server.cpu()? - cpu;
    let told = readers.iter().find_map(|reader| reader.captured.as_deref()).context("no reader has kept its bytes")?;
    let (stamps, frame) = stamps(&facts_of(told)?)?;
    let last = stamps.keys().max().copied().unwrap_or(0);
    let began = began(stamps.values().filter_map(|stamp| Some((stamp.nth?, stamp.time))), EVERY);
    let (mut delays, mut due, mut events) = (Vec::new(), Vec::new(), 0);
    for mut reader in readers {
        reader.seen.ended_at(last);
        bench.ledger.add(&reader.seen);
        pieces += reader.pieces() as i64;
        reads += reader.reads as i64;
        let arrivals = reader.arrivals.unwrap_or_default();
        events += arrivals.len();
        for (number, at) in arrivals {
            let Some(stamp) = stamps.get(&number) else { continue };
            delays.push(at.saturating_sub(stamp.time) as f64 / 1e3);
            if let Some(nth) = stamp.nth {
                due.push(at.saturating_sub(began + nth * EVERY.as_micros() as u64) as f64 / 1e3);
            }
        }
    }
    delays.sort_by(f64::total_cmp);
    due.sort_by(f64::total_cmp);
    let (per_write, per_read) = (events as f64 / pieces as f64, events as f64 / reads as f64);
    Ok(Paced { delays, due, cpu: cpu / events as f64 * 1e6, per_write, per_read, frame })
}

/// When a fact was stamped, and which of the script's pieces it is, if it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    time: u64,
    nth: Option<u64>,
}

/// When the script began, by its most punctual piece: what is due at each step is counted from there. Of each piece its
/// number and its stamp.
pub(crate) fn began(stamps: impl Iterator<Item = (u64, u64)>, every: Duration) -> u64 {
    stamps.map(|(nth, stamp)| stamp.saturating_sub(nth * every.as_micros() as u64)).min().unwrap_or(0)
}

/// When each fact was stamped, and the last piece of text as a frame.
fn stamps(facts: &[u8]) -> Result<(HashMap<u64, Stamp>, Vec<u8>)> {
    let (mut stamps, mut frame) = (HashMap::new(), Vec::new());
    for line in facts.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let fact: serde_json::Value = serde_json::from_slice(line)?;
        let (seq, time) = (fact["seq"].as_u64().context("no seq")?, fact["time"].as_u64().context("no time")?);
        let nth = fact["data"]["text"].as_str().and_then(|text| text.split_once('@')?.0.parse().ok());
        stamps.insert(seq, Stamp { time, nth });
        if fact["type"] == "text_appended" {
            frame = line.to_vec();
        }
    }
    Ok((stamps, frame))
}

/// Processor time of a delivery by a program that only writes, in microseconds; and how many came with a read.
async fn beside_raw(ours: &Paced, count: usize) -> Result<(f64, f64)> {
    let file = tempfile::NamedTempFile::new()?;
    let mut frames = Vec::new();
    for n in 1..=FACTS {
        frames.extend_from_slice(format!("id: {n}.0\ndata: ").as_bytes());
        frames.extend_from_slice(&ours.frame);
        frames.extend_from_slice(b"\n\n\0");
    }
    std::fs::write(file.path(), frames)?;
    let path = file.path().to_str().context("a path that is no text")?;
    let args = ["paced-server", path, &count.to_string(), &EVERY.as_micros().to_string()];
    let server = Process::start(&std::env::current_exe()?, &args).await?;
    let mut reading = JoinSet::new();
    let mut first = None;
    for n in 0..count {
        let socket = TcpStream::connect(&server.address).await?;
        if n == 0 {
            let (read, write) = split(socket)?;
            first = Some(write);
            let mut reader = Reader::ask_on(read, &server.address, "/", Numbers::Positions).await?;
            reader.seen = Gapless::starting_at(0);
            reading.spawn(read_all(reader));
        } else {
            let mut reader = Reader::ask_on(socket, &server.address, "/", Numbers::Positions).await?;
            reader.seen = Gapless::starting_at(0);
            reader.until_number(0).await?;
            reading.spawn(read_all(reader));
        }
    }
    let cpu = server.cpu()?;
    first.context("no reader")?.write_all(b"go").await?;
    let mut reads = 0;
    while let Some(read) = reading.join_next().await {
        reads += read??;
    }
    let (cpu, events) = (server.cpu()? - cpu, (count * FACTS) as f64);
    server.stop().await?;
    Ok((cpu / events * 1e6, events / reads as f64))
}

/// To the end; gives how many reads that took.
async fn read_all(mut reader: Reader) -> Result<u64> {
    let before = reader.reads;
    reader.until_number(FACTS as u64).await?;
    anyhow::ensure!(reader.seen.lost + reader.seen.doubled == 0, "the reference lost events");
    Ok(reader.reads - before)
}

/// The same socket twice: one reads, the other says go.
fn split(socket: TcpStream) -> Result<(TcpStream, TcpStream)> {
    let socket = socket.into_std()?;
    let other = socket.try_clone()?;
    Ok((TcpStream::from_std(socket)?, TcpStream::from_std(other)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_punctual_piece_says_when_the_script_began() {
        let late = [(0, 10_900), (1, 15_200), (2, 22_000)];
        assert_eq!(began(late.into_iter(), EVERY), 10_200);
    }

    #[test]
    fn a_row_says_when_facts_were_merged() {
        assert_eq!(merged(1.04), "");
        assert_eq!(merged(2.34), "merged by a full processor: 2.3 facts per write; ");
    }

    #[test]
    fn pieces_of_the_script_are_known_by_their_number() -> Result<()> {
        let facts = concat!(
            r#"{"seq":3,"time":7,"type":"turn_started","data":{"turn":"trn_1"}}"#,
            "\n",
            r#"{"seq":4,"time":9,"type":"text_appended","data":{"part":"prt_1","text":"0@0 Some words. "}}"#,
            "\n"
        );
        let (stamps, frame) = stamps(facts.as_bytes())?;
        assert_eq!(stamps[&3], Stamp { time: 7, nth: None });
        assert_eq!(stamps[&4], Stamp { time: 9, nth: Some(0) });
        assert!(frame.starts_with(br#"{"seq":4"#));
        Ok(())
    }
}
