//! The tongues: one folder per wire, each with its encoder, its decoder and the rules of its documents.
//!
//! An [`Encoder`] turns facts into frames and is pure: no clock, no chance, no disk but immutable blobs.
//! The same journal gives the same bytes, always, and a stream may be cut anywhere and taken up again:
//! `encode(whole) == encode(prefix) ++ encode(rest)`. Between turns an encoder holds no state, so a
//! stream can be taken up at any idle moment with a fresh one and the [`Tip`] of that moment.
//!
//! A [`Decoder`] reads a stream of that wire, ours or another server's, back into drafts of facts.

pub mod acp;
mod frames;
pub mod onyx;
pub mod opencode;
mod sse;
pub mod tolka;

use std::fmt;
use std::str::FromStr;

use tolka_facts::{Blobs, Draft, Fact, Tip};

pub use frames::Frames;
pub use sse::{SseEvent, SseReader};

/// Facts in, frames out.
pub trait Encoder: Send + fmt::Debug {
    /// Appends to `out` the frames that tell `fact`; `tip` is the state after it.
    fn encode(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames);

    /// The state, to be kept and given to [`Dialect::resume`] later.
    fn state(&self) -> Vec<u8>;
}

/// Bytes in, drafts out. A decoder keeps what it needs of the past; bytes may be cut anywhere.
pub trait Decoder: Send + fmt::Debug {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Draft>) -> Result<(), DecodeError>;

    /// The stream is over; what is half read is an error.
    fn finish(&mut self, out: &mut Vec<Draft>) -> Result<(), DecodeError>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct DecodeError {
    pub line: u64,
    pub problem: String,
}

/// What a stream can be told in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Our facts as JSON.
    Tolka,
    Onyx(onyx::Profile),
    OpenCode(opencode::Profile),
}

impl Dialect {
    pub const ALL: [Dialect; 6] = [
        Dialect::Tolka,
        Dialect::Onyx(onyx::Profile::Documented),
        Dialect::Onyx(onyx::Profile::Current),
        Dialect::OpenCode(opencode::Profile::Superset),
        Dialect::OpenCode(opencode::Profile::Current),
        Dialect::OpenCode(opencode::Profile::Documented),
    ];

    /// The name in URLs, on the command line and in the journal's kept states.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Tolka => "tolka",
            Dialect::Onyx(onyx::Profile::Documented) => "onyx",
            Dialect::Onyx(onyx::Profile::Current) => "onyx-current",
            Dialect::OpenCode(opencode::Profile::Superset) => "opencode",
            Dialect::OpenCode(opencode::Profile::Current) => "opencode-current",
            Dialect::OpenCode(opencode::Profile::Documented) => "opencode-documented",
        }
    }

    pub fn encoder(self) -> Box<dyn Encoder> {
        match self {
            Dialect::Tolka => Box::new(tolka::Encoder),
            Dialect::Onyx(profile) => Box::new(onyx::Encoder::new(profile)),
            Dialect::OpenCode(profile) => Box::new(opencode::Encoder::new(profile)),
        }
    }

    /// An encoder as [`Encoder::state`] left it. `None` if another version wrote the state: start from an
    /// idle moment instead.
    pub fn resume(self, state: &[u8]) -> Option<Box<dyn Encoder>> {
        match self {
            Dialect::Tolka => Some(Box::new(tolka::Encoder)),
            Dialect::Onyx(profile) => Some(Box::new(onyx::Encoder::resume(profile, state)?)),
            Dialect::OpenCode(profile) => Some(Box::new(opencode::Encoder::resume(profile, state)?)),
        }
    }

    pub fn decoder(self) -> Box<dyn Decoder> {
        match self {
            Dialect::Tolka => Box::new(tolka::Decoder::default()),
            Dialect::Onyx(_) => Box::new(onyx::Decoder::default()),
            Dialect::OpenCode(_) => Box::new(opencode::Decoder::default()),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "no dialect is called `{0}`; there are tolka, onyx, onyx-current, opencode, opencode-current, opencode-documented"
)]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Dialect::ALL.into_iter().find(|d| d.name() == name).ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}
