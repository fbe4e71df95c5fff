//! The conversation, made again from what the session remembers: the summary of what was summarised, and all that came
//! after it.
//!
//! A summary holds as long as the turn does that it was made in. When that turn is taken back, so is the summary, and what
//! it stood for is sent again.

use std::sync::Arc;

use tolka_facts::event::CompactionEnded;
use tolka_facts::{Blobs, Event, Message, MessageId, Role, TurnId, View};

use super::past::{add, blocks, note_calls};
use super::{Conversation, Eyes};
use crate::native::model::{Input, Message as Said};
use crate::native::{compaction, prompted};

/// What was made of the turns that have ended. Nothing but its being hidden changes a message of theirs, so that the next
/// turn has only to add what came since: what tools gave can be long, and to read all of it again takes seconds.
#[derive(Debug)]
pub(in crate::native) struct Recollection {
    conversation: Conversation,
    /// The messages that it was made of, in their order.
    of: Vec<Trace>,
    /// The place of the summary that it begins with.
    summary: Option<u64>,
}

#[derive(Debug, PartialEq)]
struct Trace {
    turn: TurnId,
    message: MessageId,
    hidden: bool,
}

/// What the model is sent of one message. To be summarised or kept, but never cut: its calls have their results in it.
#[derive(Debug)]
pub(in crate::native) struct Segment {
    /// `None`: of the summary that stands first.
    pub(in crate::native) message: Option<MessageId>,
    pub(in crate::native) said: Vec<Arc<Said>>,
    /// A person said it.
    pub(in crate::native) is_asked: bool,
}

/// A summary that holds.
struct Summary<'a> {
    seq: u64,
    ended: &'a CompactionEnded,
    /// Where its turn started.
    turn: u64,
    /// The first message that is sent as it is.
    keeps: usize,
}

impl Recollection {
    pub(in crate::native) fn new() -> Self {
        Recollection::seen_with(Eyes::Open, None)
    }

    fn seen_with(eyes: Eyes, summary: Option<u64>) -> Self {
        Recollection { conversation: Conversation::new(eyes), of: Vec::new(), summary }
    }

    /// Everything before the turn that runs. Prompts that wait are no part of it, nor is what was hidden.
    pub(in crate::native) fn recall(
        &mut self,
        view: &View,
        blobs: &dyn Blobs,
        running: &TurnId,
        eyes: Eyes,
    ) -> Conversation {
        let ended = view.messages.iter().position(|message| is_open(view, message, running));
        let (ended, open) = view.messages.split_at(ended.unwrap_or(view.messages.len()));
        let traces = ended.iter().map(|message| Trace {
            turn: message.turn.clone(),
            message: message.id.clone(),
            hidden: message.hidden,
        });
        let traces: Vec<Trace> = traces.collect();
        let summary = Summary::in_force(view);
        let at = summary.as_ref().map(|summary| summary.seq);
        if self.conversation.eyes != eyes || self.summary != at || !traces.starts_with(&self.of) {
            *self = Recollection::seen_with(eyes, at);
            if let Some(summary) = &summary {
                self.conversation.user(summary.inputs(view, blobs));
            }
        }
        let keeps = summary.map_or(0, |summary| summary.keeps);
        for (at, message) in ended.iter().enumerate().skip(self.of.len()) {
            note_calls(&mut self.conversation, message);
            if !message.hidden && at >= keeps {
                add(&mut self.conversation, message, blobs);
            }
        }
        self.of = traces;
        let mut conversation = self.conversation.clone();
        open.iter().for_each(|message| note_calls(&mut conversation, message));
        begin_with_person(&mut conversation);
        conversation
    }
}

impl Conversation {
    /// Everything that was told, with what the turn that runs has said so far.
    pub(in crate::native) fn so_far(view: &View, blobs: &dyn Blobs, running: &TurnId, eyes: Eyes) -> Self {
        let mut conversation = Conversation::new(eyes);
        view.messages.iter().for_each(|message| note_calls(&mut conversation, message));
        let summary = Summary::in_force(view);
        if let Some(summary) = &summary {
            conversation.user(summary.inputs(view, blobs));
        }
        for message in sent(view, running, summary.as_ref()) {
            add(&mut conversation, message, blobs);
        }
        begin_with_person(&mut conversation);
        conversation
    }
}

impl Segment {
    /// What a model is sent now, message by message.
    pub(in crate::native) fn all(view: &View, blobs: &dyn Blobs, running: &TurnId, eyes: Eyes) -> Vec<Segment> {
        let of = |message: Option<&Message>, conversation: Conversation| Segment {
            message: message.map(|message| message.id.clone()),
            said: conversation.messages,
            is_asked: message.is_some_and(|message| message.role == Role::User),
        };
        let summary = Summary::in_force(view);
        let first = summary.as_ref().map(|summary| {
            let mut conversation = Conversation::new(eyes);
            conversation.user(summary.inputs(view, blobs));
            of(None, conversation)
        });
        let rest = sent(view, running, summary.as_ref()).map(|message| {
            let mut conversation = Conversation::new(eyes);
            add(&mut conversation, message, blobs);
            of(Some(message), conversation)
        });
        first.into_iter().chain(rest).filter(|segment| !segment.said.is_empty()).collect()
    }
}

impl<'a> Summary<'a> {
    /// The last one whose turn was not taken back.
    fn in_force(view: &'a View) -> Option<Self> {
        view.asides.iter().rev().find_map(|fact| {
            let Event::CompactionEnded(ended) = &fact.event else { return None };
            if ended.error.is_some() || ended.summary.is_none() {
                return None;
            }
            let turn = view.messages.iter().rev().find_map(|message| message.started.filter(|at| *at <= fact.seq));
            let mut messages = view.messages.iter().filter(|message| message.started == turn);
            if turn.is_some() && messages.all(|message| message.hidden) {
                return None;
            }
            let kept = ended.keeps.as_ref().and_then(|kept| view.messages.iter().position(|m| m.id == *kept));
            // What it was to begin with never came: all of its turn is summarised.
            let later = || view.messages.iter().position(|message| message.started.is_none_or(|at| at > fact.seq));
            let keeps = kept.or_else(later).unwrap_or(view.messages.len());
            Some(Summary { seq: fact.seq, ended, turn: turn.unwrap_or_default(), keeps })
        })
    }

    /// The summary; and if it was made in the middle of a turn, what the person had said in that, word for word.
    fn inputs(&self, view: &View, blobs: &dyn Blobs) -> Vec<Input> {
        let summary = self.ended.summary.as_ref().map(|summary| summary.text(blobs)).unwrap_or_default();
        let before = view.messages.iter().take(self.keeps);
        let asked = before.filter(|m| m.role == Role::User && !m.hidden && m.started == Some(self.turn));
        let asked = asked.filter(|message| compaction::wanted(blocks(message), blobs).is_none());
        compaction::told(&summary, asked.flat_map(|message| prompted::inputs(blocks(message), None, blobs)).collect())
    }
}

/// What is sent as it is.
fn sent<'a>(view: &'a View, running: &TurnId, summary: Option<&Summary<'_>>) -> impl Iterator<Item = &'a Message> {
    let keeps = summary.map_or(0, |summary| summary.keeps);
    let is_told = |message: &&Message| message.turn == *running || !is_open(view, message, running);
    view.messages.iter().skip(keeps).filter(is_told).filter(|message| !message.hidden)
}

/// Whether it is of the turn that runs, or waits for its own.
fn is_open(view: &View, message: &Message, running: &TurnId) -> bool {
    message.turn == *running || view.tip.queue.iter().any(|queued| queued.prompt.turn == message.turn)
}

/// With its prompt hidden, an answer answers nothing, and no provider takes a conversation that begins with it.
fn begin_with_person(conversation: &mut Conversation) {
    let first = conversation.messages.iter().position(|message| matches!(**message, Said::User(_)));
    conversation.messages.drain(..first.unwrap_or(conversation.messages.len()));
}
