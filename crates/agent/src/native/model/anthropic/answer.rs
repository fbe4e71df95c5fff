//! An answer in messages, event after event. Blocks are known by their index; those of types that we do not know are
//! passed over.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;
use serde_json::{Value, json};
use tolka_dialect::SseEvent;
use tolka_facts::Json;
use tolka_facts::event::{Finish, Usage};

use crate::native::model::Piece;
use crate::native::model::stream::{Reading, Trouble, new_id, odd};

#[derive(Debug, Default)]
pub(super) struct Answer {
    blocks: HashMap<u64, Block>,
    /// Calls so far.
    calls: usize,
    stop: Option<String>,
    counts: Counts,
}

#[derive(Debug)]
enum Block {
    Text,
    Thought { signature: String, data: Option<String> },
    Call { slot: usize, has_input: bool, whole: Option<Value> },
    Unknown,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<std::borrow::Cow<'a, str>>,
    index: Option<u64>,
    message: Option<Start>,
    content_block: Option<Opened>,
    delta: Option<Delta>,
    usage: Option<Counts>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<Counts>,
    /// A provider that does not stream sends all of it in one.
    content: Option<Vec<Opened>>,
}

#[derive(Deserialize)]
struct Opened {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

/// The start has the input's counts, the end the output's; some repeat all of them, some leave them to the end.
#[derive(Debug, Default, Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

impl Reading for Answer {
    fn take(&mut self, event: &SseEvent, out: &mut VecDeque<Piece>) -> Result<(), Trouble> {
        if event.data.trim().is_empty() {
            return Ok(());
        }
        let Ok(said) = serde_json::from_str::<Event<'_>>(&event.data) else { return Err(odd(event)) };
        let kind = said.kind.as_deref().or(event.event.as_deref()).unwrap_or_default();
        if kind == "error" || said.error.is_some() {
            return Err(odd(event));
        }
        let index = said.index.unwrap_or(0);
        match kind {
            "message_start" => self.counts.update(said.message.and_then(|message| message.usage)),
            "content_block_start" => {
                if let Some(opened) = said.content_block {
                    self.open(index, opened, out);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = said.delta {
                    self.delta(index, delta, out);
                }
            }
            "content_block_stop" => self.close(index, out),
            "message_delta" => {
                self.counts.update(said.usage);
                self.stop = said.delta.and_then(|delta| delta.stop_reason).or(self.stop.take());
            }
            "message_stop" => self.end(out),
            "message" => self.whole(event, out)?,
            "" => {
                // Nothing of this wire; it may tell of a fault all the same.
                if let complaint @ Trouble::Complaint(_) = odd(event) {
                    return Err(complaint);
                }
            }
            // A ping, or what came into the wire after us.
            _ => {}
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    fn end(&mut self, out: &mut VecDeque<Piece>) {
        let mut open: Vec<u64> = self.blocks.keys().copied().collect();
        open.sort_unstable();
        open.into_iter().for_each(|index| self.close(index, out));
        let stop = self.stop.as_deref().unwrap_or_default();
        let finish = match stop {
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            _ if self.calls > 0 && stop != "refusal" => Finish::ToolCalls,
            "end_turn" | "stop_sequence" | "refusal" | "" => Finish::Stop,
            // `pause_turn` wants the same again; we use nothing of theirs that pauses.
            _ => Finish::Unknown,
        };
        out.push_back(Piece::Ended { finish, is_refusal: stop == "refusal", usage: self.counts.usage() });
    }
}

impl Answer {
    fn open(&mut self, index: u64, opened: Opened, out: &mut VecDeque<Piece>) {
        let block = match opened.kind.as_deref() {
            Some("text") => {
                push(out, Piece::Text, opened.text);
                Block::Text
            }
            Some("thinking") => {
                push(out, Piece::Thought, opened.thinking);
                Block::Thought { signature: opened.signature.unwrap_or_default(), data: None }
            }
            Some("redacted_thinking") => Block::Thought { signature: String::new(), data: opened.data },
            Some("tool_use") => {
                let slot = self.calls;
                self.calls += 1;
                let (id, name) = (opened.id.unwrap_or_default(), opened.name.unwrap_or_default());
                let id = if id.is_empty() { new_id() } else { id };
                out.push_back(Piece::CallBegan { slot, id, name });
                // Empty as a rule, and then written in pieces.
                let whole = opened.input.filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
                Block::Call { slot, has_input: false, whole }
            }
            _ => Block::Unknown,
        };
        self.blocks.insert(index, block);
    }

    fn delta(&mut self, index: u64, delta: Delta, out: &mut VecDeque<Piece>) {
        match self.blocks.get_mut(&index) {
            Some(Block::Text) => push(out, Piece::Text, delta.text),
            Some(Block::Thought { signature, .. }) => {
                push(out, Piece::Thought, delta.thinking);
                signature.push_str(&delta.signature.unwrap_or_default());
            }
            Some(Block::Call { slot, has_input, .. }) => {
                let slot = *slot;
                *has_input |= delta.partial_json.as_deref().is_some_and(|text| !text.trim().is_empty());
                push(out, |text| Piece::CallInput { slot, text }, delta.partial_json);
            }
            Some(Block::Unknown) | None => {}
        }
    }

    fn close(&mut self, index: u64, out: &mut VecDeque<Piece>) {
        match self.blocks.remove(&index) {
            Some(Block::Thought { signature, data }) => {
                let kept = match data {
                    Some(data) => Some(Json::of(&json!({ "data": data }))),
                    None if signature.is_empty() => None,
                    None => Some(Json::of(&json!({ "signature": signature }))),
                };
                out.push_back(Piece::ThoughtEnded { kept });
            }
            Some(Block::Call { slot, has_input: false, whole }) => {
                let text = whole.map_or_else(|| "{}".to_owned(), |input| input.to_string());
                out.push_back(Piece::CallInput { slot, text });
            }
            Some(Block::Call { .. } | Block::Text | Block::Unknown) | None => {}
        }
    }

    /// A message that was not streamed.
    fn whole(&mut self, event: &SseEvent, out: &mut VecDeque<Piece>) -> Result<(), Trouble> {
        #[derive(Deserialize)]
        struct Whole {
            #[serde(flatten)]
            start: Start,
            stop_reason: Option<String>,
        }
        let whole: Whole = serde_json::from_str(&event.data).map_err(|_| Trouble::Garbled(event.data.clone()))?;
        self.counts.update(whole.start.usage);
        for (index, opened) in (0..).zip(whole.start.content.into_iter().flatten()) {
            self.open(index, opened, out);
            self.close(index, out);
        }
        self.stop = whole.stop_reason;
        self.end(out);
        Ok(())
    }
}

impl Counts {
    fn update(&mut self, newer: Option<Counts>) {
        let Some(newer) = newer else { return };
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.cache_creation_input_tokens = newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
    }

    /// Here the input is counted without what is cached, and thoughts are part of the output.
    fn usage(&self) -> Option<Usage> {
        self.input_tokens.or(self.output_tokens)?;
        Some(Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            reasoning: 0,
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
        })
    }
}

fn push(out: &mut VecDeque<Piece>, piece: impl FnOnce(String) -> Piece, text: Option<String>) {
    out.extend(text.filter(|text| !text.is_empty()).map(piece));
}
