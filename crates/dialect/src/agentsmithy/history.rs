//! The session as a client of this family loads it: events without their segments, page by page.
//!
//! They are made from the encoder's own events, so a reload cannot differ from what was streamed. Within a group they
//! stand in the order that the family's clients know: what was thought, what was said, the calls, the files.

use serde::Serialize;
use tolka_facts::{Blobs, Event, Fact, Json, MessageId, Tip};

use super::Encoder;
use super::packet::Packet;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    #[serde(flatten)]
    pub kind: EntryKind,
    /// The place among the messages, from 0; only `user` and `chat` have one, and pages are cut by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idx: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryKind {
    User {
        content: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        checkpoint: Option<String>,
    },
    Reasoning {
        content: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        model_name: Option<String>,
    },
    Chat {
        content: String,
    },
    ToolCall {
        id: String,
        name: String,
        args: Json,
    },
    FileEdit {
        file: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
}

/// What `GET /api/dialogs/{id}/history` answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page {
    pub dialog_id: String,
    pub events: Vec<Entry>,
    /// Of all kinds, in the whole history.
    pub total_events: usize,
    pub has_more: bool,
    pub first_idx: usize,
    pub last_idx: usize,
}

/// A fold: give it every fact of a session with the tip after it, then read pages.
#[derive(Debug, Default)]
pub struct History {
    dialog: String,
    encoder: Encoder,
    groups: Vec<Group>,
}

/// A prompt, or one answer of the model with the calls that it made.
#[derive(Debug)]
struct Group {
    message: MessageId,
    /// Undone, and not yet for good: it may be brought back until the next turn begins.
    is_rewound: bool,
    reasoning: Option<EntryKind>,
    /// What the user or the agent said.
    message_text: Option<EntryKind>,
    calls: Vec<EntryKind>,
    edits: Vec<EntryKind>,
}

impl History {
    pub fn apply(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs) {
        if self.dialog.is_empty() {
            fact.session.as_str().clone_into(&mut self.dialog);
        }
        match &fact.event {
            Event::TurnStarted(_) => self.groups.retain(|group| !group.is_rewound),
            Event::MessageHidden(e) => self.groups.retain(|group| group.message != e.message),
            Event::Rewound(e) => {
                let from = self.groups.iter().position(|group| group.message == e.message);
                self.groups.iter_mut().skip(from.unwrap_or(usize::MAX)).for_each(|group| group.is_rewound = true);
            }
            Event::Unrewound(_) => self.groups.iter_mut().for_each(|group| group.is_rewound = false),
            _ => {}
        }
        let groups = &mut self.groups;
        let turn = tip.turn.as_ref();
        let message = turn.map(|turn| turn.current_message().clone()).unwrap_or_default();
        let model = turn.and_then(|turn| turn.step.as_ref()?.model.as_ref().or(turn.model.as_ref()));
        let model = model.or(tip.head.model.as_ref()).map(|model| model.id.clone());
        self.encoder.tell(fact, tip, blobs, &mut |packet| add(groups, packet, &message, model.as_deref()));
    }

    /// The last `limit` messages before the one of index `before`, or the last of all, and what belongs to each.
    pub fn page(&self, limit: usize, before: Option<usize>) -> Page {
        let shown = || self.groups.iter().filter(|group| !group.is_rewound);
        let total = shown().filter(|group| group.message_text.is_some()).count();
        let end = before.unwrap_or(total).min(total);
        let start = end.saturating_sub(limit);
        let mut events = Vec::new();
        let mut next = 0;
        for group in shown() {
            // An answer without words stands with the message before it.
            let idx = group.message_text.as_ref().map(|_| next);
            next += usize::from(idx.is_some());
            let place = idx.unwrap_or_else(|| next.saturating_sub(1));
            if place >= start && (place < end || (total == 0 && limit > 0)) {
                events.extend(group.entries(idx));
            }
        }
        let mut indices = events.iter().filter_map(|entry: &Entry| entry.idx);
        let first_idx = indices.next().unwrap_or_default();
        let last_idx = indices.next_back().unwrap_or(first_idx);
        Page {
            dialog_id: self.dialog.clone(),
            total_events: shown().map(Group::len).sum(),
            has_more: start > 0,
            first_idx,
            last_idx,
            events,
        }
    }
}

impl Group {
    fn new(message: &MessageId) -> Self {
        Group {
            message: message.clone(),
            is_rewound: false,
            reasoning: None,
            message_text: None,
            calls: Vec::new(),
            edits: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        usize::from(self.reasoning.is_some())
            + usize::from(self.message_text.is_some())
            + self.calls.len()
            + self.edits.len()
    }

    fn entries(&self, idx: Option<usize>) -> impl Iterator<Item = Entry> + '_ {
        let entry = |idx| move |kind: &EntryKind| Entry { kind: kind.clone(), idx };
        let said = self.message_text.iter().map(entry(idx));
        let rest = self.calls.iter().chain(&self.edits).map(entry(None));
        self.reasoning.iter().map(entry(None)).chain(said).chain(rest)
    }

    fn has_acted(&self) -> bool {
        !self.calls.is_empty() || !self.edits.is_empty()
    }

    fn is_users(&self) -> bool {
        matches!(self.message_text, Some(EntryKind::User { .. }))
    }
}

fn add(groups: &mut Vec<Group>, packet: &Packet<'_>, message: &MessageId, model: Option<&str>) {
    match packet {
        Packet::User { content, checkpoint } => {
            let mut group = Group::new(message);
            let checkpoint = checkpoint.map(str::to_owned);
            group.message_text = Some(EntryKind::User { content: content.clone().into_owned(), checkpoint });
            groups.push(group);
        }
        Packet::ReasoningStart => {
            let group = answer(groups, message, |group| group.reasoning.is_none() && group.message_text.is_none());
            group.reasoning =
                Some(EntryKind::Reasoning { content: String::new(), model_name: model.map(str::to_owned) });
        }
        Packet::ChatStart => {
            let group = answer(groups, message, |group| group.message_text.is_none());
            group.message_text = Some(EntryKind::Chat { content: String::new() });
        }
        Packet::Reasoning { content: piece } => {
            if let Some(EntryKind::Reasoning { content, .. }) = groups.last_mut().and_then(|g| g.reasoning.as_mut()) {
                content.push_str(piece);
            }
        }
        Packet::Chat { content: piece } => {
            if let Some(EntryKind::Chat { content }) = groups.last_mut().and_then(|g| g.message_text.as_mut()) {
                content.push_str(piece);
            }
        }
        Packet::ToolCall { id, name, args } => {
            let (id, name, args) = ((*id).to_owned(), (*name).to_owned(), (*args).clone());
            acting(groups, message).calls.push(EntryKind::ToolCall { id, name, args });
        }
        Packet::FileEdit { file, diff } => {
            let (file, diff) = ((*file).to_owned(), diff.map(str::to_owned));
            acting(groups, message).edits.push(EntryKind::FileEdit { file, diff });
        }
        // A history has no segments, and today's server keeps no errors in it.
        Packet::ChatEnd
        | Packet::ReasoningEnd
        | Packet::SummaryStart
        | Packet::SummaryEnd
        | Packet::Error { .. }
        | Packet::Done { .. } => {}
    }
}

/// The group that new words go to: the last one, if it has not acted yet and there is room for them.
fn answer<'a>(groups: &'a mut Vec<Group>, message: &MessageId, has_room: impl Fn(&Group) -> bool) -> &'a mut Group {
    let goes_on =
        |group: &Group| group.message == *message && !group.has_acted() && !group.is_users() && has_room(group);
    last_or_new(groups, message, goes_on)
}

fn acting<'a>(groups: &'a mut Vec<Group>, message: &MessageId) -> &'a mut Group {
    last_or_new(groups, message, |group| group.message == *message && !group.is_users())
}

fn last_or_new<'a>(groups: &'a mut Vec<Group>, message: &MessageId, goes_on: impl Fn(&Group) -> bool) -> &'a mut Group {
    if !groups.last().is_some_and(goes_on) {
        groups.push(Group::new(message));
    }
    let last = groups.len() - 1;
    &mut groups[last]
}
