//! The session as this family stores it: rows of packets, for a client that loads what was said before.
//!
//! The rows are made from the encoder's own packets, so a reload cannot differ from what was streamed.
//! Chunks become one row per run; of a tool the end is kept; plan and usage once per turn.
//!
//! The rows of a turn are settled when the next one starts, but for messages and turns that are hidden later: who knows
//! which those are can take the rows away turn by turn, and need not hold a session whole.

use std::collections::{HashMap, HashSet};

use serde::{Serialize, Serializer};
use serde_json::Value;
use tolka_facts::event::{PromptQueued, PromptSteered, TurnStarted};
use tolka_facts::{Blobs, Block, CallId, Event, Fact, Hash, Json, MessageId, SessionId, Time, Tip, ToolStatus, TurnId};

use super::packet::Packet;
use super::stamp::Stamp;
use super::{Encoder, Profile, rules};
use crate::{Encoder as _, Frames};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Made from the place in the journal, so that every load has the same; shaped as a UUID, which is what
    /// clients of this family expect.
    pub id: String,
    pub session_id: SessionId,
    /// From 0.
    pub turn_index: u64,
    pub r#type: RowType,
    pub message_metadata: RowMetadata,
    #[serde(serialize_with = "write_time")]
    pub created_at: Time,
    /// The message that the row is a part of: hiding one hides its rows.
    #[serde(skip)]
    pub message: MessageId,
    #[serde(skip)]
    key: Option<Key>,
    /// The fact since which it is a row of its turn: what was hidden before did not hide it.
    #[serde(skip)]
    since: u64,
    /// Where its turn started.
    #[serde(skip)]
    started: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowType {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RowMetadata {
    /// A run of text: the prompt, the agent's words, its thoughts.
    Text {
        r#type: &'static str,
        content: RowText,
        #[serde(rename = "sessionUpdate", skip_serializing_if = "Option::is_none")]
        update: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        _meta: Option<Json>,
        #[serde(skip_serializing_if = "Option::is_none")]
        attachments: Option<Json>,
    },
    /// A packet as it was sent.
    Packet(Json),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowText {
    r#type: &'static str,
    pub text: String,
}

/// What makes a later packet replace a row of the same turn.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Plan,
    Usage,
    Todos(String),
}

/// A fold: give it every fact of a session with the tip after it; take rows away as they settle, and read the rest.
#[derive(Debug)]
pub struct Rows {
    encoder: Encoder,
    rows: Vec<Row>,
    /// Prompts that wait for their turn; they are the last rows until then.
    queued: Vec<(TurnId, Row)>,
    /// The row that the next chunk of its kind goes to.
    open: Option<usize>,
    /// Calls of the turn that have shown lists of todos.
    todos: HashSet<CallId>,
    /// Turns from here on are taken back, and may come again.
    hidden_from: Option<u64>,
}

impl Rows {
    pub fn new(profile: Profile) -> Self {
        let (encoder, rows, queued, todos) = (Encoder::new(profile), Vec::new(), Vec::new(), HashSet::new());
        Rows { encoder, rows, queued, open: None, todos, hidden_from: None }
    }

    pub fn apply(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs) {
        match &fact.event {
            // Of a call the end is kept, which has all of it; to tell it as it grows would cost many times that.
            Event::OutputAppended(e) if !self.todos.contains(&e.call) => return,
            Event::PromptQueued(e) => self.queued.push((e.turn.clone(), user_row(e, fact, blobs))),
            Event::PromptDropped(e) => self.queued.retain(|(turn, _)| *turn != e.turn),
            // One that is for the turn which runs stands in it, below what was said so far.
            Event::TurnStarted(TurnStarted { turn, .. }) | Event::PromptSteered(PromptSteered { turn, .. }) => {
                self.take(turn, fact, tip);
            }
            Event::TurnEnded(_) => self.todos.clear(),
            Event::MessageHidden(e) => {
                self.rows.retain(|row| row.message != e.message);
                self.open = None;
            }
            _ => {}
        }
        self.hidden_from = tip.hidden_from();
        for (waiting, (_, row)) in self.queued.iter_mut().enumerate() {
            row.turn_index = tip.head.turns + waiting as u64;
        }
        let mut frames = Frames::default();
        self.encoder.encode(fact, tip, blobs, &mut frames);
        for (n, frame) in frames.iter().enumerate() {
            // The encoder writes JSON objects and nothing else.
            let json = std::str::from_utf8(frame).ok().and_then(|text| Json::parse(text).ok());
            if let Some(json) = json {
                self.packet(json, n, fact, tip);
            }
        }
    }

    /// In the order of the wire: by turn, then by time.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.is_rewound(self.hidden_from)).chain(self.queued.iter().map(|(_, row)| row))
    }

    /// Takes the rows of turns that a later one has followed. `hidden` says where messages are hidden, now or later, and
    /// `hidden_from` what rewinds hide at the end of the session.
    pub fn take_settled(&mut self, hidden: &HashMap<MessageId, u64>, hidden_from: Option<u64>) -> Vec<Row> {
        let Some(last) = self.rows.last().map(|row| row.turn_index) else { return Vec::new() };
        let settled = self.rows.partition_point(|row| row.turn_index < last);
        self.open = self.open.and_then(|at| at.checked_sub(settled));
        let mut rows: Vec<Row> = self.rows.drain(..settled).collect();
        let is_hidden = |row: &Row| hidden.get(&row.message).is_some_and(|hidden| *hidden >= row.since);
        rows.retain(|row| !is_hidden(row) && !row.is_rewound(hidden_from));
        rows
    }

    fn take(&mut self, turn: &TurnId, fact: &Fact, tip: &Tip) {
        self.open = None;
        if let Some(at) = self.queued.iter().position(|(queued, _)| queued == turn) {
            let (_, mut row) = self.queued.remove(at);
            row.turn_index = tip.turn.as_ref().map_or(0, |turn| turn.index);
            row.since = fact.seq;
            row.started = tip.turn.as_ref().map(|turn| turn.first_seq);
            self.rows.push(row);
        }
    }

    fn packet(&mut self, json: Json, n: usize, fact: &Fact, tip: &Tip) {
        let Ok(packet) = Packet::parse(json.get()) else { return };
        match packet {
            Packet::MessageChunk(Some(Block::Text { text, .. })) => {
                self.say("agent_message", text.head(), &json, n, fact, tip);
            }
            Packet::ThoughtChunk(Some(Block::Text { text, .. })) => {
                self.say("agent_thought", text.head(), &json, n, fact, tip);
            }
            // Not a row, but the next words stand below it.
            Packet::ToolStart(tool) => {
                if rules::is_todo_write(&json.value()) {
                    self.todos.insert(tool.call);
                }
                self.open = None;
            }
            Packet::ToolProgress(tool) => {
                let value: Value = json.value();
                if rules::is_todo_write(&value) {
                    // The list of one call is one row from its first telling on.
                    self.todos.insert(tool.call.clone());
                    self.put(Some(Key::Todos(tool.call.to_string())), json, n, fact, tip);
                } else if tool.status.is_some_and(ToolStatus::is_terminal) {
                    self.put(None, json, n, fact, tip);
                }
            }
            // These are drawn beside the talk: text goes on over them.
            Packet::Plan(_) => self.put(Some(Key::Plan), json, n, fact, tip),
            Packet::ContextUsage { .. } => self.put(Some(Key::Usage), json, n, fact, tip),
            Packet::Error(_) | Packet::Compaction { .. } | Packet::ArtifactCreated(_) => {
                self.open = None;
                self.put(None, json, n, fact, tip);
            }
            Packet::PromptResponse { .. } => self.open = None,
            Packet::MessageChunk(_)
            | Packet::ThoughtChunk(_)
            | Packet::Mode(_)
            | Packet::ApprovalRequested(_)
            | Packet::SubagentStarted { .. }
            | Packet::Unknown(_) => {}
        }
    }

    fn say(&mut self, kind: &'static str, piece: &str, packet: &Json, n: usize, fact: &Fact, tip: &Tip) {
        if let Some(row) = self.open.and_then(|at| self.rows.get_mut(at))
            && let RowMetadata::Text { r#type, content, .. } = &mut row.message_metadata
            && *r#type == kind
        {
            content.text.push_str(piece);
            return;
        }
        let metadata = RowMetadata::Text {
            r#type: kind,
            content: RowText { r#type: "text", text: piece.to_owned() },
            update: Some(kind),
            _meta: meta_of(packet),
            attachments: None,
        };
        self.open = Some(self.rows.len());
        self.rows.push(row(metadata, None, n, fact, tip));
    }

    fn put(&mut self, key: Option<Key>, packet: Json, n: usize, fact: &Fact, tip: &Tip) {
        let new = row(RowMetadata::Packet(packet), key, n, fact, tip);
        let of_turn = self.rows.iter_mut().rev().take_while(|row| row.turn_index == new.turn_index);
        match of_turn.into_iter().find(|row| row.key.is_some() && row.key == new.key) {
            Some(known) => known.message_metadata = new.message_metadata,
            None => self.rows.push(new),
        }
    }
}

impl Row {
    fn is_rewound(&self, hidden_from: Option<u64>) -> bool {
        self.started.zip(hidden_from).is_some_and(|(started, from)| from <= started)
    }
}

fn row(message_metadata: RowMetadata, key: Option<Key>, n: usize, fact: &Fact, tip: &Tip) -> Row {
    let turn = tip.turn.as_ref().or(tip.ended_turn.as_ref());
    Row {
        id: row_id(&fact.session, fact.seq, n),
        session_id: fact.session.clone(),
        // What comes between turns stands with the one before.
        turn_index: turn.map_or_else(|| tip.head.turns.saturating_sub(1), |turn| turn.index),
        r#type: RowType::Assistant,
        message_metadata,
        created_at: fact.time,
        message: turn.map(|turn| turn.current_message().clone()).unwrap_or_default(),
        key,
        since: fact.seq,
        started: turn.map(|turn| turn.first_seq),
    }
}

fn user_row(prompt: &PromptQueued, fact: &Fact, blobs: &dyn Blobs) -> Row {
    let mut texts = Vec::new();
    for block in &prompt.content {
        if let Block::Text { text, .. } = block {
            texts.push(text.text(blobs));
        }
    }
    let attachments = prompt.context.as_ref().and_then(|context| field(&context.whole(blobs), "attachments"));
    Row {
        id: row_id(&fact.session, fact.seq, 0),
        session_id: fact.session.clone(),
        turn_index: 0,
        r#type: RowType::User,
        message_metadata: RowMetadata::Text {
            r#type: "user_message",
            content: RowText { r#type: "text", text: texts.join("\n") },
            update: None,
            _meta: None,
            attachments,
        },
        created_at: fact.time,
        message: prompt.message.clone(),
        key: None,
        since: fact.seq,
        started: None,
    }
}

fn field(object: &Json, name: &str) -> Option<Json> {
    let value = object.value()[name].take();
    Some(value).filter(|value| !value.is_null()).map(Json::from)
}

fn meta_of(packet: &Json) -> Option<Json> {
    field(packet, "_meta")
}

fn row_id(session: &SessionId, seq: u64, n: usize) -> String {
    let hash = Hash::of(format!("{session}/{seq}/{n}").as_bytes());
    let hex = hash.as_str();
    // Version 8: a UUID of its maker's own making.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

fn write_time<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    Stamp(*time).serialize(serializer)
}
