//! Conversations with the scripted provider, which refuses what the real ones refuse.

use std::sync::Arc;

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tolka_agent::native::model::{
    Input, Message, Model, ModelErrorKind, OpenAi, OpenAiOptions, Output, Piece, Returned,
};
use tolka_facts::event::{Finish, Usage};
use tolka_scripted::{Answer, Beat, Call, Counts, Ending, Outcome, Reasoning, Script, Scripted, Wire};

use crate::said::{about, anthropic, both, endpoint, failed, openai, prompt, said, with_results};

fn text(text: &str) -> Output {
    Output::Text(text.to_owned())
}

#[tokio::test]
async fn a_text_comes_whole() {
    let counts = Counts { input: 100, output: 7, reasoning: 3, cache_read: 50, cache_write: 5 };
    let answer = Answer { usage: Some(counts), ..Answer::text("Grüße, 世界! 👋") }.for_ever();
    let provider = Scripted::start(Script::of([answer])).unwrap();
    for (wire, model) in both(&provider) {
        let said = said(model.ask(prompt("hello"))).await;
        assert_eq!(said.outputs, [text("Grüße, 世界! 👋")]);
        assert_eq!((said.finish, said.is_refusal), (Finish::Stop, false));
        let usage = Usage { input: 100, output: 7, reasoning: 3, cache_read: 50, cache_write: 5 };
        // Anthropic counts thoughts with the rest.
        let together = Usage { output: 10, reasoning: 0, ..usage };
        assert_eq!(said.usage, Some(if wire == "openai" { usage } else { together }));
    }
}

#[tokio::test]
async fn calls_side_by_side_keep_their_ids_and_get_their_results() {
    let calls = ["{\"path\":\"a\"}", "{\"path\":\"b\"}", ""].map(|input| Call::new("read", json!(input)));
    let beats = [Beat::Text("Look:".to_owned()), Beat::Interleaved(calls.into())];
    for wire in 0..2 {
        let provider = Scripted::start(Script::of([Answer::beats(beats.clone()), Answer::text("Done.")])).unwrap();
        let model = if wire == 0 { openai(&provider) } else { anthropic(&provider) };
        let first = said(model.ask(prompt("read both"))).await;
        assert_eq!(first.finish, Finish::ToolCalls);
        assert_eq!(first.outputs[0], text("Look:"));
        let inputs = first.outputs.iter().filter_map(|output| match output {
            Output::Call { input, .. } => Some(input.get()),
            _ => None,
        });
        assert_eq!(inputs.collect::<Vec<_>>(), ["{\"path\":\"a\"}", "{\"path\":\"b\"}", "{}"]);
        let second = said(model.ask(with_results(prompt("read both"), &first, "x"))).await;
        assert_eq!(second.outputs, [text("Done.")]);
    }
}

#[tokio::test]
async fn thoughts_go_back_byte_for_byte() {
    for reasoning in [Reasoning::ReasoningDetails, Reasoning::Reasoning, Reasoning::ReasoningContent] {
        for wire in [Wire::OpenAi, Wire::Anthropic] {
            let hidden = Beat::Redacted("what nobody sees".to_owned());
            let call = Beat::call("read", json!({"path": "a"}));
            let think = |text: &str| Beat::Think(text.to_owned());
            let first = Answer::beats([think("Hm … \"so\"\n"), hidden, think("and so."), call.clone()]);
            let second = Answer::beats([think("Again."), call]);
            let script = Script { reasoning, ..Script::of([first, second, Answer::text("Done.")]) };
            let provider = Scripted::start(script).unwrap();
            let model = if wire == Wire::OpenAi { openai(&provider) } else { anthropic(&provider) };
            let first = said(model.ask(prompt("think"))).await;
            let request = with_results(prompt("think"), &first, "x");
            let second = said(model.ask(request.clone())).await;
            let request = with_results(request, &second, "y");
            assert_eq!(said(model.ask(request)).await.outputs, [text("Done.")]);
            let sent = &provider.requests()[2].body["messages"];
            match (wire, reasoning) {
                (Wire::Anthropic, _) => {
                    let kinds: Vec<_> =
                        sent[1]["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
                    assert_eq!(kinds, ["thinking", "redacted_thinking", "thinking", "tool_use"]);
                }
                (Wire::OpenAi, Reasoning::ReasoningDetails) => {
                    assert_eq!(sent[2]["reasoning_details"].as_array().unwrap().len(), 3);
                }
                (Wire::OpenAi, Reasoning::Reasoning) => assert_eq!(sent[2]["reasoning"], "Hm … \"so\"\nand so."),
                (Wire::OpenAi, Reasoning::ReasoningContent) => assert_eq!(sent[4]["reasoning_content"], "Again."),
            }
        }
    }
}

#[tokio::test]
async fn a_thought_that_was_changed_is_refused() {
    let first = Answer::beats([Beat::Think("Hm.".to_owned()), Beat::call("read", json!({}))]);
    for wrong in ["changed", "lost"] {
        let provider = Scripted::start(Script::of([first.clone(), Answer::text("Done.")])).unwrap();
        let model = anthropic(&provider);
        let mut first = said(model.ask(prompt("think"))).await;
        match (&mut first.outputs[0], wrong) {
            (Output::Thought { text, .. }, "changed") => text.push('!'),
            (Output::Thought { kept, .. }, _) => *kept = None,
            other => panic!("{other:?}"),
        }
        let error = failed(model.ask(with_results(prompt("think"), &first, "x"))).await;
        assert_eq!((error.kind, error.status), (ModelErrorKind::Rejected, Some(400)), "{error}");
    }
}

/// What the model of another provider left behind: ids, thoughts, empty texts, an answer cut off before its first word.
#[tokio::test]
async fn a_conversation_can_go_on_with_another_provider() {
    let call = Call { id: Some("functions.read:0".to_owned()), ..Call::new("read", json!({})) };
    let first = Answer::beats([Beat::Think("Hm.".to_owned()), Beat::Call(call)]);
    let provider = Scripted::start(Script::of([first, Answer::text("Done.").for_ever()])).unwrap();
    let first = said(openai(&provider).ask(prompt("begin"))).await;
    let mut request = with_results(prompt("begin"), &first, "");
    request.messages.push(Message::Model(vec![Output::Text(String::new())]).into());
    request.messages.push(Message::User(vec![Input::Text("go on".to_owned())]).into());
    request.messages.push(Message::User(vec![Input::Text("please".to_owned())]).into());
    for (_, model) in both(&provider) {
        assert_eq!(said(model.ask(request.clone())).await.outputs, [text("Done.")]);
    }
}

#[tokio::test]
async fn pictures_and_files_are_sent() {
    let script = [Answer::call("read", json!({})).for_ever()];
    let provider = Scripted::start(Script::of(script)).unwrap();
    let picture = Input::Image { mime: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() };
    let file =
        |name: &str, mime: &str, data: &str| Input::File { name: name.into(), mime: mime.into(), data: data.into() };
    let mut request = prompt("what is it?");
    request.messages.push(
        Message::User(vec![
            picture.clone(),
            file("a.pdf", "application/pdf", "JVBERi0="),
            file("a.csv", "text/csv", "YSxi"),
        ])
        .into(),
    );
    for (wire, model) in both(&provider) {
        let first = said(model.ask(request.clone())).await;
        let mut request = with_results(request.clone(), &first, "a picture");
        let Message::Results(results) = Arc::make_mut(request.messages.last_mut().unwrap()) else { panic!() };
        results[0].content.push(picture.clone());
        results[0].is_error = true;
        said(model.ask(request)).await;
        let sent = provider.requests().last().unwrap().body["messages"].clone();
        if wire == "openai" {
            let parts = &sent[1]["content"];
            assert_eq!(parts[1]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgo=");
            assert_eq!(
                parts[2]["file"],
                json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="})
            );
            assert_eq!(parts[3]["text"], "a.csv:\na,b");
            assert_eq!(sent[3]["content"], "Error: a picture");
            assert_eq!(sent[4]["content"][1]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgo=");
        } else {
            let parts = &sent[0]["content"];
            assert_eq!(parts[1]["source"]["media_type"], "image/png");
            assert_eq!(parts[2]["source"]["media_type"], "application/pdf");
            assert_eq!(parts[3]["source"], json!({"type": "text", "media_type": "text/plain", "data": "a,b"}));
            let result = &sent[2]["content"][0];
            assert_eq!(result["content"][1]["source"]["data"], "iVBORw0KGgo=");
            assert_eq!(result["is_error"], true);
        }
    }
}

#[tokio::test]
async fn ends_are_told_apart() {
    let ends = [Ending::Stop, Ending::Length, Ending::Refusal, Ending::PauseTurn];
    let answers = ends.map(|end| Answer { finish: Some(end), times: Some(2), ..Answer::text("Well.") });
    let provider = Scripted::start(Script::of(answers)).unwrap();
    let wanted = [(Finish::Stop, false), (Finish::Length, false), (Finish::Stop, true), (Finish::Unknown, false)];
    for (finish, is_refusal) in wanted {
        for (wire, model) in both(&provider) {
            let said = said(model.ask(prompt("hello"))).await;
            let finish = if (wire, finish) == ("openai", Finish::Unknown) { Finish::Stop } else { finish };
            assert_eq!((said.finish, said.is_refusal), (finish, is_refusal), "{wire}");
        }
    }
}

#[tokio::test]
async fn what_was_sent_is_marked_for_the_cache_and_not_more() {
    let provider = Scripted::start(Script::of([Answer::call("read", json!({})).for_ever()])).unwrap();
    let model = anthropic(&provider);
    let mut request = prompt("hello");
    for _ in 0..4 {
        let said = said(model.ask(request.clone())).await;
        request = with_results(request, &said, "x");
    }
    let sent = provider.requests().pop().unwrap().body;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(sent["system"][0]["cache_control"], mark);
    assert_eq!(sent["tools"][0]["cache_control"], mark);
    assert_eq!(sent["messages"][4]["content"][0]["cache_control"], mark);
    assert_eq!(sent["messages"][6]["content"][0]["cache_control"], mark);
    assert_eq!(sent["messages"][2]["content"][0]["cache_control"], json!(null));
    assert_eq!(sent["max_tokens"], 4096);
}

#[tokio::test]
async fn pieces_come_as_they_are_said_and_leaving_ends_the_request() {
    let beats =
        [Beat::Text("Now".to_owned()), Beat::Gate("more".to_owned()), Beat::Text("then".to_owned()), Beat::Hang];
    let provider = Scripted::start(Script::of([Answer::beats(beats).for_ever()])).unwrap();
    for (number, (_, model)) in (1..).zip(both(&provider)) {
        let mut stream = model.ask(prompt("hello"));
        assert_eq!(provider.requests().len(), number - 1, "nothing is sent before it is polled");
        assert_eq!(stream.next().await, Some(Ok(Piece::Text("Now".to_owned()))));
        provider.open("more");
        assert!(matches!(stream.next().await, Some(Ok(Piece::Text(_)))));
        assert_eq!(provider.requests()[number - 1].outcome, Outcome::Open);
        drop(stream);
        let is_over = |all: &Vec<tolka_scripted::Received>| all[number - 1].outcome == Outcome::Left;
        tokio::time::timeout(Duration::from_secs(60), provider.until(is_over)).await.unwrap();
    }
}

#[tokio::test]
async fn settings_are_sent() {
    let provider = Scripted::start(Script::of([Answer::text("Hi.").for_ever()])).unwrap();
    let extra = json!({"temperature": 0.5, "provider": {"order": ["x"]}}).as_object().unwrap().clone();
    let options = OpenAiOptions {
        limit: tolka_agent::native::model::AnswerLimit::MaxCompletionTokens,
        effort: Some("low".to_owned()),
        temperature: Some(0.1),
        extra,
        ..OpenAiOptions::default()
    };
    said(OpenAi::new(endpoint(provider.openai_url()), about(), options).ask(prompt("hello"))).await;
    let sent = provider.requests().pop().unwrap().body;
    assert_eq!(sent["max_completion_tokens"], 4096);
    assert_eq!(sent["reasoning_effort"], "low");
    assert_eq!((&sent["temperature"], &sent["provider"]["order"][0]), (&json!(0.5), &json!("x")));
    assert_eq!(sent["max_tokens"], json!(null));

    let options = tolka_agent::native::model::AnthropicOptions {
        thinking: Some(100_000),
        temperature: Some(0.1),
        ..Default::default()
    };
    let thinker = tolka_agent::native::model::Anthropic::new(endpoint(provider.anthropic_url()), about(), options);
    said(thinker.ask(prompt("hello"))).await;
    let sent = provider.requests().pop().unwrap().body;
    assert_eq!(sent["thinking"], json!({"type": "enabled", "budget_tokens": 3072}));
    assert_eq!(sent["temperature"], json!(null));
    // Another model made the calls, without a thought.
    let mut request = prompt("hello");
    let call = Output::Call { id: "c".to_owned(), name: "read".to_owned(), input: tolka_facts::Json::of(&json!({})) };
    request.messages.push(Message::Model(vec![call]).into());
    request
        .messages
        .push(Message::Results(vec![Returned { call: "c".to_owned(), content: Vec::new(), is_error: false }]).into());
    said(thinker.ask(request)).await;
    assert_eq!(provider.requests().pop().unwrap().body["thinking"], json!(null));
}
