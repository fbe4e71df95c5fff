//! What was stored is read for ever, nothing changes on the way through JSON, and the folds agree.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "facts/runs.rs"]
mod runs;

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use tolka_facts::event::{Foreign, Rewound, TurnStarted, Unrewound};
use tolka_facts::{
    Blobs, Body, Draft, Event, Fact, Hash, INLINE_LIMIT, Json, Part, SessionId, Time, Tip, VERSION, View,
};

fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) }
}

/// One file per version that was ever written. A line may be added to the newest; none may ever be changed.
#[test]
fn every_stored_version_decodes_for_ever() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/facts");
    for version in 1..=VERSION {
        let stored = std::fs::read_to_string(format!("{folder}/v{version}.jsonl")).unwrap();
        let mut names = BTreeSet::new();
        for (at, line) in (1..).zip(stored.lines()) {
            let fact = Fact::from_json(line.as_bytes()).unwrap_or_else(|e| panic!("v{version}.jsonl, line {at}: {e}"));
            names.insert(fact.event.name());
            if version == VERSION {
                assert_eq!(String::from_utf8(fact.to_json()).unwrap(), line, "line {at}");
            }
        }
        let unshown: Vec<_> = Event::NAMES.iter().filter(|name| !names.contains(*name)).collect();
        assert!(version < VERSION || unshown.is_empty(), "v{version}.jsonl shows no {unshown:?}");
    }
}

#[test]
fn a_fact_of_a_newer_version_is_refused() {
    let newer = format!(
        r#"{{"v":{},"session":"s","seq":1,"time":1,"cause":"agent","type":"session_deleted","data":{{}}}}"#,
        VERSION + 1
    );
    assert!(Fact::from_json(newer.as_bytes()).unwrap_err().to_string().contains("newer"));
}

#[derive(Default)]
struct Store(HashMap<Hash, Vec<u8>>);

impl Store {
    fn put(&mut self, bytes: &[u8]) {
        self.0.insert(Hash::of(bytes), bytes.to_vec());
    }
}

impl Blobs for Store {
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.0.get(hash).cloned()
    }
}

/// JSON as somebody might write it: odd numbers, white space, and what looks like a reference of ours.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1.50".to_owned()),
        Just("12345678901234567890123".to_owned()),
        ".{0,20}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        (1..5u32).prop_map(|n| format!("\"{}\"", "ö".repeat(9_000 * n as usize))),
        Just(r#"{"$blob":{"hash":"00","size":3}}"#.to_owned()),
        Just(r#"{"$blob":1}"#.to_owned()),
        Just(r#"{ "$blob":{"hash":"00","size":3}}"#.to_owned()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(|values| {
            let fields: Vec<_> = values.iter().enumerate().map(|(n, value)| format!("\"k{n}\": {value}")).collect();
            format!("{{{}}}", fields.join(",\n"))
        })
    })
}

/// Those that can be taken back, the last one last: where each hides from, and where it is told.
fn rewinds(facts: &[Fact]) -> Vec<(Option<u64>, u64)> {
    let mut rewinds = Vec::new();
    for fact in facts {
        match &fact.event {
            Event::Rewound(e) => rewinds.push((e.from, fact.seq)),
            Event::Unrewound(_) => drop(rewinds.pop()),
            Event::TurnStarted(_) => rewinds.clear(),
            _ => {}
        }
    }
    rewinds
}

/// Facts one after the other, of one session.
#[derive(Default)]
struct Telling(Tip);

impl Telling {
    fn tell(&mut self, event: impl Into<Event>) -> Option<u64> {
        let fact = Draft::client(event).stamp(SessionId::from("ses_1"), self.0.seq + 1, Time::from_millis(1));
        self.0.apply(&fact);
        self.0.hidden_from()
    }

    fn rewind(&mut self, from: u64) -> Option<u64> {
        self.tell(Rewound { from: Some(from), message: Some("msg_1".into()), ..files_alone() })
    }

    fn unrewind(&mut self) -> Option<u64> {
        let (files, kept) = (Vec::new(), Vec::new());
        let checkpoint = Some("c".to_owned());
        self.tell(Unrewound { checkpoint, files, before: None, after: None, kept, changes: None, total: None })
    }
}

fn files_alone() -> Rewound {
    Rewound {
        checkpoint: Some("c".into()),
        message: None,
        files: Vec::new(),
        before: None,
        after: None,
        from: None,
        kept: Vec::new(),
        changes: None,
        total: None,
        resets: false,
    }
}

#[test]
fn the_last_rewind_that_hides_decides() {
    let mut told = Telling::default();
    assert_eq!(told.rewind(5), Some(5));
    assert_eq!(told.rewind(30), Some(30), "one that goes forth shows again what lies before it");
    assert!(told.0.hides(30) && !told.0.hides(29));
    assert_eq!(told.rewind(20), Some(20));
    assert_eq!(told.tell(files_alone()), Some(20), "files alone decide nothing");
    assert_eq!(told.unrewind(), Some(20));
    assert_eq!(told.unrewind(), Some(30));
    assert_eq!(told.unrewind(), Some(5));
    assert_eq!(told.unrewind(), None);
    assert_eq!(told.rewind(7), Some(7));
    assert_eq!(told.tell(TurnStarted { turn: "trn_1".into(), checkpoint: None }), None);
    assert!(told.0.has_settled && told.0.rewinds.is_empty());
}

/// The stack is bounded: what fell out of it cannot be taken back any more, and hides what it hid.
#[test]
fn of_very_many_rewinds_the_last_can_be_taken_back() {
    let mut told = Telling::default();
    told.rewind(2);
    told.rewind(9);
    assert!((0..40).all(|_| told.tell(files_alone()) == Some(9)), "under files alone");
    let can_be_taken_back = told.0.rewinds.len();
    assert!((2..40).contains(&can_be_taken_back));
    assert!((0..can_be_taken_back).all(|_| told.unrewind() == Some(9)));
    assert!(told.0.rewinds.is_empty());
    assert_eq!(told.rewind(4), Some(4));
    assert!((0..50).all(|n| told.rewind(100 - n) == Some(100 - n)));
    for _ in 0..can_be_taken_back {
        told.unrewind();
    }
    let last_buried = 100 - (50 - can_be_taken_back as u64) + 1;
    assert_eq!((told.0.rewinds.len(), told.0.hidden_from()), (0, Some(last_buried)));
    assert_eq!(told.tell(TurnStarted { turn: "trn_1".into(), checkpoint: None }), None);
}

/// Facts of the third version have neither the place of a rewind nor its kind: it is read, and hides nothing.
#[test]
fn a_rewind_of_the_third_version_hides_nothing() {
    let stored = include_str!("../../../tests/data/facts/v3.jsonl");
    let mut view = View::default();
    for line in stored.lines() {
        view.apply(&Fact::from_json(line.as_bytes()).unwrap());
        assert_eq!(view.tip.hidden_from(), None);
    }
    assert_eq!(view.asides.iter().filter(|fact| matches!(fact.event, Event::Rewound(_))).count(), 1);
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_fact_survives_json(run in runs::run(), raw in prop::option::of(json_text())) {
        for mut fact in run {
            fact.raw = raw.as_deref().map(|raw| Json::parse(raw).unwrap());
            let stored = fact.to_json();
            prop_assert!(!stored.contains(&b'\n'));
            prop_assert_eq!(&serde_json::to_vec(&fact).unwrap(), &stored);
            let read = Fact::from_json(&stored).unwrap();
            prop_assert_eq!(read.to_json(), stored);
            prop_assert_eq!(read, fact);
        }
    }

    /// Whatever is moved out comes back as it was; what only looks like a reference is not taken for one.
    #[test]
    fn a_json_value_survives_being_moved_out(text in json_text()) {
        let original = Json::parse(&text).unwrap();
        let (mut json, mut store) = (original.clone(), Store::default());
        json.spill(&mut |bytes| store.put(bytes));
        prop_assert!(json.get().len() <= INLINE_LIMIT);
        let moved = !store.0.is_empty();
        prop_assert_eq!(json.blob().is_some(), moved);
        let whole = json.whole(&store);
        prop_assert_eq!(whole.get(), original.get());
        // In a fact, through the journal and back.
        let mut draft = Draft::agent(Foreign { origin: "o".into(), what: "w".into() }).with_raw(original.clone());
        draft.spill(&mut |bytes| store.put(bytes));
        let fact = draft.stamp(SessionId::from("ses_1"), 1, Time::from_millis(1));
        let read = Fact::from_json(&fact.to_json()).unwrap().raw.unwrap();
        prop_assert_eq!(read.whole(&store).into_owned(), original);
        prop_assert!(!moved || Fact::blobs_in(std::str::from_utf8(&fact.to_json()).unwrap()).count() == 1);
    }

    #[test]
    fn a_body_survives_being_moved_out(times in 0..5000usize, piece in ".{0,12}") {
        let text = piece.repeat(times);
        let (mut body, mut store) = (Body::from(text.as_str()), Store::default());
        body.spill(&mut |bytes| store.put(bytes));
        prop_assert_eq!(body.blob().is_some(), text.len() > INLINE_LIMIT);
        prop_assert!(text.starts_with(body.head()));
        let read: Body = serde_json::from_str(&serde_json::to_string(&body).unwrap()).unwrap();
        prop_assert_eq!(&read, &body);
        prop_assert_eq!(read.len(), text.len() as u64);
        prop_assert_eq!(read.text(&store), text);
    }

    /// Keeping the tip and going on from it at any fact is the same as never having stopped.
    #[test]
    fn a_tip_is_taken_up_anywhere(run in runs::run()) {
        let (mut straight, mut kept) = (Tip::default(), Tip::default());
        for fact in run {
            kept = serde_json::from_slice(&serde_json::to_vec(&kept).unwrap()).unwrap();
            kept.apply(&fact);
            straight.apply(&fact);
            prop_assert_eq!(&kept, &straight, "at {}", fact.seq);
        }
    }

    /// What is hidden is what was told to be, for good, and the turns that rewinds have hidden and that can come back.
    #[test]
    fn a_rewind_hides_turns_until_it_is_taken_back(run in runs::run()) {
        let (mut view, mut started, mut gone) = (View::default(), HashMap::new(), BTreeSet::new());
        for (at, fact) in run.iter().enumerate() {
            view.apply(fact);
            match &fact.event {
                Event::TurnStarted(e) => {
                    started.insert(e.turn.clone(), fact.seq);
                    prop_assert!(view.messages.iter().all(|m| !m.rewound), "nothing can come back at {}", fact.seq);
                }
                Event::MessageHidden(e) => {
                    gone.insert(e.message.clone());
                }
                _ => {}
            }
            let hides = rewinds(&run[..=at]);
            for message in &view.messages {
                let is_gone = gone.contains(&message.id);
                let from = hides.iter().rev().find_map(|(from, _)| *from);
                let rewound = started.get(&message.turn).zip(from).is_some_and(|(started, from)| *started >= from);
                prop_assert_eq!(message.hidden, is_gone || rewound, "{} at {}", message.id, fact.seq);
                prop_assert_eq!(message.rewound, rewound && !is_gone, "{} at {}", message.id, fact.seq);
            }
            let can_be_taken_back: Vec<u64> = view.tip.rewinds.iter().map(|rewind| rewind.seq).collect();
            prop_assert_eq!(can_be_taken_back, hides.iter().map(|(_, seq)| *seq).collect::<Vec<_>>());
        }
    }

    /// The folds of the rest of a session know what rewinds hide in it and before it.
    #[test]
    fn a_view_from_any_place_hides_what_the_whole_does(run in runs::run(), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(run.len() + 1);
        let (mut whole, mut tip) = (View::default(), Tip::default());
        run.iter().for_each(|fact| whole.apply(fact));
        run[..cut].iter().for_each(|fact| tip.apply(fact));
        let mut rest = View::since(tip);
        run[cut..].iter().for_each(|fact| rest.apply(fact));
        let (mut first, mut from_start) = (View::default(), whole.messages.iter());
        run[..cut].iter().for_each(|fact| first.apply(fact));
        first.rewind(whole.tip.hidden_from());
        for message in &rest.messages {
            let same = whole.messages.iter().find(|m| m.id == message.id && m.turn == message.turn);
            prop_assert!(message.continued || same.is_some_and(|same| same.hidden == message.hidden), "{}", message.id);
        }
        for message in first.messages.iter().filter(|m| m.rewound) {
            prop_assert!(from_start.any(|m| m.id == message.id && m.hidden), "{}", message.id);
        }
    }

    #[test]
    fn the_view_agrees_with_the_tip(run in runs::run()) {
        let (mut view, mut tip) = (View::default(), Tip::default());
        for fact in run {
            view.apply(&fact);
            tip.apply(&fact);
            prop_assert_eq!(&view.tip, &tip);
            if let (Event::PromptSteered(e), Some(taken)) = (&fact.event, &tip.taken) {
                let at = view.messages.iter().position(|m| m.id == taken.prompt.message).unwrap();
                prop_assert_eq!(&view.messages[at].turn, &e.into);
                prop_assert!(view.messages[..at].iter().any(|m| m.turn == e.into), "it stands in the turn at {}", fact.seq);
                let later = view.messages.len() - at - 1;
                prop_assert_eq!(later, tip.queue.len(), "only prompts that wait come after it");
            }
            if let Event::StepEnded(e) = &fact.event {
                let message = view.messages.iter().find(|m| m.id == e.message).unwrap();
                prop_assert_eq!(&message.kept, &e.kept);
            }
            for queued in &tip.queue {
                prop_assert_eq!(view.messages.iter().filter(|m| m.id == queued.prompt.message).count(), 1);
            }
            let Some(turn) = &tip.turn else { continue };
            let parts: Vec<_> = view.messages.iter().filter(|m| m.turn == turn.id).flat_map(|m| &m.parts).collect();
            for tool in &turn.tools {
                let same: Vec<_> = parts.iter().filter(|part| matches!(part, Part::Tool(known) if known.call == tool.call)).collect();
                prop_assert_eq!(same.len(), 1, "{} at {}", tool.call, fact.seq);
                prop_assert_eq!(same[0], &&Part::Tool(Box::new((**tool).clone())), "at {}", fact.seq);
            }
            if let Some(open) = &turn.text {
                let is_open = |part: &&&Part| match part {
                    Part::Text(said) | Part::Thought(said) => said.part == open.part && said.text == open.text,
                    _ => false,
                };
                prop_assert!(parts.iter().any(|part| is_open(&part)), "text at {}", fact.seq);
            }
        }
        let bytes = serde_json::to_vec(&view).unwrap();
        prop_assert_eq!(serde_json::from_slice::<View>(&bytes).unwrap(), view);
    }
}
