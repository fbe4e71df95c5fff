//! Random journals: plausible ones, with the disorder that agents bring (repeats, late updates, tools left open, output
//! before the call was told, parts and steps taken up again).

use proptest::prelude::*;
use tolka_facts::event::*;
use tolka_facts::{
    ArtifactId, BlobRef, Block, CallId, Event, Hash, Location, MessageId, PartId, RequestId, SessionId, ToolContent,
    ToolKind, ToolStatus, TurnId,
};

use crate::{Session, created, json, queued};

#[derive(Debug, Clone)]
enum Op {
    Turn,
    End(Stop, Option<Usage>),
    /// Told as it is, in or out of a turn.
    Any(Box<Event>),
    Ask(PermissionAsked),
    /// Of the oldest question that waits, or of none.
    Answer(Option<String>, Option<String>),
    Wait(u16),
}

/// A journal that may stop anywhere.
pub(crate) fn journal() -> impl Strategy<Value = Session> {
    prop::collection::vec(op(), 0..60).prop_map(play)
}

/// A journal whose last turn has ended.
pub(crate) fn ended() -> impl Strategy<Value = Session> {
    (prop::collection::vec(op(), 0..60), stop()).prop_map(|(mut ops, stop)| {
        ops.push(Op::End(stop, None));
        play(ops)
    })
}

/// No turn follows another, nor an error a turn, in the same millisecond: by that the judge knows a second end.
const BETWEEN: u64 = 1000;

fn play(ops: Vec<Op>) -> Session {
    let mut session = Session { now: crate::START, ..Session::default() };
    session.tell(created());
    let (mut made, mut open, mut asks) = (0, None, Vec::new());
    for op in ops {
        match op {
            Op::Turn if open.is_none() => {
                made += 1;
                let turn = format!("trn_{made}");
                session.now += BETWEEN;
                session.tell(queued(&turn));
                session.tell(TurnStarted { turn: TurnId::from(turn.as_str()), checkpoint: None });
                open = Some(TurnId::from(turn));
            }
            Op::Turn => {}
            Op::End(stop, usage) => {
                if let Some(turn) = open.take() {
                    session.tell(TurnEnded { turn, stop, usage, cost: None, meta: None });
                    asks.clear();
                }
            }
            Op::Any(event) => {
                if open.is_none() {
                    session.now += BETWEEN;
                }
                session.tell(*event);
            }
            Op::Ask(ask) => {
                made += 1;
                let request = RequestId::from(format!("per_{made}"));
                asks.push(request.clone());
                session.tell(PermissionAsked { request, ..ask });
            }
            Op::Answer(option, reason) => {
                let request = asks.pop().unwrap_or_else(|| RequestId::from("per_none"));
                session.tell(PermissionAnswered { request, option, by: "you".into(), reason });
            }
            Op::Wait(micros) => session.now += u64::from(micros),
        }
    }
    session
}

fn op() -> impl Strategy<Value = Op> {
    let told = |event: Event| Op::Any(Box::new(event));
    let usage = prop::option::of((0..5_u64, 0..5_u64))
        .prop_map(|some| some.map(|(input, output)| Usage { input, output, cache_read: 3, ..Usage::default() }));
    prop_oneof![
        6 => Just(Op::Turn),
        2 => (stop(), usage.clone()).prop_map(|(stop, usage)| Op::End(stop, usage)),
        6 => any::<u16>().prop_map(Op::Wait),
        8 => (part(), text()).prop_map(move |(part, text)| told(TextAppended { part, text }.into())),
        6 => (part(), text()).prop_map(move |(part, text)| told(ThoughtAppended { part, text }.into())),
        3 => message().prop_map(move |message| told(StepStarted { message, model: None }.into())),
        3 => (message(), finish(), usage).prop_map(move |(message, finish, usage)| {
            told(StepEnded { message, finish, usage, cost: None, kept: None }.into())
        }),
        16 => tool_changed().prop_map(move |tool| told(tool.into())),
        3 => written().prop_map(move |tool| told(tool.into())),
        6 => (call(), output()).prop_map(move |(call, text)| told(OutputAppended { call, text }.into())),
        1 => call().prop_map(move |call| told(InputAppended { call, text: "{".into() }.into())),
        3 => file_changed().prop_map(move |changed| told(changed.into())),
        2 => artifact().prop_map(move |saved| told(saved.into())),
        4 => asked().prop_map(Op::Ask),
        2 => (
            prop::sample::select(vec![None, Some("yes"), Some("no"), Some("other")]),
            prop::option::of("[a-z]{0,3}"),
        )
            .prop_map(|(option, reason)| Op::Answer(option.map(str::to_owned), reason)),
        4 => other().prop_map(told),
    ]
}

fn stop() -> impl Strategy<Value = Stop> {
    use Stop::*;
    prop::sample::select(vec![EndTurn, MaxTokens, MaxTurnRequests, Refusal, Cancelled, Failed, Interrupted])
}

fn finish() -> impl Strategy<Value = Finish> {
    use Finish::*;
    prop::sample::select(vec![Stop, ToolCalls, Length, Error, Cancelled, Unknown])
}

fn part() -> impl Strategy<Value = PartId> {
    (0..3_u8).prop_map(|n| PartId::from(format!("prt_{n}")))
}

fn message() -> impl Strategy<Value = MessageId> {
    (0..3_u8).prop_map(|n| MessageId::from(format!("msg_{n}")))
}

fn call() -> impl Strategy<Value = CallId> {
    (0..4_u8).prop_map(|n| CallId::from(format!("call_{n}")))
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

fn output() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..900_usize).prop_map(|n| "x\n".repeat(n)),
        (0..300_usize).prop_map(|n| "åäö ".repeat(n)),
        Just("  \n".to_owned()),
        Just("ok 1\r\nok 2".to_owned()),
    ]
}

fn tool_changed() -> impl Strategy<Value = ToolChanged> {
    use ToolStatus::*;
    let status = prop::sample::select(vec![
        None,
        Some(Pending),
        Some(Running),
        Some(Running),
        Some(Completed),
        Some(Failed),
        Some(Cancelled),
    ]);
    let named = prop::sample::select(vec![
        (None, None),
        (None, None),
        (None, Some(ToolKind::Edit)),
        (Some("bash"), Some(ToolKind::Execute)),
        (Some("write"), Some(ToolKind::Edit)),
        (Some("write_file"), None),
        (Some("read"), Some(ToolKind::Read)),
        (Some("mcp__house__lamp"), Some(ToolKind::Other)),
        (Some(""), None),
    ]);
    let input = prop::sample::select(vec![
        None,
        None,
        json("null"),
        json("{}"),
        json(r#"{"command":"ls", "n": 1.50}"#),
        json("[1]"),
        json(r#"{"filePath":"/project/a.ts","content":"hello","n":1.50}"#),
        json(r#"{"file_path":"b.ts","filePath":"c.ts"}"#),
    ]);
    let result = prop::sample::select(vec![
        None,
        None,
        json(r#"{"output":"a","metadata":{"exists":false}}"#),
        json(r#"{"exit_code":1}"#),
        json(r#"{"error":"no"}"#),
        json(r#""plain""#),
        json("null"),
    ]);
    let content = prop::sample::select(vec![
        None,
        None,
        Some(Vec::new()),
        Some(vec![ToolContent::Content { block: Block::text("said") }, ToolContent::Terminal { id: "t".into() }]),
        Some(vec![ToolContent::Diff { path: "/project/b.ts".into(), old: None, new: "x".into() }]),
        Some(vec![ToolContent::Diff { path: "/elsewhere/b.ts".into(), old: Some("a".into()), new: "x".into() }]),
        Some(blocks().into_iter().map(|block| ToolContent::Content { block }).collect()),
    ]);
    let rest = (prop::option::of("[a-z ]{0,4}"), prop::sample::select(vec![None, None, Some(""), Some("went wrong")]));
    (call(), status, named, input, result, content, rest).prop_map(
        |(call, status, (name, kind), input, output, content, (title, error))| ToolChanged {
            name: name.map(str::to_owned),
            kind,
            title,
            status,
            input,
            output,
            content,
            locations: Some(vec![Location { path: "/project/b.ts".into(), line: Some(3) }]),
            error: error.map(Into::into),
            ..ToolChanged::of(call)
        },
    )
}

/// A file written and nothing shown of it: by that alone a reader of the call knows of the file.
fn written() -> impl Strategy<Value = ToolChanged> {
    let names = prop::sample::select(vec!["write", "Write", "write_file", "edit"]);
    let status = prop::sample::select(vec![ToolStatus::Running, ToolStatus::Completed, ToolStatus::Failed]);
    (call(), names, status).prop_map(|(call, name, status)| ToolChanged {
        name: Some(name.into()),
        status: Some(status),
        input: json(r#"{"filePath":"/project/w.ts","content":"hello"}"#),
        ..ToolChanged::of(call)
    })
}

/// One of each kind.
pub(crate) fn blocks() -> Vec<Block> {
    let resource = |text: Option<&str>, blob: Option<&str>| Block::Resource {
        uri: "file:///a".into(),
        mime: text.map(|_| "text/plain".into()),
        text: text.map(Into::into),
        blob: blob.map(Into::into),
    };
    vec![
        Block::text("Hello world"),
        Block::Image { data: "aGk=".into(), mime: "image/png".into(), uri: None },
        Block::Audio { data: "aGk=".into(), mime: "audio/wav".into() },
        resource(Some("contents"), None),
        resource(None, Some("aGk=")),
        Block::Link {
            uri: "file:///b".into(),
            name: "b".into(),
            title: None,
            description: None,
            mime: None,
            size: Some(7),
        },
    ]
}

fn file_changed() -> impl Strategy<Value = FileChanged> {
    let operations = vec![FileOperation::Create, FileOperation::Update, FileOperation::Delete];
    (prop::option::of(call()), prop::sample::select(operations), prop::option::of(0..9_u64)).prop_map(
        |(call, operation, size)| FileChanged {
            path: "/project/src/a.rs".into(),
            operation,
            before: None,
            after: size.map(|size| BlobRef { hash: Hash::of(b"gone"), size }),
            added: 1,
            removed: 0,
            call,
            diff: None,
        },
    )
}

fn artifact() -> impl Strategy<Value = ArtifactSaved> {
    use ArtifactKind::*;
    let kinds = vec![File, Image, WebApp, NextjsApp, Markdown, Document, Presentation, Spreadsheet, Pdf, Code];
    let paths = vec!["outputs/web/", "outputs/a b.csv", "outputs/å.XLSX", "t.tsv", "README"];
    (prop::sample::select(kinds), prop::sample::select(paths), any::<bool>()).prop_map(|(kind, path, has_preview)| {
        ArtifactSaved {
            id: ArtifactId::from("art_1"),
            kind,
            name: "It".into(),
            path: path.into(),
            mime: "text/html".into(),
            size: 4096,
            preview: has_preview.then(|| "/preview".into()),
        }
    })
}

pub(crate) fn options() -> Vec<PermissionOption> {
    let option = |id: &str, kind| PermissionOption { id: id.into(), name: id.to_uppercase(), kind };
    vec![option("no", OptionKind::RejectOnce), option("yes", OptionKind::AllowOnce)]
}

fn asked() -> impl Strategy<Value = PermissionAsked> {
    (prop::option::of(call()), any::<bool>()).prop_map(|(call, has_options)| PermissionAsked {
        request: RequestId::default(),
        call,
        permission: "bash".into(),
        title: "Run it?".into(),
        patterns: vec!["ls *".into()],
        metadata: None,
        options: if has_options { options() } else { Vec::new() },
    })
}

fn other() -> impl Strategy<Value = Event> {
    let entry = |content: &str, status, priority| PlanEntry { content: content.into(), status, priority };
    let plan = vec![
        entry("Look\ntwice", PlanStatus::Completed, Priority::High),
        entry("", PlanStatus::InProgress, Priority::Medium),
        entry("2. Leap", PlanStatus::Pending, Priority::Low),
        entry("Dropped", PlanStatus::Cancelled, Priority::Low),
    ];
    let failed = |code| Failed {
        kind: FailureKind::Agent,
        message: "down".into(),
        code,
        retryable: false,
        details: json("[1]"),
    };
    let question =
        Question { question: "Which?".into(), header: "Colour".into(), options: Vec::new(), multiple: false };
    prop::sample::select(vec![
        PlanSet { entries: plan }.into(),
        PlanSet { entries: Vec::new() }.into(),
        ModeSet { mode: "plan".into() }.into(),
        failed(None).into(),
        failed(Some(-32000)).into(),
        UsageSet { used: 7, size: 9, cost: None, subagents: None }.into(),
        CommandsSet { commands: Vec::new() }.into(),
        Noticed { severity: Severity::Info, title: "Look".into(), description: None }.into(),
        CompactionStarted { id: "c".into(), automatic: true }.into(),
        CompactionEnded { id: "c".into(), summary: None, error: None, keeps: None, usage: None, cost: None }.into(),
        QuestionAsked { request: RequestId::from("que_1"), call: None, questions: vec![question] }.into(),
        QuestionAnswered { request: RequestId::from("que_1"), answers: None, by: "you".into() }.into(),
        PromptQueued { ..queued("trn_later") }.into(),
        PromptDropped { turn: TurnId::from("trn_later") }.into(),
        SessionChanged { title: Some("x".into()), mode: Some("plan".into()), model: None, agent: None, archived: None }
            .into(),
        CheckpointSaved::of("c".into(), 1).into(),
        CheckpointSaved {
            moment: Some(Moment::AfterTurn),
            changes: Some(changed("made/by/a/command")),
            ..CheckpointSaved::of("c".into(), 1)
        }
        .into(),
        RewindFailed { message: "full".into() }.into(),
        Approved { checkpoint: "c".into(), message: None }.into(),
        FilesMoved { by: SessionId::from("ses_2"), changes: changed("moved") }.into(),
        SessionForked { from: SessionId::from("ses_2"), seq: 3, checkpoint: None }.into(),
        Rewound::to(MessageId::from("msg_1"), 1, "c".into()).into(),
        Unrewound::to("c".into()).into(),
        MessageHidden { message: MessageId::from("msg_1") }.into(),
        Foreign { origin: "acp".into(), what: "new".into() }.into(),
        PromptSteered { turn: TurnId::from("trn_later"), into: TurnId::from("trn_1") }.into(),
        RetryScheduled { attempt: 1, delay_ms: 2000, message: "overloaded".into(), code: Some(529) }.into(),
    ])
}

fn changed(path: &str) -> Changes {
    let stat = FileStat { path: path.into(), operation: FileOperation::Update, added: 1, removed: 0, told: false };
    Changes { files: vec![stat], count: 1, added: 1, removed: 0 }
}
