//! What the script can tell from the conversation: how far this turn is, and what became of its calls.

use std::sync::Arc;

use serde_json::Value;

use super::super::model::{Input, Message, Output, Request, Returned};

/// The turn that runs, from the last prompt on.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) calls: Vec<Called<'a>>,
    /// Whether the turn had more to do when a person said something more.
    pub(super) is_interrupted: bool,
    offered: Vec<&'a str>,
}

#[derive(Debug)]
pub(super) struct Called<'a> {
    pub(super) name: &'a str,
    input: &'a str,
    returned: Option<&'a Returned>,
}

impl Called<'_> {
    pub(super) fn input(&self, field: &str) -> String {
        let input: Value = serde_json::from_str(self.input).unwrap_or_default();
        input[field].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn is_done(&self) -> bool {
        self.returned.is_some_and(|returned| !returned.is_error)
    }

    pub(super) fn words(&self) -> String {
        let content = self.returned.map(|returned| returned.content.as_slice()).unwrap_or_default();
        let texts = content.iter().filter_map(|input| match input {
            Input::Text(text) => Some(text.as_str()),
            Input::Image { .. } | Input::File { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl<'a> Seen<'a> {
    pub(super) fn in_request(request: &'a Request) -> Self {
        let is_prompt = |message: &Arc<Message>| matches!(**message, Message::User(_));
        let from = request.messages.iter().rposition(is_prompt).map_or(0, |at| at + 1);
        let (before, turn) = request.messages.split_at(from);
        let spoken = before.iter().rev().skip(1).take_while(|message| !is_prompt(message));
        let last = spoken.filter_map(|message| match &**message {
            Message::Model(said) => Some(said),
            Message::User(_) | Message::Results(_) => None,
        });
        let is_call = |output: &Output| matches!(output, Output::Call { .. });
        let is_interrupted = last.take(1).any(|said| said.iter().any(is_call));
        let results = || {
            turn.iter().filter_map(|message| match &**message {
                Message::Results(returned) => Some(returned),
                Message::User(_) | Message::Model(_) => None,
            })
        };
        let said = turn.iter().filter_map(|message| match &**message {
            Message::Model(said) => Some(said),
            Message::User(_) | Message::Results(_) => None,
        });
        let calls = said.flatten().filter_map(|output| match output {
            Output::Call { id, name, input } => {
                let returned = results().flatten().find(|returned| returned.call == *id);
                Some(Called { name, input: input.get(), returned })
            }
            Output::Text(_) | Output::Thought { .. } => None,
        });
        let offered = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        Seen { calls: calls.collect(), is_interrupted, offered }
    }

    pub(super) fn is_offered(&self, tool: &str) -> bool {
        self.offered.contains(&tool)
    }

    /// The first call of a tool, and whether it was made.
    pub(super) fn call(&self, name: &str) -> Option<&Called<'a>> {
        self.calls.iter().find(|call| call.name == name)
    }

    pub(super) fn calls_of(&self, name: &str) -> impl Iterator<Item = &Called<'a>> {
        self.calls.iter().filter(move |call| call.name == name)
    }
}
