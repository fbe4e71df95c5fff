//! The adapter over the `genai` crate, by that crate's own OpenAI and Anthropic wires.

use serde_json::json;
use tolka_agent::native::model::{GenAi, Model, ModelErrorKind, Output};
use tolka_facts::event::Finish;
use tolka_scripted::{Answer, Beat, Counts, Cut, Script, Scripted};

use crate::said::{about, endpoint, failed, prompt, said, with_results};

fn model(adapter: &str, provider: &Scripted) -> GenAi {
    GenAi::new(adapter, endpoint(provider.openai_url()), about())
}

#[tokio::test]
async fn a_conversation_goes_through() {
    for adapter in ["openai", "anthropic"] {
        let usage = Some(Counts { input: 9, output: 4, ..Counts::default() });
        let beats =
            [Beat::Text("Look:".to_owned()), Beat::call("read", json!({"path": "a"})), Beat::call("read", json!({}))];
        let first = Answer { usage, ..Answer::beats(beats) };
        let provider = Scripted::start(Script::of([first, Answer::text("Done.")])).unwrap();
        let model = model(adapter, &provider);
        let first = said(model.ask(prompt("read"))).await;
        assert_eq!((first.finish, first.outputs.len()), (Finish::ToolCalls, 3), "{adapter}: {:?}", first.outputs);
        assert_eq!(first.usage.unwrap().input, 9);
        let second = said(model.ask(with_results(prompt("read"), &first, "x"))).await;
        assert_eq!(second.outputs, [Output::Text("Done.".to_owned())]);
    }
}

#[tokio::test]
async fn faults_are_told_apart() {
    for adapter in ["openai", "anthropic"] {
        for (answer, kind) in [
            (Answer::status(401), ModelErrorKind::Auth),
            (Answer::status(429).header("retry-after", "7"), ModelErrorKind::RateLimited),
            (Answer::overflow(), ModelErrorKind::Overflow),
            (Answer::beats([Beat::Text("Half".to_owned()), Beat::Cut(Cut::Closed)]), ModelErrorKind::Cut),
        ] {
            let provider = Scripted::start(Script::of([answer])).unwrap();
            let error = failed(model(adapter, &provider).ask(prompt("hello"))).await;
            assert_eq!(error.kind, kind, "{adapter}: {error}");
            assert_eq!(error.retry_after.is_some(), kind == ModelErrorKind::RateLimited);
        }
    }
    let provider = Scripted::start(Script::default()).unwrap();
    let error = failed(model("nobody", &provider).ask(prompt("hello"))).await;
    assert!(error.message.contains("knows no provider"), "{error}");
}
