use std::fmt;
use std::io;

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Event, Json, SessionId, Time};

/// The version that this build writes. Every version ever written can be read; `tests/data/facts` proves it.
pub const VERSION: u32 = 4;

/// Who brought a fact about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Agent,
    Client,
    /// We made it up: a tool closed because its agent died, a plan read out of a todo list.
    Tolka,
}

/// An event on its way to the journal: it has no place in it yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    pub cause: Cause,
    pub event: Event,
    /// What the agent sent, as it came.
    pub raw: Option<Json>,
}

impl Draft {
    pub fn new(cause: Cause, event: impl Into<Event>) -> Self {
        Draft { cause, event: event.into(), raw: None }
    }

    pub fn agent(event: impl Into<Event>) -> Self {
        Draft::new(Cause::Agent, event)
    }

    pub fn client(event: impl Into<Event>) -> Self {
        Draft::new(Cause::Client, event)
    }

    pub fn tolka(event: impl Into<Event>) -> Self {
        Draft::new(Cause::Tolka, event)
    }

    #[must_use]
    pub fn with_raw(mut self, raw: Json) -> Self {
        self.raw = Some(raw);
        self
    }

    pub fn spill(&mut self, put: &mut dyn FnMut(&[u8])) {
        self.event.spill(put);
        self.raw.iter_mut().for_each(|raw| raw.spill(put));
    }

    pub fn stamp(self, session: SessionId, seq: u64, time: Time) -> Fact {
        Fact { session, seq, time, cause: self.cause, event: self.event, raw: self.raw }
    }
}

/// Something that happened, at its place in the journal of a session. Never changed.
///
/// As JSON it is `{"v","session","seq","time","cause","type","data","raw"?}`; that is what the journal
/// stores and what the `tolka` dialect sends.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(test, derive(ts_rs::TS), ts(type = "Envelope & Event"))]
pub struct Fact {
    pub session: SessionId,
    /// Gapless, from 1.
    pub seq: u64,
    /// Never earlier than the fact before.
    pub time: Time,
    pub cause: Cause,
    pub event: Event,
    pub raw: Option<Json>,
}

#[derive(Debug, thiserror::Error)]
#[error("not a fact that this version can read: {0}")]
pub struct FactError(#[from] serde_json::Error);

impl Fact {
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(192);
        self.write_json(&mut out);
        out
    }

    /// The same bytes as serde's. Every fact is written once for the journal and once for each telling of our own wire,
    /// and the envelope's words need no escaping: by hand it takes half the instructions.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        // A fact has string keys only, and writing to a Vec cannot fail.
        let _ = self.try_write_json(out);
    }

    fn try_write_json(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.reserve(192);
        out.extend_from_slice(b"{\"v\":");
        serde_json::to_writer(&mut *out, &VERSION)?;
        out.extend_from_slice(b",\"session\":");
        serde_json::to_writer(&mut *out, &self.session)?;
        out.extend_from_slice(b",\"seq\":");
        serde_json::to_writer(&mut *out, &self.seq)?;
        out.extend_from_slice(b",\"time\":");
        serde_json::to_writer(&mut *out, &self.time)?;
        out.extend_from_slice(b",\"cause\":");
        serde_json::to_writer(&mut *out, &self.cause)?;
        out.extend_from_slice(b",\"type\":\"");
        out.extend_from_slice(self.event.name().as_bytes());
        out.extend_from_slice(b"\",\"data\":");
        self.event.write_data(out)?;
        if let Some(raw) = &self.raw {
            out.extend_from_slice(b",\"raw\":");
            out.extend_from_slice(raw.get().as_bytes());
        }
        out.push(b'}');
        Ok(())
    }

    pub fn from_json(bytes: &[u8]) -> Result<Self, FactError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// The hashes of the blobs that a fact refers to, from its JSON. It may name one too many (an agent can write the
    /// same words), never one too few: purging counts on it.
    pub fn blobs_in(json: &str) -> impl Iterator<Item = &str> {
        const MARK: &str = r#""hash":""#;
        let hash = |(at, _)| json.get(at + MARK.len()..at + MARK.len() + 64);
        json.match_indices(MARK).filter_map(hash).filter(|hash| hash.bytes().all(|c| c.is_ascii_hexdigit()))
    }
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Fact", 7 + usize::from(self.raw.is_some()))?;
        out.serialize_field("v", &VERSION)?;
        out.serialize_field("session", &self.session)?;
        out.serialize_field("seq", &self.seq)?;
        out.serialize_field("time", &self.time)?;
        out.serialize_field("cause", &self.cause)?;
        out.serialize_field("type", self.event.name())?;
        self.event.serialize_data(&mut out)?;
        if let Some(raw) = &self.raw {
            out.serialize_field("raw", raw)?;
        }
        out.end()
    }
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FactVisitor)
    }
}

struct FactVisitor;

impl<'de> Visitor<'de> for FactVisitor {
    type Value = Fact;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fact")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fact, M::Error> {
        let (mut session, mut seq, mut time, mut cause, mut event, mut raw) = (None, None, None, None, None, None);
        let mut name = None::<String>;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*key {
                "v" => {
                    let version: u32 = map.next_value()?;
                    if version > VERSION {
                        return Err(de::Error::custom(format!("version {version} is newer than {VERSION}")));
                    }
                }
                "session" => session = Some(map.next_value()?),
                "seq" => seq = Some(map.next_value()?),
                "time" => time = Some(map.next_value()?),
                "cause" => cause = Some(map.next_value()?),
                "type" => name = Some(map.next_value()?),
                "data" => {
                    let name = name.as_deref().ok_or_else(|| de::Error::custom("`type` must stand before `data`"))?;
                    let data = Event::deserialize_data(name, &mut map);
                    event = Some(data.ok_or_else(|| de::Error::custom(format!("unknown type `{name}`")))??);
                }
                "raw" => raw = Some(map.next_value()?),
                _ => {
                    map.next_value::<de::IgnoredAny>()?;
                }
            }
        }
        let missing = de::Error::missing_field;
        Ok(Fact {
            session: session.ok_or_else(|| missing("session"))?,
            seq: seq.ok_or_else(|| missing("seq"))?,
            time: time.ok_or_else(|| missing("time"))?,
            cause: cause.ok_or_else(|| missing("cause"))?,
            event: event.ok_or_else(|| missing("data"))?,
            raw,
        })
    }
}
