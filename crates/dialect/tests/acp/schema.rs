//! Everything that the official schema has: each method, update, block and word is read as what it is, and what we can
//! say is said. The lists here are held to the schema, so that a newer one shows what it brought.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tolka_facts::event::*;
use tolka_facts::{CallId, Draft, Event, PartId, ToolKind, TurnId};

use crate::valid::{self, fits, schema};
use crate::{drafts, frames, judged};

/// The constants of a definition that is a choice: of words, of numbers, or of objects by the field `by`.
pub(crate) fn choices(definition: &str, by: Option<&str>) -> BTreeSet<String> {
    let definition = &schema()["$defs"][definition];
    let all = definition.get("oneOf").or(definition.get("anyOf")).unwrap().as_array().unwrap();
    let constant = |choice: &Value| match by {
        Some(field) => choice["properties"][field]["const"].clone(),
        None => choice["const"].clone(),
    };
    // An open choice ends with one of any value.
    let words = all.iter().map(constant).filter(|word| !word.is_null());
    words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
}

pub(crate) fn set<'a>(words: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    words.into_iter().map(str::to_owned).collect()
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn response(id: u64, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(crate) fn update(update: &Value) -> Value {
    notification("session/update", &json!({ "sessionId": "s", "update": update }))
}

fn prompt() -> Value {
    request(1, "session/prompt", &json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "Hi" }] }))
}

/// What one more message is read as, inside a turn.
pub(crate) fn read(lines: &[Value]) -> Vec<Draft> {
    let before = [prompt()];
    let known = drafts(&before).len();
    let all = [&before, lines].concat();
    let text: String = all.iter().map(|line| format!("{line}\n")).collect();
    let found = judged(text.as_bytes());
    let of_shape = found.iter().filter(|f| ["shape", "method", "sender", "update-kind"].contains(&f.rule.name));
    let problems: Vec<_> = of_shape.map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{problems:?}");
    drafts(&all).split_off(known)
}

fn names(drafts: &[Draft]) -> Vec<String> {
    let name = |draft: &Draft| match &draft.event {
        Event::Foreign(e) => format!("{} {}", e.origin, e.what),
        event => event.name().to_owned(),
    };
    drafts.iter().map(name).collect()
}

/// The update of the only frame of the facts that an agent tells inside a turn.
pub(crate) fn said(events: Vec<Event>) -> Vec<Value> {
    let start = Event::from(TurnStarted { turn: TurnId::from("trn_1"), checkpoint: None });
    let all = std::iter::once(start).chain(events).map(Draft::agent).collect();
    let frames = frames(all).split_off(1);
    frames.iter().for_each(valid::check);
    frames
}

pub(crate) fn update_of(frame: &Value) -> Value {
    frame["params"]["update"].clone()
}

const SESSION: &str = r#"{"sessionId":"s"}"#;

/// Per method: the parameters, the result, and what both are read as.
type Row = (&'static str, &'static str, Option<&'static str>, &'static [&'static str], &'static [&'static str]);

const METHODS: &[Row] = &[
    (
        "initialize",
        r#"{"protocolVersion":1}"#,
        Some(r#"{"protocolVersion":1}"#),
        &["acp initialize"],
        &["acp initialize"],
    ),
    ("authenticate", r#"{"methodId":"m"}"#, Some("{}"), &["acp authenticate"], &["acp authenticate"]),
    ("logout", "{}", Some("{}"), &["acp logout"], &["acp logout"]),
    (
        "session/new",
        r#"{"cwd":"/w","mcpServers":[]}"#,
        Some(r#"{"sessionId":"new"}"#),
        &["acp session/new"],
        &["session_created"],
    ),
    (
        "session/load",
        r#"{"sessionId":"s","cwd":"/w","mcpServers":[]}"#,
        Some("{}"),
        &["acp session/load"],
        &["acp session/load"],
    ),
    ("session/list", "{}", Some(r#"{"sessions":[]}"#), &["acp session/list"], &["acp session/list"]),
    ("session/delete", SESSION, Some("{}"), &["acp session/delete"], &["acp session/delete"]),
    ("session/resume", r#"{"sessionId":"s","cwd":"/w"}"#, Some("{}"), &["acp session/resume"], &["acp session/resume"]),
    ("session/close", SESSION, Some("{}"), &["acp session/close"], &["acp session/close"]),
    (
        "session/set_mode",
        r#"{"sessionId":"s","modeId":"m"}"#,
        Some("{}"),
        &["acp session/set_mode"],
        &["acp session/set_mode"],
    ),
    (
        "session/set_config_option",
        r#"{"sessionId":"s","configId":"c","value":"v"}"#,
        Some(r#"{"configOptions":[]}"#),
        &["acp session/set_config_option"],
        &["acp session/set_config_option"],
    ),
    // One is open already, so that this one waits; an answer at once drops it.
    (
        "session/prompt",
        r#"{"sessionId":"s","prompt":[]}"#,
        Some(r#"{"stopReason":"cancelled"}"#),
        &["prompt_queued"],
        &["prompt_dropped"],
    ),
    ("session/cancel", SESSION, None, &["acp session/cancel"], &[]),
    (
        "fs/read_text_file",
        r#"{"sessionId":"s","path":"/w/a"}"#,
        Some(r#"{"content":"x"}"#),
        &["acp fs/read_text_file"],
        &["acp fs/read_text_file"],
    ),
    (
        "fs/write_text_file",
        r#"{"sessionId":"s","path":"/w/a","content":"x"}"#,
        Some("{}"),
        &["acp fs/write_text_file"],
        &["acp fs/write_text_file"],
    ),
    (
        "terminal/create",
        r#"{"sessionId":"s","command":"ls"}"#,
        Some(r#"{"terminalId":"t"}"#),
        &["acp terminal/create"],
        &["acp terminal/create"],
    ),
    (
        "terminal/output",
        r#"{"sessionId":"s","terminalId":"t"}"#,
        Some(r#"{"output":"x","truncated":false}"#),
        &["acp terminal/output"],
        &["acp terminal/output"],
    ),
    (
        "terminal/release",
        r#"{"sessionId":"s","terminalId":"t"}"#,
        Some("{}"),
        &["acp terminal/release"],
        &["acp terminal/release"],
    ),
    (
        "terminal/wait_for_exit",
        r#"{"sessionId":"s","terminalId":"t"}"#,
        Some("{}"),
        &["acp terminal/wait_for_exit"],
        &["acp terminal/wait_for_exit"],
    ),
    (
        "terminal/kill",
        r#"{"sessionId":"s","terminalId":"t"}"#,
        Some("{}"),
        &["acp terminal/kill"],
        &["acp terminal/kill"],
    ),
    (
        "session/request_permission",
        r#"{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}"#,
        Some(r#"{"outcome":{"outcome":"selected","optionId":"y"}}"#),
        &["step_started", "tool_changed", "permission_asked"],
        &["permission_answered"],
    ),
    (
        "elicitation/create",
        r#"{"mode":"form","sessionId":"s","message":"Which?","requestedSchema":{"properties":{"a":{"type":"string"}}}}"#,
        Some(r#"{"action":"accept","content":{"a":"x"}}"#),
        &["question_asked"],
        &["question_answered"],
    ),
    (
        "session/update",
        r#"{"sessionId":"s","update":{"sessionUpdate":"current_mode_update","currentModeId":"m"}}"#,
        None,
        &["mode_set"],
        &[],
    ),
    ("elicitation/complete", r#"{"elicitationId":"e"}"#, None, &["acp elicitation/complete"], &[]),
    ("$/cancel_request", r#"{"requestId":1}"#, None, &["acp $/cancel_request"], &[]),
];

#[test]
fn every_method_is_read() {
    let definitions = schema()["$defs"].as_object().unwrap();
    let with_method = definitions.iter().filter_map(|(name, it)| Some((it["x-method"].as_str()?, name.as_str())));
    let with_method: Vec<_> = with_method.collect();
    assert_eq!(
        with_method.iter().map(|(method, _)| (*method).to_owned()).collect::<BTreeSet<_>>(),
        set(METHODS.iter().map(|row| row.0))
    );
    for (method, params, result, asked, answered) in METHODS {
        let params: Value = serde_json::from_str(params).unwrap();
        let result: Option<Value> = result.map(|result| serde_json::from_str(result).unwrap());
        for (_, definition) in with_method.iter().filter(|(of, _)| of == method) {
            let value = if definition.ends_with("Response") { result.as_ref().unwrap() } else { &params };
            assert!(fits(definition, value), "{definition}: {value}");
        }
        let asks = match &result {
            Some(_) => request(7, method, &params),
            None => notification(method, &params),
        };
        let read_of_it = read(std::slice::from_ref(&asks));
        assert_eq!(names(&read_of_it), *asked, "{method}");
        let is_kept = |draft: &Draft| {
            draft
                .raw
                .as_ref()
                .is_some_and(|raw| [&asks, &asks["params"], &asks["params"]["update"]].contains(&&raw.value()))
        };
        assert!(read_of_it.iter().any(is_kept), "{method} is not kept");
        if let Some(result) = result {
            let both = read(&[asks, response(7, &result)]);
            assert_eq!(names(&both[asked.len()..]), *answered, "the response to {method}");
        }
    }
}

#[test]
fn methods_of_extensions_and_of_other_versions_are_kept() {
    let lines =
        [request(5, "_x/ask", &json!({})), notification("session/joke", &json!({ "a": 1 })), response(99, &json!({}))];
    let read = drafts(&[&[prompt()], lines.as_slice()].concat()).split_off(2);
    assert_eq!(names(&read), ["acp _x/ask", "acp session/joke", "acp response"]);
    let raw: Vec<_> = read.iter().map(|draft| draft.raw.as_ref().unwrap().value()).collect();
    assert_eq!(raw, lines);
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text }, "messageId": "prt_1" })
}

/// Each kind of update, what it is read as, and the facts that are told by one just so; none where it can only be
/// passed on.
fn updates() -> Vec<(Value, Vec<&'static str>, Option<Event>)> {
    let text = |text: &str| (PartId::from("prt_1"), text.to_owned());
    let (part, said) = text("Hello");
    let (thought_part, thought) = text("Hmm");
    let changed = ToolChanged {
        title: Some("Run it".into()),
        kind: Some(ToolKind::Execute),
        ..ToolChanged::of(CallId::from("c"))
    };
    let title = Some("A title".to_owned());
    vec![
        // The prompt itself is told by its turn's start; see `encode`.
        (chunk("user_message_chunk", "Hi"), vec!["acp user_message_chunk"], None),
        (
            chunk("agent_message_chunk", "Hello"),
            vec!["step_started", "text_appended"],
            Some(TextAppended { part, text: said }.into()),
        ),
        (
            chunk("agent_thought_chunk", "Hmm"),
            vec!["step_started", "thought_appended"],
            Some(ThoughtAppended { part: thought_part, text: thought }.into()),
        ),
        (
            json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Run it", "kind": "execute" }),
            vec!["step_started", "tool_changed"],
            Some(changed.into()),
        ),
        // One that was not created; `encode` has those that were.
        (
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed" }),
            vec!["step_started", "tool_changed"],
            None,
        ),
        (
            json!({ "sessionUpdate": "plan", "entries": [{ "content": "a", "priority": "low", "status": "pending" }] }),
            vec!["plan_set"],
            Some(
                PlanSet {
                    entries: vec![PlanEntry {
                        content: "a".into(),
                        status: PlanStatus::Pending,
                        priority: Priority::Low,
                    }],
                }
                .into(),
            ),
        ),
        (
            json!({ "sessionUpdate": "available_commands_update", "availableCommands": [{ "name": "n", "description": "d", "input": { "hint": "h" } }] }),
            vec!["commands_set"],
            Some(
                CommandsSet {
                    commands: vec![Command { name: "n".into(), description: "d".into(), hint: Some("h".into()) }],
                }
                .into(),
            ),
        ),
        (
            json!({ "sessionUpdate": "current_mode_update", "currentModeId": "m" }),
            vec!["mode_set"],
            Some(ModeSet { mode: "m".into() }.into()),
        ),
        (
            json!({ "sessionUpdate": "config_option_update", "configOptions": [] }),
            vec!["acp config_option_update"],
            None,
        ),
        (
            json!({ "sessionUpdate": "session_info_update", "title": "A title" }),
            vec!["session_changed"],
            Some(SessionChanged { title, mode: None, model: None, agent: None, archived: None }.into()),
        ),
        (
            json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 0.5, "currency": "EUR" } }),
            vec!["usage_set"],
            Some(
                UsageSet {
                    used: 1,
                    size: 2,
                    cost: Some(Cost { amount: 0.5, currency: "EUR".into() }),
                    subagents: None,
                }
                .into(),
            ),
        ),
        (
            json!({ "sessionUpdate": "notice", "severity": "info", "title": "t", "description": "d" }),
            vec!["noticed"],
            Some(Noticed { severity: Severity::Info, title: "t".into(), description: Some("d".into()) }.into()),
        ),
        (
            json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress" }),
            vec!["compaction_started"],
            Some(CompactionStarted { id: "c".into(), automatic: true }.into()),
        ),
        (
            json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": { "type": "text", "text": "s" } }),
            vec!["acp compaction_summary_chunk"],
            None,
        ),
    ]
}

/// An agent's name for a message is not one for a part: that is ours to give.
fn with_our_part(mut event: Event) -> Event {
    match &mut event {
        Event::TextAppended(e) => e.part = PartId::from("prt_1"),
        Event::ThoughtAppended(e) => e.part = PartId::from("prt_1"),
        _ => {}
    }
    event
}

#[test]
fn every_update_is_read_said_and_passed_on() {
    let all = updates();
    let kinds = all.iter().map(|(update, ..)| update["sessionUpdate"].as_str().unwrap());
    assert_eq!(set(kinds), choices("SessionUpdate", Some("sessionUpdate")));
    for (told, read_as, fact) in all {
        assert!(fits("SessionUpdate", &told), "{told}");
        let read = read(&[update(&told)]);
        assert_eq!(names(&read), read_as);
        assert!(
            read.iter().any(|draft| draft.raw.as_ref().is_some_and(|raw| raw.value() == told)),
            "{told} is not kept"
        );
        if let Some(fact) = fact {
            assert_eq!(said(vec![fact.clone()]).iter().map(update_of).collect::<Vec<_>>(), std::slice::from_ref(&told));
            assert_eq!(with_our_part(read.last().unwrap().event.clone()), fact);
        }
        let start = Draft::agent(TurnStarted { turn: TurnId::from("trn_1"), checkpoint: None });
        let passed = frames(std::iter::once(start).chain(read).collect());
        assert_eq!(update_of(passed.last().unwrap()), told);
    }
}
