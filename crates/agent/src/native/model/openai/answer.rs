//! An answer in chat completions, chunk after chunk.
//!
//! Calls are known by their `index`; without one, by their id, and without either a piece belongs to the call before it. A call is
//! told when its name is known. What came before its id or name waits.

mod chunk;
mod thought;

use std::collections::VecDeque;

use serde_json::Value;
use tolka_dialect::SseEvent;
use tolka_facts::event::{Finish, Usage};

use self::chunk::{CallDelta, Chunk, Content, Delta};
use self::thought::Thinking;
use crate::native::model::Piece;
use crate::native::model::fault::Complaint;
use crate::native::model::stream::{Reading, Trouble, new_id, odd, value};

#[derive(Debug, Default)]
pub(super) struct Answer {
    thinking: Thinking,
    calls: Vec<Call>,
    finish: Option<String>,
    has_refused: bool,
    has_said: bool,
    usage: Option<Usage>,
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    /// What came before it could be told.
    waiting: String,
    is_told: bool,
    has_input: bool,
    /// Comes with the call and goes back with it.
    extra: Option<Value>,
}

impl Reading for Answer {
    fn take(&mut self, event: &SseEvent, out: &mut VecDeque<Piece>) -> Result<(), Trouble> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.done(out);
        }
        let chunk: Chunk = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(_) => return Err(odd(event)),
        };
        if chunk.error.is_some() || event.event.as_deref() == Some("error") {
            return Err(odd(event));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.usage());
        }
        let Some(choices) = chunk.choices else {
            // Keep-alives and notes have none either; what tells of a fault says so.
            return value(event).map(|body| Complaint::read(&body)).and_then(|complaint| match complaint {
                Some(complaint) => Err(Trouble::Complaint(complaint)),
                None => Ok(()),
            });
        };
        // We ask for one answer.
        let Some(choice) = choices.into_iter().find(|choice| choice.index.unwrap_or(0) == 0) else { return Ok(()) };
        if let Some(error) = choice.error {
            let complaint = Complaint::read(&serde_json::json!({ "error": error })).unwrap_or_default();
            return Err(Trouble::Complaint(complaint));
        }
        let is_whole = choice.message.is_some();
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta, out)?;
        }
        if let Some(finish) = choice.finish_reason.filter(|finish| !finish.is_empty()) {
            if finish == "error" {
                return Err(Trouble::Complaint(Complaint { text: "it broke off".to_owned(), ..Complaint::default() }));
            }
            self.thinking.end(out);
            self.finish = Some(finish);
        }
        if is_whole {
            self.finish.get_or_insert_with(|| "stop".to_owned());
            self.end(out);
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, out: &mut VecDeque<Piece>) {
        self.thinking.end(out);
        for (slot, call) in self.calls.iter_mut().enumerate() {
            call.tell(slot, out);
            if !call.has_input {
                out.push_back(Piece::CallInput { slot, text: "{}".to_owned() });
            }
        }
        if self.calls.iter().any(|call| call.extra.is_some()) {
            let extra = self.calls.iter().map(|call| call.extra.as_ref());
            out.push_back(Piece::ThoughtEnded { kept: Some(thought::on_calls(extra)) });
        }
        let reason = self.finish.as_deref().unwrap_or_default();
        let finish = match reason {
            "length" | "max_tokens" | "model_length" => Finish::Length,
            // Several say `stop` after calls all the same.
            _ if !self.calls.is_empty() => Finish::ToolCalls,
            "stop" | "eos" | "end_turn" | "stop_sequence" | "content_filter" | "refusal" | "safety" | "" => {
                Finish::Stop
            }
            _ => Finish::Unknown,
        };
        let is_refusal = self.has_refused || matches!(reason, "content_filter" | "refusal" | "safety");
        out.push_back(Piece::Ended { finish, is_refusal, usage: self.usage });
    }
}

impl Answer {
    fn done(&mut self, out: &mut VecDeque<Piece>) -> Result<(), Trouble> {
        if !self.is_finished() && !self.has_said && self.calls.is_empty() {
            return Err(Trouble::Garbled("an answer with nothing in it".to_owned()));
        }
        self.end(out);
        Ok(())
    }

    fn delta(&mut self, delta: Delta, out: &mut VecDeque<Piece>) -> Result<(), Trouble> {
        self.has_said |= self.thinking.take(&delta, out);
        match delta.content {
            Some(Content::Text(text)) => self.text(text, out),
            Some(Content::Parts(parts)) => {
                for part in parts {
                    match (part.thoughts(), part.text) {
                        (Some(thought), _) => self.has_said |= self.thinking.say(thought, None, out),
                        (None, Some(text)) => self.text(text, out),
                        (None, None) => {}
                    }
                }
            }
            None => {}
        }
        if let Some(refusal) = delta.refusal {
            self.has_refused |= !refusal.is_empty();
            self.text(refusal, out);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.thinking.end(out);
            self.call(call, out)?;
        }
        Ok(())
    }

    fn text(&mut self, text: String, out: &mut VecDeque<Piece>) {
        if !text.is_empty() {
            self.thinking.end(out);
            self.has_said = true;
            out.push_back(Piece::Text(text));
        }
    }

    fn call(&mut self, delta: CallDelta, out: &mut VecDeque<Piece>) -> Result<(), Trouble> {
        let id = delta.id.filter(|id| !id.is_empty());
        let function = delta.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let slot = match self.slot(delta.index, id.as_deref(), &name) {
            Some(slot) => slot,
            None => {
                self.calls.push(Call {
                    index: delta.index,
                    id: None,
                    name: String::new(),
                    waiting: String::new(),
                    is_told: false,
                    has_input: false,
                    extra: None,
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[slot];
        call.id = call.id.take().or(id);
        if !call.is_told && call.name != name {
            call.name.push_str(&name);
        }
        if delta.extra_content.is_some() {
            call.extra = delta.extra_content;
        }
        let text = match function.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            // An object instead of its text, as Ollama's own wire has it.
            Some(other) => other.to_string(),
        };
        call.waiting.push_str(&text);
        // Without an id yet, one may still come with the next piece: it is told with its first input.
        if !call.name.is_empty() && (call.id.is_some() || !call.waiting.is_empty()) {
            call.tell(slot, out);
        }
        Ok(())
    }

    /// The call that a piece belongs to; `None` for a new one.
    fn slot(&self, index: Option<u64>, id: Option<&str>, name: &str) -> Option<usize> {
        let same_id = |call: &Call| id.is_some() && call.id.as_deref() == id;
        // Some count every call as number 0 and tell them apart by their ids.
        let other_id = |call: &Call| id.is_some() && call.id.is_some() && call.id.as_deref() != id;
        match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index && !other_id(call)),
            None if id.is_some() => self.calls.iter().rposition(same_id),
            // A name alone begins a call: pieces after the first have none.
            None if !name.is_empty() => None,
            None => self.calls.len().checked_sub(1),
        }
    }
}

impl Call {
    fn tell(&mut self, slot: usize, out: &mut VecDeque<Piece>) {
        if !self.is_told {
            self.is_told = true;
            let id = self.id.get_or_insert_with(new_id).clone();
            out.push_back(Piece::CallBegan { slot, id, name: self.name.clone() });
        }
        let text = std::mem::take(&mut self.waiting);
        if !text.is_empty() {
            self.has_input |= !text.trim().is_empty();
            out.push_back(Piece::CallInput { slot, text });
        }
    }
}
