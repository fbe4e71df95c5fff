//! What a server asked of a model, asked again by a process that does nothing with the answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::model::{Answer, END, Model};

/// What the same requests took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Seconds, both.
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// Asks the model these requests, one after the other, in a process of its own. The answers to them are `answers`.
pub(crate) async fn again(model: &Model, requests: &[Vec<u8>], answers: Vec<Answer>) -> Result<Asked> {
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("requests.json");
    let texts: Vec<_> = requests.iter().map(|request| String::from_utf8_lossy(request)).collect();
    std::fs::write(&file, serde_json::to_vec(&texts)?)?;
    model.ready(answers);
    let mut asker = Command::new(std::env::current_exe()?);
    let output = asker.arg("asks").arg(&file).arg(&model.address).kill_on_drop(true).output().await?;
    anyhow::ensure!(output.status.success(), "the reference failed: {}", String::from_utf8_lossy(&output.stderr));
    // Nobody is to replay the replay.
    model.requests();
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| said[name].as_f64().context("the reference said nothing");
    Ok(Asked { wall: number("wall")?, cpu: number("cpu")? })
}

/// That process: on one thread, with blocking reads, which is the least there is.
pub(crate) fn run(file: &Path, address: &str) -> Result<()> {
    let requests: Vec<String> = serde_json::from_slice(&std::fs::read(file)?)?;
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut buffer = vec![0; 64 * 1024];
    let (started, before) = (Instant::now(), cpu());
    for request in &requests {
        socket.write_all(request.as_bytes())?;
        let mut last = Vec::new();
        while last != END {
            let read = socket.read(&mut buffer)?;
            anyhow::ensure!(read > 0, "the model hung up");
            last.extend_from_slice(&buffer[read.saturating_sub(END.len())..read]);
            last.drain(..last.len().saturating_sub(END.len()));
        }
    }
    println!("{}", json!({ "wall": started.elapsed().as_secs_f64(), "cpu": cpu() - before }));
    Ok(())
}

/// Seconds of processor time of this thread.
fn cpu() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
