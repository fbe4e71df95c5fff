//! The `onyx-steps` dialect against document 001 and its invariants.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod artifacts;
mod carriage;
mod conversions;
mod decode;
mod documents;
mod encode;
mod generate;
mod law;
mod properties;
mod tools;

use std::collections::HashMap;

use serde_json::Value;
use tolka_dialect::onyx_steps::{Decoder, Encoder};
use tolka_dialect::{Decoder as _, Dialect, Encoder as _, Finding, Frames};
use tolka_facts::event::{PromptQueued, SessionCreated, Stop, ToolChanged, TurnEnded, TurnStarted};
use tolka_facts::{
    Blobs, Block, CallId, Draft, Event, Fact, Hash, Json, MessageId, SessionId, Time, Tip, ToolStatus, TurnId,
};

/// The document's own time.
pub(crate) const START: u64 = 1_737_374_400_000_000;

/// The name that a retelling gives to a stream which names no session, so that it tells the same addresses.
pub(crate) const SESSION: &str = "ses_retold";

#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(HashMap<Hash, Vec<u8>>);

impl Kept {
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.0.insert(Hash::of(bytes), bytes.to_vec());
    }
}

impl Blobs for Kept {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.0.get(hash).cloned()
    }
}

/// A session in the making: gives each event its place and time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Session {
    pub(crate) facts: Vec<Fact>,
    pub(crate) blobs: Kept,
    pub(crate) now: u64,
}

impl Session {
    pub(crate) fn created() -> Self {
        let mut session = Session { now: START, ..Session::default() };
        session.tell(created());
        session
    }

    /// With a turn open.
    pub(crate) fn in_turn() -> Self {
        let mut session = Session::created();
        session.prompt("trn_1");
        session
    }

    pub(crate) fn tell(&mut self, event: impl Into<Event>) -> &mut Self {
        self.draft(Draft::agent(event))
    }

    pub(crate) fn draft(&mut self, mut draft: Draft) -> &mut Self {
        draft.spill(&mut |bytes| self.blobs.put(bytes));
        let seq = self.facts.len() as u64 + 1;
        self.facts.push(draft.stamp(SessionId::from(SESSION), seq, Time::from_micros(self.now)));
        self
    }

    pub(crate) fn prompt(&mut self, turn: &str) -> &mut Self {
        self.tell(queued(turn)).tell(TurnStarted { turn: TurnId::from(turn), checkpoint: None })
    }

    pub(crate) fn end(&mut self, stop: Stop) -> &mut Self {
        self.tell(TurnEnded { turn: TurnId::from("trn_1"), stop, usage: None, cost: None, meta: None })
    }

    pub(crate) fn frames(&self) -> Vec<String> {
        encode(&mut Encoder::default(), &mut Tip::default(), &self.facts, &self.blobs)
    }

    pub(crate) fn packets(&self) -> Vec<Value> {
        self.frames().iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
    }

    /// The types of all packets, in order.
    pub(crate) fn types(&self) -> Vec<String> {
        self.packets().iter().map(|packet| packet["type"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn created() -> SessionCreated {
    SessionCreated {
        workspace: "/project".into(),
        agent: "demo".into(),
        title: "A session".into(),
        mode: None,
        model: None,
        parent: None,
    }
}

pub(crate) fn queued(turn: &str) -> PromptQueued {
    PromptQueued {
        turn: TurnId::from(turn),
        message: MessageId::from(format!("msg_{turn}")),
        content: vec![Block::text("Do it")],
        key: None,
        agent: None,
        model: None,
        context: None,
        steers: None,
    }
}

/// A change that names nothing but the call and its status.
pub(crate) fn change(call: &str, status: ToolStatus) -> ToolChanged {
    ToolChanged { status: Some(status), ..ToolChanged::of(CallId::from(call)) }
}

pub(crate) fn json(text: &str) -> Option<Json> {
    Some(Json::parse(text).unwrap())
}

pub(crate) fn encode(encoder: &mut Encoder, tip: &mut Tip, facts: &[Fact], blobs: &Kept) -> Vec<String> {
    let mut out = Frames::default();
    for fact in facts {
        tip.apply(fact);
        encoder.encode(fact, tip, blobs, &mut out);
    }
    out.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
}

/// As it stands in a file.
pub(crate) fn stream(frames: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| Dialect::OnyxSteps.write_frame(frame.as_bytes(), &mut bytes));
    bytes
}

pub(crate) fn decode(stream: &[u8]) -> Vec<Draft> {
    let (mut decoder, mut heard) = (Decoder::default(), Vec::new());
    decoder.feed(stream, &mut heard).unwrap();
    decoder.finish(&mut heard).unwrap();
    heard.into_iter().map(|heard| heard.draft).collect()
}

pub(crate) fn judge(stream: &[u8]) -> Vec<Finding> {
    let (mut judge, mut found) = (Dialect::OnyxSteps.judge(), Vec::new());
    judge.feed(stream, &mut found);
    judge.finish(&mut found);
    found
}
