//! Whatever a session went through, its fork shows what it shows, up to ids.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tolka_facts::event::{
    Finish, MessageHidden, Moment, Noticed, PromptDropped, PromptQueued, PromptSteered, Rewound, Severity, StepEnded,
    StepStarted, Stop, TextAppended, ThoughtAppended, ToolChanged, TurnEnded, TurnStarted, Unrewound,
};
use tolka_facts::{Block, Draft, Event, Fact, MessageId, SessionId, Time, Tip, ToolStatus, TurnId, View};
use tolka_journal::{Append, Journal, Mark};
use tolka_session::ForkRequest;

use super::created;
use crate::World;

/// The same numbers every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

#[derive(Clone)]
struct Turn {
    start: u64,
    /// The first is the prompt's.
    messages: Vec<MessageId>,
}

/// Writes down what could have happened.
struct Story {
    session: SessionId,
    dice: Dice,
    facts: Vec<Arc<Fact>>,
    tip: Tip,
    marks: Vec<(String, u64)>,
    names: u64,
    /// Those that can be seen, or seen again.
    turns: Vec<Turn>,
    /// From where each of the rewinds hides, the last one last.
    rewinds: Vec<u64>,
}

impl Story {
    fn new(seed: u64) -> Self {
        let session = SessionId::from(format!("ses_parent{seed}"));
        let (dice, facts, tip, marks) = (Dice(seed), Vec::new(), Tip::default(), Vec::new());
        let mut story = Story { session, dice, facts, tip, marks, names: 0, turns: Vec::new(), rewinds: Vec::new() };
        story.tell(created());
        story
    }

    fn tell(&mut self, draft: Draft) -> u64 {
        let seq = self.tip.seq + 1;
        let fact = draft.stamp(self.session.clone(), seq, Time::from_millis(1_700_000_000_000 + seq / 3));
        self.tip.apply(&fact);
        self.marks.extend(Mark::of(&fact, &self.tip).map(|mark| (mark.to_string(), seq)));
        self.facts.push(Arc::new(fact));
        seq
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        // Some have the shape of ours, and some were made up.
        match self.names % 3 {
            0 => format!("{kind}-{}", self.names),
            _ => format!("{kind}_{:012x}{:014}", self.names, self.names),
        }
    }

    fn queue(&mut self, steers: Option<TurnId>) -> PromptQueued {
        let (turn, message) = (TurnId::from(self.name("trn")), MessageId::from(self.name("msg")));
        let content = vec![Block::text(format!("prompt {message}"))];
        let key = Some(format!("key {message}"));
        let queued = PromptQueued { turn, message, content, key, agent: None, model: None, context: None, steers };
        self.tell(Draft::client(queued.clone()));
        queued
    }

    /// The next prompt that waits, or a new one.
    fn turn(&mut self) {
        let next = self.tip.queue.front().map(|queued| queued.prompt.clone());
        let prompt = next.unwrap_or_else(|| self.queue(None));
        let from = self.rewinds.drain(..).next_back().unwrap_or(u64::MAX);
        let hidden = self.turns.split_off(self.turns.partition_point(|turn| turn.start < from));
        for message in hidden.into_iter().flat_map(|turn| turn.messages) {
            self.tell(Draft::tolka(MessageHidden { message }));
        }
        let checkpoint = Some("c".repeat(40));
        let start = self.tell(Draft::tolka(TurnStarted { turn: prompt.turn.clone(), checkpoint }));
        let mut messages = vec![prompt.message.clone()];
        for _ in 0..self.dice.roll(3) {
            self.step(&prompt.turn, &mut messages);
        }
        let ended = TurnEnded { turn: prompt.turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None };
        self.tell(Draft::agent(ended));
        self.turns.push(Turn { start, messages });
    }

    fn step(&mut self, turn: &TurnId, messages: &mut Vec<MessageId>) {
        let message = MessageId::from(self.name("msg"));
        messages.push(message.clone());
        self.tell(Draft::agent(StepStarted { message: message.clone(), model: None }));
        for _ in 0..self.dice.roll(4) {
            let (part, text) = (self.name("prt").into(), format!("words {}", self.names));
            match self.dice.roll(4) {
                0 => self.tell(Draft::agent(ThoughtAppended { part, text })),
                1 => self.call(),
                2 => {
                    self.queue(None);
                    0
                }
                _ => self.tell(Draft::agent(TextAppended { part, text })),
            };
        }
        let ended = StepEnded { message, finish: Finish::Stop, usage: None, cost: None, kept: None };
        self.tell(Draft::agent(ended));
        if self.dice.roll(3) == 0 {
            let steering = self.queue(Some(turn.clone()));
            messages.push(steering.message);
            self.tell(Draft::agent(PromptSteered { turn: steering.turn, into: turn.clone() }));
        }
    }

    fn call(&mut self) -> u64 {
        let call = format!("call {}", self.dice.roll(1000));
        for status in [ToolStatus::Running, ToolStatus::Completed] {
            self.tell(Draft::agent(ToolChanged { status: Some(status), ..ToolChanged::of(call.as_str().into()) }));
        }
        0
    }

    /// Of the conversation, to before one of the turns: back, or forth to one that is hidden.
    fn rewind(&mut self) {
        if self.turns.is_empty() {
            return;
        }
        let to = &self.turns[self.dice.roll(self.turns.len() as u64) as usize];
        let (message, from) = (to.messages[0].clone(), to.start);
        self.tell(Draft::tolka(Rewound::to(message, from, "c".repeat(40))));
        self.rewinds.push(from);
    }

    fn unrewind(&mut self) {
        if self.rewinds.pop().is_some() {
            self.tell(Draft::tolka(Unrewound::to("c".repeat(40))));
        }
    }

    fn go_on(&mut self) {
        match self.dice.roll(10) {
            0 | 1 => self.rewind(),
            2 => self.unrewind(),
            3 => {
                let dropped = self.queue(None);
                self.tell(Draft::client(PromptDropped { turn: dropped.turn }));
            }
            4 => {
                let (severity, title) = (Severity::Info, "a notice".to_owned());
                self.tell(Draft::tolka(Noticed { severity, title, description: None }));
                let mut saved = tolka_facts::event::CheckpointSaved::of("d".repeat(40), 1);
                saved.moment = Some(Moment::BeforeRewind);
                self.tell(Draft::tolka(saved));
            }
            _ => self.turn(),
        }
    }

    async fn write(&self, journal: &dyn Journal) {
        let (facts, marks, head) = (self.facts.clone(), self.marks.clone(), Some(self.tip.head.clone()));
        journal.append(Append { facts, marks, head, ..Append::default() }).await.unwrap();
    }

    /// What is seen of it before a fact: of turns that started before, those that were not taken back by then.
    fn seen(&self, before: u64) -> View {
        let mut view = View::default();
        let mut rewinds = Vec::new();
        for fact in self.facts.iter().filter(|fact| fact.seq < before) {
            view.apply(fact);
            match &fact.event {
                Event::Rewound(e) => rewinds.push(e.from.unwrap()),
                Event::Unrewound(_) => _ = rewinds.pop(),
                Event::TurnStarted(_) => rewinds.clear(),
                _ => {}
            }
        }
        view.forget_waiting();
        let starts: HashMap<TurnId, u64> = self
            .facts
            .iter()
            .filter_map(|fact| match &fact.event {
                Event::TurnStarted(e) => Some((e.turn.clone(), fact.seq)),
                _ => None,
            })
            .collect();
        let is_rewound = |turn: &TurnId| rewinds.last().is_some_and(|from| *from <= starts[turn]);
        view.messages.retain(|message| !message.hidden && !is_rewound(&message.turn));
        view
    }
}

/// Messages with their ids in the order of their telling; places are others in a fork.
fn plain(view: &View) -> Value {
    let mut names = HashMap::new();
    let mut shown = serde_json::to_value(&view.messages).unwrap();
    rename(&mut shown, &mut names);
    shown
}

fn rename(value: &mut Value, names: &mut HashMap<String, usize>) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, names)),
        Value::Object(fields) => {
            // Places differ from session to session.
            for place in ["first_seq", "placed", "started", "stopped"] {
                fields.remove(place);
            }
            for (key, value) in fields {
                if let ("id" | "turn" | "message", Value::String(id)) = (key.as_str(), &*value) {
                    let next = names.len();
                    *value = Value::from(*names.entry(id.clone()).or_insert(next));
                } else {
                    rename(value, names);
                }
            }
        }
        _ => {}
    }
}

async fn view(world: &World, session: &SessionId) -> View {
    let mut view = View::default();
    world.facts(session).await.iter().for_each(|fact| view.apply(fact));
    view
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_shows_what_could_be_seen_at_its_point() {
    let world = World::new();
    let mut messages = 0;
    for seed in 1..=40 {
        let mut story = Story::new(seed);
        for _ in 0..25 {
            story.go_on();
        }
        story.write(&*world.journal).await;
        let expected = story.seen(u64::MAX);
        messages += expected.messages.len();
        let fork = world.desk.fork(&story.session, ForkRequest::default()).await.unwrap();
        assert_eq!(plain(&view(&world, &fork.head.id).await), plain(&expected), "all of {seed}");
        assert_eq!((fork.queue.len(), fork.rewinds.len(), fork.base), (0, 0, None), "{seed}");

        // Any prompt or answer of a turn, whatever became of it later.
        let starts = story.facts.iter().filter_map(|fact| match &fact.event {
            Event::TurnStarted(_) => Some(fact.seq),
            _ => None,
        });
        for start in starts.collect::<Vec<_>>().into_iter().step_by(5) {
            let ends = story.facts.iter().find(|fact| fact.seq > start && matches!(fact.event, Event::TurnEnded(_)));
            let inside = story.facts.iter().filter(|fact| (start..ends.unwrap().seq).contains(&fact.seq));
            let steps = inside.filter_map(|fact| match &fact.event {
                Event::StepStarted(e) => Some(e.message.clone()),
                _ => None,
            });
            let Event::TurnStarted(e) = &story.facts[start as usize - 1].event else { unreachable!() };
            let prompt = story.facts.iter().find_map(|fact| match &fact.event {
                Event::PromptQueued(queued) if queued.turn == e.turn => Some(queued.message.clone()),
                _ => None,
            });
            for message in steps.chain(prompt) {
                let request = ForkRequest { before: Some(message.clone()), ..ForkRequest::default() };
                let fork = world.desk.fork(&story.session, request).await.unwrap();
                let shown = plain(&view(&world, &fork.head.id).await);
                assert_eq!(shown, plain(&story.seen(start)), "{seed} before {message} at {start}");
                assert_eq!(fork.head.parent.unwrap().at, Some(start - 1));
            }
        }
    }
    assert!(messages > 300, "the stories are of something: {messages}");
}
