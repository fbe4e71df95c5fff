use serde_json::{Value, json};
use tolka_scripted::{Answer, Beat, Counts, Script, Scripted};

use crate::{chat, messages, user};

fn answer() -> Answer {
    let usage = Counts { input: 8, output: 3, reasoning: 1, cache_read: 2, cache_write: 0 };
    let beats = [Beat::Think("Hm.".to_owned()), Beat::Text("Hi!".to_owned()), Beat::call("read", json!({"a": 1}))];
    Answer { usage: Some(usage), times: Some(0), ..Answer::beats(beats) }
}

fn data(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    lines.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn a_chat_is_as_openai_writes_it() {
    let provider = Scripted::start(Script::of([answer()])).unwrap();
    let (status, body) = chat(&provider.url(), &user("hello"));
    assert_eq!(status, 200);
    assert!(body.ends_with("\n\ndata: [DONE]\n\n"));
    let chunks = data(&body);
    assert!(chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == chunks[0]["id"]));
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let [.., finish, usage] = &chunks[..] else { panic!() };
    assert_eq!(finish["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(usage["choices"], json!([]));
    assert_eq!((&usage["usage"]["prompt_tokens"], &usage["usage"]["completion_tokens"]), (&json!(10), &json!(4)));
    let calls: Vec<_> = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0)).collect();
    assert!(calls.len() > 2, "input comes in pieces");
    assert!(calls[0]["id"].as_str().unwrap().starts_with("call_") && calls[1].get("id").is_none());
    let input: String = calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!(input, "{\"a\":1}");
}

#[test]
fn a_message_is_as_anthropic_writes_it() {
    let provider = Scripted::start(Script::of([answer()])).unwrap();
    let (status, body) = messages(&provider.url(), &user("hello"));
    assert_eq!(status, 200);
    let mut names: Vec<_> = body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let events = data(&body);
    assert!(names.iter().zip(&events).all(|(name, event)| event["type"] == *name));
    names.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let wanted = [&["message_start", "ping"][..], &block, &block, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(names, wanted);
    let signature = events.iter().find(|event| event["delta"]["type"] == "signature_delta").unwrap();
    assert!(signature["delta"]["signature"].as_str().unwrap().len() > 60);
    let end = events.iter().find(|event| event["type"] == "message_delta").unwrap();
    assert_eq!((&end["delta"]["stop_reason"], &end["usage"]["output_tokens"]), (&json!("tool_use"), &json!(4)));
}

#[test]
fn a_flood_is_as_many_pieces_as_it_says() {
    let flood = Beat::Flood { text: "tok ".to_owned(), times: 10_000 };
    let provider = Scripted::start(Script::of([Answer::beats([flood]).for_ever()])).unwrap();
    for (_, body) in [chat(&provider.url(), &user("go")), messages(&provider.url(), &user("go"))] {
        assert_eq!(body.matches("\"tok \"").count(), 10_000);
    }
}
