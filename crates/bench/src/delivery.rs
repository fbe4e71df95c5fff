//! Events delivered per second, and what each delivery costs the server, beside raw TCP with the same bytes.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::RUNS;
use crate::process::Process;
use crate::report::{Figure, Report};

pub(crate) async fn measure(tolka: &Path, readers: usize, events: usize, report: &mut Report) -> Result<()> {
    let (mut rates, mut costs, mut raw_rates, mut raw_costs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (seconds, cpu, bytes) = burst(tolka, readers, events).await?;
        let deliveries = (readers * events) as f64;
        rates.push(deliveries / seconds);
        costs.push(cpu / deliveries * 1e6);
        let (seconds, cpu) = raw(readers, bytes).await?;
        raw_rates.push(deliveries / seconds);
        raw_costs.push(cpu / deliveries * 1e6);
    }
    let s = if readers == 1 { "" } else { "s" };
    let raw = Some(("raw TCP", Figure::of(raw_rates)));
    report.row(&format!("events delivered, burst of {events}, {readers} reader{s}"), "per s", Figure::of(rates), raw);
    let raw = Some(("raw TCP", Figure::of(raw_costs)));
    report.row(&format!("server CPU per delivery, {readers} reader{s}"), "µs", Figure::of(costs), raw);
    Ok(())
}

/// One burst through the whole server: told by an agent, made durable, encoded, written to every reader.
async fn burst(tolka: &Path, readers: usize, events: usize) -> Result<(f64, f64, usize)> {
    let scratch = tempfile::tempdir()?;
    let recording = scratch.path().join("burst.jsonl");
    std::fs::write(&recording, burst_recording(events))?;
    let agent = format!("replay:{}", recording.display());
    let data = scratch.path().join("data").display().to_string();
    let workspace = scratch.path().display().to_string();
    let args = ["serve", "--port", "0", "--data", &data, "--workspace", &workspace, "--agent", &agent, "--pace", "max"];
    let server = Process::start(tolka, &args).await?;
    let session = server.post("/v1/sessions", &json!({})).await?;
    let session = session["id"].as_str().context("no session")?.to_owned();
    let path = format!("/v1/sessions/{session}/events");
    let mut sockets = Vec::new();
    for _ in 0..readers {
        let mut socket = server.open_stream(&path).await?;
        read_until(&mut socket, b"session_created").await?;
        sockets.push(socket);
    }
    let mut reading = JoinSet::new();
    for mut socket in sockets {
        reading.spawn(async move { read_until(&mut socket, b"\"turn_ended\"").await });
    }
    let (cpu, started) = (server.cpu()?, Instant::now());
    server.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "text": "go" })).await?;
    let mut bytes = 0;
    while let Some(read) = reading.join_next().await {
        bytes = read??;
    }
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), server.cpu()? - cpu);
    server.stop().await?;
    Ok((seconds, cpu, bytes))
}

async fn raw(readers: usize, bytes: usize) -> Result<(f64, f64)> {
    let server = Process::start(&std::env::current_exe()?, &["raw-server", &bytes.to_string()]).await?;
    let mut sockets = Vec::new();
    for _ in 0..readers {
        sockets.push(TcpStream::connect(&server.address).await?);
    }
    let (cpu, started) = (server.cpu()?, Instant::now());
    let mut reading = JoinSet::new();
    for mut socket in sockets {
        reading.spawn(async move {
            socket.write_all(b"g").await?;
            let (mut left, mut buffer) = (bytes, vec![0; 64 * 1024]);
            while left > 0 {
                left = left.saturating_sub(socket.read(&mut buffer).await?.max(1));
            }
            anyhow::Ok(())
        });
    }
    while let Some(read) = reading.join_next().await {
        read??;
    }
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), server.cpu()? - cpu);
    server.stop().await?;
    Ok((seconds, cpu))
}

/// Reads until the mark stands near the end of what has come; gives how many bytes that took. The last event is
/// short, so a reader need not look through all it reads, which would cost more than the server does.
pub(crate) async fn read_until(socket: &mut TcpStream, mark: &[u8]) -> Result<usize> {
    const NEAR: usize = 512;
    let (mut buffer, mut tail, mut total) = (vec![0; 64 * 1024], Vec::with_capacity(2 * NEAR), 0);
    loop {
        let read = socket.read(&mut buffer).await?;
        anyhow::ensure!(read > 0, "the stream ended early");
        total += read;
        tail.extend_from_slice(&buffer[read.saturating_sub(NEAR)..read]);
        if tail.windows(mark.len()).any(|window| window == mark) {
            return Ok(total);
        }
        tail.drain(..tail.len().saturating_sub(NEAR));
    }
}

/// A recorded turn that tells so many pieces of text; each becomes an event of about 200 bytes.
fn burst_recording(events: usize) -> String {
    let mut lines = String::new();
    let mut fact = |seq: usize, kind: &str, data: serde_json::Value| {
        let fact = json!({ "v": 1, "session": "ses_1", "seq": seq, "time": seq, "cause": "agent", "type": kind, "data": data });
        lines.push_str(&fact.to_string());
        lines.push('\n');
    };
    fact(1, "session_created", json!({ "workspace": "/", "agent": "burst", "title": "Burst" }));
    let block = json!([{ "type": "text", "text": "go" }]);
    fact(2, "prompt_queued", json!({ "turn": "trn_1", "message": "msg_1", "content": block }));
    fact(3, "turn_started", json!({ "turn": "trn_1" }));
    for n in 0..events {
        fact(4 + n, "text_appended", json!({ "part": "prt_1", "text": "Some words. " }));
    }
    fact(4 + events, "turn_ended", json!({ "turn": "trn_1", "stop": "end_turn" }));
    lines
}
