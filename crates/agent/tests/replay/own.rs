//! Recordings of our own facts.

use std::collections::HashSet;

use tolka_agent::{Ended, Pace, Recording, Replay};
use tolka_facts::event::{FailureKind, Finish, Stop};
use tolka_facts::{Event, Fact};

use crate::hall::{Hall, Person};
use crate::{check_steps, play};

fn replay(text: &str) -> Replay {
    Replay::new("own", Recording::parse(text).unwrap(), Pace::AtOnce)
}

fn lines(facts: &[Fact]) -> String {
    facts.iter().map(|fact| String::from_utf8(fact.to_json()).unwrap() + "\n").collect()
}

/// As a captured stream has them.
fn stream(facts: &[Fact]) -> String {
    let event = |fact: &Fact| {
        let json = String::from_utf8(fact.to_json()).unwrap();
        format!("id: {}.0\r\nevent: message\r\ndata: {json}\r\n\r\n", fact.seq)
    };
    ": hello\r\nretry: 250\r\n\r\n".to_owned() + &facts.iter().map(event).collect::<String>()
}

fn ids(hall: &Hall) -> HashSet<String> {
    let id = |fact: &Fact| match &fact.event {
        Event::StepStarted(e) => Some(e.message.to_string()),
        Event::TextAppended(e) => Some(e.part.to_string()),
        Event::ThoughtAppended(e) => Some(e.part.to_string()),
        Event::PermissionAsked(e) => Some(e.request.to_string()),
        Event::ArtifactSaved(e) => Some(e.id.to_string()),
        _ => None,
    };
    hall.facts.iter().filter_map(id).collect()
}

#[tokio::test]
async fn facts_are_told_again_with_new_ids() {
    for name in ["claude-perm", "claude-cancel", "opencode-rich", "gemini", "codex", "copilot"] {
        let (first, ends) = play(name, Person::Allows).await;
        for text in [lines(&first.facts), stream(&first.facts)] {
            // Opened as if turns had gone before, so that it mints other ids than the first hall did.
            let replay = replay(&text);
            let turns = ends.len() as u64 * 2;
            let mut again = Hall::open(&replay, turns);
            for end in &ends {
                assert_eq!(again.turn(Person::Allows).await, *end, "{name}");
            }
            check_steps(&again, name);
            assert!(ids(&again).is_disjoint(&ids(&first)), "{name}");
            let plain = |lines: Vec<String>| lines.into_iter().map(|line| line.replace("~3", "")).collect::<Vec<_>>();
            assert_eq!(plain(again.transcript()), first.transcript(), "{name}");
            assert_eq!(again.raws(), first.raws(), "{name}");
            assert_eq!(again.view.tip.head.tokens, first.view.tip.head.tokens, "{name}");
        }
    }
}

#[tokio::test]
async fn what_is_not_allowed_does_not_happen_again() {
    let (first, _) = play("claude-perm", Person::Allows).await;
    let (rejected, _) = play("claude-perm", Person::Rejects).await;
    let mut again = Hall::open(&replay(&lines(&first.facts)), 0);
    again.turn(Person::IsAway).await;
    assert_eq!(again.transcript(), rejected.transcript());
}

#[tokio::test]
async fn who_refuses_as_was_refused_then_hears_what_was_said_then() {
    let option = r#"{"id":"no","name":"No","kind":"reject_once"},{"id":"yes","name":"Yes","kind":"allow_once"}"#;
    let text = own(&[
        ("tolka", "turn_started", r#"{"turn":"trn_1"}"#),
        ("agent", "step_started", r#"{"message":"msg_1"}"#),
        ("agent", "tool_changed", r#"{"call":"c","name":"bash"}"#),
        (
            "agent",
            "permission_asked",
            &format!(r#"{{"request":"per_1","call":"c","permission":"bash","title":"t","options":[{option}]}}"#),
        ),
        ("client", "permission_answered", r#"{"request":"per_1","option":"no","by":"x"}"#),
        ("agent", "tool_changed", r#"{"call":"c","status":"failed","error":"as you wish"}"#),
        ("agent", "step_ended", r#"{"message":"msg_1","finish":"tool_calls"}"#),
        ("tolka", "turn_ended", r#"{"turn":"trn_1","stop":"end_turn"}"#),
    ]);
    for person in [Person::Rejects, Person::Allows] {
        let mut hall = Hall::open(&replay(&text), 0);
        hall.turn(person).await;
        assert_eq!(hall.transcript(), ["- c bash Other Failed `` because \"as you wish\""]);
    }
}

fn own(events: &[(&str, &str, &str)]) -> String {
    let line = |(seq, (cause, event, data)): (usize, &(&str, &str, &str))| {
        format!(
            r#"{{"v":1,"session":"ses_1","seq":{},"time":0,"cause":"{cause}","type":"{event}","data":{data}}}"#,
            seq + 1
        ) + "\n"
    };
    events.iter().enumerate().map(line).collect()
}

const QUESTION: [(&str, &str, &str); 8] = [
    ("tolka", "turn_started", r#"{"turn":"trn_1"}"#),
    ("agent", "step_started", r#"{"message":"msg_1"}"#),
    ("agent", "tool_changed", r#"{"call":"q","name":"question","status":"running"}"#),
    (
        "agent",
        "question_asked",
        r#"{"request":"que_1","call":"q","questions":[{"question":"Sure?","header":"Sure","options":[]}]}"#,
    ),
    ("client", "question_answered", r#"{"request":"que_1","answers":[["no"]],"by":"x"}"#),
    ("agent", "tool_changed", r#"{"call":"q","status":"completed"}"#),
    ("agent", "step_ended", r#"{"message":"msg_1","finish":"tool_calls"}"#),
    ("tolka", "turn_ended", r#"{"turn":"trn_1","stop":"end_turn"}"#),
];

#[tokio::test]
async fn a_question_is_asked_of_who_is_there() {
    let mut hall = Hall::open(&replay(&own(&QUESTION)), 0);
    hall.turn(Person::Allows).await;
    assert_eq!(hall.transcript(), ["- q question Other Completed ``"]);
    hall.turn(Person::Rejects).await;
    assert_eq!(hall.transcript()[1], "- q~2 question Other Failed `` because \"The user dismissed this question.\"");
    let answers = hall.facts.iter().filter(|fact| matches!(fact.event, Event::QuestionAnswered(_)));
    assert_eq!(answers.count(), 2, "the recorded answer is not told");
}

#[tokio::test]
async fn only_the_agents_part_is_told() {
    let text = own(&[
        (
            "client",
            "session_created",
            r#"{"workspace":"/w","agent":"a","title":"t","model":{"provider":"p","id":"m"}}"#,
        ),
        ("agent", "commands_set", r#"{"commands":[]}"#),
        ("tolka", "turn_started", r#"{"turn":"trn_1"}"#),
        ("agent", "session_changed", r#"{"title":"found"}"#),
        ("client", "session_changed", r#"{"title":"given"}"#),
        ("tolka", "session_changed", r#"{"title":"derived"}"#),
        ("tolka", "checkpoint_saved", r#"{"checkpoint":"c","files":1}"#),
        ("client", "prompt_queued", r#"{"turn":"trn_2","message":"msg_9","content":[]}"#),
        ("agent", "step_started", r#"{"message":"msg_1"}"#),
        ("agent", "failed", r#"{"kind":"provider","message":"overloaded","retryable":true}"#),
        ("tolka", "turn_ended", r#"{"turn":"trn_1","stop":"failed"}"#),
        ("agent", "noticed", r#"{"severity":"info","title":"late"}"#),
    ]);
    let agent = replay(&text);
    let mut hall = Hall::open(&agent, 0);
    let ended = hall.turn(Person::Allows).await;
    assert_eq!((ended.stop, ended.failure.map(|failure| failure.kind)), (Stop::Failed, Some(FailureKind::Provider)));
    let told: Vec<_> = hall.facts.iter().skip(1).map(|fact| fact.event.name()).collect();
    assert_eq!(
        told,
        [
            "prompt_queued",
            "turn_started",
            "commands_set",
            "session_changed",
            "step_started",
            "noticed",
            "step_ended",
            "failed",
            "turn_ended"
        ]
    );
    assert!(hall.facts.iter().any(|fact| matches!(&fact.event, Event::StepEnded(e) if e.finish == Finish::Error)));
    assert_eq!(tolka_agent::Agent::model(&agent).id, "m");
}

#[tokio::test]
async fn a_recording_may_have_no_turns_or_break_off_in_one() {
    let loose = own(&[("agent", "text_appended", r#"{"part":"prt_1","text":"hi"}"#)]);
    let mut hall = Hall::open(&replay(&loose), 0);
    assert_eq!(hall.turn(Person::Allows).await, Ended::stopped(Stop::EndTurn));
    assert_eq!(hall.transcript(), ["- says hi"]);

    let mut hall = Hall::open(&replay(&own(&QUESTION[..3])), 0);
    let failure = hall.turn(Person::Allows).await.failure.unwrap();
    assert_eq!(failure.message, "the recording ends before this turn does");
    check_steps(&hall, "broken off");

    let mut hall = Hall::open(&replay(&own(&QUESTION[5..])), 0);
    assert_eq!(hall.turn(Person::Allows).await.stop, Stop::EndTurn, "a capture that began inside a turn");
}
