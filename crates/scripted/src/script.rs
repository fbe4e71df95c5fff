//! A script: what is answered to whom, as JSON or made in Rust.
//!
//! ```json
//! {"answers": [
//!   {"when": {"has_tools": false}, "times": 0, "beats": [{"text": "A title"}]},
//!   {"beats": [{"think": "Hm."}, {"text": "Let me look."}, {"call": {"name": "read", "input": {"path": "a"}}}]},
//!   {"status": 429, "headers": {"retry-after": "1"}},
//!   {"beats": [{"text": "Half an ans"}, {"cut": "closed"}]},
//!   {"beats": [{"text": "Done."}], "usage": {"input": 10, "output": 2}}
//! ]}
//! ```
//!
//! A list alone is the list of answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    pub answers: Vec<Answer>,
    pub order: Order,
    /// Any other key is refused. `None`: nobody asks for one.
    pub key: Option<String>,
    /// Any other model is unknown. Empty: every name is good.
    pub models: Vec<String>,
    /// Tokens that a request may hold, four bytes of it each; what is longer is refused as too long. `None`: any number.
    pub context: Option<u64>,
    /// Characters in one piece of text; `None` cuts as providers do, into a few.
    pub piece: Option<usize>,
    /// The field in which the OpenAI wire tells thoughts.
    pub reasoning: Reasoning,
}

/// What "the next answer" means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Each answer is for whoever asks next.
    #[default]
    Global,
    /// Each conversation (those that begin with the same words of the user are one) gets all answers.
    Conversation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    #[default]
    ReasoningContent,
    Reasoning,
    /// With signatures, which must come back.
    ReasoningDetails,
}

/// One answer: either what is said, or with `status` a refusal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// Goes before answers that are for anybody, where it holds.
    pub when: Option<When>,
    /// How often it is given; 0 for ever. `None`: once.
    pub times: Option<u32>,
    pub beats: Vec<Beat>,
    /// `None`: as the beats suggest.
    pub finish: Option<Ending>,
    pub usage: Option<Counts>,
    pub status: Option<u16>,
    pub headers: BTreeMap<String, String>,
    /// Of a refusal; `None` says what the provider would say with this status.
    pub body: Option<Value>,
    /// The refusal is that the conversation is too long.
    pub overflow: bool,
}

/// All that is named has to hold. Texts are parts of what they are looked for in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// In the last message of the user.
    pub user: Option<String>,
    /// In the last result of a call; the request must end with it.
    pub result: Option<String>,
    pub system: Option<String>,
    pub model: Option<String>,
    /// Whether tools are offered: a request for a title has none.
    pub has_tools: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beat {
    Think(String),
    /// A thought that is not shown; the text stands for what is hidden.
    Redacted(String),
    Text(String),
    Call(Call),
    /// Several at once.
    Calls(Vec<Call>),
    /// Several at once, their pieces mixed (where the wire can).
    Interleaved(Vec<Call>),
    /// The same text as a piece of its own, again and again, as fast as can be.
    Flood {
        text: String,
        times: u64,
    },
    DelayMs(u64),
    /// Nothing more until somebody opens the gate of this name.
    Gate(String),
    /// Nothing more at all; the connection stays.
    Hang,
    Cut(Cut),
    /// Bytes that are no part of the wire.
    Garbage(String),
    /// Bytes like `Garbage`, so many of one event that does not end.
    Endless(u64),
    /// The wire's own way to tell of a fault inside an answer.
    Error {
        kind: String,
        message: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub name: String,
    /// A text is sent as it is, even where it is no JSON.
    #[serde(default)]
    pub input: Value,
    #[serde(default)]
    pub id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The body ends as if that were all.
    Closed,
    /// The connection breaks.
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Stop,
    ToolCalls,
    Length,
    Refusal,
    /// Anthropic's; on the other wire `stop`.
    PauseTurn,
}

/// Each token is counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Counts {
    pub input: u64,
    pub output: u64,
    pub reasoning: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("this is no script: {0}")]
pub struct ScriptError(#[from] serde_json::Error);

impl Script {
    pub fn of(answers: impl IntoIterator<Item = Answer>) -> Self {
        Script { answers: answers.into_iter().collect(), ..Script::default() }
    }

    pub fn read(script: Value) -> Result<Self, ScriptError> {
        match script {
            list @ Value::Array(_) => Ok(Script::of(serde_json::from_value::<Vec<Answer>>(list)?)),
            script => Ok(serde_json::from_value(script)?),
        }
    }
}

impl Answer {
    pub fn beats(beats: impl IntoIterator<Item = Beat>) -> Self {
        Answer { beats: beats.into_iter().collect(), ..Answer::default() }
    }

    pub fn text(text: &str) -> Self {
        Answer::beats([Beat::Text(text.to_owned())])
    }

    pub fn call(name: &str, input: Value) -> Self {
        Answer::beats([Beat::call(name, input)])
    }

    pub fn status(status: u16) -> Self {
        Answer { status: Some(status), ..Answer::default() }
    }

    pub fn overflow() -> Self {
        Answer { overflow: true, ..Answer::status(400) }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    #[must_use]
    pub fn when(self, when: When) -> Self {
        Answer { when: Some(when), ..self }
    }

    #[must_use]
    pub fn for_ever(self) -> Self {
        Answer { times: Some(0), ..self }
    }
}

impl Beat {
    pub fn call(name: &str, input: Value) -> Self {
        Beat::Call(Call::new(name, input))
    }
}

impl Call {
    pub fn new(name: &str, input: Value) -> Self {
        Call { name: name.to_owned(), input, id: None }
    }
}
