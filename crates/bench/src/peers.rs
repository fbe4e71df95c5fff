//! `make bench-peers`: servers for the same purpose, on like work, beside ours in the same run.
//!
//! A script tells numbered tokens, one each 5 ms or all at once; the readers' program is the same for all, and so is
//! the machine. **Delay** ends when a reader's read has returned. It begins, for a peer, when the script lets the token
//! go (the model's answer to OpenCode, the agent's line to sandbox-agent: it stands in the token); for ours, when the
//! session's actor stamps the fact, before it is made durable. Ours lacks the way into the server, which is a channel
//! inside one process; theirs has it. So a second figure of ours begins when the script says that the token was due,
//! with the timer's own lateness in it, and is held to the same goal.

pub(crate) mod agent;
mod figures;
pub(crate) mod model;
mod opencode;
mod ours;
mod sandbox_agent;
mod tokens;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Bench;
use crate::figure::percentile;
use crate::gapless::Gapless;
use crate::paced::began;
use crate::process::Process;
use crate::reader::{Numbers, Reader};
use figures::{Figures, tell};
pub(crate) use tokens::Tokens;
use tokens::{BURST, TOKENS};

const READERS: usize = 500;
const BURST_READERS: usize = 100;
/// After this much longer than it should take, what has not come is lost.
const PATIENCE: Duration = Duration::from_secs(15);
const FIRST_TOKEN: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Tolka,
    OpenCode,
    SandboxAgent,
}

/// A server that runs, with one session to prompt.
struct Peer {
    server: Process,
    /// Of the session's events.
    path: String,
    session: String,
    /// Milliseconds from its start to its first byte.
    start: f64,
    /// Where it keeps its things; goes when it goes.
    _scratch: tempfile::TempDir,
    /// What it asks for tokens, where that is a server of its own.
    _model: Option<Process>,
}

/// What came of one turn.
struct Told {
    delays: Vec<f64>,
    due: Vec<f64>,
    /// Microseconds of processor for a delivery.
    cpu: f64,
    lost: f64,
    doubled: f64,
}

impl Who {
    const ALL: [Who; 3] = [Who::Tolka, Who::OpenCode, Who::SandboxAgent];

    fn name(self) -> &'static str {
        match self {
            Who::Tolka => "Tolka",
            Who::OpenCode => "OpenCode",
            Who::SandboxAgent => "sandbox-agent",
        }
    }

    async fn start(self, bench: &Bench, tokens: Tokens) -> Result<Peer> {
        match self {
            Who::Tolka => ours::start(bench, tokens).await,
            Who::OpenCode => opencode::start().await,
            Who::SandboxAgent => sandbox_agent::start().await,
        }
    }

    fn numbers(self) -> Numbers {
        match self {
            Who::Tolka | Who::OpenCode => Numbers::Tokens(br#""field":"text","delta":""#),
            Who::SandboxAgent => Numbers::Tokens(br#""text":""#),
        }
    }

    /// Readers that come and go. Peers grow slow by it, so fewer come.
    fn come_and_go(self) -> usize {
        if self == Who::Tolka { 10_000 } else { 1_500 }
    }

    async fn prompt(self, peer: &Peer, tokens: Tokens) -> Result<()> {
        match self {
            // Its turns are watched, each in a session of its own.
            Who::Tolka => Ok(()),
            Who::OpenCode => opencode::prompt(peer, tokens).await,
            Who::SandboxAgent => sandbox_agent::prompt(peer, tokens).await,
        }
    }
}

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let mut all: Vec<(Who, Figures)> = Vec::new();
    let mut failed: Vec<(Who, String)> = Vec::new();
    for nth in 0..bench.runs {
        for who in Who::ALL {
            let measured = run(bench, who).await.with_context(|| format!("{} in run {}", who.name(), nth + 1));
            println!("          run {} of {}: {}", nth + 1, bench.runs, who.name());
            match measured {
                Ok(figures) => match all.iter_mut().find(|(known, _)| *known == who) {
                    Some((_, so_far)) => so_far.add(figures),
                    None => all.push((who, figures)),
                },
                // A peer that cannot be driven today must not hide the others, and its lack must be seen.
                Err(error) if who != Who::Tolka => failed.push((who, format!("{error:#}"))),
                Err(error) => return Err(error),
            }
        }
    }
    tell(bench, all);
    for (who, why) in failed {
        bench.report.begin(who.name());
        bench.report.failed(&format!("figures of {} from every run", who.name()), &why);
    }
    Ok(())
}

async fn run(bench: &mut Bench, who: Who) -> Result<Figures> {
    let mut figures = Figures::default();
    let paced = Tokens::paced();
    let peer = who.start(bench, paced).await?;
    figures.start.push(peer.start);
    let idle = peer.server.rss()?;
    figures.idle.push(idle / 1e6);
    let readers = join(&peer, who, READERS).await?;
    figures.reader.push((peer.server.rss()? - idle) / READERS as f64 / 1024.0);
    let told = turn(&peer, who, readers, paced).await?;
    figures.p50.push(percentile(&told.delays, 50.0));
    figures.p99.push(percentile(&told.delays, 99.0));
    figures.due_p50.push(percentile(&told.due, 50.0));
    figures.due_p99.push(percentile(&told.due, 99.0));
    figures.cpu.push(told.cpu);
    figures.delays = told.delays;
    if who == Who::Tolka {
        anyhow::ensure!(told.lost + told.doubled == 0.0, "ours lost {} and doubled {}", told.lost, told.doubled);
    }
    peer.server.stop().await?;

    let burst = Tokens::burst();
    let peer = who.start(bench, burst).await?;
    let readers = join(&peer, who, BURST_READERS).await?;
    let told = turn(&peer, who, readers, burst).await?;
    figures.lost.push((told.lost + told.doubled) / (BURST * BURST_READERS as u64) as f64 * 100.0);
    peer.server.stop().await?;

    let peer = who.start(bench, paced).await?;
    let one = join(&peer, who, 1).await?;
    figures.before.push(percentile(&turn(&peer, who, one, paced).await?.delays, 50.0));
    for _ in 0..who.come_and_go() / READERS {
        drop(join(&peer, who, READERS).await?);
    }
    // Ours is told in a new session, which counts from the start.
    let again = if who == Who::Tolka { paced } else { Tokens { first: TOKENS, ..paced } };
    let one = join(&peer, who, 1).await?;
    figures.after.push(percentile(&turn(&peer, who, one, again).await?.delays, 50.0));
    peer.server.stop().await?;
    Ok(figures)
}

async fn join(peer: &Peer, who: Who, count: usize) -> Result<Vec<Reader>> {
    let mut readers = Vec::with_capacity(count);
    for n in 0..count {
        let mut reader = Reader::ask(&peer.server.address, &peer.path, who.numbers()).await?;
        reader.captured = (n == 0).then(Vec::new);
        // Each of them greets, or tells what was before.
        reader.read().await?;
        readers.push(reader);
    }
    Ok(readers)
}

async fn turn(peer: &Peer, who: Who, readers: Vec<Reader>, tokens: Tokens) -> Result<Told> {
    let ours = if who == Who::Tolka { Some(ours::watch(peer).await?) } else { None };
    let (count, patience) = (readers.len(), tokens.every * tokens.count as u32 + PATIENCE);
    let mut reading = JoinSet::new();
    for mut reader in readers {
        reader.arrivals = Some(Vec::with_capacity(tokens.count as usize));
        reader.seen = Gapless::starting_at(tokens.first);
        reader.since = tokens.first;
        reading.spawn(async move {
            // Before its first turn a server may have much to make ready; from the first token on it has its script's time.
            timeout(FIRST_TOKEN, reader.until_number(tokens.first)).await.context("no token came")??;
            let whole = timeout(patience, reader.until_number(tokens.last())).await;
            // Whoever falls silent before the end has lost the rest; whoever breaks off is a fault.
            whole.unwrap_or(Ok(())).map(|()| reader)
        });
    }
    let cpu = peer.server.cpu()?;
    match &ours {
        Some(watching) => crate::server::prompt(&peer.server, &watching.session).await?,
        None => who.prompt(peer, tokens).await?,
    }
    let mut readers = Vec::new();
    while let Some(reader) = reading.join_next().await {
        readers.push(reader??);
    }
    let cpu = peer.server.cpu()? - cpu;
    let stamps = match ours {
        Some(watching) => watching.stamps(tokens.count).await?,
        None => stamps(&readers, who, tokens)?,
    };
    let known = stamps.iter().zip(0..).filter(|(stamp, _)| **stamp > 0);
    let first = began(known.map(|(stamp, nth)| (nth, *stamp)), tokens.every);
    let mut told = Told { delays: Vec::new(), due: Vec::new(), cpu: 0.0, lost: 0.0, doubled: 0.0 };
    for mut reader in readers {
        reader.seen.ended_at(tokens.last());
        told.lost += reader.seen.lost as f64;
        told.doubled += reader.seen.doubled as f64;
        for (number, at) in reader.arrivals.unwrap_or_default() {
            let nth = number - tokens.first;
            if let Some(stamp) = stamps.get(nth as usize).filter(|stamp| **stamp > 0) {
                told.delays.push(at.saturating_sub(*stamp) as f64 / 1e3);
                let due = first + nth * tokens.every.as_micros() as u64;
                told.due.push(at.saturating_sub(due) as f64 / 1e3);
            }
        }
    }
    anyhow::ensure!(!told.delays.is_empty(), "no token came");
    told.cpu = cpu / (count as u64 * tokens.count) as f64 * 1e6;
    told.delays.sort_by(f64::total_cmp);
    told.due.sort_by(f64::total_cmp);
    Ok(told)
}

/// When the script let each token go; it stands in the token.
fn stamps(readers: &[Reader], who: Who, tokens: Tokens) -> Result<Vec<u64>> {
    let captured = readers.iter().find_map(|reader| reader.captured.as_deref()).context("no reader kept its bytes")?;
    let Numbers::Tokens(before) = who.numbers() else { return Ok(Vec::new()) };
    let mut body = Vec::new();
    crate::body::Body::default().feed(captured, &mut body)?;
    let mut stamps = vec![0; tokens.count as usize];
    for line in body.split(|byte| *byte == b'\n') {
        if let Some((number, stamp)) = crate::reader::token(line, before)
            && let Some(nth) = number.checked_sub(tokens.first)
            && let Some(place) = stamps.get_mut(nth as usize)
        {
            *place = stamp;
        }
    }
    Ok(stamps)
}

/// Starts a peer's program and waits for its first byte; gives it with the milliseconds that took.
async fn started(command: Command, port: u16, path: &str) -> Result<(Process, f64)> {
    let started = Instant::now();
    let server = Process::start_at(command, format!("127.0.0.1:{port}"), path).await?;
    Ok((server, started.elapsed().as_secs_f64() * 1e3))
}

/// A port that was free a moment ago, for programs that do not say which they took.
fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A program of the pinned packages.
fn installed(program: &str) -> Result<std::path::PathBuf> {
    let path = std::path::Path::new("crates/bench/peers/node_modules").join(program).canonicalize();
    path.with_context(|| format!("{program} is not installed; `make bench-peers` does it"))
}
