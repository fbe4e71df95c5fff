//! The stored form of a session.

use std::collections::HashMap;

use serde_json::{Value, json};
use tolka_dialect::onyx::{Profile, Rows};
use tolka_facts::event::{
    Failed, FailureKind, MessageHidden, OutputAppended, PlanSet, PromptDropped, PromptSteered, Rewound, Stop,
    TextAppended, ThoughtAppended, ToolChanged, TurnStarted, Unrewound, UsageSet,
};
use tolka_facts::{CallId, Event, MessageId, NoBlobs, PartId, Tip, ToolStatus, TurnId};

use crate::{Session, change, created, json as raw, queued};

fn rows(session: &Session) -> Vec<Value> {
    let (mut rows, mut tip) = (Rows::new(Profile::Documented), Tip::default());
    for fact in &session.facts {
        tip.apply(fact);
        rows.apply(fact, &tip, &NoBlobs);
    }
    rows.rows().map(|row| serde_json::to_value(row).unwrap()).collect()
}

/// Turn, type, and what the row says.
fn gist(session: &Session) -> Vec<(u64, String, String)> {
    let mut gist = Vec::new();
    for row in rows(session) {
        let metadata = &row["message_metadata"];
        let words = metadata["content"]["text"].as_str().or(metadata["status"].as_str()).unwrap_or_default();
        let kind = metadata["type"].as_str().unwrap().to_owned();
        gist.push((row["turn_index"].as_u64().unwrap(), kind, words.to_owned()));
    }
    gist
}

fn say(text: &str) -> TextAppended {
    TextAppended { part: PartId::from("p"), text: text.into() }
}

#[test]
fn a_row_has_the_fields_of_the_wire() {
    let mut session = Session::in_turn();
    session.tell(say("Hi ")).tell(say("there"));
    let rows = rows(&session);
    assert_eq!(rows.len(), 2);
    let keys: Vec<_> = rows[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["id", "session_id", "turn_index", "type", "message_metadata", "created_at"]);
    assert_eq!(
        rows[0]["message_metadata"],
        json!({"type": "user_message", "content": {"type": "text", "text": "Hello"}})
    );
    assert_eq!((&rows[0]["type"], &rows[1]["type"]), (&json!("user"), &json!("assistant")));
    let said = json!({"type": "agent_message", "content": {"type": "text", "text": "Hi there"}, "sessionUpdate": "agent_message"});
    assert_eq!(rows[1]["message_metadata"], said);
    assert_eq!(rows[1]["created_at"], "2026-01-22T00:11:51.004000+00:00");
    let id = rows[1]["id"].as_str().unwrap();
    assert_eq!((id.len(), id.matches('-').count(), &id[14..15]), (36, 4, "8"));
}

#[test]
fn runs_of_text_are_one_row_and_of_a_tool_the_end_is_kept() {
    let mut session = Session::in_turn();
    session.tell(ThoughtAppended { part: PartId::from("t"), text: "hm".into() });
    session.tell(say("one ")).tell(UsageSet { used: 1, size: 0, cost: None, subagents: None }).tell(say("run"));
    session.tell(ToolChanged { title: Some("ls".into()), status: Some(ToolStatus::Running), ..change("c1") });
    session.tell(OutputAppended { call: CallId::from("c1"), text: "a".into() });
    session.tell(ToolChanged { status: Some(ToolStatus::Failed), ..change("c1") });
    session.tell(say("after")).tell(UsageSet { used: 2, size: 0, cost: None, subagents: None });
    session.end(Stop::EndTurn);
    let expected = [
        ("user_message", "Hello"),
        ("agent_thought", "hm"),
        ("agent_message", "one run"),
        ("context_usage", ""),
        ("tool_call_progress", "failed"),
        ("agent_message", "after"),
    ];
    assert_eq!(gist(&session), expected.map(|(kind, words)| (0, kind.to_owned(), words.to_owned())));
    assert_eq!(rows(&session)[3]["message_metadata"]["used_tokens"], 2);
}

#[test]
fn todos_and_plan_are_kept_as_they_were_last() {
    let mut session = Session::in_turn();
    let todos = |n: usize| raw(&json!({"todos": vec![json!({"content": "x"}); n]}).to_string());
    session.tell(ToolChanged { title: Some("todowrite".into()), input: todos(1), ..change("c1") });
    session.tell(PlanSet { entries: Vec::new() }).tell(PlanSet { entries: Vec::new() });
    let done = Some(ToolStatus::Completed);
    session.tell(ToolChanged { title: Some("2 todos".into()), input: todos(2), status: done, ..change("c1") });
    session.end(Stop::EndTurn).prompt("trn_2", "Again").tell(PlanSet { entries: Vec::new() });
    let kinds: Vec<_> = gist(&session).into_iter().map(|(turn, kind, _)| (turn, kind)).collect();
    let expected = [
        (0, "user_message"),
        (0, "tool_call_progress"),
        (0, "agent_plan_update"),
        (1, "user_message"),
        (1, "agent_plan_update"),
    ];
    assert_eq!(kinds, expected.map(|(turn, kind)| (turn, kind.to_owned())));
    assert_eq!(rows(&session)[1]["message_metadata"]["title"], "2 todos");
}

#[test]
fn queued_prompts_come_last_until_their_turn_starts() {
    let mut session = Session::in_turn();
    session.tell(queued("trn_2", "second")).tell(queued("trn_3", "third")).tell(say("first answer"));
    let texts = |session: &Session| gist(session).into_iter().map(|(n, _, words)| (n, words)).collect::<Vec<_>>();
    let expected = [(0, "Hello"), (0, "first answer"), (1, "second"), (2, "third")].map(|(n, s)| (n, s.to_owned()));
    assert_eq!(texts(&session), expected);
    session.end(Stop::EndTurn).tell(PromptDropped { turn: TurnId::from("trn_2") });
    session.tell(TurnStarted { turn: TurnId::from("trn_3"), checkpoint: None }).tell(say("third answer"));
    let expected =
        [(0, "Hello"), (0, "first answer"), (1, "third"), (1, "third answer")].map(|(n, s)| (n, s.to_owned()));
    assert_eq!(texts(&session), expected);
}

#[test]
fn a_prompt_for_the_turn_that_runs_is_a_row_of_it() {
    let mut session = Session::in_turn();
    session.tell(queued("trn_2", "later")).tell(queued("trn_3", "be brief")).tell(say("so"));
    session.tell(PromptSteered { turn: TurnId::from("trn_3"), into: TurnId::from("trn_1") }).tell(say("Done"));
    let told: Vec<_> = gist(&session).into_iter().map(|(n, _, words)| (n, words)).collect();
    let expected = [(0, "Hello"), (0, "so"), (0, "be brief"), (0, "Done"), (1, "later")];
    assert_eq!(told, expected.map(|(n, words)| (n, words.to_owned())));
}

#[test]
fn errors_are_rows_and_hidden_messages_are_not() {
    let mut session = Session::in_turn();
    let failed =
        Failed { kind: FailureKind::Agent, message: "down".into(), code: None, retryable: true, details: None };
    session.tell(say("words")).tell(failed).end(Stop::Failed);
    assert_eq!(gist(&session).last().unwrap().1, "error");
    session.prompt("trn_2", "Again").end(Stop::EndTurn);
    session.tell(MessageHidden { message: MessageId::from("msg_trn_1") });
    assert_eq!(gist(&session), [(1, "user_message".to_owned(), "Again".to_owned())]);
}

#[test]
fn rows_that_are_taken_as_they_settle_are_all_rows() {
    let plan = || PlanSet { entries: Vec::new() };
    let usage = |used| UsageSet { used, size: 0, cost: None, subagents: None };
    let hide = |message: &str| MessageHidden { message: MessageId::from(message) };
    let mut session = Session::default();
    // A plan before the first turn is the first turn's, and one between turns that of the turn before.
    session.tell(created(None)).tell(plan()).tell(queued("trn_1", "one")).tell(queued("trn_2", "two"));
    session.tell(TurnStarted { turn: TurnId::from("trn_1"), checkpoint: None });
    session.tell(say("a")).tell(plan()).tell(usage(1)).tell(hide("msg_trn_2")).end(Stop::EndTurn).tell(usage(2));
    session.tell(queued("trn_3", "three")).tell(queued("trn_4", "four"));
    session.tell(TurnStarted { turn: TurnId::from("trn_2"), checkpoint: None });
    session.tell(say("b")).tell(hide("msg_trn_2")).tell(say("c")).tell(plan()).end(Stop::EndTurn).tell(plan());
    session.tell(PromptDropped { turn: TurnId::from("trn_3") }).tell(queued("trn_5", "five"));
    session.tell(TurnStarted { turn: TurnId::from("trn_4"), checkpoint: None });
    session.tell(say("d")).tell(hide("msg_trn_1")).tell(hide("msg_trn_2")).end(Stop::EndTurn);
    let second = session.facts.iter().filter(|fact| matches!(fact.event, Event::TurnStarted(_))).nth(1).unwrap().seq;
    session.tell(Rewound::to(MessageId::from("msg_trn_2"), second, "c".into())).tell(Unrewound::to("c".into()));
    for end in 0..=session.facts.len() {
        let told = Session { facts: session.facts[..end].to_vec() };
        let mut hidden = HashMap::new();
        for fact in &told.facts {
            if let Event::MessageHidden(e) = &fact.event {
                hidden.insert(e.message.clone(), fact.seq);
            }
        }
        let (mut rows, mut tip, mut taken) = (Rows::new(Profile::Documented), Tip::default(), Vec::new());
        told.facts.iter().for_each(|fact| tip.apply(fact));
        let (hidden_from, mut tip) = (tip.hidden_from(), Tip::default());
        for fact in &told.facts {
            tip.apply(fact);
            rows.apply(fact, &tip, &NoBlobs);
            taken.extend(rows.take_settled(&hidden, hidden_from));
        }
        assert!(
            rows.rows().filter(|row| row.turn_index < tip.head.turns).all(|row| row.turn_index + 1 >= tip.head.turns)
        );
        taken.extend(rows.rows().cloned());
        let taken: Vec<Value> = taken.iter().map(|row| serde_json::to_value(row).unwrap()).collect();
        assert_eq!(taken, self::rows(&told), "after {end} facts");
    }
    let kinds: Vec<_> = gist(&session).into_iter().map(|(turn, kind, _)| (turn, kind)).collect();
    let left = [(0, "agent_plan_update"), (2, "user_message"), (2, "agent_message"), (3, "user_message")];
    assert_eq!(kinds, left.map(|(turn, kind)| (turn, kind.to_owned())));
}
