//! What a server costs when nothing happens, how soon it is there, and how soon a reader at the end of a
//! long session is.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tolka_facts::event::{PromptQueued, SessionCreated, StepStarted, Stop, TextAppended, TurnEnded, TurnStarted};
use tolka_facts::{Block, Draft, Event, Fact, SessionId, Time, Tip};
use tolka_journal::{Append, Journal, Kept, Mark, Sqlite, SqliteOptions};

use crate::RUNS;
use crate::delivery::read_until;
use crate::process::Process;
use crate::report::{Figure, Report};

async fn serve(tolka: &Path, scratch: &Path) -> Result<Process> {
    let (data, workspace) = (scratch.join("data").display().to_string(), scratch.display().to_string());
    Process::start(tolka, &["serve", "--port", "0", "--data", &data, "--workspace", &workspace]).await
}

pub(crate) async fn idle(tolka: &Path, report: &mut Report) -> Result<()> {
    const READERS: usize = 1000;
    let (mut alone, mut each) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let scratch = tempfile::tempdir()?;
        let server = serve(tolka, scratch.path()).await?;
        let session = server.post("/v1/sessions", &json!({})).await?;
        let path = format!("/v1/sessions/{}/events", session["id"].as_str().context("no session")?);
        let before = server.rss()?;
        let mut sockets = Vec::new();
        for _ in 0..READERS {
            let mut socket = server.open_stream(&path).await?;
            read_until(&mut socket, b"session_created").await?;
            sockets.push(socket);
        }
        alone.push(before / 1e6);
        each.push((server.rss()? - before) / READERS as f64 / 1024.0);
        server.stop().await?;
    }
    report.row("memory of an idle server", "MB", Figure::of(alone), None);
    report.row("memory per idle reader", "KiB", Figure::of(each), None);
    Ok(())
}

pub(crate) async fn start(tolka: &Path, report: &mut Report) -> Result<()> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS * 2 {
        let scratch = tempfile::tempdir()?;
        let started = Instant::now();
        let server = serve(tolka, scratch.path()).await?;
        let mut socket = server.open_stream("/healthz").await?;
        read_until(&mut socket, b"ok").await?;
        ours.push(started.elapsed().as_secs_f64() * 1e3);
        server.stop().await?;
        let started = Instant::now();
        Process::start(&std::env::current_exe()?, &["raw-server", "1"]).await?.stop().await?;
        bare.push(started.elapsed().as_secs_f64() * 1e3);
    }
    report.row("start to first byte", "ms", Figure::of(ours), Some(("a bare listener", Figure::of(bare))));
    Ok(())
}

pub(crate) async fn resume(tolka: &Path, report: &mut Report) -> Result<()> {
    for dialect in ["tolka", "opencode", "onyx"] {
        let long = resume_at(tolka, dialect, 1_000_000).await?;
        let short = resume_at(tolka, dialect, 1_000).await?;
        let what = format!("resume at the end of 1,000,000 facts, {dialect}");
        report.row(&what, "ms", long, Some(("of 1,000", short)));
    }
    Ok(())
}

async fn resume_at(tolka: &Path, dialect: &str, facts: u64) -> Result<Figure> {
    let scratch = tempfile::tempdir()?;
    seed(&scratch.path().join("data"), facts).await?;
    let server = serve(tolka, scratch.path()).await?;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        let path = format!("/v1/sessions/{}/events?dialect={dialect}&after={}", seeded(), facts - 1);
        let mut socket = server.open_stream(&path).await?;
        read_until(&mut socket, b"data: ").await?;
        runs.push(started.elapsed().as_secs_f64() * 1e3);
    }
    server.stop().await?;
    Ok(Figure::of(runs))
}

fn seeded() -> SessionId {
    SessionId::from("ses_e00000000000seeded00000000")
}

/// A journal with one session of so many facts: turns of a few hundred pieces of text each.
pub(crate) async fn seed(dir: &Path, facts: u64) -> Result<()> {
    const TURN: u64 = 300;
    let journal = Sqlite::open(&SqliteOptions::new(dir))?;
    let (mut tip, mut batch) = (Tip::default(), Append::default());
    let mut kept = 0;
    for seq in 1..=facts {
        let turn = format!("trn_{}", seq / TURN);
        let event: Event = match (seq, seq % TURN) {
            (1, _) => SessionCreated {
                workspace: "/".into(),
                agent: "demo".into(),
                title: "A long session".into(),
                mode: None,
                model: None,
                parent: None,
            }
            .into(),
            (_, 2) => PromptQueued {
                turn: turn.as_str().into(),
                message: format!("msg_{seq:012}").into(),
                content: vec![Block::text("Tell me more.")],
                key: None,
                agent: None,
                model: None,
                context: None,
            }
            .into(),
            (_, 3) => TurnStarted { turn: turn.as_str().into(), checkpoint: None }.into(),
            (_, 4) => StepStarted { message: format!("msg_{seq:012}").into(), model: None }.into(),
            (_, 299) => {
                TurnEnded { turn: turn.as_str().into(), stop: Stop::EndTurn, usage: None, cost: None, meta: None }
                    .into()
            }
            _ => TextAppended { part: format!("prt_{turn}").into(), text: format!("piece {seq} of a long story. ") }
                .into(),
        };
        let fact: Fact = Draft::agent(event).stamp(seeded(), seq, Time::from_millis(1_794_700_000_000 + seq));
        tip.apply(&fact);
        match &fact.event {
            Event::PromptQueued(e) => batch.marks.push((Mark::Message(&e.message).to_string(), seq)),
            Event::TurnStarted(e) => batch.marks.push((Mark::TurnStart(&e.turn).to_string(), seq)),
            Event::TurnEnded(e) => batch.marks.push((Mark::TurnEnd(&e.turn).to_string(), seq)),
            Event::StepStarted(e) => batch.marks.push((Mark::Step(&e.message).to_string(), seq)),
            _ => {}
        }
        batch.facts.push(Arc::new(fact));
        if batch.facts.len() == 256 || seq == facts {
            batch.head = Some(tip.head.clone());
            if tip.is_idle() && tip.seq - kept >= 512 || tip.seq - kept >= 2048 {
                kept = tip.seq;
                batch.tip = Some(Kept { seq, idle: tip.is_idle(), state: serde_json::to_vec(&tip)? });
            }
            journal.append(std::mem::take(&mut batch)).await?;
        }
    }
    tokio::task::spawn_blocking(move || journal.close()).await?;
    Ok(())
}
