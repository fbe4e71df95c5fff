//! What was said so far, as the model is sent it.
//!
//! **It is a function of the facts** and of whether the model sees pictures: while a turn runs it grows with what is told,
//! and made again from the journal it is the same. So: a step that ended in an error is no part of it (it was asked again,
//! or nobody could answer); of one that was cancelled or interrupted the words stand, and what it was doing is told in words;
//! every call has a result; and of what was summarised, the summary stands.

mod past;
mod recollection;

use std::collections::HashSet;
use std::sync::Arc;

use tolka_facts::{CallId, Json};

use super::model::{Input, Message, Model, Output, Returned};
use super::tools::Outcome;

pub(super) use past::{Kept, input_of, no_input};
pub(super) use recollection::{Recollection, Segment};

/// Begins the names of calls that no model made: files that a prompt brought along are read in this way.
pub(super) const ATTACHED: &str = "attached_";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eyes {
    Open,
    Blind,
}

impl Eyes {
    pub(super) fn of(model: &dyn Model) -> Self {
        if model.about().sees_images { Eyes::Open } else { Eyes::Blind }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Conversation {
    /// Shared with the requests that are made of it and with what is remembered for the next turn.
    messages: Vec<Arc<Message>>,
    eyes: Eyes,
    /// The names of all calls: some providers begin to count anew with every answer.
    calls: HashSet<CallId>,
}

impl Conversation {
    pub(super) fn new(eyes: Eyes) -> Self {
        Conversation { messages: Vec::new(), eyes, calls: HashSet::new() }
    }

    pub(super) fn messages(&self) -> Vec<Arc<Message>> {
        self.messages.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Two in a row are one: not every provider takes two.
    pub(super) fn user(&mut self, inputs: Vec<Input>) {
        let mut inputs = self.seen(inputs);
        if inputs.is_empty() {
            return;
        }
        match self.messages.pop_if(|last| matches!(**last, Message::User(_))) {
            Some(mut last) => {
                if let Message::User(said) = Arc::make_mut(&mut last) {
                    said.append(&mut inputs);
                }
                self.messages.push(last);
            }
            None => self.push(Message::User(inputs)),
        }
    }

    /// An answer. Thoughts that lead to nothing, as an answer that was too long ends with, are refused by some providers.
    pub(super) fn answer(&mut self, mut outputs: Vec<Output>) {
        if !outputs.iter().any(|output| matches!(output, Output::Call { .. })) {
            let said = outputs.iter().rposition(|output| matches!(output, Output::Text(_)));
            outputs.truncate(said.map_or(0, |last| last + 1));
        }
        if !outputs.is_empty() {
            self.push(Message::Model(outputs));
        }
    }

    pub(super) fn results(&mut self, results: impl IntoIterator<Item = (CallId, Outcome)>) {
        let returned = |(call, outcome): (CallId, Outcome)| Returned {
            call: call.as_str().to_owned(),
            content: self.seen(outcome.content),
            is_error: outcome.is_error,
        };
        let results: Vec<Returned> = results.into_iter().map(returned).collect();
        if !results.is_empty() {
            self.push(Message::Results(results));
        }
    }

    fn push(&mut self, message: Message) {
        self.messages.push(Arc::new(message));
    }

    /// Files that came with a prompt, and what subagents say to tasks in it: they are the person's words, not the model's
    /// calls.
    pub(super) fn attached(&mut self, input: &Json, outcome: Outcome) {
        let input = input.value();
        if let Some(kind) = input.get(KIND).and_then(serde_json::Value::as_str) {
            let mut inputs =
                vec![Input::Text(format!("[The subagent `{kind}` was given this by the person. It says:]"))];
            inputs.extend(outcome.content);
            return self.user(inputs);
        }
        let path = input
            .get(PATH)
            .or_else(|| NAMED.iter().find_map(|name| input.get(name)))
            .and_then(serde_json::Value::as_str)
            .unwrap_or("a file");
        let how = if outcome.is_error { "was attached, but cannot be read:" } else { "is attached:" };
        let mut inputs = vec![Input::Text(format!("[`{path}` {how}]"))];
        inputs.extend(outcome.content);
        self.user(inputs);
    }

    /// A name for a call that no other has: the provider's own where that is possible.
    pub(super) fn name_call(&mut self, given: String) -> CallId {
        let is_usable = !given.is_empty() && !given.starts_with(ATTACHED);
        let given = CallId::from(given);
        if is_usable && self.calls.insert(given.clone()) { given } else { self.fresh("call_") }
    }

    /// A name for reading what is attached.
    pub(super) fn name_attached(&mut self) -> CallId {
        self.fresh(ATTACHED)
    }

    fn fresh(&mut self, prefix: &str) -> CallId {
        let mut n = self.calls.len();
        loop {
            n += 1;
            let call = CallId::from(format!("{prefix}{n}"));
            if self.calls.insert(call.clone()) {
                return call;
            }
        }
    }

    fn seen(&self, inputs: Vec<Input>) -> Vec<Input> {
        if self.eyes == Eyes::Open {
            return inputs;
        }
        let seen = |input| match input {
            Input::Image { mime, .. } => Input::Text(format!("[A picture ({mime}) is here; you cannot see it.]")),
            other => other,
        };
        inputs.into_iter().map(seen).collect()
    }
}

/// Where the `task` tool is told whom to call.
pub(super) const KIND: &str = "subagent_type";

/// Where the `read` tool is told what to read.
pub(super) const PATH: &str = "filePath";

/// Where those that read resources and prompts of MCP servers are.
const NAMED: [&str; 2] = ["uri", "prompt"];
