//! Facts to frames, frames to streams, streams to facts.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use proptest::prelude::ProptestConfig;
use serde_json::Value;
use tolka_dialect::{Decoder as _, Dialect, Frames, Heard, opencode};
use tolka_facts::{Blobs, Draft, Fact, Hash, SessionId, Time, Tip};

pub(crate) const PROFILES: [opencode::Profile; 3] =
    [opencode::Profile::Superset, opencode::Profile::Current, opencode::Profile::Documented];

#[derive(Clone, Default)]
pub(crate) struct Store(HashMap<Hash, Vec<u8>>);

impl Store {
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.0.insert(Hash::of(bytes), bytes.to_vec());
    }
}

impl Blobs for Store {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.0.get(hash).cloned()
    }
}

/// Facts of one session, with the blobs that they refer to.
#[derive(Clone, Default)]
pub(crate) struct Run {
    pub(crate) facts: Vec<Fact>,
    pub(crate) blobs: Store,
}

/// A line per fact: what a failing test prints should be readable.
impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fact in &self.facts {
            let line = format!("{:?}", fact.event);
            writeln!(f, "{:4} {}", fact.seq, line.chars().take(160).collect::<String>())?;
        }
        Ok(())
    }
}

/// The tests run in debug builds; more cases on demand (`PROPTEST_CASES`).
pub(crate) fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 48 };
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 4000, ..default }
}

impl Run {
    /// Stamps drafts as the journal would: gapless, a millisecond apart, long values moved out.
    pub(crate) fn stamped(drafts: impl IntoIterator<Item = Draft>) -> Run {
        let mut run = Run::default();
        for (seq, mut draft) in (1..).zip(drafts) {
            draft.spill(&mut |bytes| run.blobs.put(bytes));
            let time = Time::from_millis(1_794_702_342_312 + seq);
            run.facts.push(draft.stamp(SessionId::from("ses_e23678758ffenHI9SvU6UHo4PN"), seq, time));
        }
        run
    }

    /// The frames of each fact, told from the start.
    pub(crate) fn told(&self, dialect: Dialect) -> Vec<Vec<Vec<u8>>> {
        let (mut encoder, mut tip) = (dialect.encoder(), Tip::default());
        let mut told = Vec::new();
        for fact in &self.facts {
            let mut frames = Frames::default();
            tip.apply(fact);
            encoder.encode(fact, &tip, &self.blobs, &mut frames);
            told.push(frames.iter().map(<[u8]>::to_vec).collect());
        }
        told
    }

    /// All events, as JSON.
    pub(crate) fn events(&self, profile: opencode::Profile) -> Vec<Value> {
        let frames = self.told(Dialect::OpenCode(profile));
        frames.iter().flatten().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
    }

    pub(crate) fn stream(&self, profile: opencode::Profile) -> Vec<u8> {
        sse(self.told(Dialect::OpenCode(profile)).iter().flatten())
    }
}

pub(crate) fn sse<'a>(frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let mut stream = Vec::new();
    for frame in frames {
        stream.extend(b"data: ");
        stream.extend(frame);
        stream.extend(b"\n\n");
    }
    stream
}

pub(crate) fn drafts(heard: Vec<Heard>) -> Vec<Draft> {
    heard.into_iter().map(|heard| heard.draft).collect()
}

pub(crate) fn decode(stream: &[u8]) -> Vec<Draft> {
    let (mut decoder, mut heard) = (opencode::Decoder::default(), Vec::new());
    decoder.feed(stream, &mut heard).unwrap();
    decoder.finish(&mut heard).unwrap();
    drafts(heard)
}

/// An event of the wire as a stream of its own.
pub(crate) fn frame(event: &Value) -> Vec<u8> {
    sse([&event.to_string().into_bytes()])
}

pub(crate) fn data(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(folder)
}
