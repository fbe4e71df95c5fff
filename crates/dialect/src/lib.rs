//! The tongues: one folder per wire, each with its encoder, its decoder and the rules of its documents.
//!
//! An [`Encoder`] turns facts into frames and is pure: no clock, no chance, no disk but immutable blobs.
//! The same journal gives the same bytes, always, and a stream may be cut anywhere and taken up again:
//! `encode(whole) == encode(prefix) ++ encode(rest)`. Between turns an encoder holds no state, so a
//! stream can be taken up at any idle moment with a fresh one and the [`Tip`] of that moment.
//!
//! A [`Decoder`] reads a stream of that wire, ours or another server's, back into drafts of facts. A [`Judge`] says
//! what in such a stream breaks the rules of its document.

pub mod acp;
pub mod agentsmithy;
mod carriage;
mod check;
mod edit;
mod frames;
mod guess;
mod heard;
pub mod onyx;
pub mod onyx_steps;
pub mod opencode;
mod path;
mod print;
mod quoted;
mod recent;
mod retelling;
mod sse;
pub mod tolka;
mod tool;

use std::fmt;
use std::str::FromStr;

use tolka_facts::{Blobs, Fact, Tip};

pub use carriage::{Carriage, CarriageTable};
pub use check::{Finding, Judge, Rule};
pub use frames::Frames;
pub use guess::Guess;
pub use heard::Heard;
pub use retelling::Retelling;
pub use sse::{SseEvent, SseReader};

/// Facts in, frames out.
pub trait Encoder: Send + fmt::Debug {
    /// Appends to `out` the frames that tell `fact`; `tip` is the state after it.
    fn encode(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs, out: &mut Frames);

    /// The state, to be kept and given to [`Dialect::resume`] later.
    fn state(&self) -> Vec<u8>;

    /// For a reader that wants what things came to, not how. A dialect that says nothing twice need not heed it.
    fn set_growing(&mut self, _growing: Growing) {}
}

/// What becomes of live input and output of calls while it grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growing {
    /// It is told again and again, as streams have it.
    #[default]
    Told,
    /// It is not told until the call changes otherwise, or until growing things are told again: then with the next fact,
    /// as far as a stream would have told it. The state of such an encoder is of no use to a stream.
    Held,
}

/// Bytes in, drafts out. Server-sent events, or a JSON object per line. A decoder keeps what it needs of the past; bytes may be cut anywhere.
pub trait Decoder: Send + fmt::Debug {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<Heard>) -> Result<(), DecodeError>;

    /// The stream is over; what is half read is an error.
    fn finish(&mut self, out: &mut Vec<Heard>) -> Result<(), DecodeError>;
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
    /// The Agent Client Protocol, as an agent speaks it.
    Acp,
    AgentSmithy,
    Onyx(onyx::Profile),
    /// Onyx's first packets, of steps, tools and output.
    OnyxSteps,
    OpenCode(opencode::Profile),
}

impl Dialect {
    pub const ALL: [Dialect; 9] = [
        Dialect::Tolka,
        Dialect::Acp,
        Dialect::AgentSmithy,
        Dialect::Onyx(onyx::Profile::Documented),
        Dialect::Onyx(onyx::Profile::Current),
        Dialect::OnyxSteps,
        Dialect::OpenCode(opencode::Profile::Superset),
        Dialect::OpenCode(opencode::Profile::Current),
        Dialect::OpenCode(opencode::Profile::Documented),
    ];

    /// The name in URLs, on the command line and in the journal's kept states.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Tolka => "tolka",
            Dialect::Acp => "acp",
            Dialect::AgentSmithy => "agentsmithy",
            Dialect::Onyx(onyx::Profile::Documented) => "onyx",
            Dialect::Onyx(onyx::Profile::Current) => "onyx-current",
            Dialect::OnyxSteps => "onyx-steps",
            Dialect::OpenCode(opencode::Profile::Superset) => "opencode",
            Dialect::OpenCode(opencode::Profile::Current) => "opencode-current",
            Dialect::OpenCode(opencode::Profile::Documented) => "opencode-documented",
        }
    }

    pub fn encoder(self) -> Box<dyn Encoder> {
        match self {
            Dialect::Tolka => Box::new(tolka::Encoder),
            Dialect::Acp => Box::new(acp::Encoder::default()),
            Dialect::AgentSmithy => Box::new(agentsmithy::Encoder::default()),
            Dialect::Onyx(profile) => Box::new(onyx::Encoder::new(profile)),
            Dialect::OnyxSteps => Box::new(onyx_steps::Encoder::default()),
            Dialect::OpenCode(profile) => Box::new(opencode::Encoder::new(profile)),
        }
    }

    /// An encoder as [`Encoder::state`] left it. `None` if another version wrote the state: start from an
    /// idle moment instead.
    pub fn resume(self, state: &[u8]) -> Option<Box<dyn Encoder>> {
        Some(match self {
            Dialect::Tolka => Box::new(tolka::Encoder),
            Dialect::Acp => Box::new(acp::Encoder::resume(state)?),
            Dialect::AgentSmithy => Box::new(agentsmithy::Encoder::resume(state)?),
            Dialect::Onyx(profile) => Box::new(onyx::Encoder::resume(profile, state)?),
            Dialect::OnyxSteps => Box::new(onyx_steps::Encoder::resume(state)?),
            Dialect::OpenCode(profile) => Box::new(opencode::Encoder::resume(profile, state)?),
        })
    }

    pub fn decoder(self) -> Box<dyn Decoder> {
        match self {
            Dialect::Tolka => Box::new(tolka::Decoder::default()),
            Dialect::Acp => Box::new(acp::Decoder::default()),
            Dialect::AgentSmithy => Box::new(agentsmithy::Decoder::default()),
            Dialect::Onyx(_) => Box::new(onyx::Decoder::default()),
            Dialect::OnyxSteps => Box::new(onyx_steps::Decoder::default()),
            Dialect::OpenCode(_) => Box::new(opencode::Decoder::default()),
        }
    }

    pub fn judge(self) -> Judge {
        Judge::new(match self {
            Dialect::Tolka => tolka::law(),
            Dialect::Acp => acp::law(),
            Dialect::AgentSmithy => agentsmithy::law(),
            Dialect::Onyx(profile) => onyx::law(profile),
            Dialect::OnyxSteps => onyx_steps::law(),
            Dialect::OpenCode(profile) => opencode::law(profile),
        })
    }

    /// How each kind of event is carried.
    pub fn carriage(self) -> &'static CarriageTable {
        match self {
            Dialect::Tolka => tolka::CARRIAGE,
            Dialect::Acp => acp::CARRIAGE,
            Dialect::AgentSmithy => agentsmithy::CARRIAGE,
            Dialect::Onyx(_) => onyx::CARRIAGE,
            Dialect::OnyxSteps => onyx_steps::CARRIAGE,
            Dialect::OpenCode(_) => opencode::CARRIAGE,
        }
    }

    /// What stands in an `event:` line before each frame, if its family's clients are sent one.
    pub fn event_name(self) -> Option<&'static str> {
        match self {
            Dialect::Onyx(_) | Dialect::OnyxSteps => Some("message"),
            Dialect::Tolka | Dialect::Acp | Dialect::AgentSmithy | Dialect::OpenCode(_) => None,
        }
    }

    /// Writes a frame as it stands in a file or on a pipe, where no position goes with it.
    pub fn write_frame(self, frame: &[u8], out: &mut Vec<u8>) {
        match self {
            Dialect::Tolka | Dialect::Acp => {
                out.extend_from_slice(frame);
                out.push(b'\n');
            }
            Dialect::AgentSmithy | Dialect::Onyx(_) | Dialect::OnyxSteps | Dialect::OpenCode(_) => {
                if let Some(name) = self.event_name() {
                    out.extend_from_slice(format!("event: {name}\n").as_bytes());
                }
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(frame);
                out.extend_from_slice(b"\n\n");
            }
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no dialect is called `{0}`; there are {names}", names = Dialect::ALL.map(Dialect::name).join(", "))]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Dialect::ALL.into_iter().find(|d| d.name() == name).ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}
