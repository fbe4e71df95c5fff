//! Conversations that grow too long: when they are summarised, what is sent then, and what a summary that fails leaves.

use serde_json::json;
use tolka_agent::native::model::{Input, Message, ModelErrorKind, Output};
use tolka_agent::native::settings::Compaction;
use tolka_facts::event::{CompactionEnded, FailureKind, Finish, Stop, Usage};
use tolka_facts::{Block, Event, Fact};

use crate::hall::{Act, Hall};
use crate::halted::check_pairs;
use crate::script::{Line, Play, Script, call, ends, ends_using, ends_with, refuses, text, usage};
use crate::told::check_dialects;

/// What the small model takes. The system's words and the tools are a good part of it.
const CONTEXT: u64 = 40_000;
/// Nearly all of it.
const FULL: u64 = 39_000;

/// Reads a file, and says how much of the model is used by then.
fn reads(path: &str, used: u64) -> Play {
    let mut play = call(0, "", "read", &json!({ "filePath": path })).to_vec();
    play.push(ends_using(Finish::ToolCalls, used));
    play
}

fn says(words: &str) -> Play {
    vec![text(words), ends()]
}

fn hall(model: &std::sync::Arc<Script>) -> Hall {
    let hall = Hall::open(vec![model.clone()]);
    for (name, letter) in [("a.txt", "a"), ("b.txt", "b"), ("c.txt", "c")] {
        // Some seven thousand tokens each.
        std::fs::write(hall.folder.path().join(name), format!("{}\n", letter.repeat(100)).repeat(250)).unwrap();
    }
    hall
}

fn words(messages: &[Message]) -> String {
    let input = |input: &Input| match input {
        Input::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    let output = |output: &Output| match output {
        Output::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    let said = messages.iter().flat_map(|message| match message {
        Message::User(inputs) => inputs.iter().map(input).collect::<Vec<_>>(),
        Message::Model(outputs) => outputs.iter().map(output).collect(),
        Message::Results(results) => results.iter().flat_map(|result| &result.content).map(input).collect(),
    });
    said.collect::<Vec<_>>().join("\n")
}

fn compactions(facts: &[Fact]) -> Vec<&CompactionEnded> {
    facts
        .iter()
        .filter_map(|fact| match &fact.event {
            Event::CompactionEnded(ended) => Some(ended),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fills_the_model_is_summarised_in_its_middle_and_goes_on() {
    let plays = vec![reads("a.txt", 12_000), reads("b.txt", 25_000), reads("c.txt", FULL), says("All read.")];
    let model = Script::small(CONTEXT, Vec::new(), plays);
    let mut hall = hall(&model);
    assert_eq!(hall.say("Read them all.").await.stop, Stop::EndTurn);
    let facts = hall.facts();
    let [ended] = compactions(&facts)[..] else { panic!("{:?}", compactions(&facts)) };
    assert_eq!((ended.error.clone(), ended.usage), (None, Some(usage())));
    let asked = model.asked();
    assert_eq!(asked.len(), 4);
    let last = &asked[3].messages;
    check_pairs(last);
    let said = words(last);
    assert!(said.contains("Summary 1.") && said.contains("Read them all."), "{said}");
    assert!(said.contains("ccccc") && !said.contains("aaaaa") && !said.contains("bbbbb"), "the latest stays: {said}");
    let [summarised] = &model.summarised()[..] else { panic!() };
    let transcript = words(&summarised.messages);
    assert!(transcript.contains("aaaaa") && transcript.contains("bbbbb") && !transcript.contains("ccccc"));
    assert!(summarised.tools.is_empty());
    // The prompt is sent to the next step once.
    assert_eq!(said.matches("Read them all.").count(), 1, "{said}");
    check_dialects(&facts, &hall.memory);
}

#[tokio::test(start_paused = true)]
async fn what_a_summary_took_is_counted() {
    let model = Script::small(CONTEXT, Vec::new(), vec![reads("a.txt", FULL), reads("b.txt", FULL), says("Read.")]);
    let mut hall = hall(&model);
    let ended = hall.say("Read.").await;
    let total = hall.memory.view().tip.head.tokens;
    assert_eq!(ended.usage.unwrap(), total);
    let calls = Usage { input: 2 * FULL + 100, output: 30, cache_read: 50, ..Usage::default() };
    assert_eq!(compactions(&hall.facts()).len(), 1, "{:?}", compactions(&hall.facts()));
    let mut expected = usage();
    expected += calls;
    assert_eq!(total, expected);
    hall.say("/compact").await;
    expected += usage();
    assert_eq!(hall.memory.view().tip.head.tokens, expected, "a summary alone is counted once");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_it_does_not_fit_is_asked_again_with_a_summary() {
    let overflows = || vec![Line::Fails(ModelErrorKind::Overflow)];
    let plays = vec![reads("a.txt", 10), reads("b.txt", 20), reads("c.txt", 30), overflows(), says("Read.")];
    // Nobody knows what it takes.
    let model = Script::new(plays);
    let mut hall = hall(&model);
    assert_eq!(hall.say("Read.").await.stop, Stop::EndTurn);
    assert_eq!(compactions(&hall.facts()).len(), 1);
    let asked = model.asked();
    let (before, after) = (words(&asked[3].messages), words(&asked[4].messages));
    assert!(before.contains("aaaaa") && !after.contains("aaaaa") && after.contains("<summary>\nSummary "), "{after}");

    let plays = vec![reads("a.txt", 10), reads("b.txt", 20), reads("c.txt", 30), overflows(), overflows(), says("No.")];
    let model = Script::new(plays);
    let mut hall = self::hall(&model);
    let ended = hall.say("Read.").await;
    let failure = ended.failure.unwrap();
    assert_eq!((ended.stop, failure.kind), (Stop::Failed, FailureKind::Provider));
    assert!(failure.message.contains("summarised, and still does not fit"), "{}", failure.message);
    assert!(failure.details.unwrap().get().contains("\"context_overflow\""));
    assert_eq!((model.asked().len(), compactions(&hall.facts()).len()), (5, 1), "it does not go round in circles");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_does_not_fit_by_itself_fails_as_it_did() {
    let model = Script::new(vec![vec![Line::Fails(ModelErrorKind::Overflow)]]);
    let mut hall = Hall::open(vec![model.clone()]);
    let failure = hall.say("Much too long.").await.failure.unwrap();
    assert_eq!(failure.message, "It is Overflow.");
    assert!(compactions(&hall.facts()).is_empty() && model.summarised().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_leaves_everything_as_it_was() {
    let silent = vec![text(" \n"), ends()];
    let broken = vec![text("Half a summ"), Line::Fails(ModelErrorKind::Rejected)];
    for summary in [silent, broken, vec![refuses()]] {
        let plays = vec![reads("a.txt", 12_000), reads("b.txt", FULL), reads("c.txt", FULL), says("Read.")];
        let model = Script::small(CONTEXT, vec![summary.clone()], plays);
        let mut hall = hall(&model);
        assert_eq!(hall.say("Read.").await.stop, Stop::EndTurn, "how much fits is the provider's to say");
        let facts = hall.facts();
        let [ended] = compactions(&facts)[..] else { panic!("it is not tried again: {:?}", compactions(&facts)) };
        assert!(ended.error.is_some() && ended.summary.is_none(), "{ended:?}");
        let said = words(&model.asked()[3].messages);
        assert!(said.contains("aaaaa") && said.contains("ccccc") && !said.contains("summ"), "{summary:?}");
        check_dialects(&facts, &hall.memory);

        let overflow = vec![Line::Fails(ModelErrorKind::Overflow)];
        let plays = vec![reads("a.txt", 10), reads("b.txt", 10), overflow];
        let model = Script::small(CONTEXT * 100, vec![summary], plays);
        let mut hall = self::hall(&model);
        let failure = hall.say("Read.").await.failure.unwrap();
        assert!(failure.message.contains("It is Overflow. (No summary could be made: "), "{}", failure.message);
    }
}

/// Half of a summary says nothing of the other half.
#[tokio::test(start_paused = true)]
async fn a_summary_that_is_cut_off_is_asked_for_in_fewer_words_and_is_never_taken_for_whole() {
    let cut = || vec![text("Half a summ"), ends_with(Finish::Length)];
    let endless = || vec![text(&"and so on ".repeat(10_000)), Line::Hangs];
    let plays = || vec![reads("a.txt", 12_000), reads("b.txt", 25_000), reads("c.txt", FULL), says("Read.")];
    let model = Script::small(CONTEXT, vec![cut(), endless()], plays());
    let mut hall = hall(&model);
    assert_eq!(hall.say("Read.").await.stop, Stop::EndTurn);
    let facts = hall.facts();
    let [ended] = compactions(&facts)[..] else { panic!("{:?}", compactions(&facts)) };
    assert_eq!((&ended.error, &ended.summary), (&None, &Some("Summary 3.".into())));
    let most = |asked: &Vec<Message>| {
        let said = words(asked);
        let (_, most) = said.rsplit_once("in at most ").unwrap();
        most.split_once(" words").unwrap().0.parse::<u64>().unwrap()
    };
    let most: Vec<u64> = model.summarised().iter().map(|asked| most(&asked.messages)).collect();
    assert!(most[0] > most[1] && most[1] > most[2], "{most:?}");
    assert!(!words(&model.asked()[3].messages).contains("summ\n"), "nothing of the half ones is left");

    let model = Script::small(CONTEXT, std::iter::repeat_with(cut).take(20).collect(), plays());
    let mut hall = self::hall(&model);
    assert_eq!(hall.say("Read.").await.stop, Stop::EndTurn);
    let facts = hall.facts();
    let [ended] = compactions(&facts)[..] else { panic!("{:?}", compactions(&facts)) };
    assert!(ended.summary.is_none() && ended.error.as_ref().unwrap().contains("too long"), "{ended:?}");
    let said = words(&model.asked()[3].messages);
    assert!(said.contains("aaaaa") && said.contains("ccccc") && !said.contains("Half a"), "{said}");
    check_dialects(&facts, &hall.memory);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_cancelled_leaves_everything_as_it_was() {
    let plays = vec![reads("a.txt", 12_000), reads("b.txt", FULL)];
    let model = Script::small(CONTEXT, vec![vec![text("Half"), Line::Hangs]], plays);
    let mut hall = hall(&model);
    let ended = hall.say_until("Read.", |fact| matches!(fact.event, Event::CompactionStarted(_))).await;
    assert_eq!(ended.stop, Stop::Cancelled);
    let facts = hall.facts();
    let [compaction] = compactions(&facts)[..] else { panic!() };
    assert!(compaction.error.as_ref().unwrap().contains("cancelled"), "{compaction:?}");
    assert!(hall.memory.view().tip.ended_turn.unwrap().compaction.is_none());
    // Cut off by a crash, it is the same.
    let started = facts.iter().position(|fact| matches!(fact.event, Event::CompactionStarted(_))).unwrap();
    let said = words(&hall.sent_after(started + 1).await.messages);
    assert!(said.contains("aaaaa") && said.contains("bbbbb") && !said.contains("Half"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_person_asks_for_a_summary() {
    let model = Script::new(vec![reads("a.txt", 10), says("It is full of it."), says("Here.")]);
    let mut hall = hall(&model);
    hall.title = tolka_agent::UNNAMED.to_owned();
    let ended = hall.say("/compact").await;
    assert_eq!((ended.stop, ended.usage), (Stop::EndTurn, None), "there is nothing yet");
    let facts = hall.facts();
    assert!(compactions(&facts)[0].error.as_ref().unwrap().contains("nothing to summarise"), "{facts:#?}");
    assert!(!facts.iter().any(|fact| matches!(fact.event, Event::SessionChanged(_))), "it names no session");

    hall.say("Read a.").await;
    let ended = hall.say("/compact  Heed the letters.").await;
    assert_eq!((ended.stop, ended.usage), (Stop::EndTurn, Some(usage())));
    let [summarised] = &model.summarised()[..] else { panic!() };
    let transcript = words(&summarised.messages);
    assert!(transcript.contains("Heed the letters.") && !transcript.contains("/compact"), "{transcript}");
    assert!(transcript.contains("Read a.") && transcript.contains("aaaaa") && transcript.contains("full of it"));
    let facts = hall.facts();
    let steps = facts.iter().filter(|fact| matches!(fact.event, Event::StepStarted(_))).count();
    assert_eq!(steps, 2, "no step is told of it");
    let Some(Event::CompactionStarted(started)) =
        facts.iter().map(|fact| &fact.event).rfind(|event| matches!(event, Event::CompactionStarted(_)))
    else {
        panic!()
    };
    assert!(!started.automatic);

    hall.say("Where were we?").await;
    let [Message::User(inputs)] = &model.asked()[2].messages[..] else { panic!("{:?}", model.asked()[2].messages) };
    let [Input::Text(summary), Input::Text(prompt)] = &inputs[..] else { panic!("{inputs:?}") };
    assert!(summary.contains("<summary>\nSummary 1.\n</summary>"), "{summary}");
    assert_eq!(prompt, "Where were we?");
    check_dialects(&hall.facts(), &hall.memory);
}

#[tokio::test(start_paused = true)]
async fn a_person_asks_for_a_summary_of_a_turn_that_runs() {
    let model = Script::new(vec![reads("a.txt", 10), reads("b.txt", 10), says("Read.")]);
    let mut hall = hall(&model);
    let mut is_asked = false;
    hall.prompt(vec![Block::text("Read.")], None, |fact| {
        let is_first = matches!(fact.event, Event::StepStarted(_)) && !std::mem::replace(&mut is_asked, true);
        if is_first { Act::Steers("/compact".into()) } else { Act::Nothing }
    })
    .await;
    let asked = model.asked();
    assert_eq!((asked.len(), compactions(&hall.facts()).len()), (3, 1));
    let [Message::User(inputs)] = &asked[1].messages[..] else { panic!("{:?}", asked[1].messages) };
    assert_eq!(inputs.last(), Some(&Input::Text("Read.".into())), "what it works on stays known");
    let later = words(&asked[2].messages);
    assert!(later.contains("Summary 1.") && later.contains("bbbbb") && !later.contains("aaaaa"), "{later}");
}

#[tokio::test(start_paused = true)]
async fn a_rewind_to_before_a_summary_brings_back_what_it_stood_for() {
    for renews in [false, true] {
        let plays = vec![says("One."), says("Two."), says("Three."), says("Four.")];
        let model = Script::new(plays);
        let mut hall = Hall::open(vec![model.clone()]);
        hall.say("First").await;
        hall.say("/compact").await;
        hall.say("Second").await;
        assert!(words(&model.asked()[1].messages).contains("Summary 1."));
        let compact = hall
            .memory
            .view()
            .messages
            .iter()
            .position(|message| message.parts.len() == 1 && format!("{:?}", message.parts).contains("/compact"));
        hall.rewind(compact.unwrap());
        if renews {
            hall.renew(vec![model.clone()]);
        }
        hall.say("Third").await;
        let said = words(&model.asked()[2].messages);
        assert_eq!(said, "First\nOne.\nThird", "{renews}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_into_one_request_is_summarised_in_pieces() {
    let overflow = vec![Line::Fails(ModelErrorKind::Overflow)];
    let plays = vec![reads("a.txt", 10), reads("b.txt", 10), reads("c.txt", 10), says("Read.")];
    let model = Script::small(CONTEXT * 10, vec![overflow.clone(), overflow], plays);
    let mut hall = hall(&model);
    hall.say("Read.").await;
    assert_eq!(hall.say("/compact").await.stop, Stop::EndTurn);
    let summarised = model.summarised();
    assert!(summarised.len() > 4, "{}", summarised.len());
    // The first two were refused.
    let transcript: Vec<String> = summarised[2..].iter().map(|asked| words(&asked.messages)).collect();
    let letters = |letter: char| {
        let count = |piece: &String| piece.lines().filter(|l| l.ends_with(&letter.to_string().repeat(90))).count();
        transcript.iter().map(count).sum::<usize>()
    };
    assert_eq!((letters('a'), letters('b'), letters('c')), (250, 250, 250), "each line is in one piece");
    assert!(transcript[1].contains("Summary 3.") && transcript[1].contains("The next piece"), "{}", transcript[1]);
    let last = format!("Summary {}.", summarised.len());
    assert_eq!(compactions(&hall.facts()).last().unwrap().summary, Some(last.into()));
}

#[tokio::test(start_paused = true)]
async fn where_nobody_wants_it_there_is_no_summary_but_on_request() {
    let plays = vec![reads("a.txt", FULL), reads("b.txt", FULL), vec![Line::Fails(ModelErrorKind::Overflow)]];
    let model = Script::small(CONTEXT, Vec::new(), plays);
    let mut hall = hall(&model);
    hall.settings.compaction = Compaction::OnRequest;
    let failure = hall.say("Read.").await.failure.unwrap();
    assert_eq!(failure.message, "It is Overflow.");
    assert!(compactions(&hall.facts()).is_empty());
    assert_eq!(hall.say("/compact").await.stop, Stop::EndTurn);
    assert_eq!(model.summarised().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_asked_for_again_when_the_provider_is_busy() {
    let busy = vec![Line::Fails(ModelErrorKind::Unavailable)];
    let model = Script::new(vec![says("One."), vec![ends_with(Finish::Stop)]]);
    let other = Script::small(CONTEXT, vec![busy.clone(), busy, says("Short.")], Vec::new());
    let mut hall = Hall::open(vec![model]);
    hall.say("First").await;
    hall.renew(vec![other.clone()]);
    assert_eq!(hall.say("/compact").await.stop, Stop::EndTurn);
    assert_eq!(other.summarised().len(), 3);
    assert_eq!(compactions(&hall.facts())[0].summary, Some("Short.".into()));
    let retries = hall.facts().iter().filter(|fact| matches!(fact.event, Event::RetryScheduled(_))).count();
    assert_eq!(retries, 2);
}
