//! The `agentsmithy` dialect against its document, its clients' expectations and its invariants.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod carriage;
mod decode;
mod documents;
mod encode;
mod generate;
mod git;
mod history;
mod law;
mod properties;
mod recordings;
mod results;
mod tools;

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;
use tolka_dialect::agentsmithy::{Decoder, Encoder};
use tolka_dialect::{Decoder as _, Dialect, Encoder as _, Frames};
use tolka_facts::event::{
    FileChanged, FileOperation, PromptQueued, SessionCreated, Stop, TextAppended, ToolChanged, TurnEnded, TurnStarted,
};
use tolka_facts::{
    BlobRef, Blobs, Block, CallId, Draft, Event, Fact, Hash, Json, MessageId, PartId, SessionId, Time, Tip, ToolStatus,
    TurnId,
};

pub(crate) const WORKSPACE: &str = "/home/me/project";
pub(crate) const CHECKPOINT: &str = "8edf4bf774f0b6047a85397ed457510837917cf6";

/// What facts refer to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store(HashMap<Hash, Vec<u8>>);

impl Store {
    pub(crate) fn put(&mut self, text: &str) -> BlobRef {
        let hash = Hash::of(text.as_bytes());
        self.0.insert(hash.clone(), text.as_bytes().to_vec());
        BlobRef { hash, size: text.len() as u64 }
    }
}

impl Blobs for Store {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.0.get(hash).cloned()
    }
}

/// A session in the making: gives each event its place and time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Session {
    pub(crate) facts: Vec<Fact>,
    pub(crate) blobs: Store,
}

impl Session {
    pub(crate) fn new() -> Self {
        let mut session = Session::default();
        session.tell(SessionCreated {
            workspace: WORKSPACE.into(),
            agent: "demo".into(),
            title: "A session".into(),
            mode: None,
            model: None,
            parent: None,
        });
        session
    }

    /// With a turn open.
    pub(crate) fn in_turn() -> Self {
        let mut session = Session::new();
        session.prompt("trn_1", "Hello");
        session
    }

    pub(crate) fn tell(&mut self, event: impl Into<Event>) -> &mut Self {
        self.draft(Draft::agent(event))
    }

    pub(crate) fn draft(&mut self, draft: Draft) -> &mut Self {
        let seq = self.facts.len() as u64 + 1;
        self.facts.push(draft.stamp(SessionId::from("ses_1"), seq, Time::from_millis(seq * 1000)));
        self
    }

    pub(crate) fn prompt(&mut self, turn: &str, text: &str) -> &mut Self {
        self.tell(queued(turn, vec![Block::text(text)]));
        self.tell(TurnStarted { turn: TurnId::from(turn), checkpoint: Some(CHECKPOINT.into()) })
    }

    pub(crate) fn say(&mut self, part: &str, text: &str) -> &mut Self {
        self.tell(TextAppended { part: PartId::from(part), text: text.into() })
    }

    pub(crate) fn call(&mut self, call: &str, name: &str, input: &str) -> &mut Self {
        let (name, input, status) = (Some(name.to_owned()), json(input), Some(ToolStatus::Running));
        self.tell(ToolChanged { name, input, status, ..change(call) })
    }

    pub(crate) fn ended(&mut self, call: &str, status: ToolStatus) -> &mut Self {
        self.tell(ToolChanged { status: Some(status), ..change(call) })
    }

    pub(crate) fn file(&mut self, path: &str, before: Option<&str>, after: Option<&str>) -> &mut Self {
        let operation = match (before, after) {
            (None, _) => FileOperation::Create,
            (_, None) => FileOperation::Delete,
            _ => FileOperation::Update,
        };
        let mut put = |text: &str| self.blobs.put(text);
        let (before, after) = (before.map(&mut put), after.map(&mut put));
        let (path, call, diff) = (path.to_owned(), None, None);
        self.tell(FileChanged { path, operation, before, after, added: 0, removed: 0, call, diff })
    }

    pub(crate) fn end(&mut self, stop: Stop) -> &mut Self {
        let turn = self.facts.iter().rev().find_map(|fact| match &fact.event {
            Event::TurnStarted(e) => Some(e.turn.clone()),
            _ => None,
        });
        self.tell(TurnEnded { turn: turn.unwrap(), stop, usage: None, cost: None, meta: None })
    }

    pub(crate) fn frames(&self) -> Vec<String> {
        encode(&mut Encoder::default(), &mut Tip::default(), &self.facts, &self.blobs)
    }

    pub(crate) fn packets(&self) -> Vec<Value> {
        self.frames().iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
    }

    /// The types told, without the `user` that is always first.
    pub(crate) fn types(&self) -> Vec<String> {
        let packets = self.packets();
        assert_eq!(packets[0]["type"], "user");
        packets[1..].iter().map(kind).collect()
    }
}

pub(crate) fn queued(turn: &str, content: Vec<Block>) -> PromptQueued {
    PromptQueued {
        turn: TurnId::from(turn),
        message: MessageId::from(format!("msg_{turn}")),
        content,
        key: None,
        agent: None,
        model: None,
        context: None,
        steers: None,
    }
}

pub(crate) fn change(call: &str) -> ToolChanged {
    ToolChanged::of(CallId::from(call))
}

pub(crate) fn json(text: &str) -> Option<Json> {
    Some(Json::parse(text).unwrap())
}

pub(crate) fn kind(packet: &Value) -> String {
    packet["type"].as_str().unwrap().to_owned()
}

pub(crate) fn encode(encoder: &mut Encoder, tip: &mut Tip, facts: &[Fact], blobs: &Store) -> Vec<String> {
    let mut out = Frames::default();
    for fact in facts {
        tip.apply(fact);
        encoder.encode(fact, tip, blobs, &mut out);
    }
    out.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
}

/// As they stand on the wire.
pub(crate) fn stream(frames: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    frames.iter().for_each(|frame| Dialect::AgentSmithy.write_frame(frame.as_bytes(), &mut out));
    out
}

/// What the document's client reads: its rule and nothing more.
pub(crate) fn skeleton(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    let mut chunks: Vec<&str> = text.split("\n\n").collect();
    chunks.pop();
    let read = chunks.iter().filter_map(|chunk| chunk.strip_prefix("data: "));
    read.map(|json| serde_json::from_str(json).unwrap()).collect()
}

pub(crate) fn decode(stream: &[u8]) -> Vec<Draft> {
    let (mut decoder, mut heard) = (Decoder::default(), Vec::new());
    decoder.feed(stream, &mut heard).unwrap();
    decoder.finish(&mut heard).unwrap();
    heard.into_iter().map(|heard| heard.draft).collect()
}

/// Findings as `(line, rule)`.
pub(crate) fn judged(stream: &[u8]) -> Vec<(u64, &'static str)> {
    let (mut judge, mut found) = (Dialect::AgentSmithy.judge(), Vec::new());
    judge.feed(stream, &mut found);
    judge.finish(&mut found);
    found.iter().map(|finding| (finding.line, finding.rule.name)).collect()
}

pub(crate) fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(path)
}

pub(crate) fn read(path: &str) -> Vec<u8> {
    std::fs::read(data(path)).unwrap()
}
