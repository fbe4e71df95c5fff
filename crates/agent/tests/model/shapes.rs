//! The shapes that those who speak the OpenAI wire have made of it.

use serde_json::{Value, json};
use tolka_agent::native::model::{Anthropic, AnthropicOptions, Message, Model, OpenAi, OpenAiOptions, Output};
use tolka_facts::Json;
use tolka_facts::event::{Finish, Usage};

use crate::raw::{JSON, Raw, SSE};
use crate::said::{Said, about, endpoint, prompt, said};

fn stream(deltas: &[Value], finish: &str) -> String {
    let chunk = |delta: &Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    let mut text: String = deltas.iter().map(chunk).collect();
    text.push_str(&format!("data: {}\n\n", json!({"choices": [{"index": 0, "finish_reason": finish}]})));
    text.push_str("data: [DONE]\n\n");
    text
}

async fn heard(head: &str, body: &str) -> Said {
    let raw = Raw::start(head, &[body.as_bytes()]).await;
    said(OpenAi::new(endpoint(raw.url()), about(), OpenAiOptions::default()).ask(prompt("go"))).await
}

/// Name and input of the calls; their ids must differ.
fn calls(said: &Said) -> Vec<(&str, &str)> {
    let mut ids = Vec::new();
    let calls = said.outputs.iter().filter_map(|output| match output {
        Output::Call { id, name, input } => {
            assert!(!id.is_empty() && !ids.contains(&id), "{id}");
            ids.push(id);
            Some((name.as_str(), input.get()))
        }
        _ => None,
    });
    calls.collect()
}

fn call(delta: &Value) -> Value {
    json!({ "tool_calls": [delta] })
}

#[tokio::test]
async fn calls_in_every_shape() {
    let one = ("a", r#"{"x":1}"#);
    let two = ("b", r#"{"y":2}"#);
    let whole = |name: &str, input: &str| json!({"name": name, "arguments": input});
    for (what, deltas, wanted) in [
        (
            "without an index",
            vec![
                call(&json!({"id": "1", "function": whole("a", "{\"x\"")})),
                call(&json!({"function": {"arguments": ":1}"}})),
                call(&json!({"id": "2", "function": whole("b", r#"{"y":2}"#)})),
            ],
            vec![one, two],
        ),
        (
            "without index and id",
            vec![
                call(&json!({"function": whole("a", r#"{"x":1}"#)})),
                call(&json!({"function": whole("b", r#"{"y":2}"#)})),
            ],
            vec![one, two],
        ),
        (
            "with ids that are empty",
            vec![
                call(&json!({"index": 0, "id": "", "function": whole("a", r#"{"x":1}"#)})),
                call(&json!({"index": 1, "id": null, "function": whole("b", r#"{"y":2}"#)})),
            ],
            vec![one, two],
        ),
        (
            "all in one piece",
            vec![json!({"content": null, "tool_calls": [
                {"index": 0, "id": "1", "function": whole("a", r#"{"x":1}"#)},
                {"index": 1, "id": "2", "function": whole("b", r#"{"y":2}"#)},
            ]})],
            vec![one, two],
        ),
        (
            "with id and name again and again",
            vec![
                call(&json!({"index": 0, "id": "1", "type": "function", "function": whole("a", "{\"x\"")})),
                call(&json!({"index": 0, "id": "1", "type": "function", "function": whole("a", ":1}")})),
            ],
            vec![one],
        ),
        (
            "each with index 0 and an id of its own",
            vec![
                call(&json!({"index": 0, "id": "1", "function": whole("a", r#"{"x":1}"#)})),
                call(&json!({"index": 0, "id": "2", "function": whole("b", "{\"y\"")})),
                call(&json!({"index": 0, "function": {"arguments": ":2}"}})),
            ],
            vec![one, two],
        ),
        (
            "with the id after the name",
            vec![
                call(&json!({"index": 0, "function": {"name": "a"}})),
                call(&json!({"index": 0, "id": "1"})),
                call(&json!({"index": 0, "function": {"arguments": r#"{"x":1}"#}})),
            ],
            vec![one],
        ),
        (
            "with an object for arguments",
            vec![call(&json!({"index": 0, "id": "1", "function": {"name": "a", "arguments": {"x": 1}}}))],
            vec![one],
        ),
        (
            "without arguments",
            vec![
                call(&json!({"index": 0, "id": "1", "function": {"name": "a"}})),
                call(&json!({"index": 1, "id": "2", "function": {"name": "b", "arguments": null}})),
            ],
            vec![("a", "{}"), ("b", "{}")],
        ),
        (
            "from an index that is not 0",
            vec![call(&json!({"index": 3, "id": "1", "function": whole("a", r#"{"x":1}"#)}))],
            vec![one],
        ),
    ] {
        for finish in ["tool_calls", "stop"] {
            let said = heard(SSE, &stream(&deltas, finish)).await;
            assert_eq!(calls(&said), wanted, "calls {what}");
            assert_eq!(said.finish, Finish::ToolCalls);
        }
    }
}

#[tokio::test]
async fn thoughts_and_texts_in_every_shape() {
    let text = |text: &str| Output::Text(text.to_owned());
    let thought = |text: &str, kept: Option<Value>| Output::Thought {
        text: text.to_owned(),
        kept: kept.map(|kept| Json::of(&kept)),
    };
    for (deltas, wanted) in [
        (
            vec![
                json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}),
                json!({"content": [{"type": "text", "text": "So"}]}),
            ],
            vec![thought("Hm", None), text("So")],
        ),
        (
            vec![json!({"reasoning": "Hm"}), json!({"reasoning": null, "content": "So"})],
            vec![thought("Hm", Some(json!({"field": "reasoning"}))), text("So")],
        ),
        // Something hidden that comes after the answer has begun, as Gemini's does.
        (
            vec![
                json!({"content": "So"}),
                json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x=="}]}),
            ],
            vec![
                text("So"),
                thought("", Some(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x=="}]}))),
            ],
        ),
        (
            vec![
                json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm", "index": 0}]}),
                json!({"content": "So"}),
            ],
            vec![
                thought(
                    "Hm",
                    Some(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm", "index": 0}]})),
                ),
                text("So"),
            ],
        ),
        (vec![json!({"content": "So", "unheard": {"of": []}, "audio": null, "function_call": null})], vec![text("So")]),
    ] {
        assert_eq!(heard(SSE, &stream(&deltas, "stop")).await.outputs, wanted);
    }
    let refused = heard(SSE, &stream(&[json!({"refusal": "I cannot."})], "stop")).await;
    assert_eq!((refused.outputs, refused.is_refusal), (vec![text("I cannot.")], true));
}

#[tokio::test]
async fn ends_in_every_shape() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"So\"}}]}\n\n";
    for (end, finish) in [
        ("data: [DONE]\n\n", Finish::Stop),
        ("data: [DONE]", Finish::Stop),
        ("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", Finish::Stop),
        ("data: {\"choices\":[{\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n", Finish::Length),
        ("data: {\"choices\":[{\"finish_reason\":\"whatever\"}]}\n\ndata: [DONE]\n\n", Finish::Unknown),
    ] {
        if end != "data: [DONE]" {
            assert_eq!(heard(SSE, &format!("{text}{end}")).await.finish, finish, "{end}");
        }
    }
    let usage = r#"{"prompt_tokens":20,"completion_tokens":5,"total_tokens":32,"completion_tokens_details":{"reasoning_tokens":7},"prompt_cache_hit_tokens":4}"#;
    let said =
        heard(SSE, &format!("{text}data: {{\"choices\":[{{\"finish_reason\":\"stop\"}}],\"usage\":{usage}}}\n\n"))
            .await;
    assert_eq!(said.usage, Some(Usage { input: 16, output: 5, reasoning: 7, cache_read: 4, cache_write: 0 }));
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_taken() {
    let function = json!({"name": "a", "arguments": "{\"x\":1}"});
    let message = json!({"role": "assistant", "content": "So", "tool_calls": [{"id": "1", "type": "function", "function": function}]});
    let body = json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
                      "usage": {"prompt_tokens": 2, "completion_tokens": 1}});
    let said = heard(JSON, &serde_json::to_string_pretty(&body).unwrap()).await;
    assert_eq!(calls(&said), [("a", r#"{"x":1}"#)]);
    assert_eq!(said.usage.unwrap().input, 2);

    let content =
        json!([{"type": "text", "text": "So"}, {"type": "tool_use", "id": "1", "name": "a", "input": {"x": 1}}]);
    let body = json!({"type": "message", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 2, "output_tokens": 1}});
    let raw = Raw::start(JSON, &[body.to_string().as_bytes()]).await;
    let model = Anthropic::new(endpoint(raw.url()), about(), AnthropicOptions::default());
    let said = crate::said::said(model.ask(prompt("go"))).await;
    assert_eq!(calls(&said), [("a", r#"{"x":1}"#)]);
    assert_eq!((said.finish, said.usage.unwrap().output), (Finish::ToolCalls, 1));
}

/// Gemini hangs its signatures on calls and wants them back there.
#[tokio::test]
async fn what_hangs_on_calls_goes_back_with_them() {
    let signed = json!({"google": {"thought_signature": "a+/="}});
    let delta = json!({"tool_calls": [
        {"index": 0, "id": "1", "function": {"name": "read", "arguments": "{}"}, "extra_content": signed},
        {"index": 1, "id": "2", "function": {"name": "read", "arguments": "{}"}},
    ]});
    let first = heard(SSE, &stream(&[delta], "stop")).await;
    let provider =
        tolka_scripted::Scripted::start(tolka_scripted::Script::of([tolka_scripted::Answer::text("Done.")])).unwrap();
    let request = crate::said::with_results(prompt("go"), &first, "x");
    assert!(matches!(*request.messages[1], Message::Model(_)));
    said(crate::said::openai(&provider).ask(request)).await;
    let sent = &provider.requests()[0].body["messages"][2]["tool_calls"];
    assert_eq!((&sent[0]["extra_content"], &sent[1]["extra_content"]), (&signed, &Value::Null));
}
