//! Two streams of a real server: what they tell, and what is wrong with them.

use tolka_dialect::{Dialect, Finding};
use tolka_facts::{Event, Time, ToolStatus};

use crate::{decode, read, skeleton};

const TODO: &str = "recordings/agentsmithy/todo.sse";
const SLOW: &str = "recordings/agentsmithy/slow.sse";

fn findings(stream: &[u8]) -> Vec<(u64, &'static str, String)> {
    let (mut judge, mut found) = (Dialect::AgentSmithy.judge(), Vec::new());
    judge.feed(stream, &mut found);
    judge.finish(&mut found);
    found.into_iter().map(|Finding { line, rule, problem }| (line, rule.name, problem)).collect()
}

#[test]
fn they_are_kept_as_they_came() {
    for file in [TODO, SLOW] {
        let bytes = read(file);
        assert!(bytes.ends_with(b"}\r\n\r\n"), "{file} has lost its line ends");
        assert!(skeleton(&bytes).is_empty(), "the document's client reads nothing of it");
    }
}

#[test]
fn the_whole_turn_has_three_faults() {
    let expected = [
        (1, "crlf", "the line ends in CR or CR LF, and those after it may as well".to_owned()),
        (9, "nested", "`chat_start` while a reasoning segment is open".to_owned()),
        (33, "diff", "a hunk has more lines than its header says at line 5 of the diff".to_owned()),
    ];
    assert_eq!(findings(&read(TODO)), expected);
}

#[test]
fn the_turn_that_was_left_has_no_end() {
    let expected = [
        (1, "crlf", "the line ends in CR or CR LF, and those after it may as well".to_owned()),
        (41, "no-done", "the stream ends without `done`, inside a chat segment".to_owned()),
    ];
    assert_eq!(findings(&read(SLOW)), expected);
}

/// Each fact in a few words.
fn gist(event: &Event) -> String {
    match event {
        Event::PromptQueued(e) => format!("prompt {:?}", e.content),
        Event::TurnStarted(e) => format!("start {}", e.checkpoint.as_deref().unwrap_or_default()),
        Event::TurnEnded(e) => format!("end {:?}", e.stop),
        Event::TextAppended(e) => format!("text {}", e.text),
        Event::ThoughtAppended(e) => format!("thought {}", e.text),
        Event::ToolChanged(e) if e.status == Some(ToolStatus::Running) => {
            format!("call {} {}", e.name.as_deref().unwrap_or_default(), e.input.as_ref().unwrap().get())
        }
        Event::ToolChanged(e) => format!("called {:?}", e.status.unwrap()),
        Event::FileChanged(e) => format!("file {} {:?} {}", e.path, e.operation, e.call.is_some()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_whole_turn_is_read() {
    let told: Vec<String> = decode(&read(TODO)).iter().map(|draft| gist(&draft.event)).collect();
    let expected = [
        r#"prompt [Text { text: "todo please", annotations: None }]"#,
        "start ce4e3c26a839a3c6bc1ce310464ccbab6f6afdf2",
        "thought Plan ",
        "thought it.",
        "text I'll create ",
        "text files.",
        r#"call write {"filePath":"main.py","content":"print(1)\n"}"#,
        "file /workspace.py Update true",
        "called Completed",
        r#"call bash {"command":"echo hi > made_by_cmd.txt; echo out"}"#,
        "called Completed",
        r#"call read {"filePath":"nope.py"}"#,
        "called Completed",
        r#"call set_dialog_title {"title": "Todo app"}"#,
        "called Completed",
        r#"call no_such_tool {"x": 1}"#,
        "called Completed",
        r#"call edit {"filePath":"main.py","oldString":"print(1)","newString":"print(2)"}"#,
        "file /workspace.py Update true",
        "called Completed",
        "text Done.",
        "end EndTurn",
    ];
    assert_eq!(told, expected);
}

#[test]
fn the_cut_turn_is_read_and_told_again_within_the_law() {
    let said: String = decode(&read(SLOW))
        .iter()
        .filter_map(|draft| gist(&draft.event).strip_prefix("text ").map(str::to_owned))
        .collect();
    assert_eq!(said, (0..18).map(|n| format!("{n} ")).collect::<String>());
    // Followed by another turn, it was interrupted.
    let both = [read(SLOW), read(TODO)].concat();
    let mut frames = tolka_dialect::Frames::default();
    let mut retelling = tolka_dialect::Retelling::new(Dialect::AgentSmithy, Dialect::AgentSmithy, Time::default());
    retelling.feed(&both, &mut frames).unwrap();
    retelling.finish(&mut frames).unwrap();
    let frames: Vec<String> = frames.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
    assert_eq!(findings(&crate::stream(&frames)), []);
    assert_eq!(frames.iter().filter(|frame| frame.contains("The server stopped during the turn.")).count(), 1);
    assert!(frames.iter().all(|frame| !frame.contains("\"diff\":\"--- ")), "the malformed diff is not passed on");
}
