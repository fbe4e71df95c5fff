//! Conversations with the scripted provider.

use serde_json::json;
use tolka_agent::native::model::{Input, Message, Output, Returned};
use tolka_facts::Json;
use tolka_facts::event::{Finish, Usage};
use tolka_scripted::{Answer, Beat, Call, Counts, Script, Scripted};

use crate::said::{openai, prompt, said};

#[tokio::test]
async fn a_text_comes_whole() {
    let counts = Counts { input: 100, output: 7, reasoning: 3, cache_read: 50, cache_write: 5 };
    let answer = Answer { usage: Some(counts), ..Answer::text("Grüße, 世界! 👋") };
    let provider = Scripted::start(Script::of([answer])).unwrap();
    let said = said(openai(&provider).ask(prompt("hello"))).await;
    assert_eq!(said.outputs, [Output::Text("Grüße, 世界! 👋".to_owned())]);
    assert_eq!((said.finish, said.is_refusal), (Finish::Stop, false));
    assert_eq!(said.usage, Some(Usage { input: 100, output: 7, reasoning: 3, cache_read: 50, cache_write: 5 }));
}

#[tokio::test]
async fn calls_side_by_side_keep_their_ids_and_get_their_results() {
    let calls = [
        Call::new("read", json!({"path": "a"})),
        Call::new("read", json!({"path": "b"})),
        Call::new("read", json!(null)),
    ];
    let first = Answer::beats([
        Beat::Think("Both.".to_owned()),
        Beat::Text("Look:".to_owned()),
        Beat::Interleaved(calls.into()),
    ]);
    let provider = Scripted::start(Script::of([first, Answer::text("Done.")])).unwrap();
    let model = openai(&provider);
    let mut request = prompt("read both");
    let first = said(model.ask(request.clone())).await;
    assert_eq!(first.finish, Finish::ToolCalls);
    let calls: Vec<_> = first
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Call { id, input, .. } => Some((id.clone(), input.get().to_owned())),
            _ => None,
        })
        .collect();
    let inputs: Vec<_> = calls.iter().map(|(_, input)| input.as_str()).collect();
    assert_eq!(inputs, ["{\"path\":\"a\"}", "{\"path\":\"b\"}", "{}"]);
    assert_eq!(first.outputs[1], Output::Text("Look:".to_owned()));
    let kept = Some(Json::of(&json!({"field": "reasoning_content"})));
    assert_eq!(first.outputs[0], Output::Thought { text: "Both.".to_owned(), kept });

    request.messages.push(Message::Model(first.outputs));
    let result = |(call, _): &(String, String)| Returned {
        call: call.clone(),
        content: vec![Input::Text("x".to_owned())],
        is_error: false,
    };
    request.messages.push(Message::Results(calls.iter().map(result).collect()));
    let second = said(model.ask(request)).await;
    assert_eq!(second.outputs, [Output::Text("Done.".to_owned())]);
    let sent = &provider.requests()[1].body["messages"];
    assert_eq!(sent[2]["reasoning_content"], "Both.");
    assert_eq!(sent[5]["tool_call_id"], calls[2].0.as_str());
}
