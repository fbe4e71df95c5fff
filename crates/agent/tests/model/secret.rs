//! The key: it is sent to one host, and shown to nobody.

use tolka_agent::native::model::{Model, ModelErrorKind, OpenAi, OpenAiOptions, Secret};
use tolka_scripted::{Answer, Script, Scripted};

use crate::raw::Raw;
use crate::said::{KEY, about, both, endpoint, failed, prompt, said};

#[tokio::test]
async fn the_key_is_sent_and_a_wrong_one_is_never_shown() {
    let provider = |key: &str| {
        let script = Script { key: Some(key.to_owned()), ..Script::of([Answer::text("Hi.").for_ever()]) };
        Scripted::start(script).unwrap()
    };
    for (_, model) in both(&provider(KEY)) {
        said(model.ask(prompt("hello"))).await;
    }
    for (_, model) in both(&provider("another")) {
        // The provider echoes what it was given; `failed` looks for it.
        let error = failed(model.ask(prompt("hello"))).await;
        assert_eq!(error.kind, ModelErrorKind::Auth);
        assert!(error.message.contains("[secret]"), "{error}");
        assert!(!format!("{model:?}").contains(KEY));
    }
}

#[tokio::test]
async fn a_key_does_not_follow_to_another_host() {
    let other = Raw::start(crate::raw::SSE, &[b"data: [DONE]\n\n"]).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let head = format!("HTTP/1.1 {status}\r\nlocation: {}/elsewhere?key=1\r\n", other.url());
        let raw = Raw::start(&head, &[]).await;
        let error =
            failed(OpenAi::new(endpoint(raw.url()), about(), OpenAiOptions::default()).ask(prompt("hello"))).await;
        assert_eq!(error.kind, ModelErrorKind::Rejected);
        assert!(error.message.contains("has moved to") && !error.message.contains("key=1"), "{error}");
    }
    assert!(other.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn without_a_key_it_is_said_where_to_put_one() {
    let script = Script { key: Some(KEY.to_owned()), ..Script::of([]) };
    let provider = Scripted::start(script).unwrap();
    let mut endpoint = endpoint(provider.openai_url());
    endpoint.key = None;
    let error = failed(OpenAi::new(endpoint, about(), OpenAiOptions::default()).ask(prompt("hello"))).await;
    assert!(error.message.contains("wants a key") && error.message.contains("Set SCRIPTED_API_KEY"), "{error}");
    assert!(!provider.requests()[0].headers.contains_key("authorization"));
}

#[tokio::test]
async fn headers_of_the_settings_are_sent_and_not_shown() {
    let provider = Scripted::start(Script::of([Answer::status(400)])).unwrap();
    let mut endpoint = endpoint(provider.openai_url());
    endpoint.key = Some(Secret::new("bad\nkey"));
    endpoint.headers.push(("api-key".to_owned(), Secret::new(KEY)));
    let model = OpenAi::new(endpoint, about(), OpenAiOptions::default());
    assert!(!format!("{model:?}").contains(KEY));
    let error = failed(model.ask(prompt("hello"))).await;
    assert!(error.message.contains("characters that cannot be sent"), "{error}");
    assert!(!error.message.contains("bad"), "{error}");
}
