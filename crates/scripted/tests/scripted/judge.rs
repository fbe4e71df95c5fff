//! What real providers refuse is refused.

use serde_json::{Value, json};
use tolka_scripted::{Answer, Script, Scripted};

use crate::{chat, messages, request, user};

fn provider() -> Scripted {
    Scripted::start(Script::of([Answer::text("fine").for_ever()])).unwrap()
}

fn turn(role: &str, content: &Value) -> Value {
    json!({"role": role, "content": content})
}

#[test]
fn chats_that_openai_refuses() {
    let provider = provider();
    let call = |id: &str, arguments: &str| {
        let function = json!({"name": "read", "arguments": arguments});
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
    };
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let ask = turn("user", &json!("x"));
    assert_eq!(chat(&provider.url(), &json!([ask, call("c", "{}"), result("c")])).0, 200);
    for (messages, words) in [
        (json!([]), "must have a message of the user"),
        (json!([ask, result("c")]), "must be a response to a preceding message"),
        (json!([ask, call("c", "{}"), result("d")]), "must be a response to a preceding message"),
        (json!([ask, call("c", "{}"), result("c"), result("c")]), "must be a response"),
        (json!([ask, call("c", "{}"), ask]), "did not have response messages: c"),
        (json!([ask, call("c", "{}")]), "no tool messages"),
        (json!([ask, call("c", "{\"a\":"), result("c")]), "no JSON object"),
        (json!([ask, call("", "{}"), result("")]), "without an id"),
        (json!([ask, ask]), "roles must alternate"),
        (json!([ask, turn("assistant", &json!("")), ask]), "must have content or tool_calls"),
        (json!([ask, turn("assistant", &json!("y"))]), "assistant's own"),
        (json!([turn("user", &json!([]))]), "expected a string or parts"),
        (
            json!([ask, call("c", "{}"), {"role": "tool", "tool_call_id": "c", "content": [{"type": "image_url"}]}]),
            "has to be a string",
        ),
    ] {
        let (status, body) = chat(&provider.url(), &messages);
        assert_eq!(status, 400, "{messages}");
        assert!(body.contains(words), "{messages}: {body}");
    }
    let (status, body) = request(&provider.url(), "POST", "/v1/chat/completions", "{\"model\":", &[]);
    assert_eq!(status, 400);
    assert!(body.contains("could not parse"), "{body}");
    assert_eq!(provider.requests().last().unwrap().body, json!("{\"model\":"));
}

#[test]
fn messages_that_anthropic_refuses() {
    let provider = provider();
    let ask = turn("user", &json!("x"));
    let call = |id: &str, input: &Value| {
        turn("assistant", &json!([{"type": "tool_use", "id": id, "name": "read", "input": input}]))
    };
    let result =
        |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": "x"}]});
    let text = json!({"type": "text", "text": "x"});
    let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    let thinking = json!({"type": "thinking", "thinking": "x", "signature": "forged"});
    assert_eq!(
        messages(&provider.url(), &json!([ask, call("c", &json!({})), turn("user", &json!([result("c"), text]))])).0,
        200
    );
    for (conversation, words) in [
        (json!([]), "first message must use"),
        (json!([turn("assistant", &json!("x")), ask]), "first message must use"),
        (json!([ask, ask]), "roles must alternate"),
        (json!([ask, turn("user", &json!([result("c")]))]), "roles must alternate"),
        (
            json!([ask, turn("assistant", &json!([text])), turn("user", &json!([result("c")]))]),
            "unexpected `tool_use_id`",
        ),
        (json!([ask, call("c", &json!({})), ask]), "without `tool_result` blocks"),
        (json!([ask, call("c", &json!({})), turn("user", &json!([text, result("c")]))]), "must come first"),
        (json!([ask, call("a.b", &json!({})), turn("user", &json!([result("a.b")]))]), "should match"),
        (json!([ask, call("c", &json!("x")), turn("user", &json!([result("c")]))]), "valid dictionary"),
        (json!([turn("user", &json!([{"type": "text", "text": ""}]))]), "must be non-empty"),
        (json!([ask, turn("assistant", &json!([thinking, text])), ask]), "Invalid `signature`"),
        (json!([turn("user", &json!([marked, marked, marked, marked, marked]))]), "maximum of 4 blocks"),
        (json!([ask, turn("assistant", &json!([text]))]), "assistant's own"),
    ] {
        let (status, body) = messages(&provider.url(), &conversation);
        assert_eq!(status, 400, "{conversation}");
        assert!(body.contains(words), "{conversation}: {body}");
    }
    let without = json!({"model": "m", "stream": true, "messages": user("x")}).to_string();
    let version = ["anthropic-version: 2023-06-01"];
    assert!(
        request(&provider.url(), "POST", "/v1/messages", &without, &version).1.contains("max_tokens: Field required")
    );
    assert!(request(&provider.url(), "POST", "/v1/messages", &without, &[]).1.contains("anthropic-version"));
}
