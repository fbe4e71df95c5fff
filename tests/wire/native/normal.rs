//! A run made comparable with another: whatever differs from run to run (ids, times, folders, where live output was
//! cut) is named by the order in which it appears. What is left must be the same every time.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Of the first fact, in µs.
const BEGAN: u64 = 1_794_700_000_000_000;
/// Our ids are longer than any word that looks like one.
const SHORTEST_ID: usize = 20;
const COMMIT: usize = 40;

#[derive(Debug, Default)]
pub(crate) struct Normal {
    names: HashMap<String, String>,
    counts: HashMap<String, usize>,
    /// Words that are told as others, longest first.
    words: Vec<(String, String)>,
}

impl Normal {
    pub(crate) fn saying(mut self, word: &str, instead: &str) -> Self {
        self.words.push((word.to_owned(), instead.to_owned()));
        self.words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        self
    }

    /// The facts, a line each.
    pub(crate) fn facts(&mut self, facts: &[Value]) -> String {
        let mut lines = String::new();
        for (seq, mut fact) in (1..).zip(joined(&settled(facts))) {
            fact["seq"] = json!(seq);
            fact["time"] = json!(BEGAN + seq * 1000);
            by_chance(&mut fact["data"]);
            lines += &self.text(&fact.to_string());
            lines.push('\n');
        }
        lines
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, instead) in &self.words {
            text = text.replace(word, instead);
        }
        let mut told = String::with_capacity(text.len());
        for (is_word, run) in runs(&text) {
            match is_word.then(|| kind(run)).flatten() {
                Some(kind) => told += &self.name(kind, run),
                None => told += run,
            }
        }
        told
    }

    fn name(&mut self, kind: &str, found: &str) -> String {
        if let Some(known) = self.names.get(found) {
            return known.clone();
        }
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count += 1;
        let name = match kind {
            "" => format!("{count:0COMMIT$}"),
            kind => format!("{kind}_{count}"),
        };
        self.names.insert(found.to_owned(), name.clone());
        name
    }
}

/// Words (letters, digits, `_`) and what is between them, in turn.
fn runs(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = is_word(rest.chars().next()?);
        let end = rest.find(|c| is_word(c) != first).unwrap_or(rest.len());
        let (run, tail) = rest.split_at(end);
        rest = tail;
        Some((first, run))
    })
}

/// What kind of name this is, if it is one that differs from run to run; a commit has none.
fn kind(word: &str) -> Option<&str> {
    if word.len() == COMMIT && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some("");
    }
    let (kind, rest) = word.split_once('_')?;
    if rest.len() < SHORTEST_ID || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    // Each provider has a name of its own for calls.
    match kind {
        "call" | "toolu" => Some("call"),
        kind => (kind.len() == 3).then_some(kind),
    }
}

/// What chance decides (how long a retry waits), and what each provider wants back in its own way.
fn by_chance(data: &mut Value) {
    let Some(data) = data.as_object_mut() else { return };
    data.shift_remove("kept");
    if let Some(delay) = data.get_mut("delay_ms") {
        *delay = json!(1000);
    }
}

/// Without the snapshots after turns that were cancelled: whether there was time for one is chance.
fn settled(facts: &[Value]) -> Vec<Value> {
    let is_cancelled =
        |turn: &Value| facts.iter().any(|fact| fact["data"]["turn"] == *turn && fact["data"]["stop"] == "cancelled");
    let by_chance = |fact: &Value| fact["type"] == "checkpoint_saved" && is_cancelled(&fact["data"]["turn"]);
    facts.iter().filter(|fact| !by_chance(fact)).cloned().collect()
}

/// Live output of one call that comes in a row is one piece: where it was cut is chance.
fn joined(facts: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for fact in facts {
        let is_output = |fact: &Value| fact["type"] == "output_appended";
        match joined.last_mut() {
            Some(last) if is_output(last) && is_output(fact) && last["data"]["call"] == fact["data"]["call"] => {
                let text = [&last["data"]["text"], &fact["data"]["text"]].map(|text| text.as_str().unwrap()).concat();
                last["data"]["text"] = json!(text);
            }
            _ => joined.push(fact.clone()),
        }
    }
    joined
}

#[test]
fn what_differs_is_named_by_its_order() {
    let fact = |session: &str, text: &str| json!({ "type": "output_appended", "session": session, "seq": 9, "time": 7, "data": { "call": "c", "text": text } });
    let ids = ["ses_0123456789abcdefghijklmno", "ses_zyxwvutsrqponmlkjihgfedcba"];
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let told = |first: usize, cut: &[&str]| {
        let facts: Vec<Value> = cut.iter().map(|text| fact(ids[first], text)).collect();
        Normal::default().saying("/tmp/x", "/w").facts(&facts)
    };
    let one = told(0, &["a", "b /tmp/x/f ", commit]);
    assert_eq!(one, told(1, &["ab /tmp", "/x/f ", commit]));
    assert!(one.contains("ses_1") && one.contains("ab /w/f 0000000000000000000000000000000000000001"), "{one}");
}
