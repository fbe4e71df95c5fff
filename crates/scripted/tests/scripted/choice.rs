use serde_json::json;
use tolka_scripted::{Answer, Order, Script, Scripted, When};

use crate::{chat, request, user};

fn said(answer: &(u16, String)) -> String {
    let pieces = answer.1.lines().filter_map(|line| line.strip_prefix("data: "));
    let pieces = pieces.filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok());
    pieces.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect()
}

#[test]
fn answers_come_in_order_and_those_with_a_name_first() {
    let title = Answer::text("A title").when(When { system: Some("title".to_owned()), ..When::default() }).for_ever();
    let script = Script::of([Answer::text("one"), Answer::text("two"), title]);
    let provider = Scripted::start(script).unwrap();
    let titled = json!([{"role": "system", "content": "Make a title."}, {"role": "user", "content": "hello"}]);
    assert_eq!(said(&chat(&provider.url(), &user("hello"))), "one");
    assert_eq!(said(&chat(&provider.url(), &titled)), "A title");
    assert_eq!(said(&chat(&provider.url(), &user("hello"))), "two");
    assert_eq!(said(&chat(&provider.url(), &titled)), "A title");
    let (status, body) = chat(&provider.url(), &user("hello"));
    assert_eq!(status, 400);
    assert!(body.contains("no answer left"), "{body}");
    provider.add([Answer::text("three")]);
    assert_eq!(said(&chat(&provider.url(), &user("hello"))), "three");
    let answers: Vec<_> = provider.requests().iter().map(|request| request.answer).collect();
    assert_eq!(answers, [Some(0), Some(2), Some(1), Some(2), None, Some(3)]);
}

#[test]
fn each_conversation_can_have_all_answers() {
    let script = Script { order: Order::Conversation, ..Script::of([Answer::text("one"), Answer::text("two")]) };
    let provider = Scripted::start(script).unwrap();
    for (who, wanted) in [("a", "one"), ("b", "one"), ("a", "two"), ("b", "two")] {
        assert_eq!(said(&chat(&provider.url(), &user(who))), wanted);
    }
}

#[test]
fn an_answer_can_be_chosen_by_a_result() {
    let when = When { result: Some("not found".to_owned()), ..When::default() };
    let provider =
        Scripted::start(Script::of([Answer::text("fine").for_ever(), Answer::text("oh").when(when)])).unwrap();
    let call = json!({"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let with = |result: &str| {
        json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": null, "tool_calls": [call]},
               {"role": "tool", "tool_call_id": "c", "content": result}])
    };
    assert_eq!(said(&chat(&provider.url(), &with("here"))), "fine");
    assert_eq!(said(&chat(&provider.url(), &with("it was not found"))), "oh");
    assert_eq!(said(&chat(&provider.url(), &user("not found"))), "fine");
}

#[test]
fn models_and_keys_are_asked_for() {
    let script = Script { models: vec!["m".to_owned()], key: Some("k".to_owned()), ..Script::of([Answer::text("hi")]) };
    let provider = Scripted::start(script).unwrap();
    let url = provider.url();
    let (_, models) = request(&url, "GET", "/v1/models", "", &[]);
    assert!(models.starts_with(r#"{"object":"list","data":[{"id":"m""#), "{models}");
    let (_, models) = request(&url, "GET", "/v1/models", "", &["anthropic-version: 2023-06-01"]);
    assert!(models.contains("display_name"), "{models}");
    assert_eq!(chat(&url, &user("hello")).0, 401);
    let post = |model: &str, key: &str| {
        let body = json!({"model": model, "stream": true, "messages": user("hello")}).to_string();
        request(&url, "POST", "/v1/chat/completions", &body, &[&format!("authorization: Bearer {key}")]).0
    };
    assert_eq!(post("m", "wrong"), 401);
    assert_eq!(post("x", "k"), 404);
    assert_eq!(post("m", "k"), 200);
    assert_eq!(request(&url, "GET", "/nowhere", "", &[]).0, 404);
}
