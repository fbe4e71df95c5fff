//! Real lines of real agents, and lines that must not break us.

use tolka_facts::event::{OptionKind, PermissionOption};
use tolka_facts::{Cause, ToolContent, ToolKind};

use super::*;

struct Heard {
    interpreter: Interpreter,
    drafts: Vec<Draft>,
}

impl Heard {
    fn new() -> Self {
        Heard { interpreter: Interpreter::new(Arc::new(Ids::seeded(1))), drafts: Vec::new() }
    }

    fn update(&mut self, update: &str) -> &mut Self {
        let update = Json::parse(update).unwrap();
        let before = self.drafts.len();
        self.interpreter.update(&update, Time::from_millis(1), &mut self.drafts);
        let raws: Vec<_> = self.drafts[before..].iter().filter_map(|draft| draft.raw.as_ref()).collect();
        assert_eq!(raws, [&update], "a message stands in exactly one draft");
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.update(&format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}},"messageId":"m1"}}"#
        ))
    }

    fn permission(&mut self, params: &str) -> Option<PermissionAsked> {
        self.interpreter.permission(&Json::parse(params).unwrap(), Time::from_millis(1), &mut self.drafts)
    }

    fn ended(&mut self, result: &str) -> (Stop, Option<Usage>, Option<Json>) {
        self.interpreter.ended(&Json::parse(result).unwrap(), &mut self.drafts)
    }

    /// What was said since the last call: `~` marks drafts of our own making, ids are numbered by first sight.
    fn take(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for draft in std::mem::take(&mut self.drafts) {
            let mark = if draft.cause == Cause::Tolka { "~" } else { "" };
            assert!(draft.cause == Cause::Agent || draft.raw.is_none());
            let what = match draft.event {
                Event::StepEnded(e) => format!("step_ended {:?}", e.finish),
                Event::TextAppended(e) => format!("text {}", e.text),
                Event::ThoughtAppended(e) => format!("thought {}", e.text),
                Event::OutputAppended(e) => format!("output {} {:?}", e.call, e.text),
                Event::ToolChanged(e) => format!("tool {} {:?} {:?}", e.call, e.name.unwrap_or_default(), e.status),
                Event::PlanSet(e) => {
                    let entry = |e: &PlanEntry| format!("{} {:?} {:?}", e.content, e.status, e.priority);
                    format!("plan {}", e.entries.iter().map(entry).collect::<Vec<_>>().join(", "))
                }
                Event::Foreign(e) => format!("foreign {}", e.what),
                event => event.name().to_owned(),
            };
            lines.push(format!("{mark}{what}"));
        }
        lines
    }

    fn last_tool(&self) -> ToolChanged {
        let tools = self.drafts.iter().rev().filter_map(|draft| match &draft.event {
            Event::ToolChanged(e) => Some(e.clone()),
            _ => None,
        });
        tools.into_iter().next().unwrap()
    }

    fn parts(&self) -> Vec<PartId> {
        let part = |draft: &Draft| match &draft.event {
            Event::TextAppended(e) => Some(e.part.clone()),
            Event::ThoughtAppended(e) => Some(e.part.clone()),
            _ => None,
        };
        let mut parts: Vec<_> = self.drafts.iter().filter_map(part).collect();
        parts.dedup();
        parts
    }
}

#[test]
fn a_step_begins_with_content_and_another_when_words_follow_a_finished_tool() {
    let mut heard = Heard::new();
    heard.update(r#"{"sessionUpdate": "usage_update", "used": 11, "size": 1000000}"#);
    heard.text("").text("Hello ").text("from mock.");
    heard.update(r#"{"_meta": {"claudeCode": {"toolName": "Bash"}}, "toolCallId": "toolu_1", "sessionUpdate": "tool_call", "rawInput": {}, "status": "pending", "title": "Terminal", "kind": "execute", "content": []}"#);
    heard.text("meanwhile");
    heard.update(r#"{"_meta": {"claudeCode": {"toolName": "Bash"}}, "toolCallId": "toolu_1", "sessionUpdate": "tool_call_update", "status": "completed", "rawOutput": "made", "content": [{"type": "content", "content": {"type": "text", "text": "```console\nmade\n```"}}]}"#);
    heard.text("").text("Done.");
    heard.update(r#"{"toolCallId": "toolu_1", "sessionUpdate": "tool_call_update", "status": "completed"}"#);
    heard.text(" Really.");
    assert_eq!(heard.parts().len(), 3, "a tool and a step each end a run of text, a late word about a tool does not");
    let result = r#"{"stopReason": "end_turn", "usage": {"inputTokens": 20, "outputTokens": 10, "cachedReadTokens": 3, "totalTokens": 33}, "_meta": {}}"#;
    let usage = Usage { input: 20, output: 10, cache_read: 3, ..Usage::default() };
    assert_eq!(heard.ended(result), (Stop::EndTurn, Some(usage), Json::parse("{}").ok()));
    let last = heard.drafts.last().unwrap();
    assert!(matches!(&last.event, Event::StepEnded(e) if e.usage == Some(usage)));
    assert_eq!(last.raw.as_ref().unwrap().get(), result);
    assert_eq!(
        heard.take(),
        [
            "usage_set",
            "foreign agent_message_chunk",
            "~step_started",
            "text Hello ",
            "text from mock.",
            "tool toolu_1 \"bash\" Some(Pending)",
            "text meanwhile",
            "tool toolu_1 \"bash\" Some(Completed)",
            "foreign agent_message_chunk",
            "~step_ended ToolCalls",
            "~step_started",
            "text Done.",
            "tool toolu_1 \"\" Some(Completed)",
            "text  Really.",
            "step_ended Stop",
        ]
    );
}

#[test]
fn a_plan_or_another_voice_or_another_message_ends_a_run_of_text() {
    let mut heard = Heard::new();
    heard.text("one").text(" run");
    heard.update(r#"{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Warning"}}"#);
    heard.update(r#"{"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}"#);
    heard.text("two");
    heard.update(r#"{"sessionUpdate": "plan", "entries": [{"content": "Read a.ts", "status": "in_progress", "priority": "medium"}, {"content": "Edit a.ts", "status": "weird"}, 7]}"#);
    heard.text("three");
    assert_eq!(heard.parts().len(), 5);
    assert!(heard.take().contains(&"plan Read a.ts InProgress Medium, Edit a.ts Pending Medium".to_owned()));
}

#[test]
fn opencode_names_its_tool_in_the_first_title_and_its_todos_are_a_plan() {
    let mut heard = Heard::new();
    heard.update(r#"{"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "todowrite", "kind": "other", "status": "pending", "locations": [], "rawInput": {}}"#);
    let todos = r#"{"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "in_progress", "kind": "other", "title": "todowrite", "locations": [], "rawInput": {"todos": [{"content": "Read a.ts", "status": "in_progress", "priority": "high", "id": "1", "activeForm": "Reading"}, {"content": "Edit a.ts", "status": "pending"}]}}"#;
    heard.update(todos).update(todos);
    heard.update(
        r#"{"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed", "title": "2 todos"}"#,
    );
    assert_eq!(
        heard.take(),
        [
            "~step_started",
            "tool call_1 \"todowrite\" Some(Pending)",
            "tool call_1 \"\" Some(Running)",
            "~plan Read a.ts InProgress High, Edit a.ts Pending Medium",
            "tool call_1 \"\" Some(Running)",
            "tool call_1 \"\" Some(Completed)",
        ]
    );
    heard.update(r#"{"sessionUpdate": "plan", "entries": []}"#).update(todos);
    assert_eq!(
        heard.take(),
        ["plan ", "tool call_1 \"\" Some(Running)"],
        "an agent that tells plans is taken at its word"
    );
}

#[test]
fn every_field_of_a_tool_is_read() {
    let mut heard = Heard::new();
    heard.update(r#"{"sessionUpdate": "tool_call_update", "toolCallId": "c", "name": "edit_file", "title": "Edit a.ts", "kind": "edit", "status": "failed", "content": [{"type": "diff", "path": "/w/a.ts", "oldText": null, "newText": "x"}, {"type": "terminal", "terminalId": "t"}, {"type": "hologram"}, {"type": "content", "content": {"type": "resource_link", "uri": "file:///w/a.ts"}}], "locations": [{"path": "/w/a.ts", "line": null}, {"path": "/w/b.ts", "line": 3}], "rawInput": {"a": 1.50}, "rawOutput": {"error": "ripgrep execution failed"}, "_meta": {"terminal_exit": {"exit_code": 1}}}"#);
    let link = tolka_facts::Block::Link {
        uri: "file:///w/a.ts".into(),
        name: "file:///w/a.ts".into(),
        title: None,
        description: None,
        mime: None,
        size: None,
    };
    assert_eq!(
        heard.last_tool(),
        ToolChanged {
            call: "c".into(),
            name: Some("edit_file".into()),
            kind: Some(ToolKind::Edit),
            title: Some("Edit a.ts".into()),
            status: Some(ToolStatus::Failed),
            input: Json::parse(r#"{"a": 1.50}"#).ok(),
            output: Json::parse(r#"{"error": "ripgrep execution failed"}"#).ok(),
            content: Some(vec![
                ToolContent::Diff { path: "/w/a.ts".into(), old: None, new: "x".into() },
                ToolContent::Terminal { id: "t".into() },
                ToolContent::Content { block: link },
            ]),
            locations: Some(vec![
                tolka_facts::Location { path: "/w/a.ts".into(), line: None },
                tolka_facts::Location { path: "/w/b.ts".into(), line: Some(3) },
            ]),
            error: Some("ripgrep execution failed".into()),
            meta: Json::parse(r#"{"terminal_exit": {"exit_code": 1}}"#).ok(),
            subagent: None,
        }
    );
}

#[test]
fn codex_tells_output_in_meta_and_its_last_output_goes_before_the_end() {
    let mut heard = Heard::new();
    heard.update(r#"{"sessionUpdate": "tool_call", "toolCallId": "call_1", "name": "exec_command", "kind": "execute", "title": "ls", "status": "in_progress", "content": [{"type": "terminal", "terminalId": "call_1"}]}"#);
    heard.update(r#"{"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "_meta": {"terminal_output_delta": {"data": "hi\n", "terminal_id": "call_1"}}}"#);
    heard.update(r#"{"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed", "_meta": {"terminal_output_delta": {"data": "ho\n"}, "terminal_exit": {"exit_code": 0}}}"#);
    assert_eq!(heard.last_tool().output, None);
    assert_eq!(
        heard.take(),
        [
            "~step_started",
            "tool call_1 \"exec_command\" Some(Running)",
            "output call_1 \"hi\\n\"",
            "output call_1 \"ho\\n\"",
            "tool call_1 \"\" Some(Completed)",
        ]
    );
}

#[test]
fn a_permission_makes_an_unknown_call_and_leaves_a_known_one_as_it_is() {
    let mut heard = Heard::new();
    let asked = heard.permission(r#"{"options": [{"optionId": "proceed_always", "name": "Allow for this session", "kind": "allow_always"}, {"optionId": "cancel", "name": "Reject", "kind": "reject_once"}, {"optionId": "odd", "kind": "perhaps"}], "toolCall": {"toolCallId": "run_shell_command_0", "status": "pending", "title": "ls", "content": [], "locations": [{"path": "/w"}], "kind": "execute"}}"#);
    let option = |id: &str, name: &str, kind| PermissionOption { id: id.into(), name: name.into(), kind };
    let asked = asked.unwrap();
    assert_eq!(
        asked,
        PermissionAsked {
            request: asked.request.clone(),
            call: Some("run_shell_command_0".into()),
            permission: "bash".into(),
            title: "ls".into(),
            patterns: vec!["/w".into()],
            metadata: None,
            options: vec![
                option("proceed_always", "Allow for this session", OptionKind::AllowAlways),
                option("cancel", "Reject", OptionKind::RejectOnce),
                option("odd", "odd", OptionKind::RejectOnce),
            ],
        }
    );
    assert_eq!(heard.take(), ["~step_started", "tool run_shell_command_0 \"\" Some(Pending)"]);

    heard.update(r#"{"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "bash", "kind": "execute", "status": "in_progress", "rawInput": {"command": "touch x", "cwd": "/w"}}"#);
    heard.take();
    let again = heard.permission(r#"{"toolCall": {"toolCallId": "call_1", "title": "touch x", "kind": "execute", "status": "pending", "locations": [], "rawInput": {"command": "touch x"}}, "options": [{"optionId": "once", "kind": "allow_once", "name": "Allow once"}]}"#).unwrap();
    assert_eq!(
        (again.permission.as_str(), again.title.as_str(), again.patterns),
        ("bash", "touch x", vec!["touch x".to_owned()])
    );
    assert!(heard.take().is_empty());

    heard.interpreter.refuse(&"call_1".into(), "no", &mut heard.drafts);
    heard.text("Well.");
    assert_eq!(heard.take(), ["tool call_1 \"\" Some(Failed)", "~step_ended ToolCalls", "~step_started", "text Well."]);
    assert_eq!(heard.permission(r#"{"toolCall": {"toolCallId": "c"}, "options": []}"#), None);
    assert_eq!(heard.take(), ["foreign session/request_permission"]);
}

#[test]
fn a_compaction_is_told_whole() {
    let mut heard = Heard::new();
    heard.update(r#"{"sessionUpdate": "compaction_update", "compactionId": "k", "status": "in_progress"}"#);
    for text in ["We did ", "much."] {
        heard.update(&format!(r#"{{"sessionUpdate": "compaction_summary_chunk", "compactionId": "k", "content": {{"type": "text", "text": "{text}"}}}}"#));
    }
    heard.update(r#"{"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed"}"#);
    let Event::CompactionEnded(ended) = &heard.drafts.last().unwrap().event else { panic!() };
    assert_eq!((ended.summary.as_ref().unwrap().head(), &ended.error), ("We did much.", &None));
    assert_eq!(heard.take().len(), 4);
    heard.update(r#"{"sessionUpdate": "compaction_update", "compactionId": "l", "status": "failed"}"#);
    let Event::CompactionEnded(ended) = &heard.drafts[0].event else { panic!() };
    assert_eq!(ended.error.as_deref(), Some("failed"));
}

#[test]
fn the_rest_of_the_protocol() {
    let mut heard = Heard::new();
    for update in [
        r#"{"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "mcp", "description": "x", "input": {"hint": "[reconnect]"}}]}"#,
        r#"{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}"#,
        r#"{"title": "hello TOOL", "updatedAt": "2026-11-15T00:26:00.190924", "sessionUpdate": "session_info_update"}"#,
        r#"{"sessionUpdate": "session_info_update", "_meta": {"codex": {"threadStatus": {"type": "idle"}}}}"#,
        r#"{"sessionUpdate": "session_info_update", "title": null}"#,
        r#"{"sessionUpdate": "usage_update", "used": 15, "size": 1000000, "cost": {"amount": 0.000175, "currency": "USD"}}"#,
        r#"{"sessionUpdate": "notice", "severity": "_mine", "title": "Careful"}"#,
        r#"{"sessionUpdate": "config_option_update", "configOptions": []}"#,
        r#"{"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hi"}}"#,
        r#"{"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}}"#,
    ] {
        heard.update(update);
    }
    assert_eq!(
        heard.take(),
        [
            "commands_set",
            "mode_set",
            "session_changed",
            "foreign session_info_update",
            "foreign session_info_update",
            "usage_set",
            "noticed",
            "foreign config_option_update",
            "foreign user_message_chunk",
            "foreign agent_message_chunk",
        ]
    );
}

#[test]
fn what_has_the_wrong_shape_is_foreign_or_left_out_and_never_breaks() {
    let mut heard = Heard::new();
    for (update, what) in [
        ("null", "foreign session/update"),
        ("[1]", "foreign session/update"),
        (r#"{"sessionUpdate": 7}"#, "foreign session/update"),
        (r#"{"sessionUpdate": "tool_call", "title": "x"}"#, "foreign tool_call"),
        (r#"{"sessionUpdate": "tool_call_update", "toolCallId": 7}"#, "foreign tool_call_update"),
        (r#"{"sessionUpdate": "agent_message_chunk", "content": "text"}"#, "foreign agent_message_chunk"),
        (r#"{"sessionUpdate": "plan", "entries": {}}"#, "foreign plan"),
        (r#"{"sessionUpdate": "usage_update", "used": -1, "size": "big"}"#, "foreign usage_update"),
        (
            r#"{"sessionUpdate": "compaction_update", "compactionId": "k", "status": "_dreaming"}"#,
            "foreign compaction_update",
        ),
        (r#"{"sessionUpdate": "subagent_update", "x": 1}"#, "foreign subagent_update"),
    ] {
        assert_eq!(heard.update(update).take(), [what], "{update}");
    }
    heard.update(r#"{"sessionUpdate": "tool_call", "toolCallId": "c", "title": 5, "kind": "magic", "status": "odd", "content": 3, "locations": "here", "rawInput": null, "_meta": []}"#);
    let read = ToolChanged { kind: Some(ToolKind::Other), meta: Json::parse("[]").ok(), ..ToolChanged::of("c".into()) };
    assert_eq!(heard.last_tool(), read);
    heard.take();
    for result in ["null", "7", r#"{"stopReason": 4, "usage": "much"}"#] {
        assert_eq!(heard.ended(result), (Stop::EndTurn, None, None));
    }
    assert_eq!(heard.take(), ["step_ended Stop", "foreign session/prompt", "foreign session/prompt"]);
}

#[test]
fn a_turn_that_is_cut_closes_its_step_and_errors_have_a_kind() {
    let mut heard = Heard::new();
    heard.text("Hel");
    heard.interpreter.close(Finish::Cancelled, &mut heard.drafts);
    heard.interpreter.close(Finish::Cancelled, &mut heard.drafts);
    assert_eq!(heard.take(), ["~step_started", "text Hel", "~step_ended Cancelled"]);
    let failed = |error: &str| heard.interpreter.failed(&Json::parse(error).unwrap());
    use tolka_facts::event::FailureKind;
    assert_eq!(
        failed(r#"{"code": -32000, "message": "Authentication required"}"#),
        Failed {
            kind: FailureKind::Auth,
            message: "Authentication required".into(),
            code: Some(-32000),
            retryable: false,
            details: None
        }
    );
    let internal = failed(r#"{"code": -32603, "message": "Internal error", "data": {"why": "x"}}"#);
    assert_eq!((internal.kind, internal.retryable), (FailureKind::Agent, true));
    assert_eq!(internal.details.unwrap().get(), r#"{"why": "x"}"#);
    assert_eq!(failed("\"oops\"").details.unwrap().get(), "\"oops\"");
}
