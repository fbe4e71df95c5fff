//! Random journals: plausible ones, with the disorder that agents bring (repeats, late updates, tools left
//! open, output before the call was told).

use proptest::prelude::*;
use tolka_facts::event::{
    ArtifactKind, ArtifactSaved, CompactionEnded, Failed, FailureKind, Finish, InputAppended, ModeSet, OutputAppended,
    PermissionAsked, PlanEntry, PlanSet, PlanStatus, Priority, PromptSteered, RetryScheduled, StepEnded, StepStarted,
    Stop, TextAppended, ThoughtAppended, ToolChanged, TurnEnded, TurnStarted, UsageSet,
};
use tolka_facts::{
    ArtifactId, Block, CallId, Event, Fact, Location, MessageId, PartId, RequestId, ToolContent, ToolKind, ToolStatus,
    TurnId,
};

use crate::{Session, change, created, json, queued};

#[derive(Debug, Clone)]
enum Op {
    Turn,
    End(Stop),
    /// Told as it is, in or out of a turn.
    Any(Box<Event>),
    /// Only in a turn: nobody talks outside of one.
    Inside(Box<Event>),
}

pub(crate) fn journal() -> impl Strategy<Value = Vec<Fact>> {
    (any::<bool>(), prop::collection::vec(op(), 0..40)).prop_map(|(is_child, ops)| {
        let mut session = Session::default();
        session.tell(created(is_child.then_some("ses_0")));
        let (mut turns, mut open) = (0, None);
        for op in ops {
            match op {
                Op::Turn if open.is_none() => {
                    turns += 1;
                    let turn = format!("trn_{turns}");
                    session.tell(queued(&turn, "Do it"));
                    session.tell(TurnStarted { turn: TurnId::from(turn.as_str()), checkpoint: None });
                    open = Some(TurnId::from(turn));
                }
                Op::Turn => {}
                Op::End(stop) => {
                    if let Some(turn) = open.take() {
                        session.tell(TurnEnded { turn, stop, usage: None, cost: None, meta: None });
                    }
                }
                Op::Any(event) => {
                    session.tell(*event);
                }
                Op::Inside(event) if open.is_some() => {
                    session.tell(*event);
                }
                Op::Inside(_) => {}
            }
        }
        session.facts
    })
}

fn op() -> impl Strategy<Value = Op> {
    let any_event = |event: Event| Op::Any(Box::new(event));
    let inside = |event: Event| Op::Inside(Box::new(event));
    prop_oneof![
        4 => Just(Op::Turn),
        2 => stop().prop_map(Op::End),
        8 => (part(), text()).prop_map(move |(part, text)| inside(TextAppended { part, text }.into())),
        4 => (part(), text()).prop_map(move |(part, text)| inside(ThoughtAppended { part, text }.into())),
        16 => tool_changed().prop_map(move |tool| any_event(tool.into())),
        6 => (call(), 0..3000_usize).prop_map(move |(call, n)| {
            any_event(OutputAppended { call, text: "x".repeat(n) }.into())
        }),
        1 => call().prop_map(move |call| any_event(InputAppended { call, text: "{".into() }.into())),
        4 => other().prop_map(any_event),
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
    (0..4_u8).prop_map(|n| CallId::from(format!("call_{n}")))
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

fn tool_changed() -> impl Strategy<Value = ToolChanged> {
    let status = prop::sample::select(vec![
        None,
        Some(ToolStatus::Pending),
        Some(ToolStatus::Running),
        Some(ToolStatus::Running),
        Some(ToolStatus::Completed),
        Some(ToolStatus::Failed),
        Some(ToolStatus::Cancelled),
    ]);
    let kind = prop::sample::select(vec![None, Some(ToolKind::Execute), Some(ToolKind::Edit), Some(ToolKind::Other)]);
    let input = prop::sample::select(vec![None, json("null"), json("{}"), json(r#"{"command":"ls"}"#), json("[1]")]);
    let output = prop::sample::select(vec![
        None,
        None,
        json(r#"{"output":"a","metadata":{"exit":0}}"#),
        json(r#"{"exit_code":1}"#),
        json(r#"{"error":"no"}"#),
        json(r#""plain""#),
        json("null"),
    ]);
    let content = prop::sample::select(vec![
        None,
        Some(Vec::new()),
        Some(vec![ToolContent::Content { block: Block::text("said") }, ToolContent::Terminal { id: "t".into() }]),
        Some(vec![ToolContent::Diff { path: "/a/b.ts".into(), old: None, new: "x".into() }]),
    ]);
    let rest = (prop::option::of("[a-z ]{0,4}"), any::<bool>(), any::<bool>());
    (call(), status, kind, input, output, content, rest).prop_map(
        |(call, status, kind, input, output, content, (title, has_error, has_place))| ToolChanged {
            name: kind.map(|_| "bash".into()),
            kind,
            title,
            status,
            input,
            output,
            content,
            locations: has_place.then(|| vec![Location { path: "/a/b.ts".into(), line: Some(3) }]),
            error: has_error.then(|| "went wrong".into()),
            ..change(call.as_str())
        },
    )
}

fn other() -> impl Strategy<Value = Event> {
    let entry = PlanEntry { content: "x".into(), status: PlanStatus::InProgress, priority: Priority::High };
    let (kind, message) = (FailureKind::Agent, "down".to_owned());
    let finish = Finish::Stop;
    prop::sample::select(vec![
        PlanSet { entries: vec![entry] }.into(),
        ModeSet { mode: "plan".into() }.into(),
        UsageSet { used: 7, size: 9, cost: None, subagents: None }.into(),
        CompactionEnded { id: "c".into(), summary: None, error: None, keeps: None, usage: None, cost: None }.into(),
        Failed { kind, message, code: Some(1), retryable: false, details: json("[1]") }.into(),
        ArtifactSaved {
            id: ArtifactId::from("art_1"),
            kind: ArtifactKind::Code,
            name: "a".into(),
            path: "a".into(),
            mime: "text/plain".into(),
            size: 1,
            preview: None,
        }
        .into(),
        PermissionAsked {
            request: RequestId::from("per_1"),
            call: Some(CallId::from("call_1")),
            permission: "bash".into(),
            title: "Run".into(),
            patterns: Vec::new(),
            metadata: None,
            options: Vec::new(),
        }
        .into(),
        StepStarted { message: MessageId::from("msg_1"), model: None }.into(),
        StepEnded { message: MessageId::from("msg_1"), finish, usage: None, cost: None, kept: None }.into(),
        queued("trn_later", "And now").into(),
        PromptSteered { turn: TurnId::from("trn_later"), into: TurnId::from("trn_1") }.into(),
        RetryScheduled { attempt: 1, delay_ms: 2000, message: "overloaded".into(), code: Some(529) }.into(),
    ])
}
