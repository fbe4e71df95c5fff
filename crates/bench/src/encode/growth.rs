//! A turn of 100,000 facts: what a fact costs early in it and late in it.

use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tolka_dialect::{Dialect, Frames};
use tolka_facts::{NoBlobs, Tip};

use super::Cost;
use super::streams::Growing;

/// The tip is copied where a reader or the actor keeps a state: every few hundred facts.
const COPIED_EVERY: u64 = 100;

pub(super) fn measure(counted: &Value) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for growing in Growing::ALL {
        println!(
            "\na turn of ever more {}: mean ns per fact   early    late   ratio   median early    late   bytes allocated early    late",
            growing.name()
        );
        let [apply, copy] = tip(growing);
        for (name, windows) in [("Tip::apply", apply), ("Tip::clone", copy)] {
            rows.push(row(growing, name, windows, &Value::Null));
        }
        for dialect in Dialect::ALL {
            let windows = told(dialect, growing);
            let allocated = &counted["growth"][growing.name()][dialect.name()];
            rows.push(row(growing, dialect.name(), windows, allocated));
        }
    }
    Ok(rows)
}

fn row(growing: Growing, name: &str, [early, late]: [Cost; 2], allocated: &Value) -> Value {
    let ratio = late.mean as f64 / early.mean.max(1) as f64;
    let bytes = |at: usize| allocated[at].as_f64().map_or_else(|| "–".to_owned(), |bytes| format!("{bytes:.0}"));
    println!(
        "  {name:38} {:8} {:7} {ratio:7.2} {:14} {:7} {:>23} {:>7}",
        early.mean,
        late.mean,
        early.median,
        late.median,
        bytes(0),
        bytes(1)
    );
    json!({
        "growing": growing.name(), "what": name, "early": early.json(), "late": late.json(), "ratio": ratio,
        "bytes_allocated_per_fact": allocated,
    })
}

fn told(dialect: Dialect, growing: Growing) -> [Cost; 2] {
    let (mut encoder, mut tip, mut frames) = (dialect.encoder(), Tip::default(), Frames::default());
    timed(&growing.windows(dialect), |n| {
        let fact = growing.fact(n);
        tip.apply(&fact);
        frames.clear();
        let started = Instant::now();
        encoder.encode(&fact, &tip, &NoBlobs, &mut frames);
        Some(started.elapsed())
    })
}

fn tip(growing: Growing) -> [[Cost; 2]; 2] {
    let mut tip = Tip::default();
    let apply = timed(&growing.windows(Dialect::Tolka), |n| {
        let fact = growing.fact(n);
        let started = Instant::now();
        tip.apply(&fact);
        Some(started.elapsed())
    });
    let mut tip = Tip::default();
    let copy = timed(&growing.windows(Dialect::Tolka), |n| {
        tip.apply(&growing.fact(n));
        let started = Instant::now();
        (n % COPIED_EVERY == 0).then(|| {
            black_box(tip.clone());
            started.elapsed()
        })
    });
    [apply, copy]
}

/// What the facts of each window took, where one was timed.
fn timed(windows: &[Range<u64>; 2], mut each: impl FnMut(u64) -> Option<Duration>) -> [Cost; 2] {
    let mut taken = [Vec::new(), Vec::new()];
    for n in 1..windows[1].end {
        let Some(time) = each(n) else { continue };
        if let Some(at) = windows.iter().position(|window| window.contains(&n)) {
            taken[at].push(time.as_nanos() as u64);
        }
    }
    taken.map(Cost::of)
}
