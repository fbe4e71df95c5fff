//! Small sessions in which prompts, turns, steps, text and tools come in every lawful order.

use proptest::prelude::*;
use tolka_facts::event::*;
use tolka_facts::{
    Block, CallId, Draft, Event, Fact, Json, MessageId, PartId, RequestId, SessionId, Time, ToolKind, ToolStatus,
    TurnId,
};

#[derive(Debug, Clone)]
enum Act {
    Prompt(String),
    Drop,
    Steer,
    Retry(u8),
    Turn,
    Step,
    Say(u8, bool, String),
    Tool(u8, Option<u8>, String),
    Live(u8, bool, String),
    Ask(bool),
    Answer,
    Beside(u8, String),
    EndStep,
    End,
    /// Back to before one of the turns, of those that are hidden too.
    Rewind(u8, Gone),
    Unrewind,
    Settle(u8),
}

/// What goes back.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Gone {
    Files,
    Conversation,
    Both,
    /// Nothing: it failed.
    Nothing,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => ".{0,8}".prop_map(Act::Prompt),
        1 => Just(Act::Drop),
        1 => Just(Act::Steer),
        1 => any::<u8>().prop_map(Act::Retry),
        2 => Just(Act::Turn),
        2 => Just(Act::Step),
        8 => (0..3u8, any::<bool>(), ".{0,8}").prop_map(|(part, thought, text)| Act::Say(part, thought, text)),
        8 => (0..4u8, prop::option::of(0..5u8), ".{0,8}").prop_map(|(call, status, text)| Act::Tool(call, status, text)),
        4 => (0..4u8, any::<bool>(), ".{0,8}").prop_map(|(call, output, text)| Act::Live(call, output, text)),
        2 => any::<bool>().prop_map(Act::Ask),
        1 => Just(Act::Answer),
        3 => (0..6u8, ".{0,8}").prop_map(|(which, text)| Act::Beside(which, text)),
        1 => Just(Act::EndStep),
        2 => Just(Act::End),
        2 => (any::<u8>(), gone()).prop_map(|(turn, gone)| Act::Rewind(turn, gone)),
        2 => Just(Act::Unrewind),
        2 => (0..5u8).prop_map(Act::Settle),
    ]
}

fn gone() -> impl Strategy<Value = Gone> {
    prop_oneof![Just(Gone::Files), Just(Gone::Conversation), Just(Gone::Both), Just(Gone::Nothing)]
}

pub(crate) fn run() -> impl Strategy<Value = Vec<Fact>> {
    prop::collection::vec(act(), 0..60).prop_map(|acts| {
        let mut stage = Stage::default();
        acts.into_iter().for_each(|act| stage.play(act));
        stage.facts
    })
}

#[derive(Default)]
struct Stage {
    facts: Vec<Fact>,
    made: u32,
    queue: Vec<TurnId>,
    turn: Option<TurnId>,
    step: Option<MessageId>,
    asks: Vec<(RequestId, bool)>,
    /// Where turns started, with their prompts and answers.
    turns: Vec<(u64, Vec<MessageId>)>,
    /// Of the prompts that wait.
    prompts: Vec<(TurnId, MessageId)>,
    /// What can be taken back: from where each hides.
    rewinds: Vec<Option<u64>>,
}

impl Stage {
    fn tell(&mut self, event: impl Into<Event>) {
        let seq = self.facts.len() as u64 + 1;
        let time = Time::from_micros(1_794_702_342_312_000 + seq * 400);
        self.facts.push(Draft::agent(event).stamp(SessionId::from("ses_1"), seq, time));
    }

    fn name(&mut self) -> String {
        self.made += 1;
        self.made.to_string()
    }

    fn need_turn(&mut self) {
        if self.turn.is_none() {
            if self.queue.is_empty() {
                self.play(Act::Prompt("go".to_owned()));
            }
            let turn = self.queue.remove(0);
            self.turn = Some(turn.clone());
            self.bury();
            let checkpoint = self.made.is_multiple_of(2).then(|| format!("c{}", self.made));
            self.tell(TurnStarted { turn: turn.clone(), checkpoint });
            self.turns.push((self.facts.len() as u64, Vec::new()));
            self.joins(&turn);
        }
    }

    /// The prompt is part of the turn that runs.
    fn joins(&mut self, turn: &TurnId) {
        let at = self.prompts.iter().position(|(queued, _)| queued == turn).unwrap();
        let (_, message) = self.prompts.remove(at);
        self.turns.last_mut().unwrap().1.push(message);
    }

    /// What is hidden stays so: it is said of every message before the next turn starts.
    fn bury(&mut self) {
        let from = self.rewinds.drain(..).flatten().next_back().unwrap_or(u64::MAX);
        let hidden: Vec<MessageId> =
            self.turns.iter().filter(|(started, _)| *started >= from).flat_map(|(_, of)| of.clone()).collect();
        hidden.into_iter().for_each(|message| self.tell(MessageHidden { message }));
        self.turns.retain(|(started, _)| *started < from);
    }

    fn rewind(&mut self, which: u8, gone: Gone) {
        self.play(Act::End);
        let Some((started, messages)) = self.turns.get(usize::from(which) % self.turns.len().max(1)) else { return };
        let talks = matches!(gone, Gone::Conversation | Gone::Both);
        let (from, message) = (Some(*started).filter(|_| talks), messages.first().filter(|_| talks).cloned());
        let checkpoint = (gone != Gone::Conversation).then(|| format!("c{started}"));
        self.tell(RewindStarted {
            checkpoint: checkpoint.clone(),
            message: message.clone(),
            before: Some("now".into()),
            from,
            overwrite: [Overwrite::Nothing, Overwrite::All, Overwrite::These(vec!["a".into()])][usize::from(which) % 3]
                .clone(),
            undoes: None,
            resets: false,
        });
        if gone == Gone::Nothing {
            return self.tell(RewindFailed { message: "full".into() });
        }
        self.rewinds.push(from);
        self.tell(Rewound {
            checkpoint,
            message,
            files: vec!["a".into()],
            before: Some("now".into()),
            after: Some("then".into()),
            from,
            kept: vec![KeptFile { path: "b".into(), why: KeptWhy::Conflict }],
            changes: Some(changes(1)),
            total: Some(changes(u64::from(which))),
            resets: which.is_multiple_of(7),
        });
    }

    fn settle(&mut self, how: u8) {
        let saved = |moment, turn| CheckpointSaved {
            moment: Some(moment),
            turn,
            changes: Some(changes(2)),
            total: Some(changes(3)),
            ..CheckpointSaved::of("saved".into(), 3)
        };
        match how {
            0 => match self.turn.clone() {
                Some(turn) => self.tell(saved(Moment::AfterTurn, Some(turn))),
                None => self.tell(saved(Moment::BeforeRewind, None)),
            },
            1 => self.tell(saved(Moment::Asked, None)),
            2 => self.tell(Approved { checkpoint: "saved".into(), message: None }),
            3 => self.tell(FilesMoved { by: SessionId::from("ses_2"), changes: changes(2) }),
            _ => self.tell(SessionForked { from: SessionId::from("ses_0"), seq: 7, checkpoint: Some("saved".into()) }),
        }
    }

    fn need_step(&mut self) {
        self.need_turn();
        if self.step.is_none() {
            let message = MessageId::from(format!("msg_{}", self.name()));
            self.step = Some(message.clone());
            self.turns.last_mut().unwrap().1.push(message.clone());
            self.tell(StepStarted { message, model: None });
        }
    }

    fn play(&mut self, act: Act) {
        match act {
            Act::Prompt(text) => {
                let turn = TurnId::from(format!("trn_{}", self.name()));
                let message = MessageId::from(format!("msg_{}", self.name()));
                self.queue.push(turn.clone());
                self.prompts.push((turn.clone(), message.clone()));
                let content = vec![Block::text(text)];
                self.tell(PromptQueued {
                    turn,
                    message,
                    content,
                    key: None,
                    agent: None,
                    model: None,
                    context: None,
                    steers: None,
                });
            }
            Act::Drop => {
                if let Some(turn) = self.queue.pop() {
                    self.prompts.retain(|(queued, _)| *queued != turn);
                    self.tell(PromptDropped { turn });
                }
            }
            Act::Steer => {
                if let Some(into) = self.turn.clone()
                    && let Some(turn) = self.queue.pop()
                {
                    self.joins(&turn);
                    self.tell(PromptSteered { turn, into });
                }
            }
            Act::Retry(n) => {
                self.need_turn();
                let (attempt, delay_ms, message) = (n.into(), u64::from(n) * 1000, "overloaded".to_owned());
                self.tell(RetryScheduled { attempt, delay_ms, message, code: Some(529) });
            }
            Act::Turn => self.need_turn(),
            Act::Step => {
                self.play(Act::EndStep);
                self.need_step();
            }
            Act::Say(part, thought, text) => {
                self.need_step();
                let part = PartId::from(format!("prt_{part}"));
                if thought {
                    self.tell(ThoughtAppended { part, text });
                } else {
                    self.tell(TextAppended { part, text });
                }
            }
            Act::Tool(call, status, text) => {
                use ToolStatus::*;
                self.need_step();
                let status = status.map(|status| [Pending, Running, Completed, Failed, Cancelled][usize::from(status)]);
                self.tell(ToolChanged {
                    kind: Some(ToolKind::Execute),
                    status,
                    input: Some(Json::of(&text)),
                    ..ToolChanged::of(CallId::from(format!("call_{call}")))
                });
            }
            Act::Live(call, output, text) => {
                self.need_step();
                let call = CallId::from(format!("call_{call}"));
                if output {
                    self.tell(OutputAppended { call, text });
                } else {
                    self.tell(InputAppended { call, text });
                }
            }
            Act::Ask(question) => {
                self.need_step();
                let request = RequestId::from(format!("ask_{}", self.name()));
                self.asks.push((request.clone(), question));
                if question {
                    self.tell(QuestionAsked { request, call: None, questions: Vec::new() });
                } else {
                    let (permission, title) = ("bash".to_owned(), "ls".to_owned());
                    let (patterns, options) = (Vec::new(), Vec::new());
                    self.tell(PermissionAsked {
                        request,
                        call: None,
                        permission,
                        title,
                        patterns,
                        metadata: None,
                        options,
                    });
                }
            }
            Act::Answer => match self.asks.pop() {
                Some((request, true)) => self.tell(QuestionAnswered { request, answers: None, by: "me".into() }),
                Some((request, false)) => {
                    self.tell(PermissionAnswered { request, option: None, by: "me".into(), reason: None });
                }
                None => {}
            },
            Act::Beside(which, text) => self.beside(which, text),
            Act::EndStep => {
                if let Some(message) = self.step.take() {
                    let usage = Usage { input: 5, output: 1, ..Usage::default() };
                    self.tell(StepEnded {
                        message,
                        finish: Finish::Stop,
                        usage: Some(usage),
                        cost: None,
                        kept: Some(Json::of(&5)),
                    });
                }
            }
            Act::End => {
                self.play(Act::EndStep);
                if let Some(turn) = self.turn.take() {
                    self.asks.clear();
                    self.tell(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta: None });
                }
            }
            Act::Rewind(which, gone) => self.rewind(which, gone),
            Act::Unrewind => {
                if self.turn.is_none() && self.rewinds.pop().is_some() {
                    let (kept, total) = (Vec::new(), Some(changes(4)));
                    self.tell(Unrewound { kept, total, ..Unrewound::to("now".into()) });
                }
            }
            Act::Settle(how) => self.settle(how),
        }
    }

    fn beside(&mut self, which: u8, text: String) {
        match which {
            0 => self.tell(ModeSet { mode: text }),
            1 => self.tell(UsageSet {
                used: 1,
                size: 2,
                cost: Some(Cost { amount: 0.1, currency: text }),
                subagents: None,
            }),
            2 => self.tell(Noticed { severity: Severity::Info, title: text, description: None }),
            3 => self.tell(Failed {
                kind: FailureKind::Agent,
                message: text,
                code: None,
                retryable: false,
                details: None,
            }),
            4 => self.tell(SessionChanged { title: Some(text), mode: None, model: None, agent: None, archived: None }),
            _ => self.tell(PlanSet {
                entries: vec![PlanEntry { content: text, status: PlanStatus::Pending, priority: Priority::Low }],
            }),
        }
    }
}

fn changes(lines: u64) -> Changes {
    let stat =
        |path: &str, operation| FileStat { path: path.into(), operation, added: lines, removed: 1, told: lines > 1 };
    let files =
        vec![stat("a", FileOperation::Update), stat("b", FileOperation::Create), stat("c", FileOperation::Delete)];
    Changes { files, count: lines + 2, added: lines, removed: 3 }
}
