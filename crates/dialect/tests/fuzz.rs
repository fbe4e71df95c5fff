//! Decoders take any bytes: random ones, and real streams cut, doubled and flipped. They answer with drafts or
//! with an error, never with a panic, and the facts they draft can be told again. Judges find what they find.
//!
//! In the suite this runs for a moment; `make fuzz` gives it FUZZ_SECONDS.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::time::{Duration, Instant};

use tolka_dialect::{Dialect, Frames};
use tolka_facts::{NoBlobs, SessionId, Time, Tip};

/// A small generator with a seed that is printed, so that a failure can be had again.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap()
    }
}

fn samples() -> Vec<Vec<u8>> {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/");
    let mut samples = Vec::new();
    for folder in ["data/recordings/acp", "data/recordings/opencode", "data/facts", "golden"] {
        let Ok(entries) = std::fs::read_dir(format!("{data}{folder}")) else { continue };
        for entry in entries {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            // Golden streams are a frame per line; a stream has them in `data:` lines.
            let is_stream = bytes.starts_with(b"data:") || bytes.starts_with(b"id:") || bytes.starts_with(b"event:");
            let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
            samples.push(if is_stream {
                bytes
            } else {
                lines.flat_map(|l| [b"data: ", l, b"\n\n"].concat()).collect()
            });
        }
    }
    assert!(samples.len() > 3, "the samples are gone");
    samples
}

fn damage(chance: &mut Chance, sample: &[u8]) -> Vec<u8> {
    let from = chance.below(sample.len());
    let to = from + chance.below((sample.len() - from).min(8192));
    let mut bytes = sample[from..to].to_vec();
    for _ in 0..chance.below(6) {
        if bytes.is_empty() {
            break;
        }
        let at = chance.below(bytes.len());
        match chance.below(5) {
            0 => bytes[at] = chance.next().to_le_bytes()[0],
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, b"{}[]\",:\n\r\\0-"[chance.below(12)]),
            3 => bytes.truncate(at),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}

fn feed(dialect: Dialect, bytes: &[u8], chance: &mut Chance) {
    let (mut decoder, mut drafts) = (dialect.decoder(), Vec::new());
    let cut = chance.below(bytes.len() + 1);
    for part in [&bytes[..cut], &bytes[cut..]] {
        let _ = decoder.feed(part, &mut drafts);
    }
    let _ = decoder.finish(&mut drafts);
    let (mut judge, mut found) = (dialect.judge(), Vec::new());
    for part in [&bytes[..cut], &bytes[cut..]] {
        judge.feed(part, &mut found);
    }
    judge.finish(&mut found);
    assert!(found.iter().all(|finding| finding.line > 0), "a finding of {dialect} has no line");
    for telling in Dialect::ALL {
        let (mut encoder, mut tip, mut frames) = (telling.encoder(), Tip::default(), Frames::default());
        for (seq, draft) in (1..).zip(drafts.iter().map(|heard| heard.draft.clone())) {
            let fact = draft.stamp(SessionId::from("ses_1"), seq, Time::from_millis(seq));
            tip.apply(&fact);
            encoder.encode(&fact, &tip, &NoBlobs, &mut frames);
        }
        assert!(frames.iter().all(|frame| !frame.contains(&b'\n')), "a frame of {telling} has a line break");
    }
}

#[test]
fn decoders_take_any_bytes() {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|s| s.parse().ok());
    let seed = seed.unwrap_or_else(|| Time::now().micros() | 1);
    println!("FUZZ_SEED={seed}");
    let (mut chance, samples) = (Chance(seed), samples());
    let (until, mut runs) = (Instant::now() + Duration::from_secs(seconds), 0_u64);
    while Instant::now() < until {
        for dialect in Dialect::ALL {
            let sample = &samples[chance.below(samples.len())];
            let damaged = damage(&mut chance, sample);
            feed(dialect, &damaged, &mut chance);
            let random: Vec<u8> = (0..chance.below(512)).map(|_| chance.next().to_le_bytes()[0]).collect();
            feed(dialect, &random, &mut chance);
            runs += 2;
        }
    }
    println!("{runs} runs");
}
