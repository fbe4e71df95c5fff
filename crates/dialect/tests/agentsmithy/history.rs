//! What a client loads of a session.

use proptest::prelude::*;
use serde_json::{Value, json};
use tolka_dialect::agentsmithy::{Counts, EntryKind, History, Page, Tally};
use tolka_facts::event::{
    MessageHidden, Model, PromptSteered, Rewound, StepEnded, StepStarted, Stop, ThoughtAppended, Unrewound,
};
use tolka_facts::{Event, Fact, MessageId, PartId, SessionId, Tip, ToolStatus};

use crate::generate::journal;
use crate::{CHECKPOINT, Session, queued};

fn history(session: &Session) -> History {
    folded(session, &mut Tip::default(), &session.facts)
}

fn folded(session: &Session, tip: &mut Tip, facts: &[Fact]) -> History {
    let mut history = History::new(SessionId::from("ses_1"));
    for fact in facts {
        tip.apply(fact);
        history.apply(fact, tip, &session.blobs);
    }
    history
}

fn page(session: &Session, limit: usize, before: Option<u64>) -> Value {
    serde_json::to_value(history(session).page(limit, before)).unwrap()
}

/// Two turns: the first with a tool between two answers, the second still open.
fn told() -> Session {
    let mut session = Session::in_turn();
    let step = |n: u8| StepStarted {
        message: MessageId::from(format!("msg_{n}")),
        model: Some(Model { provider: "p".into(), id: "m-1".into() }),
    };
    session.tell(step(1)).tell(ThoughtAppended { part: PartId::from("r"), text: "Hm".into() });
    session.say("p1", "I'll look").say("p1", " first.");
    session.call("c1", "write", r#"{"filePath":"a.py","content":"x\n"}"#);
    session.file("a.py", None, Some("x\n"));
    session.call("c2", "bash", r#"{"command":"ls"}"#);
    session.ended("c1", ToolStatus::Failed).ended("c2", ToolStatus::Completed);
    session.tell(StepEnded {
        message: MessageId::from("msg_1"),
        finish: tolka_facts::event::Finish::ToolCalls,
        usage: None,
        cost: None,
        kept: None,
    });
    session.tell(step(2)).say("p2", "Done.").end(Stop::EndTurn);
    session.prompt("trn_2", "More").say("p3", "So f");
    session
}

#[test]
fn a_prompt_for_the_turn_that_runs_stands_in_its_history_and_not_in_its_stream() {
    let mut session = Session::in_turn();
    let step = |n: u8| StepStarted { message: MessageId::from(format!("msg_{n}")), model: None };
    session.tell(step(1)).say("p1", "One ");
    session.tell(queued("trn_2", vec![tolka_facts::Block::text("be brief")]));
    session.tell(PromptSteered { turn: "trn_2".into(), into: "trn_1".into() });
    session.say("p1", "more.");
    session.tell(step(2)).say("p2", "Done.").end(Stop::EndTurn);
    let told = page(&session, 20, None);
    let said: Vec<_> =
        told["events"].as_array().unwrap().iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Hello", "One more.", "be brief", "Done."]);
    assert_eq!(told["total_events"], 4);
    assert!(!session.types().contains(&"user".to_owned()), "but for the first");
}

#[test]
fn a_history_has_each_event_once_in_the_order_of_its_group() {
    let diff = "--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+x\n";
    let events = json!([
        {"type": "user", "content": "Hello", "checkpoint": CHECKPOINT, "idx": 3},
        {"type": "reasoning", "content": "Hm", "model_name": "m-1"},
        {"type": "chat", "content": "I'll look first.", "idx": 6},
        {"type": "tool_call", "id": "c1", "name": "write_to_file", "args": {"path": "a.py", "content": "x\n"}},
        {"type": "tool_call", "id": "c2", "name": "run_command", "args": {"command": "ls"}},
        {"type": "file_edit", "file": "/home/me/project/a.py", "diff": diff},
        {"type": "chat", "content": "Done.", "idx": 15},
        {"type": "user", "content": "More", "checkpoint": CHECKPOINT, "idx": 18},
        {"type": "chat", "content": "So f", "idx": 19},
    ]);
    let whole = json!({"dialog_id": "ses_1", "events": events, "total_events": 9, "has_more": false, "first_idx": 3,
        "last_idx": 19});
    assert_eq!(page(&told(), 20, None), whole);
}

#[test]
fn pages_are_cut_by_messages() {
    let cut = |page: &Value| (page["first_idx"].as_u64().unwrap(), page["last_idx"].as_u64().unwrap());
    let last = page(&told(), 2, None);
    assert_eq!((cut(&last), &last["has_more"]), ((18, 19), &json!(true)));
    let middle = page(&told(), 2, Some(18));
    assert_eq!(middle["events"].as_array().unwrap().len(), 6);
    assert_eq!((cut(&middle), &middle["has_more"]), ((6, 15), &json!(true)));
    assert_eq!(page(&told(), 2, Some(16)), middle, "any number is a place");
    let first = page(&told(), 2, Some(6));
    assert_eq!((cut(&first), &first["has_more"]), ((3, 3), &json!(false)));
    assert_eq!(first["total_events"], 9);
    for (limit, before, has_more) in [(2, 3, false), (2, 0, false), (0, 18, true), (0, 3, false)] {
        let none = page(&told(), limit, Some(before));
        assert_eq!((&none["events"], &none["has_more"]), (&json!([]), &json!(has_more)), "{limit} before {before}");
    }
    assert_eq!(page(&told(), 20, Some(100))["events"].as_array().unwrap().len(), 9);
    let empty = json!({"dialog_id": "ses_1", "events": [], "total_events": 0, "has_more": false, "first_idx": 0,
        "last_idx": 0});
    assert_eq!(page(&Session::new(), 20, None), empty);
}

#[test]
fn what_was_undone_or_hidden_is_left_out() {
    let contents = |session: &Session| -> Vec<String> {
        let page = page(session, 20, None);
        let events = page["events"].as_array().unwrap().iter();
        events.filter_map(|event| event["content"].as_str().map(str::to_owned)).collect()
    };
    let mut session = told();
    session.end(Stop::EndTurn).tell(MessageHidden { message: MessageId::from("msg_2") });
    assert_eq!(contents(&session), ["Hello", "Hm", "I'll look first.", "More", "So f"]);
    let (first, second) = (starts(&session)[0], starts(&session)[1]);
    session.tell(rewound(Some(second)));
    assert_eq!(contents(&session), ["Hello", "Hm", "I'll look first."]);
    session.tell(rewound(Some(first)));
    assert!(contents(&session).is_empty());
    session.tell(Unrewound::to("c".into()));
    assert_eq!(contents(&session), ["Hello", "Hm", "I'll look first."], "one after the other");
    session.tell(Unrewound::to("c".into()));
    assert_eq!(contents(&session).len(), 5);
    session.tell(Rewound { message: None, ..rewound(Some(first)) });
    assert_eq!(contents(&session).len(), 5, "only the files went back");
    session.tell(rewound(Some(second)));
    for message in ["msg_trn_2", "msg_3"] {
        session.tell(MessageHidden { message: MessageId::from(message) });
    }
    session.prompt("trn_3", "Again").end(Stop::EndTurn);
    let rest = contents(&session);
    assert_eq!((&*rest[0], rest.last().map(String::as_str)), ("Hello", Some("Again")));
    assert!(!rest.iter().any(|said| said == "More"), "hidden for good: {rest:?}");
    session.tell(Unrewound::to("c".into()));
    assert_eq!(contents(&session), rest, "another turn has begun since");
}

fn starts(session: &Session) -> Vec<u64> {
    let started = session.facts.iter().filter(|fact| matches!(fact.event, Event::TurnStarted(_)));
    started.map(|fact| fact.seq).collect()
}

fn rewound(from: Option<u64>) -> Rewound {
    Rewound { from, ..Rewound::to(MessageId::from("msg_1"), 0, "c".into()) }
}

#[test]
fn a_tally_says_which_messages_it_cannot_count() {
    let mut session = told();
    session.end(Stop::EndTurn);
    let mut tip = Tip::default();
    let ended = session.facts.iter().position(|fact| matches!(fact.event, Event::TurnEnded(_))).unwrap() + 1;
    session.facts[..ended].iter().for_each(|fact| tip.apply(fact));
    let counted = |message: &str| {
        let mut session = Session { facts: session.facts.clone(), ..Session::new() };
        session.tell(MessageHidden { message: MessageId::from(message) });
        let (mut tip, mut tally) = (tip.clone(), Tally::since(Counts { told: 7 }));
        for fact in &session.facts[ended..] {
            tip.apply(fact);
            tally.apply(fact, &tip, &session.blobs);
        }
        (tally.shown(&tip), tally.missing().to_vec())
    };
    assert_eq!(counted("msg_trn_2"), (7, vec![]));
    assert_eq!(counted("msg_2").1, [MessageId::from("msg_2")]);
}

proptest! {
    /// Page by page, from the last back to the first, is the whole history; and it says what the stream said.
    #[test]
    fn pages_make_the_whole(session in journal(), limit in 1..5_usize) {
        let history = history(&session);
        let whole = history.page(usize::MAX, None);
        prop_assert_eq!(whole.total_events, whole.events.len());
        let (mut pages, mut before) = (Vec::<Page>::new(), None);
        loop {
            let page = history.page(limit, before);
            let (has_more, first) = (page.has_more, page.first_idx);
            pages.push(page);
            if !has_more {
                break;
            }
            before = Some(first);
        }
        let events: Vec<_> = pages.into_iter().rev().flat_map(|page| page.events).collect();
        prop_assert_eq!(&events, &whole.events);
        let indices: Vec<u64> = events.iter().filter_map(|entry| entry.idx).collect();
        prop_assert!(indices.is_sorted_by(|one, next| one < next));
        let words = |kind: &str| -> String {
            let packets = session.packets();
            packets.iter().filter(|p| p["type"] == kind).map(|p| p["content"].as_str().unwrap().to_owned()).collect()
        };
        let (mut chat, mut reasoning, mut acts) = (String::new(), String::new(), 0);
        for entry in &events {
            match &entry.kind {
                EntryKind::Chat { content } => chat.push_str(content),
                EntryKind::Reasoning { content, .. } => reasoning.push_str(content),
                EntryKind::ToolCall { .. } | EntryKind::FileEdit { .. } => acts += 1,
                EntryKind::User { .. } => {}
            }
        }
        prop_assert_eq!((chat, reasoning), (words("chat"), words("reasoning")));
        let told = session.packets();
        prop_assert_eq!(acts, told.iter().filter(|p| p["type"] == "tool_call" || p["type"] == "file_edit").count());
    }

    /// The last turns can be folded first, and those before them put in front; a message that is hidden in between, too.
    #[test]
    fn turns_do_not_touch_each_other(
        session in journal(), cut in any::<prop::sample::Index>(), hide in any::<prop::sample::Index>(), limit in 1..5_usize,
    ) {
        let mut session = session;
        let (mut tip, mut idle) = (Tip::default(), vec![0]);
        for fact in &session.facts {
            tip.apply(fact);
            if tip.is_idle() {
                idle.push(fact.seq);
            }
        }
        let told: Vec<MessageId> = history(&session).messages().cloned().collect();
        let hidden = if told.is_empty() { None } else { Some(hide.get(&told).clone()) };
        session.facts.iter().for_each(|fact| assert!(!matches!(fact.event, Event::MessageHidden(_))));
        if let Some(message) = hidden.clone() {
            session.tell(MessageHidden { message });
        }
        let (earlier, later) = session.facts.split_at(usize::try_from(*cut.get(&idle)).unwrap());
        let mut tip = Tip::default();
        let mut earlier = folded(&session, &mut tip, earlier);
        let mut glued = folded(&session, &mut tip, later);
        earlier.hide(&hidden.into_iter().collect());
        glued.prepend(earlier);
        let whole = history(&session);
        prop_assert_eq!(glued.page(usize::MAX, None), whole.page(usize::MAX, None));
        let before = whole.page(limit, None).first_idx;
        prop_assert_eq!(glued.page(limit, Some(before)), whole.page(limit, Some(before)));
    }
    /// From any idle moment on, with all that is undone and brought back in between; where it cannot know, it says so.
    #[test]
    fn a_tally_counts_what_a_history_shows(
        session in journal(), undo in prop::collection::vec((0..4_u8, any::<prop::sample::Index>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let session = undone(session, &undo);
        let (mut tip, mut tally) = (Tip::default(), Tally::default());
        let mut idle = vec![(0, Tip::default(), Counts::default())];
        for (at, fact) in (1..).zip(&session.facts) {
            tip.apply(fact);
            tally.apply(fact, &tip, &session.blobs);
            let so_far = folded(&session, &mut Tip::default(), &session.facts[..at]).page(usize::MAX, None);
            prop_assert_eq!(tally.shown(&tip), so_far.total_events);
            if tip.is_idle() {
                idle.push((at, tip.clone(), tally.counts()));
            }
        }
        let (from, mut tip, counts) = cut.get(&idle).clone();
        let mut since = Tally::since(counts);
        for fact in &session.facts[from..] {
            tip.apply(fact);
            since.apply(fact, &tip, &session.blobs);
        }
        if since.missing().is_empty() {
            prop_assert_eq!(since.counts(), tally.counts());
            if tip.hidden_from().is_none_or(|hidden| hidden > from as u64) {
                prop_assert_eq!(since.shown(&tip), tally.shown(&tip));
            }
        }
    }
}

/// At its idle moments, in turn: a message that was told is hidden, or all from some turn on is undone, or that is taken
/// back, or nothing is.
fn undone(mut session: Session, undo: &[(u8, prop::sample::Index)]) -> Session {
    let (facts, mut undo) = (std::mem::take(&mut session.facts), undo.iter().cycle());
    let (mut tip, mut told) = (Tip::default(), vec![MessageId::from("msg_unknown")]);
    for fact in facts {
        tip.apply(&fact);
        session.tell(fact.event);
        let Some(turn) = &tip.turn else {
            let (how, which) = undo.next().unwrap();
            let (message, checkpoint) = (which.get(&told).clone(), "c".to_owned());
            match how {
                0 => session.tell(MessageHidden { message }),
                1 => {
                    let starts = starts(&session);
                    session.tell(rewound((!starts.is_empty()).then(|| *which.get(&starts))))
                }
                2 => session.tell(Unrewound::to(checkpoint)),
                _ => &mut session,
            };
            continue;
        };
        // A turn whose prompt nobody told has no message of its own.
        told.extend(Some(turn.current_message()).filter(|message| !message.as_str().is_empty()).cloned());
    }
    session
}
