//! A server under measurement: its process, its address, what it has used so far.

use std::io::Seek;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A request that takes longer has failed: the bench must end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of the process's times, in a second; the same on every Linux that people run.
const TICKS: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
}

impl Process {
    /// Starts a program that prints where it listens as its first line.
    pub(crate) async fn start(program: &Path, args: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        // What it says beside is of interest only where it does not start.
        let mut said = tempfile::tempfile()?;
        command.args(args).env_remove("TOLKA_TOKEN").stdout(Stdio::piped()).stderr(said.try_clone()?);
        command.kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("{} does not start", program.display()))?;
        let stdout = child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        timeout(PATIENCE, BufReader::new(stdout).read_line(&mut line)).await.context("it does not say where")??;
        let address = line.trim().trim_start_matches("http://").to_owned();
        if address.is_empty() {
            said.rewind()?;
            let why = std::io::read_to_string(said)?;
            anyhow::bail!("{} does not say where it listens: {}", program.display(), why.trim());
        }
        Ok(Process { child, address })
    }

    /// Starts a program that was told where to listen, and waits until it answers at `path` with a first byte. It is
    /// asked again and again, each time on a new connection, and the first answer counts: some servers never answer
    /// what came in their first moments.
    pub(crate) async fn start_at(mut command: Command, address: String, path: &str) -> Result<Self> {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let server = Process { child, address };
        let mut asking = JoinSet::new();
        let first_byte = async {
            loop {
                asking.spawn(answers(server.address.clone(), path.to_owned()));
                let answered = timeout(Duration::from_millis(20), asking.join_next()).await;
                if let Ok(Some(Ok(true))) = answered {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, first_byte).await.with_context(|| format!("nothing answers at {}", server.address))?;
        Ok(server)
    }

    /// Seconds of processor time. The scheduler's count is exact but only of threads that live; the process's own has
    /// those that ended as well, in steps of 10 ms. Neither is ever too much, so the larger is the better.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let pid = self.pid()?;
        let whole = ticks(&std::fs::read_to_string(format!("/proc/{pid}/stat"))?).context("no times in stat")?;
        let mut nanos = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let stat = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            nanos += stat.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        }
        Ok((nanos / 1e9).max(whole / TICKS))
    }

    /// Bytes of resident memory.
    pub(crate) fn rss(&self) -> Result<f64> {
        self.status("VmRSS:")
    }

    /// The most bytes that were ever resident.
    pub(crate) fn peak_rss(&self) -> Result<f64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024.0)
    }

    fn pid(&self) -> Result<u32> {
        self.child.id().context("the server has ended")
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await?;
        Ok(())
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.request("POST", path, &body.to_string()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.request("GET", path, "").await
    }

    pub(crate) async fn request(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let answer = timeout(PATIENCE, self.exchange(method, path, body)).await;
        let answer = answer.with_context(|| format!("{method} {path} is not answered"))??;
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        anyhow::ensure!(status.starts_with('2'), "{method} {path} was answered with {status}: {body:.300}");
        Ok(serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// The whole answer, as it came.
    pub(crate) async fn exchange(&self, method: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let mut socket = TcpStream::connect(&self.address).await?;
        socket.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await?;
        Ok(answer)
    }

    /// A socket that has asked for a stream and read nothing of it.
    pub(crate) async fn open_stream(&self, path: &str) -> Result<TcpStream> {
        let mut socket = TcpStream::connect(&self.address).await?;
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n\r\n", self.address);
        socket.write_all(head.as_bytes()).await?;
        Ok(socket)
    }
}

async fn answers(address: String, path: String) -> bool {
    let Ok(mut socket) = TcpStream::connect(&address).await else { return false };
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
    socket.write_all(head.as_bytes()).await.is_ok() && matches!(socket.read(&mut [0; 1]).await, Ok(1))
}

/// What a process used for itself and in the kernel, with its ended threads: the 14th and 15th field of its `stat`. Its
/// name, the second, may have anything in it.
fn ticks(stat: &str) -> Option<f64> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_process_are_found_behind_any_name() {
        let stat = "7 (a b) S (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 34 9 9 20 0 3 0 100 1000 200 18446744073709551615";
        assert_eq!(ticks(stat), Some(284.0));
        assert_eq!(ticks("7 (tolka) S 1"), None);
    }
}
