//! The decoder: text exactly once, turns and steps where the wire has none, and nothing breaks it.

use proptest::prelude::*;
use serde_json::{Value, json};
use tolka_dialect::{Decoder as _, opencode};
use tolka_facts::event::{Finish, Stop};
use tolka_facts::{Draft, Event};

use crate::runs;
use crate::support::{PROFILES, Run, cases, decode, frame};
use crate::transcript::Transcript;

const SESSION: &str = "ses_1";

fn event(kind: &str, properties: Value) -> Vec<u8> {
    frame(&json!({ "type": kind, "properties": properties }))
}

fn user(id: &str) -> Vec<u8> {
    let model = json!({ "providerID": "mock", "modelID": "m" });
    let info = json!({
        "id": id, "sessionID": SESSION, "role": "user", "time": { "created": 1 }, "agent": "build", "model": model,
    });
    event("message.updated", json!({ "info": info }))
}

fn assistant(id: &str, parent: &str, more: Value) -> Vec<u8> {
    let mut info = json!({
        "id": id, "sessionID": SESSION, "role": "assistant", "parentID": parent, "modelID": "m", "providerID": "mock",
        "mode": "build", "path": { "cwd": "/workspace", "root": "/workspace" }, "time": { "created": 1 }, "cost": 0,
        "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
    });
    info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event("message.updated", json!({ "info": info }))
}

fn part(message: &str, fields: Value, delta: Option<&str>) -> Vec<u8> {
    let mut part = json!({ "id": "prt_1", "sessionID": SESSION, "messageID": message });
    part.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event("message.part.updated", json!({ "part": part, "delta": delta }))
}

fn text(message: &str, text: &str, delta: Option<&str>) -> Vec<u8> {
    part(message, json!({ "type": "text", "text": text }), delta)
}

fn delta(piece: &str) -> Vec<u8> {
    let of = json!({ "sessionID": SESSION, "messageID": "msg_2", "partID": "prt_1", "field": "text", "delta": piece });
    event("message.part.delta", of)
}

fn status(status: &str) -> Vec<u8> {
    event("session.status", json!({ "sessionID": SESSION, "status": { "type": status } }))
}

fn idle() -> Vec<u8> {
    event("session.idle", json!({ "sessionID": SESSION }))
}

fn names(drafts: &[Draft]) -> Vec<&'static str> {
    drafts.iter().map(|draft| draft.event.name()).collect()
}

/// The pieces of text, with the part that each belongs to.
fn said(drafts: &[Draft]) -> Vec<(String, String)> {
    let piece = |draft: &Draft| match &draft.event {
        Event::TextAppended(e) => Some((e.part.to_string(), e.text.clone())),
        _ => None,
    };
    drafts.iter().filter_map(piece).collect()
}

#[test]
fn a_prompt_is_told_when_its_parts_are_in() {
    let stream = [
        user("msg_1"),
        part("msg_1", json!({ "type": "text", "text": "look" }), None),
        part(
            "msg_1",
            json!({ "id": "prt_2", "type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk=" }),
            None,
        ),
        status("busy"),
        assistant("msg_2", "msg_1", json!({})),
        idle(),
    ];
    let drafts = decode(&stream.concat());
    assert_eq!(names(&drafts), ["prompt_queued", "turn_started", "step_started", "step_ended", "turn_ended"]);
    let Event::PromptQueued(prompt) = &drafts[0].event else { panic!("{drafts:?}") };
    assert_eq!(prompt.content.len(), 2);
    assert_eq!(prompt.turn.as_str(), "trn_1");
}

#[test]
fn text_is_told_once_however_it_comes() {
    let begin = [user("msg_1"), status("busy"), assistant("msg_2", "msg_1", json!({}))].concat();
    let ways: [&[Vec<u8>]; 5] = [
        &[text("msg_2", "", None), delta("Hé"), delta("llo"), text("msg_2", "Héllo", None)],
        &[text("msg_2", "Hé", Some("Hé")), text("msg_2", "Héllo", Some("llo")), text("msg_2", "Héllo", None)],
        &[text("msg_2", "Héllo", None), text("msg_2", "Héllo", None)],
        &[
            text("msg_2", "", None),
            delta("Hé"),
            text("msg_2", "Hé", Some("Hé")),
            delta("llo"),
            text("msg_2", "Héllo", Some("llo")),
        ],
        &[text("msg_2", "", Some("Hé")), text("msg_2", "", Some("llo"))],
    ];
    for way in ways {
        let drafts = decode(&[begin.clone(), way.concat()].concat());
        let whole: String = said(&drafts).into_iter().map(|(_, text)| text).collect();
        assert_eq!(whole, "Héllo");
        assert!(!names(&drafts).contains(&"foreign"));
    }
}

#[test]
fn a_text_that_was_replaced_is_a_new_part_and_one_that_was_trimmed_is_not() {
    let begin = [user("msg_1"), status("busy"), assistant("msg_2", "msg_1", json!({})), delta("Hello \n")].concat();
    let drafts = decode(&[begin.clone(), text("msg_2", "Hello", None)].concat());
    assert_eq!(said(&drafts), [("prt_1".to_owned(), "Hello \n".to_owned())]);
    let drafts = decode(&[begin, text("msg_2", "Goodbye", None), delta("!")].concat());
    let pieces = said(&drafts);
    assert_eq!(pieces[1..], [("prt_1~1".to_owned(), "Goodbye".to_owned()), ("prt_1~1".to_owned(), "!".to_owned())]);
    assert!(drafts.iter().any(|draft| draft.event.name() == "foreign" && draft.raw.is_some()));
}

#[test]
fn an_abort_ends_the_turn_once_with_all_that_came_after_the_first_idle() {
    let aborted = json!({ "name": "MessageAbortedError", "data": { "message": "Aborted" } });
    let tool =
        |state: Value| part("msg_2", json!({ "type": "tool", "callID": "c", "tool": "bash", "state": state }), None);
    let stream = [
        user("msg_1"),
        status("busy"),
        assistant("msg_2", "msg_1", json!({})),
        tool(json!({ "status": "running", "input": {}, "time": { "start": 1 } })),
        event("session.error", json!({ "sessionID": SESSION, "error": aborted })),
        idle(),
        tool(json!({ "status": "error", "input": {}, "error": "aborted", "time": { "start": 1, "end": 2 } })),
        assistant("msg_2", "msg_1", json!({ "time": { "created": 1, "completed": 2 }, "error": aborted })),
        idle(),
        idle(),
    ];
    let drafts = decode(&stream.concat());
    let expected =
        ["prompt_queued", "turn_started", "step_started", "tool_changed", "tool_changed", "step_ended", "turn_ended"];
    assert_eq!(names(&drafts), expected);
    assert!(matches!(&drafts[5].event, Event::StepEnded(e) if e.finish == Finish::Cancelled));
    assert!(matches!(&drafts[6].event, Event::TurnEnded(e) if e.stop == Stop::Cancelled));
}

#[test]
fn the_answer_to_a_prompt_that_waited_is_a_turn_of_its_own() {
    let stream = [
        user("msg_1"),
        status("busy"),
        assistant("msg_2", "msg_1", json!({})),
        user("msg_3"),
        assistant("msg_2", "msg_1", json!({ "time": { "created": 1, "completed": 2 } })),
        assistant("msg_4", "msg_3", json!({})),
        idle(),
    ];
    let drafts = decode(&stream.concat());
    let turns: Vec<_> = drafts
        .iter()
        .filter_map(|draft| match &draft.event {
            Event::TurnStarted(e) => Some(e.turn.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(turns, ["trn_1", "trn_3"]);
    assert_eq!(names(&drafts).iter().filter(|name| **name == "turn_ended").count(), 2);
}

#[test]
fn a_permission_that_is_asked_in_two_forms_is_one() {
    let stream = [
        user("msg_1"),
        status("busy"),
        event(
            "permission.asked",
            json!({ "id": "per_1", "sessionID": SESSION, "permission": "bash", "patterns": ["ls"], "metadata": {}, "always": [] }),
        ),
        event(
            "permission.updated",
            json!({ "id": "per_1", "type": "bash", "sessionID": SESSION, "messageID": "msg_2", "title": "ls", "metadata": {}, "time": { "created": 1 } }),
        ),
        event("permission.replied", json!({ "sessionID": SESSION, "permissionID": "per_1", "response": "always" })),
    ];
    let drafts = decode(&stream.concat());
    assert_eq!(names(&drafts), ["prompt_queued", "turn_started", "permission_asked", "permission_answered"]);
}

#[test]
fn what_is_not_known_is_kept_and_what_lacks_a_required_field_is_named() {
    let odd = json!({ "id": "evt_1", "type": "lsp.updated", "properties": { "n": 1 } });
    let drafts = decode(&frame(&odd));
    assert!(matches!(&drafts[0].event, Event::Foreign(e) if e.origin == "opencode" && e.what == "lsp.updated"));
    assert_eq!(drafts[0].raw.as_ref().unwrap().value(), odd);

    let (mut decoder, mut drafts) = (opencode::Decoder::default(), Vec::new());
    let wrong = event("message.removed", json!({ "sessionID": SESSION }));
    let right = event("message.removed", json!({ "sessionID": SESSION, "messageID": "msg_1" }));
    let error = decoder.feed(&[right.clone(), wrong, right].concat(), &mut drafts).unwrap_err();
    assert_eq!(error.line, 3);
    assert!(error.problem.contains("missing field `messageID`"), "{error}");
    decoder.feed(b"", &mut drafts).unwrap();
    assert_eq!(
        names(&crate::support::drafts(drafts)),
        ["message_hidden", "message_hidden"],
        "what follows an error is still read"
    );
}

#[test]
fn connection_events_and_copies_say_nothing() {
    let stream = [
        event("server.connected", json!({})),
        event("server.heartbeat", json!({})),
        frame(&json!({ "directory": "/w", "project": "p", "payload": { "type": "sync", "syncEvent": {} } })),
    ];
    assert_eq!(decode(&stream.concat()), []);
}

#[test]
fn a_feed_of_more_sessions_than_are_remembered_is_read_to_its_end() {
    let (mut decoder, mut drafts) = (opencode::Decoder::default(), Vec::new());
    for n in 0..2000 {
        let busy = json!({ "sessionID": format!("ses_{n}"), "status": { "type": "busy" } });
        decoder.feed(&event("session.status", busy), &mut drafts).unwrap();
        decoder.feed(&event("session.idle", json!({ "sessionID": format!("ses_{n}") })), &mut drafts).unwrap();
    }
    assert_eq!(drafts.len(), 4000);
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_was_encoded_decodes_to_the_same_transcript(run in runs::run()) {
        for profile in PROFILES {
            let again = Run::stamped(decode(&run.stream(profile)));
            prop_assert_eq!(Transcript::of(&again), Transcript::of(&run), "{:?}", profile);
        }
    }

    #[test]
    fn bytes_may_be_cut_anywhere(run in runs::run(), cut in any::<prop::sample::Index>()) {
        let stream = run.stream(opencode::Profile::Superset);
        let (mut decoder, mut drafts) = (opencode::Decoder::default(), Vec::new());
        let (head, tail) = stream.split_at(cut.index(stream.len() + 1));
        decoder.feed(head, &mut drafts).unwrap();
        decoder.feed(tail, &mut drafts).unwrap();
        decoder.finish(&mut drafts).unwrap();
        prop_assert_eq!(crate::support::drafts(drafts), decode(&stream));
    }

    #[test]
    fn nothing_that_comes_breaks_it(
        run in runs::wild(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut stream = run.stream(opencode::Profile::Superset);
        if !stream.is_empty() {
            for (at, byte) in noise {
                let at = at.index(stream.len());
                stream[at] = byte;
            }
            stream.truncate(cut.index(stream.len()));
        }
        let (mut decoder, mut drafts) = (opencode::Decoder::default(), Vec::new());
        let _ = decoder.feed(&stream, &mut drafts);
        while decoder.feed(b"", &mut drafts).is_err() {}
        let _ = decoder.finish(&mut drafts);
    }

    #[test]
    fn random_bytes_do_not_break_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let (mut decoder, mut drafts) = (opencode::Decoder::default(), Vec::new());
        let _ = decoder.feed(&bytes, &mut drafts);
        let _ = decoder.finish(&mut drafts);
    }
}
