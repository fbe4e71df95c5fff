//! **What the model is sent is a function of the facts**: whatever happened, a mind that knows only what was told sends the
//! same as the one that was there.

use proptest::prelude::*;
use serde_json::{Value, json};
use tolka_agent::native::model::{Input, Message, ModelErrorKind, Output};
use tolka_facts::event::Finish;
use tolka_facts::{Block, Event, Fact, Json, MessageId, View};

use crate::hall::{AGAIN, Act, Hall};
use crate::halted::check_pairs;
use crate::script::{
    Line, Play, Script, began, call, ends, ends_using, ends_with, input, refuses, text, thought, thought_ended,
};
use crate::told::check_dialects;

/// One prompt and what comes of it.
#[derive(Debug, Clone)]
struct Turn {
    plays: Vec<Play>,
    content: Vec<Block>,
    context: Option<Value>,
    /// After so many facts of the turn.
    cancel: Option<usize>,
    steer: Option<usize>,
    /// Which message is hidden before it.
    hide: Option<usize>,
    /// The prompt asks for a summary of all.
    compacts: bool,
    /// What comes of summaries.
    summaries: Vec<Play>,
    /// To before the turn of which message the conversation goes back before it, and whether that is taken back.
    rewind: Option<(usize, bool)>,
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let words = "[a-zäß \\n]{0,12}";
    prop_oneof![
        4 => words.prop_map(|words| vec![text(&words)]),
        2 => words.prop_map(|words| vec![thought(&words)]),
        1 => (words, any::<bool>()).prop_map(|(words, is_kept)| {
            vec![thought(&words), thought_ended(is_kept.then(|| json!({ "signature": words })))]
        }),
        1 => Just(vec![thought_ended(Some(json!({ "redacted": 1 })))]),
        3 => (0..3usize, called()).prop_map(|(slot, (name, given))| call(slot, "", &name, &given).to_vec()),
        1 => (0..3usize).prop_map(|slot| call(slot, "call_1", "list", &json!({})).to_vec()),
        1 => Just(vec![began(7, "x", "read"), input(7, "{\"filePath\": \"a.t"), text("and"), input(7, "xt\"}")]),
        1 => prop_oneof![Just("{\"half"), Just("[1]"), Just("null"), Just("{\n}")]
            .prop_map(|given| vec![began(9, "", "glob"), input(9, given)]),
        1 => prop_oneof![Just(""), Just("null"), Just("[1]")]
            .prop_map(|given| vec![began(11, "", "unheard_of"), input(11, given)]),
        1 => Just(vec![input(40, "{}")]),
    ]
}

fn called() -> impl Strategy<Value = (String, Value)> {
    let path = prop_oneof![Just("a.txt"), Just("missing.txt"), Just("../out"), Just("picture.png")];
    let named = |name: &str, given: Value| (name.to_owned(), given);
    prop_oneof![
        path.clone().prop_map(move |path| named("read", json!({ "filePath": path }))),
        (path, "[a-z]{0,5}")
            .prop_map(move |(path, words)| named("write", json!({ "filePath": path, "content": words }))),
        Just(named("list", json!({}))),
        Just(named("glob", json!({ "pattern": "**/*.txt" }))),
        Just(named("grep", json!({ "pattern": "a" }))),
        Just(named("edit", json!({ "filePath": "a.txt", "oldString": "one", "newString": "two" }))),
        Just(named("todowrite", json!({ "todos": [{ "content": "c", "status": "pending", "priority": "low" }] }))),
        Just(named("unheard_of", json!({ "a": 1.50 }))),
        Just(named("read", json!({}))),
    ]
}

fn last() -> impl Strategy<Value = Line> {
    prop_oneof![
        6 => Just(ends()),
        2 => Just(ends_with(Finish::ToolCalls)),
        2 => Just(ends_using(Finish::ToolCalls, FULL)),
        1 => Just(ends_with(Finish::Length)),
        1 => Just(refuses()),
        2 => Just(Line::Fails(ModelErrorKind::Cut)),
        1 => Just(Line::Fails(ModelErrorKind::Unavailable)),
        1 => Just(Line::Fails(ModelErrorKind::Overflow)),
        1 => Just(ends_with(Finish::Error)),
    ]
}

fn play() -> impl Strategy<Value = Play> {
    (proptest::collection::vec(lines(), 0..5), last())
        .prop_map(|(lines, last)| lines.into_iter().flatten().chain([last]).collect())
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        3 => "[a-z]{1,8}".prop_map(Block::text),
        1 => Just(Block::Image { data: "aGk=".into(), mime: "image/png".into(), uri: None }),
        1 => Just(Block::text("long ".repeat(8_000))),
        1 => prop_oneof![Just("a.txt"), Just("gone.txt"), Just("picture.png")].prop_map(|path| Block::Link {
            uri: format!("file://WORKSPACE/{path}"),
            name: path.to_owned(),
            title: None,
            description: None,
            mime: None,
            size: None,
        }),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let context =
        proptest::option::weighted(0.2, Just(json!({ "current_file": { "path": "a.txt", "selection": "x" } })));
    (
        proptest::collection::vec(play(), 0..5),
        proptest::collection::vec(block(), 1..3),
        context,
        proptest::option::weighted(0.3, 1..40usize),
        proptest::option::weighted(0.3, 1..20usize),
        proptest::option::weighted(0.2, 0..10usize),
        proptest::option::weighted(0.3, (0..10usize, any::<bool>())),
        (proptest::bool::weighted(0.2), proptest::collection::vec(play(), 0..2)),
    )
        .prop_map(|(plays, content, context, cancel, steer, hide, rewind, (compacts, summaries))| Turn {
            plays,
            content,
            context,
            cancel,
            steer,
            hide,
            compacts,
            summaries,
            rewind,
        })
}

/// What the model takes: enough, or so little that long prompts and full answers make it be summarised.
fn room() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_000_000u64), Just(FULL)]
}

const FULL: u64 = 16_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_model_is_sent_is_a_function_of_the_facts(
        turns in proptest::collection::vec(turn(), 1..4),
        room in room(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check(turns.clone(), room, Minds::One));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check(turns, room, Minds::Many));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_nothing_without_input_is_the_same_afterwards() {
    for given in [None, Some("null"), Some("{\"a\":")] {
        let mut play = vec![began(0, "", "unheard_of")];
        play.extend(given.map(|given| input(0, given)));
        play.push(ends());
        let (content, context) = (vec![Block::text("Go")], None);
        let turn = Turn {
            plays: vec![play],
            content,
            context,
            cancel: None,
            steer: None,
            hide: None,
            compacts: false,
            summaries: Vec::new(),
            rewind: None,
        };
        check(vec![turn], FULL, Minds::One).await;
    }
}

/// What a rewind takes back is as if it had never been said, for a mind that stays and for a new one, as it is again when
/// that is taken back.
#[tokio::test(start_paused = true)]
async fn what_is_taken_back_is_not_sent() {
    let plays = || ["one", "two", "three", "four"].map(|words| vec![text(words), ends()]).to_vec();
    for minds in [Minds::One, Minds::Many] {
        for (back, expected) in [
            (None, vec!["Say 1", "one", "Say 2", "two", "Say 3", "three", "Say 4"]),
            (Some(false), vec!["Say 1", "one", "Say 4"]),
            (Some(true), vec!["Say 1", "one", "Say 2", "two", "Say 3", "three", "Say 4"]),
        ] {
            let script = Script::new(plays());
            let mut hall = Hall::open(vec![script.clone()]);
            for n in 1..=3 {
                hall.say(&format!("Say {n}")).await;
            }
            if let Some(is_taken_back) = back {
                let second = hall.memory.view().messages.iter().position(|message| message.turn != first_turn(&hall));
                hall.rewind(second.unwrap());
                if is_taken_back {
                    hall.unrewind();
                }
            }
            if minds == Minds::Many {
                hall.renew(vec![script.clone()]);
            }
            hall.say("Say 4").await;
            let sent = script.asked().pop().unwrap().messages;
            let words: Vec<String> = sent.iter().flat_map(words).collect();
            assert_eq!(words, expected, "{minds:?}, {back:?}");
        }
    }
}

fn first_turn(hall: &Hall) -> tolka_facts::TurnId {
    hall.memory.view().messages[0].turn.clone()
}

fn words(message: &Message) -> Vec<String> {
    match message {
        Message::User(inputs) => inputs.iter().filter_map(said).collect(),
        Message::Model(outputs) => outputs.iter().filter_map(answered).collect(),
        Message::Results(_) => Vec::new(),
    }
}

fn said(input: &Input) -> Option<String> {
    match input {
        Input::Text(text) => Some(text.clone()),
        Input::Image { .. } | Input::File { .. } => None,
    }
}

fn answered(output: &Output) -> Option<String> {
    match output {
        Output::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// What does the turns: one mind that stays, and remembers what it made of the past; or a new one for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Minds {
    One,
    Many,
}

async fn check(turns: Vec<Turn>, room: u64, minds: Minds) {
    let mut hall = Hall::open(Vec::new());
    let folder = hall.folder.path().to_owned();
    std::fs::write(folder.join("a.txt"), "one\ntwo\n").unwrap();
    std::fs::write(folder.join("picture.png"), PNG).unwrap();
    // A mind is opened with its models: what was not played in one turn is played in the next where the mind stays.
    let mut asked = Vec::new();
    let all = |of: fn(&Turn) -> &Vec<Play>| turns.iter().flat_map(|turn| of(turn).clone()).collect();
    let stays = Script::small(room, all(|turn| &turn.summaries), all(|turn| &turn.plays));
    if minds == Minds::One {
        hall.renew(vec![stays.clone()]);
    }
    for turn in turns {
        let model = Script::small(room, turn.summaries, turn.plays);
        if minds == Minds::Many {
            hall.renew(vec![model.clone()]);
        }
        let begun = begun(&hall.memory.view());
        if let Some(hidden) = turn.hide.filter(|_| !begun.is_empty()) {
            hall.hide(begun[hidden % begun.len()]);
        }
        if let Some((to, is_taken_back)) = turn.rewind.filter(|_| !begun.is_empty()) {
            hall.rewind(begun[to % begun.len()]);
            if is_taken_back {
                hall.unrewind();
            }
        }
        let mut told = 0;
        let said = if turn.compacts { vec![Block::text("/compact the lot")] } else { turn.content };
        let content = said.into_iter().map(|block| at_home(block, folder.to_str().unwrap())).collect();
        hall.prompt(content, turn.context.map(Json::from), |_| {
            told += 1;
            match () {
                () if turn.cancel == Some(told) => Act::Cancels,
                () if turn.steer == Some(told) => {
                    Act::Steers(if told % 3 == 0 { "/compact".into() } else { "steered".into() })
                }
                () => Act::Nothing,
            }
        })
        .await;
        asked.extend(model.asked());
    }
    asked.extend(stays.asked());
    // Files change behind the session's back; what was read of them does not.
    std::fs::write(folder.join("a.txt"), "other").unwrap();
    let facts = hall.facts();
    let mut asked = asked.into_iter();
    let mut is_silent = false;
    for (at, fact) in facts.iter().enumerate() {
        match &fact.event {
            Event::StepStarted(_) if !is_attached(&facts[at + 1..]) => {
                let Some(request) = asked.next() else { break };
                check_pairs(&request.messages);
                let again = without_last(hall.sent_after(at).await.messages);
                assert_eq!(again, request.messages, "before fact {at} of {:#?}", names(&facts));
                is_silent = true;
            }
            Event::StepEnded(_) => is_silent = false,
            // Who cancels in the wait for it has it asked no more.
            Event::RetryScheduled(_) if is_silent && !is_cancelled(facts.get(at + 1)) => drop(asked.next()),
            _ => {}
        }
    }
    assert_eq!(asked.next(), None, "{:#?}", names(&facts));
    check_pairs(&hall.sent_after(facts.len()).await.messages);
    check_dialects(&facts, &hall.memory);
}

fn is_cancelled(next: Option<&Fact>) -> bool {
    matches!(next.map(|fact| &fact.event), Some(Event::StepEnded(ended)) if ended.finish == Finish::Cancelled)
}

/// Where the messages are that do not wait for their turn: those are said later, and not taken back before.
fn begun(view: &View) -> Vec<usize> {
    let waits = |message: &MessageId| view.tip.queue.iter().any(|queued| queued.prompt.message == *message);
    (0..view.messages.len()).filter(|at| !waits(&view.messages[*at].id)).collect()
}

/// Whether the step that these facts follow is one that no model was asked for.
fn is_attached(rest: &[Fact]) -> bool {
    let mut step = rest.iter().map(|fact| &fact.event).take_while(|event| !matches!(event, Event::StepEnded(_)));
    step.any(|event| matches!(event, Event::ToolChanged(changed) if changed.call.as_str().starts_with("attached_")))
}

fn names(facts: &[Fact]) -> Vec<(u64, &'static str)> {
    facts.iter().map(|fact| (fact.seq, fact.event.name())).collect()
}

fn at_home(block: Block, folder: &str) -> Block {
    match block {
        Block::Link { uri, name, title, description, mime, size } => {
            Block::Link { uri: uri.replace("WORKSPACE", folder), name, title, description, mime, size }
        }
        other => other,
    }
}

/// Without the prompt with which the session was taken up again.
fn without_last(mut messages: Vec<Message>) -> Vec<Message> {
    let Some(Message::User(inputs)) = messages.last_mut() else { panic!("{messages:?}") };
    assert_eq!(inputs.pop(), Some(Input::Text(AGAIN.into())));
    if inputs.is_empty() {
        messages.pop();
    }
    messages
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
