//! Reasoning, in the fields that providers of this wire have invented for it, and what of it must go back.
//!
//! `kept` is `{"field": name}` where the text itself goes back under that name, `{"reasoning_details": [...]}` where its
//! parts do, and `{"extra_content": [...]}`, one for each call of the answer, where something hangs on the calls.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};
use tolka_facts::Json;

use super::chunk::Delta;
use crate::native::model::Piece;

#[derive(Debug, Default)]
pub(super) struct Thinking {
    is_open: bool,
    field: Option<&'static str>,
    details: Vec<Value>,
}

impl Thinking {
    /// Whether there was anything.
    pub(super) fn take(&mut self, delta: &Delta, out: &mut VecDeque<Piece>) -> bool {
        let details = delta.reasoning_details.as_deref().unwrap_or_default();
        details.iter().for_each(|detail| self.merge(detail));
        let plain = match (&delta.reasoning_content, &delta.reasoning) {
            (Some(text), _) if !text.is_empty() => Some((text.clone(), Some("reasoning_content"))),
            (_, Some(Value::String(text))) if !text.is_empty() => Some((text.clone(), Some("reasoning"))),
            _ => None,
        };
        // The details hold the same text as the plain field beside them.
        let (text, field) = plain.unwrap_or_else(|| (details.iter().filter_map(said).collect(), None));
        self.say(text, field, out) || !details.is_empty()
    }

    pub(super) fn say(&mut self, text: String, field: Option<&'static str>, out: &mut VecDeque<Piece>) -> bool {
        if text.is_empty() {
            return false;
        }
        self.is_open = true;
        self.field = self.field.or(field);
        out.push_back(Piece::Thought(text));
        true
    }

    /// Text, a call or the end of the answer ends a thought. Details that come later are told once more, alone.
    pub(super) fn end(&mut self, out: &mut VecDeque<Piece>) {
        if !self.is_open && self.details.is_empty() {
            return;
        }
        let Thinking { field, details, .. } = std::mem::take(self);
        let kept = match (field, details.is_empty()) {
            (_, false) => Some(Json::of(&json!({ "reasoning_details": details }))),
            (Some(field), true) => Some(Json::of(&json!({ "field": field }))),
            (None, true) => None,
        };
        out.push_back(Piece::ThoughtEnded { kept });
    }

    /// Details come in pieces too: those of one number and type are one.
    fn merge(&mut self, piece: &Value) {
        let Value::Object(piece) = piece else { return };
        let same = |detail: &&mut Value| {
            ["index", "type"].iter().all(|key| detail.get(key) == piece.get(*key)) && piece.contains_key("index")
        };
        match self.details.iter_mut().rev().find(same) {
            Some(Value::Object(detail)) => join(detail, piece),
            _ => self.details.push(Value::Object(piece.clone())),
        }
    }
}

fn join(detail: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (key, value) in piece {
        match (key.as_str(), detail.get_mut(key), value) {
            ("text" | "summary" | "data", Some(Value::String(before)), Value::String(more)) => before.push_str(more),
            (_, Some(_), Value::Null) => {}
            _ => drop(detail.insert(key.clone(), value.clone())),
        }
    }
}

fn said(detail: &Value) -> Option<&str> {
    detail.get("text").or_else(|| detail.get("summary"))?.as_str()
}

pub(super) fn on_calls<'a>(extra: impl Iterator<Item = Option<&'a Value>>) -> Json {
    Json::of(&json!({ "extra_content": extra.collect::<Vec<_>>() }))
}
