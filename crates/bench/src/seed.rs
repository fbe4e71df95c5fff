//! Data folders with a past: one long session, or many short ones.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use tokio::task::JoinSet;
use tolka_facts::event::{PromptQueued, SessionCreated, StepStarted, Stop, TextAppended, TurnEnded, TurnStarted};
use tolka_facts::{Block, Draft, Event, Fact, SessionId, Time, Tip};
use tolka_journal::{Append, Journal, Kept, Mark, Sqlite, SqliteOptions};

/// A turn of the long session has so many facts, so that its end is inside of one.
const TURN: u64 = 300;

/// Folders that several rows use; made when first asked for.
#[derive(Debug)]
pub(crate) struct Seeds {
    scratch: tempfile::TempDir,
}

impl Seeds {
    pub(crate) fn new() -> Result<Self> {
        Ok(Seeds { scratch: tempfile::tempdir()? })
    }

    /// A folder with `data`: one session of so many facts.
    pub(crate) async fn long(&self, facts: u64) -> Result<PathBuf> {
        let folder = self.scratch.path().join(format!("long-{facts}"));
        if !folder.exists() {
            long(&folder.join("data"), facts).await?;
        }
        Ok(folder)
    }

    /// A folder with `data`: so many sessions of twenty facts, all idle.
    pub(crate) async fn many(&self, sessions: u64) -> Result<PathBuf> {
        let folder = self.scratch.path().join(format!("many-{sessions}"));
        if !folder.exists() {
            many(&folder.join("data"), sessions).await?;
        }
        Ok(folder)
    }

    /// The facts of the long session, a line each.
    pub(crate) fn facts(&self, facts: u64) -> Result<PathBuf> {
        let file = self.scratch.path().join(format!("facts-{facts}.jsonl"));
        if !file.exists() {
            let mut out = std::io::BufWriter::new(std::fs::File::create(&file)?);
            for seq in 1..=facts {
                serde_json::to_writer(&mut out, &fact(&long_session(), seq))?;
                out.write_all(b"\n")?;
            }
            out.flush()?;
        }
        Ok(file)
    }
}

pub(crate) fn long_session() -> SessionId {
    SessionId::from("ses_e00000000000seeded00000000")
}

pub(crate) fn one_of_many(n: u64) -> SessionId {
    SessionId::from(format!("ses_e0000000{n:04x}seeded00000000"))
}

fn fact(session: &SessionId, seq: u64) -> Fact {
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
            steers: None,
        }
        .into(),
        (_, 3) => TurnStarted { turn: turn.as_str().into(), checkpoint: None }.into(),
        (_, 4) => StepStarted { message: format!("msg_{seq:012}").into(), model: None }.into(),
        (_, 299) => ended(&turn),
        _ => TextAppended { part: format!("prt_{turn}").into(), text: format!("piece {seq} of a long story. ") }.into(),
    };
    Draft::agent(event).stamp(session.clone(), seq, Time::from_millis(1_794_700_000_000 + seq))
}

fn ended(turn: &str) -> Event {
    TurnEnded { turn: turn.into(), stop: Stop::EndTurn, usage: None, cost: None, meta: None }.into()
}

/// As the session's actor does: folding so many facts takes a millisecond or so.
const KEEP_EVERY: u64 = 512;

async fn long(data: &Path, facts: u64) -> Result<()> {
    let journal = Sqlite::open(&SqliteOptions::new(data))?;
    let (mut tip, mut batch) = (Tip::default(), Append::default());
    let mut kept = 0;
    for seq in 1..=facts {
        let fact = fact(&long_session(), seq);
        let turn_ended = matches!(fact.event, Event::TurnEnded(_));
        add(&mut batch, &mut tip, fact);
        let keeps = turn_ended && tip.is_idle() && seq - kept >= KEEP_EVERY;
        if keeps {
            kept = seq;
            batch.tip = Some(Kept { seq, idle: true, state: serde_json::to_vec(&tip)? });
        }
        if keeps || batch.facts.len() == 256 || seq == facts {
            batch.head = Some(tip.head.clone());
            journal.append(std::mem::take(&mut batch)).await?;
        }
    }
    tokio::task::spawn_blocking(move || journal.close()).await?;
    Ok(())
}

fn add(append: &mut Append, tip: &mut Tip, fact: Fact) {
    tip.apply(&fact);
    append.marks.extend(Mark::of(&fact, tip).map(|mark| (mark.to_string(), fact.seq)));
    append.facts.push(Arc::new(fact));
}

async fn many(data: &Path, sessions: u64) -> Result<()> {
    /// In flight at once, so that the journal commits many together.
    const TOGETHER: u64 = 100;
    let journal = Arc::new(Sqlite::open(&SqliteOptions::new(data))?);
    for first in (0..sessions).step_by(TOGETHER as usize) {
        let mut appending = JoinSet::new();
        for n in first..sessions.min(first + TOGETHER) {
            let (journal, append) = (journal.clone(), short(&one_of_many(n))?);
            appending.spawn(async move { journal.append(append).await.map(drop) });
        }
        while let Some(appended) = appending.join_next().await {
            appended??;
        }
    }
    tokio::task::spawn_blocking(move || journal.close()).await?;
    Ok(())
}

/// A session of twenty facts, idle.
fn short(session: &SessionId) -> Result<Append> {
    const FACTS: u64 = 20;
    let (mut tip, mut append) = (Tip::default(), Append::default());
    for seq in 1..=FACTS {
        let mut fact = fact(session, seq);
        if seq == FACTS {
            fact.event = ended("trn_0");
        }
        add(&mut append, &mut tip, fact);
    }
    append.head = Some(tip.head.clone());
    append.tip = Some(Kept { seq: FACTS, idle: tip.is_idle(), state: serde_json::to_vec(&tip)? });
    Ok(append)
}

#[cfg(test)]
mod tests {
    use tolka_journal::TIP;

    use super::*;

    #[tokio::test]
    async fn a_long_session_keeps_its_state_at_turn_ends_only() -> Result<()> {
        let seeds = Seeds::new()?;
        let folder = seeds.long(2000).await?;
        let journal = Sqlite::open(&SqliteOptions::new(folder.join("data")))?;
        let (mut at, mut kept) = (u64::MAX, Vec::new());
        while let Some(state) = journal.kept(&long_session(), TIP, at, false).await? {
            assert!(state.idle);
            kept.push(state.seq);
            at = state.seq - 1;
        }
        assert_eq!(kept, [1799, 1199, 599]);
        tokio::task::spawn_blocking(move || journal.close()).await?;
        Ok(())
    }
}
