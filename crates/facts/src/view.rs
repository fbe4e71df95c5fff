//! A session as its facts make it, whole or from some place on: what a page draws on load and a test compares.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::event::{ArtifactSaved, Command, Failed, Finish, PromptQueued, Stop, Usage};
use crate::{
    Block, CallId, Event, Fact, Json, MessageId, OpenText, OpenTurn, PartId, Rope, Time, Tip, Tool, TurnId, Voice,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct View {
    /// What is open now; its `seq` is the position of this view.
    pub tip: Tip,
    /// In the order of their turns; prompts that wait for theirs come last.
    pub messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub artifacts: Vec<ArtifactSaved>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands: Vec<Command>,
    /// What stands beside the conversation, as it was told: notices, answers, compactions, failures between turns, what
    /// was taken back, brought back or approved.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asides: Vec<Fact>,
    /// The place that it was folded from.
    #[serde(skip)]
    since: u64,
    /// The turn that was open there, and its prompt, which stands before this view.
    #[serde(skip)]
    opening: Option<(TurnId, MessageId)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Agent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Message {
    pub id: MessageId,
    pub turn: TurnId,
    /// Where its turn started. A prompt that waits for its own has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started: Option<u64>,
    /// Where it took its place in the conversation: a prompt where its turn started or took it, an answer where it began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub placed: Option<u64>,
    pub role: Role,
    pub created: Time,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended: Option<Time>,
    /// How its step ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finish: Option<Finish>,
    pub parts: Vec<Part>,
    /// What the client knew beside its prompt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// What the model's provider wants back; see [`StepEnded`](crate::event::StepEnded).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kept: Option<Json>,
    /// On the last message of a turn: the agent's, if it said anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop: Option<Stop>,
    /// Where that was told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stopped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failed>,
    /// Nobody is shown it, nor is a model sent it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub hidden: bool,
    /// Hidden by a rewind, and back again if that is taken back. Otherwise it is hidden for good.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub rewound: bool,
    /// It began before this view did, inside a turn. Here is what was open of it and what came since: a call that the turn
    /// has already, and a text with the name of its last one, are those, grown; the rest is new. If no message before has
    /// its id, it goes on with the last one of the turn, and is hidden if that is.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub continued: bool,
}

/// Tagged from outside (`{"tool": …}`): raw JSON inside it needs the deserializer itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Content(Block),
    Text(Said),
    Thought(Said),
    Tool(Box<Tool>),
}

/// One run of text or thought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Said {
    pub part: PartId,
    pub first_seq: u64,
    pub started: Time,
    /// When its last piece came.
    pub last: Time,
    pub text: Rope,
}

impl View {
    /// A view of what comes after a tip, with what is open there: prompts that wait, and in the middle of a turn what it has
    /// not ended.
    pub fn since(tip: Tip) -> Self {
        let opening = tip.turn.as_ref().map(|turn| (turn.id.clone(), turn.message.clone()));
        let mut view = View { since: tip.seq, opening, ..View::default() };
        view.messages.extend(tip.turn.as_ref().and_then(going_on));
        view.messages.extend(tip.queue.iter().map(|queued| prompt(&queued.prompt, queued.time)));
        view.tip = tip;
        view
    }

    /// Without the prompts that wait: for a page that is not the last one. They are told with their turns.
    pub fn forget_waiting(&mut self) {
        self.messages.truncate(self.told());
    }

    /// How many messages stand before the prompts that wait.
    fn told(&self) -> usize {
        self.messages.len().saturating_sub(self.tip.queue.len())
    }

    pub fn apply(&mut self, fact: &Fact) {
        self.tip.apply(fact);
        match &fact.event {
            Event::PromptQueued(e) => self.messages.push(prompt(e, fact.time)),
            Event::PromptDropped(e) => self.messages.retain(|m| m.turn != e.turn),
            Event::TurnStarted(e) => {
                if let Some(message) = self.waits_no_more(&e.turn) {
                    message.started = Some(fact.seq);
                    message.placed = Some(fact.seq);
                }
                self.rewind(self.tip.hidden_from());
            }
            Event::PromptSteered(e) => {
                let started = self.tip.turn.as_ref().map(|turn| turn.first_seq);
                // From here on it is the open turn's: after what was said in it so far.
                if let Some(message) = self.waits_no_more(&e.turn) {
                    message.turn.clone_from(&e.into);
                    message.started = started;
                    message.placed = Some(fact.seq);
                }
            }
            Event::TextAppended(e) => self.append(
                &e.text,
                |p| matches!(p, Part::Text(said) if said.part == e.part),
                || Part::Text(Said::begun(&e.part, fact)),
                fact,
            ),
            Event::ThoughtAppended(e) => self.append(
                &e.text,
                |p| matches!(p, Part::Thought(said) if said.part == e.part),
                || Part::Thought(Said::begun(&e.part, fact)),
                fact,
            ),
            Event::StepStarted(e) => {
                let message = self.agent_message(e.message.clone(), fact);
                self.messages.insert(self.told(), message);
            }
            Event::StepEnded(e) => {
                if let Some(message) = self.messages.iter_mut().rev().find(|m| m.id == e.message) {
                    message.ended = Some(fact.time);
                    message.finish = Some(e.finish);
                    message.usage = e.usage;
                    message.kept.clone_from(&e.kept);
                }
            }
            Event::ToolChanged(e) => self.tool(&e.call, fact),
            Event::InputAppended(e) => self.tool(&e.call, fact),
            Event::OutputAppended(e) => self.tool(&e.call, fact),
            Event::TurnEnded(e) => {
                let failure = self.tip.ended_turn.as_ref().and_then(|turn| turn.failure.clone());
                let is_answer = |m: &Message| m.turn == e.turn && m.role == Role::Agent;
                if self.tip.ended_turn.as_ref().is_some_and(|turn| self.is_continued(turn))
                    && !self.messages.iter().any(is_answer)
                {
                    let started = self.tip.ended_turn.as_ref().map(|turn| turn.first_seq);
                    let message = Message::of(Role::Agent, e.turn.clone(), fact.time);
                    let message = Message { continued: true, started, ..message };
                    self.messages.insert(self.told(), message);
                }
                let last = self.messages.iter().rposition(is_answer);
                let last = last.or_else(|| self.messages.iter().rposition(|m| m.turn == e.turn));
                if let Some(message) = last.and_then(|at| self.messages.get_mut(at)) {
                    message.ended.get_or_insert(fact.time);
                    message.stop = Some(e.stop);
                    message.stopped = Some(fact.seq);
                    message.failure = failure;
                }
            }
            Event::Rewound(_) | Event::Unrewound(_) => {
                self.asides.push(fact.clone());
                self.rewind(self.tip.hidden_from());
            }
            Event::Noticed(_)
            | Event::CompactionEnded(_)
            | Event::PermissionAnswered(_)
            | Event::QuestionAnswered(_)
            | Event::RewindFailed(_)
            | Event::Approved(_)
            | Event::FilesMoved(_)
            | Event::ProcessEnded(_) => {
                self.asides.push(fact.clone());
            }
            Event::Failed(_) if self.tip.turn.is_none() => self.asides.push(fact.clone()),
            Event::ArtifactSaved(e) => self.artifacts.push(e.clone()),
            Event::CommandsSet(e) => self.commands.clone_from(&e.commands),
            Event::MessageHidden(e) => self.hide(&HashSet::from([e.message.clone()])),
            _ => {}
        }
    }

    /// Messages that it shows something of.
    pub fn ids(&self) -> impl Iterator<Item = &MessageId> {
        self.opening.iter().map(|(_, prompt)| prompt).chain(self.messages.iter().map(|message| &message.id))
    }

    /// Hides messages for good. What an agent that tells no steps said belongs to the prompt of its turn.
    pub fn hide(&mut self, hidden: &HashSet<MessageId>) {
        let mut prompts: HashMap<TurnId, MessageId> = self.opening.iter().cloned().collect();
        for message in self.messages.iter().filter(|m| m.role == Role::User) {
            prompts.entry(message.turn.clone()).or_insert_with(|| message.id.clone());
        }
        let nameless = MessageId::default();
        let is_hidden = |m: &Message| {
            let id = if m.id == nameless { prompts.get(&m.turn) } else { Some(&m.id) };
            id.is_some_and(|id| hidden.contains(id))
        };
        for message in self.messages.iter_mut().filter(|m| is_hidden(m)) {
            (message.hidden, message.rewound) = (true, false);
        }
    }

    /// Hides the turns that started at this place or later, as rewinds have them, and brings back those before it: see
    /// [`Tip::hidden_from`], of the view's own tip or of a later one that is looked back from.
    pub fn rewind(&mut self, hidden_from: Option<u64>) {
        let is_rewound = |m: &Message| m.started.zip(hidden_from).is_some_and(|(started, from)| from <= started);
        for message in self.messages.iter_mut().filter(|m| m.rewound || !m.hidden) {
            message.rewound = is_rewound(message);
            message.hidden = message.rewound;
        }
    }

    /// Moves the prompt that the last fact took before those that still wait.
    fn waits_no_more(&mut self, turn: &TurnId) -> Option<&mut Message> {
        let waited = self.told().saturating_sub(usize::from(self.tip.taken.is_some()));
        let at = self.messages.iter().skip(waited).position(|m| m.turn == *turn)?;
        self.messages[waited..=waited + at].rotate_right(1);
        self.messages.get_mut(waited)
    }

    fn agent_message(&self, id: MessageId, fact: &Fact) -> Message {
        let turn = self.tip.turn.as_ref();
        let started = turn.map(|turn| turn.first_seq);
        let id_of_turn = turn.map(|turn| turn.id.clone()).unwrap_or_default();
        Message { id, started, placed: Some(fact.seq), ..Message::of(Role::Agent, id_of_turn, fact.time) }
    }

    /// The turn began before this view did.
    fn is_continued(&self, turn: &OpenTurn) -> bool {
        turn.first_seq <= self.since
    }

    /// The message that new parts go to; an agent that tells no steps gets one message per turn.
    fn open_message(&mut self, fact: &Fact) -> Option<&mut Message> {
        let turn = self.tip.turn.as_ref()?;
        let (turn_id, step) = (turn.id.clone(), turn.step.as_ref().map(|step| step.message.clone()));
        let here =
            |m: &Message| m.role == Role::Agent && m.turn == turn_id && step.as_ref().is_none_or(|id| m.id == *id);
        let told = self.told();
        let at = self.messages[..told].iter().rposition(here);
        if at.is_none() {
            let continued = self.is_continued(turn);
            let message = self.agent_message(step.clone().unwrap_or_default(), fact);
            self.messages.insert(told, Message { continued, ..message });
        }
        self.messages.get_mut(at.unwrap_or(told))
    }

    fn append(&mut self, text: &str, is_same: impl Fn(&Part) -> bool, new: impl Fn() -> Part, fact: &Fact) {
        let Some(message) = self.open_message(fact) else { return };
        if !message.parts.last().is_some_and(is_same) {
            message.parts.push(new());
        }
        if let Some(Part::Text(said) | Part::Thought(said)) = message.parts.last_mut() {
            said.text.push(text);
            said.last = fact.time;
        }
    }

    fn tool(&mut self, call: &CallId, fact: &Fact) {
        let Some(tool) = self.tip.tool(call).cloned().map(Box::new) else { return };
        let Some(turn) = self.tip.turn.as_ref().map(|turn| turn.id.clone()) else { return };
        let told = self.told();
        let mut known =
            self.messages[..told].iter_mut().rev().take_while(|m| m.turn == turn).flat_map(|m| &mut m.parts);
        if let Some(known) = known.find(|part| matches!(part, Part::Tool(known) if known.call == *call)) {
            *known = Part::Tool(tool);
        } else if let Some(message) = self.open_message(fact) {
            message.parts.push(Part::Tool(tool));
        }
    }
}

impl Said {
    fn begun(part: &PartId, fact: &Fact) -> Self {
        let (first_seq, started) = (fact.seq, fact.time);
        Said { part: part.clone(), first_seq, started, last: started, text: Rope::default() }
    }
}

impl Message {
    fn of(role: Role, turn: TurnId, created: Time) -> Self {
        Message {
            id: MessageId::default(),
            turn,
            started: None,
            placed: None,
            role,
            created,
            ended: None,
            finish: None,
            parts: Vec::new(),
            context: None,
            usage: None,
            kept: None,
            stop: None,
            stopped: None,
            failure: None,
            hidden: false,
            rewound: false,
            continued: false,
        }
    }
}

fn prompt(e: &PromptQueued, time: Time) -> Message {
    Message {
        id: e.message.clone(),
        ended: Some(time),
        parts: e.content.iter().map(|block| Part::Content(block.clone())).collect(),
        context: e.context.clone(),
        ..Message::of(Role::User, e.turn.clone(), time)
    }
}

/// The message that an open turn goes on with, and what is open in it. `None` if there may be none yet.
fn going_on(turn: &OpenTurn) -> Option<Message> {
    let tools = turn.open_tools().map(|tool| Part::Tool(Box::new(tool.clone())));
    let text = turn.text.iter().map(|open| {
        let OpenText { part, first_seq, started, text, .. } = open.clone();
        let said = Said { part, first_seq, started, last: started, text };
        match open.voice {
            Voice::Text => Part::Text(said),
            Voice::Thought => Part::Thought(said),
        }
    });
    let parts: Vec<Part> = tools.chain(text).collect();
    if turn.steps == 0 && parts.is_empty() {
        return None;
    }
    let id = turn.step.as_ref().map(|step| step.message.clone()).unwrap_or_default();
    let created = turn.step.as_ref().map_or(turn.started, |step| step.started);
    let started = Some(turn.first_seq);
    Some(Message { id, parts, started, continued: true, ..Message::of(Role::Agent, turn.id.clone(), created) })
}
