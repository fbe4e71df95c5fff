//! A server under measurement: its process, its address, what it has used so far.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
}

impl Process {
    /// Starts a program that prints where it listens as its first line.
    pub(crate) async fn start(program: &Path, args: &[&str]) -> Result<Self> {
        let mut child = Command::new(program)
            .args(args)
            .env_remove("TOLKA_TOKEN")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let stdout = child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        let address = line.trim().trim_start_matches("http://").to_owned();
        anyhow::ensure!(!address.is_empty(), "{} said nothing", program.display());
        Ok(Process { child, address })
    }

    /// Seconds of processor time, of all its threads, to the microsecond: the usual counter has steps of 10 ms.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let mut nanos = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.pid()?))? {
            let stat = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            nanos += stat.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        }
        Ok(nanos / 1e9)
    }

    /// Bytes of resident memory.
    pub(crate) fn rss(&self) -> Result<f64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.pid()?))?;
        let pages: f64 = statm.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0.0);
        Ok(pages * 4096.0)
    }

    fn pid(&self) -> Result<u32> {
        self.child.id().context("the server has ended")
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await?;
        Ok(())
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let mut socket = TcpStream::connect(&self.address).await?;
        socket.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer);
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        Ok(serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// A socket that has asked for a stream and read nothing of it.
    pub(crate) async fn open_stream(&self, path: &str) -> Result<TcpStream> {
        let mut socket = TcpStream::connect(&self.address).await?;
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n\r\n", self.address);
        socket.write_all(head.as_bytes()).await?;
        Ok(socket)
    }
}
