//! How often and how much encoders allocate, as JSON by stream and dialect; `tolka-bench encode` reads it.
//!
//! A program of its own, for the allocator that counts would cost the other one time.

#[path = "../encode/streams.rs"]
mod streams;

use std::alloc::System;

use anyhow::Result;
use serde_json::{Map, Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tolka_dialect::{Dialect, Frames};
use tolka_facts::{NoBlobs, Tip};

use streams::{Growing, Stream};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<()> {
    let mut all = Map::new();
    for stream in Stream::ALL {
        let of = |dialect: Dialect| Ok((dialect.name().to_owned(), lap(dialect, stream)?));
        let by_dialect = Dialect::ALL.into_iter().map(of).collect::<Result<Map<_, _>>>()?;
        all.insert(stream.name().to_owned(), by_dialect.into());
    }
    let grown = |growing: Growing| {
        let by_dialect = Dialect::ALL.map(|dialect| (dialect.name().to_owned(), json!(growth(dialect, growing))));
        (growing.name().to_owned(), Value::Object(Map::from_iter(by_dialect)))
    };
    all.insert("growth".to_owned(), Value::Object(Map::from_iter(Growing::ALL.map(grown))));
    println!("{}", Value::Object(all));
    Ok(())
}

/// What is allocated per fact in the second lap, and the most for one: the first fills buffers that a stream keeps.
fn lap(dialect: Dialect, stream: Stream) -> Result<Value> {
    let mut laps = stream.laps()?;
    let (mut encoder, mut tip, mut frames) = (dialect.encoder(), Tip::default(), Frames::default());
    tip.apply(&laps.created());
    let (mut count, mut bytes, mut most) = (0, 0, 0);
    for n in 0..laps.len() * 2 {
        let is_second = n >= laps.len();
        let fact = laps.next();
        tip.apply(fact);
        frames.clear();
        let allocated = counted(|| encoder.encode(fact, &tip, &NoBlobs, &mut frames));
        if is_second {
            (count, bytes, most) = (count + allocated.0, bytes + allocated.1, most.max(allocated.1));
        }
    }
    let each = |sum: usize| sum as f64 / laps.len() as f64;
    Ok(json!({ "per_fact": each(count), "bytes_per_fact": each(bytes), "most_bytes": most }))
}

/// Bytes allocated per fact early and late in a long turn, in buffers that are not kept.
fn growth(dialect: Dialect, growing: Growing) -> [f64; 2] {
    let (mut encoder, mut tip, mut frames) = (dialect.encoder(), Tip::default(), Frames::default());
    let windows = growing.windows(dialect);
    let mut bytes = [0, 0];
    for n in 1..windows[1].end {
        let fact = growing.fact(n);
        tip.apply(&fact);
        frames.clear();
        let allocated = counted(|| encoder.encode(&fact, &tip, &NoBlobs, &mut frames));
        if let Some(at) = windows.iter().position(|window| window.contains(&n)) {
            bytes[at] += allocated.1;
        }
    }
    [0, 1].map(|at| bytes[at] as f64 / (windows[at].end - windows[at].start) as f64)
}

/// How many allocations, a growing one counted again, and of how many bytes.
fn counted(work: impl FnOnce()) -> (usize, usize) {
    let before = COUNTED.stats();
    work();
    let after = COUNTED.stats() - before;
    let grown = usize::try_from(after.bytes_reallocated).unwrap_or_default();
    (after.allocations + after.reallocations, after.bytes_allocated + grown)
}
