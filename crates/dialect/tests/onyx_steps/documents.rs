//! Every JSON example of document 001: it is read as what it shows, and our own telling of the same has its keys, in
//! its order, and its values.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tolka_facts::event::{
    ArtifactKind, FileOperation, Finish, OptionKind, PermissionOption, PlanEntry, PlanStatus, Priority, StepStarted,
    Stop, TextAppended, ToolChanged, Usage,
};
use tolka_facts::{Block, CallId, Event, MessageId, PartId, ToolContent, ToolKind, ToolStatus};

use crate::{Session, decode, judge, stream};

const BLOCK: &str = "content block";

struct Example {
    file: String,
    shows: String,
    text: String,
}

/// Walks the folder, so that a file that the index does not name fails, and the other way round.
fn examples() -> Vec<Example> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/documents/001");
    let index = fs::read_to_string(folder.join("index.json")).unwrap();
    let mut index: BTreeMap<String, String> = serde_json::from_str(&index).unwrap();
    let mut examples = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if file != "index.json" {
            let shows = index.remove(&file).unwrap_or_else(|| panic!("{file} is not in the index"));
            let text = fs::read_to_string(folder.join(&file)).unwrap();
            examples.push(Example { file, shows, text });
        }
    }
    assert!(index.is_empty(), "the index names files that are not there: {index:?}");
    assert_eq!(examples.iter().filter(|example| example.shows == BLOCK).count(), 5);
    assert_eq!(examples.len(), 17 + 5);
    examples
}

fn example(name: &str) -> Value {
    let example = examples().into_iter().find(|example| example.file == format!("{name}.json")).unwrap();
    serde_json::from_str(&example.text).unwrap()
}

/// What the packet tells, without the turn that it implies.
fn read(packet: &Value) -> Vec<Event> {
    let drafts = decode(&stream(&[packet.to_string()]));
    drafts.into_iter().map(|draft| draft.event).filter(|event| !matches!(event, Event::TurnStarted(_))).collect()
}

fn read_example(name: &str) -> Event {
    let mut events = read(&example(name));
    assert_eq!(events.len(), 1, "{name}: {events:?}");
    events.remove(0)
}

#[test]
fn steps_are_read() {
    let message = MessageId::from("planning");
    assert_eq!(read_example("step_start"), StepStarted { message: message.clone(), model: None }.into());
    let Event::ThoughtAppended(thought) = read_example("step_delta") else { panic!() };
    assert_eq!(thought.part, PartId::from("thinking"));
    assert_eq!(thought.text, "I need to first understand the codebase structure...");
    let Event::StepEnded(end) = read_example("step_end") else { panic!() };
    assert_eq!((end.message, end.finish), (message, Finish::Stop));
}

#[test]
fn tools_are_read() {
    let call = CallId::from("tc_123");
    let start = ToolChanged {
        name: Some("read".into()),
        kind: Some(ToolKind::Read),
        title: Some("Reading file.py".into()),
        status: Some(ToolStatus::Running),
        input: crate::json(r#"{"file_path":"/path/to/file.py"}"#),
        ..ToolChanged::of(call.clone())
    };
    assert_eq!(read_example("tool_start"), start.into());
    let progress = ToolChanged {
        name: Some("bash".into()),
        kind: Some(ToolKind::Execute),
        title: Some("Running tests...".into()),
        status: Some(ToolStatus::Running),
        ..ToolChanged::of(call.clone())
    };
    assert_eq!(read_example("tool_progress"), progress.into());
    let end = ToolChanged {
        name: Some("read".into()),
        kind: Some(ToolKind::Read),
        status: Some(ToolStatus::Completed),
        output: crate::json(r#""File contents here...""#),
        ..ToolChanged::of(call)
    };
    assert_eq!(read_example("tool_end"), end.into());
}

#[test]
fn output_is_read() {
    let packets = ["output_start", "output_delta", "output_end"].map(|name| example(name).to_string());
    let events: Vec<_> = decode(&stream(&packets)).into_iter().map(|draft| draft.event).collect();
    let [Event::TurnStarted(_), Event::TextAppended(TextAppended { text, .. })] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(text, "I've updated the file to include...");
}

#[test]
fn plans_modes_and_ends_are_read() {
    let Event::PlanSet(plan) = read_example("plan") else { panic!() };
    let entry = PlanEntry { content: "Read the file".into(), status: PlanStatus::Pending, priority: Priority::High };
    assert_eq!(plan.entries, [entry]);
    let Event::ModeSet(mode) = read_example("mode_update") else { panic!() };
    assert_eq!(mode.mode, "implement");
    let Event::TurnEnded(end) = read_example("done") else { panic!() };
    let usage = Usage { input: 1000, output: 500, ..Usage::default() };
    assert_eq!((end.stop, end.usage), (Stop::EndTurn, Some(usage)));
    let Event::Failed(failed) = read_example("error") else { panic!() };
    assert_eq!((failed.message.as_str(), failed.code), ("Failed to read file: File not found", None));
}

#[test]
fn files_artifacts_and_permissions_are_read() {
    let Event::FileChanged(file) = read_example("file_write") else { panic!() };
    assert_eq!((file.path.as_str(), file.operation), ("outputs/file.py", FileOperation::Create));
    let Event::ArtifactSaved(saved) = read_example("artifact_created") else { panic!() };
    assert_eq!((saved.kind, saved.size, saved.mime.as_str()), (ArtifactKind::WebApp, 4096, "text/html"));
    assert_eq!(saved.preview.as_deref(), Some("/api/build/sessions/{session_id}/preview"));
    let Event::PermissionAsked(ask) = read_example("permission_request") else { panic!() };
    let option = |id: &str, name: &str, kind| PermissionOption { id: id.into(), name: name.into(), kind };
    let options =
        [option("approve", "Approve", OptionKind::AllowOnce), option("reject", "Reject", OptionKind::RejectOnce)];
    assert_eq!((ask.permission.as_str(), ask.title.as_str()), ("delete_file", "Delete test.py?"));
    assert_eq!(ask.options, options, "what the document's answer chooses between");
    let Event::PermissionAnswered(answer) = read_example("permission_response") else { panic!() };
    assert_eq!((answer.option.as_deref(), answer.reason.as_deref()), (Some("approve"), Some("User approved")));
}

#[test]
fn every_block_is_read_and_told_as_it_stands() {
    for example in examples().into_iter().filter(|example| example.shows == BLOCK) {
        let shown: Value = serde_json::from_str(&example.text).unwrap();
        let end = json!({"type": "tool_end", "tool_call_id": "c", "tool_name": "Read", "status": "success",
            "result": "", "content": [shown.clone()], "timestamp": "2025-01-20T12:00:00.000Z"});
        let events = read(&end);
        let [Event::ToolChanged(ToolChanged { content: Some(content), .. })] = events.as_slice() else { panic!() };
        let is_kind = match (example.file.as_str(), content.as_slice()) {
            ("text_block.json", [ToolContent::Content { block }]) => matches!(block, Block::Text { .. }),
            ("image_block.json", [ToolContent::Content { block }]) => matches!(block, Block::Image { .. }),
            ("audio_block.json", [ToolContent::Content { block }]) => matches!(block, Block::Audio { .. }),
            ("embedded_resource_block.json", [ToolContent::Content { block }]) => {
                matches!(block, Block::Resource { .. })
            }
            ("resource_link_block.json", [ToolContent::Content { block }]) => matches!(block, Block::Link { .. }),
            _ => false,
        };
        assert!(is_kind, "{}: {content:?}", example.file);
        let told = retold(&[end], "tool_end");
        assert_eq!(told["content"].to_string(), json!([shown]).to_string(), "{}", example.file);
    }
}

/// What surrounds a packet, so that it can be told at all.
fn in_context(shows: &str) -> Vec<Value> {
    let before: &[&str] = match shows {
        "step_end" => &["step_start"],
        "tool_progress" | "tool_end" => &["tool_start"],
        "output_start" => &[],
        "permission_response" => &["permission_request"],
        _ => &[],
    };
    let after: &[&str] = match shows {
        "output_start" => &["output_delta"],
        "output_end" => &["done"],
        _ => &[],
    };
    let before = before.iter().map(|name| example(name));
    let middle = match shows {
        "output_end" => vec![example("output_start"), example("output_delta"), example("output_end")],
        shows => vec![example(shows)],
    };
    before.chain(middle).chain(after.iter().map(|name| example(name))).collect()
}

fn retold(packets: &[Value], shows: &str) -> Value {
    let mut session = Session::created();
    let frames: Vec<_> = packets.iter().map(Value::to_string).collect();
    for draft in decode(&stream(&frames)) {
        assert!(!matches!(draft.event, Event::Foreign(_)));
        session.draft(draft);
    }
    let told = session.packets();
    told.into_iter().rfind(|packet| packet["type"] == shows).unwrap_or_else(|| panic!("no {shows} was told"))
}

#[test]
fn our_telling_of_an_example_has_its_keys_and_values() {
    /// Values that no fact carries, and what stands there instead.
    fn ours(shows: &str, key: &str, shown: &Value) -> Value {
        match (shows, key) {
            // A step is named by its number.
            ("step_start", "step_name") => json!("Step 1"),
            // The example's call was started with another name.
            ("tool_progress", "progress") | ("mode_update", "description") => Value::Null,
            // The lines are made from the entries, of which the example shows the first.
            ("plan", "plan") => json!("1. Read the file"),
            ("done", "summary") => json!("Completed"),
            ("file_write", "size_bytes") => Value::Null,
            ("artifact_created", "artifact") => {
                let mut artifact = shown.clone();
                artifact["download_url"] = json!("/api/build/sessions/ses_retold/artifacts/outputs/web/");
                artifact
            }
            _ => shown.clone(),
        }
    }
    for example in examples().into_iter().filter(|example| example.shows != BLOCK) {
        let shown: Value = serde_json::from_str(&example.text).unwrap();
        let told = retold(&in_context(&example.shows), &example.shows);
        let (shown, told) = (shown.as_object().unwrap(), told.as_object().unwrap());
        for (key, value) in shown {
            assert_eq!(told[key], ours(&example.shows, key, value), "{}: {key}", example.file);
        }
        let extra: &[&str] = match example.shows.as_str() {
            "permission_request" => &["options", "tool_call_id"],
            "permission_response" => &["option_id"],
            _ => &[],
        };
        let documented: Vec<_> = told.keys().filter(|key| !extra.contains(&key.as_str())).collect();
        assert_eq!(documented, shown.keys().collect::<Vec<_>>(), "{}: the document's order", example.file);
    }
}

/// The judge takes the document's own packets for what they are.
#[test]
fn the_examples_break_no_rule_of_shape() {
    for example in examples().into_iter().filter(|example| example.shows != BLOCK) {
        let packet: Value = serde_json::from_str(&example.text).unwrap();
        let found = judge(&stream(&[packet.to_string()]));
        let faults: Vec<_> = found
            .iter()
            .filter(|finding| !finding.rule.name.ends_with("-order") && finding.rule.name != "truncated")
            .collect();
        assert!(faults.is_empty(), "{}: {faults:?}", example.file);
    }
}
