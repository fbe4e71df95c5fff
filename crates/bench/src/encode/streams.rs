//! Streams of facts to be told: laps that can be told for ever, and turns that grow without end.

use std::ops::Range;

use anyhow::Result;
use serde_json::json;
use tolka_dialect::Dialect;
use tolka_dialect::opencode::Profile;
use tolka_facts::event::{
    FileChanged, FileOperation, Finish, InputAppended, OptionKind, OutputAppended, PermissionAnswered, PermissionAsked,
    PermissionOption, PlanEntry, PlanSet, PlanStatus, Priority, PromptQueued, SessionCreated, StepEnded, StepStarted,
    Stop, TextAppended, ThoughtAppended, ToolChanged, TurnEnded, TurnStarted, Usage, UsageSet,
};
use tolka_facts::{Block, CallId, Draft, Event, Fact, Json, SessionId, Time, ToolContent, ToolKind, ToolStatus};

const SESSION: &str = "ses_e23678758ffenHI9SvU6UHo4PN";
const TURN: &str = "trn_1dc989e8e001n4Y0cnd48zJzaw";
const MESSAGE: &str = "msg_1dc989e8e001n4Y0cnd48zJzaw";
/// Like what models give out at once: some four words.
const PIECE: &str = " and then looks \"twice\"";
const LINE: &str = "test session::turns::a_prompt_waits_until_the_turn_before_it_ends ... ok\n";
const BEGAN: u64 = 1_794_702_342_312;

/// What real agents were heard to say, as their session stamped it; and one session in which everything happens.
const RECORDED: [&str; 9] = [
    include_str!("../../../../tests/golden/claude-rich.tolka.jsonl"),
    include_str!("../../../../tests/golden/claude-perm.tolka.jsonl"),
    include_str!("../../../../tests/golden/codex.tolka.jsonl"),
    include_str!("../../../../tests/golden/copilot.tolka.jsonl"),
    include_str!("../../../../tests/golden/fast-agent.tolka.jsonl"),
    include_str!("../../../../tests/golden/gemini.tolka.jsonl"),
    include_str!("../../../../tests/golden/kimi.tolka.jsonl"),
    include_str!("../../../../tests/golden/opencode-rich.tolka.jsonl"),
    include_str!("../../../../tests/golden/showcase.tolka.jsonl"),
];

/// Whole turns, told again and again: an encoder forgets a turn when it ends, so every lap costs the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// A long answer.
    Words,
    /// A turn of our own agent: thoughts, plan, tools with input, output and diffs, a permission, an answer.
    Coding,
    /// Turns of other agents, with what they sent beside each fact.
    Recorded,
}

impl Stream {
    pub(crate) const ALL: [Stream; 3] = [Stream::Words, Stream::Coding, Stream::Recorded];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Stream::Words => "words",
            Stream::Coding => "coding",
            Stream::Recorded => "recorded",
        }
    }

    pub(crate) fn laps(self) -> Result<Laps> {
        let drafts = match self {
            Stream::Words => words(1000),
            Stream::Coding => coding(),
            Stream::Recorded => recorded()?,
        };
        Ok(Laps { lap: drafts.into_iter().map(|draft| stamp(draft, 0)).collect(), seq: 0 })
    }
}

/// A turn in which one thing grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growing {
    /// An answer of 100 bytes a fact.
    Text,
    /// What a command prints, 100 bytes a fact.
    Output,
    /// Calls, one after the other, each of ten facts.
    Calls,
}

impl Growing {
    pub(crate) const ALL: [Growing; 3] = [Growing::Text, Growing::Output, Growing::Calls];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Growing::Text => "text",
            Growing::Output => "live output",
            Growing::Calls => "calls",
        }
    }

    /// The facts early and late in the turn that are held against each other. Where the document wants the whole text with
    /// every piece, a hundredth of it is enough to see that.
    pub(crate) fn windows(self, dialect: Dialect) -> [Range<u64>; 2] {
        match (self, dialect) {
            (Growing::Text, Dialect::OpenCode(Profile::Documented)) => [100..200, 1_000..2_000],
            _ => [1_000..11_000, 90_000..100_000],
        }
    }

    /// Fact number `n` of a session that never ends its turn.
    pub(crate) fn fact(self, n: u64) -> Fact {
        if n <= BEGINNING {
            return beginning().into_iter().nth(n as usize - 1).map_or_else(|| stamp(created(), n), |d| stamp(d, n));
        }
        let text = || PIECE.repeat(5)[..100].to_owned();
        let draft = match self {
            Growing::Text => Draft::agent(TextAppended { part: "prt_1".into(), text: text() }),
            Growing::Output if n == BEGINNING + 1 => {
                running(&"call_1".into(), "bash", ToolKind::Execute, json!({ "command": "cargo test" }))
            }
            Growing::Output => Draft::agent(OutputAppended { call: "call_1".into(), text: text() }),
            Growing::Calls => {
                let call = CallId::from(format!("toolu_01Qi9hVtSdC7yM2x{:08}", n / 10));
                match n % 10 {
                    0 => running(&call, "bash", ToolKind::Execute, json!({ "command": "cargo test" })),
                    9 => completed(&call, json!({ "output": LINE, "metadata": { "exit": 0 } }), None),
                    _ => Draft::agent(OutputAppended { call, text: LINE.to_owned() }),
                }
            }
        };
        stamp(draft, n)
    }
}

/// The session, the prompt, the turn and its first step.
const BEGINNING: u64 = 4;

fn beginning() -> Vec<Draft> {
    let mut drafts = vec![created()];
    drafts.extend(started());
    drafts
}

/// Laps of a stream, each fact with its own place and time.
#[derive(Debug)]
pub(crate) struct Laps {
    lap: Vec<Fact>,
    seq: u64,
}

impl Laps {
    pub(crate) fn len(&self) -> usize {
        self.lap.len()
    }

    pub(crate) fn created(&mut self) -> Fact {
        self.seq = 1;
        stamp(created(), 1)
    }

    pub(crate) fn next(&mut self) -> &Fact {
        let at = (self.seq as usize - 1) % self.lap.len();
        self.seq += 1;
        let fact = &mut self.lap[at];
        fact.seq = self.seq;
        fact.time = time(self.seq);
        fact
    }
}

fn time(seq: u64) -> Time {
    Time::from_millis(BEGAN + seq * 5)
}

fn stamp(draft: Draft, seq: u64) -> Fact {
    draft.stamp(SessionId::from(SESSION), seq, time(seq))
}

fn created() -> Draft {
    Draft::client(SessionCreated {
        workspace: "/home/ada/project".into(),
        agent: "tolka".into(),
        title: "New session".into(),
        mode: None,
        model: None,
        parent: None,
    })
}

fn started() -> [Draft; 3] {
    let content = vec![Block::text("Make the tests of the session quicker.")];
    let (key, agent, model, context) = (None, None, None, None);
    let prompt =
        PromptQueued { turn: TURN.into(), message: "msg_0".into(), content, key, agent, model, context, steers: None };
    [
        Draft::client(prompt),
        Draft::tolka(TurnStarted { turn: TURN.into(), checkpoint: None }),
        Draft::agent(StepStarted { message: MESSAGE.into(), model: None }),
    ]
}

fn ended() -> [Draft; 2] {
    let usage = Some(Usage { input: 9000, output: 1200, reasoning: 300, cache_read: 8000, cache_write: 0 });
    [
        Draft::agent(StepEnded { message: MESSAGE.into(), finish: Finish::Stop, usage, cost: Some(0.02), kept: None }),
        Draft::agent(TurnEnded { turn: TURN.into(), stop: Stop::EndTurn, usage, cost: Some(0.02), meta: None }),
    ]
}

fn words(pieces: usize) -> Vec<Draft> {
    let mut drafts = Vec::from(started());
    drafts.extend((0..pieces).map(|_| text("prt_1dc989e8e001n4Y0cnd48zJzaw")));
    drafts.extend(ended());
    drafts
}

fn text(part: &str) -> Draft {
    Draft::agent(TextAppended { part: part.into(), text: PIECE.to_owned() })
}

fn coding() -> Vec<Draft> {
    let mut drafts = Vec::from(started());
    let thought = || Draft::agent(ThoughtAppended { part: "prt_thought".into(), text: PIECE.to_owned() });
    drafts.extend((0..60).map(|_| thought()));
    drafts.push(Draft::agent(PlanSet { entries: plan() }));
    for (n, file) in ["turns.rs", "queue.rs", "saving.rs"].into_iter().enumerate() {
        drafts.extend(reads(&CallId::from(format!("toolu_01Qi9hVtSdC7yM2x{n:08}")), file));
        drafts.extend((0..10).map(|_| text(file)));
    }
    drafts.extend(runs(&CallId::from("toolu_01Qi9hVtSdC7yM2x00000007")));
    drafts.extend(edits(&CallId::from("toolu_01Qi9hVtSdC7yM2x00000008")));
    drafts.push(Draft::agent(UsageSet { used: 21_000, size: 200_000, cost: None, subagents: None }));
    drafts.push(Draft::agent(PlanSet { entries: plan() }));
    drafts.extend((0..150).map(|_| text("prt_1dc989e8e001n4Y0cnd48zJzaw")));
    drafts.extend(ended());
    drafts
}

fn reads(call: &CallId, file: &str) -> Vec<Draft> {
    let block = Block::text(LINE.repeat(20));
    vec![
        changed(call, |e| (e.name, e.title, e.kind) = (Some("read".into()), Some("Read".into()), Some(ToolKind::Read))),
        running(call, "read", ToolKind::Read, json!({ "filePath": format!("/home/ada/project/src/{file}") })),
        completed(call, json!({ "output": LINE.repeat(20) }), Some(vec![ToolContent::Content { block }])),
    ]
}

/// A command whose input is streamed and that prints as it runs.
fn runs(call: &CallId) -> Vec<Draft> {
    let piece = |text: &str| Draft::agent(InputAppended { call: call.clone(), text: text.to_owned() });
    let mut drafts = vec![piece("{\"command\": \"cargo "), piece("test -p session"), piece("\"}")];
    drafts.push(running(call, "bash", ToolKind::Execute, json!({ "command": "cargo test -p session" })));
    drafts.extend((0..80).map(|_| Draft::agent(OutputAppended { call: call.clone(), text: LINE.to_owned() })));
    drafts.push(completed(call, json!({ "output": LINE.repeat(80), "metadata": { "exit": 0 } }), None));
    drafts
}

/// An edit that a person is asked about.
fn edits(call: &CallId) -> Vec<Draft> {
    let (path, old, new) = ("/home/ada/project/src/turns.rs", LINE.repeat(10), LINE.repeat(12));
    let input = json!({ "filePath": path, "oldString": old, "newString": new });
    let option = |id: &str, kind| PermissionOption { id: id.into(), name: id.into(), kind };
    let asked = PermissionAsked {
        request: "per_1".into(),
        call: Some(call.clone()),
        permission: "edit".into(),
        title: "Edit turns.rs".into(),
        patterns: vec!["src/turns.rs".into()],
        metadata: None,
        options: vec![option("once", OptionKind::AllowOnce), option("reject", OptionKind::RejectOnce)],
    };
    let answered =
        PermissionAnswered { request: "per_1".into(), option: Some("once".into()), by: "ada".into(), reason: None };
    let file = FileChanged {
        path: path.into(),
        operation: FileOperation::Update,
        before: None,
        after: None,
        added: 2,
        removed: 0,
        call: Some(call.clone()),
        diff: None,
    };
    let diff = ToolContent::Diff { path: path.into(), old: Some(old.into()), new: new.into() };
    vec![
        changed(call, |e| {
            (e.name, e.kind, e.title) = (Some("edit".into()), Some(ToolKind::Edit), Some("Edit".into()));
            (e.input, e.content) = (Some(Json::from_value(&input)), Some(vec![diff]));
        }),
        Draft::agent(asked),
        Draft::client(answered),
        running(call, "edit", ToolKind::Edit, input),
        Draft::agent(file),
        completed(call, json!({ "output": "Edited." }), None),
    ]
}

fn changed(call: &CallId, with: impl FnOnce(&mut ToolChanged)) -> Draft {
    let mut change = ToolChanged::of(call.clone());
    with(&mut change);
    Draft::agent(change)
}

fn running(call: &CallId, name: &str, kind: ToolKind, input: serde_json::Value) -> Draft {
    changed(call, |e| {
        (e.name, e.kind, e.title) = (Some(name.into()), Some(kind), Some(format!("{name} something")));
        (e.status, e.input) = (Some(ToolStatus::Running), Some(Json::from(input)));
    })
}

fn completed(call: &CallId, output: serde_json::Value, content: Option<Vec<ToolContent>>) -> Draft {
    changed(call, |e| {
        (e.status, e.output, e.content) = (Some(ToolStatus::Completed), Some(Json::from(output)), content);
    })
}

fn plan() -> Vec<PlanEntry> {
    let entry = |content: &str, status| PlanEntry { content: content.into(), priority: Priority::Medium, status };
    vec![
        entry("Read the tests of the session", PlanStatus::Completed),
        entry("Find what they wait for", PlanStatus::InProgress),
        entry("Wait on the thing itself", PlanStatus::Pending),
    ]
}

fn recorded() -> Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    for line in RECORDED.iter().flat_map(|told| told.lines()) {
        let fact = Fact::from_json(line.as_bytes())?;
        // The session is made once; the showcase ends with what the server says of itself.
        if !fact.session.is_server() && !matches!(fact.event, Event::SessionCreated(_)) {
            drafts.push(Draft { cause: fact.cause, event: fact.event, raw: fact.raw });
        }
    }
    Ok(drafts)
}
