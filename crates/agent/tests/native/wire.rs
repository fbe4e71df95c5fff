//! The loop over real wires, against a provider that refuses what providers refuse: results without calls, calls without
//! results, roles out of order, thoughts that came back changed.

use std::sync::Arc;

use serde_json::json;
use tolka_agent::ModelAbout;
use tolka_agent::native::model::{
    Anthropic, AnthropicOptions, Endpoint, Model, ModelErrorKind, OpenAi, OpenAiOptions, Secret,
};
use tolka_facts::event::{FailureKind, Finish, Model as ModelName, Stop};
use tolka_facts::{Block, Event, Fact};
use tolka_scripted::{Answer, Beat, Call, Cut, Ending, Reasoning, Script, Scripted, Wire};

use crate::hall::{Act, Hall};
use crate::told::check_dialects;

const KEY: &str = "sk-the-key";

fn model(wire: Wire, provider: &Scripted, key: &str) -> Arc<dyn Model> {
    let name = ModelName { provider: "scripted".into(), id: "m".into() };
    let about = ModelAbout { context: Some(100_000), output: Some(8_000), ..ModelAbout::named(name) };
    let url = if wire == Wire::OpenAi { provider.openai_url() } else { provider.anthropic_url() };
    let mut endpoint = Endpoint::new(url);
    endpoint.key = Some(Secret::new(key));
    endpoint.key_name = Some("SCRIPTED_API_KEY".to_owned());
    match wire {
        Wire::OpenAi => Arc::new(OpenAi::new(endpoint, about, OpenAiOptions::default())),
        Wire::Anthropic => {
            let options = AnthropicOptions { thinking: Some(2_000), ..AnthropicOptions::default() };
            Arc::new(Anthropic::new(endpoint, about, options))
        }
    }
}

fn start(answers: Vec<Answer>) -> Scripted {
    let reasoning = Reasoning::ReasoningDetails;
    Scripted::start(Script { key: Some(KEY.to_owned()), reasoning, ..Script::of(answers) }).unwrap()
}

fn finishes(facts: &[Fact]) -> Vec<Finish> {
    facts.iter().filter_map(|fact| if let Event::StepEnded(e) = &fact.event { Some(e.finish) } else { None }).collect()
}

#[tokio::test]
async fn a_long_turn_goes_over_both_wires() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let call = |name: &str, input| Call::new(name, input);
        let provider = start(vec![
            Answer::status(429).header("retry-after", "0"),
            Answer::beats([
                Beat::Think("I write, then I look.".into()),
                Beat::Text("Writing.".into()),
                Beat::Calls(vec![
                    call("write", json!({ "filePath": "a.txt", "content": "one\n" })),
                    call("list", json!({})),
                ]),
            ]),
            Answer::beats([Beat::Think("Half a tho".into()), Beat::Text("Half an ans".into()), Beat::Cut(Cut::Closed)]),
            Answer::beats([
                Beat::Think("Read both.".into()),
                Beat::Interleaved(vec![
                    call("read", json!({ "filePath": "a.txt" })),
                    call("read", json!({ "filePath": "missing" })),
                    call("fly", json!({})),
                ]),
            ]),
            Answer::beats([Beat::Redacted("secret".into()), Beat::call("read", json!("{\"filePath\": "))]),
            Answer::beats([Beat::Think("That is all.".into()), Beat::Text("Done.".into())]),
            Answer::text("You are welcome."),
            Answer { finish: Some(Ending::Refusal), ..Answer::text("No.") },
            Answer::overflow(),
        ]);
        let mut hall = Hall::open(vec![model(wire, &provider, KEY)]);
        let mut is_steered = false;
        let ended = hall
            .prompt(vec![Block::text("Work")], None, |fact| match &fact.event {
                Event::TextAppended(_) if !is_steered => {
                    is_steered = true;
                    Act::Steers("Mind the gap".into())
                }
                _ => Act::Nothing,
            })
            .await;
        assert_eq!((ended.stop, ended.failure), (Stop::EndTurn, None), "{wire:?}");
        assert!(is_steered);
        let stops = [hall.say("Thanks").await.stop, hall.say("Do evil").await.stop];
        assert_eq!(stops, [Stop::EndTurn, Stop::Refusal], "{wire:?}");
        let failure = hall.say("And now?").await.failure.unwrap();
        assert!(failure.message.contains("Go on in a new session"), "{wire:?}: {}", failure.message);
        let facts = hall.facts();
        let expected = [
            Finish::ToolCalls,
            Finish::Error,
            Finish::ToolCalls,
            Finish::ToolCalls,
            Finish::Stop,
            Finish::Stop,
            Finish::Stop,
            Finish::Error,
        ];
        assert_eq!(finishes(&facts), expected, "{wire:?}");
        for (at, request) in provider.requests().iter().enumerate() {
            assert_eq!(request.refused, None, "{wire:?}, request {at}: {:#}", request.body);
        }
        assert_eq!(std::fs::read_to_string(hall.folder.path().join("a.txt")).unwrap(), "one\n");
        check_dialects(&facts, &hall.memory);
        let told = facts.iter().map(|fact| String::from_utf8(fact.to_json()).unwrap()).collect::<String>();
        assert!(!told.contains(KEY), "{wire:?}: the key is told");
    }
}

#[tokio::test]
async fn a_wrong_key_is_named_and_not_shown() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let provider = start(vec![Answer::text("Hello.")]);
        let mut hall = Hall::open(vec![model(wire, &provider, "sk-wrong")]);
        let failure = hall.say("Hi").await.failure.unwrap();
        assert_eq!((failure.kind, failure.retryable), (FailureKind::Auth, false), "{wire:?}");
        assert!(failure.message.contains("SCRIPTED_API_KEY"), "{wire:?}: {}", failure.message);
        assert!(!failure.message.contains("sk-wrong"), "{wire:?}: {}", failure.message);
        assert!(!ModelErrorKind::Auth.may_pass());
    }
}

#[tokio::test]
async fn a_cancel_ends_the_request() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let provider = start(vec![Answer::beats([Beat::Text("Well, ".into()), Beat::Hang])]);
        let mut hall = Hall::open(vec![model(wire, &provider, KEY)]);
        let ended = hall.say_until("Hi", |fact| matches!(fact.event, Event::TextAppended(_))).await;
        assert_eq!(ended.stop, Stop::Cancelled, "{wire:?}");
        provider.until(|asked| asked.iter().all(|request| request.outcome == tolka_scripted::Outcome::Left)).await;
    }
}
