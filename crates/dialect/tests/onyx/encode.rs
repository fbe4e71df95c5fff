//! What is told for each fact, in the bytes of the wire.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tolka_dialect::onyx::{Encoder, Profile};
use tolka_dialect::{Encoder as _, Frames};
use tolka_facts::event::{
    ArtifactKind, ArtifactSaved, CompactionEnded, Cost, Failed, FailureKind, InputAppended, ModeSet, OptionKind,
    OutputAppended, PermissionAsked, PermissionOption, PlanEntry, PlanSet, PlanStatus, Priority, Stop, TextAppended,
    ThoughtAppended, ToolChanged, TurnEnded, UsageSet,
};
use tolka_facts::{
    ArtifactId, Blobs, Block, CallId, Hash, INLINE_LIMIT, Location, PartId, RequestId, Tip, ToolContent, ToolKind,
    ToolStatus, TurnId,
};

use crate::{Session, change, created, encode, frames, json as raw, types};

fn text(part: &str, text: &str) -> TextAppended {
    TextAppended { part: PartId::from(part), text: text.into() }
}

fn output(call: &str, text: impl Into<String>) -> OutputAppended {
    OutputAppended { call: CallId::from(call), text: text.into() }
}

fn failure(message: &str) -> Failed {
    Failed { kind: FailureKind::Agent, message: message.into(), code: Some(-1), retryable: false, details: None }
}

/// Key order, nulls and the place of `type` and `timestamp` are those of the real server's output.
#[test]
fn the_bytes_are_the_real_servers() {
    let mut session = Session::in_turn();
    session
        .tell(text("p1", "I'll help \"you\"\n"))
        .tell(ThoughtAppended { part: PartId::from("p2"), text: "Hm".into() });
    session.tell(ToolChanged { title: Some("bash".into()), kind: Some(ToolKind::Execute), ..change("c1") });
    session.tell(ToolChanged {
        status: Some(ToolStatus::Completed),
        input: raw(r#"{"command": "ls", "n": 1.50}"#),
        output: raw(r#"{"output":"a\n"}"#),
        content: Some(vec![
            ToolContent::Content { block: Block::text("a") },
            ToolContent::Diff { path: "/w/a.ts".into(), old: None, new: "x".into() },
            ToolContent::Terminal { id: "term_1".into() },
        ]),
        locations: Some(vec![Location { path: "/w/a.ts".into(), line: None }]),
        ..change("c1")
    });
    session.tell(ModeSet { mode: "plan".into() });
    session.end(Stop::EndTurn);
    assert_eq!(
        frames(Profile::Documented, &session.facts),
        [
            r#"{"_meta":null,"content":{"_meta":null,"annotations":null,"text":"I'll help \"you\"\n","type":"text"},"sessionUpdate":"agent_message_chunk","type":"agent_message_chunk","timestamp":"2026-01-22T00:11:51.004000+00:00"}"#,
            r#"{"_meta":null,"content":{"_meta":null,"annotations":null,"text":"Hm","type":"text"},"sessionUpdate":"agent_thought_chunk","type":"agent_thought_chunk","timestamp":"2026-01-22T00:11:51.005000+00:00"}"#,
            r#"{"_meta":null,"content":null,"kind":"execute","locations":[],"rawInput":{},"rawOutput":null,"status":"pending","title":"bash","toolCallId":"c1","sessionUpdate":"tool_call","type":"tool_call_start","timestamp":"2026-01-22T00:11:51.006000+00:00"}"#,
            r#"{"_meta":null,"content":[{"_meta":null,"content":{"_meta":null,"annotations":null,"text":"a","type":"text"},"type":"content"},{"_meta":null,"newText":"x","oldText":"","path":"/w/a.ts","type":"diff"}],"kind":"execute","locations":[{"_meta":null,"line":null,"path":"/w/a.ts"}],"rawInput":{"command": "ls", "n": 1.50},"rawOutput":{"output":"a\n"},"status":"completed","title":"bash","toolCallId":"c1","sessionUpdate":"tool_call_update","type":"tool_call_progress","timestamp":"2026-01-22T00:11:51.007000+00:00"}"#,
            r#"{"_meta":null,"currentModeId":"plan","sessionUpdate":"current_mode_update","type":"current_mode_update","timestamp":"2026-01-22T00:11:51.008000+00:00"}"#,
            r#"{"_meta":{},"stopReason":"end_turn","type":"prompt_response","timestamp":"2026-01-22T00:11:51.009000+00:00"}"#,
        ]
    );
}

#[test]
fn a_tool_that_starts_late_gets_a_start_and_partial_updates_are_told_whole() {
    let mut session = Session::in_turn();
    let running = ToolChanged {
        name: Some("Bash".into()),
        title: Some("ls".into()),
        status: Some(ToolStatus::Running),
        input: raw(r#"{"command":"ls"}"#),
        ..change("c1")
    };
    session.tell(running.clone()).tell(running);
    session.tell(ToolChanged { status: Some(ToolStatus::Completed), ..change("c1") });
    session.tell(ToolChanged { title: Some("late".into()), ..change("c1") });
    let packets = session.packets(Profile::Documented);
    assert_eq!(types(&packets), ["tool_call_start", "tool_call_progress", "tool_call_progress"]);
    assert_eq!((&packets[0]["status"], &packets[0]["rawInput"]), (&json!("pending"), &json!({})));
    assert_eq!((&packets[1]["status"], &packets[1]["kind"]), (&json!("in_progress"), &json!("execute")));
    let end = &packets[2];
    assert_eq!(
        (&end["status"], &end["rawInput"]["command"], &end["title"]),
        (&json!("completed"), &json!("ls"), &json!("ls"))
    );
}

fn raw_output(end: ToolChanged) -> Value {
    let mut session = Session::in_turn();
    session.tell(end);
    session.packets(Profile::Documented).pop().unwrap()["rawOutput"].take()
}

#[test]
fn raw_output_is_an_object_with_output_whatever_the_agent_sent() {
    let done = || ToolChanged { status: Some(ToolStatus::Completed), ..change("c") };
    let with = |output: &str| raw_output(ToolChanged { output: raw(output), ..done() });
    let said = || Some(vec![ToolContent::Content { block: Block::text("said") }]);
    assert_eq!(with(r#"{"output":"a","metadata":{"exit":0}}"#), json!({"output": "a", "metadata": {"exit": 0}}));
    assert_eq!(with(r#""made""#), json!({"output": "made"}));
    assert_eq!(with(r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#), json!({"output": "a\nb"}));
    assert_eq!(with("[1]"), json!({"output": "[1]"}));
    assert_eq!(with("null"), json!({"output": ""}), "a call that completed has an output");
    assert_eq!(raw_output(done()), json!({"output": ""}));
    let running = ToolChanged { status: Some(ToolStatus::Running), output: raw(r#"{"output":"a"}"#), ..change("c") };
    assert_eq!(raw_output(running), json!(null), "null while in progress");
    assert_eq!(raw_output(ToolChanged { content: said(), ..done() }), json!({"output": "said"}));
    let own = ToolChanged { content: said(), output: raw(r#"{"exit_code":0}"#), ..done() };
    assert_eq!(raw_output(own), json!({"exit_code": 0, "output": "said"}));
}

#[test]
fn a_failed_tool_has_its_words_in_error_and_in_output() {
    let failed = |status| ToolChanged { status: Some(status), ..change("c") };
    let words = "Error: The user rejected permission to use this specific tool call.";
    let both = json!({"error": words, "output": words});
    assert_eq!(raw_output(ToolChanged { error: Some(words.into()), ..failed(ToolStatus::Failed) }), both);
    let object = json!({ "error": words }).to_string();
    assert_eq!(raw_output(ToolChanged { output: raw(&object), ..failed(ToolStatus::Failed) }), both);
    let plain = ToolChanged { output: raw(r#""Exit code 3""#), ..failed(ToolStatus::Failed) };
    assert_eq!(raw_output(plain), json!({"error": "Exit code 3", "output": "Exit code 3"}));
    let partial = ToolChanged {
        output: raw(r#"{"output":"a\nb\n","metadata":{"exit":3}}"#),
        error: Some("timed out".into()),
        ..failed(ToolStatus::Failed)
    };
    let kept = json!({"output": "a\nb\ntimed out", "metadata": {"exit": 3}, "error": "timed out"});
    assert_eq!(raw_output(partial), kept);
    let cancelled = raw_output(failed(ToolStatus::Cancelled));
    assert_eq!(cancelled["error"], "The tool call was cancelled");
}

#[test]
fn live_output_is_told_at_marks_and_whole_at_the_end() {
    let mut session = Session::in_turn();
    session.tell(ToolChanged { title: Some("bash".into()), status: Some(ToolStatus::Running), ..change("c") });
    for _ in 0..2000 {
        session.tell(output("c", "0123456789012345678901234567890123456789\n"));
    }
    session.tell(ToolChanged { status: Some(ToolStatus::Completed), ..change("c") });
    let packets = session.packets(Profile::Documented);
    let (ended, running) = packets[2..].split_last().unwrap();
    assert!(running.iter().all(|packet| packet["rawOutput"].is_null()));
    let mut told: Vec<_> =
        running.iter().map(|packet| packet["content"][0]["content"]["text"].as_str().unwrap().len()).collect();
    told.push(ended["rawOutput"]["output"].as_str().unwrap().len());
    assert_eq!(told[..4], [41, 41 * 26, 41 * 51, 41 * 76]);
    for pair in told[..told.len() - 1].windows(2) {
        assert!(pair[1] - pair[0] >= (pair[0] / 8).max(1024));
    }
    assert_eq!(*told.last().unwrap(), 41 * 2000);
    assert!(told.iter().sum::<usize>() < 41 * 2000 * 10);
}

/// Claude's first word on a tool has empty lists in it.
#[test]
fn a_first_change_that_says_no_more_than_a_start_is_a_start_alone() {
    let mut session = Session::in_turn();
    let (content, locations) = (Some(Vec::new()), Some(Vec::new()));
    let pending = ToolChanged { title: Some("Terminal".into()), content, locations, ..change("c") };
    session.tell(pending.clone()).tell(pending);
    assert_eq!(types(&session.packets(Profile::Documented)), ["tool_call_start"]);
}

/// What is kept of a stream grows with what is open, not with what was.
#[test]
fn an_ended_call_leaves_no_state() {
    let mut session = Session::in_turn();
    session.tell(ToolChanged { status: Some(ToolStatus::Running), ..change("c") });
    let (mut encoder, mut tip) = (Encoder::new(Profile::Documented), Tip::default());
    encode(&mut encoder, &mut tip, &session.facts);
    assert_ne!(encoder.state(), Encoder::new(Profile::Documented).state());
    let told = session.facts.len();
    session.tell(ToolChanged { status: Some(ToolStatus::Completed), ..change("c") });
    encode(&mut encoder, &mut tip, &session.facts[told..]);
    assert_eq!(encoder.state(), Encoder::new(Profile::Documented).state());
}

#[test]
fn a_state_of_another_version_is_refused() {
    for state in ["", "{}", r#"{"v":0,"calls":{}}"#, r#"{"v":1,"calls":[]}"#] {
        assert!(Encoder::resume(Profile::Current, state.as_bytes()).is_none(), "{state}");
    }
}

#[test]
fn empty_pieces_of_text_are_not_told() {
    let mut session = Session::in_turn();
    session.tell(text("p1", ""));
    assert_eq!(session.packets(Profile::Documented), Vec::<Value>::new());
}

/// Long values stand in blobs; this wire has no reference to one.
#[test]
fn spilled_values_are_told_whole() {
    struct Kept(BTreeMap<String, Vec<u8>>);
    impl Blobs for Kept {
        fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
            self.0.get(hash.as_str()).cloned()
        }
    }
    let long = "y".repeat(INLINE_LIMIT + 1);
    let mut session = Session::in_turn();
    session.tell(ToolChanged {
        status: Some(ToolStatus::Completed),
        input: raw(&json!({ "content": long }).to_string()),
        output: raw(&json!(long).to_string()),
        content: Some(vec![ToolContent::Diff { path: "a".into(), old: None, new: long.as_str().into() }]),
        ..change("c")
    });
    let (mut kept, mut tip, mut out) = (Kept(BTreeMap::new()), Tip::default(), Frames::default());
    let mut encoder = Encoder::new(Profile::Documented);
    for fact in &mut session.facts {
        fact.event.spill(&mut |bytes| {
            kept.0.insert(Hash::of(bytes).as_str().to_owned(), bytes.to_vec());
        });
        tip.apply(fact);
        encoder.encode(fact, &tip, &kept, &mut out);
    }
    assert_eq!(kept.0.len(), 3);
    let end: Value = serde_json::from_slice(out.iter().last().unwrap()).unwrap();
    let told = (&end["rawInput"]["content"], &end["rawOutput"]["output"], &end["content"][0]["newText"]);
    assert_eq!(told, (&json!(long), &json!(long), &json!(long)));
}

#[test]
fn streamed_input_is_not_told() {
    let mut session = Session::in_turn();
    session.tell(InputAppended { call: CallId::from("c"), text: "{\"comm".into() });
    assert_eq!(session.packets(Profile::Documented), Vec::<Value>::new());
}

#[test]
fn the_other_packets() {
    let mut session = Session::in_turn();
    let entry = |content: &str, status, priority| PlanEntry { content: content.into(), status, priority };
    session.tell(PlanSet {
        entries: vec![
            entry("Create prepare.sh script", PlanStatus::Completed, Priority::Medium),
            entry("Drop it", PlanStatus::Cancelled, Priority::Low),
        ],
    });
    session.tell(UsageSet {
        used: 1200,
        size: 0,
        cost: Some(Cost { amount: 0.25, currency: "USD".into() }),
        subagents: None,
    });
    session.tell(CompactionEnded {
        id: "1".into(),
        summary: Some("short".into()),
        error: None,
        keeps: None,
        usage: None,
        cost: None,
    });
    session.tell(CompactionEnded {
        id: "2".into(),
        summary: None,
        error: Some("no".into()),
        keeps: None,
        usage: None,
        cost: None,
    });
    for kind in [ArtifactKind::WebApp, ArtifactKind::NextjsApp, ArtifactKind::Image, ArtifactKind::Pdf] {
        session.tell(ArtifactSaved {
            id: ArtifactId::from("art_1"),
            kind,
            name: "web".into(),
            path: "outputs/web".into(),
            mime: "text/html".into(),
            size: 3,
            preview: None,
        });
    }
    let mut packets = session.packets(Profile::Documented);
    let stamps: Vec<_> = packets.iter_mut().map(|p| p.as_object_mut().unwrap().remove("timestamp").unwrap()).collect();
    assert!(stamps.iter().all(Value::is_string));
    let artifact = |kind: &str| {
        let artifact = json!({"id": "art_1", "type": kind, "name": "web", "path": "outputs/web", "preview_url": null});
        json!({"artifact": artifact, "type": "artifact_created"})
    };
    let plan = json!({"_meta": null, "sessionUpdate": "plan", "type": "agent_plan_update", "entries": [
        {"_meta": null, "content": "Create prepare.sh script", "priority": "medium", "status": "completed"},
        {"_meta": null, "content": "Drop it", "priority": "low", "status": "completed"}]});
    let expected = [
        plan,
        json!({"used_tokens": 1200, "cost": 0.25, "type": "context_usage"}),
        json!({"summary": "short", "type": "compaction"}),
        artifact("web_app"),
        artifact("nextjs_app"),
        artifact("image"),
        artifact("file"),
    ];
    assert_eq!(packets, expected);
}

#[test]
fn a_request_for_approval_can_be_answered_from_the_packet() {
    let mut session = Session::in_turn();
    session.tell(ToolChanged { title: Some("rm -r /".into()), input: raw(r#"{"command":"rm"}"#), ..change("c1") });
    session.tell(PermissionAsked {
        request: RequestId::from("per_1"),
        call: Some(CallId::from("c1")),
        permission: "bash".into(),
        title: "Run rm".into(),
        patterns: vec!["rm *".into()],
        metadata: None,
        options: vec![PermissionOption { id: "once".into(), name: "Allow".into(), kind: OptionKind::AllowOnce }],
    });
    let packet = session.packets(Profile::Documented).pop().unwrap();
    assert_eq!((&packet["approval_id"], &packet["session_id"]), (&json!("per_1"), &json!("ses_1")));
    assert_eq!(packet["toolCall"]["rawInput"]["command"], "rm");
    assert_eq!(packet["options"], json!([{"kind": "allow_once", "name": "Allow", "optionId": "once"}]));
}

#[test]
fn a_turn_ends_with_one_packet_and_open_tools_fail_before_it() {
    let stops = [
        (Stop::EndTurn, "end_turn"),
        (Stop::MaxTokens, "max_tokens"),
        (Stop::MaxTurnRequests, "max_turn_requests"),
        (Stop::Refusal, "refusal"),
        (Stop::Cancelled, "cancelled"),
    ];
    for (stop, reason) in stops {
        let mut session = Session::in_turn();
        session.tell(ToolChanged { title: Some("bash".into()), ..change("c1") }).end(stop).end(stop);
        let packets = session.packets(Profile::Documented);
        assert_eq!(types(&packets), ["tool_call_start", "tool_call_progress", "prompt_response"]);
        assert_eq!((&packets[1]["status"], &packets[2]["stopReason"]), (&json!("failed"), &json!(reason)));
    }
}

#[test]
fn a_failure_is_told_by_the_end_of_its_turn_or_at_once_outside_of_one() {
    let mut session = Session::in_turn();
    session.tell(failure("model is down")).end(Stop::Failed).tell(failure("later"));
    let packets = session.packets(Profile::Documented);
    assert_eq!(types(&packets), ["error", "error"]);
    assert_eq!((&packets[0]["message"], &packets[0]["code"]), (&json!("model is down"), &json!(-1)));
    let keys: Vec<_> = packets[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["type", "timestamp", "message", "code", "details"]);

    let mut session = Session::in_turn();
    session.tell(failure("retried")).end(Stop::EndTurn);
    assert_eq!(types(&session.packets(Profile::Documented)), ["prompt_response"]);

    let mut session = Session::in_turn();
    session.end(Stop::Interrupted);
    let packets = session.packets(Profile::Documented);
    assert_eq!(
        (&packets[0]["message"], &packets[0]["code"]),
        (&json!("The server stopped during the turn"), &json!(null))
    );
}

#[test]
fn meta_of_the_agents_answer_is_passed_on() {
    let mut session = Session::in_turn();
    let (turn, meta) = (TurnId::from("trn_1"), raw(r#"{"usage": {"n":1}}"#));
    session.tell(TurnEnded { turn, stop: Stop::EndTurn, usage: None, cost: None, meta });
    assert_eq!(session.packets(Profile::Documented)[0]["_meta"], json!({"usage": {"n": 1}}));
}

#[test]
fn todays_client_finds_tool_name_and_subagent_in_meta() {
    let mut session = Session::default();
    session.tell(created(Some("ses_0"))).prompt("trn_1", "Look");
    session.tell(text("p1", "Looking"));
    let subagent = Some("ses_2".into());
    session.tell(ToolChanged { name: Some("task".into()), title: Some("Explore".into()), subagent, ..change("c1") });
    let packets = session.packets(Profile::Current);
    assert_eq!(types(&packets), ["subagent_started", "agent_message_chunk", "subagent_started", "tool_call_start"]);
    assert_eq!(packets[2]["subagent_session_id"], json!("ses_2"), "the parent's stream tells it too");
    assert_eq!(
        (&packets[0]["subagent_session_id"], &packets[0]["parent_session_id"]),
        (&json!("ses_1"), &json!("ses_0"))
    );
    assert_eq!(packets[1]["_meta"], json!({"sessionId": "ses_1", "parentSessionId": "ses_0"}));
    let meta =
        json!({"sessionId": "ses_1", "parentSessionId": "ses_0", "subagentSessionId": "ses_2", "toolName": "task"});
    assert_eq!((&packets[3]["_meta"], &packets[3]["kind"]), (&meta, &json!("other")));
    let documented = session.packets(Profile::Documented);
    assert!(documented[1..].iter().all(|packet| packet["_meta"].is_null()));
}

/// Document 002 knows a new file by its diff; OpenCode shows none for a file that it wrote.
#[test]
fn a_new_file_that_was_written_has_a_diff() {
    let mut session = Session::in_turn();
    let written = |exists: &str| ToolChanged {
        name: Some("write".into()),
        status: Some(ToolStatus::Completed),
        input: raw(r#"{"filePath":"/w/b.ts","content":"export {};\n"}"#),
        output: raw(&format!(r#"{{"output":"Wrote file successfully.","metadata":{{"exists":{exists}}}}}"#)),
        ..change("c")
    };
    session.tell(written("false")).tell(ToolChanged { call: "d".into(), ..written("true") });
    let packets = session.packets(Profile::Documented);
    let diff = json!([{"_meta": null, "newText": "export {};\n", "oldText": "", "path": "/w/b.ts", "type": "diff"}]);
    assert_eq!((&packets[1]["content"], &packets[3]["content"]), (&diff, &json!(null)));
}
