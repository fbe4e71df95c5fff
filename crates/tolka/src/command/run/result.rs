//! What a run came to: the exit code, and the last line for programs.

use serde_json::{Value, json};
use tolka_facts::event::{Failed, PermissionAsked, Stop, TurnEnded};
use tolka_facts::{Event, Fact};

/// A script can tell by the exit code what became of its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    /// Something was not allowed, and nobody was there to be asked.
    Refused = 3,
    Cancelled = 4,
    AtALimit = 5,
    /// The person left a turn that was being cancelled.
    Left = 130,
}

/// Of an answer, for the last line: it stands in the facts as well.
const LONGEST: usize = 1 << 20;

/// Gathered while the turn is followed.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    text: String,
    refused: Vec<Value>,
    failure: Option<Failed>,
    ended: Option<TurnEnded>,
}

impl Outcome {
    pub(super) fn hear(&mut self, fact: &Fact) {
        match &fact.event {
            // The last step's words are the answer.
            Event::StepStarted(_) => self.text.clear(),
            Event::TextAppended(e) if self.text.len() < LONGEST => self.text.push_str(&e.text),
            Event::Failed(e) => self.failure = Some(e.clone()),
            _ => {}
        }
    }

    /// Nobody was there to say yes to this.
    pub(super) fn refuse(&mut self, ask: &PermissionAsked) {
        self.refused.push(json!({ "permission": ask.permission, "title": ask.title, "patterns": ask.patterns }));
    }

    pub(super) fn refuse_question(&mut self, question: &str) {
        self.refused.push(json!({ "question": question }));
    }

    pub(super) fn end(&mut self, ended: &TurnEnded) -> Exit {
        self.ended = Some(ended.clone());
        match ended.stop {
            Stop::Failed | Stop::Refusal => Exit::Failed,
            Stop::Cancelled | Stop::Interrupted => Exit::Cancelled,
            Stop::MaxTokens | Stop::MaxTurnRequests => Exit::AtALimit,
            Stop::EndTurn if self.refused.is_empty() => Exit::Done,
            Stop::EndTurn => Exit::Refused,
        }
    }

    /// The last line of `--json`.
    pub(super) fn line(&self, session: &str, turn: &str, exit: Exit) -> Value {
        let ended = self.ended.as_ref();
        let error = self.failure.as_ref().filter(|_| exit == Exit::Failed).map(|failure| &failure.message);
        json!({
            "type": "result", "session": session, "turn": turn, "exit": exit as u8, "stop": ended.map(|ended| ended.stop),
            "text": self.text, "refused": self.refused, "error": error, "usage": ended.and_then(|ended| ended.usage),
            "cost": ended.and_then(|ended| ended.cost),
        })
    }
}
