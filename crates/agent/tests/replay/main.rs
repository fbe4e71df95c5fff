//! Recordings of agents, played in a hall that only listens. Each real one is checked against a transcript
//! that a reader can follow, and against what must hold of every playing.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

mod demo;
mod hall;
mod own;
mod pace;

use std::collections::HashSet;

use hall::{ACP, Hall, Person, path, replay};
use serde_json::Value;
use serde_json::value::RawValue;
use tolka_agent::{Ended, Pace, Recording, Replay};
use tolka_facts::event::{Failed, FailureKind, Finish, Stop, Usage};
use tolka_facts::{Event, Json, Part};

/// Plays every prompt of a recording.
async fn play(name: &str, person: Person) -> (Hall, Vec<Ended>) {
    let prompts = std::fs::read_to_string(path(name)).unwrap().matches(r#""method": "session/prompt""#).count();
    let mut hall = Hall::open(&replay(name, Pace::AtOnce), 0);
    let mut ends = Vec::new();
    for _ in 0..prompts.max(1) {
        ends.push(hall.turn(person).await);
    }
    (hall, ends)
}

/// What an agent said in a recording, read by another way than the replay's. In ours a load comes last.
fn recorded(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path(name)).unwrap();
    let live = text.lines().take_while(|line| !line.contains(r#""method": "session/load""#));
    live.filter(|line| line.contains(r#""dir": "a2c""#)).filter_map(raw_of).collect()
}

fn raw_of(line: &str) -> Option<String> {
    let field = |json: &str, name: &str| -> Option<String> {
        let fields: std::collections::HashMap<String, Box<RawValue>> = serde_json::from_str(json).ok()?;
        Some(fields.get(name)?.get().to_owned())
    };
    let params = field(&field(line, "msg")?, "params")?;
    Some(field(&params, "update").unwrap_or(params))
}

#[tokio::test]
async fn i5_nothing_foreign_is_lost() {
    for name in ACP {
        let (hall, _) = play(name, Person::Allows).await;
        let is_result = |fact: &&tolka_facts::Fact| match &fact.event {
            Event::StepEnded(_) => true,
            Event::Foreign(e) => e.what == "session/prompt",
            _ => false,
        };
        let raws = hall.facts.iter().filter(|fact| !is_result(fact)).filter_map(|fact| fact.raw.as_ref());
        let raws: Vec<_> = raws.map(|raw| raw.get().to_owned()).collect();
        assert_eq!(raws, recorded(name), "{name}");
    }
}

#[tokio::test]
async fn steps_are_well_nested_and_hold_all_content() {
    for name in ACP {
        for person in [Person::Allows, Person::Rejects, Person::IsAway] {
            let (hall, _) = play(name, person).await;
            check_steps(&hall, name);
        }
    }
}

fn check_steps(hall: &Hall, name: &str) {
    let mut open = None;
    let (mut messages, mut calls) = (HashSet::new(), HashSet::new());
    for fact in &hall.facts {
        match &fact.event {
            Event::StepStarted(e) => {
                assert!(open.replace(e.message.clone()).is_none(), "{name}: a step in a step: {fact:?}");
                assert!(messages.insert(e.message.clone()), "{name}: a message twice: {fact:?}");
            }
            Event::StepEnded(e) => assert_eq!(open.take().as_ref(), Some(&e.message), "{name}"),
            Event::TextAppended(_) | Event::ThoughtAppended(_) => assert!(open.is_some(), "{name}: {fact:?}"),
            Event::ToolChanged(e) if calls.insert(e.call.clone()) => assert!(open.is_some(), "{name}: {fact:?}"),
            Event::TurnEnded(_) => assert!(open.is_none(), "{name}: the turn ends within a step"),
            _ => {}
        }
    }
    let parts = hall.view.messages.iter().flat_map(|message| &message.parts);
    let parts: Vec<_> = parts
        .filter_map(|part| match part {
            Part::Text(said) | Part::Thought(said) => Some(&said.part),
            _ => None,
        })
        .collect();
    assert_eq!(parts.len(), parts.iter().collect::<HashSet<_>>().len(), "{name}: a part twice");
}

#[tokio::test]
async fn every_tool_ends_but_those_that_a_cancel_left_open() {
    let mut open = Vec::new();
    for name in ACP {
        let (hall, _) = play(name, Person::Allows).await;
        for part in hall.view.messages.iter().flat_map(|message| &message.parts) {
            if let Part::Tool(tool) = part
                && tool.is_open()
            {
                open.push(format!("{name} {}", tool.call));
            }
        }
    }
    assert_eq!(open, ["claude-cancel toolu_1", "codex-cancel call_1"]);
}

const WARNING: &str = "says Warning: Model metadata for `mock` not found. Defaulting to fallback metadata; this can \
                       degrade performance and cause issues.\n\n";

#[tokio::test]
async fn transcripts() {
    let expected: [(&str, &[&str]); 12] = [
        (
            "claude-cancel",
            &["- says Hello from mock.", "- says Hello from mock.", "  toolu_1 bash Execute Pending `sleep 20`"],
        ),
        (
            "claude-perm",
            &[
                "- says Hello from mock.",
                "  toolu_1 bash Execute Completed `touch made-by-tool.txt && echo made`",
                "- says Hello from mock.",
            ],
        ),
        (
            "claude-rich",
            &[
                "- says Hello from mock.",
                "  says Hello from mock.",
                "  toolu_2 glob Search Failed `Find `*.ts`` because \"<tool_use_error>Error: No such tool available: \
             Glob. Glob is not available in this session — find files with `find` via the Bash tool \
             instead.</tool_use_error>\"",
                "- says Hello from mock.",
                "  toolu_3 read Read Completed `Read a.ts`",
                "- says Hello from mock.",
                "  toolu_4 edit Edit Completed `Edit a.ts`",
                "- says Hello from mock.",
                "  toolu_5 write Edit Completed `Write b.ts`",
                "- says Hello from mock.",
                "  toolu_6 bash Execute Failed `ls; exit 3` because \"Exit code 3\\na.ts\\nb.ts\"",
                "- says Hello from mock.",
            ],
        ),
        (
            "codex",
            &[
                &format!("- {WARNING}"),
                "  says Hello from mock.",
                "  call_1 exec_command Execute Completed `echo hi` live \"hi\\n\"",
                "- says Hello from mock.",
            ],
        ),
        (
            "codex-cancel",
            &[
                &format!("- {WARNING}"),
                "  says Hello from mock.",
                &format!("- {WARNING}"),
                "  says Hello from mock.",
                "  call_1 exec_command Execute Running `sleep 20`",
            ],
        ),
        ("copilot", &[]),
        ("fast-agent", &["- says hello TOOL"]),
        (
            "gemini",
            &[
                "- says Hello from mock.",
                "  run_shell_command__run_shell_command_1794701941658_0 ? Execute Completed `touch made-by-tool.txt && \
             echo made`",
                "- says Hello from mock.",
            ],
        ),
        ("kimi", &[]),
        (
            "opencode-cancel",
            &["- says Hello from mock.", "- says Hello from mock.", "  call_1 bash Execute Completed `sleep 20`"],
        ),
        (
            "opencode-perm",
            &[
                "- says Hello from mock.",
                "  call_1 bash Execute Completed `touch made-by-tool.txt && echo made`",
                "- says Hello from mock.",
            ],
        ),
        (
            "opencode-rich",
            &[
                "- thinks Let me think. ",
                "  says Hello from mock.",
                "  call_1 todowrite Other Completed `2 todos`",
                "- thinks Let me think. ",
                "  says Hello from mock.",
                "  call_2 glob Search Failed `glob` because \"ripgrep execution failed\"",
                "- thinks Let me think. ",
                "  says Hello from mock.",
                "  call_3 read Read Completed `workspace/a.ts`",
                "- thinks Let me think. ",
                "  says Hello from mock.",
                "  call_4 edit Edit Completed `workspace/a.ts`",
                "- thinks Let me think. ",
                "  says Hello from mock.",
                "  call_5 write Edit Completed `workspace/b.ts`",
                "- thinks Let me think. ",
                "  says Hello from mock.",
                "  call_6 grep Search Failed `grep` because \"ripgrep execution failed\"",
                "- thinks Let me think. ",
                "  says Hello from mock.",
                "  call_7 bash Execute Completed `ls; exit 3`",
                "- thinks Let me think. ",
                "  says Hello from mock.",
                "  call_8 read Read Failed `read` because \"File not found: /workspace/opencode-rich/missing.ts\"",
                "- thinks Let me think. ",
                "  says Hello from mock.",
            ],
        ),
    ];
    assert_eq!(expected.map(|(name, _)| name), ACP);
    for (name, lines) in expected {
        let (hall, _) = play(name, Person::Allows).await;
        assert_eq!(hall.transcript(), lines, "{name}");
    }
}

#[tokio::test]
async fn a_turn_ends_as_recorded_and_each_token_counts_once() {
    let (hall, ends) = play("codex-cancel", Person::Allows).await;
    let usage = Usage { input: 10, output: 5, ..Usage::default() };
    assert_eq!(
        ends.iter().map(|end| (end.stop, end.usage)).collect::<Vec<_>>(),
        [(Stop::EndTurn, Some(usage)), (Stop::Cancelled, Some(usage))]
    );
    assert!(ends[0].meta.as_ref().unwrap().get().starts_with(r#"{"quota": "#));
    assert_eq!(hall.view.tip.head.tokens, Usage { input: 20, output: 10, ..Usage::default() });
    assert_eq!(hall.view.tip.head.title, "hi");
    let finishes = hall.facts.iter().filter_map(|fact| match &fact.event {
        Event::StepEnded(e) => Some(e.finish),
        _ => None,
    });
    assert_eq!(finishes.collect::<Vec<_>>(), [Finish::Stop, Finish::Cancelled]);
}

#[tokio::test]
async fn a_recording_without_a_prompt_fails_as_it_did() {
    let (_, ends) = play("copilot", Person::Allows).await;
    let auth = Failed {
        kind: FailureKind::Auth,
        message: "Authentication required".into(),
        code: Some(-32000),
        retryable: false,
        details: None,
    };
    assert_eq!(ends, [Ended::failed(auth)]);

    let (hall, ends) = play("kimi", Person::Allows).await;
    let failure = ends[0].failure.clone().unwrap();
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Agent, "the agent ended before it was ready"));
    let output = failure.details.map(|details| details.value()["output"].clone());
    assert!(output.as_ref().and_then(Value::as_str).unwrap().starts_with("kimi-cli is no longer maintained."));
    assert!(hall.raws().is_empty());
}

#[tokio::test]
async fn history_that_a_load_repeats_is_not_told() {
    let text = r#"
        {"t": 0.1, "dir": "c2a", "msg": {"id": 1, "method": "session/load", "params": {}}}
        {"t": 0.2, "dir": "a2c", "msg": {"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old"}}}}}
        {"t": 0.3, "dir": "a2c", "msg": {"id": 1, "result": {}}}
        {"t": 0.4, "dir": "a2c", "msg": {"method": "session/update", "params": {"update": {"sessionUpdate": "available_commands_update", "availableCommands": []}}}}
        {"t": 0.5, "dir": "c2a", "msg": {"id": "p", "method": "session/prompt", "params": {}}}
        {"t": 0.6, "dir": "a2c", "msg": {"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "new"}}}}}
        {"t": 0.7, "dir": "a2c", "msg": {"id": "p", "result": {"stopReason": "end_turn"}}}
        {"t": 0.8, "dir": "a2c", "msg": {"method": "session/update", "params": {"update": {"sessionUpdate": "session_info_update", "title": "late"}}}}
    "#;
    let mut hall = Hall::open(&Replay::new("loaded", Recording::parse(text).unwrap(), Pace::AtOnce), 0);
    hall.turn(Person::Allows).await;
    assert_eq!(hall.transcript(), ["- says new"]);
    assert!(hall.facts.iter().any(|fact| matches!(fact.event, Event::CommandsSet(_))), "what follows a load is news");
    assert_eq!(hall.view.tip.head.title, "late", "so is what follows a turn");
}

#[tokio::test]
async fn a_prompt_that_was_never_answered_or_with_an_error_fails() {
    let text = std::fs::read_to_string(path("codex")).unwrap();
    let cut: String = text.lines().take(13).map(|line| format!("{line}\n")).collect();
    let error = r#"{"t": 9, "dir": "a2c", "msg": {"id": 2, "error": {"code": -32603, "message": "Internal error"}}}"#;
    let cancelled = error.replace("-32603", "-32800");
    for (text, stop, message) in [
        (cut.clone(), Stop::Failed, Some("the recording ends before this turn does")),
        (format!("{cut}{error}"), Stop::Failed, Some("Internal error")),
        (format!("{cut}{cancelled}"), Stop::Cancelled, None),
    ] {
        let mut hall = Hall::open(&Replay::new("cut", Recording::parse(&text).unwrap(), Pace::AtOnce), 0);
        for _ in 0..2 {
            let ended = hall.turn(Person::Allows).await;
            assert_eq!(ended.stop, stop);
            assert_eq!(ended.failure.map(|failure| failure.message).as_deref(), message);
        }
        check_steps(&hall, "cut");
        assert_eq!(hall.transcript().len(), 6);
    }
}

#[tokio::test]
async fn a_plan_comes_from_the_agent_or_from_its_todos() {
    for (name, by_us) in [("claude-rich", false), ("opencode-rich", true)] {
        let (hall, _) = play(name, Person::Allows).await;
        let plans: Vec<_> = hall.facts.iter().filter(|fact| matches!(fact.event, Event::PlanSet(_))).collect();
        assert_eq!(plans.len(), 1, "{name}");
        assert_eq!(plans[0].cause == tolka_facts::Cause::Tolka, by_us);
        let plan: Vec<_> = hall.view.tip.plan.iter().map(|entry| entry.content.as_str()).collect();
        assert_eq!(plan, ["Read a.ts", "Edit a.ts"]);
    }
}

#[tokio::test]
async fn what_is_not_allowed_does_not_happen() {
    let rejected = "because \"The user rejected permission to use this specific tool call.\"";
    for (name, call) in [
        ("claude-perm", "toolu_1 bash"),
        ("opencode-perm", "call_1 bash"),
        ("gemini", "run_shell_command__run_shell_command_1794701941658_0 ?"),
    ] {
        for person in [Person::Rejects, Person::IsAway] {
            let (hall, ends) = play(name, person).await;
            assert_eq!(ends[0].stop, Stop::EndTurn);
            let tool = format!("  {call} Execute Failed `touch made-by-tool.txt && echo made` {rejected}");
            assert_eq!(hall.transcript(), ["- says Hello from mock.", &tool, "- says Hello from mock."], "{name}");
            let done =
                hall.facts.iter().filter(|fact| matches!(&fact.event, Event::ToolChanged(e) if e.output.is_some()));
            assert_eq!(done.count(), 0);
        }
    }
}

#[tokio::test]
async fn a_permission_is_asked_as_recorded() {
    let (hall, _) = play("opencode-perm", Person::Allows).await;
    let (ask, raw) = hall
        .facts
        .iter()
        .find_map(|fact| match &fact.event {
            Event::PermissionAsked(ask) => Some((ask.clone(), fact.raw.clone())),
            _ => None,
        })
        .unwrap();
    assert_eq!(ask.call, Some("call_1".into()));
    assert_eq!((ask.permission.as_str(), ask.title.as_str()), ("bash", "touch made-by-tool.txt && echo made"));
    assert_eq!(ask.options.iter().map(|option| option.id.as_str()).collect::<Vec<_>>(), ["once", "always", "reject"]);
    assert!(raw.as_ref().map(Json::get).unwrap().contains(r#""optionId": "once""#));
}

#[tokio::test]
async fn a_recording_starts_over_and_names_its_calls_anew() {
    let mut hall = Hall::open(&replay("claude-perm", Pace::AtOnce), 0);
    for _ in 0..3 {
        hall.turn(Person::Allows).await;
    }
    check_steps(&hall, "claude-perm");
    let calls = |hall: &Hall| {
        let calls = hall.facts.iter().filter_map(|fact| match &fact.event {
            Event::ToolChanged(e) => Some(e.call.to_string()),
            Event::PermissionAsked(e) => e.call.as_ref().map(ToString::to_string),
            _ => None,
        });
        let mut calls: Vec<_> = calls.collect();
        calls.dedup();
        calls
    };
    assert_eq!(calls(&hall), ["toolu_1", "toolu_1~2", "toolu_1~3"]);
    let commands = hall.facts.iter().filter(|fact| matches!(fact.event, Event::CommandsSet(_)));
    assert_eq!(commands.count(), 3, "this agent tells its commands within the turn");

    let mut reopened = Hall::open(&replay("claude-perm", Pace::AtOnce), 3);
    reopened.turn(Person::Allows).await;
    assert_eq!(calls(&reopened), ["toolu_1~4"]);

    let mut later = Hall::open(&replay("opencode-cancel", Pace::AtOnce), 1);
    assert_eq!(later.turn(Person::Allows).await.stop, Stop::Cancelled, "the second turn plays the second prompt");
    assert_eq!(later.turn(Person::Allows).await.stop, Stop::EndTurn);
    assert!(!later.facts.iter().any(|fact| matches!(fact.event, Event::CommandsSet(_))), "the session began before");
}

#[test]
fn a_broken_recording_is_named_with_file_and_line() {
    let problem = |text: &str| Recording::parse(text).unwrap_err().to_string();
    let line = r#"{"t": 0.1, "dir": "c2a", "msg": {"method": "x"}}"#;
    let fact = r#"{"v":1,"session":"ses_1","seq":1,"time":1,"cause":"agent","type":"plan_set","data":{"entries":[]}}"#;
    assert_eq!(problem(" \n\n"), "recording: there is nothing in this recording");
    for (text, expected) in [
        (format!("{line}\n\n{{\"t\": 1"), "recording:3: not a recorded message: EOF while parsing"),
        (format!("{line}\n{}", line.replace("c2a", "b2b")), "recording:2: `dir` is c2a, a2c or noise, not `b2b`"),
        (line.replace("0.1", "-1"), "recording:1: `t` is no time: -1"),
        (line.replace("method", "m"), "recording:1: a JSON-RPC message needs a method, a result or an error"),
        ("hello".to_owned(), "recording:1: not a fact that this version can read: expected value"),
        (
            format!("{fact}\n{}", fact.replace("plan_set", "plan_sat")),
            "recording:2: not a fact that this version can read: unknown type `plan_sat`",
        ),
        (
            fact.replace("\"v\":1", "\"v\":99"),
            "recording:1: not a fact that this version can read: version 99 is newer",
        ),
        (format!("{fact}\n{}", fact.replace("ses_1", "ses_2")), "recording:2: a fact of ses_2 among those of ses_1"),
    ] {
        let said = problem(&text);
        assert!(said.starts_with(expected), "{said}");
    }
    let missing = Recording::open("no/such/file.jsonl").unwrap_err().to_string();
    assert!(missing.starts_with("cannot read the recording no/such/file.jsonl: "), "{missing}");
    let folder = std::env::temp_dir().join(format!("tolka-replay-{}.jsonl", std::process::id()));
    std::fs::write(&folder, "{}").unwrap();
    let named = Recording::open(&folder).unwrap_err().to_string();
    std::fs::remove_file(&folder).unwrap();
    assert!(named.starts_with(&format!("{}:1: ", folder.display())), "{named}");
}
