//! Runs of facts as agents make them: a random script of what happens, played so that every fact is
//! where it may be (text in a step, a step in a turn, an answer after its question).

use proptest::prelude::*;
use serde_json::json;
use tolka_facts::event::*;
use tolka_facts::{
    ArtifactId, Block, CallId, Cause, Draft, Event, Json, MessageId, PartId, RequestId, SessionId, Time, ToolContent,
    ToolKind, ToolStatus, TurnId,
};

use crate::support::Run;

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Prompt(Vec<Words>),
    Drop,
    Start,
    Step,
    Say { part: u8, thought: bool, words: Words },
    Call { named: bool, kind: ToolKind },
    Change { which: usize, running: bool, title: Words, input: Words },
    Input { which: usize, words: Words },
    Output { which: usize, words: Words },
    Finish { which: usize, how: u8, words: Words },
    EndStep { finish: u8, tokens: u16 },
    End { stop: u8 },
    Permission { patterns: Vec<Words>, diff: Words },
    Answer { option: u8 },
    Ask,
    Reply { rejected: bool },
    Fail { kind: u8 },
    Steer { which: usize },
    Retry { attempt: u8, delay: u16, words: Words },
    Other(u8, Words),
}

/// A text of some kind and length; made late, so that a failing script prints small.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Words {
    Short(u8),
    Odd(u8),
    Long(u16),
    Huge,
    None,
}

impl Words {
    pub(crate) fn text(self) -> String {
        const ODD: [&str; 6] = ["é😀", "\u{2028}\u{0}\t", "\"\\\r\n", "𝔘nicode ✓ ", "  \n", "data: x\n\n"];
        match self {
            Words::Short(n) => format!("word{n} "),
            Words::Odd(n) => ODD[usize::from(n) % ODD.len()].to_owned(),
            Words::Long(n) => "long åäö ".repeat(usize::from(n)),
            Words::Huge => "huge ✓ line of text\n".repeat(2000),
            Words::None => String::new(),
        }
    }
}

fn words() -> impl Strategy<Value = Words> {
    prop_oneof![
        8 => any::<u8>().prop_map(Words::Short),
        4 => any::<u8>().prop_map(Words::Odd),
        2 => (1..300u16).prop_map(Words::Long),
        1 => Just(Words::None),
    ]
}

/// Values of over 32 KiB become blobs.
fn values() -> impl Strategy<Value = Words> {
    prop_oneof![20 => words(), 1 => Just(Words::Huge)]
}

fn kinds() -> impl Strategy<Value = ToolKind> {
    use ToolKind::*;
    prop::sample::select(vec![Read, Edit, Delete, Search, Execute, Think, Fetch, Other])
}

fn act() -> impl Strategy<Value = Act> {
    let some = any::<prop::sample::Index>().prop_map(|index| index.index(8));
    prop_oneof![
        4 => prop::collection::vec(values(), 0..4).prop_map(Act::Prompt),
        1 => Just(Act::Drop),
        3 => Just(Act::Start),
        4 => Just(Act::Step),
        24 => (0..3u8, any::<bool>(), words()).prop_map(|(part, thought, words)| Act::Say { part, thought, words }),
        8 => (any::<bool>(), kinds()).prop_map(|(named, kind)| Act::Call { named, kind }),
        6 => (some.clone(), any::<bool>(), words(), values())
            .prop_map(|(which, running, title, input)| Act::Change { which, running, title, input }),
        3 => (some.clone(), words()).prop_map(|(which, words)| Act::Input { which, words }),
        8 => (some.clone(), words()).prop_map(|(which, words)| Act::Output { which, words }),
        6 => (some.clone(), 0..6u8, values()).prop_map(|(which, how, words)| Act::Finish { which, how, words }),
        4 => (0..6u8, any::<u16>()).prop_map(|(finish, tokens)| Act::EndStep { finish, tokens }),
        3 => (0..7u8).prop_map(|stop| Act::End { stop }),
        2 => (prop::collection::vec(words(), 0..3), values())
            .prop_map(|(patterns, diff)| Act::Permission { patterns, diff }),
        2 => (0..4u8).prop_map(|option| Act::Answer { option }),
        2 => Just(Act::Ask),
        2 => any::<bool>().prop_map(|rejected| Act::Reply { rejected }),
        1 => (0..8u8).prop_map(|kind| Act::Fail { kind }),
        3 => some.prop_map(|which| Act::Steer { which }),
        6 => (1..9u8, any::<u16>(), words())
            .prop_map(|(attempt, delay, words)| Act::Retry { attempt, delay, words }),
        8 => (0..28u8, words()).prop_map(|(which, words)| Act::Other(which, words)),
    ]
}

pub(crate) fn run() -> impl Strategy<Value = Run> {
    (prop::collection::vec(act(), 0..90), prop::collection::vec(0..50_000u64, 1..20)).prop_map(|(acts, pace)| {
        let mut stage = Stage::new(pace);
        acts.into_iter().for_each(|act| stage.play(act));
        stage.run
    })
}

/// A run with facts left out, told twice and moved: nobody should make one, and nothing may break on it.
pub(crate) fn wild() -> impl Strategy<Value = Run> {
    (run(), prop::collection::vec(any::<prop::sample::Index>(), 0..80)).prop_map(|(run, picks)| {
        if run.facts.is_empty() {
            return run;
        }
        let mut facts: Vec<_> = picks.iter().map(|pick| pick.get(&run.facts).clone()).collect();
        for (seq, fact) in (1..).zip(&mut facts) {
            fact.seq = seq;
            fact.time = Time::from_micros(1_794_702_342_312_000 + seq * 700);
        }
        Run { facts, blobs: run.blobs }
    })
}

struct Stage {
    run: Run,
    pace: Vec<u64>,
    now: u64,
    made: u64,
    queue: Vec<(TurnId, MessageId)>,
    turn: Option<TurnId>,
    step: Option<MessageId>,
    tools: Vec<CallId>,
    permissions: Vec<RequestId>,
    questions: Vec<RequestId>,
    past: Vec<MessageId>,
    failed: bool,
}

impl Stage {
    fn new(pace: Vec<u64>) -> Self {
        let mut stage = Stage {
            run: Run::default(),
            pace,
            now: 1_794_702_342_312_000,
            made: 0,
            queue: Vec::new(),
            turn: None,
            step: None,
            tools: Vec::new(),
            permissions: Vec::new(),
            questions: Vec::new(),
            past: Vec::new(),
            failed: false,
        };
        stage.tell(SessionCreated {
            workspace: "/workspace".into(),
            agent: "demo".into(),
            title: "New session".into(),
            mode: None,
            model: None,
            parent: None,
        });
        stage
    }

    fn tell(&mut self, event: impl Into<Event>) {
        let seq = self.run.facts.len() as u64 + 1;
        self.now += self.pace[seq as usize % self.pace.len()];
        let mut draft = Draft::new(Cause::Agent, event);
        draft.spill(&mut |bytes| self.run.blobs.put(bytes));
        self.run.facts.push(draft.stamp(SessionId::from("ses_run"), seq, Time::from_micros(self.now)));
    }

    fn name(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}_{:04}", self.made)
    }

    fn play(&mut self, act: Act) {
        match act {
            Act::Prompt(words) => self.prompt(&words),
            Act::Drop => {
                if let Some((turn, _)) = self.queue.pop() {
                    self.tell(PromptDropped { turn });
                }
            }
            Act::Start => self.need_turn(),
            Act::Step => {
                self.end_step(1, 0);
                self.need_step();
            }
            Act::Say { part, thought, words } => {
                self.need_step();
                let (part, text) = (PartId::from(format!("prt_{part}")), words.text());
                if thought {
                    self.tell(ThoughtAppended { part, text });
                } else {
                    self.tell(TextAppended { part, text });
                }
            }
            Act::Call { named, kind } => {
                self.need_step();
                let call = CallId::from(self.name("call"));
                let name = named.then(|| "bash".to_owned());
                self.tell(ToolChanged { name, kind: Some(kind), ..change(&call) });
                self.tools.push(call);
            }
            Act::Change { which, running, title, input } => self.with_tool(which, |call| ToolChanged {
                status: running.then_some(ToolStatus::Running),
                title: Some(title.text()),
                input: Some(Json::from_value(&json!({ "command": input.text() }))),
                ..change(call)
            }),
            Act::Input { which, words } => {
                self.with_tool(which, |call| InputAppended { call: call.clone(), text: words.text() });
            }
            Act::Output { which, words } => {
                self.with_tool(which, |call| OutputAppended { call: call.clone(), text: words.text() });
            }
            Act::Finish { which, how, words } => self.finish(which, how, &words.text()),
            Act::EndStep { finish, tokens } => self.end_step(finish, tokens),
            Act::End { stop } => self.end(stop),
            Act::Permission { patterns, diff } => {
                self.need_step();
                let request = RequestId::from(self.name("per"));
                self.permissions.push(request.clone());
                self.tell(PermissionAsked {
                    request,
                    call: self.tools.last().cloned(),
                    permission: "bash".into(),
                    title: "Run it?".into(),
                    patterns: patterns.iter().map(|words| words.text()).collect(),
                    metadata: Some(Json::from_value(&json!({ "diff": diff.text() }))),
                    options: options(),
                });
            }
            Act::Answer { option } => {
                if let Some(request) = self.permissions.pop() {
                    let option = ["y", "a", "n"].get(usize::from(option)).map(|id| (*id).to_owned());
                    self.tell(PermissionAnswered { request, option, by: "test".into(), reason: None });
                }
            }
            Act::Ask => {
                self.need_step();
                let request = RequestId::from(self.name("que"));
                self.questions.push(request.clone());
                let option = QuestionOption { label: "Red".into(), description: "warm".into() };
                let question = Question {
                    question: "Which?".into(),
                    header: "Colour".into(),
                    options: vec![option],
                    multiple: true,
                };
                self.tell(QuestionAsked { request, call: None, questions: vec![question] });
            }
            Act::Reply { rejected } => {
                if let Some(request) = self.questions.pop() {
                    let answers = (!rejected).then(|| vec![vec!["Red".to_owned()]]);
                    self.tell(QuestionAnswered { request, answers, by: "test".into() });
                }
            }
            Act::Fail { kind } => self.fail(kind),
            Act::Steer { which } => self.steer(which),
            Act::Retry { attempt, delay, words } => {
                self.need_turn();
                let (attempt, delay_ms) = (u64::from(attempt), u64::from(delay));
                self.tell(RetryScheduled { attempt, delay_ms, message: words.text(), code: Some(429) });
            }
            Act::Other(which, words) => self.other(which, &words.text()),
        }
    }

    fn prompt(&mut self, words: &[Words]) {
        let (turn, message) = (TurnId::from(self.name("trn")), MessageId::from(self.name("msg")));
        let mut content: Vec<Block> = words.iter().map(|words| Block::text(words.text())).collect();
        if words.len() == 3 {
            content.push(Block::Image { data: "aGk=".into(), mime: "image/png".into(), uri: None });
            content.push(Block::Link {
                uri: "file:///workspace/a.txt".into(),
                name: "a.txt".into(),
                title: None,
                description: None,
                mime: Some("text/plain".into()),
                size: None,
            });
        }
        self.queue.push((turn.clone(), message.clone()));
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

    /// Any of those that wait: plain ones stay behind those that are meant for the turn.
    fn steer(&mut self, which: usize) {
        self.need_turn();
        if self.queue.is_empty() {
            self.prompt(&[Words::Short(1)]);
        }
        let (turn, message) = self.queue.remove(which % self.queue.len());
        self.past.push(message);
        if let Some(into) = self.turn.clone() {
            self.tell(PromptSteered { turn, into });
        }
    }

    fn need_turn(&mut self) {
        if self.turn.is_some() {
            return;
        }
        if self.queue.is_empty() {
            self.prompt(&[Words::Short(0)]);
        }
        let (turn, message) = self.queue.remove(0);
        self.past.push(message);
        self.turn = Some(turn.clone());
        self.failed = false;
        self.tell(TurnStarted { turn, checkpoint: Some("c0".into()) });
    }

    fn need_step(&mut self) {
        self.need_turn();
        if self.step.is_none() {
            let message = MessageId::from(self.name("msg"));
            self.step = Some(message.clone());
            self.past.push(message.clone());
            let model = Model { provider: "mock".into(), id: "mock-model".into() };
            self.tell(StepStarted { message, model: Some(model) });
        }
    }

    fn end_step(&mut self, finish: u8, tokens: u16) {
        use Finish::*;
        if let Some(message) = self.step.take() {
            let finish = [Stop, ToolCalls, Length, Error, Cancelled, Unknown][usize::from(finish) % 6];
            let usage = Usage { input: u64::from(tokens), output: 7, ..Usage::default() };
            self.tell(StepEnded {
                message,
                finish,
                usage: (tokens > 0).then_some(usage),
                cost: Some(0.25),
                kept: None,
            });
        }
    }

    fn end(&mut self, stop: u8) {
        use Stop::*;
        let stop =
            [EndTurn, MaxTokens, MaxTurnRequests, Refusal, Cancelled, Interrupted, Failed][usize::from(stop) % 7];
        if self.turn.is_some() && stop == Failed && !self.failed {
            self.fail(2);
        }
        if let Some(turn) = self.turn.take() {
            if stop == EndTurn {
                self.end_step(0, 3);
            }
            self.step = None;
            self.tools.clear();
            self.permissions.clear();
            self.questions.clear();
            self.tell(TurnEnded { turn, stop, usage: None, cost: None, meta: None });
        }
    }

    fn with_tool<E: Into<Event>>(&mut self, which: usize, event: impl Fn(&CallId) -> E) {
        if let Some(call) = self.tools.get(which % self.tools.len().max(1)).cloned() {
            self.tell(event(&call));
        }
    }

    fn finish(&mut self, which: usize, how: u8, words: &str) {
        if self.tools.is_empty() {
            return;
        }
        let call = self.tools.remove(which % self.tools.len());
        let diff = ToolContent::Diff { path: "/workspace/a".into(), old: None, new: words.into() };
        let shown = ToolContent::Content { block: Block::text(words) };
        let event = match how {
            0 => ToolChanged { status: Some(ToolStatus::Completed), ..change(&call) },
            1 => ToolChanged {
                status: Some(ToolStatus::Completed),
                output: Some(Json::from_value(&json!({ "output": words, "metadata": { "exit": 3 } }))),
                ..change(&call)
            },
            2 => ToolChanged { status: Some(ToolStatus::Completed), content: Some(vec![shown, diff]), ..change(&call) },
            3 => ToolChanged { status: Some(ToolStatus::Failed), error: Some(words.into()), ..change(&call) },
            4 => ToolChanged {
                status: Some(ToolStatus::Failed),
                output: Some(Json::from_value(&json!({ "error": words }))),
                ..change(&call)
            },
            _ => ToolChanged { status: Some(ToolStatus::Cancelled), ..change(&call) },
        };
        self.tell(event);
        // Nothing may come of an update after the end.
        self.tell(ToolChanged { title: Some("late".into()), ..change(&call) });
    }

    fn fail(&mut self, kind: u8) {
        use FailureKind::*;
        self.failed |= self.turn.is_some();
        self.tell(Failed {
            kind: [Agent, Auth, Provider, OutputLength, Aborted, Sandbox, Storage, Unknown][usize::from(kind) % 8],
            message: "it broke".into(),
            code: (kind == 2).then_some(529),
            retryable: kind == 2,
            details: (kind == 2).then(|| Json::from_value(&json!({ "responseBody": "overloaded" }))),
        });
    }

    fn other(&mut self, which: u8, words: &str) {
        let text = words.to_owned();
        match which {
            0 | 1 => {
                let entry = PlanEntry { content: text, status: PlanStatus::InProgress, priority: Priority::Low };
                self.tell(PlanSet { entries: vec![entry] });
            }
            2 => self.tell(ModeSet { mode: "plan".into() }),
            3 => self.tell(CommandsSet { commands: Vec::new() }),
            4 => self.tell(UsageSet {
                used: 5,
                size: 9,
                cost: Some(Cost { amount: 0.5, currency: "USD".into() }),
                subagents: None,
            }),
            5 => self.tell(UsageSet { used: 6, size: 9, cost: None, subagents: None }),
            6 => self.tell(Noticed { severity: Severity::Warning, title: text, description: None }),
            7 => self.tell(Noticed { severity: Severity::Error, title: "n".into(), description: Some(text) }),
            8 => self.tell(FileChanged {
                path: "/workspace/a".into(),
                operation: FileOperation::Create,
                before: None,
                after: None,
                added: 3,
                removed: 1,
                diff: None,
                call: None,
            }),
            9 => self.tell(SessionChanged { title: Some(text), mode: None, model: None, agent: None, archived: None }),
            10 => {
                if let Some(message) = self.past.first().cloned() {
                    self.tell(MessageHidden { message });
                }
            }
            11 => self.tell(CompactionStarted { id: "cmp_1".into(), automatic: true }),
            12 => self.tell(CompactionEnded {
                id: "cmp_1".into(),
                summary: Some(text.into()),
                error: None,
                keeps: None,
                usage: None,
                cost: None,
            }),
            13 => {
                let moment = if self.turn.is_some() { Moment::AfterTurn } else { Moment::Asked };
                let (changes, total) = (Some(changes(1)), Some(changes(2)));
                let saved = CheckpointSaved::of("c1".into(), 2);
                self.tell(CheckpointSaved { moment: Some(moment), turn: self.turn.clone(), changes, total, ..saved });
            }
            14 => self.tell(Foreign { origin: "acp".into(), what: text }),
            15 => self.tell(ArtifactSaved {
                id: ArtifactId::from("art_1"),
                kind: ArtifactKind::Markdown,
                name: "a.md".into(),
                path: "a.md".into(),
                mime: "text/markdown".into(),
                size: 3,
                preview: None,
            }),
            16 => self.tell(VersionChanged { version: "1.2.3".into() }),
            17 => self.tell(BranchChanged { directory: "/workspace".into(), branch: Some("main".into()) }),
            18 => self.tell(PtyChanged {
                id: "pty_1".into(),
                change: PtyChange::Exited,
                info: Some(Json::from_value(&json!({ "exitCode": 2 }))),
            }),
            19 => self.tell(InstanceDisposed { directory: "/workspace".into() }),
            20 => self.tell(RewindFailed { message: text }),
            21 => self.tell(FilesMoved { by: "ses_other".into(), changes: changes(1) }),
            22 => self.tell(Approved { checkpoint: "c1".into(), message: Some(text) }),
            23 => self.tell(SessionForked { from: "ses_other".into(), seq: 9, checkpoint: None }),
            24 => self.tell(CheckpointSaved::of("c1".into(), 2)),
            // Nothing is taken back while a turn runs.
            _ if self.turn.is_some() => {}
            25 => self.tell(Unrewound { changes: Some(changes(1)), kept: kept(), ..Unrewound::to("c1".into()) }),
            _ => {
                let started = self.run.facts.iter().rev().find(|fact| matches!(fact.event, Event::TurnStarted(_)));
                if let (Some(from), Some(message)) = (started.map(|fact| fact.seq), self.past.last().cloned()) {
                    let (before, total) = (Some("c2".into()), Some(changes(0)));
                    self.tell(Rewound { before, total, kept: kept(), ..Rewound::to(message, from, "c1".into()) });
                }
            }
        }
    }
}

fn kept() -> Vec<KeptFile> {
    let file = |path: &str, why| KeptFile { path: path.into(), why };
    vec![file("a", KeptWhy::Conflict), file("two\nlines", KeptWhy::NotOurs), file("two\nlines", KeptWhy::NotSaved)]
}

fn changes(lines: u64) -> Changes {
    let stat = |path: &str, operation| FileStat { path: path.into(), operation, added: lines, removed: 1, told: false };
    let files = vec![
        FileStat { told: true, ..stat("a", FileOperation::Update) },
        stat("b/c", FileOperation::Create),
        stat("d", FileOperation::Delete),
    ];
    Changes { files, count: 3, added: lines * 3, removed: 3 }
}

pub(crate) fn change(call: &CallId) -> ToolChanged {
    ToolChanged::of(call.clone())
}

fn options() -> Vec<PermissionOption> {
    let option = |id: &str, kind| PermissionOption { id: id.into(), name: id.into(), kind };
    vec![option("y", OptionKind::AllowOnce), option("a", OptionKind::AllowAlways), option("n", OptionKind::RejectOnce)]
}
