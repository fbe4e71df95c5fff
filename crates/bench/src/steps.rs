//! What a step of the loop takes beyond the model: a model that answers at once calls a cheap tool again and again.
//!
//! Each step sends all that was said before, so requests grow. Beside it, the very same requests are made again by a
//! process that does nothing with the answers: what that grows by, a step may grow by too.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;

use crate::Bench;
use crate::figure::readable;
use crate::model::{Answer, Model};
use crate::process::Process;
use crate::reference::asks::{self, Asked};
use crate::report::{Figure, Goal};
use crate::server::{new_session, prompt, turns_ended};

const STEPS: usize = 200;
/// The first and the last of them are looked at by themselves.
const EDGE: usize = 20;
const TURNS_BEFORE: u64 = 100;
/// A turn is saved before and told after; a hundred of them need not be done five times.
const LONG_RUNS: usize = 3;

/// Microseconds per step, of several runs.
#[derive(Debug, Default)]
struct Cost {
    wall: Vec<f64>,
    cpu: Vec<f64>,
    raw_wall: Vec<f64>,
    raw_cpu: Vec<f64>,
    /// Bytes of a request, on average.
    size: f64,
}

impl Cost {
    fn add(&mut self, ours: Asked, raw: Asked, requests: &[Vec<u8>]) {
        let micros = |seconds: f64| seconds / requests.len() as f64 * 1e6;
        self.wall.push(micros(ours.wall));
        self.cpu.push(micros(ours.cpu));
        self.raw_wall.push(micros(raw.wall));
        self.raw_cpu.push(micros(raw.cpu));
        self.size = requests.iter().map(Vec::len).sum::<usize>() as f64 / requests.len() as f64;
    }

    fn figures(self) -> Figures {
        let Cost { wall, cpu, raw_wall, raw_cpu, size } = self;
        let [wall, cpu, raw_wall, raw_cpu] = [wall, cpu, raw_wall, raw_cpu].map(Figure::of);
        Figures { wall, cpu, raw_wall, raw_cpu, size }
    }
}

#[derive(Debug, Clone, Copy)]
struct Figures {
    wall: Figure,
    cpu: Figure,
    raw_wall: Figure,
    raw_cpu: Figure,
    size: f64,
}

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let (mut all, mut first, mut last, mut begin) = (Cost::default(), Cost::default(), Cost::default(), Vec::new());
    for _ in 0..bench.runs {
        let model = Model::start().await?;
        let (server, scratch) = bench.tolka.think(&model).await?;
        let session = new_session(&server).await?;
        begin.push(begun(&server, &model, &session, scratch.path()).await?);
        let windows = [(0, EDGE), (EDGE, STEPS - EDGE), (STEPS - EDGE, STEPS)];
        let mut took = Vec::new();
        for (from, to) in windows {
            took.push(stepped(&server, &model, from..to).await?);
        }
        model.ready([Answer::text("done")]);
        turns_ended(&server, &session, 1).await?;
        server.stop().await?;
        let [one, middle, two] = took[..] else { anyhow::bail!("three windows") };
        let requests = model.requests();
        // The last one was answered with text.
        let requests = requests.get(..STEPS).context("a step made no request")?;
        let whole = Asked { wall: one.wall + middle.wall + two.wall, cpu: one.cpu + middle.cpu + two.cpu };
        all.add(whole, again(&model, requests).await?, requests);
        first.add(one, again(&model, &requests[..EDGE]).await?, &requests[..EDGE]);
        last.add(two, again(&model, &requests[STEPS - EDGE..]).await?, &requests[STEPS - EDGE..]);
    }
    let (late, late_begin) = after_many_turns(bench).await?;
    let [all, first, last, late] = [all, first, last, late].map(Cost::figures);
    let report = &mut bench.report;
    let what = format!("{STEPS} steps of one `read`");
    let beside = "the same requests, bare";
    report.row(&format!("time per step, {what}"), "µs", all.wall, Some((beside, all.raw_wall)));
    report.row(&format!("server CPU per step, {what}"), "µs", all.cpu, Some((beside, all.raw_cpu)));
    for (what, grown) in
        [(format!("the last {EDGE} of {what}"), last), (format!("the first {EDGE} after {TURNS_BEFORE} turns"), late)]
    {
        let beside = format!("the first {EDGE}");
        let note = format!(
            "requests of {} bytes beside {}; bare {} µs of CPU beside {}",
            readable(grown.size),
            readable(first.size),
            readable(grown.raw_cpu.median),
            readable(first.raw_cpu.median)
        );
        let row = report.row(&format!("server CPU per step, {what}"), "µs", grown.cpu, Some((&beside, first.cpu)));
        row.goal(Goal::RatioAtMost(2.0)).note(note);
        report.row(&format!("time per step, {what}"), "µs", grown.wall, Some((&beside, first.wall)));
    }
    let beside = Some(("the first turn", Figure::of(begin)));
    let what = format!("from a prompt to the model, after {TURNS_BEFORE} turns");
    report.row(&what, "ms", Figure::of(late_begin), beside).goal(Goal::RatioAtMost(3.0));
    Ok(())
}

/// The first steps of a turn that has many before it.
async fn after_many_turns(bench: &Bench) -> Result<(Cost, Vec<f64>)> {
    let (mut late, mut begin) = (Cost::default(), Vec::new());
    for _ in 0..bench.runs.min(LONG_RUNS) {
        let model = Model::start().await?;
        let (server, scratch) = bench.tolka.think(&model).await?;
        let session = new_session(&server).await?;
        for turn in 1..=TURNS_BEFORE {
            model.ready([Answer::text("Some words that were said long ago.")]);
            prompt(&server, &session).await?;
            turns_ended(&server, &session, turn).await?;
        }
        model.requests();
        begin.push(begun(&server, &model, &session, scratch.path()).await?);
        let took = stepped(&server, &model, 0..EDGE).await?;
        model.ready([Answer::text("done")]);
        turns_ended(&server, &session, TURNS_BEFORE + 1).await?;
        server.stop().await?;
        let requests = model.requests();
        let requests = requests.get(..EDGE).context("a step made no request")?;
        late.add(took, again(&model, requests).await?, requests);
    }
    Ok((late, begin))
}

/// Milliseconds from the prompt to the model's first request.
async fn begun(server: &Process, model: &Model, session: &str, folder: &Path) -> Result<f64> {
    std::fs::write(folder.join("workspace/note.txt"), "One line.\nAnother line.\n")?;
    let started = Instant::now();
    prompt(server, session).await?;
    model.asked().await?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// Lets the model call the tool so many times, up to its next request.
async fn stepped(server: &Process, model: &Model, steps: std::ops::Range<usize>) -> Result<Asked> {
    let (cpu, started) = (server.cpu()?, Instant::now());
    model.ready(steps.map(call));
    model.asked().await?;
    Ok(Asked { wall: started.elapsed().as_secs_f64(), cpu: server.cpu()? - cpu })
}

fn call(number: usize) -> Answer {
    Answer::call(number, "read", &json!({ "filePath": "note.txt" }))
}

async fn again(model: &Model, requests: &[Vec<u8>]) -> Result<Asked> {
    asks::again(model, requests, (0..requests.len()).map(call).collect()).await
}
