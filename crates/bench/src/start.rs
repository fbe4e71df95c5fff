//! How soon a server is there, alone and with many sessions on disk, and how soon it lists them.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::Bench;
use crate::process::Process;
use crate::reader::{Numbers, Reader};
use crate::report::{Figure, Goal};
use crate::seed::one_of_many;

const SESSIONS: u64 = 10_000;
const LIVE: u64 = 100;
/// The first is answered as soon as the port is open, the second when the journal is read and its first fact durable.
const PATHS: [&str; 2] = ["/healthz", "/v1/sessions"];

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let many = bench.seeds.many(SESSIONS).await?;
    let (mut empty, mut full): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
    let (mut bare, mut prints) = (Vec::new(), Vec::new());
    // Starts are short and wander much: twice as many.
    for _ in 0..bench.runs * 2 {
        for (nth, path) in PATHS.into_iter().enumerate() {
            let scratch = tempfile::tempdir()?;
            empty[nth].push(first_byte(bench, scratch.path(), path).await?);
            full[nth].push(first_byte(bench, &many, path).await?);
        }
        let started = Instant::now();
        let server = Process::start(&std::env::current_exe()?, &["bare-server"]).await?;
        bare.push(first_byte_of(&server, "/", started).await?);
        server.stop().await?;
        let started = Instant::now();
        let process = Process::start(&std::env::current_exe()?, &["print"]).await?;
        prints.push(started.elapsed().as_secs_f64() * 1e3);
        process.stop().await?;
    }
    let (bare, prints) = (Figure::of(bare), Figure::of(prints));
    for ((path, empty), full) in PATHS.into_iter().zip(empty).zip(full) {
        let (what, empty) = (format!("start to first byte of {path}"), Figure::of(empty));
        let row = bench.report.row(&format!("{what}, empty"), "ms", empty, Some(("bare hyper", bare)));
        row.goal(Goal::AtMost(30.0)).goal(Goal::RatioAtMost(3.0));
        let beside = Some(("only prints", prints));
        bench.report.row(&format!("{what}, empty, beside a process that only prints"), "ms", empty, beside);
        let beside = Some(("empty", empty));
        let row = bench.report.row(&format!("{what}, 10,000 sessions"), "ms", Figure::of(full), beside);
        row.goal(Goal::RatioAtMost(2.0));
    }
    Ok(())
}

async fn first_byte(bench: &Bench, folder: &Path, path: &str) -> Result<f64> {
    let started = Instant::now();
    let server = bench.tolka.serve(folder, &[]).await?;
    let ms = first_byte_of(&server, path, started).await?;
    server.stop().await?;
    Ok(ms)
}

async fn first_byte_of(server: &Process, path: &str, started: Instant) -> Result<f64> {
    let mut socket = server.open_stream(path).await?;
    socket.read_exact(&mut [0; 1]).await?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// 10,000 sessions on disk, of which 100 are loaded and read by somebody.
pub(crate) async fn sessions(bench: &mut Bench) -> Result<()> {
    let many = bench.seeds.many(SESSIONS).await?;
    let (mut ours, mut opencode, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        let server = bench.tolka.serve(&many, &[]).await?;
        let mut live = Vec::new();
        for n in 0..LIVE {
            let path = format!("/v1/sessions/{}", one_of_many(n));
            server.request("PATCH", &path, &json!({ "title": "Live" }).to_string()).await?;
            let mut reader = Reader::ask(&server.address, &format!("{path}/events"), Numbers::Positions).await?;
            reader.read().await?;
            live.push(reader);
        }
        ours.push(answered(&server, "/v1/sessions").await?);
        opencode.push(answered(&server, "/session").await?);
        memory.push(server.rss()? / 1e6);
        server.stop().await?;
    }
    let report = &mut bench.report;
    let what = "with 10,000 sessions, 100 live";
    let row = report.row(&format!("listing at /v1/sessions (100 at a time), {what}"), "ms", Figure::of(ours), None);
    row.goal(Goal::AtMost(10.0));
    let row = report.row(&format!("listing at /session, {what}"), "ms", Figure::of(opencode), None);
    row.goal(Goal::AtMost(10.0));
    report.row(&format!("memory {what}"), "MB", Figure::of(memory), None);
    Ok(())
}

/// Milliseconds until the whole answer has come: the median of several, without the first.
pub(crate) async fn answered(server: &Process, path: &str) -> Result<f64> {
    server.exchange("GET", path, "").await?;
    let mut times = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        let answer = server.exchange("GET", path, "").await?;
        anyhow::ensure!(answer.starts_with(b"HTTP/1.1 200"), "{path} is not answered");
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Figure::of(times).median)
}
