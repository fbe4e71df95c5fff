//! Durable appends per second, beside a file that is appended to and synced as often.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use tolka_facts::event::TextAppended;
use tolka_facts::{Draft, Fact, SessionId, Time};
use tolka_journal::{Append, Journal, Sqlite, SqliteOptions};

use crate::RUNS;
use crate::report::{Figure, Report};

pub(crate) async fn measure(report: &mut Report) -> Result<()> {
    for (batch, batches) in [(1, 1000), (16, 500), (256, 100)] {
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let scratch = tempfile::tempdir()?;
            let journal = Sqlite::open(&SqliteOptions::new(scratch.path().join("data")))?;
            let started = Instant::now();
            for at in 0..batches {
                let facts = (1..=batch).map(|n| Arc::new(fact(at * batch + n))).collect();
                journal.append(Append { facts, ..Append::default() }).await?;
            }
            ours.push((batch * batches) as f64 / started.elapsed().as_secs_f64());
            tokio::task::spawn_blocking(move || journal.close()).await?;
            plain.push(plain_file(scratch.path(), batch, batches)?);
        }
        let file = Some(("file and fdatasync", Figure::of(plain)));
        report.row(&format!("durable appends, {batch} at a time"), "per s", Figure::of(ours), file);
    }
    Ok(())
}

fn plain_file(dir: &std::path::Path, batch: u64, batches: u64) -> Result<f64> {
    let mut file = std::fs::File::create(dir.join("plain"))?;
    let started = Instant::now();
    for at in 0..batches {
        let mut bytes = Vec::new();
        (1..=batch).for_each(|n| fact(at * batch + n).write_json(&mut bytes));
        file.write_all(&bytes)?;
        file.sync_data()?;
    }
    Ok((batch * batches) as f64 / started.elapsed().as_secs_f64())
}

fn fact(seq: u64) -> Fact {
    let event = TextAppended { part: "prt_1dc989e8e001n4Y0cnd48zJzaw".into(), text: "Some words. ".into() };
    Draft::agent(event).stamp(SessionId::from("ses_e23678758ffenHI9SvU6UHo4PN"), seq, Time::from_micros(seq))
}
