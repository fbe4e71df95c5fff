//! A long past: reading all of it, coming back at its end, and seeing it whole.

use std::time::Instant;

use anyhow::Result;

use crate::Bench;
use crate::burst::thousands;
use crate::gapless::Gapless;
use crate::process::Process;
use crate::reader::{Numbers, Reader};
use crate::report::{Figure, Goal};
use crate::seed::long_session;

const LONG: u64 = 1_000_000;
const SHORT: u64 = 1_000;

/// All of a long session, from the journal.
pub(crate) async fn catch_up(bench: &mut Bench) -> Result<()> {
    let folder = bench.seeds.long(LONG).await?;
    let facts = bench.seeds.facts(LONG)?.display().to_string();
    let each = Process::start(&std::env::current_exe()?, &["each-server", &facts]).await?;
    let server = bench.tolka.serve(&folder, &[]).await?;
    let path = format!("/v1/sessions/{}/events", long_session());
    let (mut ours, mut cpu, mut theirs, mut their_cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        let (rate, cost, seen) = read_all(&server, &path).await?;
        bench.ledger.add(&seen);
        ours.push(rate);
        cpu.push(cost);
        let (rate, cost, _) = read_all(&each, "/").await?;
        theirs.push(rate);
        their_cpu.push(cost);
    }
    let memory = server.peak_rss()? / 1e6;
    server.stop().await?;
    each.stop().await?;
    let report = &mut bench.report;
    let what = format!("catching up on {} facts", thousands(LONG as usize));
    let beside = "encoded per reader, from memory";
    report.row(&format!("events delivered, {what}"), "per s", Figure::of(ours), Some((beside, Figure::of(theirs))));
    report.row(&format!("server CPU per fact, {what}"), "µs", Figure::of(cpu), Some((beside, Figure::of(their_cpu))));
    report.row(&format!("most memory, {what}"), "MB", Figure::of(vec![memory]), None);
    Ok(())
}

async fn read_all(server: &Process, path: &str) -> Result<(f64, f64, Gapless)> {
    let (cpu, started) = (server.cpu()?, Instant::now());
    let mut reader = Reader::ask(&server.address, path, Numbers::Positions).await?;
    reader.seen = Gapless::starting_at(1);
    reader.until_number(LONG).await?;
    Ok((LONG as f64 / started.elapsed().as_secs_f64(), (server.cpu()? - cpu) / LONG as f64 * 1e6, reader.seen))
}

/// A reader comes back at the end: the first after the server's start, and later ones.
pub(crate) async fn resume(bench: &mut Bench) -> Result<()> {
    for dialect in ["tolka", "acp", "onyx", "agentsmithy", "opencode"] {
        let (long, short) = (resumed(bench, dialect, LONG).await?, resumed(bench, dialect, SHORT).await?);
        for (nth, long, short) in [("first", long.0, short.0), ("later", long.1, short.1)] {
            let what = format!("resume at the end of {} facts, {dialect}, {nth}", thousands(LONG as usize));
            bench.report.row(&what, "ms", long, Some(("1,000 facts", short))).goal(Goal::RatioAtMost(2.0));
        }
        if dialect == "opencode" {
            for facts in [SHORT, 10_000, 100_000, LONG] {
                let (first, later) = resumed(bench, dialect, facts).await?;
                bench.report.point("growth", "first resume after a start", facts as f64, first.median);
                bench.report.point("growth", "later ones", facts as f64, later.median);
            }
        }
    }
    Ok(())
}

async fn resumed(bench: &Bench, dialect: &str, facts: u64) -> Result<(Figure, Figure)> {
    let folder = bench.seeds.long(facts).await?;
    let path = format!("/v1/sessions/{}/events?dialect={dialect}&after={}", long_session(), facts - 1);
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        let server = bench.tolka.serve(&folder, &[]).await?;
        // The first answer of any kind is not what is measured here.
        server.get("/healthz").await?;
        for nth in 0..6 {
            let started = Instant::now();
            let mut reader = Reader::ask(&server.address, &path, Numbers::None).await?;
            reader.until(b"data: ").await?;
            let ms = started.elapsed().as_secs_f64() * 1e3;
            if nth == 0 { first.push(ms) } else { later.push(ms) }
        }
        server.stop().await?;
    }
    Ok((Figure::of(first), Figure::of(later)))
}

/// The end of a long session, as pages are shown it.
pub(crate) async fn view(bench: &mut Bench) -> Result<()> {
    let session = long_session();
    for (what, path) in [
        ("last 50 messages", format!("/session/{session}/message?limit=50")),
        ("view (the last 20 turns)", format!("/v1/sessions/{session}/view")),
    ] {
        let (long, memory) = viewed(bench, &path, LONG).await?;
        let (short, _) = viewed(bench, &path, SHORT).await?;
        let what = format!("{what} of {} facts", thousands(LONG as usize));
        bench.report.row(&what, "ms", long, Some(("1,000 facts", short)));
        bench.report.row(&format!("most memory, {what}"), "MB", memory, None);
    }
    Ok(())
}

async fn viewed(bench: &Bench, path: &str, facts: u64) -> Result<(Figure, Figure)> {
    let folder = bench.seeds.long(facts).await?;
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        let server = bench.tolka.serve(&folder, &[]).await?;
        server.get("/healthz").await?;
        let started = Instant::now();
        let answer = server.exchange("GET", path, "").await?;
        anyhow::ensure!(answer.starts_with(b"HTTP/1.1 200"), "{path} is not answered");
        times.push(started.elapsed().as_secs_f64() * 1e3);
        memory.push(server.peak_rss()? / 1e6);
        server.stop().await?;
    }
    Ok((Figure::of(times), Figure::of(memory)))
}
