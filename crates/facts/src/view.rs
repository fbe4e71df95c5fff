//! The whole session as its facts make it: what a page draws on load and a test compares.

use serde::{Deserialize, Serialize};

use crate::event::{ArtifactSaved, Command, Failed, Stop, Usage};
use crate::{Block, CallId, Event, Fact, MessageId, PartId, Rope, Time, Tip, Tool, TurnId};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct View {
    /// What is open now; its `seq` is the position of this view.
    pub tip: Tip,
    pub messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub artifacts: Vec<ArtifactSaved>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands: Vec<Command>,
    /// What stands beside the conversation, as it was told: notices, answers, compactions, failures between turns.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asides: Vec<Fact>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Agent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub id: MessageId,
    pub turn: TurnId,
    pub role: Role,
    pub created: Time,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended: Option<Time>,
    pub parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// On the last message of a turn.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop: Option<Stop>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failed>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub hidden: bool,
}

/// Tagged from outside (`{"tool": …}`): raw JSON inside it needs the deserializer itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Content(Block),
    Text { part: PartId, text: Rope },
    Thought { part: PartId, text: Rope },
    Tool(Box<Tool>),
}

impl View {
    pub fn apply(&mut self, fact: &Fact) {
        self.tip.apply(fact);
        match &fact.event {
            Event::PromptQueued(e) => self.messages.push(Message {
                id: e.message.clone(),
                turn: e.turn.clone(),
                role: Role::User,
                created: fact.time,
                ended: Some(fact.time),
                parts: e.content.iter().map(|block| Part::Content(block.clone())).collect(),
                usage: None,
                stop: None,
                failure: None,
                hidden: false,
            }),
            Event::PromptDropped(e) => self.messages.retain(|m| m.turn != e.turn),
            Event::TextAppended(e) => self.append(
                &e.text,
                |p| matches!(p, Part::Text { part, .. } if *part == e.part),
                || Part::Text { part: e.part.clone(), text: Rope::default() },
                fact,
            ),
            Event::ThoughtAppended(e) => self.append(
                &e.text,
                |p| matches!(p, Part::Thought { part, .. } if *part == e.part),
                || Part::Thought { part: e.part.clone(), text: Rope::default() },
                fact,
            ),
            Event::StepStarted(e) => {
                let message = self.agent_message(e.message.clone(), fact);
                self.messages.push(message);
            }
            Event::StepEnded(e) => {
                if let Some(message) = self.messages.iter_mut().rev().find(|m| m.id == e.message) {
                    message.ended = Some(fact.time);
                    message.usage = e.usage;
                }
            }
            Event::ToolChanged(e) => self.tool(&e.call, fact),
            Event::InputAppended(e) => self.tool(&e.call, fact),
            Event::OutputAppended(e) => self.tool(&e.call, fact),
            Event::TurnEnded(e) => {
                let failure = self.tip.ended_turn.as_ref().and_then(|turn| turn.failure.clone());
                if let Some(message) = self.messages.iter_mut().rev().find(|m| m.turn == e.turn) {
                    message.ended.get_or_insert(fact.time);
                    message.stop = Some(e.stop);
                    message.failure = failure;
                }
            }
            Event::Noticed(_)
            | Event::CompactionEnded(_)
            | Event::PermissionAnswered(_)
            | Event::QuestionAnswered(_) => {
                self.asides.push(fact.clone());
            }
            Event::Failed(_) if self.tip.turn.is_none() => self.asides.push(fact.clone()),
            Event::ArtifactSaved(e) => self.artifacts.push(e.clone()),
            Event::CommandsSet(e) => self.commands.clone_from(&e.commands),
            Event::MessageHidden(e) => {
                self.messages.iter_mut().filter(|m| m.id == e.message).for_each(|m| m.hidden = true);
            }
            _ => {}
        }
    }

    fn agent_message(&self, id: MessageId, fact: &Fact) -> Message {
        Message {
            id,
            turn: self.tip.turn.as_ref().map(|turn| turn.id.clone()).unwrap_or_default(),
            role: Role::Agent,
            created: fact.time,
            ended: None,
            parts: Vec::new(),
            usage: None,
            stop: None,
            failure: None,
            hidden: false,
        }
    }

    /// The message that new parts go to; an agent that tells no steps gets one message per turn.
    fn open_message(&mut self, fact: &Fact) -> Option<&mut Message> {
        let turn = self.tip.turn.as_ref()?;
        let (turn_id, step) = (turn.id.clone(), turn.step.as_ref().map(|step| step.message.clone()));
        let here =
            |m: &Message| m.role == Role::Agent && m.turn == turn_id && step.as_ref().is_none_or(|id| m.id == *id);
        if !self.messages.last().is_some_and(here) {
            if let Some(at) = self.messages.iter().rposition(here) {
                return self.messages.get_mut(at);
            }
            let message = self.agent_message(step.clone().unwrap_or_default(), fact);
            self.messages.push(message);
        }
        self.messages.last_mut()
    }

    fn append(&mut self, text: &str, is_same: impl Fn(&Part) -> bool, new: impl Fn() -> Part, fact: &Fact) {
        let Some(message) = self.open_message(fact) else { return };
        if !message.parts.last().is_some_and(is_same) {
            message.parts.push(new());
        }
        if let Some(Part::Text { text: rope, .. } | Part::Thought { text: rope, .. }) = message.parts.last_mut() {
            rope.push(text);
        }
    }

    fn tool(&mut self, call: &CallId, fact: &Fact) {
        let Some(tool) = self.tip.tool(call).cloned().map(Box::new) else { return };
        let Some(turn) = self.tip.turn.as_ref().map(|turn| turn.id.clone()) else { return };
        // Prompts that wait for their turn stand between; before the turn's own prompt there is nothing of it.
        let since = self.messages.iter_mut().rev().take_while(|m| m.role != Role::User || m.turn != turn);
        let mut known = since.filter(|m| m.turn == turn).flat_map(|m| &mut m.parts);
        if let Some(known) = known.find(|part| matches!(part, Part::Tool(known) if known.call == *call)) {
            *known = Part::Tool(tool);
        } else if let Some(message) = self.open_message(fact) {
            message.parts.push(Part::Tool(tool));
        }
    }
}
