//! The `onyx` dialect against its documents, its clients' expectations and its invariants.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod decode;
mod documents;
mod encode;
mod faults;
mod generate;
mod law;
mod properties;
mod rows;
mod rules;

use serde_json::Value;
use tolka_dialect::onyx::{Decoder, Encoder, Profile};
use tolka_dialect::{Decoder as _, Encoder as _, Frames};
use tolka_facts::event::{Parent, ParentKind, PromptQueued, SessionCreated, Stop, ToolChanged, TurnEnded, TurnStarted};
use tolka_facts::{Block, CallId, Draft, Event, Fact, Json, MessageId, NoBlobs, SessionId, Time, Tip, TurnId};

/// Seconds of 2026-01-22, so that golden text is readable.
const START: u64 = 1_769_040_711_000_000;

/// A session in the making: gives each event its place and time.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) facts: Vec<Fact>,
}

impl Session {
    /// With a turn open.
    pub(crate) fn in_turn() -> Self {
        let mut session = Session::default();
        session.tell(created(None));
        session.prompt("trn_1", "Hello");
        session
    }

    pub(crate) fn tell(&mut self, event: impl Into<Event>) -> &mut Self {
        self.draft(Draft::agent(event))
    }

    pub(crate) fn draft(&mut self, draft: Draft) -> &mut Self {
        let seq = self.facts.len() as u64 + 1;
        self.facts.push(draft.stamp(SessionId::from("ses_1"), seq, Time::from_micros(START + seq * 1_000)));
        self
    }

    pub(crate) fn prompt(&mut self, turn: &str, text: &str) -> &mut Self {
        self.tell(queued(turn, text)).tell(TurnStarted { turn: TurnId::from(turn), checkpoint: None })
    }

    pub(crate) fn end(&mut self, stop: Stop) -> &mut Self {
        self.tell(TurnEnded { turn: TurnId::from("trn_1"), stop, usage: None, cost: None, meta: None })
    }

    pub(crate) fn packets(&self, profile: Profile) -> Vec<Value> {
        frames(profile, &self.facts).iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
    }
}

pub(crate) fn created(parent: Option<&str>) -> SessionCreated {
    SessionCreated {
        workspace: "/work".into(),
        agent: "demo".into(),
        title: "A session".into(),
        mode: None,
        model: None,
        parent: parent.map(|id| Parent {
            session: SessionId::from(id),
            kind: ParentKind::Subagent,
            at: None,
            call: None,
        }),
    }
}

pub(crate) fn queued(turn: &str, text: &str) -> PromptQueued {
    PromptQueued {
        turn: TurnId::from(turn),
        message: MessageId::from(format!("msg_{turn}")),
        content: vec![Block::text(text)],
        key: None,
        agent: None,
        model: None,
        context: None,
        steers: None,
    }
}

/// A change that names nothing but the call.
pub(crate) fn change(call: &str) -> ToolChanged {
    ToolChanged::of(CallId::from(call))
}

pub(crate) fn json(text: &str) -> Option<Json> {
    Some(Json::parse(text).unwrap())
}

/// The frames of a whole journal, one string each.
pub(crate) fn frames(profile: Profile, facts: &[Fact]) -> Vec<String> {
    encode(&mut Encoder::new(profile), &mut Tip::default(), facts)
}

pub(crate) fn encode(encoder: &mut Encoder, tip: &mut Tip, facts: &[Fact]) -> Vec<String> {
    let mut out = Frames::default();
    for fact in facts {
        tip.apply(fact);
        encoder.encode(fact, tip, &NoBlobs, &mut out);
    }
    out.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
}

/// As the door sends them.
pub(crate) fn stream(frames: &[String]) -> String {
    frames.iter().map(|frame| format!("event: message\ndata: {frame}\n\n")).collect()
}

pub(crate) fn decode(stream: &str) -> Vec<Draft> {
    let (mut decoder, mut drafts) = (Decoder::default(), Vec::new());
    decoder.feed(stream.as_bytes(), &mut drafts).unwrap();
    decoder.finish(&mut drafts).unwrap();
    drafts.into_iter().map(|heard| heard.draft).collect()
}

pub(crate) fn types(packets: &[Value]) -> Vec<&str> {
    packets.iter().map(|packet| packet["type"].as_str().unwrap()).collect()
}
