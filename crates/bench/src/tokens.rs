//! What a token of a model costs the server, from the model's socket to the journal and to a reader, beside the same bytes
//! read from the same model and thrown away.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Bench;
use crate::burst::thousands;
use crate::gapless::Gapless;
use crate::model::{Answer, Model};
use crate::process::Process;
use crate::reader::{Numbers, Reader};
use crate::reference::asks;
use crate::report::{Figure, Goal};
use crate::server::{new_session, prompt, turns_ended};

/// OpenCode spends about 5 ms.
const GOAL_MICROS: f64 = 50.0;
/// In the events of an OpenCode client.
const BEFORE_TOKEN: &[u8] = br#""field":"text","delta":""#;

#[derive(Debug, Clone, Copy)]
struct Stream {
    count: usize,
    every: Duration,
}

/// As fast as it goes, and at the pace of a quick model.
const STREAMS: [Stream; 2] =
    [Stream { count: 30_000, every: Duration::ZERO }, Stream { count: 1_000, every: Duration::from_millis(2) }];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Nobody,
    OpenCode,
}

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    for stream in STREAMS {
        let answer = Answer::tokens(stream.count, stream.every);
        // [nobody, one reader]: microseconds per token, tokens per second.
        let (mut cpu, mut rate): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
        let (mut raw_cpu, mut raw_rate) = (Vec::new(), Vec::new());
        for _ in 0..bench.runs {
            for (nth, reading) in [Reading::Nobody, Reading::OpenCode].into_iter().enumerate() {
                let model = Model::start().await?;
                let told = told(bench, &model, &answer, stream.count, reading).await?;
                cpu[nth].push(told.cpu / stream.count as f64 * 1e6);
                rate[nth].push(stream.count as f64 / told.wall);
                if reading == Reading::OpenCode {
                    let raw = asks::again(&model, &model.requests(), vec![answer.clone()]).await?;
                    raw_cpu.push(raw.cpu / stream.count as f64 * 1e6);
                    raw_rate.push(stream.count as f64 / raw.wall);
                }
            }
        }
        let (raw_cpu, raw_rate) = (Figure::of(raw_cpu), Figure::of(raw_rate));
        let what = match stream.every {
            Duration::ZERO => format!("{} at once", thousands(stream.count)),
            every => format!("{} one by one, each {} ms", thousands(stream.count), every.as_millis()),
        };
        for ((who, cpu), rate) in ["no reader", "one OpenCode reader"].into_iter().zip(cpu).zip(rate) {
            let beside = Some(("read raw", raw_cpu));
            let row = bench.report.row(&format!("server CPU per token, {what}, {who}"), "µs", Figure::of(cpu), beside);
            // The goal is for a model that does not wait; one by one, each is made durable by itself.
            if stream.every.is_zero() {
                row.goal(Goal::AtMost(GOAL_MICROS));
                let beside = Some(("read raw", raw_rate));
                bench.report.row(&format!("tokens, {what}, {who}"), "per s", Figure::of(rate), beside);
            }
        }
    }
    Ok(())
}

/// Seconds from the moment that the model has been asked to the last token told.
struct Told {
    wall: f64,
    cpu: f64,
}

async fn told(bench: &mut Bench, model: &Model, answer: &Answer, count: usize, reading: Reading) -> Result<Told> {
    let (server, _scratch) = bench.tolka.think(model).await?;
    let session = new_session(&server).await?;
    let reader = match reading {
        Reading::Nobody => None,
        Reading::OpenCode => Some(reader(&server).await?),
    };
    prompt(&server, &session).await?;
    model.asked().await?;
    let (cpu, started) = (server.cpu()?, Instant::now());
    model.ready([answer.clone()]);
    if let Some(mut reader) = reader {
        reader.until_number(count as u64 - 1).await?;
        bench.ledger.add(&reader.seen);
    }
    // To ask for the end costs as much as some tokens: not before it is near.
    model.answered().await?;
    turns_ended(&server, &session, 1).await?;
    let told = Told { wall: started.elapsed().as_secs_f64(), cpu: server.cpu()? - cpu };
    server.stop().await?;
    Ok(told)
}

async fn reader(server: &Process) -> Result<Reader> {
    let mut reader = Reader::ask(&server.address, "/event", Numbers::Tokens(BEFORE_TOKEN)).await?;
    reader.seen = Gapless::starting_at(0);
    reader.until(b"server.connected").await?;
    Ok(reader)
}
