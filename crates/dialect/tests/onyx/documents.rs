//! Every JSON example of the two documents: it is read as what it shows, and our own telling of the same
//! has its keys and values.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tolka_dialect::onyx::{Packet, Profile, read_content};
use tolka_facts::Event;

use crate::{Session, decode, stream};

const FRAGMENT: &str = "content array fragment";

struct Example {
    file: String,
    shows: String,
    text: String,
}

/// Walks the folders, so that a file that the index does not name fails, and the other way round.
fn examples() -> Vec<Example> {
    let mut examples = Vec::new();
    for document in ["000", "002"] {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/documents").join(document);
        let index = fs::read_to_string(folder.join("index.json")).unwrap();
        let mut index: BTreeMap<String, String> = serde_json::from_str(&index).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name != "index.json" {
                let shows = index.remove(&name).unwrap_or_else(|| panic!("{document}/{name} is not in the index"));
                let text = fs::read_to_string(folder.join(&name)).unwrap();
                examples.push(Example { file: format!("{document}/{name}"), shows, text });
            }
        }
        assert!(index.is_empty(), "the index of {document} names files that are not there: {index:?}");
    }
    assert_eq!(examples.len(), 18);
    examples
}

#[test]
fn every_example_is_read_as_what_it_shows() {
    for example in examples() {
        if example.shows == FRAGMENT {
            let items = read_content(&example.text).unwrap().unwrap();
            let shown: Value = serde_json::from_str(&example.text).unwrap();
            assert_eq!(items.len(), shown["content"].as_array().unwrap().len(), "{}", example.file);
            continue;
        }
        assert_eq!(Packet::parse(&example.text).unwrap().name(), example.shows, "{}", example.file);
        let drafts = decode(&as_stream(&example.text));
        let told = drafts.iter().find(|draft| draft.raw.is_some()).unwrap();
        let expected = match example.shows.as_str() {
            "agent_message_chunk" => "text_appended",
            "tool_call_start" | "tool_call_progress" => "tool_changed",
            "agent_plan_update" => "plan_set",
            "prompt_response" => "turn_ended",
            "error" => "failed",
            other => panic!("{}: no event is known for {other}", example.file),
        };
        assert_eq!(told.event.name(), expected, "{}", example.file);
        let shown: Value = serde_json::from_str(&example.text).unwrap();
        assert_eq!(told.raw.as_ref().unwrap().value(), shown, "{}: kept as it came", example.file);
    }
}

#[test]
fn our_telling_of_an_example_has_its_keys_and_values() {
    for example in examples() {
        let shown: Value = serde_json::from_str(&example.text).unwrap();
        if example.shows == FRAGMENT {
            let mut packet = json!({"type": "tool_call_progress", "toolCallId": "c", "title": "write", "kind": "edit",
                "status": "completed"});
            packet["content"] = shown["content"].clone();
            let told = retold(&packet.to_string(), "tool_call_progress");
            assert_eq!(told["content"], shown["content"], "{}", example.file);
            continue;
        }
        let told = retold(&example.text, &example.shows);
        assert_covers(&told, &shown, &example.file, "");
    }
}

/// A start says all that a pending call has; a progress must not repeat it.
#[test]
fn a_start_alone_is_retold_as_a_start_alone() {
    for example in examples().into_iter().filter(|example| example.shows == "tool_call_start") {
        let mut session = Session::in_turn();
        for draft in decode(&as_stream(&example.text)).into_iter().filter(|d| d.raw.is_some()) {
            session.draft(draft);
        }
        assert_eq!(crate::types(&session.packets(Profile::Documented)), ["tool_call_start"], "{}", example.file);
    }
}

fn as_stream(example: &str) -> String {
    let value: Value = serde_json::from_str(example).unwrap();
    stream(&[value.to_string()])
}

/// The last packet of the type that we tell after reading the example.
fn retold(example: &str, shows: &str) -> Value {
    let mut session = Session::default();
    session.tell(crate::created(None));
    for draft in decode(&as_stream(example)) {
        assert!(!matches!(draft.event, Event::Foreign(_)));
        session.draft(draft);
    }
    let packets = session.packets(Profile::Documented);
    packets.into_iter().rfind(|packet| packet["type"] == shows).unwrap()
}

/// Ours has all that is shown, with the same values; beyond it only what the other document or every packet
/// of the real server has.
fn assert_covers(ours: &Value, shown: &Value, file: &str, path: &str) {
    match (ours, shown) {
        (Value::Object(ours), Value::Object(shown)) => {
            for (key, value) in shown {
                let told = ours.get(key).unwrap_or_else(|| panic!("{file}: no {path}/{key}"));
                if key != "timestamp" {
                    assert_covers(told, value, file, &format!("{path}/{key}"));
                }
            }
            for (key, value) in ours.iter().filter(|(key, _)| !shown.contains_key(*key)) {
                let is_known = match format!("{path}/{key}").as_str() {
                    "/timestamp" | "/type" | "/rawOutput/output" => value.is_string(),
                    "/content" | "/locations" => value.is_null(),
                    _ => (key == "_meta" || key == "annotations") && value.is_null(),
                };
                assert!(is_known, "{file}: the document has no {path}/{key}: {value}");
            }
        }
        (Value::Array(ours), Value::Array(shown)) => {
            assert_eq!(ours.len(), shown.len(), "{file}: {path}");
            for (ours, shown) in ours.iter().zip(shown) {
                assert_covers(ours, shown, file, &format!("{path}/[]"));
            }
        }
        _ => assert_eq!(ours, shown, "{file}: {path}"),
    }
}
