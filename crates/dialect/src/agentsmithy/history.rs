//! The session as a client of this family loads it: events without their segments, page by page.
//!
//! They are made from the encoder's own events, so a reload cannot differ from what was streamed. Within a group they
//! stand in the order that the family's clients know: what was thought, what was said, the calls, the files.
//!
//! Turns do not touch each other here, so that the last of them can be folded without those before, and those before
//! be put in front later. Only what is undone reaches across turns: see [`History::hide`] and [`History::rewind`].

use std::collections::HashSet;

use serde::Serialize;
use tolka_facts::{Blobs, Event, Fact, Json, MessageId, SessionId, Tip};

use super::Encoder;
use super::encode::prompt_text;
use super::packet::Packet;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    #[serde(flatten)]
    pub kind: EntryKind,
    /// The fact that began the message: it grows from message to message, with gaps, and stays what it is when others
    /// are hidden. Only `user` and `chat` have one, and pages are cut by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idx: Option<u64>,
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
    pub dialog_id: SessionId,
    pub events: Vec<Entry>,
    /// Of all kinds, in the whole history; see [`Tally`](super::Tally).
    pub total_events: usize,
    pub has_more: bool,
    pub first_idx: u64,
    pub last_idx: u64,
}

/// A fold: give it the facts of whole turns with the tip after each, then read pages.
#[derive(Debug)]
pub struct History {
    dialog: SessionId,
    encoder: Encoder,
    groups: Vec<Group>,
}

/// A prompt, or one answer of the model with the calls that it made.
#[derive(Debug)]
struct Group {
    message: MessageId,
    /// The fact that began it.
    at: u64,
    /// Where its turn started. What was done between turns is of none.
    started: Option<u64>,
    /// Undone, and not yet for good: it may be brought back until the next turn begins.
    is_rewound: bool,
    /// The user's, in the middle of a turn: what was being said goes on before it.
    is_steered: bool,
    reasoning: Option<EntryKind>,
    said: Option<Said>,
    calls: Vec<EntryKind>,
    edits: Vec<EntryKind>,
}

/// What the user or the agent said.
#[derive(Debug)]
struct Said {
    idx: u64,
    words: EntryKind,
}

impl History {
    pub fn new(dialog: SessionId) -> Self {
        History { dialog, encoder: Encoder::default(), groups: Vec::new() }
    }

    pub fn apply(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs) {
        match &fact.event {
            Event::PromptSteered(_) => self.steered(fact, tip, blobs),
            Event::MessageHidden(e) => self.groups.retain(|group| group.message != e.message),
            Event::TurnStarted(_) | Event::Rewound(_) | Event::Unrewound(_) => self.rewind(tip.hidden_from()),
            _ => {}
        }
        let groups = &mut self.groups;
        let turn = tip.turn.as_ref();
        let place = Place::of(fact, tip);
        let model = turn.and_then(|turn| turn.step.as_ref()?.model.as_ref().or(turn.model.as_ref()));
        let model = model.or(tip.head.model.as_ref()).map(|model| model.id.clone());
        self.encoder.tell(fact, tip, blobs, &mut |packet| add(groups, packet, &place, model.as_deref()));
    }

    /// A stream cannot tell it, but it was said.
    fn steered(&mut self, fact: &Fact, tip: &Tip, blobs: &dyn Blobs) {
        if let Some(queued) = tip.taken.as_ref().filter(|_| tip.turn.is_some()) {
            let mut group = Group::new(&Place { message: queued.prompt.message.clone(), ..Place::of(fact, tip) });
            let words = EntryKind::User { content: prompt_text(Some(queued), blobs), checkpoint: None };
            group.said = Some(Said { idx: fact.seq, words });
            group.is_steered = true;
            self.groups.push(group);
        }
    }

    /// Puts the turns before these in front.
    pub fn prepend(&mut self, mut earlier: History) {
        earlier.groups.append(&mut self.groups);
        self.groups = earlier.groups;
    }

    /// Leaves out messages that facts after these turns have hidden.
    pub fn hide(&mut self, hidden: &HashSet<MessageId>) {
        self.groups.retain(|group| !hidden.contains(&group.message));
    }

    /// Leaves out the turns that started at this place or later, as rewinds have them at the end of the session, and no
    /// others; see [`Tip::hidden_from`].
    pub fn rewind(&mut self, hidden_from: Option<u64>) {
        let is_rewound = |group: &Group| group.started.zip(hidden_from).is_some_and(|(started, from)| from <= started);
        self.groups.iter_mut().for_each(|group| group.is_rewound = is_rewound(group));
    }

    /// Those that something was said or done in.
    pub fn messages(&self) -> impl Iterator<Item = &MessageId> {
        self.groups.iter().map(|group| &group.message)
    }

    /// The number of messages before the one of an index.
    pub fn said_before(&self, idx: u64) -> usize {
        self.indices().filter(|said| *said < idx).count()
    }

    /// Whether a message has begun at an index or after it: no earlier one grows any more. Words that steer end none.
    pub fn has_said(&self, idx: u64) -> bool {
        let last = self.groups.iter().rev().find(|group| !group.is_steered);
        last.and_then(|group| group.said.as_ref()).is_some_and(|said| said.idx >= idx)
    }

    /// The last `limit` messages before the one of index `before`, or the last of all, and what belongs to each; of what
    /// was folded.
    pub fn page(&self, limit: usize, before: Option<u64>) -> Page {
        let before = before.unwrap_or(u64::MAX);
        let earlier = self.said_before(before).saturating_sub(limit);
        // The first page has what stands before all messages as well.
        let first = if earlier == 0 { Some(0) } else { self.indices().nth(earlier) };
        let start = first.filter(|_| limit > 0).unwrap_or(before);
        let on_page = |group: &&Group| (start..before).contains(&group.place());
        let events: Vec<Entry> = self.shown().filter(on_page).flat_map(Group::entries).collect();
        let mut indices = events.iter().filter_map(|entry| entry.idx);
        let first_idx = indices.next().unwrap_or_default();
        let last_idx = indices.next_back().unwrap_or(first_idx);
        Page {
            dialog_id: self.dialog.clone(),
            total_events: self.shown().map(Group::len).sum(),
            has_more: earlier > 0,
            first_idx,
            last_idx,
            events,
        }
    }

    fn shown(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| !group.is_rewound)
    }

    fn indices(&self) -> impl Iterator<Item = u64> {
        self.shown().filter_map(|group| Some(group.said.as_ref()?.idx))
    }
}

/// Where something is said or done.
struct Place {
    message: MessageId,
    seq: u64,
    started: Option<u64>,
}

impl Place {
    fn of(fact: &Fact, tip: &Tip) -> Self {
        let turn = tip.turn.as_ref();
        let message = turn.map(|turn| turn.current_message().clone()).unwrap_or_default();
        Place { message, seq: fact.seq, started: turn.map(|turn| turn.first_seq) }
    }
}

impl Group {
    fn new(place: &Place) -> Self {
        Group {
            message: place.message.clone(),
            at: place.seq,
            started: place.started,
            is_rewound: false,
            is_steered: false,
            reasoning: None,
            said: None,
            calls: Vec::new(),
            edits: Vec::new(),
        }
    }

    /// Where pages are cut. An answer without words is between two messages, and so on the page of the first.
    fn place(&self) -> u64 {
        self.said.as_ref().map_or(self.at, |said| said.idx)
    }

    fn len(&self) -> usize {
        usize::from(self.reasoning.is_some()) + usize::from(self.said.is_some()) + self.calls.len() + self.edits.len()
    }

    fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let entry = |kind: &EntryKind| Entry { kind: kind.clone(), idx: None };
        let said = self.said.iter().map(|said| Entry { kind: said.words.clone(), idx: Some(said.idx) });
        let rest = self.calls.iter().chain(&self.edits).map(entry);
        self.reasoning.iter().map(entry).chain(said).chain(rest)
    }

    fn has_acted(&self) -> bool {
        !self.calls.is_empty() || !self.edits.is_empty()
    }

    fn is_users(&self) -> bool {
        matches!(self.said, Some(Said { words: EntryKind::User { .. }, .. }))
    }
}

fn add(groups: &mut Vec<Group>, packet: &Packet<'_>, place: &Place, model: Option<&str>) {
    match packet {
        Packet::User { content, checkpoint } => {
            let mut group = Group::new(place);
            let checkpoint = checkpoint.map(str::to_owned);
            let words = EntryKind::User { content: content.clone().into_owned(), checkpoint };
            group.said = Some(Said { idx: place.seq, words });
            groups.push(group);
        }
        Packet::ReasoningStart => {
            let group = answer(groups, place, |group| group.reasoning.is_none() && group.said.is_none());
            group.reasoning =
                Some(EntryKind::Reasoning { content: String::new(), model_name: model.map(str::to_owned) });
        }
        Packet::ChatStart => {
            let group = answer(groups, place, |group| group.said.is_none());
            group.said = Some(Said { idx: place.seq, words: EntryKind::Chat { content: String::new() } });
        }
        Packet::Reasoning { content: piece } => {
            if let Some(EntryKind::Reasoning { content, .. }) =
                last_of(groups, &place.message).and_then(|g| g.reasoning.as_mut())
            {
                content.push_str(piece);
            }
        }
        Packet::Chat { content: piece } => {
            let said = last_of(groups, &place.message).and_then(|g| g.said.as_mut());
            if let Some(Said { words: EntryKind::Chat { content }, .. }) = said {
                content.push_str(piece);
            }
        }
        Packet::ToolCall { id, name, args } => {
            let (id, name, args) = ((*id).to_owned(), (*name).to_owned(), (*args).clone());
            acting(groups, place).calls.push(EntryKind::ToolCall { id, name, args });
        }
        Packet::FileEdit { file, diff } => {
            let (file, diff) = ((*file).to_owned(), diff.map(str::to_owned));
            acting(groups, place).edits.push(EntryKind::FileEdit { file, diff });
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

/// The group that new words go to: the last one, if it has not acted yet, there is room for them, and nobody has said
/// something since: an index is never less than the one before it.
fn answer<'a>(groups: &'a mut Vec<Group>, place: &Place, has_room: impl Fn(&Group) -> bool) -> &'a mut Group {
    let is_last = groups.last().is_some_and(|group| !group.is_steered);
    let goes_on = |group: &Group| is_last && !group.has_acted() && has_room(group);
    last_or_new(groups, place, goes_on)
}

fn acting<'a>(groups: &'a mut Vec<Group>, place: &Place) -> &'a mut Group {
    last_or_new(groups, place, |_| true)
}

fn last_or_new<'a>(groups: &'a mut Vec<Group>, place: &Place, goes_on: impl Fn(&Group) -> bool) -> &'a mut Group {
    let may_go_on = |group: &Group| !group.is_users() && goes_on(group);
    let at = last_at(groups, &place.message).filter(|at| may_go_on(&groups[*at])).unwrap_or_else(|| {
        groups.push(Group::new(place));
        groups.len() - 1
    });
    &mut groups[at]
}

fn last_of<'a>(groups: &'a mut [Group], message: &MessageId) -> Option<&'a mut Group> {
    last_at(groups, message).map(|at| &mut groups[at])
}

/// The last group of the agent's, unless the message's own has been hidden meanwhile.
fn last_at(groups: &[Group], message: &MessageId) -> Option<usize> {
    groups.iter().rposition(|group| !group.is_steered).filter(|at| groups[*at].message == *message)
}
