//! An answer as words: its beats cut into the pieces that a provider would send, in no wire's own form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::script::{Answer, Beat, Call, Counts, Cut, Ending};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    Think(String),
    ThinkEnded { text: String, signature: String },
    Redacted { data: String },
    Text(String),
    TextEnded,
    CallBegan { slot: usize, id: String, name: String },
    CallInput { slot: usize, text: String },
    CallEnded { slot: usize },
    Flood { text: String, times: u64 },
    DelayMs(u64),
    Gate(String),
    Hang,
    Cut(Cut),
    Garbage(String),
    Endless(u64),
    Error { kind: String, message: String },
}

/// How an answer is cut.
pub(crate) struct Cutting<'a> {
    /// Different for each answer; ids and signatures are made from it.
    pub(crate) seed: u64,
    pub(crate) call_prefix: &'a str,
    pub(crate) piece: Option<usize>,
    /// Whether the wire can mix the pieces of calls.
    pub(crate) mixes: bool,
}

impl Cutting<'_> {
    pub(crate) fn words(&self, answer: &Answer) -> Vec<Word> {
        let (mut words, mut slot) = (Vec::new(), 0);
        for (number, beat) in answer.beats.iter().enumerate() {
            match beat {
                Beat::Think(text) => {
                    words.extend(self.pieces(text).into_iter().map(Word::Think));
                    words.push(Word::ThinkEnded { text: text.clone(), signature: self.signature(number, text) });
                }
                Beat::Redacted(text) => words.push(Word::Redacted { data: self.signature(number, text) }),
                Beat::Text(text) => {
                    words.extend(self.pieces(text).into_iter().map(Word::Text));
                    words.push(Word::TextEnded);
                }
                Beat::Call(call) => words.extend(self.call(&mut slot, call)),
                Beat::Calls(calls) => calls.iter().for_each(|call| words.extend(self.call(&mut slot, call))),
                Beat::Interleaved(calls) => {
                    let calls: Vec<_> = calls.iter().map(|call| self.call(&mut slot, call)).collect();
                    words.extend(if self.mixes { mixed(calls) } else { calls.concat() });
                }
                Beat::Flood { text, times } => words.push(Word::Flood { text: text.clone(), times: *times }),
                Beat::DelayMs(millis) => words.push(Word::DelayMs(*millis)),
                Beat::Gate(name) => words.push(Word::Gate(name.clone())),
                Beat::Hang => words.push(Word::Hang),
                Beat::Cut(cut) => words.push(Word::Cut(*cut)),
                Beat::Garbage(bytes) => words.push(Word::Garbage(bytes.clone())),
                Beat::Endless(count) => words.push(Word::Endless(*count)),
                Beat::Error { kind, message } => {
                    words.push(Word::Error { kind: kind.clone(), message: message.clone() });
                }
            }
        }
        words
    }

    fn call(&self, slot: &mut usize, call: &Call) -> Vec<Word> {
        let number = *slot;
        *slot += 1;
        let id = call.id.clone().unwrap_or_else(|| {
            let name: String = self.signature(number, "id").chars().filter(char::is_ascii_alphanumeric).collect();
            format!("{}{}", self.call_prefix, &name[..24])
        });
        let input = match &call.input {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => text.clone(),
            input => input.to_string(),
        };
        let mut words = vec![Word::CallBegan { slot: number, id, name: call.name.clone() }];
        words.extend(self.pieces(&input).into_iter().map(|text| Word::CallInput { slot: number, text }));
        words.push(Word::CallEnded { slot: number });
        words
    }

    /// Base64 with all that makes it hard to keep: long, with `+`, `/` and `=`.
    fn signature(&self, number: usize, text: &str) -> String {
        let once = Sha256::digest(format!("{}.{number}.{text}", self.seed));
        let twice = Sha256::digest(once);
        STANDARD.encode([b"\xfb\xef\xff", &once[..], &twice[..]].concat())
    }

    fn pieces(&self, text: &str) -> Vec<String> {
        let mut lengths = match self.piece {
            Some(length) => vec![length.max(1)],
            None => vec![3, 5, 1, 7, 4, 2],
        }
        .into_iter()
        .cycle();
        let mut rest = text;
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let length = lengths.next().unwrap_or(1);
            let end = rest.char_indices().nth(length).map_or(rest.len(), |(end, _)| end);
            pieces.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        pieces
    }
}

/// All begin, then each says a piece in turn.
fn mixed(calls: Vec<Vec<Word>>) -> Vec<Word> {
    let mut rows: Vec<_> = calls.into_iter().map(Vec::into_iter).collect();
    let mut words = Vec::new();
    loop {
        let before = words.len();
        words.extend(rows.iter_mut().filter_map(Iterator::next));
        if words.len() == before {
            return words;
        }
    }
}

pub(crate) fn ending(answer: &Answer) -> Ending {
    let calls = answer.beats.iter().any(|beat| matches!(beat, Beat::Call(_) | Beat::Calls(_) | Beat::Interleaved(_)));
    answer.finish.unwrap_or(if calls { Ending::ToolCalls } else { Ending::Stop })
}

/// Where the script does not count, about one token for four characters.
pub(crate) fn counts(answer: &Answer, sent: u64, words: &[Word]) -> Counts {
    answer.usage.unwrap_or_else(|| {
        let (mut output, mut reasoning) = (0, 0);
        for word in words {
            match word {
                Word::Think(_) => reasoning += 1,
                Word::Text(_) | Word::CallBegan { .. } | Word::CallInput { .. } => output += 1,
                Word::Flood { times, .. } => output += times,
                _ => {}
            }
        }
        Counts { input: sent, output, reasoning, ..Counts::default() }
    })
}
