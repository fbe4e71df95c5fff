//! Streams read back: what is made up says so, and nothing is lost.

use tolka_dialect::Decoder as _;
use tolka_dialect::agentsmithy::Decoder;
use tolka_facts::event::{FileOperation, Stop};
use tolka_facts::{Cause, Draft, Event, SessionId, ToolStatus};

use crate::decode;

fn stream(events: &[&str]) -> Vec<u8> {
    events.iter().map(|event| format!("data: {{{event},\"dialog_id\":\"d\"}}\n\n")).collect::<String>().into_bytes()
}

const USER: &str = r#""type":"user","content":"Hi","checkpoint":"a1b2c3d""#;
const WRITE: &str = r#""type":"tool_call","name":"write_to_file","args":{"path":"a.py","content":"x"}"#;
const RUN: &str = r#""type":"tool_call","name":"run_command","args":{"command":"ls"}"#;
const EDIT: &str = r#""type":"file_edit","file":"/w/a.py""#;
const DONE: &str = r#""type":"done","done":true"#;

/// How each call ended, in the order of their ends.
fn ends(drafts: &[Draft]) -> Vec<(ToolStatus, Cause)> {
    let end = |draft: &Draft| match &draft.event {
        Event::ToolChanged(e) => e.status.filter(|status| status.is_terminal()).map(|status| (status, draft.cause)),
        _ => None,
    };
    drafts.iter().filter_map(end).collect()
}

#[test]
fn a_stream_is_of_its_dialog() {
    let mut heard = Vec::new();
    Decoder::default().feed(&stream(&[USER, DONE]), &mut heard).unwrap();
    let session = Some(SessionId::from("d"));
    assert!(heard.iter().all(|heard| heard.session == session && heard.time.is_none()));
    let names: Vec<_> = heard.iter().map(|heard| (heard.draft.event.name(), heard.draft.cause)).collect();
    let expected = [("prompt_queued", Cause::Client), ("turn_started", Cause::Tolka), ("turn_ended", Cause::Agent)];
    assert_eq!(names, expected);
}

/// The wire does not tell how a call ends: that is made up.
#[test]
fn a_call_ends_with_what_comes_next() {
    let (well, badly) = ((ToolStatus::Completed, Cause::Tolka), (ToolStatus::Failed, Cause::Tolka));
    assert_eq!(ends(&decode(&stream(&[USER, RUN, RUN, DONE]))), [well, well]);
    assert_eq!(ends(&decode(&stream(&[USER, WRITE, EDIT, DONE]))), [well]);
    assert_eq!(ends(&decode(&stream(&[USER, WRITE, DONE]))), [badly], "a write that wrote nothing");
    let ask = r#""type":"tool_call","name":"request_permission","args":{"request_id":"r","permission":"edit","title":"t","options":[]}"#;
    let asked = decode(&stream(&[USER, WRITE, ask, EDIT, DONE]));
    assert_eq!(ends(&asked), [well], "a request stands in the call that it is about");
    assert!(asked.iter().any(|draft| matches!(&draft.event, Event::PermissionAsked(e) if e.request.as_str() == "r")));
}

#[test]
fn calls_may_run_side_by_side() {
    let drafts = decode(&stream(&[USER, WRITE, RUN, EDIT, DONE]));
    let written = drafts.iter().find_map(|draft| match &draft.event {
        Event::ToolChanged(e) if e.name.as_deref() == Some("write") => Some(e.call.clone()),
        _ => None,
    });
    let file = drafts.iter().find_map(|draft| match &draft.event {
        Event::FileChanged(e) => Some(e.clone()),
        _ => None,
    });
    assert_eq!(file.unwrap().call, written);
    assert_eq!(ends(&drafts).iter().map(|(status, _)| *status).collect::<Vec<_>>(), [ToolStatus::Completed; 2]);
}

#[test]
fn a_diff_tells_what_became_of_the_file() {
    let told = |diff: &str| {
        let diff = serde_json::to_string(diff).unwrap();
        let drafts = decode(&stream(&[USER, &format!(r#""type":"file_edit","file":"/w/a","diff":{diff}"#)]));
        match &drafts.last().unwrap().event {
            Event::FileChanged(e) => (e.operation, e.added, e.removed),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(told("--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+a\n+b\n"), (FileOperation::Create, 2, 0));
    assert_eq!(told("--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"), (FileOperation::Delete, 0, 1));
    assert_eq!(told("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"), (FileOperation::Update, 1, 1));
    assert_eq!(told("..."), (FileOperation::Update, 0, 0));
}

#[test]
fn a_turn_that_another_one_follows_was_cut() {
    let other = r#""type":"user","content":"Again""#;
    let drafts = decode(&stream(&[USER, r#""type":"chat","content":"a""#, other, DONE]));
    let stops: Vec<_> = drafts
        .iter()
        .filter_map(|draft| match &draft.event {
            Event::TurnEnded(e) => Some((e.stop, draft.cause)),
            _ => None,
        })
        .collect();
    assert_eq!(stops, [(Stop::Interrupted, Cause::Tolka), (Stop::EndTurn, Cause::Agent)]);
}

#[test]
fn a_refused_request_is_a_turn_that_failed() {
    let drafts = decode(&stream(&[r#""type":"error","error":"No user message found""#, DONE]));
    let names: Vec<_> = drafts.iter().map(|draft| draft.event.name()).collect();
    assert_eq!(names, ["turn_started", "failed", "turn_ended"]);
    assert!(matches!(&drafts[2].event, Event::TurnEnded(e) if e.stop == Stop::Failed));
}

#[test]
fn what_nobody_knows_is_kept_as_it_came() {
    for event in [r#""type":"search","query":"q""#, r#""type":"chat","content":7"#, r#""type":"tool_call","args":{}"#] {
        let drafts = decode(&stream(&[USER, event]));
        let last = drafts.last().unwrap();
        assert!(matches!(&last.event, Event::Foreign(e) if e.origin == "agentsmithy"), "{event}");
        let raw: serde_json::Value = serde_json::from_str(&format!("{{{event},\"dialog_id\":\"d\"}}")).unwrap();
        assert_eq!(last.raw.as_ref().unwrap().value(), raw);
    }
}

#[test]
fn an_event_that_is_no_json_is_told_and_skipped() {
    let (mut decoder, mut heard) = (Decoder::default(), Vec::new());
    let bytes = [stream(&[USER]), b"data: {\"type\":\n\n".to_vec(), stream(&[DONE])].concat();
    assert_eq!(decoder.feed(&bytes, &mut heard).unwrap_err().line, 3);
    assert_eq!(heard.last().unwrap().draft.event.name(), "turn_ended");
}
