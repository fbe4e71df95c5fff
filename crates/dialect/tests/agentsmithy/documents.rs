//! Every JSON example of document 003: it is read as what it shows, and our own telling of the same is the same.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use tolka_dialect::{Dialect, Frames, Retelling};
use tolka_facts::Time;

use crate::{data, decode, judged, skeleton};

struct Example {
    file: String,
    shows: String,
    text: String,
}

/// Walks the folder, so that a file that the index does not name fails, and the other way round.
fn examples() -> Vec<Example> {
    let folder = data("documents/003");
    let index = fs::read_to_string(folder.join("index.json")).unwrap();
    let mut index: BTreeMap<String, String> = serde_json::from_str(&index).unwrap();
    let mut examples = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        // The printed client is code: `tests/clients` runs it.
        if !matches!(file.as_str(), "index.json" | "client.js") {
            let shows = index.remove(&file).unwrap_or_else(|| panic!("{file} is not in the index"));
            let text = fs::read_to_string(folder.join(&file)).unwrap();
            examples.push(Example { file, shows, text });
        }
    }
    assert!(index.is_empty(), "the index names files that are not there: {index:?}");
    assert_eq!(examples.len(), 18);
    examples
}

fn events() -> impl Iterator<Item = Example> {
    examples().into_iter().filter(|example| example.shows != "stream" && example.shows != "request")
}

fn as_stream(text: &str) -> Vec<u8> {
    let value: Value = serde_json::from_str(text).unwrap();
    format!("data: {value}\n\n").into_bytes()
}

fn retold(stream: &[u8]) -> Vec<Value> {
    let (mut retelling, mut frames) =
        (Retelling::new(Dialect::AgentSmithy, Dialect::AgentSmithy, Time::default()), Frames::default());
    retelling.feed(stream, &mut frames).unwrap();
    retelling.finish(&mut frames).unwrap();
    frames.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
}

#[test]
fn every_event_is_read_as_what_it_shows() {
    let mut shown = Vec::new();
    for example in events() {
        let drafts = decode(&as_stream(&example.text));
        let told = drafts.iter().find(|draft| draft.raw.is_some());
        let expected = match example.shows.as_str() {
            "user" => Some("prompt_queued"),
            "chat" => Some("text_appended"),
            "reasoning" => Some("thought_appended"),
            "summary_start" => Some("compaction_started"),
            "summary_end" => Some("compaction_ended"),
            "tool_call" => Some("tool_changed"),
            "file_edit" => Some("file_changed"),
            "error" => Some("failed"),
            "done" => Some("turn_ended"),
            // Marks of a segment, which the runs of text themselves tell.
            "chat_start" | "chat_end" | "reasoning_start" | "reasoning_end" => None,
            other => panic!("{}: no event is known for {other}", example.file),
        };
        assert_eq!(told.map(|draft| draft.event.name()), expected, "{}", example.file);
        let value: Value = serde_json::from_str(&example.text).unwrap();
        if let Some(raw) = told.and_then(|draft| draft.raw.as_ref()) {
            assert_eq!(raw.value(), value, "{}: kept as it came", example.file);
        }
        shown.push(example.shows);
    }
    shown.sort();
    assert_eq!(shown.len(), 13);
    shown.dedup();
    assert_eq!(shown.len(), 13, "every type is shown once");
}

/// Word for word and key for key, in the document's order; a diff gets the line end that `git apply` asks for.
#[test]
fn our_telling_of_an_event_is_the_documents() {
    for example in events() {
        let mut shown: Value = serde_json::from_str(&example.text).unwrap();
        if let Some(Value::String(diff)) = shown.get_mut("diff") {
            diff.push('\n');
        }
        // A segment is told around its pieces, so a mark comes with one.
        let piece = match example.shows.split_once('_') {
            Some((kind @ ("chat" | "reasoning"), "start" | "end")) => {
                format!("data: {{\"type\":\"{kind}\",\"content\":\"x\",\"dialog_id\":\"01J...\"}}\n\n")
            }
            _ => String::new(),
        };
        let done = "data: {\"type\":\"done\",\"done\":true,\"dialog_id\":\"01J...\"}\n\n";
        let mark = as_stream(&example.text);
        let (before, after) = match example.shows.as_str() {
            "chat_end" | "reasoning_end" => (piece.as_str(), done),
            "error" => ("", done),
            _ => ("", piece.as_str()),
        };
        let told = retold(&[before.as_bytes(), &mark, after.as_bytes()].concat());
        let ours = told.iter().find(|packet| packet["type"] == shown["type"]);
        assert_eq!(ours.map(Value::to_string), Some(shown.to_string()), "{}", example.file);
    }
}

#[test]
fn every_event_is_of_its_shape() {
    for example in events() {
        let found = judged(&as_stream(&example.text));
        let order = ["user-first", "no-done", "outside-segment", "end-without-start", "error-then-done"];
        assert!(found.iter().all(|(_, rule)| order.contains(rule)), "{}: {found:?}", example.file);
    }
}

/// The streams of the document are read whole by its client, and what the law says of them is true: two are pieces of a
/// turn, and where the third has a diff it shows three dots.
#[test]
fn every_stream_is_read_and_judged() {
    for example in examples().into_iter().filter(|example| example.shows == "stream") {
        let packets = skeleton(example.text.as_bytes());
        assert_eq!(packets.len(), example.text.matches("data: ").count(), "{}", example.file);
        let (found, told): (Vec<(u64, &str)>, usize) = match example.file.as_str() {
            "fetch.sse" => (vec![(1, "user-first")], packets.len() + 1),
            "search.sse" => (vec![(1, "user-first"), (1, "no-done")], packets.len() + 1),
            "file_edits.sse" => (vec![(17, "diff"), (21, "diff"), (25, "diff")], packets.len()),
            "failure.sse" => (vec![], packets.len() + 1),
            other => panic!("{other} is new"),
        };
        assert_eq!(judged(example.text.as_bytes()), found, "{}", example.file);
        // What does not begin with `user` gets one, and nothing else differs in kind.
        let retold = retold(example.text.as_bytes());
        let kinds = |packets: &[Value]| packets.iter().map(crate::kind).collect::<Vec<_>>();
        assert_eq!(retold.len(), told, "{}", example.file);
        assert!(kinds(&retold).ends_with(&kinds(&packets)), "{}", example.file);
    }
}
