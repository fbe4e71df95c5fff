//! Durable appends per second, beside SQLite alone with the same settings, and that beside a file that is appended to
//! and synced as often.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use rusqlite::Connection;
use tokio::task::JoinSet;
use tolka_facts::event::TextAppended;
use tolka_facts::{Draft, Fact, SessionId, Time};
use tolka_journal::{Append, Journal, Sqlite, SqliteOptions};

use crate::Bench;
use crate::figure::readable;
use crate::report::{Figure, Goal};

/// Rows of one statement: as the journal inserts them, and as most programs do.
const RUN: u64 = 16;

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let report = &mut bench.report;
    for (batch, batches) in [(1, 2000), (16, 500), (256, 200)] {
        let (mut ours, mut single, mut runs, mut plain) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bench.runs {
            ours.push(journal(1, batch, batches).await?);
            single.push(bare_sqlite(batch, batches, 1)?);
            if batch >= RUN {
                runs.push(bare_sqlite(batch, batches, RUN)?);
            }
            plain.push(plain_file(batch, batches)?);
        }
        let (ours, single, runs, plain) = (Figure::of(ours), Figure::of(single), Figure::of(runs), Figure::of(plain));
        // Ours is held against the quicker of both, so that it cannot win by a statement alone.
        let bare = if runs.median > single.median { runs } else { single };
        let row =
            report.row(&format!("durable appends, {batch} at a time"), "per s", ours, Some(("bare SQLite", bare)));
        row.goal(Goal::RatioAtLeast(0.8));
        if batch >= RUN {
            let [single, runs] = [single, runs].map(|figure| readable(figure.median));
            row.note(format!("bare SQLite by statements of one row {single} per s, of {RUN} rows {runs} per s"));
        }
        let what = format!("the same by bare SQLite, {batch} at a time");
        report.row(&what, "per s", bare, Some(("file and fdatasync", plain)));
    }
    let (mut crowd, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        crowd.push(journal(16, 1, 500).await?);
        alone.push(bare_sqlite(1, 2000, 1)?);
    }
    let bare = Some(("bare SQLite, one at a time", Figure::of(alone)));
    report.row("durable appends, 16 sessions, 1 at a time", "per s", Figure::of(crowd), bare);
    Ok(())
}

/// Facts per second of so many sessions at once, each appending so many batches one after the other.
async fn journal(sessions: u64, batch: u64, batches: u64) -> Result<f64> {
    let scratch = tempfile::tempdir()?;
    let journal = Sqlite::open(&SqliteOptions::new(scratch.path()))?;
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for session in 0..sessions {
        let (journal, session) = (journal.clone(), session_id(session));
        tasks.spawn(async move {
            for at in 0..batches {
                let facts = (1..=batch).map(|n| Arc::new(fact(&session, at * batch + n))).collect();
                journal.append(Append { facts, ..Append::default() }).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    let rate = (sessions * batch * batches) as f64 / started.elapsed().as_secs_f64();
    tokio::task::spawn_blocking(move || journal.close()).await?;
    Ok(rate)
}

/// What SQLite takes for the facts alone: the journal's settings, its table of facts with the index, the same bodies, one
/// transaction per batch, so many rows per statement, on this thread.
fn bare_sqlite(batch: u64, batches: u64, run: u64) -> Result<f64> {
    let scratch = tempfile::tempdir()?;
    let conn = Connection::open(scratch.path().join("bare.db"))?;
    conn.execute_batch(
        "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA cache_size = -2048; PRAGMA cell_size_check = ON; PRAGMA wal_autocheckpoint = 1000;
         PRAGMA journal_size_limit = 8388608;
         CREATE TABLE facts(
             place INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,
             crc INTEGER NOT NULL, body BLOB NOT NULL);
         CREATE UNIQUE INDEX facts_by_session ON facts(session, seq);",
    )?;
    let (mut begin, mut commit) = (conn.prepare("BEGIN IMMEDIATE")?, conn.prepare("COMMIT")?);
    let rows: Vec<String> = (0..run).map(|n| format!("(?1 + {n}, 1, ?1 + {n}, 0, ?{})", n + 2)).collect();
    let insert = format!("INSERT OR FAIL INTO facts(place, session, seq, crc, body) VALUES {}", rows.join(", "));
    let mut insert = conn.prepare(&insert)?;
    let session = session_id(0);
    let started = Instant::now();
    for at in 0..batches {
        begin.execute([])?;
        for first in (at * batch + 1..=(at + 1) * batch).step_by(run as usize) {
            insert.raw_bind_parameter(1, first as i64)?;
            for n in 0..run {
                insert.raw_bind_parameter(n as usize + 2, fact(&session, first + n).to_json())?;
            }
            insert.raw_execute()?;
        }
        commit.execute([])?;
    }
    Ok((batch * batches) as f64 / started.elapsed().as_secs_f64())
}

fn plain_file(batch: u64, batches: u64) -> Result<f64> {
    let scratch = tempfile::tempdir()?;
    let mut file = std::fs::File::create(Path::join(scratch.path(), "plain"))?;
    let session = session_id(0);
    let started = Instant::now();
    for at in 0..batches {
        let mut bytes = Vec::new();
        (1..=batch).for_each(|n| fact(&session, at * batch + n).write_json(&mut bytes));
        file.write_all(&bytes)?;
        file.sync_data()?;
    }
    Ok((batch * batches) as f64 / started.elapsed().as_secs_f64())
}

fn session_id(n: u64) -> SessionId {
    SessionId::from(format!("ses_e23678758ffenHI9SvU6UH{n:04}"))
}

fn fact(session: &SessionId, seq: u64) -> Fact {
    let event = TextAppended { part: "prt_1dc989e8e001n4Y0cnd48zJzaw".into(), text: "Some words. ".into() };
    Draft::agent(event).stamp(session.clone(), seq, Time::from_micros(seq))
}
