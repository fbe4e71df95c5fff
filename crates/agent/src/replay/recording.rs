use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tolka_facts::event::{Failed, FailureKind, Model, PermissionAsked, QuestionAsked};
use tolka_facts::{Draft, Json};

use super::{acp, facts};
use crate::Ended;

/// What an agent did, as turns to play. There is always one at least.
#[derive(Debug)]
pub struct Recording {
    pub(super) score: Score,
    pub(super) model: Option<Model>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("cannot read the recording {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{file}:{line}: {problem}")]
    Line { file: String, line: usize, problem: String },
    #[error("{file}: there is nothing in this recording")]
    Empty { file: String },
}

impl Recording {
    /// Reads a file: lines of `{"t","dir","msg"}` between a client and an ACP agent, or our own facts,
    /// one per line, which may be a capture of the stream that tells them.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        let path = path.as_ref();
        let text =
            std::fs::read_to_string(path).map_err(|error| RecordingError::Read { path: path.to_owned(), error })?;
        Recording::read(&path.display().to_string(), &text)
    }

    /// How many prompts it has; a longer session hears it again from the start.
    pub fn turns(&self) -> usize {
        self.score.turns.len()
    }

    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        Recording::read("recording", text)
    }

    fn read(file: &str, text: &str) -> Result<Self, RecordingError> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, payload(line)));
        let lines: Vec<_> = lines.filter(|(_, line)| !line.is_empty()).collect();
        let Some((_, first)) = lines.first() else { return Err(RecordingError::Empty { file: file.to_owned() }) };
        let is_acp = serde_json::from_str::<Directed>(first).is_ok();
        let read = if is_acp { acp::read(&lines) } else { facts::read(&lines) };
        read.map_err(|Problem { line, problem }| RecordingError::Line { file: file.to_owned(), line, problem })
    }
}

/// Only lines of a conversation have a direction.
#[derive(Deserialize)]
struct Directed {
    #[serde(rename = "dir")]
    _dir: IgnoredAny,
}

/// What a line of a file or of a captured stream holds; empty where it is only framing.
fn payload(line: &str) -> &str {
    let line = line.trim();
    let is_framing = [":", "id:", "event:", "retry:"].iter().any(|mark| line.starts_with(mark));
    if is_framing { "" } else { line.strip_prefix("data:").unwrap_or(line).trim_start() }
}

/// What is wrong with a line.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) line: usize,
    pub(super) problem: String,
}

#[derive(Debug, Default)]
pub(super) struct Score {
    /// Told at the beginning of a session's first turn.
    pub(super) opening: Vec<What>,
    pub(super) turns: Vec<Turn>,
}

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) beats: Vec<Beat>,
    /// Since its beginning, as all times of its beats.
    pub(super) ends_at: Duration,
    pub(super) end: End,
}

#[derive(Debug)]
pub(super) struct Beat {
    pub(super) at: Duration,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// The `update` of an ACP agent.
    Update(Json),
    /// The parameters of an ACP agent's request for permission.
    AcpPermission {
        params: Json,
        answer: Option<Answer>,
    },
    /// Any other message of an ACP agent.
    Foreign {
        method: String,
        params: Json,
    },
    Told(Draft),
    Permission {
        ask: PermissionAsked,
        raw: Option<Json>,
        answer: Option<Answer>,
    },
    Question {
        ask: QuestionAsked,
        answer: Option<Answer>,
    },
}

/// The answer that the recorded agent got.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) at: Duration,
    pub(super) allowed: bool,
}

#[derive(Debug)]
pub(super) enum End {
    /// The answer to a `session/prompt`: its result or its error object.
    Acp(Result<Json, Json>),
    Ended(Ended),
}

/// Where in the score a beat stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    turn: usize,
    beat: usize,
}

impl Score {
    /// A turn that has not ended yet: it is what remains if the recording breaks off.
    pub(super) fn open_turn(&mut self) -> usize {
        let broken = failure("the recording ends before this turn does", None);
        self.turns.push(Turn { beats: Vec::new(), ends_at: Duration::ZERO, end: End::Ended(Ended::failed(broken)) });
        self.turns.len() - 1
    }

    /// Adds to a turn that is open.
    pub(super) fn add(&mut self, turn: usize, at: Duration, what: What) -> Option<Spot> {
        let open = self.turns.get_mut(turn)?;
        open.ends_at = open.ends_at.max(at);
        open.beats.push(Beat { at, what });
        Some(Spot { turn, beat: open.beats.len() - 1 })
    }

    /// Adds what was told while no turn was open: to the beginning, or else to the turn before, as if
    /// told at its very end, for an agent can speak only within turns.
    pub(super) fn add_between(&mut self, what: What) {
        match self.turns.last_mut() {
            None => self.opening.push(what),
            Some(last) => last.beats.push(Beat { at: last.ends_at, what }),
        }
    }

    pub(super) fn end_turn(&mut self, turn: usize, at: Duration, end: End) {
        if let Some(turn) = self.turns.get_mut(turn) {
            turn.ends_at = turn.ends_at.max(at);
            turn.end = end;
        }
    }

    pub(super) fn answer(&mut self, spot: Spot, given: Answer) {
        let what =
            self.turns.get_mut(spot.turn).and_then(|turn| turn.beats.get_mut(spot.beat)).map(|beat| &mut beat.what);
        if let Some(
            What::AcpPermission { answer, .. } | What::Permission { answer, .. } | What::Question { answer, .. },
        ) = what
        {
            *answer = Some(given);
        }
    }
}

pub(super) fn failure(message: &str, details: Option<Json>) -> Failed {
    Failed { kind: FailureKind::Agent, message: message.to_owned(), code: None, retryable: false, details }
}
