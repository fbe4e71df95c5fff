//! Our server, as the rows use it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tempfile::TempDir;

use crate::gapless::Gapless;
use crate::model::Model;
use crate::process::Process;
use crate::reader::{Numbers, Reader};

/// The binary that is measured.
#[derive(Debug, Clone)]
pub(crate) struct Tolka {
    binary: PathBuf,
}

impl Tolka {
    /// The one that `TOLKA` names, as `make bench` does: one that happened to lie about might be of another profile.
    pub(crate) fn find() -> Result<Self> {
        let binary =
            std::env::var_os("TOLKA").context("TOLKA must name the binary to measure; `make bench` builds it")?;
        let binary = PathBuf::from(binary);
        anyhow::ensure!(binary.exists(), "{} is missing; `make bench` builds it", binary.display());
        Ok(Tolka { binary })
    }

    /// Where it is, from anywhere.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        Ok(self.binary.canonicalize()?)
    }

    /// Serves the `data` of a folder.
    pub(crate) async fn serve(&self, folder: &Path, more: &[&str]) -> Result<Process> {
        let (data, workspace) = (folder.join("data").display().to_string(), folder.join("workspace"));
        std::fs::create_dir_all(&workspace)?;
        let workspace = workspace.display().to_string();
        let mut args = vec!["serve", "--port", "0", "--data", &data, "--workspace", &workspace];
        args.extend_from_slice(more);
        // What the machine has of models and keys must not choose.
        if !more.contains(&"--agent") {
            args.extend(["--agent", "demo"]);
        }
        Process::start(&self.binary, &args).await
    }

    /// Serves an empty data folder with an agent that plays `script`.
    pub(crate) async fn play(&self, script: &Script, more: &[&str]) -> Result<(Process, TempDir)> {
        let scratch = tempfile::tempdir()?;
        let recording = scratch.path().join("script.jsonl");
        std::fs::write(&recording, script.recording())?;
        let agent = format!("replay:{}", recording.display());
        let pace = if script.every.is_zero() { "max" } else { "1" };
        let mut args = vec!["--agent", agent.as_str(), "--pace", pace];
        args.extend_from_slice(more);
        Ok((self.serve(scratch.path(), &args).await?, scratch))
    }

    /// Serves an empty data folder with the native agent, whose only model this is.
    pub(crate) async fn think(&self, model: &Model) -> Result<(Process, TempDir)> {
        let scratch = tempfile::tempdir()?;
        let config = model.configure(scratch.path())?;
        let server = self.serve(scratch.path(), &["--config", &config, "--agent", "native"]).await?;
        Ok((server, scratch))
    }

    pub(crate) fn knows(&self, option: &str) -> bool {
        let help = std::process::Command::new(&self.binary).args(["serve", "--help"]).output();
        help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains(option))
    }
}

pub(crate) async fn new_session(server: &Process) -> Result<String> {
    let session = server.post("/v1/sessions", &json!({})).await?;
    Ok(session["id"].as_str().context("no session")?.to_owned())
}

pub(crate) async fn prompt(server: &Process, session: &str) -> Result<()> {
    server.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "text": "go" })).await?;
    Ok(())
}

/// Waits until the session has had so many turns and is idle. It asks now and then, which costs less than a reader.
pub(crate) async fn turns_ended(server: &Process, session: &str, turns: u64) -> Result<()> {
    let path = format!("/v1/sessions/{session}");
    loop {
        let head = server.get(&path).await?;
        if head["turns"].as_u64() >= Some(turns) && head["busy"] == false {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Readers of a session's own wire that have its first fact and wait for more.
pub(crate) async fn readers(server: &Process, session: &str, count: usize) -> Result<Vec<Reader>> {
    let path = format!("/v1/sessions/{session}/events");
    let mut readers = Vec::with_capacity(count);
    for n in 0..count {
        let mut reader = Reader::ask(&server.address, &path, Numbers::Positions).await?;
        reader.captured = (n == 0).then(Vec::new);
        reader.seen = Gapless::starting_at(1);
        reader.until(b"\"session_created\"").await?;
        readers.push(reader);
    }
    Ok(readers)
}

/// Readers that ask for what comes after the first fact, which is all there is: they have nothing to catch up.
pub(crate) async fn readers_at_the_end(server: &Process, session: &str, count: usize) -> Result<Vec<Reader>> {
    let path = format!("/v1/sessions/{session}/events?after=1");
    let mut readers = Vec::with_capacity(count);
    for _ in 0..count {
        let mut reader = Reader::ask(&server.address, &path, Numbers::Positions).await?;
        reader.until(b"retry:").await?;
        readers.push(reader);
    }
    Ok(readers)
}

/// A turn that tells so many pieces of text.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) pieces: usize,
    /// Between two pieces; none means as fast as it goes.
    pub(crate) every: Duration,
    /// A part of the message has so many pieces.
    pub(crate) part: usize,
    /// What a piece says after its number.
    pub(crate) text: String,
}

impl Script {
    /// Each piece becomes an event of about 230 bytes.
    pub(crate) fn burst(pieces: usize) -> Self {
        Script { pieces, every: Duration::ZERO, part: usize::MAX, text: "Some words. ".to_owned() }
    }

    pub(crate) fn paced(pieces: usize, every: Duration) -> Self {
        Script { every, ..Script::burst(pieces) }
    }

    fn recording(&self) -> String {
        let mut lines = String::new();
        let mut fact = |seq: usize, kind: &str, data: serde_json::Value| {
            // The turn starts at 3: its first piece is due one step later.
            let time = 1_000_000 + seq.saturating_sub(3) * self.every.as_micros() as usize;
            let fact = json!({ "v": 1, "session": "ses_1", "seq": seq, "time": time, "cause": "agent", "type": kind, "data": data });
            lines.push_str(&fact.to_string());
            lines.push('\n');
        };
        fact(1, "session_created", json!({ "workspace": "/", "agent": "script", "title": "A script" }));
        let block = json!([{ "type": "text", "text": "go" }]);
        fact(2, "prompt_queued", json!({ "turn": "trn_1", "message": "msg_1", "content": block }));
        fact(3, "turn_started", json!({ "turn": "trn_1" }));
        for n in 0..self.pieces {
            let part = format!("prt_{}", n / self.part);
            fact(4 + n, "text_appended", json!({ "part": part, "text": format!("{n}@0 {}", self.text) }));
        }
        fact(4 + self.pieces, "turn_ended", json!({ "turn": "trn_1", "stop": "end_turn" }));
        lines
    }
}
