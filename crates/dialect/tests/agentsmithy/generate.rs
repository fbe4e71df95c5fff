//! Random journals: plausible ones, with the disorder that agents bring (repeats, late updates, calls side by side, calls
//! left open, empty pieces, edits that nobody shows).

use proptest::prelude::*;
use tolka_facts::event::{
    CompactionEnded, CompactionStarted, Failed, FailureKind, FileChanged, FileOperation, Finish, InputAppended,
    ModeSet, Noticed, OptionKind, OutputAppended, PermissionAsked, PermissionOption, PromptSteered, Question,
    QuestionAsked, QuestionOption, RetryScheduled, Severity, StepEnded, StepStarted, Stop, TextAppended,
    ThoughtAppended, ToolChanged, TurnStarted, UsageSet,
};
use tolka_facts::{
    Block, Body, CallId, Event, Location, MessageId, PartId, RequestId, ToolContent, ToolKind, ToolStatus, TurnId,
};

use crate::{CHECKPOINT, Session, change, json, queued};

#[derive(Debug, Clone)]
enum Op {
    Turn(Vec<String>, bool),
    End(Stop),
    Tell(Box<Event>),
    File { path: &'static str, before: Option<String>, after: Option<String>, call: Option<CallId> },
}

/// Turns that all have an end.
pub(crate) fn whole_turns() -> impl Strategy<Value = Session> {
    journal().prop_map(|mut session| {
        let (mut starts, mut ends) = (0, 0);
        for fact in &session.facts {
            starts += usize::from(matches!(fact.event, Event::TurnStarted(_)));
            ends += usize::from(matches!(fact.event, Event::TurnEnded(_)));
        }
        if starts > ends {
            session.end(Stop::EndTurn);
        }
        session
    })
}

pub(crate) fn journal() -> impl Strategy<Value = Session> {
    prop::collection::vec(op(), 0..40).prop_map(|ops| {
        let mut session = Session::new();
        let (mut turns, mut is_open) = (0, false);
        for op in ops {
            match op {
                Op::Turn(texts, has_checkpoint) if !is_open => {
                    turns += 1;
                    is_open = true;
                    let turn = format!("trn_{turns}");
                    // A turn whose prompt nobody told is possible as well.
                    if !texts.is_empty() {
                        session.tell(queued(&turn, texts.iter().map(|text| Block::text(text.as_str())).collect()));
                    }
                    let checkpoint = has_checkpoint.then(|| CHECKPOINT.to_owned());
                    session.tell(TurnStarted { turn: TurnId::from(turn), checkpoint });
                }
                Op::End(stop) if is_open => {
                    is_open = false;
                    session.end(stop);
                }
                Op::Turn(..) | Op::End(_) => {}
                Op::Tell(event) => drop(session.tell(*event)),
                Op::File { path, before, after, call } => {
                    session.file(path, before.as_deref(), after.as_deref());
                    if let Some(Event::FileChanged(e)) = session.facts.last_mut().map(|fact| &mut fact.event) {
                        e.call = call;
                    }
                }
            }
        }
        session
    })
}

fn op() -> impl Strategy<Value = Op> {
    let tell = |event: Event| Op::Tell(Box::new(event));
    prop_oneof![
        5 => (prop::collection::vec(text(), 0..3), any::<bool>()).prop_map(|(texts, has)| Op::Turn(texts, has)),
        1 => stop().prop_map(Op::End),
        8 => (part(), text()).prop_map(move |(part, text)| tell(TextAppended { part, text }.into())),
        4 => (part(), text()).prop_map(move |(part, text)| tell(ThoughtAppended { part, text }.into())),
        16 => tool_changed().prop_map(move |tool| tell(tool.into())),
        2 => call().prop_map(move |call| tell(OutputAppended { call, text: "out".into() }.into())),
        1 => call().prop_map(move |call| tell(InputAppended { call, text: "{".into() }.into())),
        3 => file(),
        6 => other().prop_map(tell),
    ]
}

fn stop() -> impl Strategy<Value = Stop> {
    prop::sample::select(vec![
        Stop::EndTurn,
        Stop::MaxTokens,
        Stop::MaxTurnRequests,
        Stop::Refusal,
        Stop::Cancelled,
        Stop::Failed,
        Stop::Interrupted,
    ])
}

fn part() -> impl Strategy<Value = PartId> {
    (0..3_u8).prop_map(|n| PartId::from(format!("prt_{n}")))
}

fn call() -> impl Strategy<Value = CallId> {
    (0..5_u8).prop_map(|n| CallId::from(format!("call_{n}")))
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a.py", "./src/b c.rs", "/home/me/project/a.py", "/etc/x", "q\"\n.txt"])
}

fn file() -> impl Strategy<Value = Op> {
    let side = || prop::option::of("[ab\n\r\0]{0,8}");
    (path(), side(), side(), prop::option::of(call())).prop_map(|(path, before, after, call)| Op::File {
        path,
        before,
        after,
        call,
    })
}

/// A tool's name and an input for it, in the spellings of several agents.
fn tool() -> impl Strategy<Value = (Option<&'static str>, ToolKind, &'static str)> {
    prop::sample::select(vec![
        (Some("bash"), ToolKind::Execute, r#"{"command":"ls","timeout":120500,"description":"Look"}"#),
        (Some("shell"), ToolKind::Execute, r#"{"command":["bash","-lc","ls -l"],"workdir":"/srv","timeout_ms":1}"#),
        (None, ToolKind::Execute, r#"{"cmd":"ls", "x": 1.50}"#),
        (Some("read"), ToolKind::Read, r#"{"filePath":"a.py","offset":3}"#),
        (Some("write"), ToolKind::Edit, r#"{"filePath":"a.py","content":"x\n"}"#),
        (Some("write"), ToolKind::Edit, r#"{"content":"x\n"}"#),
        (Some("edit"), ToolKind::Edit, r#"{"file_path":"a.py","old_string":"a\n","new_string":"","replace_all":true}"#),
        (Some("edit"), ToolKind::Edit, r#"{"filePath":"a.py","oldString":"a\n=======","newString":"b"}"#),
        (Some("edit"), ToolKind::Edit, r#"{"path":"a.py","diff":"*** Begin Patch"}"#),
        (
            Some("multiedit"),
            ToolKind::Edit,
            r#"{"file_path":"a","edits":[{"old_string":"a","new_string":"b"},{"old_string":"","new_string":"\n"}]}"#,
        ),
        (Some("delete"), ToolKind::Delete, r#"{"path":"./src/b c.rs"}"#),
        (Some("list"), ToolKind::Search, r#"{"path":".","ignore":["x"]}"#),
        (Some("grep"), ToolKind::Search, r#"{"pattern":"x","regex":"y","include":"*.rs"}"#),
        (Some("web_fetch"), ToolKind::Fetch, r#"{"url":"https://example.com","path":"p"}"#),
        (Some("websearch"), ToolKind::Fetch, r#"{"query":"q","numResults":5}"#),
        (Some("request_permission"), ToolKind::Other, r#"{"why":"not"}"#),
        (Some("todowrite"), ToolKind::Other, "{}"),
        (Some("glob"), ToolKind::Search, "[1]"),
        (None, ToolKind::Other, "null"),
    ])
}

fn tool_changed() -> impl Strategy<Value = ToolChanged> {
    let status = prop::sample::select(vec![
        None,
        Some(ToolStatus::Pending),
        Some(ToolStatus::Running),
        Some(ToolStatus::Running),
        Some(ToolStatus::Completed),
        Some(ToolStatus::Completed),
        Some(ToolStatus::Failed),
        Some(ToolStatus::Cancelled),
    ]);
    let output = prop::sample::select(vec![None, json(r#"{"output":"a","metadata":{"exists":false}}"#), json("null")]);
    let diff =
        |old: Option<&str>| ToolContent::Diff { path: "a.py".into(), old: old.map(Body::from), new: "y\n".into() };
    let content = prop::sample::select(vec![
        None,
        Some(vec![ToolContent::Content { block: Block::text("said") }]),
        Some(vec![diff(None)]),
        Some(vec![diff(Some("a\n")), diff(Some("x"))]),
    ]);
    let place = prop::option::of(Just(vec![Location { path: "a.py".into(), line: Some(3) }]));
    (call(), tool(), any::<bool>(), status, output, content, place).prop_map(
        |(call, (name, kind, input), is_named, status, output, content, locations)| ToolChanged {
            name: name.filter(|_| is_named).map(str::to_owned),
            kind: is_named.then_some(kind),
            input: json(input).filter(|_| is_named),
            status,
            output,
            content,
            locations,
            ..change(call.as_str())
        },
    )
}

fn other() -> impl Strategy<Value = Event> {
    let (kind, message) = (FailureKind::Agent, "down".to_owned());
    let option = PermissionOption { id: "once".into(), name: "Allow".into(), kind: OptionKind::AllowOnce };
    let choice = QuestionOption { label: "Red".into(), description: String::new() };
    let question =
        Question { question: "Which?".into(), header: "Colour".into(), options: vec![choice], multiple: true };
    let told = |diff: &str| FileChanged {
        path: "a.py".into(),
        operation: FileOperation::Update,
        before: None,
        after: None,
        added: 1,
        removed: 1,
        call: None,
        diff: Some(Body::from(diff)),
    };
    prop::sample::select(vec![
        CompactionStarted { id: "c1".into(), automatic: true }.into(),
        CompactionEnded { id: "c1".into(), summary: None, error: None, keeps: None, usage: None, cost: None }.into(),
        CompactionStarted { id: "c2".into(), automatic: false }.into(),
        CompactionEnded {
            id: "c2".into(),
            summary: None,
            error: Some("no".into()),
            keeps: None,
            usage: None,
            cost: None,
        }
        .into(),
        Failed { kind, message, code: Some(1), retryable: false, details: None }.into(),
        told("--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a\n+b").into(),
        told("nonsense").into(),
        PermissionAsked {
            request: RequestId::from("per_1"),
            call: Some(CallId::from("call_1")),
            permission: "bash".into(),
            title: "Run".into(),
            patterns: vec!["ls *".into()],
            metadata: None,
            options: vec![option],
        }
        .into(),
        QuestionAsked { request: RequestId::from("que_1"), call: None, questions: vec![question] }.into(),
        StepStarted { message: MessageId::from("msg_1"), model: None }.into(),
        StepEnded { message: MessageId::from("msg_1"), finish: Finish::Stop, usage: None, cost: None, kept: None }
            .into(),
        ModeSet { mode: "plan".into() }.into(),
        UsageSet { used: 7, size: 9, cost: None, subagents: None }.into(),
        Noticed { severity: Severity::Info, title: "Hm".into(), description: None }.into(),
        queued("trn_later", vec![Block::text("And now")]).into(),
        PromptSteered { turn: TurnId::from("trn_later"), into: TurnId::from("trn_1") }.into(),
        RetryScheduled { attempt: 1, delay_ms: 2000, message: "overloaded".into(), code: Some(529) }.into(),
    ])
}
