//! Streams of this wire, read back.

use tolka_dialect::Decoder as _;
use tolka_dialect::onyx::Decoder;
use tolka_facts::event::{OptionKind, Stop, TextAppended};
use tolka_facts::{Draft, Event, ToolStatus};

use crate::decode;

fn names(drafts: &[Draft]) -> Vec<&str> {
    drafts.iter().map(|draft| draft.event.name()).collect()
}

fn events(packets: &[&str]) -> Vec<Draft> {
    decode(&packets.iter().map(|packet| format!("event: message\ndata: {packet}\n\n")).collect::<String>())
}

#[test]
fn text_after_a_tool_or_a_thought_is_a_new_part() {
    let text = |s: &str| format!(r#"{{"type":"agent_message_chunk","content":{{"type":"text","text":"{s}"}}}}"#);
    let thought = r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#;
    let start = r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"bash"}"#;
    let progress = r#"{"sessionUpdate":"tool_call_update","tool_call_id":"c","status":"in_progress"}"#;
    let drafts = events(&[&text("a"), &text("b"), thought, &text("c"), start, &text("d"), progress, &text("e")]);
    let mut parts = Vec::new();
    for draft in &drafts {
        if let Event::TextAppended(TextAppended { part, text }) = &draft.event {
            parts.push((text.as_str(), part.clone()));
        }
    }
    let same = |a: usize, b: usize| parts[a].1 == parts[b].1;
    assert!(same(0, 1) && !same(1, 2) && !same(2, 3) && same(3, 4));
    assert!(drafts[1..].iter().all(|draft| draft.raw.is_some()));
}

#[test]
fn both_spellings_and_untyped_packets_are_read() {
    let drafts = events(&[
        r#"{"session_update":"tool_call_update","tool_call_id":"c","raw_input":{"a":1},"raw_output":{"error":"no"},"status":"failed"}"#,
        r#"{"sessionUpdate":"plan","entries":[{"content":"x","status":"in_progress","priority":"high"}]}"#,
    ]);
    assert_eq!(names(&drafts), ["turn_started", "tool_changed", "plan_set"]);
    let Event::ToolChanged(tool) = &drafts[1].event else { panic!() };
    assert_eq!((tool.call.as_str(), tool.status), ("c", Some(ToolStatus::Failed)));
    assert_eq!((tool.input.as_ref().unwrap().get(), tool.error.as_ref().unwrap().head()), (r#"{"a":1}"#, "no"));
}

#[test]
fn a_turn_ends_by_response_or_error() {
    let response = |reason: &str| format!(r#"{{"type":"prompt_response","stopReason":"{reason}","_meta":{{}}}}"#);
    let chunk = r#"{"type":"agent_message_chunk","content":{"type":"text","text":"a"}}"#;
    for (reason, stop) in [("stop_sequence", Stop::EndTurn), ("cancelled", Stop::Cancelled), ("?", Stop::EndTurn)] {
        let drafts = events(&[chunk, &response(reason)]);
        let Event::TurnEnded(end) = &drafts.last().unwrap().event else { panic!() };
        assert_eq!(end.stop, stop);
    }
    let error = r#"{"type":"error","message":"Database error","code":"7","details":{"a":1}}"#;
    assert_eq!(names(&events(&[chunk, error])), ["turn_started", "text_appended", "failed", "turn_ended"]);
    let alone = events(&[error]);
    assert_eq!(names(&alone), ["failed"], "no turn was open");
    let Event::Failed(failed) = &alone[0].event else { panic!() };
    assert_eq!((failed.code, failed.details.as_ref().unwrap().get()), (Some(7), r#"{"a":1}"#));
}

#[test]
fn what_we_have_no_word_for_is_kept() {
    let raw = r#"{"type":"connect_app_request","request_id":"r","external_app_id":1.50}"#;
    let image = r#"{"type":"agent_message_chunk","content":{"type":"image","data":"","mimeType":"image/png"}}"#;
    let drafts = events(&[raw, image, "[1]", r#"{"a":1,"a":2}"#, "null"]);
    assert_eq!(names(&drafts), ["foreign"; 5]);
    assert_eq!(drafts[0].raw.as_ref().unwrap().get(), raw);
    let Event::Foreign(foreign) = &drafts[0].event else { panic!() };
    assert_eq!((foreign.origin.as_str(), foreign.what.as_str()), ("onyx", "connect_app_request"));
}

#[test]
fn the_event_name_stands_in_for_a_missing_type() {
    let drafts = decode("event: compaction\ndata: {\"summary\":null}\n\n");
    assert_eq!(names(&drafts), ["compaction_ended"]);
}

#[test]
fn packets_of_a_subagent_do_not_run_into_its_parents_text() {
    let own = r#"{"_meta":null,"type":"agent_message_chunk","content":{"type":"text","text":"mine"}}"#;
    let child = r#"{"_meta":{"sessionId":"s2","parentSessionId":"s1"},"type":"agent_message_chunk","content":{"type":"text","text":"its"}}"#;
    assert_eq!(names(&events(&[own, child])), ["turn_started", "text_appended", "foreign"]);
    assert_eq!(names(&events(&[child, child])), ["turn_started", "text_appended", "text_appended"]);
}

#[test]
fn a_bare_request_for_approval_gets_the_answers_that_its_server_takes() {
    let drafts = events(&[r#"{"type":"approval_requested","approval_id":"a","session_id":"s"}"#]);
    let Event::PermissionAsked(asked) = &drafts[1].event else { panic!() };
    let options: Vec<_> = asked.options.iter().map(|option| (option.id.as_str(), option.kind)).collect();
    assert_eq!(options, [("APPROVED", OptionKind::AllowOnce), ("REJECTED", OptionKind::RejectOnce)]);
}

#[test]
fn a_bad_event_is_told_and_the_rest_is_read() {
    let (mut decoder, mut heard) = (Decoder::default(), Vec::new());
    let stream = ": keepalive\n\ndata: {oops\n\ndata: [DONE]\n\ndata: {\"type\":\"compaction\"}\n\n";
    let problem = decoder.feed(stream.as_bytes(), &mut heard).unwrap_err();
    assert_eq!((problem.line, heard[0].draft.event.name()), (3, "compaction_ended"));
    assert_eq!(heard.len(), 1);
    decoder.feed(b"data: {\"type\":", &mut heard).unwrap();
    assert!(decoder.finish(&mut heard).is_err());
}
